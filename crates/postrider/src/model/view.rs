//! The read-only sight of a row that channels, templates and the console get.
//!
//! Source: contract C1.7.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{OutboxId, OutboxRow, OutboxStatus, RowState, TenantId};

/// A row, to be read only.
#[derive(Debug, Clone, Copy)]
pub struct OutboxView<'a> {
    row: &'a OutboxRow,
    tenant: &'a TenantId,
}

impl<'a> OutboxView<'a> {
    /// Looks at `row` of `tenant` ([`TenantId::ROOT`] where there is none).
    #[must_use]
    pub fn new(row: &'a OutboxRow, tenant: &'a TenantId) -> Self {
        Self { row, tenant }
    }

    /// The row's id.
    #[must_use]
    pub fn id(self) -> OutboxId {
        self.row.id
    }

    /// Whose row it is; root's has the empty name.
    #[must_use]
    pub fn tenant(self) -> &'a TenantId {
        self.tenant
    }

    /// The content columns.
    #[must_use]
    pub fn content(self) -> &'a OutboxRow {
        self.row
    }

    /// The state columns.
    #[must_use]
    pub fn state(self) -> &'a RowState {
        &self.row.state
    }

    /// Where the row stands.
    #[must_use]
    pub fn status(self) -> OutboxStatus {
        self.row.state.status
    }

    /// Copies, by contract C1.1: empty on any channel but e-mail.
    #[must_use]
    pub fn cc_addresses(self) -> &'a [String] {
        if self.row.channel == "email" { &self.row.cc_addresses } else { &[] }
    }

    /// True if the sandbox took it, and nobody else.
    #[must_use]
    pub fn is_sandbox(self) -> bool {
        self.row.state.provider.as_deref() == Some("sandbox")
    }
}

impl Serialize for OutboxView<'_> {
    /// The JSON that programs see: every column by its default name, and `sandbox`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (row, state) = (self.row, &self.row.state);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &row.id)?;
        map.serialize_entry("tenant", self.tenant)?;
        map.serialize_entry("channel", &row.channel)?;
        map.serialize_entry("recipient", &row.recipient)?;
        map.serialize_entry("recipient_address", &row.recipient_address)?;
        map.serialize_entry("cc_addresses", self.cc_addresses())?;
        map.serialize_entry("subject", &row.subject)?;
        map.serialize_entry("body", &row.body)?;
        map.serialize_entry("payload", &row.payload)?;
        map.serialize_entry("status", &state.status)?;
        map.serialize_entry("sandbox", &self.is_sandbox())?;
        map.serialize_entry("attempts", &state.attempts)?;
        map.serialize_entry("max_attempts", &row.max_attempts)?;
        map.serialize_entry("next_attempt_at", &state.next_attempt_at)?;
        map.serialize_entry("last_error", &state.last_error)?;
        map.serialize_entry("sent_at", &state.sent_at)?;
        map.serialize_entry("accepted_at", &state.accepted_at)?;
        map.serialize_entry("dedupe_key", &row.dedupe_key)?;
        map.serialize_entry("created_at", &row.created_at)?;
        map.serialize_entry("updated_at", &state.updated_at)?;
        map.serialize_entry("claim_seq", &state.claim_seq)?;
        map.serialize_entry("lost_claims", &state.lost_claims)?;
        map.serialize_entry("claimed_by", &state.claimed_by)?;
        map.serialize_entry("deferrals", &state.deferrals)?;
        map.serialize_entry("deferred_since", &state.deferred_since)?;
        map.serialize_entry("resends", &state.resends)?;
        map.serialize_entry("priority", &row.priority)?;
        map.serialize_entry("expires_at", &row.expires_at)?;
        map.serialize_entry("ordering_key", &row.ordering_key)?;
        map.serialize_entry("category", &row.category)?;
        map.serialize_entry("locale", &row.locale)?;
        map.serialize_entry("template", &row.template)?;
        map.serialize_entry("recipients", &state.recipients)?;
        map.serialize_entry("provider", &state.provider)?;
        map.serialize_entry("provider_message_id", &state.provider_message_id)?;
        map.serialize_entry("in_doubt", &state.in_doubt)?;
        map.serialize_entry("reason_code", &state.reason_code)?;
        map.serialize_entry("traceparent", &row.traceparent)?;
        map.serialize_entry("metadata", &row.metadata)?;
        map.end()
    }
}
