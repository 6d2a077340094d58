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

    /// How a value stands in the JSON document of a batch.
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
