//! Why a conversation could not go on: one type for refusals, broken connections and time limits.
//!
//! Where it stands: what every step of the session fails with; the attempt turns it into an
//! outcome. Its text is stored with the row: it names the phase and the reason, never a secret and
//! never an address of ours. It must not decide what was handed over: the attempt knows.

use std::io;
use std::time::Duration;

use postrider::model::text::storable_error;
use postrider::model::{Blame, FailureScope};

use super::classify::{Phase, UNEXPECTED, Verdict, classify};
use super::reply::{Reply, ReplyError};

/// A conversation that cannot go on.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Where it broke.
    pub(crate) phase: Phase,
    /// What broke it.
    pub(crate) cause: Cause,
}

/// What ends a conversation.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The server refused, or said goodbye (421).
    Refused(Reply),
    /// The relay's name has no address.
    Unresolved(io::Error),
    /// No address of the relay takes a connection.
    Unreachable(io::Error),
    /// TLS was not agreed on.
    Handshake(io::Error),
    /// Bytes came in clear behind the answer to STARTTLS (CVE-2011-0411).
    Injected,
    /// The connection broke.
    Lost(io::Error),
    /// The phase's time limit ran out.
    TimedOut(Duration),
    /// The server's bytes are no reply.
    Malformed(ReplyError),
    /// The server replied before it was asked: no later reply can be told from another's.
    Unasked,
    /// The server does not offer what the configuration asks for.
    NotOffered(&'static str),
    /// A password would have to be sent in clear.
    LoginInClear,
    /// All connections of the pool were busy for that long.
    PoolExhausted(Duration),
}

impl Cause {
    /// Says where it happened. Of a refused login the numbers are kept alone: some servers repeat
    /// the line that they refuse, and that line is the password.
    pub(crate) fn during(self, phase: Phase) -> Failure {
        let cause = match self {
            Self::Refused(reply) if phase == Phase::Auth || matches!(reply.code(), 534 | 535 | 538) => {
                Self::Refused(reply.without_words())
            }
            cause => cause,
        };
        Failure { phase, cause }
    }
}

impl Failure {
    /// What becomes of the row, provided that nothing was handed over.
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.cause {
            Cause::Refused(reply) => classify(self.phase, reply),
            Cause::NotOffered(_) if self.phase == Phase::Auth => {
                Verdict::Retry(FailureScope::Credential, Blame::Configuration)
            }
            Cause::LoginInClear => Verdict::Retry(FailureScope::Credential, Blame::Configuration),
            Cause::NotOffered(_) => Verdict::Retry(FailureScope::Destination, Blame::Configuration),
            Cause::Unresolved(_)
            | Cause::Unreachable(_)
            | Cause::Handshake(_)
            | Cause::Injected
            | Cause::Lost(_)
            | Cause::TimedOut(_)
            | Cause::Malformed(_)
            | Cause::Unasked => UNEXPECTED,
            // The relay was not asked: the limit is our own.
            Cause::PoolExhausted(_) => Verdict::Retry(FailureScope::Own, Blame::Nobody),
        }
    }

    /// True if a kept connection may simply have gone stale: its first command was not answered,
    /// or answered with a goodbye, a time-out or a wrong sequence. Case C17.
    pub(crate) fn may_be_staleness(&self) -> bool {
        self.phase == Phase::Mail
            && match &self.cause {
                Cause::Refused(reply) => matches!(reply.code(), 421 | 451 | 503),
                Cause::Lost(_) | Cause::Malformed(_) | Cause::Unasked => true,
                _ => false,
            }
    }

    /// The reason for a log: what happened, without the words of the peer.
    pub(crate) fn brief(&self) -> String {
        let phase = self.phase.name();
        match &self.cause {
            Cause::Refused(reply) if self.phase == Phase::Auth => format!("login refused ({})", reply.code()),
            Cause::Refused(reply) => format!("it answered {phase} with {}", reply.code()),
            Cause::Unresolved(_) => "its name cannot be resolved".to_owned(),
            Cause::Unreachable(error) => brief_io(error),
            Cause::Handshake(error) => format!("TLS failed: {error}"),
            Cause::Injected => "it sent more than one reply to STARTTLS".to_owned(),
            Cause::Lost(_) => format!("connection lost during {phase}"),
            Cause::TimedOut(limit) => format!("no answer within {limit:?} during {phase}"),
            Cause::Malformed(_) => format!("its answer during {phase} cannot be read"),
            Cause::Unasked => format!("it replied during {phase} before it was asked"),
            Cause::NotOffered(what) => format!("it does not offer {what}"),
            Cause::LoginInClear => "the login would travel unencrypted".to_owned(),
            Cause::PoolExhausted(limit) => format!("no connection of ours became free within {limit:?}"),
        }
    }

    /// The reason for people, as it is stored.
    pub(crate) fn text(&self) -> String {
        let phase = self.phase.name();
        storable_error(&match &self.cause {
            Cause::Refused(reply) => format!("the relay answered {phase} with: {}", reply.text()),
            Cause::Unresolved(error) => format!("the relay's name cannot be resolved: {error}"),
            Cause::Unreachable(error) => format!("the relay cannot be reached: {error}"),
            Cause::Handshake(error) => format!("TLS with the relay failed: {error}"),
            Cause::Injected => "the relay sent more than one reply to STARTTLS; the connection was not trusted".into(),
            Cause::Lost(error) => format!("the connection was lost during {phase}: {error}"),
            Cause::TimedOut(limit) => {
                format!("the relay did not answer within {limit:?} during {phase}")
            }
            Cause::Malformed(error) => {
                format!("the relay's answer during {phase} cannot be read: {error}")
            }
            Cause::Unasked => format!("the relay replied during {phase} before it was asked"),
            Cause::NotOffered(what) => format!("the relay does not offer {what}"),
            Cause::LoginInClear => "the login was not sent: the connection to the relay is not encrypted; \
                                    use STARTTLS or implicit TLS, or allow clear text"
                .into(),
            Cause::PoolExhausted(limit) => {
                format!("all our connections to the relay stayed in use for {limit:?}; no connection became free")
            }
        })
    }
}

