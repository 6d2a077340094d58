//! Small questions to the machine: environment, programs in the path, who we are, a free port.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// An environment variable; an empty one counts as not set.
#[expect(clippy::disallowed_methods, reason = "this program is configured by its environment")]
pub(crate) fn env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether a machine runs us: then nothing may be skipped, and what is missing is installed.
pub(crate) fn in_ci() -> bool {
    env("CI").is_some_and(|value| value == "true" || value == "1")
}

/// The first program of this name in the path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Whether the command ends well; its output is thrown away.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What the command prints, if it ends well.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether we are root.
pub(crate) fn is_root() -> bool {
    id("-u", None).is_some_and(|id| id == 0)
}

/// A user's numeric user and group, if there is such a user.
pub(crate) fn user(name: &str) -> Option<(u32, u32)> {
    Some((id("-u", Some(name))?, id("-g", Some(name))?))
}

fn id(what: &str, user: Option<&str>) -> Option<u32> {
    output(Command::new("id").arg(what).args(user))?.trim().parse().ok()
}

/// A TCP port on 127.0.0.1 that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

/// The folder that holds the workspace.
pub(crate) fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Cargo's target folder, whichever way it was configured: we were built into
/// `<target>/<profile>/`.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    program.ancestors().nth(2).map(Path::to_path_buf).context("this program does not lie in a target folder")
}
