//! Whether a column's real type can hold what the codec binds and reads, per dialect.
//!
//! A type that the database accepts and that changes the value is the dangerous one: a coarse time
//! is rounded into the future, a padded text is another text. Source: case C26.

use crate::model::Kind;
use crate::store::Dialect;

/// A column as the statements and the codec need it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The type that it is made with.
    pub(super) typed: String,
    pub(super) nullable: bool,
    /// What a writer that says nothing gets.
    pub(super) default: Option<String>,
    pub(super) width: Width,
}

/// How much a column has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// The application's own column: as much as the application likes.
    Own,
    /// The application chooses: what does not fit is refused when it is written.
    Any,
    /// This many characters, or bits.
    AtLeast(u32),
    /// This many bytes, compared one by one.
    Bytes(u32),
    /// An id that is stored as text.
    TextOfUuid,
    /// Whatever the state machine writes, at any length.
    Unlimited,
}

impl Wanted {
    /// True if values pass through a column of that type unchanged.
    pub(super) fn fits(&self, dialect: Dialect, declared: &str) -> bool {
        let kind = if self.width == Width::TextOfUuid { Kind::Text } else { self.kind };
        match dialect {
            Dialect::Sqlite => fits_sqlite(kind, declared),
            Dialect::Postgres => fits_postgres(kind, self.width, declared),
            Dialect::Mysql => fits_mysql(kind, self.width, declared),
        }
    }
}

/// By the words of `format_type`.
fn fits_postgres(kind: Kind, width: Width, declared: &str) -> bool {
    let (name, limit) = split(declared);
    match kind {
        Kind::Bool => name == "boolean",
        Kind::Uuid => name == "uuid",
        Kind::Float => matches!(name.as_str(), "double precision" | "real"),
        Kind::Bytes => name == "bytea",
        // Read by its name; without a zone the session's would count, and less than six digits round.
        Kind::Time => name == "timestamp with time zone" && limit.is_none_or(|digits| digits == 6),
        Kind::Int => match (name.as_str(), width) {
            ("bigint", _) | ("integer" | "smallint", Width::Own) => true,
            ("integer", width) => width != Width::AtLeast(64),
            _ => false,
        },
        Kind::Text => match name.as_str() {
            "text" => true,
            "character varying" => limit.is_none_or(|limit| width.allows(limit)),
            // Filled up with blanks, or cut without a word.
            "character" | "name" => width == Width::Own,
            _ => false,
        },
    }
}

/// By the words of `information_schema`, the collation behind them.
fn fits_mysql(kind: Kind, width: Width, declared: &str) -> bool {
    let (declared, collation) = declared.split_once(" COLLATE ").unwrap_or((declared, ""));
    let (name, limit) = split(declared);
    let all_of_unicode = collation.starts_with("utf8mb4");
    match kind {
        Kind::Bool => matches!(name.as_str(), "tinyint" | "smallint" | "int" | "bigint"),
        Kind::Int => match name.as_str() {
            "bigint" => true,
            "int" => width != Width::AtLeast(64),
            "mediumint" | "smallint" | "tinyint" | "int unsigned" => width == Width::Own,
            _ => false,
        },
        // A TIMESTAMP follows the session's zone and ends in 2038; less than six digits round.
        Kind::Time => name == "datetime" && limit == Some(6),
        Kind::Uuid => matches!((name.as_str(), limit), ("binary", Some(16))),
        Kind::Float => matches!(name.as_str(), "double" | "float"),
        Kind::Bytes => name.ends_with("blob") || name == "varbinary",
        Kind::Text => match width {
            // No collation of utf8mb4 is sure to tell blanks at the end apart.
            Width::Bytes(_) => name == "varbinary" && limit.is_some_and(|limit| width.allows(limit)),
            Width::TextOfUuid => matches!(name.as_str(), "char" | "varchar") && limit.is_some_and(|limit| limit >= 36),
            Width::Own => name.ends_with("text") || matches!(name.as_str(), "char" | "varchar" | "json"),
            Width::Unlimited => name == "longtext" && all_of_unicode,
            Width::Any | Width::AtLeast(_) => match name.as_str() {
                "longtext" | "mediumtext" | "text" => all_of_unicode,
                "varchar" => limit.is_some_and(|limit| width.allows(limit)) && !collation.starts_with("utf8mb3"),
                _ => false,
            },
        },
    }
}

