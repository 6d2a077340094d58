//! Names what is missing on this machine, all at once, and installs it where that was asked for.
//!
//! Nothing is ever installed in silence: only with `--install` or CI=true, and the command is
//! printed. Other systems than Debian and its relatives get the names to install by hand.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::run::Runner;
use crate::system;

/// One thing that the tests need and that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// What it is, for people.
    pub(crate) what: &'static str,
    /// The Debian package that brings it.
    pub(crate) package: &'static str,
}

/// What must be installed before the tests can run; its text holds the command.
#[derive(Debug)]
pub(crate) struct Missing(Vec<Need>);

impl Missing {
    /// An error for `needs`, unless there are none.
    pub(crate) fn unless_empty(needs: Vec<Need>) -> Result<(), Self> {
        if needs.is_empty() { Ok(()) } else { Err(Self(needs)) }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the tests need what is not installed here:")?;
        for need in &self.0 {
            writeln!(f, "  {} (Debian package {})", need.what, need.package)?;
        }
        writeln!(f, "install it with")?;
        writeln!(f, "  sudo {}", apt_get_install(&self.0).join(" "))?;
        writeln!(f, "or let `cargo xtask test --install` do it (needs root),")?;
        write!(f, "or run `cargo xtask test --only sqlite`, which needs none of it")
    }
}

impl Error for Missing {}

/// Installs `needs` with apt-get. Needs root.
pub(crate) async fn install(runner: &mut Runner, needs: &[Need]) -> Result<()> {
    let names = needs.iter().fold(String::new(), |mut names, need| {
        let _ = write!(names, " {}", need.package);
        names
    });
    if system::program("apt-get").is_none() {
        bail!("cannot install{names}: there is no apt-get here; install them by this system's own means");
    }
    if !system::is_root() {
        bail!("cannot install{names}: that needs root; run `sudo {}`", apt_get_install(needs).join(" "));
    }
    println!("installing{names} …");
    if needs.iter().any(|need| need.package == "postfix") {
        leave_postfix_unconfigured();
    }
    runner.must(&mut apt(&["apt-get".to_owned(), "update".to_owned()])).await?;
    runner.must(&mut apt(&apt_get_install(needs))).await
}

fn apt_get_install(needs: &[Need]) -> Vec<String> {
    let mut words = ["apt-get", "install", "-y", "--no-install-recommends"].map(str::to_owned).to_vec();
    for need in needs {
        if !words.iter().any(|word| word == need.package) {
            words.push(need.package.to_owned());
        }
    }
    words
}

fn apt(words: &[String]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(&words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The tests bring their own configuration; the package shall neither write one nor start a
/// mail server on port 25. Best effort: with the package's own answer the tests run as well.
fn leave_postfix_unconfigured() {
    let child = Command::new("debconf-set-selections").stdin(Stdio::piped()).spawn();
    if let Ok(mut child) = child {
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(b"postfix postfix/main_mailer_type select No configuration\n");
        }
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTFIX: Need = Need { what: "Postfix", package: "postfix" };
    const VENV: Need = Need { what: "Python's venv", package: "python3-venv" };

    #[test]
    fn everything_missing_is_named_at_once_with_the_command_that_installs_it() {
        let text = Missing::unless_empty(vec![POSTFIX, VENV, VENV]).unwrap_err().to_string();
        assert!(text.contains("  Postfix (Debian package postfix)\n"), "{text}");
        assert!(text.contains("  sudo apt-get install -y --no-install-recommends postfix python3-venv\n"), "{text}");
    }

    #[test]
    fn nothing_missing_is_no_error() {
        assert!(Missing::unless_empty(Vec::new()).is_ok());
    }
}
