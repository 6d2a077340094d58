//! Python, for programs in another language that write rows with the drivers of their own.

#![expect(clippy::expect_used, reason = "test support: what cannot go on fails the test, and says why")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::server::{PYTHON, required};

/// An interpreter that has `psycopg` and `PyMySQL`.
#[derive(Debug, Clone)]
pub struct Python {
    interpreter: String,
}

impl Python {
    /// The interpreter of `POSTRIDER_TEST_PYTHON`.
    ///
    /// `None` when there is none, after a line that names the skipped test (see [`required`]).
    ///
    /// # Panics
    /// When there must be one and is none.
    #[must_use]
    pub fn find() -> Option<Self> {
        required(PYTHON).map(|interpreter| Self { interpreter })
    }

    /// Runs a script to its end, with these arguments, and returns what it printed.
    ///
    /// # Panics
    /// When it cannot be started or fails; what it said is in the message.
    #[must_use]
    pub fn run(&self, script: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.interpreter);
        // -I: neither the user's packages nor PYTHON* variables.
        command.args(["-I", "-"]).args(arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("cannot start {} ({PYTHON}): {error}", self.interpreter));
        let mut stdin = child.stdin.take().expect("standard input is piped");
        stdin.write_all(script.as_bytes()).expect("Python reads the script");
        drop(stdin);
        let output = child.wait_with_output().expect("Python ends");
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "the script ended with {}: {said}{errors}", output.status);
        said.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_run_with_its_arguments_and_has_the_drivers() {
        let Some(python) = Python::find() else { return };
        let script = "import sys, sqlite3, psycopg, pymysql\nprint(*sys.argv[1:])";
        assert_eq!(python.run(script, &["a", "b c"]), "a b c\n");
    }
}
