//! Claiming: who sends a row. One conditional UPDATE each; its rows are the answer.
//!
//! Source: contract C4.1, C4.2, C4.6.

use super::fragment::in_text_list;
use super::update::{Rows, Update};
use crate::store::Dialect;

/// What a claim writes. `?1` now, `?2` reclaim time, `?3` node.
const TAKE: &str = "
    {lost_claims} = CASE WHEN o.{status} = 'SENDING' THEN o.{lost_claims} + 1 ELSE o.{lost_claims} END,
    {status} = 'SENDING', {next_attempt_at} = ?2, {claim_seq} = o.{claim_seq} + 1,
    {claimed_by} = ?3, {updated_at} = ?1";

/// Due, and not left to the lone claim as a stale SENDING that was lost twice before.
///
/// A row whose counters cannot be raised is left out: it would take all others of its statement
/// with it. The limits are those of the DDL's checks, which a table of one's own may lack.
const CLAIMABLE_NOW: &str = "{claimable} AND {due} <= ?1 AND ({status} <> 'SENDING' OR {lost_claims} < 2)
    AND {claim_seq} < 1000000000000000 AND {attempts} < 1000000";

/// Up to `?4` due rows, oldest first.
pub(super) const CLAIM_ALL_DUE: Update<'_> = Update {
    rows: Rows::First { condition: CLAIMABLE_NOW, order: "ORDER BY {due}, {id} LIMIT ?4" },
    set: TAKE,
    returning: "{columns}",
};

/// As [`CLAIM_ALL_DUE`], but none before the floor `?5`.
pub(super) const CLAIM_DUE: Update<'_> = Update {
    rows: Rows::First {
        condition: "{claimable} AND {due} <= ?1 AND {due} >= ?5 AND ({status} <> 'SENDING' OR {lost_claims} < 2)
            AND {claim_seq} < 1000000000000000 AND {attempts} < 1000000",
        order: "ORDER BY {due}, {id} LIMIT ?4",
    },
    set: TAKE,
    returning: "{columns}",
};

/// One stale SENDING that was lost twice: tried alone once more.
pub(super) const CLAIM_SUSPECT: Update<'_> = Update {
    rows: Rows::First { condition: SUSPECT, order: "ORDER BY {lost_due}, {id} LIMIT 1" },
    set: TAKE,
    returning: "{columns}",
};

const SUSPECT: &str = "{lost} AND {lost_due} <= ?1 AND {lost_claims} = 2
    AND {claim_seq} < 1000000000000000 AND {attempts} < 1000000";

/// These rows, as far as they are due and nobody has them. `?1` now, `?2` reclaim time, `?3` node,
/// `?4` the ids. A row that somebody holds locked is passed over; the poller finds it later.
pub(super) const CLAIM_IDS: Update<'_> = Update {
    rows: Rows::Batch { batch: "{ids_batch(4)}", condition: CLAIMABLE_NOW, skip_locked: true },
    set: TAKE,
    returning: "{columns}",
};

/// A stale SENDING that the lone claim lost too: given up. `?1` now, `?2` the error.
pub(super) const BURY_LOST: Update<'_> = Update {
    rows: Rows::All { condition: "{lost} AND {lost_due} <= ?1 AND o.{lost_claims} >= 3" },
    set: "{sent_at} = CASE WHEN o.{accepted_at} IS NOT NULL THEN o.{accepted_at} ELSE o.{sent_at} END,
         {reason_code} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'partial' ELSE 'lost' END,
         {status} = CASE WHEN o.{accepted_at} IS NOT NULL THEN 'SENT' ELSE 'DEAD' END,
         {last_error} = ?2, {updated_at} = ?1",
    returning: "{id}, {claim_seq}, {status}, {claimed_by}, {lost_claims}",
};

/// Due rows without claiming them: `?1` now, `?2` the statuses as a JSON list, `?3` most rows.
/// Only where every status is claimable may the text carry the index's predicate.
pub(super) fn find_due(dialect: Dialect, claimable_only: bool) -> String {
    let (indexed, due) = if claimable_only { ("{claimable} AND", "{due}") } else { ("", "{next_attempt_at}") };
    let of_status = in_text_list(dialect, "{status}", 2);
    format!(
        "SELECT {{columns}} FROM {{table}} WHERE {indexed} {due} <= ?1 AND {of_status}
         ORDER BY {due}, {{id}} LIMIT ?3"
    )
}

/// The due time that comes next, none before the floor `?1`; nobody waits for what is not claimed.
pub(super) const NEXT_DUE: &str = "
    SELECT {due} FROM {table} WHERE {claimable} AND {due} >= ?1
        AND {claim_seq} < 1000000000000000 AND {attempts} < 1000000
    ORDER BY {due} LIMIT 1";

/// Whether a row waits for the lone claim. `?1` now.
pub(super) fn has_suspect() -> String {
    format!("SELECT {{id}} FROM {{table}} WHERE {SUSPECT} LIMIT 1")
}
