//! Claiming: who sends a row. One conditional UPDATE each; its rows are the answer.
//!
//! Source: contract C4.1, C4.2, C4.6.

use super::fragment::text_list;
use crate::store::Dialect;

/// What a claim writes. `?1` now, `?2` reclaim time, `?3` node.
const TAKE: &str = "
    {lost_claims} = CASE WHEN o.{status} = 'SENDING' THEN o.{lost_claims} + 1 ELSE o.{lost_claims} END,
    {status} = 'SENDING', {next_attempt_at} = ?2, {claim_seq} = o.{claim_seq} + 1,
    {claimed_by} = ?3, {updated_at} = ?1";

/// A stale SENDING that was lost twice before is left to the lone claim.
const NOT_SUSPECT: &str = "({status} <> 'SENDING' OR {lost_claims} < 2)";

/// Up to `?4` due rows, oldest first, none before the floor `?5` if there is one.
pub(super) fn claim_due(dialect: Dialect, floor: bool) -> String {
    let floor = if floor { "AND {next_attempt_at} >= ?5" } else { "" };
    let pick = format!(
        "SELECT {{id}} AS pr_due_id FROM {{table}}
         WHERE {{claimable}} AND {{next_attempt_at}} <= ?1 {floor} AND {NOT_SUSPECT}
         ORDER BY {{next_attempt_at}}, {{id}} LIMIT ?4"
    );
    take(dialect, &pick, "")
}

/// One stale SENDING that was lost twice: tried alone once more.
pub(super) fn claim_suspect(dialect: Dialect) -> String {
    let pick = "SELECT {id} AS pr_due_id FROM {table}
        WHERE {status} = 'SENDING' AND {lost_claims} >= 2 AND {next_attempt_at} <= ?1 AND {lost_claims} = 2
        ORDER BY {next_attempt_at}, {id} LIMIT 1";
    take(dialect, pick, "")
}

/// Locks what was picked, where the database can, and takes it.
fn take(dialect: Dialect, pick: &str, locked: &str) -> String {
    match dialect {
        // Without MATERIALIZED, PostgreSQL may merge the pick and lock more rows than its LIMIT.
        Dialect::Postgres => format!(
            "WITH due AS MATERIALIZED ({pick} FOR UPDATE{locked} SKIP LOCKED)
             UPDATE {{table}} AS o SET {TAKE} FROM due WHERE o.{{id}} = due.pr_due_id RETURNING {{columns}}"
        ),
        Dialect::Sqlite => format!(
            "UPDATE {{table}} AS o SET {TAKE} WHERE o.{{id}} IN (SELECT pr_due_id FROM ({pick})) RETURNING {{columns}}"
        ),
    }
}

/// These rows, as far as they are due and nobody has them. `?1` now, `?2` reclaim time, `?3` node,
/// `?4` the ids.
///
/// On PostgreSQL a row that somebody holds locked is passed over; the poller finds it later.
pub(super) fn claim_ids(dialect: Dialect) -> String {
    let claimable = format!("{{claimable}} AND {{next_attempt_at}} <= ?1 AND {NOT_SUSPECT}");
    match dialect {
        Dialect::Postgres => {
            let pick = format!(
                "SELECT {{id}} AS pr_due_id FROM {{table}} JOIN {{ids_batch(4)}} ON {{id}} = v.pr_row_id
                 WHERE {claimable} ORDER BY {{id}}"
            );
            take(dialect, &pick, " OF {bare_table}")
        }
        Dialect::Sqlite => format!(
            "UPDATE {{table}} AS o SET {TAKE} FROM {{ids_batch(4)}}
             WHERE o.{{id}} = v.pr_row_id AND {claimable} RETURNING {{columns}}"
        ),
    }
}

/// A stale SENDING that the lone claim lost too: given up. `?1` now, `?2` the error.
pub(super) fn bury_lost() -> String {
    "UPDATE {table} AS o SET
         {sent_at} = CASE WHEN o.{accepted_at} IS NOT NULL THEN o.{accepted_at} ELSE o.{sent_at} END,
         {reason_code} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'partial' ELSE 'lost' END,
         {status} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'SENT' ELSE 'DEAD' END,
         {last_error} = ?2, {updated_at} = ?1
     WHERE o.{status} = 'SENDING' AND o.{lost_claims} >= 2 AND o.{next_attempt_at} <= ?1 AND o.{lost_claims} >= 3
     RETURNING {id}, {claim_seq}, {status}, {claimed_by}, {lost_claims}"
        .to_owned()
}

/// Due rows without claiming them: `?1` now, `?2` the statuses as a JSON list, `?3` most rows.
/// Only where every status is claimable may the text carry the index's predicate.
pub(super) fn find_due(dialect: Dialect, claimable_only: bool) -> String {
    let indexed = if claimable_only { "{claimable} AND" } else { "" };
    let statuses = text_list(dialect, 2);
    format!(
        "SELECT {{columns}} FROM {{table}}
         WHERE {indexed} {{next_attempt_at}} <= ?1 AND {{status}} IN {statuses}
         ORDER BY {{next_attempt_at}}, {{id}} LIMIT ?3"
    )
}

/// The due time that comes next, none before the floor `?1`.
pub(super) const NEXT_DUE: &str = "
    SELECT {next_attempt_at} FROM {table}
    WHERE {claimable} AND {next_attempt_at} >= ?1 ORDER BY {next_attempt_at} LIMIT 1";

/// Whether a row waits for the lone claim. `?1` now.
pub(super) const HAS_SUSPECT: &str = "
    SELECT {id} FROM {table}
    WHERE {status} = 'SENDING' AND {lost_claims} >= 2 AND {next_attempt_at} <= ?1 AND {lost_claims} = 2 LIMIT 1";
