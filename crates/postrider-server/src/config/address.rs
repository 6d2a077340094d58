//! The address of the database: a SQLite file, or a server of PostgreSQL, MariaDB or MySQL.
//!
//! The library's driver reads the rest of a server's address; here it is told apart, and shown
//! without its secrets.

use std::fmt;
use std::path::{Path, PathBuf};

use postrider::store::Dialect;

/// Where the rows are. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DatabaseAddress {
    /// A file.
    Sqlite(PathBuf),
    /// A PostgreSQL server; may hold a password.
    Postgres(String),
    /// A MariaDB or MySQL server; may hold a password.
    Mysql(String),
}

impl DatabaseAddress {
    /// Reads `sqlite:PATH`, `postgres://…` or `mysql://…`; a relative path is taken from `folder`.
    pub(super) fn parse(text: &str, folder: Option<&Path>) -> Result<Self, String> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("sqlite:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() || path == ":memory:" {
                return Err("sqlite:PATH needs the path of a file".to_owned());
            }
            if path.contains('?') {
                return Err("sqlite:PATH takes no parameters after a '?'".to_owned());
            }
            let path = folder.map_or_else(|| PathBuf::from(path), |folder| folder.join(path));
            return Ok(Self::Sqlite(path));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        if text.starts_with("mysql://") || text.starts_with("mariadb://") {
            return Ok(Self::Mysql(text.to_owned()));
        }
        Err("sqlite:PATH, postgres://user:password@host:5432/database or mysql://user:password@host:3306/database is \
             expected"
            .to_owned())
    }
}

impl DatabaseAddress {
    /// Which SQL is spoken there.
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
            Self::Mysql(_) => Dialect::Mysql,
        }
    }

    /// What runs there, for people.
    pub(crate) fn product(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
            Self::Mysql(_) => "MariaDB or MySQL",
        }
    }

    /// True if user or password of a server seem to hold characters that must be percent-encoded:
    /// what follows the first of them was then taken for host, port or path.
    pub(crate) fn seems_badly_encoded(&self) -> bool {
        let (Self::Postgres(url) | Self::Mysql(url)) = self else { return false };
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let Some((login, _)) = rest.rsplit_once('@').filter(|_| !rest.starts_with('/')) else { return false };
        let is_code = |after: &str| after.get(..2).is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        login.contains(['/', '?', '#', '@']) || login.split('%').skip(1).any(|after| !is_code(after))
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) | Self::Mysql(url) => f.write_str(&without_secrets(url)),
        }
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The address without password and parameters, whatever characters they hold.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    let place = place.split('?').next().unwrap_or(place);
    match login.map(|login| login.split_once(':')) {
        None => format!("{scheme}://{place}"),
        Some(None) => format!("{scheme}://{}@{place}", login.unwrap_or_default()),
        Some(Some((user, _))) => format!("{scheme}://{user}:***@{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("postgres://me:secret@host:5432/db", "postgres://me:***@host:5432/db"),
            ("postgres://me:a@b/c?d@host/db?password=secret", "postgres://me:***@host/db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("postgresql://host/db", "postgresql://host/db"),
            ("postgres:///db?host=/run&password=secret", "postgres:///db"),
            ("mysql://me:secret@host:3306/db", "mysql://me:***@host:3306/db"),
            ("mariadb://me:a@b/c?d@host/db?socket=/run/x", "mariadb://me:***@host/db"),
        ] {
            let address = DatabaseAddress::parse(url, None).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), shown);
        }
    }

    #[test]
    fn a_password_that_is_not_encoded_is_noticed() {
        for (url, noticed) in [
            ("postgres://me:12/34@host/db", true),
            ("postgres://me:1?2@host/db", true),
            ("postgres://me:100%@host/db", true),
            ("postgres://me:a@b@host/db", true),
            ("postgres://me:a%2Fb@host/db", false),
            ("postgres://me@host/db", false),
            ("postgres:///db?host=/run&password=a@b", false),
            ("mysql://me:12#34@host/db", true),
            ("mariadb://me:a%2Fb@host/db", false),
            ("sqlite:a@b.db", false),
        ] {
            assert_eq!(DatabaseAddress::parse(url, None).unwrap().seems_badly_encoded(), noticed, "{url}");
        }
    }

    #[test]
    fn a_sqlite_address_is_a_path() {
        for (text, path) in [
            ("sqlite:a.db", "a.db"),
            ("sqlite://a.db", "a.db"),
            ("sqlite:///tmp/a.db", "/tmp/a.db"),
            ("sqlite:/tmp/a.db", "/tmp/a.db"),
        ] {
            assert_eq!(DatabaseAddress::parse(text, None), Ok(DatabaseAddress::Sqlite(path.into())));
        }
        for text in ["sqlite:", "sqlite::memory:", "sqlite:a.db?mode=ro", "a.db", "mssql://h/db", "mysql:h"] {
            assert!(DatabaseAddress::parse(text, None).is_err(), "{text}");
        }
    }
}
