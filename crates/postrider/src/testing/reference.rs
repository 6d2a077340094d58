//! The state machine in plain words: one row in memory, to compare a database's answers with.
//!
//! Written from the contract alone and simply, without a thought for SQL. Source: contract C3, C4.

use crate::model::text::storable_error;
use crate::model::transition::{Event, Verdict, verdict};
use crate::model::{Ledger, OutboxStatus, RowState, Timestamp};
use crate::store::Run;

/// Something that happens to the row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the store's own calls")]
pub enum Act {
    Claim { reclaim_at: Timestamp, node: String },
    ClaimAlone { reclaim_at: Timestamp, node: String },
    BuryLost { error: String },
    Sent { seq: i64, provider: String, ledger: Option<Ledger> },
    Failure { seq: i64, error: String, next: Timestamp, in_doubt: bool, ledger: Option<Ledger> },
    Dead { seq: i64, error: String, code: String, in_doubt: bool, ledger: Option<Ledger> },
    Suppress { seq: i64, reason: String, code: String },
    Defer { seq: i64, until: Timestamp, code: String, error: String, run: Run, ledger: Option<Ledger> },
    Release { seq: i64 },
    Renew { seq: i64, reclaim_at: Timestamp },
    Requeue,
    Cancel { actor: String },
    Expedite,
    Postpone { until: Timestamp, code: String },
    Resume { code: String },
}

/// A row in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its state columns.
    pub state: RowState,
    /// Its budget.
    pub max_attempts: i32,
}

impl Model {
    /// Does `act` at `now`; true if it changed the row.
    pub fn apply(&mut self, act: &Act, now: Timestamp) -> bool {
        match act {
            Act::Claim { reclaim_at, node } => self.claim(*reclaim_at, node, now, |lost| lost < 2),
            Act::ClaimAlone { reclaim_at, node } => {
                self.state.status == OutboxStatus::Sending && self.claim(*reclaim_at, node, now, |lost| lost == 2)
            }
            Act::BuryLost { error } => {
                let stale = self.state.status == OutboxStatus::Sending && self.state.next_attempt_at <= now;
                if !stale || self.state.lost_claims < 3 {
                    return false;
                }
                self.state.last_error = Some(error.clone());
                self.finish(OutboxStatus::Dead, "lost");
                self.state.updated_at = now;
                true
            }
            Act::Requeue => self.requeue(now),
            Act::Cancel { actor } => {
                if !self.may(Event::Cancel) {
                    return false;
                }
                self.state.last_error = Some(format!("cancelled by {actor}"));
                self.finish(OutboxStatus::Suppressed, "cancelled");
                self.state.updated_at = now;
                true
            }
            Act::Expedite => {
                if !self.may(Event::Expedite) {
                    return false;
                }
                self.state.next_attempt_at = now;
                self.state.updated_at = now;
                true
            }
            Act::Postpone { until, code } => {
                if !self.may(Event::Postpone) || self.state.next_attempt_at > now {
                    return false;
                }
                self.state.next_attempt_at = *until;
                self.state.reason_code = Some(code.clone());
                self.state.updated_at = now;
                true
            }
            Act::Resume { code } => {
                if !self.may(Event::Postpone) || self.state.reason_code.as_ref() != Some(code) {
                    return false;
                }
                self.state.next_attempt_at = now;
                self.state.reason_code = None;
                self.state.updated_at = now;
                true
            }
            Act::Renew { seq, reclaim_at } => {
                self.holds(*seq) && {
                    // It never becomes shorter by a renewal.
                    self.state.next_attempt_at = self.state.next_attempt_at.max(*reclaim_at);
                    self.state.updated_at = now;
                    true
                }
            }
            Act::Release { seq } => {
                self.holds(*seq) && {
                    self.back_to_waiting();
                    self.state.next_attempt_at = now;
                    self.settled(now)
                }
            }
            Act::Sent { .. } | Act::Failure { .. } | Act::Dead { .. } | Act::Suppress { .. } | Act::Defer { .. } => {
                self.settle(act, now)
            }
        }
    }

