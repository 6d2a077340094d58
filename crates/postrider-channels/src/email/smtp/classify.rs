//! What a refusal means: phase, code and enhanced code to scope and blame, as one table.
//!
//! Where it stands: asked for every negative reply; nothing else decides by a code. The class comes
//! from the numbers, never from the text. It must not know rows or addresses.
//! Source: RFC 5321 §4.2, RFC 3463, RFC 4954 §6, RFC 7504; case C21.

use std::ops::RangeInclusive;

use postrider::model::{Blame, FailureScope};

use super::reply::Reply;
use Blame::{Configuration, Message, Nobody, Recipient, Sender};
use FailureScope::{Credential, Destination, Row};

/// Where in a conversation something was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Name look-up, TCP, and TLS from the first byte.
    Connect,
    /// The server's first reply.
    Greeting,
    /// EHLO or HELO.
    Hello,
    /// STARTTLS and its handshake.
    StartTls,
    /// AUTH.
    Auth,
    /// MAIL FROM.
    Mail,
    /// RCPT TO.
    Recipient,
    /// DATA, and the message up to its last line.
    Data,
    /// The final dot.
    EndOfData,
}

impl Phase {
    /// The words for an error text.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::Greeting => "the greeting",
            Self::Hello => "EHLO",
            Self::StartTls => "STARTTLS",
            Self::Auth => "AUTH",
            Self::Mail => "MAIL",
            Self::Recipient => "RCPT",
            Self::Data => "DATA",
            Self::EndOfData => "the end of data",
        }
    }
}

/// What becomes of the row after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may pass.
    Retry(FailureScope, Blame),
    /// It will not pass.
    Reject(Blame),
}

/// What the enhanced code must be for a rule to hold.
#[derive(Debug, Clone, Copy)]
enum Enhanced {
    /// Anything, or no enhanced code.
    Any,
    /// No enhanced code.
    None,
    /// Any detail of this subject.
    Subject(u16),
    /// This subject and this detail.
    Exactly(u16, u16),
}

