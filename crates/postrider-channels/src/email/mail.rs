//! What a row asks for, as e-mail: its addresses, header texts and bodies, read and checked.
//!
//! Where it stands: first step of `check` and of every attempt, for the e-mail channel and for the
//! sandbox alike, so that both refuse the same. It must not do I/O, and must not trust a row: an
//! other program may have written it, or a newer node.

use std::collections::HashSet;

use postrider::Error;
use postrider::model::text::{refuse_line_break, storable_error};
use postrider::model::{
    AddressState, Blame, FailureScope, Ledger, MailAddress, MailPayload, OutboxView, Outcome, Reject, Retry, Role,
    Suppress,
};

use super::mailbox::Mailbox;

const ALL_BLOCKED: &str = "policy left out every address";

/// One address that the mail goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addressee {
    /// To or CC.
    pub(crate) role: Role,
    /// The address as it stands in the row: the ledger's key.
    pub(crate) text: String,
    /// The mailbox for the header.
    pub(crate) mailbox: Mailbox,
}

impl Addressee {
    /// The address for the wire.
    pub(crate) fn address(&self) -> &MailAddress {
        self.mailbox.address()
    }
}

/// A row's content, ready to become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mail {
    /// To first, then the copies, each address once, without those that policy left out; at least one.
    pub(crate) addressees: Vec<Addressee>,
    /// The sender, if the row names another than the channel's.
    pub(crate) from: Option<Mailbox>,
    /// Where answers go.
    pub(crate) reply_to: Option<Mailbox>,
    /// The subject, one line.
    pub(crate) subject: Option<String>,
    /// The text part.
    pub(crate) text: Option<String>,
    /// The HTML part.
    pub(crate) html: Option<String>,
}

/// Why a row is no mail that can be sent.
#[derive(Debug)]
pub(crate) enum Unsendable {
    /// The payload cannot be read; a newer node may be able to.
    Payload(Error),
    /// An address is none.
    Address(Error),
    /// A header text or the content cannot be sent as it is.
    Content(Error),
    /// Policy left out every address.
    Blocked,
}

impl Unsendable {
    /// The refusal before the row is written.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Payload(cause) => Error::invalid(cause.to_string()).caused_by(cause),
            Self::Address(error) | Self::Content(error) => error,
            Self::Blocked => Error::invalid(ALL_BLOCKED),
        }
    }

    /// The end of an attempt at a row that is there already.
    pub(crate) fn into_outcome(self) -> Outcome {
        let reject = |error: &Error, blame| {
            Outcome::Reject(Reject { error: storable_error(&error.to_string()), blame, ledger: None })
        };
        match self {
            Self::Payload(error) => Outcome::Retry(Retry {
                error: storable_error(&error.to_string()),
                after: None,
                scope: FailureScope::Row,
                blame: Blame::Message,
                ledger: None,
            }),
            Self::Address(error) => reject(&error, Blame::Recipient),
            Self::Content(error) => reject(&error, Blame::Message),
            Self::Blocked => Outcome::Suppress(Suppress { reason: ALL_BLOCKED.into(), reason_code: "blocked".into() }),
        }
    }
}

impl Mail {
    /// Reads a row.
    ///
    /// An address that stands in it twice (a copy to the To address, a CC listed again; letter
    /// case counts before the `@` only) is taken once, at its first place.
    ///
    /// # Errors
    /// [`Unsendable`], whose error names what is wrong. Cases C05, C06 and C29.
    pub(crate) fn read(row: OutboxView<'_>) -> Result<Self, Unsendable> {
        let content = row.content();
        let payload = MailPayload::read(content.payload.as_ref()).map_err(Unsendable::Payload)?;
        let header = |what: &str, text: Option<&String>| match text {
            Some(text) => refuse_line_break(what, text).map_err(Unsendable::Content),
            None => Ok(()),
        };
        header("subject", content.subject.as_ref())?;
        header("recipient's name", payload.to_name.as_ref())?;
        let mailbox = |what: &str, text: Option<String>| {
            let parsed = text.map(|text| Mailbox::parse(&text)).transpose();
            parsed.map_err(|error| Unsendable::Content(error.context(format_args!("the payload's {what}"))))
        };
        Ok(Self {
            addressees: addressees(row, payload.to_name)?,
            from: mailbox("from", payload.from)?,
            reply_to: mailbox("reply_to", payload.reply_to)?,
            subject: content.subject.clone(),
            text: content.body.clone(),
            html: payload.html,
        })
    }

    /// The mailboxes of one role, in the row's order.
    pub(crate) fn mailboxes(&self, role: Role) -> impl Iterator<Item = &Mailbox> {
        self.addressees.iter().filter(move |addressee| addressee.role == role).map(|addressee| &addressee.mailbox)
    }

