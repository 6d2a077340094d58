//! A look at the relay without a mail: as far as a message would come before MAIL.
//!
//! Where it stands: for a person who wants to know whether the settings are right. It opens a
//! connection of its own, beside the pool, and says goodbye. Its errors name the remedy.

use std::fmt;
use std::time::Duration;

use postrider::model::{Blame, Clock};
use postrider::{Error, ErrorKind, Result};

use super::EmailChannel;
use super::config::TlsMode;
use super::smtp::classify::{Phase, Verdict};
use super::smtp::failure::{Cause, Failure};
use super::smtp::session::Session;

/// What a look at the relay found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayReport {
    /// The relay, as `host:port`.
    pub relay: String,
    /// True if TLS protects the connection.
    pub encrypted: bool,
    /// True if a login is configured, which the relay then took.
    pub logged_in: bool,
    /// True if the relay offers AUTH PLAIN or LOGIN.
    pub offers_login: bool,
    /// The most octets of a message, if the relay names a limit.
    pub size_limit: Option<u64>,
}

impl fmt::Display for RelayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the relay {} answers", self.relay)?;
        f.write_str(if self.encrypted { ", encrypted" } else { ", not encrypted" })?;
        match (self.logged_in, self.offers_login) {
            (true, _) => f.write_str(", and takes the login"),
            (false, true) => f.write_str("; it offers a login, and none is configured"),
            (false, false) => f.write_str("; no login"),
        }
    }
}

impl EmailChannel {
    /// Connects, encrypts and logs in as for a message, sends none, and closes the connection.
    ///
    /// Each step may take `limit`, or less where the settings say so.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] where a setting has to be changed (login refused, STARTTLS not
    /// offered), [`ErrorKind::Transient`] otherwise; the message names the relay, what happened
    /// and the remedy. It may hold the relay's own words: do not log it.
    ///
    /// # Cancel safety
    /// Safe: dropping the future closes the connection.
    pub async fn probe(&self, clock: &dyn Clock, limit: Duration) -> Result<RelayReport> {
        let relay = self.pool.relay();
        let session = Session::open(relay, relay.timeouts.at_most(limit), clock).await;
        let session = session.map_err(|failure| self.explain(&failure))?;
        let abilities = session.abilities();
        let report = RelayReport {
            relay: self.health.relay().to_owned(),
            encrypted: session.is_encrypted(),
            logged_in: relay.credentials.is_some(),
            offers_login: abilities.auth_plain || abilities.auth_login,
            size_limit: abilities.size.flatten().filter(|limit| *limit > 0),
        };
        session.quit(clock).await;
        Ok(report)
    }

    fn explain(&self, failure: &Failure) -> Error {
        let kind = match failure.verdict() {
            Verdict::Retry(_, Blame::Configuration) | Verdict::Reject(Blame::Configuration) => ErrorKind::Configuration,
            _ => ErrorKind::Transient,
        };
        let relay = self.health.relay();
        let remedy = remedy(failure, self.pool.relay().mode);
        Error::new(kind, format!("the relay {relay} cannot be used: {}; {remedy}", failure.text()))
    }
}

/// What a person can do.
fn remedy(failure: &Failure, mode: TlsMode) -> &'static str {
    match (&failure.cause, failure.phase) {
        (Cause::Unresolved(_), _) => "check the name in `host`, and that this machine can resolve names",
        (Cause::Unreachable(_), _) | (Cause::TimedOut(_), Phase::Connect) => {
            "check `host` and `port`, that the relay runs, and that no firewall is between"
        }
        (Cause::TimedOut(_) | Cause::Lost(_) | Cause::Malformed(_), Phase::Greeting) if mode != TlsMode::Implicit => {
            "if the port speaks TLS from the first byte (465 does), set `tls` to implicit"
        }
        (Cause::Handshake(error), _) if speaks_clear(error) => {
            "the port does not speak TLS from the first byte: set `tls` to starttls, usually with port 587"
        }
        (Cause::Handshake(_), _) => {
            "if the relay has a certificate of a private authority, name that in `ca_file`; `host` must be a name \
             in the certificate"
        }
        (Cause::NotOffered(_), Phase::StartTls) => {
            "check `port` (587 is usual); for TLS from the first byte, usually on port 465, set `tls` to implicit"
        }
        (Cause::NotOffered(_), _) => "ask whoever runs the relay which login it takes, or use another port",
        (Cause::LoginInClear, _) => "set `tls` to starttls or implicit",
        (Cause::Refused(_), Phase::Auth) => "check `username` and the password",
        (Cause::Refused(_), _) => "ask whoever runs the relay whether it lets this machine send",
        _ => "try again; if it stays so, ask whoever runs the relay",
    }
}

/// True if the peer's first bytes were no TLS.
fn speaks_clear(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidMessage(_)))
}
