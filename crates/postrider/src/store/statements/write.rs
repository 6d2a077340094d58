//! Writing rows and their history.

use super::BatchColumns;
use super::fragment::text_list;
use crate::model::Kind;
use crate::store::Dialect;

/// Ids alone.
pub(crate) const IDS_BATCH: BatchColumns = &[("row_id", Kind::Uuid), ("history_id", Kind::Uuid)];

/// One line of a row's history.
pub(crate) const ATTEMPT_BATCH: BatchColumns = &[
    ("id", Kind::Uuid),
    ("outbox_id", Kind::Uuid),
    ("claim_seq", Kind::Int),
    ("event", Kind::Text),
    ("at", Kind::Time),
    ("started_at", Kind::Time),
    ("node", Kind::Text),
    ("actor", Kind::Text),
    ("status", Kind::Text),
    ("error", Kind::Text),
    ("reason_code", Kind::Text),
    ("blame", Kind::Text),
    ("provider", Kind::Text),
    ("provider_message_id", Kind::Text),
    ("recipients", Kind::Text),
];

pub(super) const INSERT_HEAD: &str = "INSERT INTO {table} ({columns}) VALUES";

/// A row whose key exists is left out; the conflict's target is always named, since without it
/// another unique index of the application's would look like a duplicate.
pub(super) fn insert_tail(by_tenant: bool) -> &'static str {
    if by_tenant {
        "ON CONFLICT ({tenant}, {dedupe_key}) DO NOTHING RETURNING {id}"
    } else {
        "ON CONFLICT ({dedupe_key}) DO NOTHING RETURNING {id}"
    }
}

/// The rows that hold these keys. `?1` the keys as a JSON list; `?2` the tenant.
pub(super) fn existing_keys(dialect: Dialect, by_tenant: bool) -> String {
    let keys = text_list(dialect, 1);
    let tenant = if by_tenant { "{tenant} = ?2 AND" } else { "CAST(?2 AS TEXT) IS NOT NULL AND" };
    format!("SELECT {{id}}, {{dedupe_key}} FROM {{table}} WHERE {tenant} {{dedupe_key}} IN {keys}")
}

pub(super) fn insert_attempts() -> String {
    let names: Vec<_> = ATTEMPT_BATCH.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let values: Vec<_> = ATTEMPT_BATCH.iter().map(|(name, _)| format!("v.pr_{name}")).collect();
    format!("INSERT INTO {{attempt}} ({}) SELECT {} FROM {{attempt_batch}}", names.join(", "), values.join(", "))
}
