//! Reading rows for people and programs.
//!
//! A tenant's sight is bound into every text; null is root's sight of all.

use crate::store::Dialect;

/// Where a row stands. `?1` its id, `?2` the tenant.
pub(super) const STATUS_OF: &str = "SELECT {status} FROM {table} WHERE {id} = ?1 AND {in_scope(?2)}";

/// One row. `?1` its id, `?2` the tenant.
pub(super) const BY_ID: &str = "SELECT {columns} FROM {table} WHERE {id} = ?1 AND {in_scope(?2)}";

/// The row with a dedupe key, by the unique index. `?1` the key, `?2` the tenant, where rows have one.
pub(super) fn by_key(by_tenant: bool) -> &'static str {
    if by_tenant { "SELECT {columns} FROM {table} WHERE {tenant} = ?2 AND {dedupe_key} = ?1" } else { ANY_BY_KEY }
}

/// The rows with a dedupe key, whosever they are. `?1` the key.
pub(super) const ANY_BY_KEY: &str = "SELECT {columns} FROM {table} WHERE {dedupe_key} = ?1 ORDER BY {id}";

/// These columns of rows, by their ids. `?1` the ids, `?2` the tenant.
pub(super) fn by_ids(dialect: Dialect, what: &str) -> String {
    let join = if dialect == Dialect::Mysql { "STRAIGHT_JOIN" } else { "JOIN" };
    format!(
        "SELECT {what} FROM {{ids_batch(1)}} {join} {{table}} AS o ON o.{{id}} = {{v.row_id}}
         WHERE {{in_scope(?2)}}"
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
