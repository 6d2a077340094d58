//! From nothing to a server that is ready for MAIL: greeting, EHLO, STARTTLS, AUTH.
//!
//! Where it stands: opened by the pool, used by `transaction`. It must not send a password in
//! clear unless that was allowed, must not go on in clear where TLS is required, and must forget
//! what a server said before TLS.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use postrider::model::Clock;

use super::ability::Abilities;
use super::classify::Phase;
use super::failure::{Cause, Failure};
use super::reply::Reply;
use super::stream::Wire;
use super::tls::TlsSetup;
use crate::email::config::{Credentials, Timeouts, TlsMode};

/// Time for what decides only about the connection: a last word, RSET, QUIT.
pub(super) const TIDY_UP: Duration = Duration::from_secs(5);

/// The code with which a server says that it closes the connection.
const CLOSING: u16 = 421;

/// Everything that a connection to the relay needs; checked.
#[derive(Debug)]
pub(crate) struct Relay {
    /// A DNS name in ASCII, or an IP address.
    pub(crate) host: String,
    /// The TCP port.
    pub(crate) port: u16,
    /// When TLS begins.
    pub(crate) mode: TlsMode,
    /// How TLS is spoken.
    pub(crate) tls: TlsSetup,
    /// The login, if the relay wants one.
    pub(crate) credentials: Option<Credentials>,
    /// Whether the login may be sent in clear to a host that is not this machine.
    pub(crate) allow_cleartext: bool,
    /// The name in EHLO; our address as a literal if there is none.
    pub(crate) ehlo_name: Option<String>,
    /// The time limit of each phase.
    pub(crate) timeouts: Timeouts,
}

/// A conversation with the relay that has come as far as MAIL.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) wire: Wire,
    pub(super) timeouts: Timeouts,
    abilities: Abilities,
}

