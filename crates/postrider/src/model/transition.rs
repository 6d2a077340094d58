//! Which event is allowed from which status, and what a refusal is called.
//!
//! The table of the state machine. The effects are conditional UPDATEs in the store (nothing
//! reads, decides and writes back); when one of them changes no row, [`verdict`] says why.
//! Source: contract C3.

use super::OutboxStatus;
use OutboxStatus::{Dead, Failed, Pending, Sending, Sent, Suppressed};

/// What can happen to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A worker takes the row.
    Claim,
    /// The peer accepted it.
    MarkSent,
    /// Policy said no.
    MarkSuppressed,
    /// It failed; it may succeed later.
    RecordFailure,
    /// It can never succeed, or the destination is gone.
    Reject,
    /// The answer was lost after the point of no return.
    InDoubt,
    /// It is put off at no cost.
    Defer,
    /// The worker gives the claim back.
    Release,
    /// The worker keeps the claim for longer.
    Renew,
    /// Claimed after its time.
    Expire,
    /// Its worker was lost once too often.
    BuryLost,
    /// A person sends it again.
    Requeue,
    /// A person stops it.
    Cancel,
    /// A person wants it now.
    Expedite,
    /// A pause or limit moves it on, unclaimed.
    Postpone,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 15] = [
        Self::Claim,
        Self::MarkSent,
        Self::MarkSuppressed,
        Self::RecordFailure,
        Self::Reject,
        Self::InDoubt,
        Self::Defer,
        Self::Release,
        Self::Renew,
        Self::Expire,
        Self::BuryLost,
        Self::Requeue,
        Self::Cancel,
        Self::Expedite,
        Self::Postpone,
    ];
}

/// What the state machine says to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The row goes to one of these statuses.
    To(&'static [OutboxStatus]),
    /// Nothing changes, and that is no error.
    Nothing,
    /// The row is being delivered: a Conflict.
    Conflict,
    /// Not from this status: a typed error, nothing changes.
    Refused,
}

/// What `event` does to a row in `from`.
///
/// A claim also needs the row to be due, and for SENDING its time to have passed; an event of
/// the worker also needs the claim's token.
#[must_use]
pub fn verdict(from: OutboxStatus, event: Event) -> Verdict {
    match (event, from) {
        (Event::Claim, Pending | Failed | Sending) | (Event::Renew, Sending) => Verdict::To(&[Sending]),
        (Event::MarkSent, Sending) => Verdict::To(&[Sent]),
        // Where the To address was accepted, what would end DEAD or SUPPRESSED ends SENT (C3.6).
        (Event::MarkSuppressed | Event::Expire, Sending) | (Event::Cancel, Pending | Failed) => {
            Verdict::To(&[Suppressed, Sent])
        }
        (Event::RecordFailure | Event::InDoubt, Sending) => Verdict::To(&[Failed, Dead, Sent]),
        (Event::Reject | Event::BuryLost, Sending) => Verdict::To(&[Dead, Sent]),
        (Event::Defer, Sending) => Verdict::To(&[Pending, Failed, Dead, Sent]),
        (Event::Release, Sending) => Verdict::To(&[Pending, Failed]),
        (Event::Requeue, Dead | Failed | Suppressed | Sent) | (Event::Expedite | Event::Postpone, Pending) => {
            Verdict::To(&[Pending])
        }
        (Event::Requeue, Pending) | (Event::Cancel, Sent | Dead | Suppressed) => Verdict::Nothing,
        (Event::Expedite | Event::Postpone, Failed) => Verdict::To(&[Failed]),
        (Event::Requeue | Event::Cancel | Event::Expedite, Sending) => Verdict::Conflict,
        _ => Verdict::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract C3, C3.2: each of the 90 pairs has exactly the verdict that the rules give it.
    #[test]
    fn every_pair_of_status_and_event_is_allowed_or_refused_as_the_contract_says() {
        let worker = [
            Event::MarkSent,
            Event::MarkSuppressed,
            Event::RecordFailure,
            Event::Reject,
            Event::InDoubt,
            Event::Defer,
            Event::Release,
            Event::Renew,
            Event::Expire,
            Event::BuryLost,
        ];
        for event in Event::ALL {
            for from in OutboxStatus::ALL {
                let expected = match event {
                    e if worker.contains(&e) => (from == Sending).then_some("to"),
                    Event::Claim => matches!(from, Pending | Failed | Sending).then_some("to"),
                    Event::Requeue | Event::Cancel | Event::Expedite if from == Sending => Some("conflict"),
                    Event::Requeue if from == Pending => Some("nothing"),
                    Event::Cancel if from.is_final() => Some("nothing"),
                    Event::Requeue | Event::Cancel => Some("to"),
                    _ => matches!(from, Pending | Failed).then_some("to"),
                };
                let found = match verdict(from, event) {
                    Verdict::To(_) => Some("to"),
                    Verdict::Nothing => Some("nothing"),
                    Verdict::Conflict => Some("conflict"),
                    Verdict::Refused => None,
                };
                assert_eq!(found, expected, "{event:?} from {from}");
            }
        }
    }

    /// Contract C3: only a requeue leaves a final status.
    #[test]
    fn a_final_status_is_left_by_requeue_alone() {
        for event in Event::ALL.into_iter().filter(|event| *event != Event::Requeue) {
            for from in [Sent, Dead, Suppressed] {
                assert!(!matches!(verdict(from, event), Verdict::To(_)), "{event:?} from {from}");
            }
        }
    }
}