    /// Takes out the copies whose address cannot be written in ASCII, and returns them.
    pub(crate) fn leave_out_utf8_copies(&mut self) -> Vec<Addressee> {
        let leaves = |addressee: &mut Addressee| addressee.role == Role::Cc && addressee.address().needs_smtputf8();
        self.addressees.extract_if(.., leaves).collect()
    }
}

/// To first; duplicates and what policy blocked left out.
fn addressees(row: OutboxView<'_>, to_name: Option<String>) -> Result<Vec<Addressee>, Unsendable> {
    let content = row.content();
    let nothing = Ledger::default();
    let ledger = row.state().recipients.as_ref().unwrap_or(&nothing);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let to = std::iter::once((Role::To, &content.recipient_address, to_name));
    let cc = row.cc_addresses().iter().map(|text| (Role::Cc, text, None));
    for (role, text, name) in to.chain(cc) {
        let address = MailAddress::parse(text).map_err(Unsendable::Address)?;
        let blocked = ledger.state(role, text) == Some(AddressState::Blocked);
        if !blocked && seen.insert(address.wire()) {
            found.push(Addressee { role, text: text.clone(), mailbox: Mailbox::new(name, address) });
        }
    }
    if found.is_empty() { Err(Unsendable::Blocked) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use postrider::model::{LedgerEntry, OutboxId, OutboxRow, TenantId, Timestamp};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn row() -> OutboxRow {
        let at = Timestamp::parse("2026-03-01T10:00:00Z").unwrap();
        OutboxRow::new(OutboxId::from(Uuid::from_u128(7)), "email", "jane", "jane@example.com", at)
    }

    fn read(row: &OutboxRow) -> Result<Mail, Unsendable> {
        Mail::read(OutboxView::new(row, &TenantId::ROOT))
    }

    /// Case C06.
    #[test]
    fn a_line_break_in_any_header_text_is_refused() {
        for bad in ["Hi\r\nBcc: victim@example.net\r\n\r\nnew body", "Hi\nBcc: x", "Hi\rBcc: x", "Hi\0"] {
            let mut with_subject = row();
            with_subject.subject = Some(bad.into());
            let mut with_name = row();
            with_name.payload = Some(json!({ "to_name": bad }));
            let mut with_from = row();
            with_from.payload = Some(json!({ "from": format!("{bad} <a@example.com>") }));
            let mut with_reply_to = row();
            with_reply_to.payload = Some(json!({ "reply_to": format!("a@example.com{bad}") }));
            for row in [with_subject, with_name, with_from, with_reply_to] {
                let refused = read(&row).unwrap_err();
                assert!(matches!(refused, Unsendable::Content(_)), "{row:?}");
                assert!(refused.into_error().is_invalid());
            }
        }
    }

    /// Case C29.
    #[test]
    fn a_payload_of_a_newer_version_is_left_to_a_newer_node() {
        let mut row = row();
        row.payload = Some(json!({ "v": 2 }));
        assert!(read(&row).unwrap_err().into_error().is_invalid());
        let Outcome::Retry(retry) = read(&row).unwrap_err().into_outcome() else { panic!("not a retry") };
        assert_eq!((retry.scope, retry.blame), (FailureScope::Row, Blame::Message));
        row.payload = Some(json!("text"));
        assert!(matches!(read(&row), Err(Unsendable::Payload(_))));
    }

    #[test]
    fn an_address_that_does_not_parse_ends_the_row() {
        let mut bad_to = row();
        bad_to.recipient_address = "jane@".into();
        let mut bad_cc = row();
        bad_cc.cc_addresses = vec!["ok@example.com".into(), "not an address".into()];
        for row in [bad_to, bad_cc] {
            let Outcome::Reject(reject) = read(&row).unwrap_err().into_outcome() else { panic!("not a reject") };
            assert_eq!(reject.blame, Blame::Recipient);
        }
    }

    #[test]
    fn an_address_is_taken_once_and_blocked_ones_not_at_all() {
        let mut row = row();
        row.cc_addresses = ["jane@EXAMPLE.com", "b@example.com", "b@example.com", "B@example.com", "c@example.com"]
            .map(String::from)
            .to_vec();
        let mut ledger = Ledger::default();
        ledger.record(LedgerEntry {
            address: "c@example.com".into(),
            role: Role::Cc,
            state: AddressState::Blocked,
            at: row.created_at,
            reply: None,
        });
        row.state.recipients = Some(ledger);
        let mail = read(&row).unwrap();
        let texts: Vec<_> = mail.addressees.iter().map(|addressee| addressee.text.as_str()).collect();
        assert_eq!(texts, ["jane@example.com", "b@example.com", "B@example.com"]);
    }
}