impl Session {
    /// Connects, greets, encrypts and logs in, as far as the relay's configuration asks for it,
    /// within `timeouts`.
    ///
    /// # Errors
    /// [`Failure`], naming the phase; the connection is closed.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub(crate) async fn open(relay: &Relay, timeouts: Timeouts, clock: &dyn Clock) -> Result<Self, Failure> {
        let during_connect = |cause: Cause| cause.during(Phase::Connect);
        let mut wire = Wire::connect(&relay.host, relay.port, timeouts.connect, clock).await.map_err(during_connect)?;
        if relay.mode == TlsMode::Implicit {
            wire = wire.encrypt(&relay.tls, timeouts.connect, clock).await.map_err(during_connect)?;
        }
        let mut session = Self { wire, timeouts, abilities: Abilities::default() };
        let greeting = session.answer(Phase::Greeting, timeouts.greeting, clock).await?;
        positive(Phase::Greeting, greeting)?;
        session.hello(relay, clock).await?;
        session = session.start_tls(relay, clock).await?;
        if let Some(credentials) = &relay.credentials {
            session.log_in(credentials, relay.allow_cleartext, clock).await?;
        }
        tracing::debug!(
            encrypted = session.wire.is_encrypted(),
            pipelining = session.abilities.pipelining,
            enhanced_status_codes = session.abilities.enhanced_status_codes,
            smtputf8 = session.abilities.smtputf8,
            "connected to the relay"
        );
        Ok(session)
    }

    /// True if TLS protects the connection.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.wire.is_encrypted()
    }

    /// What the server offers, as it said last.
    pub(crate) fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Sends one command line (without its end) and waits for the reply.
    pub(super) async fn ask(
        &mut self,
        phase: Phase,
        line: &str,
        limit: Duration,
        clock: &dyn Clock,
    ) -> Result<Reply, Failure> {
        let bytes = [line.as_bytes(), b"\r\n"].concat();
        self.say(phase, &bytes, limit, clock).await?;
        self.answer(phase, limit, clock).await
    }

    /// Writes bytes. A reply that lies there already answers nothing that was asked: with it the
    /// conversation ends. A server that has gone may have said why: a refusal that it left is the
    /// reason.
    pub(super) async fn say(
        &mut self,
        phase: Phase,
        bytes: &[u8],
        limit: Duration,
        clock: &dyn Clock,
    ) -> Result<(), Failure> {
        if !self.wire.is_drained() {
            return Err(match self.wire.reply(TIDY_UP, clock).await {
                Ok(goodbye) if goodbye.code() == CLOSING => Cause::Refused(goodbye),
                _ => Cause::Unasked,
            }
            .during(phase));
        }
        let Err(cause) = self.wire.write(bytes, limit, clock).await else { return Ok(()) };
        if !matches!(cause, Cause::Lost(_)) {
            return Err(cause.during(phase));
        }
        match self.wire.reply(TIDY_UP, clock).await {
            Ok(refusal) if refusal.is_negative() => Err(Cause::Refused(refusal).during(phase)),
            _ => Err(cause.during(phase)),
        }
    }

    /// Waits for a reply; 421 is a failure wherever it comes, since the connection ends with it.
    pub(super) async fn answer(&mut self, phase: Phase, limit: Duration, clock: &dyn Clock) -> Result<Reply, Failure> {
        let reply = self.wire.reply(limit, clock).await.map_err(|cause| cause.during(phase))?;
        if reply.code() == CLOSING { Err(Cause::Refused(reply).during(phase)) } else { Ok(reply) }
    }

    /// EHLO, or HELO where the server does not know EHLO. Source: RFC 5321 §3.2.
    async fn hello(&mut self, relay: &Relay, clock: &dyn Clock) -> Result<(), Failure> {
        let name = relay.ehlo_name.clone().unwrap_or_else(|| self.wire.address_literal());
        let limit = self.timeouts.command;
        let reply = self.ask(Phase::Hello, &format!("EHLO {name}"), limit, clock).await?;
        if matches!(reply.code(), 500 | 502) {
            self.abilities = Abilities::default();
            let reply = self.ask(Phase::Hello, &format!("HELO {name}"), limit, clock).await?;
            return positive(Phase::Hello, reply).map(drop);
        }
        self.abilities = Abilities::read(&positive(Phase::Hello, reply)?);
        Ok(())
    }

    /// STARTTLS where the mode asks for it, then EHLO anew. Source: RFC 3207 §4.2.
    async fn start_tls(mut self, relay: &Relay, clock: &dyn Clock) -> Result<Self, Failure> {
        match (relay.mode, self.abilities.starttls) {
            (TlsMode::None | TlsMode::Implicit, _) | (TlsMode::Opportunistic, false) => {
                return Ok(self);
            }
            (TlsMode::StartTls, false) => {
                return Err(Cause::NotOffered("STARTTLS").during(Phase::StartTls));
            }
            (TlsMode::StartTls | TlsMode::Opportunistic, true) => {}
        }
        let reply = self.ask(Phase::StartTls, "STARTTLS", self.timeouts.command, clock).await?;
        positive(Phase::StartTls, reply)?;
        let limit = self.timeouts.connect;
        self.wire = self.wire.encrypt(&relay.tls, limit, clock).await.map_err(|cause| cause.during(Phase::StartTls))?;
        self.hello(relay, clock).await?;
        Ok(self)
    }

    /// AUTH PLAIN, or LOGIN where only that is offered. Source: RFC 4954, RFC 4616.
    async fn log_in(
        &mut self,
        credentials: &Credentials,
        allow_cleartext: bool,
        clock: &dyn Clock,
    ) -> Result<(), Failure> {
        if !may_log_in(self.wire.is_encrypted(), self.wire.is_loopback(), allow_cleartext) {
            return Err(Cause::LoginInClear.during(Phase::Auth));
        }
        let limit = self.timeouts.command;
        let (username, password) = (credentials.username(), credentials.password());
        let reply = if self.abilities.auth_plain {
            let response = BASE64.encode(format!("\0{username}\0{password}"));
            self.ask(Phase::Auth, &format!("AUTH PLAIN {response}"), limit, clock).await?
        } else if self.abilities.auth_login {
            let mut reply = self.ask(Phase::Auth, "AUTH LOGIN", limit, clock).await?;
            for answer in [username, password] {
                if !reply.is_intermediate() {
                    break;
                }
                reply = self.ask(Phase::Auth, &BASE64.encode(answer), limit, clock).await?;
            }
            reply
        } else {
            return Err(Cause::NotOffered("AUTH PLAIN or AUTH LOGIN").during(Phase::Auth));
        };
        positive(Phase::Auth, reply).map(drop)
    }
}

/// The reply if it is 2yz.
pub(super) fn positive(phase: Phase, reply: Reply) -> Result<Reply, Failure> {
    if reply.is_positive() { Ok(reply) } else { Err(Cause::Refused(reply).during(phase)) }
}

/// A password leaves this machine encrypted, or by leave.
fn may_log_in(is_encrypted: bool, is_loopback: bool, allow_cleartext: bool) -> bool {
    is_encrypted || is_loopback || allow_cleartext
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_leaves_this_machine_encrypted_or_by_leave() {
        assert!(!may_log_in(false, false, false));
        assert!(may_log_in(true, false, false));
        assert!(may_log_in(false, true, false));
        assert!(may_log_in(false, false, true));
    }
}
