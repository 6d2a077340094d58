//! What differs between the databases, in small pieces that the statements are made of.

use serde_json::json;

use crate::model::{Kind, Value};

/// A supported database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite, embedded.
    Sqlite,
    /// PostgreSQL 13 or later.
    Postgres,
}

impl Dialect {
    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// The placeholder of the `n`-th value, from 1.
    pub(crate) fn placeholder(self, n: usize) -> String {
        match self {
            Self::Sqlite => format!("?{n}"),
            Self::Postgres => format!("${n}"),
        }
    }

    /// A name in quotes.
    pub(crate) fn quoted(self, name: &str) -> String {
        format!("\"{name}\"")
    }

    /// The column type of a kind.
    pub(crate) fn type_of(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Sqlite, Kind::Bool | Kind::Int | Kind::Time) => "INTEGER",
            (Self::Sqlite, Kind::Text) => "TEXT",
            (Self::Sqlite, Kind::Uuid) => "BLOB",
            (Self::Postgres, Kind::Bool) => "boolean",
            (Self::Postgres, Kind::Int) => "bigint",
            (Self::Postgres, Kind::Text) => "text",
            (Self::Postgres, Kind::Uuid) => "uuid",
            (Self::Postgres, Kind::Time) => "timestamptz",
        }
    }

    /// A source of rows `v(…)` out of one JSON array, the `n`-th value: a whole batch is one
    /// parameter, and the statement's text is the same for every size of it.
    pub(crate) fn batch(self, n: usize, columns: &[(&str, Kind)]) -> String {
        let place = self.placeholder(n);
        match self {
            Self::Postgres => {
                let typed: Vec<_> = columns.iter().map(|(name, kind)| format!("{name} {}", self.type_of(*kind))).collect();
                format!("jsonb_to_recordset({place}::jsonb) AS v({})", typed.join(", "))
            }
            Self::Sqlite => {
                let read: Vec<_> = columns
                    .iter()
                    .map(|(name, kind)| match kind {
                        Kind::Uuid => format!("unhex(json_extract(value, '$.{name}')) AS {name}"),
                        _ => format!("json_extract(value, '$.{name}') AS {name}"),
                    })
                    .collect();
                format!("(SELECT {} FROM json_each({place})) AS v", read.join(", "))
            }
        }
    }

    /// A list of texts out of one JSON array, the `n`-th value, for `IN`.
    pub(crate) fn text_list(self, n: usize) -> String {
        let place = self.placeholder(n);
        match self {
            Self::Postgres => format!("(SELECT jsonb_array_elements_text({place}::jsonb))"),
            Self::Sqlite => format!("(SELECT value FROM json_each({place}))"),
        }
    }

    /// How a value stands in such a JSON document.
    pub(crate) fn json(self, value: &Value) -> serde_json::Value {
        match (self, value) {
            (_, Value::Bool(v)) => json!(v),
            (_, Value::Int(v)) => json!(v),
            (_, Value::Text(v)) => json!(v),
            (_, Value::Unreadable(_)) => serde_json::Value::Null,
            (Self::Postgres, Value::Uuid(v)) => json!(v),
            (Self::Sqlite, Value::Uuid(v)) => json!(v.map(|uuid| uuid.simple().to_string())),
            (Self::Postgres, Value::Time(v)) => json!(v),
            (Self::Sqlite, Value::Time(v)) => json!(v.map(crate::model::Timestamp::as_micros)),
        }
    }
}
