//! The settings of the e-mail channel, and their defaults.
//!
//! Where it stands: filled by the application, checked once by [`EmailChannel::new`] (see
//! `settle`). It must not check anything by itself, and must not read files or the environment.
//!
//! [`EmailChannel::new`]: super::EmailChannel::new

use std::fmt;
use std::time::Duration;

use postrider::model::InDoubtPolicy;
use postrider::policy::RetryPolicy;

/// When TLS begins on a connection to the relay. Certificates are verified in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsMode {
    /// Never. For a relay on this machine only, unless [`EmailConfig::allow_cleartext`] is set.
    None,
    /// By STARTTLS, and nothing is sent where the relay does not offer it. Usually port 587.
    StartTls,
    /// From the first byte. Usually port 465. Source: RFC 8314 §3.3.
    Implicit,
    /// By STARTTLS where it is offered, in clear where not: whoever sits on the path can read it.
    Opportunistic,
}

/// A login for the relay. Its password is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    username: String,
    password: String,
}

impl Credentials {
    /// A user name and a password.
    #[must_use]
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: username.into(), password: password.into() }
    }

    pub(crate) fn username(&self) -> &str {
        &self.username
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// The time limit of each phase of a conversation. Source of the defaults: RFC 5321 §4.5.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Waiting for a connection of the pool: 2 minutes.
    pub slot: Duration,
    /// The name look-up, each address of the relay, and the TLS handshake, each: 30 seconds.
    pub connect: Duration,
    /// The server's first reply: 5 minutes.
    pub greeting: Duration,
    /// EHLO, STARTTLS and each step of AUTH: 5 minutes.
    pub command: Duration,
    /// MAIL: 5 minutes.
    pub mail: Duration,
    /// Each RCPT: 5 minutes.
    pub recipient: Duration,
    /// The reply to DATA: 2 minutes.
    pub data_start: Duration,
    /// Each block of the message: 3 minutes.
    pub data_block: Duration,
    /// The reply to the final dot: 10 minutes. Shorter limits make copies: a server may have taken
    /// the message while it is still busy with it.
    pub data_end: Duration,
}

impl Timeouts {
    /// The same limit for every phase.
    #[must_use]
    pub fn uniform(limit: Duration) -> Self {
        Self {
            slot: limit,
            connect: limit,
            greeting: limit,
            command: limit,
            mail: limit,
            recipient: limit,
            data_start: limit,
            data_block: limit,
            data_end: limit,
        }
    }

    /// The same limits, none longer than `most`.
    pub(super) fn at_most(self, most: Duration) -> Self {
        Self {
            slot: self.slot.min(most),
            connect: self.connect.min(most),
            greeting: self.greeting.min(most),
            command: self.command.min(most),
            mail: self.mail.min(most),
            recipient: self.recipient.min(most),
            data_start: self.data_start.min(most),
            data_block: self.data_block.min(most),
            data_end: self.data_end.min(most),
        }
    }

    /// Each limit under the name of its setting.
    pub(super) fn named(&self) -> [(&'static str, Duration); 9] {
        [
            ("timeouts.slot", self.slot),
            ("timeouts.connect", self.connect),
            ("timeouts.greeting", self.greeting),
            ("timeouts.command", self.command),
            ("timeouts.mail", self.mail),
            ("timeouts.recipient", self.recipient),
            ("timeouts.data_start", self.data_start),
            ("timeouts.data_block", self.data_block),
            ("timeouts.data_end", self.data_end),
        ]
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            slot: minutes(2),
            connect: Duration::from_secs(30),
            greeting: minutes(5),
            command: minutes(5),
            mail: minutes(5),
            recipient: minutes(5),
            data_start: minutes(2),
            data_block: minutes(3),
            data_end: minutes(10),
        }
    }
}

/// The settings of an [`EmailChannel`](super::EmailChannel): the required ones as arguments, the
/// others with defaults. Nothing is checked before the channel is made.
#[derive(Debug, Clone)]
pub struct EmailConfig {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) from: String,
    pub(super) tls: TlsMode,
    pub(super) credentials: Option<Credentials>,
    pub(super) allow_cleartext: bool,
    pub(super) message_id_domain: Option<String>,
    pub(super) ehlo_name: Option<String>,
    pub(super) extra_roots: Vec<String>,
    pub(super) timeouts: Timeouts,
    pub(super) deadline: Duration,
    pub(super) retry_policy: RetryPolicy,
    pub(super) in_doubt_policy: InDoubtPolicy,
    pub(super) pool_size: usize,
}

impl EmailConfig {
    /// Settings for the relay at `host` (a DNS name or an IP address) and `port`, sending as
    /// `from`: `address` or `Name <address>`.
    ///
    /// Defaults: STARTTLS required, no login, Message-IDs in the domain of `from`, EHLO with the
    /// connection's own address, [`Timeouts::default`], 12 minutes in all, [`RetryPolicy::email`],
    /// [`InDoubtPolicy::Retry`], at most 4 connections.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16, from: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port,
            from: from.into(),
            tls: TlsMode::StartTls,
            credentials: None,
            allow_cleartext: false,
            message_id_domain: None,
            ehlo_name: None,
            extra_roots: Vec::new(),
            timeouts: Timeouts::default(),
            deadline: Duration::from_secs(12 * 60),
            retry_policy: RetryPolicy::email(),
            in_doubt_policy: InDoubtPolicy::default(),
            pool_size: 4,
        }
    }

    /// When TLS begins.
    #[must_use]
    pub fn tls(mut self, mode: TlsMode) -> Self {
        self.tls = mode;
        self
    }

    /// Logs in with AUTH PLAIN or LOGIN.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Lets messages and the login travel unencrypted to a relay on another machine.
    #[must_use]
    pub fn allow_cleartext(mut self) -> Self {
        self.allow_cleartext = true;
        self
    }

    /// The right-hand side of every Message-ID: a domain of the sender's, or an address literal.
    #[must_use]
    pub fn message_id_domain(mut self, domain: impl Into<String>) -> Self {
        self.message_id_domain = Some(domain.into());
        self
    }

    /// The name in EHLO: a fully qualified domain name or an address literal.
    #[must_use]
    pub fn ehlo_name(mut self, name: impl Into<String>) -> Self {
        self.ehlo_name = Some(name.into());
        self
    }

    /// Trusts the certificates in this PEM text too, for a relay with a private authority.
    #[must_use]
    pub fn extra_roots_pem(mut self, pem: impl Into<String>) -> Self {
        self.extra_roots.push(pem.into());
        self
    }

    /// The time limit of each phase; none may exceed the overall deadline.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The longest time for one delivery in all.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// When to try again after a failure.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// What becomes of a row whose final reply was lost.
    #[must_use]
    pub fn in_doubt_policy(mut self, policy: InDoubtPolicy) -> Self {
        self.in_doubt_policy = policy;
        self
    }

    /// How many connections there may be at once, in use and idle together.
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }
}
