//! The copies that an attempt leaves out, since the relay ended the conversation when asked for them.
//!
//! Where it stands: beside the attempt, which goes on without them over a new connection: a copy
//! never stops the mail, in whatever way it is refused. They stay deferred in the ledger and are
//! asked for once everybody else has an answer. Pure.

use std::collections::HashSet;

use postrider::model::{AddressState, Blame, FailureScope, Ledger, LedgerEntry, Role, Timestamp};

use super::mail::Addressee;
use super::results::{Refusals, Trouble, entry};
use super::smtp::classify::Verdict;
use super::smtp::failure::{Cause, Failure};

/// After so many broken conversations only those are asked for whom the relay took before.
const MAX_HANG_UPS: usize = 3;

/// Why a conversation did not come to an end.
pub(super) enum Stop {
    /// For a reason that concerns the row as a whole.
    Failed(Failure),
    /// The relay went away, or did not answer, when asked for a copy.
    AtCopy(HangUp),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A conversation that ended at a copy.
pub(super) struct HangUp {
    pub(super) failure: Failure,
    /// The copy that was asked for.
    pub(super) copy: String,
    /// The addresses that the relay had taken before.
    pub(super) taken: HashSet<String>,
}

/// The copies that are not asked for in this attempt.
#[derive(Default)]
pub(super) struct PutOff {
    copies: HashSet<String>,
    hang_ups: usize,
    reason: String,
}

impl PutOff {
    /// What an earlier attempt found: where somebody has no answer yet, a copy that was put off
    /// waits, since asking for it may have been what ended that attempt.
    pub(super) fn remembered(open: &[&Addressee], ledger: &Ledger) -> Self {
        let mut put_off = Self::default();
        if open.iter().all(|addressee| ledger.state(addressee.role, &addressee.text).is_some()) {
            return put_off;
        }
        let waits = |entry: &&LedgerEntry| entry.role == Role::Cc && entry.state == AddressState::Deferred;
        for entry in ledger.entries().iter().filter(waits) {
            put_off.copies.insert(entry.address.clone());
            put_off.reason = entry.reply.clone().unwrap_or_default();
        }
        put_off
    }

    /// Leaves out the copy at which the conversation ended, and, after too many or too long ones,
    /// whoever of `open` was not taken.
    pub(super) fn add(&mut self, hang_up: &HangUp, open: &[&Addressee], at: Timestamp) -> Vec<LedgerEntry> {
        self.hang_ups += 1;
        self.reason = hang_up.failure.text();
        let is_last = self.hang_ups >= MAX_HANG_UPS || matches!(hang_up.failure.cause, Cause::TimedOut(_));
        let leaves = |addressee: &&&Addressee| {
            let unheard = is_last && !hang_up.taken.contains(&addressee.text);
            addressee.role == Role::Cc && (unheard || addressee.text == hang_up.copy)
        };
        let left_out = open.iter().filter(leaves);
        left_out
            .map(|addressee| {
                self.copies.insert(addressee.text.clone());
                entry(addressee, AddressState::Deferred, at, self.reason.clone())
            })
            .collect()
    }

    /// True if that address is left out.
    pub(super) fn contains(&self, addressee: &Addressee) -> bool {
        addressee.role == Role::Cc && self.copies.contains(&addressee.text)
    }

    /// True if nobody is left out.
    pub(super) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// What the row has to bear once everybody else has an answer: it is tried again for them, and
    /// that costs an attempt, since the relay works.
    pub(super) fn refusals(&self) -> Refusals {
        let mut refusals = Refusals::default();
        if !self.is_empty() {
            let verdict = Verdict::Retry(FailureScope::Row, Blame::Nobody);
            refusals.note(Trouble { verdict, text: self.reason.clone() });
        }
        refusals
    }
}
