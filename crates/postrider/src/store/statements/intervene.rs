//! What people and policies do to rows that nobody is delivering.
//!
//! `?1` is a batch of ids, `?2` the tenant or null for root. Source: contract C3, C3.5.

/// Keeps what the row was before a requeue: `?3` when, `?4` who.
pub(super) const REQUEUE_HISTORY: &str = "
    INSERT INTO {attempt} (\"id\", \"outbox_id\", \"claim_seq\", \"event\", \"at\", \"node\", \"actor\",
        \"status\", \"error\", \"reason_code\", \"provider\", \"provider_message_id\", \"recipients\")
    SELECT v.pr_history_id, o.{id}, o.{claim_seq}, 'requeue', ?3, o.{claimed_by}, ?4,
        o.{status}, o.{last_error}, o.{reason_code}, o.{provider}, o.{provider_message_id}, o.{recipients}
    FROM {ids_batch} JOIN {table} AS o ON o.{id} = v.pr_row_id
    WHERE o.{status} IN ('DEAD', 'FAILED', 'SUPPRESSED', 'SENT') AND {in_scope(?2)}";

/// The same row again, with its whole budget; from SENT it is a new send. `?3` when it is due, `?4` now,
/// `?5` whether `?6` replaces its `expires_at` (null: it never expires).
pub(super) const REQUEUE: &str = "
    UPDATE {table} AS o SET
        {recipients} = CASE WHEN o.{status} = 'SENT' THEN NULL ELSE o.{recipients} END,
        {accepted_at} = CASE WHEN o.{status} = 'SENT' THEN NULL ELSE o.{accepted_at} END,
        {resends} = CASE WHEN o.{status} = 'SENT' THEN o.{resends} + 1 ELSE o.{resends} END,
        {status} = 'PENDING', {attempts} = 0, {next_attempt_at} = ?3, {last_error} = NULL, {sent_at} = NULL,
        {in_doubt} = FALSE, {reason_code} = NULL, {deferrals} = 0, {deferred_since} = NULL, {lost_claims} = 0,
        {provider} = NULL, {provider_message_id} = NULL, {updated_at} = ?4,
        {expires_at} = CASE WHEN ?5 THEN ?6 ELSE o.{expires_at} END
    FROM {ids_batch}
    WHERE o.{id} = v.pr_row_id AND o.{status} IN ('DEAD', 'FAILED', 'SUPPRESSED', 'SENT') AND {in_scope(?2)}
    RETURNING {id}";

/// Stopped by a person before it is sent. `?3` when, `?4` the reason.
pub(super) const CANCEL: &str = "
    UPDATE {table} AS o SET
        {sent_at} = o.{accepted_at},
        {reason_code} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'partial' ELSE 'cancelled' END,
        {status} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'SENT' ELSE 'SUPPRESSED' END,
        {last_error} = ?4, {updated_at} = ?3
    FROM {ids_batch}
    WHERE o.{id} = v.pr_row_id AND o.{status} IN ('PENDING', 'FAILED') AND {in_scope(?2)}
    RETURNING {id}, {claim_seq}, {status}";

/// Due now. `?3` when.
pub(super) const EXPEDITE: &str = "
    UPDATE {table} AS o SET {next_attempt_at} = ?3, {updated_at} = ?3
    FROM {ids_batch}
    WHERE o.{id} = v.pr_row_id AND o.{status} IN ('PENDING', 'FAILED') AND {in_scope(?2)}
    RETURNING {id}";

/// Moves a channel's due rows on in bulk, unclaimed: `?1` the channel, `?2` now, `?3` until when,
/// `?4` the reason, `?5` most rows.
pub(super) fn postpone() -> String {
    "UPDATE {table} AS o SET {next_attempt_at} = ?3, {reason_code} = ?4, {updated_at} = ?2
     WHERE o.{id} IN (
         SELECT {id} FROM {table}
         WHERE {claimable} AND {status} <> 'SENDING' AND {next_attempt_at} <= ?2 AND {channel} = ?1
         ORDER BY {next_attempt_at}, {id} LIMIT ?5)
     AND o.{status} IN ('PENDING', 'FAILED') AND o.{next_attempt_at} <= ?2 AND o.{channel} = ?1"
        .to_owned()
}

/// The cause ended: the rows with that reason, and no others, become due. `?1` the channel,
/// `?2` now, `?3` the reason, `?4` most rows.
pub(super) fn resume() -> String {
    "UPDATE {table} AS o SET {next_attempt_at} = ?2, {reason_code} = NULL, {updated_at} = ?2
     WHERE o.{id} IN (
         SELECT {id} FROM {table}
         WHERE {claimable} AND {status} <> 'SENDING' AND {channel} = ?1 AND {reason_code} = ?3
         LIMIT ?4)
     AND o.{status} IN ('PENDING', 'FAILED') AND o.{reason_code} = ?3"
        .to_owned()
}
