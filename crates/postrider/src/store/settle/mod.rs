//! Writing how attempts ended: fenced, in batches, with their history.
//!
//! Source: contract C3, C4.4, C4.7.

mod apply;
mod batch;

use std::time::Duration;

use super::Claim;
use super::history::HistoryEvent;
use crate::error::Result;
use crate::model::{Blame, Ledger, OutboxStatus, Timestamp};

/// How one claimed row is to be settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The claim under which it was tried.
    pub claim: Claim,
    /// When it ended, UTC.
    pub at: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// The answer per address, if there was one.
    pub ledger: Option<Ledger>,
    /// When the attempt began, for the history.
    pub started_at: Option<Timestamp>,
    /// The node, for the history.
    pub node: Option<String>,
    /// Who is to blame, for the history.
    pub blame: Option<Blame>,
    /// Claims lost in a row before this one, for the history.
    pub losses: i32,
}

/// How an attempt ended, as the store writes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// SENT.
    Sent {
        /// The vendor that took it.
        provider: Option<String>,
        /// The vendor's id of the message.
        provider_message_id: Option<String>,
        /// `partial` if an address was left out.
        reason_code: Option<String>,
    },
    /// FAILED, or DEAD with the last attempt.
    Failure {
        /// What was said.
        error: String,
        /// When to try again.
        next: Timestamp,
        /// Why, for programs.
        reason_code: Option<String>,
        /// The peer may have taken it.
        in_doubt: bool,
    },
    /// DEAD: it can never succeed, its destination is gone, or it is held.
    Dead {
        /// What was said.
        error: String,
        /// Why, for programs: `rejected`, `gone`, `held`.
        reason_code: String,
        /// The peer may have taken it.
        in_doubt: bool,
    },
    /// SUPPRESSED, without using an attempt.
    Suppressed {
        /// Why, for people.
        reason: String,
        /// Why, for programs.
        reason_code: String,
    },
    /// Put off without using an attempt.
    Deferred {
        /// When to try again.
        until: Timestamp,
        /// Why, for programs.
        reason_code: String,
        /// What was said; kept on the row only if it is given up.
        error: String,
        /// What it means for the run of deferrals.
        run: Run,
    },
    /// Given back, due now.
    Released,
}

/// What a deferral means for the unbroken run of them that ends DEAD after 72 h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Run {
    /// A failure caused it: the run begins or goes on; over `limit`, the row is DEAD.
    Failure {
        /// The longest that a run may last.
        limit: Duration,
    },
    /// A limit of one's own: it does not count.
    OwnLimit,
    /// A pause or a quiet hour: it breaks the run.
    Pause,
}

/// What became of a settlement.
#[derive(Debug)]
pub struct Settled {
    /// The claim under which the row was tried.
    pub claim: Claim,
    /// The row's status and attempts now; `None` if the claim was lost and nothing changed; an
    /// error if the database refused this row for good.
    pub now: Result<Option<(OutboxStatus, i32)>>,
}
/// What became of a renewal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Claims that last longer now.
    pub kept: Vec<Claim>,
    /// Claims that somebody else took over, or whose row is final.
    pub lost: Vec<Claim>,
}

impl Settlement {
    /// A settlement with nothing for the history but the ending.
    #[must_use]
    pub fn new(claim: Claim, at: Timestamp, ending: Ending) -> Self {
        Self { claim, at, ending, ledger: None, started_at: None, node: None, blame: None, losses: 0 }
    }

    /// The event of the state machine that this is.
    pub(super) fn history_event(&self) -> HistoryEvent {
        match &self.ending {
            Ending::Sent { .. } => HistoryEvent::Sent,
            Ending::Failure { in_doubt: true, .. } | Ending::Dead { in_doubt: true, .. } => HistoryEvent::InDoubt,
            Ending::Failure { .. } => HistoryEvent::Failure,
            Ending::Dead { reason_code, .. } if reason_code == "gone" => HistoryEvent::Gone,
            Ending::Dead { .. } => HistoryEvent::Reject,
            Ending::Suppressed { .. } => HistoryEvent::Suppress,
            Ending::Deferred { .. } | Ending::Released => HistoryEvent::Defer,
        }
    }
}
