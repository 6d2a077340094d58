//! What differs between the databases, in small pieces that the statements are made of.

use serde_json::json;
use uuid::Uuid;

use crate::model::{IdType, Kind, Timestamp, Value};

/// A supported database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite, embedded.
    Sqlite,
    /// PostgreSQL 13 or later.
    Postgres,
    /// MariaDB 10.6 or later, MySQL 8.0 or later.
    Mysql,
}

impl Dialect {
    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    /// A name in quotes.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self {
            Self::Sqlite | Self::Postgres => format!("\"{name}\""),
            Self::Mysql => format!("`{name}`"),
        }
    }

    /// The column type of a kind.
    pub(crate) fn type_of(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Sqlite, Kind::Bool | Kind::Int | Kind::Time) => "INTEGER",
            (Self::Sqlite, Kind::Text) => "TEXT",
            (Self::Sqlite, Kind::Uuid | Kind::Bytes) => "BLOB",
            (Self::Sqlite, Kind::Float) => "REAL",
            (Self::Postgres, Kind::Bool) => "boolean",
            (Self::Postgres, Kind::Int) => "bigint",
            (Self::Postgres, Kind::Text) => "text",
            (Self::Postgres, Kind::Uuid) => "uuid",
            (Self::Postgres, Kind::Time) => "timestamptz",
            (Self::Postgres, Kind::Float) => "double precision",
            (Self::Postgres, Kind::Bytes) => "bytea",
            (Self::Mysql, Kind::Bool) => "BOOLEAN",
            (Self::Mysql, Kind::Int) => "BIGINT",
            (Self::Mysql, Kind::Text) => "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            (Self::Mysql, Kind::Uuid) => "BINARY(16)",
            (Self::Mysql, Kind::Time) => "DATETIME(6)",
            (Self::Mysql, Kind::Float) => "DOUBLE",
            (Self::Mysql, Kind::Bytes) => "LONGBLOB",
        }
    }

    /// How a value stands in the JSON document of a batch.
    pub(crate) fn json(self, value: &Value, ids: IdType) -> serde_json::Value {
        match (self, value) {
            (_, Value::Bool(v)) => json!(v),
            (_, Value::Int(v)) => json!(v),
            (_, Value::Text(v)) => json!(v),
            (_, Value::Float(v)) => json!(v),
            // No column of a batch holds bytes.
            (_, Value::Bytes(_) | Value::Unreadable(_)) => serde_json::Value::Null,
            (_, Value::Uuid(v)) => json!(v.map(|uuid| self.id_text(uuid, ids))),
            (Self::Postgres, Value::Time(v)) => json!(v),
            (Self::Sqlite, Value::Time(v)) => json!(v.map(Timestamp::as_micros)),
            (Self::Mysql, Value::Time(v)) => {
                json!(v.map(|at| at.to_jiff().strftime("%Y-%m-%d %H:%M:%S.%6f").to_string()))
            }
        }
    }

    /// An id in the JSON document of a batch: in hexadecimal digits, where bytes are made of them.
    fn id_text(self, id: Uuid, ids: IdType) -> String {
        match (self, ids) {
            (Self::Sqlite | Self::Mysql, IdType::Binary) => id.simple().to_string(),
            (Self::Postgres, _) | (_, IdType::Text) => id.hyphenated().to_string(),
        }
    }
}

/// An id as a bound value.
pub(crate) fn id_value(id: Uuid, ids: IdType) -> Value {
    match ids {
        IdType::Binary => id.into(),
        IdType::Text => id.hyphenated().to_string().into(),
    }
}
