//! A scripted relay, an e-mail channel that talks to it, and rows to send.

use std::time::Duration;

use postrider::channel::{Channel, Delivery, PointOfNoReturn};
use postrider::model::{
    AddressState, Blame, FailureScope, Ledger, OutboxId, OutboxRow, OutboxView, Outcome, Reject, Retry, Role, Sent,
    SystemClock, TenantId, Timestamp,
};
use postrider_channels::{EmailChannel, EmailConfig, Timeouts, TlsMode};
use postrider_testkit::smtp::{Script, ScriptedSmtp};
use uuid::Uuid;

/// The relay, and the channel in front of it.
pub(crate) struct Post {
    pub(crate) relay: ScriptedSmtp,
    pub(crate) channel: EmailChannel,
    pub(crate) clock: SystemClock,
}

impl Post {
    /// A relay that follows `script`, in clear, and the channel's defaults.
    pub(crate) async fn open(script: Script) -> Self {
        Self::configured(script, |config| config).await
    }

    /// The same with other settings.
    pub(crate) async fn configured(script: Script, adjust: impl FnOnce(EmailConfig) -> EmailConfig) -> Self {
        let relay = ScriptedSmtp::start(script).await.unwrap();
        let config = EmailConfig::new("127.0.0.1", relay.port(), "Shop <shop@example.com>").tls(TlsMode::None);
        let channel = EmailChannel::new(adjust(config)).unwrap();
        Self { relay, channel, clock: SystemClock::new() }
    }

    /// One attempt at `row`.
    pub(crate) async fn deliver(&self, row: &OutboxRow) -> Outcome {
        self.deliver_with(row, &PointOfNoReturn::new()).await
    }

    /// One attempt with a point of no return of the test's own.
    pub(crate) async fn deliver_with(&self, row: &OutboxRow, point: &PointOfNoReturn) -> Outcome {
        let root = TenantId::ROOT;
        self.channel.deliver(Delivery::new(OutboxView::new(row, &root), &self.clock, point)).await
    }
}

/// Every phase with the same short limit.
pub(crate) fn short() -> Timeouts {
    Timeouts::uniform(Duration::from_millis(80))
}

/// An e-mail row to jane@example.com.
pub(crate) fn row() -> OutboxRow {
    numbered(1)
}

/// An e-mail row with its own id.
pub(crate) fn numbered(number: u128) -> OutboxRow {
    let at = Timestamp::parse("2026-03-01T10:00:00Z").unwrap();
    let mut row = OutboxRow::new(OutboxId::from(Uuid::from_u128(number)), "email", "jane", "jane@example.com", at);
    row.subject = Some("Hello".into());
    row.body = Some("Your order is on its way.\n".into());
    row
}

/// The same row with copies.
pub(crate) fn row_with_copies<const N: usize>(copies: [&str; N]) -> OutboxRow {
    let mut row = row();
    row.cc_addresses = copies.map(str::to_owned).to_vec();
    row
}

/// What a channel says to a row before it is written.
pub(crate) fn check(channel: &dyn Channel, row: &OutboxRow) -> postrider::Result<()> {
    channel.check(OutboxView::new(row, &TenantId::ROOT))
}

#[track_caller]
pub(crate) fn sent(outcome: Outcome) -> Sent {
    match outcome {
        Outcome::Sent(sent) => sent,
        other => panic!("not sent: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn retry(outcome: Outcome) -> Retry {
    match outcome {
        Outcome::Retry(retry) => retry,
        other => panic!("not to be tried again: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn reject(outcome: Outcome) -> Reject {
    match outcome {
        Outcome::Reject(reject) => reject,
        other => panic!("not rejected: {other:?}"),
    }
}

/// Scope and blame of an outcome that is to be tried again.
#[track_caller]
pub(crate) fn scope(outcome: Outcome) -> (FailureScope, Blame) {
    let retry = retry(outcome);
    (retry.scope, retry.blame)
}

/// The states of a ledger in its order.
pub(crate) fn states(ledger: &Ledger) -> Vec<(Role, &str, AddressState)> {
    ledger.entries().iter().map(|entry| (entry.role, entry.address.as_str(), entry.state)).collect()
}
