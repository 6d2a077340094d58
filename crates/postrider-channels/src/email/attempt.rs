//! One attempt at one row: the mail goes through a conversation and comes out as an outcome.
//!
//! Where it stands: the only place that knows rows and SMTP both. The rules per address:
//! - To is asked for first. If it is refused, nothing is sent: for good, the row is rejected; for
//!   now, it is tried again as a whole, so that all copies stay together.
//! - A refused copy never stops the mail. Refused for good, it is noted; refused for now, the row
//!   is tried again for that copy alone. If the relay ends the conversation when asked for a copy,
//!   the mail goes to the others over a new connection.
//! - Whoever accepted the message in this send is not sent to again; a copy refused for good is
//!   not asked for again, unless a person requeues the row.
//! - The answer to the final dot holds for every address that was accepted before it. If it does
//!   not come, all of these are in doubt.
//!
//! It must cross the point of no return before the final dot and at no other place, and must never
//! call a message undelivered once that dot was on its way and the server did not say so.

use std::time::Duration;

use postrider::channel::Delivery;
use postrider::model::text::storable_error;
use postrider::model::{AddressState, Blame, FailureScope, InDoubt, Ledger, Outcome, Role};

use super::EmailChannel;
use super::mail::{Addressee, Mail, Unsendable};
use super::message::Message;
use super::put_off::{HangUp, PutOff, Stop};
use super::results::{Refusals, Trouble, entry, settled, to_first};
use super::smtp::classify::{Phase, UNEXPECTED, Verdict};
use super::smtp::failure::{Cause, Failure};
use super::smtp::reply::Reply;
use super::smtp::session::Session;
use super::smtp::transaction::MailParameters;

/// How a conversation ended, and what that leaves of the connection.
struct Ending {
    outcome: Outcome,
    connection: Connection,
}

/// What may be done with the connection.
#[derive(Clone, Copy)]
enum Connection {
    /// The transaction is complete: it can serve the next message.
    Clean,
    /// The transaction was left half-way: RSET first.
    Unfinished,
    /// Not to be used again.
    Spent,
}

/// Delivers one row.
///
/// # Cancel safety
/// Dropping the future closes its connection, which then serves nobody else.
pub(super) async fn attempt(channel: &EmailChannel, delivery: Delivery<'_>) -> Outcome {
    let clock = delivery.clock();
    let mut transaction = match Transaction::prepare(channel, delivery) {
        Ok(transaction) => transaction,
        Err(outcome) => return outcome,
    };
    let mut watch = Watch { channel, delivery, begun: clock.monotonic(), ended: false };
    let mut checkout = match channel.pool.checkout(clock).await {
        Ok(checkout) => checkout,
        Err(failure) => return watch.failed(failure, None),
    };
    let mut result = transaction.run(checkout.session()).await;
    loop {
        match &result {
            Err(Stop::Failed(failure)) if checkout.is_reused() && failure.may_be_staleness() => {
                tracing::debug!("a kept connection to the relay had gone stale; opening a new one");
            }
            Err(Stop::AtCopy(hang_up)) if transaction.leave_out(hang_up) => {
                tracing::debug!("the relay ended the conversation at a copy; going on without that copy");
            }
            _ => break,
        }
        checkout = match checkout.replace(clock).await {
            Ok(fresh) => fresh,
            Err(failure) => return watch.failed(failure, transaction.found()),
        };
        result = transaction.run(checkout.session()).await;
    }
    if let Ok(ending) = &result {
        watch.ended(&ending.outcome);
    }
    match result {
        Ok(Ending { outcome, connection: Connection::Clean }) => {
            checkout.give_back(clock).await;
            outcome
        }
        Ok(Ending { outcome, connection: Connection::Unfinished }) => {
            checkout.reset_and_give_back(clock).await;
            outcome
        }
        Ok(Ending { outcome, connection: Connection::Spent }) => outcome,
        Err(Stop::AtCopy(HangUp { failure, .. })) => {
            // It says nothing about the relay: nobody else was asked for.
            watch.ended = true;
            Trouble::from(failure).into_outcome(transaction.found())
        }
        Err(Stop::Failed(failure)) => {
            // After DATA the server may take a command for a line of the message.
            let is_usable =
                failure.phase != Phase::Data && matches!(&failure.cause, Cause::Refused(reply) if reply.code() != 421);
            if is_usable {
                checkout.reset_and_give_back(clock).await;
            }
            watch.failed(failure, transaction.found())
        }
    }
}

