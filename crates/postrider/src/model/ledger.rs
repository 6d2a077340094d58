//! Which address of an e-mail row has taken the message, and which has not.
//!
//! Kept in the row's `recipients` column as JSON; written only by a settle.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// How one address stands in the present send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AddressState {
    /// The peer took the message for it. It is never sent to again in this send.
    Accepted,
    /// Refused for good.
    Rejected,
    /// Refused for now; tried again with the row.
    Deferred,
    /// The conversation broke after the message was handed over: it may have arrived.
    InDoubt,
    /// Policy left it out.
    Blocked,
}

/// One address of the row and its latest answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The address as it stands in the row.
    pub address: String,
    /// `to` or `cc`.
    pub role: Role,
    /// Where it stands.
    pub state: AddressState,
    /// When it came to that, UTC.
    pub at: Timestamp,
    /// The peer's answer, cut like an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
}

/// The part an address plays in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The recipient.
    To,
    /// A copy.
    Cc,
}

/// The ledger of a row: at most one entry per address, To first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(Vec<LedgerEntry>);

impl Ledger {
    /// The entries, To first.
    #[must_use]
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.0
    }

    /// True if no address has an answer yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where `address` stands in that role.
    #[must_use]
    pub fn state(&self, role: Role, address: &str) -> Option<AddressState> {
        self.find(role, address).map(|entry| entry.state)
    }

    /// Records an answer; an address that was accepted stays so.
    pub fn record(&mut self, entry: LedgerEntry) {
        match self.0.iter_mut().find(|known| known.role == entry.role && known.address == entry.address) {
            Some(known) if known.state == AddressState::Accepted => {}
            Some(known) => *known = entry,
            None if entry.role == Role::To => self.0.insert(0, entry),
            None => self.0.push(entry),
        }
    }

    /// Forgets who refused: a requeued row asks them anew. Who accepted stays, and who is blocked.
    pub fn forget_refusals(&mut self) {
        self.0.retain(|entry| matches!(entry.state, AddressState::Accepted | AddressState::Blocked));
    }

    /// Takes the peer's words out; who stands how stays.
    pub(crate) fn forget_replies(&mut self) {
        for entry in &mut self.0 {
            entry.reply = None;
        }
    }

    /// When the To address was accepted, if it was.
    #[must_use]
    pub fn to_accepted_at(&self) -> Option<Timestamp> {
        self.0.iter().find(|e| e.role == Role::To && e.state == AddressState::Accepted).map(|e| e.at)
    }

    fn find(&self, role: Role, address: &str) -> Option<&LedgerEntry> {
        self.0.iter().find(|entry| entry.role == role && entry.address == address)
    }
}
