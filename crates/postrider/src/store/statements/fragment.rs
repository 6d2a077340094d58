//! Pieces of SQL that differ between the databases, and texts outside of any table.

use super::BatchColumns;
use crate::model::{IdType, Kind, RESERVED_PREFIX as PREFIX, Value};
use crate::store::Dialect;

/// How the batches of one table look in one dialect. Every name in a batch begins with a prefix
/// that no column of a table may have: none is ever ambiguous.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches {
    pub(super) dialect: Dialect,
    pub(super) ids: IdType,
}

impl Batches {
    /// A row of a batch: its values under their prefixed names. A null is left out, since MariaDB
    /// would not take JSON's null for one.
    pub(crate) fn row(self, columns: BatchColumns, values: &[Value]) -> serde_json::Value {
        let json = |value| self.dialect.json(value, self.ids);
        let named = columns.iter().zip(values).map(|((name, _), value)| (format!("{PREFIX}{name}"), json(value)));
        serde_json::Value::Object(named.filter(|(_, value)| !value.is_null()).collect())
    }

    /// A source of rows `v(…)` out of one JSON array, the `n`-th value: a whole batch is one
    /// parameter, and the statement's text is the same for every size of it.
    pub(super) fn source(self, n: usize, columns: BatchColumns) -> String {
        let each = |column: fn(Self, &str, Kind) -> String| {
            columns.iter().map(|(name, kind)| column(self, name, *kind)).collect::<Vec<_>>().join(", ")
        };
        match self.dialect {
            Dialect::Postgres => {
                let typed = each(|batches, name, kind| {
                    let id = kind == Kind::Uuid && batches.ids == IdType::Text;
                    format!("{PREFIX}{name} {}", if id { "text" } else { batches.dialect.type_of(kind) })
                });
                format!("jsonb_to_recordset(?{n}::jsonb) AS v({typed})")
            }
            Dialect::Sqlite => {
                let read = each(|batches, name, kind| {
                    let json = format!("json_extract(value, '$.{PREFIX}{name}')");
                    let bytes = kind == Kind::Uuid && batches.ids == IdType::Binary;
                    let read = if bytes { format!("unhex({json})") } else { json };
                    format!("{read} AS {PREFIX}{name}")
                });
                format!("(SELECT {read} FROM json_each(?{n})) AS v")
            }
            Dialect::Mysql => {
                let typed = each(|batches, name, kind| {
                    let typed = match kind {
                        Kind::Uuid => "CHAR(36) CHARACTER SET ascii",
                        _ => batches.dialect.type_of(kind),
                    };
                    format!("{PREFIX}{name} {typed} PATH '$.{PREFIX}{name}'")
                });
                format!("JSON_TABLE(?{n}, '$[*]' COLUMNS ({typed})) AS v")
            }
        }
    }

    /// A column of a batch, as it compares with a column of the table.
    pub(super) fn value(self, name: &str, kind: Kind) -> String {
        match (self.dialect, kind, self.ids) {
            (Dialect::Mysql, Kind::Uuid, IdType::Binary) => format!("UNHEX(v.{PREFIX}{name})"),
            _ => format!("v.{PREFIX}{name}"),
        }
    }
}

/// Whether a column's text is one of a JSON array's, the `n`-th value.
pub(super) fn in_text_list(dialect: Dialect, column: &str, n: usize) -> String {
    match dialect {
        Dialect::Postgres => format!("{column} IN (SELECT jsonb_array_elements_text(?{n}::jsonb))"),
        Dialect::Sqlite => format!("{column} IN (SELECT value FROM json_each(?{n}))"),
        // Not a subquery, which MariaDB would rather begin with than with the index.
        Dialect::Mysql => format!("JSON_CONTAINS(CAST(?{n} AS CHAR CHARACTER SET utf8mb4), JSON_QUOTE({column}))"),
    }
}

/// Tells other nodes that rows were written. `$1` the channel of notifications.
#[cfg(feature = "postgres")]
pub(crate) const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// Asks a quiet connection whether it lives.
#[cfg(feature = "postgres")]
pub(crate) const HEARTBEAT: &str = "SELECT 1";

/// Makes SQLite read the file, which opening it does not.
#[cfg(feature = "sqlite")]
pub(crate) const READ_PROBE: &str = "SELECT COUNT(*) FROM sqlite_schema";

/// PostgreSQL's wall time at this moment, not at the transaction's begin.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES_TIME: &str = "SELECT clock_timestamp()";

/// MariaDB's and MySQL's wall time; never `CURRENT_TIMESTAMP`, which follows the session's zone.
#[cfg(feature = "mysql")]
pub(crate) const MYSQL_TIME: &str = "SELECT UTC_TIMESTAMP(6)";