/// Tells the relay's health how an attempt ended, also one that is dropped since its time is over.
struct Watch<'a> {
    channel: &'a EmailChannel,
    delivery: Delivery<'a>,
    begun: Duration,
    ended: bool,
}

impl Watch<'_> {
    /// The conversation broke before anything was handed over.
    fn failed(&mut self, failure: Failure, found: Option<Ledger>) -> Outcome {
        match failure.verdict() {
            Verdict::Retry(FailureScope::Row, _) | Verdict::Reject(_) => self.works(),
            // A limit of our own: the relay was not asked.
            Verdict::Retry(FailureScope::Own, _) => self.ended = true,
            Verdict::Retry(..) => self.fails(&failure.brief()),
        }
        Trouble::from(failure).into_outcome(found)
    }

    /// The conversation came to an end. One in doubt says nothing about the relay.
    fn ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Sent(_) | Outcome::Reject(_) | Outcome::Gone(_) => self.works(),
            Outcome::Retry(retry) if retry.scope == FailureScope::Row => self.works(),
            // Without a ledger nobody refused: the delivery was cut.
            Outcome::Retry(retry) if retry.ledger.is_some() => self.fails(match retry.scope {
                FailureScope::Credential => "it asks for a login, or for another one",
                _ => "it puts all messages off",
            }),
            _ => self.ended = true,
        }
    }

    fn fails(&mut self, cause: &str) {
        self.ended = true;
        self.channel.health.fails(cause, self.begun, self.now());
    }

    fn works(&mut self) {
        self.ended = true;
        self.channel.health.works(self.begun, self.now());
    }

    fn now(&self) -> Duration {
        self.delivery.clock().monotonic()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // The dispatcher's time began a moment before.
        if !self.ended && self.now().saturating_sub(self.begun) >= self.channel.deadline.mul_f64(0.9) {
            self.fails("a delivery was not finished within the deadline");
        }
    }
}

/// What is to be handed over, and to whom.
struct Transaction<'a> {
    channel: &'a EmailChannel,
    delivery: Delivery<'a>,
    mail: Mail,
    message: Message,
    /// What earlier attempts of this send found.
    ledger: Ledger,
    /// Copies that are not asked for in this attempt.
    put_off: PutOff,
}

impl<'a> Transaction<'a> {
    /// Reads the row and builds its message; an end that needs no connection is the error.
    fn prepare(channel: &'a EmailChannel, delivery: Delivery<'a>) -> Result<Self, Outcome> {
        let row = delivery.row();
        let mail = Mail::read(row).map_err(Unsendable::into_outcome)?;
        let mut ledger = row.state().recipients.clone().unwrap_or_default();
        // Neither attempt nor deferral in this send: the row is new, or a person has requeued it.
        if row.state().attempts == 0 && row.state().deferrals == 0 {
            ledger.forget_refusals();
        }
        let message = channel.build(&mail, row).map_err(Unsendable::into_outcome)?;
        let mut transaction = Self { channel, delivery, mail, message, ledger, put_off: PutOff::default() };
        let open = transaction.open(&transaction.mail, &transaction.ledger);
        if open.is_empty() {
            return Err(settled(&transaction.ledger, Refusals::default()));
        }
        transaction.put_off = PutOff::remembered(&open, &transaction.ledger);
        Ok(transaction)
    }

