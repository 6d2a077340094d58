//! The environment, read here and nowhere else.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::wrong;
use postrider::Result;

/// What every variable of this program begins with.
pub(super) const PREFIX: &str = "POSTRIDER_";

/// The value of a variable; an empty one counts as not set, as deployment tools leave them.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration) if it is not UTF-8.
#[expect(clippy::disallowed_methods, reason = "the configuration reads the environment")]
pub(crate) fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(wrong(format!("the variable {name} is not UTF-8"))),
    }
}

/// The names of all variables that begin like this program's.
pub(super) fn names() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// The arguments of this process, its own name first.
pub(crate) fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The folder that the program was started in; `.` if it cannot be told.
pub(crate) fn folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// True if the terminal's user wants no colour. Source: no-color.org.
#[expect(clippy::disallowed_methods, reason = "the configuration reads the environment")]
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The person at the command line, for the history of a row.
pub(crate) fn person() -> Option<String> {
    ["USER", "LOGNAME"].into_iter().find_map(|name| variable(name).ok().flatten())
}
