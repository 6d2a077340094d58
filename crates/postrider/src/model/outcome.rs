//! What an attempt can end in. A channel answers with this data; it never changes a row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Ledger;

/// How one attempt ended, as the channel tells it.
///
/// Source: contract C3, C3.4.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The peer accepted the message.
    Sent(Sent),
    /// It failed and may succeed later.
    Retry(Retry),
    /// It can never succeed: the row ends DEAD.
    Reject(Reject),
    /// The destination does not exist any more: the row ends DEAD, the address is to be disabled.
    Gone(Reject),
    /// Policy says no: the row ends SUPPRESSED, and no attempt is used.
    Suppress(Suppress),
    /// The peer may have taken the message: its answer was lost after the point of no return.
    InDoubt(InDoubt),
}

/// A message that the peer accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The vendor that took it (`smtp`, `sandbox`).
    pub provider: Option<String>,
    /// The vendor's own id of the message.
    pub provider_message_id: Option<String>,
    /// The answer per address, for channels with several.
    pub ledger: Option<Ledger>,
}

/// A failure that may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// What the peer said; stored cut.
    pub error: String,
    /// The delay that the peer asked for; never shortened.
    pub after: Option<Duration>,
    /// What the failure says something about. Only [`FailureScope::Row`] uses up an attempt.
    pub scope: FailureScope,
    /// Who is to blame.
    pub blame: Blame,
    /// The answer per address, for channels with several.
    pub ledger: Option<Ledger>,
}

/// A failure that will not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// What the peer said; stored cut.
    pub error: String,
    /// Who is to blame.
    pub blame: Blame,
    /// The answer per address, for channels with several.
    pub ledger: Option<Ledger>,
}

/// A stop by policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppress {
    /// Why, for people; stored cut.
    pub reason: String,
    /// Why, for programs: lower case, words joined by `_`.
    pub reason_code: String,
}

/// A lost answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InDoubt {
    /// What is known; stored cut.
    pub error: String,
    /// The answer per address, for channels with several.
    pub ledger: Option<Ledger>,
}

/// What a failure says something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FailureScope {
    /// This row or its recipient: the attempt counts.
    Row,
    /// The destination (host down, throttled): the row is deferred.
    Destination,
    /// The login at the destination: the row is deferred.
    Credential,
    /// The tenant (its quota): the row is deferred.
    Tenant,
    /// A limit of our own (all connections in use): the row is put off shortly, however often.
    Own,
}

impl FailureScope {
    /// The reason code of a deferral with this scope.
    #[must_use]
    pub fn reason_code(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Destination => "destination",
            Self::Credential => "credential",
            Self::Tenant => "tenant",
            Self::Own => "own_limit",
        }
    }
}

/// Who is to blame for a failure. Only the recipient's may feed a suppression list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Blame {
    /// The address does not take mail.
    Recipient,
    /// This message was refused (content, size).
    Message,
    /// The sender was refused (reputation, policy).
    Sender,
    /// Our own set-up (login, relay, a bug).
    Configuration,
    /// Nobody in particular: the network, a peer that is down.
    Nobody,
}

/// What becomes of a row whose attempt ended in doubt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InDoubtPolicy {
    /// Try again with the same idempotency key: a copy may arrive, a loss may not.
    #[default]
    Retry,
    /// End DEAD until a person decides: a loss may happen, a copy may not.
    Hold,
}
