//! Reading rows for people and programs.
//!
//! A tenant's sight is bound into every text; null is root's sight of all.

use crate::store::Dialect;

/// Where a row stands. `?1` its id, `?2` the tenant.
pub(super) const STATUS_OF: &str = "SELECT {status} FROM {table} WHERE {id} = ?1 AND {in_scope(?2)}";

/// One row. `?1` its id, `?2` the tenant.
pub(super) const BY_ID: &str = "SELECT {columns} FROM {table} WHERE {id} = ?1 AND {in_scope(?2)}";

/// The rows with a dedupe key. `?1` the key, `?2` the tenant.
pub(super) const BY_KEY: &str = "
    SELECT {columns} FROM {table} WHERE {dedupe_key} = ?1 AND {in_scope(?2)} ORDER BY {id}";

/// A page, newest first. `?1` only rows before the one with this id, `?2` status, `?3` the tenant,
/// `?4` channel, `?5` most rows; null does not filter.
///
/// PostgreSQL, MariaDB and MySQL go by id, which the library and the column's default make in the order of time; an
/// index on the time would cost every claim and settle an entry. SQLite goes by its own row numbers.
pub(super) fn list(dialect: Dialect) -> String {
    let (before, newest) = match dialect {
        Dialect::Postgres | Dialect::Mysql => ("{id} < ?1", "{id}"),
        Dialect::Sqlite => {
            ("rowid < COALESCE((SELECT rowid FROM {table} WHERE {id} = ?1), 9223372036854775807)", "rowid")
        }
    };
    format!(
        "SELECT {{columns}} FROM {{table}}
         WHERE {before} AND ({{unset(?2)}} OR {{status}} = ?2) AND {{in_scope(?3)}}
             AND ({{unset(?4)}} OR {{channel}} = ?4)
         ORDER BY {newest} DESC LIMIT ?5"
    )
}

/// A row's history, oldest first. `?1` its id.
pub(super) const ATTEMPTS_OF: &str = "
    SELECT \"id\", \"outbox_id\", \"claim_seq\", \"event\", \"at\", \"started_at\", \"node\", \"actor\", \"status\",
        \"error\", \"reason_code\", \"blame\", \"provider\", \"provider_message_id\", \"recipients\"
    FROM {attempt} WHERE \"outbox_id\" = ?1 ORDER BY \"at\", \"id\"";

/// Rows per status that are not final, and of them how many are due. `?1` now.
pub(super) const COUNTS: &str = "
    SELECT {status}, COUNT(*), COUNT(CASE WHEN {next_attempt_at} <= ?1 THEN 1 END)
    FROM {table} WHERE {claimable} GROUP BY {status}";
