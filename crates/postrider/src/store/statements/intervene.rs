//! What people and policies do to rows that nobody is delivering.
//!
//! `?1` is a batch of ids, `?2` the tenant or null for root. Source: contract C3, C3.5.

use super::update::{Rows, Update};
use crate::store::Dialect;

/// Keeps what the row was before a requeue: `?3` when, `?4` who.
pub(super) const REQUEUE_HISTORY: &str = "
    INSERT INTO {attempt} (\"id\", \"outbox_id\", \"claim_seq\", \"event\", \"at\", \"node\", \"actor\",
        \"status\", \"error\", \"reason_code\", \"provider\", \"provider_message_id\", \"recipients\")
    SELECT {v.history_id}, o.{id}, o.{claim_seq}, 'requeue', ?3, o.{claimed_by}, ?4,
        o.{status}, o.{last_error}, o.{reason_code}, o.{provider}, o.{provider_message_id}, o.{recipients}
    FROM {ids_batch(1)} JOIN {table} AS o ON o.{id} = {v.row_id}
    WHERE o.{status} IN ('DEAD', 'FAILED', 'SUPPRESSED', 'SENT') AND {in_scope(?2)}";

/// The same row again, with its whole budget; from SENT it is a new send. `?3` when it is due, `?4` now,
/// `?5` whether `?6` replaces its `expires_at` (null: it never expires).
pub(super) const REQUEUE: Update<'_> = Update {
    rows: Rows::Batch {
        batch: "{ids_batch(1)}",
        condition: "o.{status} IN ('DEAD', 'FAILED', 'SUPPRESSED', 'SENT') AND {in_scope(?2)}",
        skip_locked: false,
    },
    set: "{recipients} = CASE WHEN o.{status} = 'SENT' THEN NULL ELSE o.{recipients} END,
        {accepted_at} = CASE WHEN o.{status} = 'SENT' THEN NULL ELSE o.{accepted_at} END,
        {resends} = CASE WHEN o.{status} = 'SENT' THEN o.{resends} + 1 ELSE o.{resends} END,
        {status} = 'PENDING', {attempts} = 0, {next_attempt_at} = ?3, {last_error} = NULL, {sent_at} = NULL,
        {in_doubt} = FALSE, {reason_code} = NULL, {deferrals} = 0, {deferred_since} = NULL, {lost_claims} = 0,
        {provider} = NULL, {provider_message_id} = NULL, {updated_at} = ?4,
        {expires_at} = CASE WHEN ?5 THEN ?6 ELSE o.{expires_at} END",
    returning: "{id}",
};

/// Stopped by a person before it is sent. `?3` when, `?4` the reason.
pub(super) const CANCEL: Update<'_> = Update {
    rows: Rows::Batch {
        batch: "{ids_batch(1)}",
        condition: "o.{status} IN ('PENDING', 'FAILED') AND {in_scope(?2)}",
        skip_locked: false,
    },
    set: "{sent_at} = o.{accepted_at},
        {reason_code} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'partial' ELSE 'cancelled' END,
        {status} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'SENT' ELSE 'SUPPRESSED' END,
        {last_error} = ?4, {updated_at} = ?3",
    returning: "{id}, {claim_seq}, {status}",
};

/// Due now. `?3` when.
pub(super) const EXPEDITE: Update<'_> = Update {
    rows: Rows::Batch {
        batch: "{ids_batch(1)}",
        condition: "o.{status} IN ('PENDING', 'FAILED') AND {in_scope(?2)}",
        skip_locked: false,
    },
    set: "{next_attempt_at} = ?3, {updated_at} = ?3",
    returning: "{id}",
};

/// Moves a channel's due rows on in bulk, unclaimed: `?1` the channel, `?2` now, `?3` until when,
/// `?4` the reason, `?5` most rows.
pub(super) fn postpone(dialect: Dialect) -> String {
    first(
        dialect,
        "{next_attempt_at} = ?3, {reason_code} = ?4, {updated_at} = ?2",
        "{claimable} AND {status} <> 'SENDING' AND {due} <= ?2 AND {channel} = ?1",
        "ORDER BY {due}, {id} LIMIT ?5",
    )
}

/// The cause ended: the rows with that reason, and no others, become due. `?1` the channel,
/// `?2` now, `?3` the reason, `?4` most rows.
pub(super) fn resume(dialect: Dialect) -> String {
    first(
        dialect,
        "{reason_code} = NULL, {next_attempt_at} = ?2, {updated_at} = ?2",
        "{claimable} AND {status} <> 'SENDING' AND {channel} = ?1 AND {reason_code} = ?3",
        "LIMIT ?4",
    )
}

/// Changes the first rows for which a condition holds, and only counts them.
fn first(dialect: Dialect, set: &str, condition: &str, order: &str) -> String {
    match dialect {
        Dialect::Mysql => format!("UPDATE {{table}} SET {set} WHERE {condition} {order}"),
        // The condition once more: the row may have changed before it was locked.
        Dialect::Postgres | Dialect::Sqlite => format!(
            "UPDATE {{table}} AS o SET {set}
             WHERE o.{{id}} IN (SELECT {{id}} FROM {{table}} WHERE {condition} {order}) AND {condition}"
        ),
    }
}
