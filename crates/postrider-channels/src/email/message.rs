//! The message: a row's content as the bytes that follow DATA, the same on every attempt.
//!
//! Where it stands: between `mail` and the conversation. Message-ID, Date and MIME boundary come
//! from the row alone, so that a copy is recognised as one. The result is checked before it is
//! used: CRLF line ends only, no line over 998 octets, 8-bit octets in addresses alone. It must
//! not add a header that the row did not ask for, and never a Bcc.
//! Source: RFC 5322, RFC 2045–2047, RFC 3834 §5; contract C3.5, C5.6; cases C06, C09, C10 and C14.

use lettre::message::header::{Header, HeaderName, HeaderValue, Headers, MIME_VERSION_1_0, MessageId, Subject};
use lettre::message::{MultiPart, SinglePart};
use postrider::model::{OutboxView, Role};
use postrider::{Error, Result};

use super::header::{encoded, mailboxes};
use super::mail::{Mail, Unsendable};
use super::mailbox::Mailbox;

/// Most octets of a line without its end. Source: RFC 5322 §2.1.1.
const MAX_LINE: usize = 998;

/// Most octets of a word of the subject that is written as it is.
const MAX_PLAIN_WORD: usize = 900;

/// A built message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    bytes: Vec<u8>,
    envelope_sender: String,
    needs_smtputf8: bool,
}

impl Message {
    /// Builds the message of `mail`, sent as `sender` unless the mail names another.
    ///
    /// # Errors
    /// [`Unsendable::Content`] if the result could not go over the wire as it is.
    pub(crate) fn build(
        mail: &Mail,
        row: OutboxView<'_>,
        sender: &Mailbox,
        message_id_domain: &str,
    ) -> Result<Self, Unsendable> {
        let key = row.content().idempotency_key();
        let sender = mail.from.as_ref().unwrap_or(sender);
        let headers = headers(mail, row, sender, &format!("<{key}@{message_id_domain}>"));
        let mut bytes = headers.to_string().into_bytes();
        let header_end = bytes.len();
        bytes.extend_from_slice(&body(mail, &key));
        let needs_smtputf8 = !bytes[..header_end].is_ascii();
        check_wire(&bytes, header_end).map_err(Unsendable::Content)?;
        let envelope_sender = sender.address().wire();
        Ok(Self { bytes, envelope_sender, needs_smtputf8 })
    }

    /// Header and body, CRLF line ends, dots not doubled.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The address for MAIL FROM: the same on every attempt.
    pub(crate) fn envelope_sender(&self) -> &str {
        &self.envelope_sender
    }

    /// True if an address in the header cannot be written in ASCII.
    pub(crate) fn needs_smtputf8(&self) -> bool {
        self.needs_smtputf8
    }
}

fn headers(mail: &Mail, row: OutboxView<'_>, sender: &Mailbox, message_id: &str) -> Headers {
    let mut headers = Headers::new();
    headers.insert_raw(date(row));
    headers.set(MessageId::from(message_id.to_owned()));
    let listed = [
        mailboxes("From", [sender]),
        mailboxes("To", mail.mailboxes(Role::To)),
        mailboxes("Cc", mail.mailboxes(Role::Cc)),
        mailboxes("Reply-To", &mail.reply_to),
    ];
    listed.into_iter().flatten().for_each(|field| headers.insert_raw(field));
    if let Some(text) = &mail.subject {
        headers.insert_raw(subject(text));
    }
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    headers.insert_raw(HeaderValue::new(automatic, "auto-generated".to_owned()));
    headers.set(MIME_VERSION_1_0);
    headers
}

/// The subject, so that a reader sees what was given, code point for code point.
///
/// The builder writes ASCII as it is; what a reader would decode, should never see raw, or could
/// not be folded, is encoded here. Source: RFC 2047 §2 and §5.
fn subject(text: &str) -> HeaderValue {
    let is_long = |word: &str| word.is_ascii() && word.len() > MAX_PLAIN_WORD;
    if text.contains("=?") || text.contains(|c: char| c.is_ascii_control()) || text.split(' ').any(is_long) {
        return encoded("Subject", text);
    }
    Subject::from(text.to_owned()).display()
}

