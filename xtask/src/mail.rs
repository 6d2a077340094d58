//! The real mail servers that e-mail is tested against: Postfix and Python's aiosmtpd.
//!
//! Only found (or, for aiosmtpd, installed into a Python environment of its own) here; the tests
//! themselves start private instances of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::run::Runner;
use crate::system;

/// The release that the tests were written against.
const AIOSMTPD: &str = "1.4.6";

/// The `postfix` command; it is seldom in an ordinary user's path.
pub(crate) fn postfix() -> Option<PathBuf> {
    let usual = PathBuf::from("/usr/sbin/postfix");
    if usual.is_file() { Some(usual) } else { system::program("postfix") }
}

/// A Python that can make environments: on Debian that is a package of its own.
pub(crate) fn python() -> Option<PathBuf> {
    let in_path = system::program("python3");
    let usual = Some(PathBuf::from("/usr/bin/python3"));
    in_path.into_iter().chain(usual).find(|python| {
        system::succeeds(Command::new(python).args(["-c", "import venv; from ensurepip import version"]))
    })
}

/// The interpreter of an environment under cargo's target folder that has aiosmtpd; made with
/// `python` unless it is there already.
pub(crate) async fn aiosmtpd(runner: &mut Runner, python: &Path) -> Result<PathBuf> {
    let folder = system::target_dir()?.join(format!("aiosmtpd-{AIOSMTPD}"));
    let interpreter = folder.join("bin").join("python");
    if !has_aiosmtpd(&interpreter) {
        println!("installing aiosmtpd {AIOSMTPD} into {} …", folder.display());
        let mut make = tokio::process::Command::new(python);
        runner.must(make.args(["-m", "venv", "--clear"]).arg(&folder)).await?;
        let mut pip = tokio::process::Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        runner.must(pip.arg(format!("aiosmtpd=={AIOSMTPD}"))).await?;
    }
    Ok(interpreter)
}

fn has_aiosmtpd(interpreter: &Path) -> bool {
    let check = format!("import aiosmtpd; assert aiosmtpd.__version__ == '{AIOSMTPD}'");
    system::succeeds(Command::new(interpreter).args(["-c", &check]))
}
