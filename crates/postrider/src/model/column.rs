//! The columns of an outbox row: their names, kinds, and whose they are.
//!
//! The one list from which statements, schema, codec and renames are made.

use super::value::Kind;

/// Whether `save` may write a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Written once with the row, never changed after.
    Identity,
    /// What is sent; `save` may write it.
    Content,
    /// The state machine's; only transitions write it. Source: contract C7.1.
    State,
}

/// One of our columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The default name in the table.
    pub name: &'static str,
    /// How its values cross the seam.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
    /// Who writes it.
    pub owner: Owner,
}

macro_rules! columns {
    ($($constant:ident = $name:literal, $kind:ident, $null:ident, $owner:ident;)*) => {
        $(#[doc = concat!("`", $name, "`")] pub const $constant: Column = Column {
            name: $name, kind: Kind::$kind, nullable: columns!(@ $null), owner: Owner::$owner,
        };)*
        /// All of our columns, in the order in which they are read and written.
        pub const ALL: &[Column] = &[$($constant),*];
    };
    (@ null) => { true };
    (@ not_null) => { false };
}

columns! {
    ID = "id", Uuid, not_null, Identity;
    CHANNEL = "channel", Text, not_null, Identity;
    RECIPIENT = "recipient", Text, not_null, Content;
    RECIPIENT_ADDRESS = "recipient_address", Text, not_null, Content;
    CC_ADDRESSES = "cc_addresses", Text, null, Content;
    SUBJECT = "subject", Text, null, Content;
    BODY = "body", Text, null, Content;
    PAYLOAD = "payload", Text, null, Content;
    STATUS = "status", Text, not_null, State;
    ATTEMPTS = "attempts", Int, not_null, State;
    MAX_ATTEMPTS = "max_attempts", Int, not_null, Identity;
    NEXT_ATTEMPT_AT = "next_attempt_at", Time, not_null, State;
    LAST_ERROR = "last_error", Text, null, State;
    SENT_AT = "sent_at", Time, null, State;
    DEDUPE_KEY = "dedupe_key", Text, not_null, Identity;
    CREATED_AT = "created_at", Time, not_null, Identity;
    UPDATED_AT = "updated_at", Time, not_null, State;
    CLAIM_SEQ = "claim_seq", Int, not_null, State;
    LOST_CLAIMS = "lost_claims", Int, not_null, State;
    CLAIMED_BY = "claimed_by", Text, null, State;
    DEFERRALS = "deferrals", Int, not_null, State;
    DEFERRED_SINCE = "deferred_since", Time, null, State;
    RESENDS = "resends", Int, not_null, State;
    PRIORITY = "priority", Int, not_null, Content;
    EXPIRES_AT = "expires_at", Time, null, Content;
    ORDERING_KEY = "ordering_key", Text, null, Content;
    CATEGORY = "category", Text, null, Content;
    LOCALE = "locale", Text, null, Content;
    TEMPLATE = "template", Text, null, Content;
    RECIPIENTS = "recipients", Text, null, State;
    ACCEPTED_AT = "accepted_at", Time, null, State;
    PROVIDER = "provider", Text, null, State;
    PROVIDER_MESSAGE_ID = "provider_message_id", Text, null, State;
    IN_DOUBT = "in_doubt", Bool, not_null, State;
    REASON_CODE = "reason_code", Text, null, State;
    TRACEPARENT = "traceparent", Text, null, Content;
    METADATA = "metadata", Text, null, Content;
}

/// When a claimable row is due; null for any other. Only where the database has no partial index
/// (MariaDB, MySQL): the database makes it, and the claim index is on it.
pub const DUE_AT: Column = generated("due_at");

/// When a row that lost its worker twice falls due again; null for any other. As [`DUE_AT`].
pub const LOST_AT: Column = generated("lost_at");

/// The columns that the database itself makes out of others, where it needs them.
pub const GENERATED: &[Column] = &[DUE_AT, LOST_AT];

const fn generated(name: &'static str) -> Column {
    Column { name, kind: Kind::Time, nullable: true, owner: Owner::State }
}

/// The column of that default name.
#[must_use]
pub fn named(name: &str) -> Option<Column> {
    ALL.iter().chain(GENERATED).copied().find(|column| column.name == name)
}
