//! The layers: default, file, environment, flag; the later one wins, setting by setting.
//!
//! Every value is checked in the layer that it came from, so that a refusal names the file and
//! line, the variable or the flag; and every value keeps its origin for `postrider check`.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use postrider::Result;
use serde::Serialize;

use super::error::wrong;
use super::file::{File, Raw};
use super::givens::Givens;
use super::section::Section;
use super::{environment, setting, suggest};

/// The file that is read if there is one and no other is named.
const DEFAULT_FILE: &str = "postrider.toml";
/// What begins like a setting's variable and is none: for tests, the logs, the file's name.
const OTHER_VARIABLES: [&str; 3] = ["POSTRIDER_TEST_", "POSTRIDER_LOG", "POSTRIDER_CONFIG"];

/// What the command line says about the configuration.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// `--config`.
    pub(crate) file: Option<PathBuf>,
    /// `--database`.
    pub(crate) database: Option<String>,
    /// `--set KEY=VALUE`.
    pub(crate) set: Vec<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing was said.
    Default,
    /// This line of this file.
    File(PathBuf, usize),
    /// This environment variable.
    Variable(String),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "{name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A setting as it is shown to people: secrets are `***`.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    /// The key.
    pub(crate) key: &'static str,
    /// The value; none if there is none.
    pub(crate) value: Option<String>,
    /// What it means that there is none.
    #[serde(skip)]
    pub(crate) unset: &'static str,
    /// `default`, file and line, a variable or a flag.
    pub(crate) origin: String,
}

/// The settings of all layers, checked one by one.
#[derive(Debug, Default)]
pub(crate) struct Values {
    given: Givens,
    sections: Vec<Section>,
    file: Option<PathBuf>,
    ignored: Vec<String>,
}

impl Values {
    /// Reads all layers.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the place.
    pub(crate) fn gather(sources: Sources) -> Result<Self> {
        let mut values = Self::default();
        for setting in setting::ALL {
            if let Some(text) = setting.default {
                values.given.put(setting, &Raw::Text(text.to_owned()), Origin::Default)?;
            }
        }
        if let Some(path) = file_to_read(sources.file)? {
            let file = File::read(&path)?;
            for entry in &file.entries {
                let origin = Origin::File(file.path.clone(), entry.line);
                values.given.put(entry.setting, &entry.value, origin)?;
            }
            values.sections = file.sections;
            values.file = Some(path);
        }
        for setting in setting::ALL {
            let name = setting.variable();
            if let Some(text) = environment::variable(&name)? {
                values.given.put(setting, &Raw::Text(text), Origin::Variable(name))?;
            }
        }
        values.ignored = unknown_variables();
        values.flags(sources.database, &sources.set)?;
        Ok(values)
    }

    fn flags(&mut self, database: Option<String>, set: &[String]) -> Result<()> {
        for pair in set {
            let (key, text) = pair
                .split_once('=')
                .ok_or_else(|| wrong(format!("--set {pair:?}: KEY=VALUE is expected, such as dispatch.batch=50")))?;
            let setting = setting::find(key).ok_or_else(|| {
                let keys = setting::ALL.into_iter().map(|setting| setting.key);
                let meant =
                    suggest::nearest(key, keys).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
                wrong(format!("--set: there is no setting {key:?}{meant}"))
            })?;
            if setting.secret {
                let (file, name) = (format!("{key}_file"), setting.variable());
                return Err(wrong(format!(
                    "--set {key}: everybody on this machine can read it there; use {file} or {name}"
                )));
            }
            self.given.put(setting, &Raw::Text(text.to_owned()), Origin::Flag("--set"))?;
        }
        if let Some(text) = database {
            self.given.put(&setting::DATABASE, &Raw::Text(text), Origin::Flag("--database"))?;
        }
        Ok(())
    }

    /// All settings as people see them.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Shown> {
        setting::ALL.into_iter().map(|setting| match self.given.given(setting) {
            Some(given) => Shown {
                key: setting.key,
                value: Some(given.shown.clone()),
                unset: setting.unset,
                origin: given.origin.to_string(),
            },
            None => Shown { key: setting.key, value: None, unset: setting.unset, origin: Origin::Default.to_string() },
        })
    }

    /// The sections of outboxes; none where the settings alone name the one that there is.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The file that was read, if any.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Variables that look like this program's and are not, with what may have been meant.
    pub(crate) fn ignored(&self) -> &[String] {
        &self.ignored
    }
}

impl Deref for Values {
    type Target = Givens;

    fn deref(&self) -> &Givens {
        &self.given
    }
}

fn file_to_read(named: Option<PathBuf>) -> Result<Option<PathBuf>> {
    if let Some(path) = named {
        return Ok(Some(path));
    }
    if let Some(path) = environment::variable("POSTRIDER_CONFIG")? {
        return Ok(Some(path.into()));
    }
    let default = PathBuf::from(DEFAULT_FILE);
    Ok(default.exists().then_some(default))
}

fn unknown_variables() -> Vec<String> {
    let known: Vec<String> = setting::ALL.iter().map(|setting| setting.variable()).collect();
    let mut unknown: Vec<String> = environment::names()
        .into_iter()
        .filter(|name| !known.contains(name))
        .filter(|name| !OTHER_VARIABLES.iter().any(|other| name.starts_with(other)))
        .map(|name| match suggest::nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => format!("{name} (did you mean {near}?)"),
            None => name,
        })
        .collect();
    unknown.sort();
    unknown
}

#[cfg(test)]
mod tests;