/// When the row was written. Written by hand: the builder's own date cannot be before 1970.
fn date(row: OutboxView<'_>) -> HeaderValue {
    let written = row.content().created_at.to_jiff();
    let date = written.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string();
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str("Date"), date.clone(), date)
}

/// Content headers and content: text, HTML, or both as alternatives.
fn body(mail: &Mail, key: &str) -> Vec<u8> {
    let text = mail.text.as_deref().map(|text| SinglePart::plain(with_crlf(text)));
    let html = mail.html.as_deref().map(|html| SinglePart::html(with_crlf(html)));
    match (text, html) {
        (Some(text), Some(html)) => {
            let boundary = boundary(key, &[&text, &html]);
            MultiPart::alternative().boundary(boundary).singlepart(text).singlepart(html).formatted()
        }
        (None, Some(html)) => html.formatted(),
        (Some(text), None) => text.formatted(),
        (None, None) => SinglePart::plain(String::new()).formatted(),
    }
}

/// A boundary from the row's key that occurs in no part.
fn boundary(key: &str, parts: &[&SinglePart]) -> String {
    let occurs = |boundary: &str| {
        parts.iter().any(|part| part.raw_body().windows(boundary.len()).any(|found| found == boundary.as_bytes()))
    };
    let mut boundary = format!("=_{key}");
    while occurs(&boundary) {
        boundary.push('_');
    }
    boundary
}

/// Every line end as CRLF; a lone CR and a lone LF each end a line. Case C10.
fn with_crlf(text: &str) -> String {
    let unix = text.replace("\r\n", "\n").replace('\r', "\n");
    unix.replace('\n', "\r\n")
}

