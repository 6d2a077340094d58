//! How a command fails: the message, its kind for programs, and the exit code.
//!
//! The one place that knows the exit codes; `--help` tells them.

use std::io::Write as _;
use std::process::ExitCode;

use postrider::{Error, ErrorKind};
use serde_json::json;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const CONFLICT: u8 = 4;
const UNREACHABLE: u8 = 5;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(super) struct Failure {
    kind: &'static str,
    message: String,
    code: u8,
}

impl Failure {
    /// Wrong usage of the command line.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { kind: "usage", message: message.into(), code: USAGE }
    }

    /// Anything that has no exit code of its own.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { kind: "failed", message: message.into(), code: FAILED }
    }

    /// The rows were not SENT in the end.
    pub(super) fn not_sent(message: impl Into<String>) -> Self {
        Self { kind: "not_sent", message: message.into(), code: FAILED }
    }

    /// Something that was checked cannot be used.
    pub(super) fn check_failed(message: impl Into<String>) -> Self {
        Self { kind: "check_failed", message: message.into(), code: FAILED }
    }

    /// The reader of stdout went away (`postrider list | head -1`): nothing more to say.
    pub(super) fn reader_gone() -> Self {
        Self { kind: "reader_gone", message: String::new(), code: 0 }
    }

    /// Adds a line with what to do.
    pub(super) fn hint(mut self, hint: &str) -> Self {
        self.message = format!("{}\n{hint}", self.message);
        self
    }

    /// The kind and the message, for programs.
    pub(super) fn to_json(&self) -> serde_json::Value {
        json!({ "error": { "kind": self.kind, "message": self.message } })
    }

    /// Writes the message to stderr; the exit code that goes with it.
    pub(super) fn report(&self, json: bool) -> ExitCode {
        if !self.message.is_empty() {
            let mut stderr = std::io::stderr().lock();
            // Nobody is left to tell if this fails.
            let _ =
                if json { writeln!(stderr, "{}", self.to_json()) } else { writeln!(stderr, "error: {}", self.message) };
        }
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (kind, code) = match error.kind() {
            ErrorKind::Invalid => ("invalid", USAGE),
            ErrorKind::Template => ("template", USAGE),
            ErrorKind::Configuration => ("configuration", USAGE),
            ErrorKind::NotFound => ("not_found", NOT_FOUND),
            ErrorKind::Conflict => ("conflict", CONFLICT),
            ErrorKind::WrongStatus => ("wrong_status", CONFLICT),
            ErrorKind::ClaimLost => ("claim_lost", CONFLICT),
            ErrorKind::Transient => ("transient", UNREACHABLE),
            ErrorKind::TransactionGone => ("transaction_gone", UNREACHABLE),
            ErrorKind::Database => ("database", FAILED),
            ErrorKind::Decode => ("decode", FAILED),
            _ => ("failed", FAILED),
        };
        Self { kind, message: error.to_string(), code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_exit_code() {
        for (kind, name, code) in [
            (ErrorKind::Invalid, "invalid", 2),
            (ErrorKind::Configuration, "configuration", 2),
            (ErrorKind::NotFound, "not_found", 3),
            (ErrorKind::Conflict, "conflict", 4),
            (ErrorKind::Transient, "transient", 5),
            (ErrorKind::Database, "database", 1),
        ] {
            let failure = Failure::from(Error::new(kind, "m"));
            assert_eq!((failure.kind, failure.code), (name, code));
        }
    }
}
