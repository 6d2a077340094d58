//! Pieces of SQL that differ between the databases, and texts outside of any table.

use super::BatchColumns;
use crate::model::{Kind, Value};
use crate::store::Dialect;

/// Every name in a batch begins so, and no column of a table may: none is ever ambiguous.
pub(crate) const PREFIX: &str = crate::model::RESERVED_PREFIX;

/// A row of a batch: its values under their prefixed names.
pub(crate) fn batch_row(dialect: Dialect, columns: BatchColumns, values: &[Value]) -> serde_json::Value {
    let named = columns.iter().zip(values).map(|((name, _), value)| (format!("{PREFIX}{name}"), dialect.json(value)));
    serde_json::Value::Object(named.collect())
}

/// A source of rows `v(…)` out of one JSON array, the `n`-th value: a whole batch is one
/// parameter, and the statement's text is the same for every size of it.
pub(crate) fn batch(dialect: Dialect, n: usize, columns: &[(&str, Kind)]) -> String {
    let place = dialect.placeholder(n);
    match dialect {
        Dialect::Postgres => {
            let typed: Vec<_> =
                columns.iter().map(|(name, kind)| format!("{PREFIX}{name} {}", dialect.type_of(*kind))).collect();
            format!("jsonb_to_recordset({place}::jsonb) AS v({})", typed.join(", "))
        }
        Dialect::Sqlite => {
            let read: Vec<_> = columns
                .iter()
                .map(|(name, kind)| match kind {
                    Kind::Uuid => format!("unhex(json_extract(value, '$.{PREFIX}{name}')) AS {PREFIX}{name}"),
                    _ => format!("json_extract(value, '$.{PREFIX}{name}') AS {PREFIX}{name}"),
                })
                .collect();
            format!("(SELECT {} FROM json_each({place})) AS v", read.join(", "))
        }
    }
}

/// A list of texts out of one JSON array, the `n`-th value, for `IN`.
pub(crate) fn text_list(dialect: Dialect, n: usize) -> String {
    let place = dialect.placeholder(n);
    match dialect {
        Dialect::Postgres => format!("(SELECT jsonb_array_elements_text({place}::jsonb))"),
        Dialect::Sqlite => format!("(SELECT value FROM json_each({place}))"),
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

/// The server's wall time at this moment, not at the transaction's begin.
#[cfg(feature = "postgres")]
pub(crate) const SERVER_TIME: &str = "SELECT clock_timestamp()";
