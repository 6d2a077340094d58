//! The outbox row: one recipient × one channel, both the work item and the delivery audit.
//!
//! Embedded in the application's entity. The content is the application's to write; the state
//! ([`RowState`]) is written by transitions alone. Source: contract C1, C7.1.

use serde::Serialize;

use super::{Ledger, OutboxId, OutboxStatus, Timestamp};

/// One recipient × one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxRow {
    /// The row's id.
    pub id: OutboxId,
    /// `email`, `webhook`, `sms`, or a channel of the application's own.
    pub channel: String,
    /// Who it is for (a user id, a name); not the address.
    pub recipient: String,
    /// Where it goes (mail address, URL, phone number, device token).
    pub recipient_address: String,
    /// Copies; e-mail only. Empty on any other channel and where the column is null (C1.1).
    pub cc_addresses: Vec<String>,
    /// The rendered subject or title.
    pub subject: Option<String>,
    /// The rendered text.
    pub body: Option<String>,
    /// What else the channel needs (HTML part, headers), as JSON.
    pub payload: Option<serde_json::Value>,
    /// How many attempts the row has; fixed when it is written, at least 1.
    pub max_attempts: i32,
    /// Unique within a tenant, compared byte for byte; the row's own id if none was given (C1.4).
    pub dedupe_key: String,
    /// When it was written, UTC.
    pub created_at: Timestamp,
    /// Higher goes first among rows due at once; 0 is normal.
    pub priority: i32,
    /// After this instant it is not sent any more.
    pub expires_at: Option<Timestamp>,
    /// Rows of one key go out in order (kept for later use; not acted on yet).
    pub ordering_key: Option<String>,
    /// The kind of notification, for preferences and firewall rules.
    pub category: Option<String>,
    /// The language it was rendered in.
    pub locale: Option<String>,
    /// The template it was rendered from.
    pub template: Option<String>,
    /// The W3C trace context of the caller.
    pub traceparent: Option<String>,
    /// The application's own notes, as JSON.
    pub metadata: Option<serde_json::Value>,
    /// The state machine's columns.
    pub state: RowState,
}

/// The columns that only transitions write. Source: contract C3.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowState {
    /// Where the row stands.
    pub status: OutboxStatus,
    /// Tries that got an answer.
    pub attempts: i32,
    /// When it is due; while SENDING, when its claim may be taken over. Never null (C1.2).
    pub next_attempt_at: Timestamp,
    /// The latest error, at most 2,000 characters (C1.3).
    pub last_error: Option<String>,
    /// When the peer accepted it, UTC.
    pub sent_at: Option<Timestamp>,
    /// When the row last changed, UTC.
    pub updated_at: Timestamp,
    /// Grows by one with every claim: the fence (C4.4).
    pub claim_seq: i64,
    /// Claims lost in a row (C4.6).
    pub lost_claims: i32,
    /// The node of the latest claim.
    pub claimed_by: Option<String>,
    /// How often it was put off at no cost (C3.4).
    pub deferrals: i32,
    /// Start of the present unbroken run of deferrals that failures caused.
    pub deferred_since: Option<Timestamp>,
    /// How often it was sent anew after it had been SENT (C3.5).
    pub resends: i32,
    /// The answer per address of the present send.
    pub recipients: Option<Ledger>,
    /// When the To address was accepted in the present send (C3.6).
    pub accepted_at: Option<Timestamp>,
    /// The vendor that took it.
    pub provider: Option<String>,
    /// The vendor's id of the message.
    pub provider_message_id: Option<String>,
    /// An answer was lost after the peer may have taken it; only a requeue clears it.
    pub in_doubt: bool,
    /// Why it stands where it stands, for programs.
    pub reason_code: Option<String>,
}

impl RowState {
    /// The state of a row just written: PENDING, due at `due`.
    #[must_use]
    pub fn pending(created_at: Timestamp, due: Timestamp) -> Self {
        Self {
            status: OutboxStatus::Pending,
            attempts: 0,
            next_attempt_at: due,
            last_error: None,
            sent_at: None,
            updated_at: created_at,
            claim_seq: 0,
            lost_claims: 0,
            claimed_by: None,
            deferrals: 0,
            deferred_since: None,
            resends: 0,
            recipients: None,
            accepted_at: None,
            provider: None,
            provider_message_id: None,
            in_doubt: false,
            reason_code: None,
        }
    }
}

impl OutboxRow {
    /// A PENDING row with no content yet, due at once, deduplicated by nothing but its own id.
    #[must_use]
    pub fn new(
        id: OutboxId,
        channel: impl Into<String>,
        recipient: impl Into<String>,
        recipient_address: impl Into<String>,
        created_at: Timestamp,
    ) -> Self {
        Self {
            id,
            channel: channel.into(),
            recipient: recipient.into(),
            recipient_address: recipient_address.into(),
            cc_addresses: Vec::new(),
            subject: None,
            body: None,
            payload: None,
            max_attempts: Self::DEFAULT_MAX_ATTEMPTS,
            dedupe_key: id.to_string(),
            created_at,
            priority: 0,
            expires_at: None,
            ordering_key: None,
            category: None,
            locale: None,
            template: None,
            traceparent: None,
            metadata: None,
            state: RowState::pending(created_at, created_at),
        }
    }

    /// Attempts of a row where nothing else was asked for, as in the table's column default.
    pub const DEFAULT_MAX_ATTEMPTS: i32 = 11;

    /// Most bytes of a dedupe key (C1.4).
    pub const MAX_DEDUPE_KEY_BYTES: usize = 255;

    /// The key that a receiver can drop copies by: stable over retries, new for each resend (C5.6).
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        match self.state.resends {
            0 => self.id.to_string(),
            n => format!("{}.{n}", self.id),
        }
    }
}
