//! From refusals to ledger entries and outcomes: what an answer makes of an address and of a row.
//!
//! Where it stands: between the table of replies, which knows no rows, and the attempt, which runs
//! the conversation. Pure. It must not decide what was handed over, and keeps the ledger in its
//! order, To first.

use postrider::model::{AddressState, Blame, Ledger, LedgerEntry, Outcome, Reject, Retry, Role, Sent, Timestamp};

use super::mail::Addressee;
use super::smtp::classify::{Phase, Verdict, classify};
use super::smtp::failure::{Cause, Failure};
use super::smtp::reply::Reply;

/// The name under which a delivery by SMTP is recorded.
const PROVIDER: &str = "smtp";

/// A refusal that the row has to bear.
pub(super) struct Trouble {
    /// What becomes of the row.
    pub(super) verdict: Verdict,
    /// The reason, as it is stored.
    pub(super) text: String,
}

impl Trouble {
    /// What a negative reply means in its phase.
    pub(super) fn of(phase: Phase, reply: Reply) -> Self {
        let verdict = classify(phase, &reply);
        Self { verdict, text: Cause::Refused(reply).during(phase).text() }
    }

    /// How an address stands that it was said of.
    pub(super) fn address_state(&self) -> AddressState {
        match self.verdict {
            Verdict::Retry(..) => AddressState::Deferred,
            Verdict::Reject(_) => AddressState::Rejected,
        }
    }

    /// The end of the attempt.
    pub(super) fn into_outcome(self, ledger: Option<Ledger>) -> Outcome {
        match self.verdict {
            Verdict::Retry(scope, blame) => {
                Outcome::Retry(Retry { error: self.text, after: None, scope, blame, ledger })
            }
            Verdict::Reject(blame) => Outcome::Reject(Reject { error: self.text, blame, ledger }),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { verdict: failure.verdict(), text: failure.text() }
    }
}

/// The copies that were refused in this attempt: the first of each kind speaks for all.
#[derive(Default)]
pub(super) struct Refusals {
    deferred: Option<Trouble>,
    rejected: Option<Trouble>,
}

impl Refusals {
    /// Keeps a refusal if it is the first of its kind.
    pub(super) fn note(&mut self, trouble: Trouble) {
        let first = match trouble.address_state() {
            AddressState::Deferred => &mut self.deferred,
            _ => &mut self.rejected,
        };
        first.get_or_insert(trouble);
    }
}

/// The outcome once every open address has its answer: a copy is still missing, somebody has the
/// message, or nobody does.
pub(super) fn settled(ledger: &Ledger, refusals: Refusals) -> Outcome {
    let ledger = to_first(ledger);
    if let Some(trouble) = refusals.deferred {
        return trouble.into_outcome(Some(ledger));
    }
    if ledger.entries().iter().any(|entry| entry.state == AddressState::Accepted) {
        return Outcome::Sent(Sent {
            provider: Some(PROVIDER.into()),
            provider_message_id: None,
            ledger: Some(ledger),
        });
    }
    let refused_before =
        || Trouble { verdict: Verdict::Reject(Blame::Nobody), text: "every address was refused before".into() };
    refusals.rejected.unwrap_or_else(refused_before).into_outcome(Some(ledger))
}

/// The same entries, To first: refused copies were recorded before the final dot was answered.
pub(super) fn to_first(ledger: &Ledger) -> Ledger {
    let mut ordered = Ledger::default();
    for role in [Role::To, Role::Cc] {
        ledger.entries().iter().filter(|entry| entry.role == role).for_each(|entry| ordered.record(entry.clone()));
    }
    ordered
}

/// What the ledger keeps of one answer.
pub(super) fn entry(addressee: &Addressee, state: AddressState, at: Timestamp, reply: String) -> LedgerEntry {
    LedgerEntry { address: addressee.text.clone(), role: addressee.role, state, at, reply: Some(reply) }
}

#[cfg(test)]
mod tests {
    use postrider::model::{FailureScope, MailAddress};

    use super::super::mailbox::Mailbox;
    use super::super::smtp::reply::reply;
    use super::*;

    fn addressee(role: Role, text: &str) -> Addressee {
        Addressee { role, text: text.into(), mailbox: Mailbox::new(None, MailAddress::parse(text).unwrap()) }
    }

    fn ledger(states: &[(Role, &str, AddressState)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (role, text, state) in states {
            ledger.record(entry(&addressee(*role, text), *state, Timestamp::from_micros(0), "said".into()));
        }
        ledger
    }

    fn refusals(lines: &[&str]) -> Refusals {
        let mut refusals = Refusals::default();
        for line in lines {
            refusals.note(Trouble::of(Phase::Recipient, reply(format!("{line}\r\n").as_bytes())));
        }
        refusals
    }

    /// Case C18: what is missing decides, then what was accepted, then what was refused.
    #[test]
    fn a_row_is_sent_once_somebody_has_it_and_no_copy_is_missing() {
        let accepted = ledger(&[(Role::Cc, "b@example.com", AddressState::Accepted)]);
        let Outcome::Retry(retry) = settled(&accepted, refusals(&["550 5.1.1 no", "450 4.2.0 busy"])) else {
            panic!("not to be tried again")
        };
        assert!(retry.error.contains("450 4.2.0 busy") && retry.scope == FailureScope::Row);
        assert!(matches!(settled(&accepted, refusals(&["550 5.1.1 no"])), Outcome::Sent(_)));
        let Outcome::Reject(reject) = settled(&Ledger::default(), refusals(&["550 5.7.1 no", "550 5.1.1 no"])) else {
            panic!("not rejected")
        };
        assert_eq!(reject.blame, Blame::Sender);
        assert!(matches!(settled(&Ledger::default(), Refusals::default()), Outcome::Reject(_)));
    }

    #[test]
    fn a_ledger_has_to_first() {
        let mixed = ledger(&[
            (Role::Cc, "b@example.com", AddressState::Rejected),
            (Role::To, "a@example.com", AddressState::Accepted),
            (Role::Cc, "a@example.com", AddressState::Accepted),
        ]);
        let order: Vec<_> =
            to_first(&mixed).entries().iter().map(|entry| (entry.role, entry.address.clone())).collect();
        let expected = [(Role::To, "a@example.com"), (Role::Cc, "b@example.com"), (Role::Cc, "a@example.com")];
        assert_eq!(order, expected.map(|(role, text)| (role, text.to_owned())));
    }
}
