//! The real mail servers that e-mail is tested against: Postfix and Python's aiosmtpd.
//!
//! Only found (or, for aiosmtpd, installed into a Python environment of its own) here; the tests
//! themselves start private instances of them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::run::Runner;
use crate::{python, system};

/// The release that the tests were written against.
const AIOSMTPD: &str = "1.4.6";

/// The `postfix` command; it is seldom in an ordinary user's path.
pub(crate) fn postfix() -> Option<PathBuf> {
    let usual = PathBuf::from("/usr/sbin/postfix");
    if usual.is_file() { Some(usual) } else { system::program("postfix") }
}

/// The interpreter of an environment that has aiosmtpd.
pub(crate) async fn aiosmtpd(runner: &mut Runner, interpreter: &Path) -> Result<PathBuf> {
    let package = [("aiosmtpd", "aiosmtpd", AIOSMTPD)];
    python::environment(runner, interpreter, &format!("aiosmtpd-{AIOSMTPD}"), &package).await
}
