//! E-mail over SMTP to one relay.
//!
//! | file | what it does |
//! |---|---|
//! | `config` | the settings, and their defaults |
//! | `settle` | what is refused at start |
//! | `mailbox` | `Name <address>` |
//! | `header` | header fields that fold |
//! | `mail` | what a row asks for, read and checked |
//! | `message` | the bytes that follow DATA, the same on every attempt |
//! | `attempt` | one row through one conversation, with a result per address |
//! | `put_off` | the copies at which the relay ends the conversation |
//! | `health` | whether the relay works, logged once when that changes |
//! | `probe` | a look at the relay without a mail |
//! | `results` | what an answer makes of an address and of a row |
//! | `smtp/` | the conversation itself and the pool of connections |
//!
//! The relay is one host: no MX look-up is made, so a refusal of the session is the relay's and
//! never a recipient's. Secrets, addresses and bodies are not logged.

mod attempt;
mod config;
mod header;
mod health;
pub(crate) mod mail;
pub(crate) mod mailbox;
pub(crate) mod message;
mod probe;
mod put_off;
mod results;
mod settle;
mod smtp;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider::Result;
use postrider::channel::{Channel, Delivery};
use postrider::model::{InDoubtPolicy, OutboxView, Outcome};
use postrider::policy::RetryPolicy;

pub use config::{Credentials, EmailConfig, Timeouts, TlsMode};
pub use probe::RelayReport;

use health::Health;
use mail::{Mail, Unsendable};
use mailbox::Mailbox;
use message::Message;
use smtp::pool::Pool;

/// The name of the e-mail channel in a row's `channel` column.
pub(crate) const NAME: &str = "email";

/// The channel `email`: hands messages to one relay over SMTP.
///
/// Every attempt of one row sends the same bytes with the same Message-ID,
/// `<idempotency key@domain>`, so that copies can be recognised; a resend of a row that was SENT
/// has a key of its own. Date is the time at which the row was written.
///
/// To is asked for first; a copy (CC) that is refused never stops the mail, and one refused for
/// now is tried again alone. The result of each address is in the outcome's ledger.
pub struct EmailChannel {
    pool: Pool,
    health: Health,
    from: Mailbox,
    message_id_domain: String,
    deadline: Duration,
    retry_policy: RetryPolicy,
    in_doubt_policy: InDoubtPolicy,
}

impl EmailChannel {
    /// Checks the settings and makes the channel. No connection is opened yet.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the setting and
    /// the remedy.
    pub fn new(config: EmailConfig) -> Result<Self> {
        let settled = config.settle()?;
        let health = Health::new(format!("{}:{}", settled.relay.host, settled.relay.port));
        Ok(Self {
            health,
            pool: Pool::new(settled.relay, settled.pool_size),
            from: settled.from,
            message_id_domain: settled.message_id_domain,
            deadline: settled.deadline,
            retry_policy: settled.retry_policy,
            in_doubt_policy: settled.in_doubt_policy,
        })
    }

    fn build(&self, mail: &Mail, row: OutboxView<'_>) -> Result<Message, Unsendable> {
        Message::build(mail, row, &self.from, &self.message_id_domain)
    }
}

impl fmt::Debug for EmailChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("EmailChannel");
        out.field("message_id_domain", &self.message_id_domain)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Channel for EmailChannel {
    fn name(&self) -> &str {
        NAME
    }

    fn check(&self, row: OutboxView<'_>) -> Result<()> {
        check(row, &self.from, &self.message_id_domain)
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(attempt::attempt(self, delivery))
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.retry_policy.clone()
    }

    fn in_doubt_policy(&self) -> InDoubtPolicy {
        self.in_doubt_policy
    }
}

/// What an e-mail row must hold, whoever delivers it: addresses that parse, header texts of one
/// line, a payload that can be read, and a message that can go over the wire.
///
/// # Errors
/// [`ErrorKind::Invalid`](postrider::ErrorKind::Invalid), naming what is wrong.
pub(crate) fn check(row: OutboxView<'_>, sender: &Mailbox, message_id_domain: &str) -> Result<()> {
    let message = Mail::read(row).and_then(|mail| Message::build(&mail, row, sender, message_id_domain));
    message.map(drop).map_err(Unsendable::into_error)
}