/// One line of the table.
type Rule = (&'static [Phase], RangeInclusive<u16>, Enhanced, Verdict);

const ANYWHERE: &[Phase] = &[
    Phase::Connect,
    Phase::Greeting,
    Phase::Hello,
    Phase::StartTls,
    Phase::Auth,
    Phase::Mail,
    Phase::Recipient,
    Phase::Data,
    Phase::EndOfData,
];
const MESSAGE: &[Phase] = &[Phase::Mail, Phase::Recipient, Phase::Data, Phase::EndOfData];
const WITH_RECIPIENT: &[Phase] = &[Phase::Recipient, Phase::EndOfData];
const RCPT: &[Phase] = &[Phase::Recipient];

/// The first rule that fits holds; [`UNEXPECTED`] is for what no rule names.
const TABLE: &[Rule] = &[
    // The server closes the connection: it says nothing about the message.
    (ANYWHERE, 421..=421, Enhanced::Any, Verdict::Retry(Destination, Nobody)),
    // The session: the relay refuses to talk to us at all.
    (&[Phase::Greeting, Phase::Hello], 400..=599, Enhanced::Any, Verdict::Retry(Destination, Nobody)),
    (&[Phase::StartTls], 400..=499, Enhanced::Any, Verdict::Retry(Destination, Nobody)),
    (&[Phase::StartTls], 500..=599, Enhanced::Any, Verdict::Retry(Destination, Configuration)),
    // The login, also where it is asked for late.
    (&[Phase::Auth], 454..=454, Enhanced::Any, Verdict::Retry(Credential, Nobody)),
    (&[Phase::Auth], 400..=599, Enhanced::Any, Verdict::Retry(Credential, Configuration)),
    (MESSAGE, 432..=432, Enhanced::Any, Verdict::Retry(Credential, Configuration)),
    (MESSAGE, 530..=530, Enhanced::Any, Verdict::Retry(Credential, Configuration)),
    (MESSAGE, 534..=535, Enhanced::Any, Verdict::Retry(Credential, Configuration)),
    (MESSAGE, 538..=538, Enhanced::Any, Verdict::Retry(Credential, Configuration)),
    // Relays throttle with 454 inside a transaction.
    (MESSAGE, 454..=454, Enhanced::Any, Verdict::Retry(Destination, Nobody)),
    // Refused for now.
    (WITH_RECIPIENT, 400..=499, Enhanced::Exactly(2, 2), Verdict::Retry(Row, Recipient)),
    (MESSAGE, 400..=499, Enhanced::Subject(7), Verdict::Retry(Row, Sender)),
    (MESSAGE, 400..=499, Enhanced::Any, Verdict::Retry(Row, Nobody)),
    // A full mailbox empties again, whatever the first digit says.
    (WITH_RECIPIENT, 500..=599, Enhanced::Exactly(2, 2), Verdict::Retry(Row, Recipient)),
    // Too many recipients in one transaction.
    (RCPT, 500..=599, Enhanced::Exactly(5, 3), Verdict::Retry(Row, Nobody)),
    // The message is too large, for the mailbox or for the server.
    (MESSAGE, 500..=599, Enhanced::Exactly(2, 3), Verdict::Reject(Message)),
    (MESSAGE, 500..=599, Enhanced::Exactly(3, 4), Verdict::Reject(Message)),
    // The sender's address.
    (MESSAGE, 500..=599, Enhanced::Exactly(1, 7), Verdict::Reject(Sender)),
    (MESSAGE, 500..=599, Enhanced::Exactly(1, 8), Verdict::Reject(Sender)),
    // Mailboxes that are gone, which the registry files under policy.
    (RCPT, 500..=599, Enhanced::Exactly(7, 13), Verdict::Reject(Recipient)),
    (RCPT, 500..=599, Enhanced::Exactly(7, 17), Verdict::Reject(Recipient)),
    (RCPT, 500..=599, Enhanced::Exactly(7, 18), Verdict::Reject(Recipient)),
    // Policy speaks about the sender, not about the recipient.
    (MESSAGE, 500..=599, Enhanced::Subject(7), Verdict::Reject(Sender)),
    // MAIL.
    (&[Phase::Mail], 500..=504, Enhanced::Any, Verdict::Reject(Configuration)),
    (&[Phase::Mail], 552..=552, Enhanced::Any, Verdict::Reject(Message)),
    (&[Phase::Mail], 555..=555, Enhanced::Any, Verdict::Reject(Configuration)),
    (&[Phase::Mail], 500..=599, Enhanced::Any, Verdict::Reject(Sender)),
    // RCPT. A bare 552 there is to be read as 452 (RFC 5321 §4.5.3.1.10).
    (RCPT, 500..=599, Enhanced::Subject(1), Verdict::Reject(Recipient)),
    (RCPT, 500..=599, Enhanced::Subject(2), Verdict::Reject(Recipient)),
    (RCPT, 500..=504, Enhanced::Any, Verdict::Reject(Configuration)),
    (RCPT, 555..=555, Enhanced::Any, Verdict::Reject(Configuration)),
    (RCPT, 552..=552, Enhanced::Any, Verdict::Retry(Row, Nobody)),
    (RCPT, 521..=521, Enhanced::None, Verdict::Reject(Recipient)),
    (RCPT, 550..=551, Enhanced::None, Verdict::Reject(Recipient)),
    (RCPT, 553..=553, Enhanced::None, Verdict::Reject(Recipient)),
    (RCPT, 556..=556, Enhanced::None, Verdict::Reject(Recipient)),
    (RCPT, 554..=554, Enhanced::None, Verdict::Reject(Sender)),
    (RCPT, 500..=599, Enhanced::Any, Verdict::Reject(Nobody)),
    // DATA and the final dot.
    (&[Phase::Data], 500..=504, Enhanced::Any, Verdict::Reject(Configuration)),
    (&[Phase::Data, Phase::EndOfData], 500..=599, Enhanced::Any, Verdict::Reject(Message)),
];

/// The peer does not keep to the protocol, or cannot be reached.
pub(crate) const UNEXPECTED: Verdict = Verdict::Retry(Destination, Nobody);

/// What `reply` in `phase` means.
pub(crate) fn classify(phase: Phase, reply: &Reply) -> Verdict {
    TABLE
        .iter()
        .find(|(phases, codes, enhanced, _)| {
            phases.contains(&phase) && codes.contains(&reply.code()) && fits(*enhanced, reply)
        })
        .map_or(UNEXPECTED, |(.., verdict)| *verdict)
}

fn fits(pattern: Enhanced, reply: &Reply) -> bool {
    match (pattern, reply.enhanced()) {
        (Enhanced::Any, _) | (Enhanced::None, None) => true,
        (Enhanced::Subject(subject), Some(code)) => code.subject == subject,
        (Enhanced::Exactly(subject, detail), Some(code)) => (code.subject, code.detail) == (subject, detail),
        (Enhanced::None, Some(_)) | (Enhanced::Subject(_) | Enhanced::Exactly(..), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::reply;
    use super::Phase::{Auth, Data, EndOfData, Greeting, Hello, Mail, Recipient as Rcpt, StartTls};
    use super::Verdict::{Reject, Retry};
    use super::*;

    /// Case C21, and the table of replies.
    #[test]
    fn a_refusal_is_judged_by_its_phase_and_its_numbers() {
        for (phase, line, expected) in [
            (Greeting, "554 no service", Retry(Destination, Nobody)),
            (Greeting, "421 4.3.2 busy", Retry(Destination, Nobody)),
            (Hello, "550 5.7.1 who are you", Retry(Destination, Nobody)),
            (StartTls, "454 4.7.0 not now", Retry(Destination, Nobody)),
            (StartTls, "502 no", Retry(Destination, Configuration)),
            (Auth, "535 5.7.8 bad login", Retry(Credential, Configuration)),
            (Auth, "534 5.7.9 too weak", Retry(Credential, Configuration)),
            (Auth, "454 4.7.0 later", Retry(Credential, Nobody)),
            (Auth, "421 bye", Retry(Destination, Nobody)),
            (Mail, "451 4.3.0 later", Retry(Row, Nobody)),
            (Mail, "451 later", Retry(Row, Nobody)),
            (Mail, "454 4.7.0 Throttling failure", Retry(Destination, Nobody)),
            (Mail, "530 5.7.0 login first", Retry(Credential, Configuration)),
            (Mail, "550 5.7.1 sender refused", Reject(Sender)),
            (Mail, "553 5.1.8 no such sender domain", Reject(Sender)),
            (Mail, "552 5.3.4 too large", Reject(Message)),
            (Mail, "552 too large", Reject(Message)),
            (Mail, "501 5.5.4 syntax", Reject(Configuration)),
            (Mail, "555 5.5.4 parameter", Reject(Configuration)),
            (Rcpt, "550 5.1.1 no such user", Reject(Recipient)),
            (Rcpt, "550 no such user", Reject(Recipient)),
            (Rcpt, "551 moved", Reject(Recipient)),
            (Rcpt, "553 5.1.3 bad name", Reject(Recipient)),
            (Rcpt, "501 5.1.3 bad syntax", Reject(Recipient)),
            (Rcpt, "550 5.2.1 disabled", Reject(Recipient)),
            (Rcpt, "556 5.1.10 null MX", Reject(Recipient)),
            (Rcpt, "525 5.7.13 disabled", Reject(Recipient)),
            (Rcpt, "550 5.7.1 blocked", Reject(Sender)),
            (Rcpt, "554 relay access denied", Reject(Sender)),
            (Rcpt, "550 5.4.6 loop", Reject(Nobody)),
            (Rcpt, "552 5.2.2 mailbox full", Retry(Row, Recipient)),
            (Rcpt, "550 5.2.2 mailbox full", Retry(Row, Recipient)),
            (Rcpt, "452 4.2.2 mailbox full", Retry(Row, Recipient)),
            (Rcpt, "552 too many recipients", Retry(Row, Nobody)),
            (Rcpt, "452 4.5.3 too many recipients", Retry(Row, Nobody)),
            (Rcpt, "550 5.5.3 too many recipients", Retry(Row, Nobody)),
            (Rcpt, "450 4.7.1 greylisted", Retry(Row, Sender)),
            (Rcpt, "450 mailbox busy", Retry(Row, Nobody)),
            (Rcpt, "503 5.5.1 MAIL first", Reject(Configuration)),
            (Data, "451 later", Retry(Row, Nobody)),
            (Data, "554 no valid recipients", Reject(Message)),
            (Data, "503 sequence", Reject(Configuration)),
            (EndOfData, "554 5.6.0 content", Reject(Message)),
            (EndOfData, "554 refused", Reject(Message)),
            (EndOfData, "550 5.7.1 policy", Reject(Sender)),
            (EndOfData, "552 5.3.4 too large", Reject(Message)),
            (EndOfData, "552 5.2.2 mailbox full", Retry(Row, Recipient)),
            (EndOfData, "451 4.3.0 later", Retry(Row, Nobody)),
            (EndOfData, "421 4.3.2 closing", Retry(Destination, Nobody)),
            (Data, "250 not what was asked", Retry(Destination, Nobody)),
            (Rcpt, "354 not what was asked", Retry(Destination, Nobody)),
        ] {
            assert_eq!(classify(phase, &reply(format!("{line}\r\n").as_bytes())), expected, "{phase:?} {line}");
        }
    }

    /// Case C21: only RCPT may blame a recipient for good.
    #[test]
    fn no_code_outside_rcpt_rejects_for_the_recipients_sake() {
        for phase in ANYWHERE.iter().copied().filter(|phase| *phase != Rcpt) {
            for code in 400..600 {
                for enhanced in ["", "5.1.1 ", "5.2.1 ", "5.7.1 ", "4.1.1 "] {
                    let verdict = classify(phase, &reply(format!("{code} {enhanced}x\r\n").as_bytes()));
                    assert_ne!(verdict, Reject(Recipient), "{phase:?} {code} {enhanced}");
                }
            }
        }
    }
}
