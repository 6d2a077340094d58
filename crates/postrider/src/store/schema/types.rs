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
    pub(super) nullable: bool,
    /// What a writer that says nothing gets.
    pub(super) default: Option<&'static str>,
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
    /// Whatever the state machine writes, at any length.
    Unlimited,
}

impl Wanted {
    /// True if values pass through a column of that type unchanged.
    pub(super) fn fits(&self, dialect: Dialect, declared: &str) -> bool {
        match dialect {
            Dialect::Sqlite => fits_sqlite(self.kind, declared),
            Dialect::Postgres => self.fits_postgres(declared),
        }
    }

    /// By the words of `format_type`.
    fn fits_postgres(&self, declared: &str) -> bool {
        let (name, limit) = split(declared);
        match self.kind {
            Kind::Bool => name == "boolean",
            Kind::Uuid => name == "uuid",
            // Read by its name; without a zone the session's would count, and less than six digits round.
            Kind::Time => name == "timestamp with time zone" && limit.is_none_or(|digits| digits == 6),
            Kind::Int => match (name.as_str(), self.width) {
                ("bigint", _) | ("integer" | "smallint", Width::Own) => true,
                ("integer", width) => width != Width::AtLeast(64),
                _ => false,
            },
            Kind::Text => match name.as_str() {
                "text" => true,
                "character varying" => limit.is_none_or(|limit| self.width.allows(limit)),
                // Filled up with blanks, or cut without a word.
                "character" | "name" => self.width == Width::Own,
                _ => false,
            },
        }
    }
}

impl Width {
    fn allows(self, limit: u32) -> bool {
        match self {
            Self::Own | Self::Any => true,
            Self::AtLeast(least) => limit >= least,
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
        Wanted { name: String::new(), kind, nullable: true, default: None, width }.fits(dialect, declared)
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
