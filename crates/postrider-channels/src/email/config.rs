//! The settings of the e-mail channel, and what is refused before a single row is taken.
//!
//! Where it stands: filled by the application, settled once by [`EmailChannel::new`]. Every
//! refusal names the setting and the remedy. It must not read files or the environment.
//!
//! [`EmailChannel::new`]: super::EmailChannel::new

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use postrider::model::{InDoubtPolicy, MailAddress};
use postrider::policy::RetryPolicy;
use postrider::{Error, ErrorKind, Result};

use super::mailbox::Mailbox;
use super::smtp::session::Relay;
use super::smtp::tls::TlsSetup;

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

    fn named(&self) -> [(&'static str, Duration); 9] {
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
    host: String,
    port: u16,
    from: String,
    tls: TlsMode,
    credentials: Option<Credentials>,
    allow_cleartext: bool,
    message_id_domain: Option<String>,
    ehlo_name: Option<String>,
    extra_roots: Vec<String>,
    timeouts: Timeouts,
    deadline: Duration,
    retry_policy: RetryPolicy,
    in_doubt_policy: InDoubtPolicy,
    pool_size: usize,
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

    /// Checks everything.
    pub(crate) fn settle(self) -> Result<Settled> {
        let from = Mailbox::parse(&self.from)
            .map_err(|cause| misconfigured("from", &cause.to_string(), "write 'Name <address>'").caused_by(cause))?;
        let message_id_domain = match &self.message_id_domain {
            Some(domain) => full_name("message_id_domain", domain)?,
            None => full_name("message_id_domain", from.address().ascii_domain())?,
        };
        let host = relay_host(&self.host)?;
        if self.port == 0 {
            return Err(misconfigured("port", "is 0", "give the relay's port, usually 587 or 465"));
        }
        if self.tls == TlsMode::None && !is_this_machine(&host) && !self.allow_cleartext {
            return Err(misconfigured(
                "tls",
                &format!("is off, and the relay {host} is another machine"),
                "use STARTTLS or implicit TLS, or allow clear text",
            ));
        }
        if let Some(login) = &self.credentials
            && (login.username.is_empty() || login.username.contains('\0') || login.password.contains('\0'))
        {
            return Err(misconfigured("credentials", "are empty or hold a NUL character", "give a user name and a password"));
        }
        if self.pool_size == 0 || self.pool_size > 1_000 {
            return Err(misconfigured("pool_size", &format!("is {}", self.pool_size), "give 1 to 1,000"));
        }
        for (name, limit) in self.timeouts.named() {
            if limit.is_zero() || limit > self.deadline {
                return Err(misconfigured(
                    name,
                    &format!("is {limit:?}, and a whole delivery may take {:?}", self.deadline),
                    "give more than zero and at most the deadline",
                ));
            }
        }
        let ehlo_name = self.ehlo_name.as_deref().map(|name| full_name("ehlo_name", name)).transpose()?;
        let relay = Relay {
            tls: TlsSetup::new(&host, &self.extra_roots)?,
            host,
            port: self.port,
            mode: self.tls,
            credentials: self.credentials,
            allow_cleartext: self.allow_cleartext,
            ehlo_name,
            timeouts: self.timeouts,
        };
        Ok(Settled {
            relay,
            from,
            message_id_domain,
            deadline: self.deadline,
            retry_policy: self.retry_policy,
            in_doubt_policy: self.in_doubt_policy,
            pool_size: self.pool_size,
        })
    }
}

/// Settings that were checked.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) relay: Relay,
    pub(crate) from: Mailbox,
    pub(crate) message_id_domain: String,
    pub(crate) deadline: Duration,
    pub(crate) retry_policy: RetryPolicy,
    pub(crate) in_doubt_policy: InDoubtPolicy,
    pub(crate) pool_size: usize,
}

/// An error that names the setting, what is wrong with it, and what to do.
pub(crate) fn misconfigured(setting: &str, why: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("the e-mail setting {setting}: {why}; {remedy}"))
}

/// A fully qualified domain name in A-labels, or an address literal. Case C19.
fn full_name(setting: &str, name: &str) -> Result<String> {
    let remedy = "give a full domain name such as mail.example.com, or an address literal such as [192.0.2.1]";
    let refused = |why: &str| misconfigured(setting, &format!("{name:?} {why}"), remedy);
    // The rules for a host are those for the domain of an address.
    let checked = MailAddress::parse(&format!("postmaster@{name}"))
        .map_err(|cause| refused("is no domain name").caused_by(cause))?;
    let domain = checked.ascii_domain();
    if domain.starts_with('[') {
        return Ok(domain.to_owned());
    }
    if domain.parse::<IpAddr>().is_ok() {
        return Err(refused("is an IP address without its brackets"));
    }
    if name.contains('@') || !domain.contains('.') {
        return Err(refused("is not fully qualified"));
    }
    Ok(domain.to_owned())
}