    fn settle(&mut self, act: &Act, now: Timestamp) -> bool {
        match act {
            Act::Sent { seq, provider, ledger } => {
                self.holds(*seq) && {
                    self.note(ledger.as_ref());
                    self.state.accepted_at.get_or_insert(now);
                    self.state.status = OutboxStatus::Sent;
                    self.state.sent_at = Some(now);
                    self.state.attempts += 1;
                    self.state.provider = Some(provider.clone());
                    self.state.provider_message_id = None;
                    self.state.reason_code = None;
                    self.state.deferred_since = None;
                    self.settled(now)
                }
            }
            Act::Failure { seq, error, next, in_doubt, ledger } => {
                self.holds(*seq) && {
                    self.note(ledger.as_ref());
                    self.state.attempts += 1;
                    self.state.last_error = Some(storable_error(error));
                    self.state.in_doubt |= in_doubt;
                    self.state.deferred_since = None;
                    if self.state.attempts < self.max_attempts {
                        self.state.status = OutboxStatus::Failed;
                        self.state.next_attempt_at = *next;
                        self.state.reason_code = None;
                    } else {
                        self.state.reason_code = None;
                        self.end_dead(None);
                    }
                    self.settled(now)
                }
            }
            Act::Dead { seq, error, code, in_doubt, ledger } => {
                self.holds(*seq) && {
                    self.note(ledger.as_ref());
                    self.state.attempts += 1;
                    self.state.last_error = Some(storable_error(error));
                    self.state.in_doubt |= in_doubt;
                    self.state.deferred_since = None;
                    self.finish(OutboxStatus::Dead, code);
                    self.settled(now)
                }
            }
            Act::Suppress { seq, reason, code } => {
                self.holds(*seq) && {
                    self.state.last_error = Some(storable_error(reason));
                    self.state.deferred_since = None;
                    self.finish(OutboxStatus::Suppressed, code);
                    self.settled(now)
                }
            }
            Act::Defer { seq, until, code, error, run, ledger } => {
                self.holds(*seq) && {
                    self.note(ledger.as_ref());
                    self.defer(*until, code, error, *run, now);
                    self.settled(now)
                }
            }
            _ => false,
        }
    }

    fn claim(&mut self, reclaim_at: Timestamp, node: &str, now: Timestamp, may_be_lost: impl Fn(i32) -> bool) -> bool {
        let stale = self.state.status == OutboxStatus::Sending;
        if !self.may(Event::Claim)
            || self.state.next_attempt_at > now
            || (stale && !may_be_lost(self.state.lost_claims))
        {
            return false;
        }
        if stale {
            self.state.lost_claims += 1;
        }
        self.state.status = OutboxStatus::Sending;
        self.state.next_attempt_at = reclaim_at;
        self.state.claim_seq += 1;
        self.state.claimed_by = Some(node.to_owned());
        self.state.updated_at = now;
        true
    }

    fn defer(&mut self, until: Timestamp, code: &str, error: &str, run: Run, now: Timestamp) {
        self.state.deferrals += 1;
        let over = match run {
            Run::Failure { limit } => self.run_began(now) <= now.minus(limit),
            _ => false,
        };
        match run {
            Run::Failure { .. } => self.state.deferred_since = Some(self.run_began(now)),
            Run::OwnLimit => {}
            Run::Pause => self.state.deferred_since = None,
        }
        if over {
            self.state.last_error = Some(storable_error(error));
            self.finish(OutboxStatus::Dead, code);
        } else {
            self.back_to_waiting();
            self.state.next_attempt_at = until;
            self.state.reason_code = Some(code.to_owned());
        }
    }

    fn run_began(&self, now: Timestamp) -> Timestamp {
        self.state.deferred_since.unwrap_or(now)
    }

    fn requeue(&mut self, now: Timestamp) -> bool {
        if !self.may(Event::Requeue) {
            return false;
        }
        if self.state.status == OutboxStatus::Sent {
            self.state.resends += 1;
            self.state.recipients = None;
            self.state.accepted_at = None;
        }
        let kept = self.state.clone();
        self.state = RowState::pending(now, now);
        self.state.claim_seq = kept.claim_seq;
        self.state.claimed_by = kept.claimed_by;
        self.state.resends = kept.resends;
        self.state.recipients = kept.recipients;
        self.state.accepted_at = kept.accepted_at;
        true
    }

    /// Ends in `status`, or in SENT where the To address was accepted (C3.6).
    fn finish(&mut self, status: OutboxStatus, code: &str) {
        match status {
            OutboxStatus::Dead => self.end_dead(Some(code)),
            _ if self.state.accepted_at.is_some() => self.end_partial(),
            _ => {
                self.state.status = status;
                self.state.reason_code = Some(code.to_owned());
            }
        }
    }

    fn end_dead(&mut self, code: Option<&str>) {
        if self.state.accepted_at.is_some() {
            return self.end_partial();
        }
        self.state.status = OutboxStatus::Dead;
        self.state.reason_code = code.map(str::to_owned);
    }

    fn end_partial(&mut self) {
        self.state.status = OutboxStatus::Sent;
        self.state.sent_at = self.state.accepted_at;
        self.state.reason_code = Some("partial".to_owned());
    }

    fn note(&mut self, ledger: Option<&Ledger>) {
        if let Some(ledger) = ledger {
            self.state.recipients = Some(ledger.clone());
            self.state.accepted_at = self.state.accepted_at.or(ledger.to_accepted_at());
        }
    }

    fn back_to_waiting(&mut self) {
        self.state.status = if self.state.attempts == 0 { OutboxStatus::Pending } else { OutboxStatus::Failed };
    }

    fn settled(&mut self, now: Timestamp) -> bool {
        self.state.lost_claims = 0;
        self.state.updated_at = now;
        true
    }

    fn holds(&self, seq: i64) -> bool {
        self.state.status == OutboxStatus::Sending && self.state.claim_seq == seq
    }

    fn may(&self, event: Event) -> bool {
        matches!(verdict(self.state.status, event), Verdict::To(_))
    }
}