/// The kind if the standard library has one, such as "connection refused".
fn brief_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Other => error.to_string(),
        kind if kind.to_string() == "uncategorized error" => error.to_string(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::reply;
    use super::*;

    /// Case C21 (c), C20: what says nothing about the row costs it no attempt.
    #[test]
    fn a_broken_connection_is_the_destinations_failure() {
        let lost = || io::Error::from(io::ErrorKind::UnexpectedEof);
        for cause in [
            Cause::Unresolved(lost()),
            Cause::Unreachable(lost()),
            Cause::Handshake(lost()),
            Cause::Lost(lost()),
            Cause::TimedOut(Duration::from_secs(1)),
            Cause::Malformed(ReplyError::NotAReply),
            Cause::Unasked,
        ] {
            let failure = cause.during(Phase::Connect);
            assert_eq!(failure.verdict(), Verdict::Retry(FailureScope::Destination, Blame::Nobody), "{failure:?}");
            assert!(!failure.text().is_empty());
        }
    }

    #[test]
    fn a_refused_login_keeps_none_of_the_servers_words() {
        for line in ["535 5.7.8 AHVzZXIAcGFzcw== is wrong", "421 4.7.0 AUTH PLAIN AHVzZXIAcGFzcw=="] {
            let failure = Cause::Refused(reply(format!("{line}\r\n").as_bytes())).during(Phase::Auth);
            let all = format!("{} {} {failure:?}", failure.text(), failure.brief());
            assert!(all.contains(&line[..9]) && !all.contains("AHV") && !all.contains("wrong"), "{all}");
        }
    }

    /// Case C17.
    #[test]
    fn only_the_first_command_of_a_kept_connection_can_find_it_stale() {
        for (phase, line, stale) in [
            (Phase::Mail, "421 4.4.2 idle", true),
            (Phase::Mail, "451 4.4.2 timeout", true),
            (Phase::Mail, "503 5.5.1 sender already specified", true),
            (Phase::Mail, "550 5.7.1 no", false),
            (Phase::Recipient, "421 4.4.2 idle", false),
        ] {
            let refused = Cause::Refused(reply(format!("{line}\r\n").as_bytes())).during(phase);
            assert_eq!(refused.may_be_staleness(), stale, "{phase:?} {line}");
        }
    }
}