/// An IP address, or a DNS name in ASCII.
fn relay_host(host: &str) -> Result<String> {
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    if bare.parse::<IpAddr>().is_ok() || (host.is_ascii() && !host.is_empty()) {
        return Ok(bare.to_owned());
    }
    let refused = misconfigured("relay host", &format!("{host:?} is no name of a host"), "give a DNS name or an IP address");
    match MailAddress::parse(&format!("postmaster@{host}")) {
        Ok(checked) => Ok(checked.ascii_domain().to_owned()),
        Err(cause) => Err(refused.caused_by(cause)),
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> EmailConfig {
        EmailConfig::new("relay.example.com", 587, "Shop <shop@example.com>")
    }

    fn refusal(config: EmailConfig) -> String {
        let error = config.settle().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    }

    /// Case C14: never `localhost` on the right-hand side. Case C19: never the machine's own name.
    #[test]
    fn names_are_full_domain_names_or_address_literals() {
        for bad in ["GRÜN-PC", "my_host", "localhost", "host.local.", "", "192.0.2.1", "a@example.com", "exa mple.com", "a..b"] {
            assert!(refusal(config().ehlo_name(bad)).contains("ehlo_name"), "{bad:?}");
            assert!(refusal(config().message_id_domain(bad)).contains("message_id_domain"), "{bad:?}");
        }
        for (given, kept) in [
            ("app.example.com", "app.example.com"),
            ("grün.example", "xn--grn-hoa.example"),
            ("[192.0.2.1]", "[192.0.2.1]"),
            ("[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"),
        ] {
            let settled = config().ehlo_name(given).message_id_domain(given).settle().unwrap();
            assert_eq!(settled.relay.ehlo_name.as_deref(), Some(kept));
            assert_eq!(settled.message_id_domain, kept);
        }
        assert_eq!(config().settle().unwrap().message_id_domain, "example.com");
        assert!(refusal(EmailConfig::new("localhost", 25, "me@localhost")).contains("message_id_domain"));
    }

    #[test]
    fn clear_text_needs_this_machine_or_leave() {
        let clear = |host: &str| EmailConfig::new(host, 25, "shop@example.com").tls(TlsMode::None);
        for host in ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"] {
            assert!(clear(host).settle().is_ok(), "{host}");
        }
        for host in ["relay.example.com", "192.0.2.1", "localhost.example.com"] {
            assert!(refusal(clear(host)).contains("allow clear text"), "{host}");
            assert!(clear(host).allow_cleartext().settle().is_ok(), "{host}");
        }
    }

    /// Case C20: a phase that outlasts the delivery is a mistake.
    #[test]
    fn a_phase_longer_than_the_whole_delivery_is_refused_by_name() {
        let short = config().deadline(Duration::from_secs(599));
        assert!(refusal(short).contains("timeouts.data_end"));
        assert!(refusal(config().timeouts(Timeouts::uniform(Duration::ZERO))).contains("timeouts.slot"));
        assert!(config().settle().is_ok());
    }

    #[test]
    fn every_other_setting_is_refused_by_name_too() {
        for (config, name) in [
            (EmailConfig::new("relay.example.com", 587, "Shop shop@example.com"), "from"),
            (EmailConfig::new("", 587, "shop@example.com"), "relay host"),
            (EmailConfig::new("rel ay", 587, "shop@example.com"), "relay host"),
            (EmailConfig::new("relay.example.com", 0, "shop@example.com"), "port"),
            (config().pool_size(0), "pool_size"),
            (config().credentials(Credentials::new("", "x")), "credentials"),
            (config().credentials(Credentials::new("a\0b", "x")), "credentials"),
            (config().extra_roots_pem("none"), "extra root certificates"),
        ] {
            assert!(refusal(config).contains(name), "{name}");
        }
        assert_eq!(EmailConfig::new("bücher.example", 587, "a@b.example").settle().unwrap().relay.host, "xn--bcher-kva.example");
    }

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", config().credentials(Credentials::new("user", "hunter2")));
        assert!(shown.contains("user") && !shown.contains("hunter2"));
    }
}