    /// Goes on without the copy at which the relay ended the conversation; false if nobody is left.
    fn leave_out(&mut self, hang_up: &HangUp) -> bool {
        let open = self.open(&self.mail, &self.ledger);
        let mut put_off = std::mem::take(&mut self.put_off);
        let deferred = put_off.add(hang_up, &open, self.delivery.clock().now());
        deferred.into_iter().for_each(|entry| self.ledger.record(entry));
        self.put_off = put_off;
        !self.open(&self.mail, &self.ledger).is_empty()
    }

    /// What this attempt found before it broke, if anything.
    fn found(&self) -> Option<Ledger> {
        (!self.put_off.is_empty()).then(|| to_first(&self.ledger))
    }

    /// The addresses that this attempt has to ask for.
    fn open<'m>(&self, mail: &'m Mail, ledger: &Ledger) -> Vec<&'m Addressee> {
        let is_open = |addressee: &&Addressee| match ledger.state(addressee.role, &addressee.text) {
            Some(AddressState::Accepted) => false,
            Some(AddressState::Rejected) => addressee.role == Role::To,
            _ => true,
        };
        mail.addressees.iter().filter(is_open).filter(|addressee| !self.put_off.contains(addressee)).collect()
    }

    /// Runs the transaction on a session. A failure means that nothing was handed over.
    async fn run(&self, session: &mut Session) -> Result<Ending, Stop> {
        if !self.message.needs_smtputf8() || session.abilities().smtputf8 {
            return self.transfer(session, &self.mail, &self.message, self.ledger.clone()).await;
        }
        match self.in_ascii() {
            Ok((mail, message, ledger)) => self.transfer(session, &mail, &message, ledger).await,
            Err(outcome) => Ok(Ending { outcome, connection: Connection::Clean }),
        }
    }

    /// The mail for a server without SMTPUTF8: copies that it has no way to reach are refused, the
    /// others get the mail. An end that needs no transfer is the error. Case C03.
    fn in_ascii(&self) -> Result<(Mail, Message, Ledger), Outcome> {
        let refusal = "the relay does not offer SMTPUTF8, which an address of this mail needs";
        let mut ledger = self.ledger.clone();
        let mut refuse = |addressee: &Addressee| {
            ledger.record(entry(addressee, AddressState::Rejected, self.delivery.clock().now(), refusal.to_owned()));
        };
        let mut mail = self.mail.clone();
        mail.leave_out_utf8_copies().iter().for_each(&mut refuse);
        let to = mail.addressees.iter().find(|addressee| addressee.address().needs_smtputf8());
        to.into_iter().for_each(refuse);
        let to_needs_it = to.is_some();
        let message = self.channel.build(&mail, self.delivery.row()).map_err(Unsendable::into_outcome)?;
        if message.needs_smtputf8() {
            let blame = if to_needs_it { Blame::Recipient } else { Blame::Message };
            let trouble = Trouble { verdict: Verdict::Reject(blame), text: refusal.to_owned() };
            return Err(trouble.into_outcome(Some(to_first(&ledger))));
        }
        if self.open(&mail, &ledger).is_empty() {
            return Err(settled(&ledger, self.put_off.refusals()));
        }
        Ok((mail, message, ledger))
    }

    /// MAIL, RCPT for every open address, DATA, the message, the final dot.
    async fn transfer(
        &self,
        session: &mut Session,
        mail: &Mail,
        message: &Message,
        mut ledger: Ledger,
    ) -> Result<Ending, Stop> {
        let clock = self.delivery.clock();
        if let Some(Some(limit)) = session.abilities().size
            && message.bytes().len() as u64 > limit
        {
            let text = format!("the message has {} octets; the relay takes {limit} (SIZE)", message.bytes().len());
            let trouble = Trouble { verdict: Verdict::Reject(Blame::Message), text };
            return Ok(Ending {
                outcome: trouble.into_outcome(Some(to_first(&ledger))),
                connection: Connection::Clean,
            });
        }
        let parameters = MailParameters { size: message.bytes().len(), needs_smtputf8: message.needs_smtputf8() };
        session.mail(message.envelope_sender(), parameters, clock).await?;

        let mut accepted: Vec<&Addressee> = Vec::new();
        let mut refusals = self.put_off.refusals();
        for addressee in self.open(mail, &ledger) {
            let reply = match session.recipient(&addressee.address().wire(), clock).await {
                Ok(reply) => reply,
                Err(failure) if addressee.role == Role::Cc => {
                    let taken = accepted.iter().map(|taken| taken.text.clone()).collect();
                    return Err(Stop::AtCopy(HangUp { failure, copy: addressee.text.clone(), taken }));
                }
                Err(failure) => return Err(failure.into()),
            };
            if reply.is_positive() {
                accepted.push(addressee);
                continue;
            }
            let trouble = Trouble::of(Phase::Recipient, reply);
            ledger.record(entry(addressee, trouble.address_state(), clock.now(), trouble.text.clone()));
            if addressee.role == Role::To {
                return Ok(unfinished(trouble.into_outcome(Some(to_first(&ledger)))));
            }
            refusals.note(trouble);
        }
        if accepted.is_empty() {
            return Ok(unfinished(settled(&ledger, refusals)));
        }
        let reply = session.data(clock).await?;
        if reply.code() != 354 {
            let is_refusal = reply.is_negative();
            let outcome = self.refused_by_all(Phase::Data, reply, &accepted, ledger);
            let connection = if is_refusal { Connection::Unfinished } else { Connection::Spent };
            return Ok(Ending { outcome, connection });
        }
        session.content(message.bytes(), clock).await?;
        if !self.delivery.point_of_no_return().cross() {
            let (verdict, text) = (UNEXPECTED, "the delivery was cut before the message was handed over".to_owned());
            return Ok(spent(Trouble { verdict, text }.into_outcome(None)));
        }
        let answer = session.end_of_data(clock).await;
        Ok(self.conclude(answer, &accepted, refusals, ledger))
    }

    /// What the answer to the final dot, or its absence, makes of the row.
    fn conclude(
        &self,
        answer: Result<Reply, Failure>,
        accepted: &[&Addressee],
        refusals: Refusals,
        mut ledger: Ledger,
    ) -> Ending {
        let now = self.delivery.clock().now();
        match answer {
            Ok(reply) if reply.is_positive() => {
                for addressee in accepted {
                    ledger.record(entry(addressee, AddressState::Accepted, now, reply.text()));
                }
                Ending { outcome: settled(&ledger, refusals), connection: Connection::Clean }
            }
            Ok(reply) if reply.is_negative() => {
                unfinished(self.refused_by_all(Phase::EndOfData, reply, accepted, ledger))
            }
            Err(Failure { phase, cause: Cause::Refused(goodbye) }) => {
                spent(self.refused_by_all(phase, goodbye, accepted, ledger))
            }
            unclear => {
                let what = match unclear {
                    Ok(reply) => format!("the relay answered {}", reply.text()),
                    Err(failure) => failure.text(),
                };
                let error = storable_error(&format!("the outcome is unknown after the end of data: {what}"));
                for addressee in accepted {
                    ledger.record(entry(addressee, AddressState::InDoubt, now, error.clone()));
                }
                spent(Outcome::InDoubt(InDoubt { error, ledger: Some(to_first(&ledger)) }))
            }
        }
    }

    /// A refusal of the message holds for every address that had been accepted.
    fn refused_by_all(&self, phase: Phase, reply: Reply, accepted: &[&Addressee], mut ledger: Ledger) -> Outcome {
        let trouble = Trouble::of(phase, reply);
        let now = self.delivery.clock().now();
        for addressee in accepted {
            ledger.record(entry(addressee, trouble.address_state(), now, trouble.text.clone()));
        }
        trouble.into_outcome(Some(to_first(&ledger)))
    }
}

fn unfinished(outcome: Outcome) -> Ending {
    Ending { outcome, connection: Connection::Unfinished }
}

fn spent(outcome: Outcome) -> Ending {
    Ending { outcome, connection: Connection::Spent }
}