impl Width {
    fn allows(self, limit: u32) -> bool {
        match self {
            Self::Own | Self::Any => true,
            Self::AtLeast(least) | Self::Bytes(least) => limit >= least,
            Self::TextOfUuid => limit >= 36,
            Self::Unlimited => false,
        }
    }
}

/// `timestamp(3) with time zone` to `timestamp with time zone` and 3.
fn split(declared: &str) -> (String, Option<u32>) {
    let Some((head, rest)) = declared.split_once('(') else {
        return (declared.to_owned(), None);
    };
    let (limit, tail) = rest.split_once(')').unwrap_or((rest, ""));
    (format!("{head}{tail}"), limit.parse().ok())
}

/// SQLite converts by the affinity of a column, which follows from the words of its type.
fn fits_sqlite(kind: Kind, declared: &str) -> bool {
    let affinity = Affinity::of(declared);
    match kind {
        Kind::Bool | Kind::Int => matches!(affinity, Affinity::Integer | Affinity::Numeric),
        // DATETIME and the like hold integers too, and promise every other writer that text will do.
        Kind::Time => affinity == Affinity::Integer,
        // Any other would store the text `1` as a number.
        Kind::Text => affinity == Affinity::Text,
        Kind::Float => affinity == Affinity::Real,
        Kind::Bytes => affinity == Affinity::Blob,
        // A blob is never converted; another writer's text would be, and never found by its id.
        Kind::Uuid => affinity == Affinity::Blob || declared.eq_ignore_ascii_case("uuid"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Affinity {
    Integer,
    Text,
    Blob,
    Real,
    Numeric,
}

impl Affinity {
    /// The rules in their order. Source: <https://www.sqlite.org/datatype3.html> section 3.1.
    fn of(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        if has(&["INT"]) {
            Self::Integer
        } else if has(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if declared.is_empty() || has(&["BLOB"]) {
            Self::Blob
        } else if has(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(dialect: Dialect, kind: Kind, width: Width, declared: &str) -> bool {
        Wanted { name: String::new(), kind, typed: String::new(), nullable: true, default: None, width }
            .fits(dialect, declared)
    }

    /// Case C26.
    #[test]
    fn a_time_on_postgres_has_a_zone_and_microseconds() {
        for good in ["timestamp with time zone", "timestamp(6) with time zone"] {
            assert!(fits(Dialect::Postgres, Kind::Time, Width::Any, good), "{good}");
        }
        for bad in [
            "timestamp(0) with time zone",
            "timestamp(5) with time zone",
            "timestamp without time zone",
            "timestamp(6) without time zone",
            "date",
            "bigint",
            "text",
            "time with time zone",
        ] {
            assert!(!fits(Dialect::Postgres, Kind::Time, Width::Own, bad), "{bad}");
        }
    }

    #[test]
    fn a_text_on_postgres_is_neither_cut_nor_padded() {
        let text = |width, declared| fits(Dialect::Postgres, Kind::Text, width, declared);
        for width in [Width::Any, Width::AtLeast(10), Width::Unlimited] {
            assert!(text(width, "text") && text(width, "character varying"));
            assert!(!text(width, "character(10)") && !text(width, "name") && !text(width, "jsonb"));
        }
        assert!(text(Width::AtLeast(10), "character varying(10)"));
        assert!(!text(Width::AtLeast(11), "character varying(10)") && !text(Width::Unlimited, "character varying(9)"));
        assert!(text(Width::Any, "character varying(1)") && text(Width::Own, "character(2)"));
    }

    #[test]
    fn a_number_on_postgres_is_wide_enough() {
        let int = |width, declared| fits(Dialect::Postgres, Kind::Int, width, declared);
        assert!(int(Width::AtLeast(64), "bigint") && int(Width::AtLeast(32), "integer") && int(Width::Own, "smallint"));
        assert!(!int(Width::AtLeast(64), "integer") && !int(Width::AtLeast(32), "smallint"));
        assert!(!int(Width::Own, "numeric") && !int(Width::Own, "numeric(10,0)"));
    }

    /// Case C26, and case C32 on MariaDB and MySQL.
    #[test]
    fn a_column_on_mariadb_keeps_what_is_bound() {
        let fit = |kind, width, declared| fits(Dialect::Mysql, kind, width, declared);
        assert!(fit(Kind::Time, Width::Any, "datetime(6)"));
        for bad in ["datetime", "datetime(3)", "timestamp(6)", "bigint(20)", "date", "varchar(30) COLLATE utf8mb4_bin"]
        {
            assert!(!fit(Kind::Time, Width::Own, bad), "{bad}");
        }
        assert!(fit(Kind::Text, Width::Bytes(255), "varbinary(255)"));
        for bad in ["varbinary(254)", "varchar(255) COLLATE utf8mb4_bin", "longtext COLLATE utf8mb4_nopad_bin", "blob"]
        {
            assert!(!fit(Kind::Text, Width::Bytes(255), bad), "{bad}");
        }
        assert!(fit(Kind::Text, Width::Unlimited, "longtext COLLATE utf8mb4_bin"));
        assert!(!fit(Kind::Text, Width::Unlimited, "longtext COLLATE latin1_swedish_ci"));
        assert!(!fit(Kind::Text, Width::Unlimited, "text COLLATE utf8mb4_bin"));
        assert!(fit(Kind::Text, Width::AtLeast(10), "varchar(16) COLLATE ascii_bin"));
        assert!(!fit(Kind::Text, Width::AtLeast(10), "varchar(9) COLLATE ascii_bin"));
        assert!(!fit(Kind::Text, Width::AtLeast(10), "varchar(99) COLLATE utf8mb3_general_ci"));
        assert!(fit(Kind::Uuid, Width::Any, "binary(16)") && !fit(Kind::Uuid, Width::Any, "uuid"));
        assert!(fit(Kind::Uuid, Width::TextOfUuid, "char(36) COLLATE ascii_bin"));
        assert!(!fit(Kind::Uuid, Width::TextOfUuid, "binary(16)"));
        assert!(fit(Kind::Int, Width::AtLeast(64), "bigint(20)") && !fit(Kind::Int, Width::AtLeast(64), "int(11)"));
        assert!(fit(Kind::Int, Width::AtLeast(32), "int(11)") && fit(Kind::Bool, Width::Any, "tinyint(1)"));
    }

    #[test]
    fn a_column_on_sqlite_keeps_what_is_bound() {
        let good = [
            (Kind::Time, "INTEGER"),
            (Kind::Time, "BIGINT"),
            (Kind::Int, "INT"),
            (Kind::Int, "NUMERIC"),
            (Kind::Bool, "BOOLEAN"),
            (Kind::Text, "VARCHAR(10)"),
            (Kind::Uuid, "BLOB"),
            (Kind::Uuid, "uuid"),
        ];
        for (kind, declared) in good {
            assert!(fits(Dialect::Sqlite, kind, Width::Any, declared), "{kind:?} {declared}");
        }
        let bad = [
            (Kind::Time, "TEXT"),
            (Kind::Time, "DATETIME"),
            (Kind::Time, "REAL"),
            (Kind::Int, "TEXT"),
            (Kind::Text, "JSON"),
            (Kind::Text, ""),
            (Kind::Uuid, "TEXT"),
            (Kind::Uuid, "CHAR(36)"),
        ];
        for (kind, declared) in bad {
            assert!(!fits(Dialect::Sqlite, kind, Width::Any, declared), "{kind:?} {declared}");
        }
    }
}
