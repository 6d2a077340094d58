//! Settling: how an attempt ended, for many rows in one statement.
//!
//! Every text is fenced by the claim's token: a row that was claimed anew is not touched.
//! Where the To address was accepted, what would end DEAD or SUPPRESSED ends SENT, `partial`.
//! Source: contract C3, C3.6, C4.4, C4.7.

use super::statement::Change;
use super::template::Template;
use super::update::{Rows, Update};
use super::{BatchColumns, query};
use crate::error::Result;
use crate::model::Kind;
use crate::store::Dialect;

/// One settled row in a batch.
pub(crate) const SETTLE_BATCH: BatchColumns = &[
    ("row_id", Kind::Uuid),
    ("seq", Kind::Int),
    ("at", Kind::Time),
    ("next", Kind::Time),
    ("error", Kind::Text),
    ("code", Kind::Text),
    ("provider", Kind::Text),
    ("message_id", Kind::Text),
    ("ledger", Kind::Text),
    ("accepted", Kind::Time),
    ("doubt", Kind::Bool),
    ("run", Kind::Text),
    ("run_limit", Kind::Time),
];

/// The fenced update around what an event writes. A row that somebody holds locked is passed over:
/// waiting for one would hold up all others.
pub(super) fn settle(template: &Template<'_>, set: &str) -> Result<Change> {
    let set = set
        .replace("{over}", "(v.pr_run = 'failure' AND COALESCE(o.{deferred_since}, v.pr_at) <= v.pr_run_limit)")
        .replace("{acc}", "COALESCE(o.{accepted_at}, v.pr_accepted)")
        .replace("{ledger}", "COALESCE(v.pr_ledger, o.{recipients})");
    let condition = "o.{claim_seq} = v.pr_seq AND o.{status} = 'SENDING'";
    let rows = Rows::Written { batch: "{settle_batch}", condition };
    let set = format!("{set}, {{updated_at}} = v.pr_at");
    Update { rows, set: &set, returning: "{id}, {claim_seq}, {status}, {attempts}" }.in_words_of(template)
}

/// The claims of those rows that are SENDING still, without waiting for anybody. `?1` the ids, `?2` null.
pub(super) fn claims_of(dialect: Dialect) -> String {
    format!("{} AND {{status}} = 'SENDING'", query::by_ids(dialect, "{id}, {claim_seq}"))
}

/// The peer accepted it. `last_error` and `in_doubt` of earlier tries stay: a copy may exist.
pub(super) const MARK_SENT: &str = "
    {status} = 'SENT', {attempts} = o.{attempts} + 1, {sent_at} = v.pr_at,
    {accepted_at} = COALESCE(o.{accepted_at}, v.pr_accepted, v.pr_at), {recipients} = {ledger},
    {provider} = v.pr_provider, {provider_message_id} = v.pr_message_id, {reason_code} = v.pr_code,
    {deferred_since} = NULL,
    {lost_claims} = 0";

/// It failed; DEAD once the attempts are used up.
pub(super) const RECORD_FAILURE: &str = "
    {next_attempt_at} = CASE WHEN o.{attempts} + 1 < o.{max_attempts} THEN v.pr_next ELSE o.{next_attempt_at} END,
    {sent_at} = CASE WHEN o.{attempts} + 1 >= o.{max_attempts} THEN {acc} ELSE o.{sent_at} END,
    {reason_code} = CASE WHEN o.{attempts} + 1 >= o.{max_attempts} AND {acc} IS NOT NULL THEN 'partial'
                         ELSE v.pr_code END,
    {status} = CASE WHEN o.{attempts} + 1 < o.{max_attempts} THEN 'FAILED'
                    WHEN {acc} IS NOT NULL THEN 'SENT' ELSE 'DEAD' END,
    {attempts} = o.{attempts} + 1, {last_error} = v.pr_error, {in_doubt} = (o.{in_doubt} OR v.pr_doubt),
    {recipients} = {ledger}, {deferred_since} = NULL, {accepted_at} = {acc},
    {lost_claims} = 0";

/// It can never succeed, or is held for a person.
pub(super) const FINISH_DEAD: &str = "
    {sent_at} = {acc}, {reason_code} = CASE WHEN {acc} IS NOT NULL THEN 'partial' ELSE v.pr_code END,
    {status} = CASE WHEN {acc} IS NOT NULL THEN 'SENT' ELSE 'DEAD' END,
    {attempts} = o.{attempts} + 1, {last_error} = v.pr_error, {in_doubt} = (o.{in_doubt} OR v.pr_doubt),
    {recipients} = {ledger}, {deferred_since} = NULL, {accepted_at} = {acc},
    {lost_claims} = 0";

/// Policy said no, or its time is over: no attempt is used.
pub(super) const FINISH_SUPPRESSED: &str = "
    {sent_at} = {acc}, {reason_code} = CASE WHEN {acc} IS NOT NULL THEN 'partial' ELSE v.pr_code END,
    {status} = CASE WHEN {acc} IS NOT NULL THEN 'SENT' ELSE 'SUPPRESSED' END,
    {last_error} = v.pr_error, {deferred_since} = NULL,
    {lost_claims} = 0";

/// Put off at no cost; given up where a run of failures has lasted since before `run_limit`.
pub(super) const DEFER: &str = "
    {next_attempt_at} = CASE WHEN {over} THEN o.{next_attempt_at} ELSE v.pr_next END,
    {sent_at} = CASE WHEN {over} THEN {acc} ELSE o.{sent_at} END,
    {last_error} = CASE WHEN {over} THEN v.pr_error ELSE o.{last_error} END,
    {reason_code} = CASE WHEN {over} AND {acc} IS NOT NULL THEN 'partial' ELSE v.pr_code END,
    {status} = CASE WHEN {over} AND {acc} IS NOT NULL THEN 'SENT' WHEN {over} THEN 'DEAD'
                    WHEN o.{attempts} = 0 THEN 'PENDING' ELSE 'FAILED' END,
    {deferred_since} = CASE v.pr_run WHEN 'failure' THEN COALESCE(o.{deferred_since}, v.pr_at)
                                  WHEN 'limit' THEN o.{deferred_since} END,
    {deferrals} = o.{deferrals} + 1, {recipients} = {ledger}, {accepted_at} = {acc},
    {lost_claims} = 0";

/// Given back, due now.
pub(super) const RELEASE: &str = "
    {status} = CASE WHEN o.{attempts} = 0 THEN 'PENDING' ELSE 'FAILED' END, {next_attempt_at} = v.pr_at,
    {lost_claims} = 0";

/// Kept for longer. No answer yet, so the losses stay counted.
/// A clock that stepped back must not shorten the claim.
pub(super) const RENEW: &str = "
    {next_attempt_at} = CASE WHEN v.pr_next > o.{next_attempt_at} THEN v.pr_next ELSE o.{next_attempt_at} END";
