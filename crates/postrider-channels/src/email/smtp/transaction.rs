//! One mail transaction, step by step: MAIL, RCPT, DATA, the message, the final dot.
//!
//! Where it stands: the session's verbs, called in order by the attempt, which alone knows when
//! the point of no return is crossed: the body and the final dot are two steps for that reason.
//! It must not decide what a refusal means. Source: RFC 5321 §3.3, §4.5.2, §4.5.3.2.

use postrider::model::Clock;

use super::classify::Phase;
use super::failure::{Cause, Failure};
use super::reply::Reply;
use super::session::{Session, TIDY_UP, positive};

/// What MAIL tells the server about the message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MailParameters {
    /// Octets of the message before dot-stuffing; sent where the server offers SIZE.
    pub(crate) size: usize,
    /// An address in envelope or header needs UTF-8.
    pub(crate) needs_smtputf8: bool,
}

impl Session {
    /// Begins a transaction. A server that does not know an optional parameter is asked again
    /// without it.
    ///
    /// # Errors
    /// [`Failure`] if the server refuses or the connection breaks.
    ///
    /// # Cancel safety
    /// As for all steps here: once the future was dropped, the connection must be closed.
    pub(crate) async fn mail(
        &mut self,
        sender: &str,
        parameters: MailParameters,
        clock: &dyn Clock,
    ) -> Result<(), Failure> {
        let limit = self.timeouts.mail;
        let plain = format!("MAIL FROM:<{sender}>");
        let mut line = plain.clone();
        if self.abilities().size.is_some() {
            line.push_str(&format!(" SIZE={}", parameters.size));
        }
        if parameters.needs_smtputf8 {
            if self.abilities().eight_bit_mime {
                line.push_str(" BODY=8BITMIME");
            }
            line.push_str(" SMTPUTF8");
        }
        let mut reply = self.ask(Phase::Mail, &line, limit, clock).await?;
        if reply.code() == 555 && !parameters.needs_smtputf8 && line != plain {
            reply = self.ask(Phase::Mail, &plain, limit, clock).await?;
        }
        positive(Phase::Mail, reply).map(drop)
    }

    /// Asks for one recipient; a refusal is a reply, not a failure, unless it is 421.
    pub(crate) async fn recipient(&mut self, address: &str, clock: &dyn Clock) -> Result<Reply, Failure> {
        self.ask(Phase::Recipient, &format!("RCPT TO:<{address}>"), self.timeouts.recipient, clock).await
    }

    /// Asks to hand over the message; 354 is the answer that allows it.
    pub(crate) async fn data(&mut self, clock: &dyn Clock) -> Result<Reply, Failure> {
        self.ask(Phase::Data, "DATA", self.timeouts.data_start, clock).await
    }

    /// Writes the message up to its last line's end, dots doubled; not yet the final dot.
    ///
    /// A server that spoke meanwhile is not told that the message is complete: its reply would be
    /// taken for the answer to the final dot. A refusal among such words is the reason.
    pub(crate) async fn content(&mut self, message: &[u8], clock: &dyn Clock) -> Result<(), Failure> {
        self.stays_quiet(clock).await?;
        self.say(Phase::Data, &stuff_dots(message), self.timeouts.data_block, clock).await?;
        self.stays_quiet(clock).await
    }

    async fn stays_quiet(&mut self, clock: &dyn Clock) -> Result<(), Failure> {
        if self.wire.is_quiet().await {
            return Ok(());
        }
        let cause = match self.wire.reply(TIDY_UP, clock).await {
            Ok(refusal) if refusal.is_negative() => Cause::Refused(refusal),
            Ok(_) => Cause::Unasked,
            Err(cause) => cause,
        };
        Err(cause.during(Phase::Data))
    }

    /// Writes the final dot and waits for the answer that decides.
    ///
    /// The point of no return must have been crossed: a failure here leaves open whether the
    /// server took the message, but for a 421.
    pub(crate) async fn end_of_data(&mut self, clock: &dyn Clock) -> Result<Reply, Failure> {
        self.ask(Phase::EndOfData, ".", self.timeouts.data_end, clock).await
    }

    /// Ends whatever transaction there is; true if the connection is clean again.
    pub(crate) async fn reset(&mut self, clock: &dyn Clock) -> bool {
        let reply = self.ask(Phase::Mail, "RSET", TIDY_UP, clock).await;
        reply.is_ok_and(|reply| reply.is_positive())
    }

    /// True if the server sent nothing since its last reply was read.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        self.wire.is_quiet().await
    }

    /// Says goodbye and closes; whether the server hears it does not matter.
    pub(crate) async fn quit(mut self, clock: &dyn Clock) {
        let farewell: Result<(), Cause> = self.wire.write(b"QUIT\r\n", TIDY_UP, clock).await;
        drop(farewell);
    }
}

/// Doubles every dot that begins a line, and ends the last line. Source: RFC 5321 §4.5.2.
fn stuff_dots(message: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(message.len() + message.len() / 64 + 2);
    for line in message.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    if !stuffed.is_empty() && !stuffed.ends_with(b"\r\n") {
        stuffed.extend_from_slice(b"\r\n");
    }
    stuffed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Case C07.
    #[test]
    fn every_line_that_begins_with_a_dot_gets_one_more() {
        assert_eq!(stuff_dots(b".\r\n..\r\n.test\r\na.\r\n."), b"..\r\n...\r\n..test\r\na.\r\n..\r\n");
        assert_eq!(stuff_dots(b""), b"");
    }

    /// What a server makes of stuffed bytes and the final dot: the message, and what is left.
    fn receive(wire: &[u8]) -> (Vec<u8>, &[u8]) {
        let mut message = Vec::new();
        let mut rest = wire;
        loop {
            let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
            let (line, after) = rest.split_at(end);
            rest = after;
            match line {
                b".\r\n" => return (message, rest),
                _ => message.extend_from_slice(line.strip_prefix(b".").unwrap_or(line)),
            }
        }
    }

    proptest! {
        /// Case C07: no content ends the message early, and the server reads what was meant.
        #[test]
        fn stuffed_content_is_received_whole(lines in proptest::collection::vec("[.a \r]{0,5}", 0..12), ended: bool) {
            // Lone CRs do not occur in a built message; here they must not cut lines either.
            let lines: Vec<String> = lines.into_iter().map(|line| line.replace('\r', "")).collect();
            let mut message = lines.join("\r\n");
            if ended && !message.is_empty() {
                message.push_str("\r\n");
            }
            let wire = [stuff_dots(message.as_bytes()), b".\r\n".to_vec()].concat();
            let (received, rest) = receive(&wire);
            prop_assert!(rest.is_empty());
            let mut expected = message;
            if !expected.is_empty() && !expected.ends_with("\r\n") {
                expected.push_str("\r\n");
            }
            prop_assert_eq!(received, expected.into_bytes());
        }
    }
}
