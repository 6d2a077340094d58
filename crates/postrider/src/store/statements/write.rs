//! Writing rows and their history.

use super::BatchColumns;
use super::fragment::in_text_list;
use crate::model::column::{self, Owner};
use crate::model::{Kind, OwnColumn, TableDef};
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
///
/// MariaDB and MySQL have no such clause: there a key that exists refuses the whole statement.
/// (IGNORE would hide other errors; ON DUPLICATE KEY cannot tell, and locks the row.)
pub(super) fn insert_tail(dialect: Dialect, by_tenant: bool) -> &'static str {
    match (dialect, by_tenant) {
        (Dialect::Mysql, _) => "",
        (_, true) => " ON CONFLICT ({tenant}, {dedupe_key}) DO NOTHING RETURNING {id}",
        (_, false) => " ON CONFLICT ({dedupe_key}) DO NOTHING RETURNING {id}",
    }
}

/// What `save` may write of a row that exists: content, the application's own columns, and
/// `updated_at`; the state machine's never. The values in this order, then the id and the tenant.
/// Source: contract C7.1.
pub(super) fn save(dialect: Dialect, table: &TableDef, own: &[OwnColumn]) -> String {
    let content = column::ALL.iter().filter(|column| column.owner == Owner::Content);
    let names = content.chain([&column::UPDATED_AT]).map(|column| table.column(*column));
    let names: Vec<_> = names.chain(own.iter().map(|column| column.name)).collect();
    let set: Vec<_> =
        names.iter().enumerate().map(|(index, name)| format!("{} = ?{}", dialect.quoted(name), index + 1)).collect();
    let id = names.len() + 1;
    let tenant = table.tenant().map(|tenant| format!(" AND {} = ?{}", dialect.quoted(tenant), id + 1));
    format!("UPDATE {{table}} SET {} WHERE {{id}} = ?{id}{}", set.join(", "), tenant.unwrap_or_default())
}

/// The rows that hold these keys. `?1` the keys as a JSON list; `?2` the tenant.
///
/// On MariaDB and MySQL it is a locking read: it sees the row that the insert ran into at
/// REPEATABLE READ too. It reads the unique index alone, so it does not block that row's settle.
pub(super) fn existing_keys(dialect: Dialect, by_tenant: bool) -> String {
    if dialect == Dialect::Mysql {
        let tenant = if by_tenant { "o.{tenant} = ?2 AND" } else { "" };
        return format!(
            "SELECT o.{{id}}, o.{{dedupe_key}}
             FROM JSON_TABLE(?1, '$[*]' COLUMNS (pr_key VARCHAR(255) CHARACTER SET utf8mb4 PATH '$')) AS v
             STRAIGHT_JOIN {{table}} AS o ON {tenant} o.{{dedupe_key}} = CAST(v.pr_key AS BINARY)
             LOCK IN SHARE MODE"
        );
    }
    let keys = in_text_list(dialect, "{dedupe_key}", 1);
    let tenant = if by_tenant { "{tenant} = ?2" } else { "CAST(?2 AS TEXT) IS NOT NULL" };
    format!("SELECT {{id}}, {{dedupe_key}} FROM {{table}} WHERE {tenant} AND {keys}")
}

pub(super) fn insert_attempts() -> String {
    let names: Vec<_> = ATTEMPT_BATCH.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let values: Vec<_> = ATTEMPT_BATCH.iter().map(|(name, _)| format!("{{v.{name}}}")).collect();
    format!("INSERT INTO {{attempt}} ({}) SELECT {} FROM {{attempt_batch}}", names.join(", "), values.join(", "))
}
