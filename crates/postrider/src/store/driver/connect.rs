//! Why a database server cannot be connected to, in words with a remedy.
//!
//! For one try outside of the pool, which hides the cause: it tries a refused connection again
//! until its time is over. By code and kind, never by text; the address is not shown, since it may
//! hold a password.

use std::io;

use super::Code;
use crate::error::{Error, ErrorKind};

/// The error of an address that cannot be read, with one that can.
pub(super) fn unreadable(example: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!(
            "the database address cannot be read; it looks like {example}, and \
             characters such as @ : / ? # % in user and password are percent-encoded (@ is %40, / is %2F, # is %23)"
        ),
    )
}

/// The error of one try to connect to a `server` of that name.
pub(super) fn explain(server: &str, error: sqlx::Error) -> Error {
    let (kind, words) = match &error {
        sqlx::Error::Database(database) => match Code::of(&**database) {
            #[cfg(feature = "mysql")]
            Code::Mysql(number) => by_number(number, database.message()),
            Code::State(state) => by_state(&state, database.message()),
            Code::Sqlite(_) => return super::failed(error),
        },
        sqlx::Error::Io(cause) => by_kind(server, cause),
        sqlx::Error::Tls(cause) => (
            ErrorKind::Configuration,
            format!("TLS failed ({cause}); check sslmode and the certificates that the address names"),
        ),
        _ => return super::failed(error),
    };
    Error::new(kind, words).caused_by(error)
}

/// By SQLSTATE. The server's message names the user or the database, and no password.
fn by_state(state: &str, message: &str) -> (ErrorKind, String) {
    let wrong = ErrorKind::Configuration;
    match state {
        "28P01" => (
            wrong,
            format!(
                "password refused ({message}); check user and password. Characters such as @ : / ? # % in them \
                 are written percent-encoded in the address (@ is %40)"
            ),
        ),
        "28000" => (
            wrong,
            format!("login refused ({message}); check the user, and pg_hba.conf of the server for this machine"),
        ),
        "3D000" => (wrong, format!("no such database ({message}); create it, or correct its name in the address")),
        "42501" => (wrong, format!("not allowed ({message}); grant this user CONNECT on the database")),
        "53300" => (
            ErrorKind::Transient,
            format!("the server has no connection free ({message}); it takes at most max_connections"),
        ),
        "57P03" => (ErrorKind::Transient, format!("the server does not take connections yet ({message})")),
        _ => (super::kind_of_state(state), message.to_owned()),
    }
}

/// By the number of MariaDB's or MySQL's error.
#[cfg(feature = "mysql")]
fn by_number(number: u16, message: &str) -> (ErrorKind, String) {
    let wrong = ErrorKind::Configuration;
    match number {
        1045 | 1698 => (
            wrong,
            format!(
                "login refused ({message}); check user and password. Characters such as @ : / ? # % in them \
                 are written percent-encoded in the address (@ is %40)"
            ),
        ),
        1049 => (wrong, format!("no such database ({message}); create it, or correct its name in the address")),
        1044 => (wrong, format!("not allowed ({message}); grant this user its privileges on the database")),
        1130 => (wrong, format!("not allowed from here ({message}); the server knows users by their host too")),
        1040 | 1203 => (
            ErrorKind::Transient,
            format!("the server has no connection free ({message}); it takes at most max_connections"),
        ),
        _ => (super::mysql::kind_of(number), message.to_owned()),
    }
}

fn by_kind(server: &str, cause: &io::Error) -> (ErrorKind, String) {
    let words = match cause.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("connection refused; check that {server} runs there, and that host and port are right")
        }
        io::ErrorKind::NotFound => {
            format!("there is no such socket ({cause}); check that {server} runs, and the folder of its socket")
        }
        io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
            format!("the connection was closed ({cause}); check that it is {server} that listens there")
        }
        _ => format!("{cause}; check that host and port are right, and that no firewall is between"),
    };
    (ErrorKind::Transient, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_is_not_tried_again_and_a_refused_connection_is() {
        for (state, kind, said) in [
            ("28P01", ErrorKind::Configuration, "password refused"),
            ("28000", ErrorKind::Configuration, "pg_hba.conf"),
            ("3D000", ErrorKind::Configuration, "no such database"),
            ("53300", ErrorKind::Transient, "max_connections"),
            ("57P03", ErrorKind::Transient, "not take connections yet"),
            ("57P01", ErrorKind::Transient, "bye"),
        ] {
            let (found, words) = by_state(state, "bye");
            assert_eq!(found, kind, "{state}");
            assert!(words.contains(said), "{words}");
        }
        #[cfg(feature = "mysql")]
        for (number, kind, said) in [
            (1045, ErrorKind::Configuration, "login refused"),
            (1049, ErrorKind::Configuration, "no such database"),
            (1040, ErrorKind::Transient, "max_connections"),
            (1053, ErrorKind::Transient, "bye"),
        ] {
            let (found, words) = by_number(number, "bye");
            assert_eq!(found, kind, "{number}");
            assert!(words.contains(said), "{words}");
        }
        let error = explain("PostgreSQL", sqlx::Error::Io(io::ErrorKind::ConnectionRefused.into()));
        assert!(error.is_transient() && error.to_string().starts_with("connection refused; check"), "{error}");
    }
}
