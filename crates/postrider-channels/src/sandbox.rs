//! The sandbox: stands in for any channel that has no provider, and delivers nowhere.
//!
//! Where it stands: registered under the name of the channel that it replaces, so that a laptop or
//! a test environment runs the whole flow. It refuses what the real channel would refuse, and
//! builds an e-mail to the last byte, so that a row that cannot be sent is found here too. It must
//! not open a connection. Its rows say so: `provider` is `sandbox`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider::Result;
use postrider::channel::{Channel, Delivery};
use postrider::model::{AddressState, InDoubtPolicy, Ledger, LedgerEntry, OutboxView, Outcome, Sent};
use postrider::policy::RetryPolicy;

use crate::email;
use crate::email::mail::{Mail, Unsendable};
use crate::email::mailbox::Mailbox;
use crate::email::message::Message;

/// The name under which the sandbox's deliveries are recorded.
const PROVIDER: &str = "sandbox";

/// The domain of a sandboxed e-mail's Message-ID and sender: reserved, so that it is nobody's.
const DOMAIN: &str = "sandbox.invalid";

/// A channel without a provider.
///
/// Under the name `email` it checks and builds rows as [`EmailChannel`](crate::EmailChannel) does.
#[derive(Debug, Clone)]
pub struct SandboxChannel {
    name: String,
    replaced: Option<Arc<dyn Channel>>,
}

impl SandboxChannel {
    /// A sandbox under that name. The registry checks the name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), replaced: None }
    }

    /// A sandbox in the place of `channel`: under its name, with its check and its policies.
    #[must_use]
    pub fn in_place_of(channel: Arc<dyn Channel>) -> Self {
        Self { name: channel.name().to_owned(), replaced: Some(channel) }
    }

    fn take(&self, delivery: Delivery<'_>) -> Outcome {
        let ledger = if self.name == email::NAME {
            match take_mail(delivery) {
                Ok(ledger) => Some(ledger),
                Err(outcome) => return outcome,
            }
        } else {
            None
        };
        Outcome::Sent(Sent {
            provider: Some(PROVIDER.into()),
            provider_message_id: Some(format!("{PROVIDER}-{}", delivery.idempotency_key())),
            ledger,
        })
    }
}

/// Reads and builds an e-mail as if it were to be sent; every address then counts as accepted.
fn take_mail(delivery: Delivery<'_>) -> Result<Ledger, Outcome> {
    let row = delivery.row();
    let mail = Mail::read(row).map_err(Unsendable::into_outcome)?;
    let sender = sender().map_err(|error| Unsendable::Content(error).into_outcome())?;
    Message::build(&mail, row, &sender, DOMAIN).map_err(Unsendable::into_outcome)?;
    let mut ledger = row.state().recipients.clone().unwrap_or_default();
    for addressee in &mail.addressees {
        ledger.record(LedgerEntry {
            address: addressee.text.clone(),
            role: addressee.role,
            state: AddressState::Accepted,
            at: delivery.clock().now(),
            reply: None,
        });
    }
    Ok(ledger)
}

/// Who sends a sandboxed e-mail.
fn sender() -> Result<Mailbox> {
    Mailbox::parse(&format!("{PROVIDER}@{DOMAIN}"))
}

impl Channel for SandboxChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, row: OutboxView<'_>) -> Result<()> {
        if self.name == email::NAME {
            email::check(row, &sender()?, DOMAIN)?;
        }
        self.replaced.as_ref().map_or(Ok(()), |channel| channel.check(row))
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { self.take(delivery) })
    }

    fn deadline(&self) -> Duration {
        self.replaced.as_ref().map_or(Duration::from_secs(60), |channel| channel.deadline())
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.replaced.as_ref().map_or_else(RetryPolicy::default, |channel| channel.retry_policy())
    }

    fn in_doubt_policy(&self) -> InDoubtPolicy {
        self.replaced.as_ref().map_or_else(InDoubtPolicy::default, |channel| channel.in_doubt_policy())
    }
}