/// The last look at what goes over the wire.
fn check_wire(bytes: &[u8], header_end: usize) -> Result<()> {
    let refuse = |why: &str| Err(Error::invalid(format!("the message cannot be sent: {why}")));
    if !bytes[header_end..].is_ascii() {
        return refuse("its body is not 7-bit");
    }
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return refuse("a line does not end with CRLF");
        };
        if line.contains(&b'\r') {
            return refuse("a line holds a bare CR");
        }
        if line.len() > MAX_LINE {
            return refuse("a line is longer than 998 octets");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use postrider::model::{OutboxId, OutboxRow, TenantId, Timestamp};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn row() -> OutboxRow {
        let at = Timestamp::parse("2026-03-01T10:00:00.5Z").unwrap();
        let mut row = OutboxRow::new(OutboxId::from(Uuid::from_u128(7)), "email", "jane", "jane@example.com", at);
        row.subject = Some("Hello".into());
        row.body = Some("Line one\nLine two".into());
        row
    }

    fn build(row: &OutboxRow) -> String {
        let root = TenantId::ROOT;
        let view = OutboxView::new(row, &root);
        let mail = Mail::read(view).unwrap();
        let sender = Mailbox::parse("Shop <shop@example.com>").unwrap();
        let message = Message::build(&mail, view, &sender, "mail.example.com").unwrap();
        String::from_utf8(message.bytes().to_vec()).unwrap()
    }

    #[test]
    fn a_plain_mail_looks_like_this() {
        let mut row = row();
        row.cc_addresses = vec!["b@bücher.example".into(), "c@example.com".into()];
        row.payload = Some(json!({ "to_name": "Dupré, Jane", "reply_to": "Help <help@example.com>" }));
        assert_eq!(
            build(&row),
            "Date: Sun, 01 Mar 2026 10:00:00 +0000\r\n\
             Message-ID: <00000000-0000-0000-0000-000000000007@mail.example.com>\r\n\
             From: Shop <shop@example.com>\r\n\
             To: =?utf-8?b?RHVwcsOpLCBKYW5l?= <jane@example.com>\r\n\
             Cc: b@xn--bcher-kva.example, c@example.com\r\n\
             Reply-To: Help <help@example.com>\r\n\
             Subject: Hello\r\n\
             Auto-Submitted: auto-generated\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: 7bit\r\n\
             \r\n\
             Line one\r\n\
             Line two\r\n"
        );
    }

    /// Case C14: two builds of one row are equal to the byte; a resend differs in its key alone.
    #[test]
    fn the_same_row_gives_the_same_bytes() {
        let mut row = row();
        row.payload = Some(json!({ "html": "<p>Grüße</p>" }));
        let first = build(&row);
        assert_eq!(first, build(&row));
        assert!(first.contains("boundary=\"=_00000000-0000-0000-0000-000000000007\""), "{first}");
        row.state.resends = 1;
        let resent = build(&row);
        assert!(resent.contains("Message-ID: <00000000-0000-0000-0000-000000000007.1@mail.example.com>"), "{resent}");
        row.state.resends = 0;
        row.id = OutboxId::from(Uuid::from_u128(8));
        assert_ne!(first, build(&row));
    }

    /// Case C10.
    #[test]
    fn every_kind_of_line_end_becomes_crlf() {
        let mut row = row();
        row.body = Some("a\nb\rc\r\nd\n\n\r\r\n".into());
        let message = build(&row);
        assert!(message.ends_with("\r\n\r\na\r\nb\r\nc\r\nd\r\n\r\n\r\n\r\n\r\n"), "{message:?}");
    }

    /// Case C09.
    #[test]
    fn long_lines_and_other_letters_are_encoded() {
        let mut row = row();
        let href = format!("<a href=\"https://example.com/{}\">x</a>", "y".repeat(1_100));
        row.body = Some("z".repeat(1_200));
        row.payload = Some(json!({ "html": href }));
        row.subject = Some("😀".repeat(40));
        let message = build(&row);
        assert!(message.is_ascii());
        assert!(message.split("\r\n").all(|line| line.len() <= 78), "{message}");
        assert_eq!(message.matches("Content-Transfer-Encoding: quoted-printable").count(), 2);
        let unfolded = message.replace("=\r\n", "");
        assert!(unfolded.contains(&"z".repeat(1_200)) && unfolded.contains(&"y".repeat(1_100)));
    }

    #[test]
    fn a_date_before_1970_and_the_first_year_are_written_too() {
        for (at, expected) in [
            (Timestamp::parse("1969-07-20T20:17:40Z").unwrap(), "Date: Sun, 20 Jul 1969 20:17:40 +0000\r\n"),
            (Timestamp::MIN, "Date: Mon, 01 Jan 0001 00:00:00 +0000\r\n"),
        ] {
            let mut row = row();
            row.created_at = at;
            assert!(build(&row).starts_with(expected), "{}", build(&row));
        }
    }

    #[test]
    fn a_boundary_never_occurs_in_a_part() {
        let mut row = row();
        row.body = Some(format!("--=_{}\n", row.id));
        row.payload = Some(json!({ "html": "<p>x</p>" }));
        let message = build(&row);
        assert_eq!(message.matches("\r\n--=_00000000-0000-0000-0000-000000000007_\r\n").count(), 2, "{message}");
    }

    #[test]
    fn a_row_without_content_is_an_empty_mail() {
        let mut row = row();
        row.body = None;
        row.subject = None;
        let message = build(&row);
        assert!(message.ends_with("\r\n\r\n\r\n") && !message.contains("Subject:"), "{message:?}");
    }

    #[test]
    fn the_last_look_finds_what_must_not_go_out() {
        for (bytes, why) in [
            (b"A: b\n\r\n".to_vec(), "CRLF"),
            (b"A: b\rc\r\n".to_vec(), "bare CR"),
            (b"A: b".to_vec(), "CRLF"),
            (["x".repeat(999).as_bytes(), b"\r\n"].concat(), "998"),
            ("A: ü\r\n".into(), "7-bit"),
        ] {
            assert!(check_wire(&bytes, 0).unwrap_err().to_string().contains(why), "{why}");
        }
        assert!(check_wire("A: ü\r\n\r\n".as_bytes(), 7).is_ok());
    }
}
