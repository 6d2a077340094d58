//! Header fields that fold: lists of mailboxes, names, and text in encoded words.
//!
//! Where it stands: below `message`. A line is broken between mailboxes, within one only where it
//! would not fit otherwise: no count of copies and no length of a name makes a line that cannot be
//! sent. It must not write a control character or a letter beyond ASCII, but for those of an
//! address that needs SMTPUTF8. Source: RFC 5322 §2.1.1, §2.2.3 and §3.2; RFC 2047 §2 and §5.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use lettre::message::header::{HeaderName, HeaderValue};

use super::mailbox::Mailbox;

/// Most characters of a line, where words allow it.
const WIDTH: usize = 78;

/// Most octets of text in one encoded word: with the field's name it stays below 78.
const MAX_ENCODED_WORD: usize = 39;

/// Most octets of a word of a name that is written as it is.
const MAX_PLAIN_WORD: usize = 60;

/// A field's value, written word by word.
struct Folded {
    text: String,
    column: usize,
}

impl Folded {
    /// Nothing but the field's name so far.
    fn after(field: &str) -> Self {
        Self { text: String::new(), column: field.len() + 2 }
    }

    /// Adds words, on one line if they fit on one.
    fn add(&mut self, words: &[String]) {
        let length = words.iter().map(|word| word.len() + 1).sum::<usize>();
        let mut breaks = self.column + length > WIDTH && !self.text.is_empty();
        for word in words {
            if !self.text.is_empty() {
                if breaks || self.column + 1 + word.len() > WIDTH {
                    self.text.push_str("\r\n");
                    self.column = 0;
                }
                self.text.push(' ');
                self.column += 1;
            }
            breaks = false;
            self.text.push_str(word);
            self.column += word.len();
        }
    }
}

/// A field that lists mailboxes: the domains in A-labels, the local parts untouched.
pub(super) fn mailboxes<'a>(field: &'static str, list: impl IntoIterator<Item = &'a Mailbox>) -> Option<HeaderValue> {
    let mut folded = Folded::after(field);
    let mut list = list.into_iter().peekable();
    list.peek()?;
    while let Some(mailbox) = list.next() {
        let address = mailbox.address().wire();
        let mut words = match mailbox.name() {
            Some(name) => [phrase(name), vec![format!("<{address}>")]].concat(),
            None => vec![address],
        };
        if let Some(last) = words.last_mut().filter(|_| list.peek().is_some()) {
            last.push(',');
        }
        folded.add(&words);
    }
    Some(written(field, folded.text))
}

/// A field of text in encoded words alone.
pub(super) fn encoded(field: &'static str, text: &str) -> HeaderValue {
    let mut folded = Folded::after(field);
    folded.add(&encoded_words(text));
    written(field, folded.text)
}

fn written(field: &'static str, value: String) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(field), value.clone(), value)
}

/// A name as atoms, as a quoted string, or in encoded words: never a mixture. Case C02.
fn phrase(name: &str) -> Vec<String> {
    let is_plain = name.bytes().all(|b| matches!(b, b' '..=b'~')) && !name.contains("=?");
    if !is_plain || name.split(' ').any(|word| word.len() > MAX_PLAIN_WORD) {
        return encoded_words(name);
    }
    let is_atom = |word: &str| !word.is_empty() && word.bytes().all(is_atext);
    if name.split(' ').all(is_atom) {
        return name.split(' ').map(str::to_owned).collect();
    }
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"").split(' ').map(str::to_owned).collect()
}

/// Source: RFC 5322 §3.2.3.
fn is_atext(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

/// The text in encoded words, none of which ends inside a character. Case C08.
fn encoded_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in text.chars() {
        match words.last_mut() {
            Some(word) if word.len() + character.len_utf8() <= MAX_ENCODED_WORD => word.push(character),
            _ => words.push(character.to_string()),
        }
    }
    words.iter().map(|word| format!("=?utf-8?b?{}?=", BASE64.encode(word))).collect()
}

#[cfg(test)]
mod tests {
    use postrider::model::MailAddress;

    use super::*;

    fn to(names: &[Option<&str>]) -> String {
        let address = MailAddress::parse("jane@example.com").unwrap();
        let list: Vec<_> = names.iter().map(|name| Mailbox::new(name.map(str::to_owned), address.clone())).collect();
        let mut headers = lettre::message::header::Headers::new();
        headers.insert_raw(mailboxes("To", &list).unwrap());
        headers.to_string()
    }

    #[test]
    fn a_list_is_broken_between_mailboxes() {
        assert_eq!(
            to(&[Some("Jane"), None, Some("Doe, Jane"), Some("Zoë"), None]),
            "To: Jane <jane@example.com>, jane@example.com, \"Doe, Jane\" <jane@example.com>,\r\n \
             =?utf-8?b?Wm/Dqw==?= <jane@example.com>, jane@example.com\r\n"
        );
        assert!(mailboxes("To", []).is_none());
    }

    #[test]
    fn a_long_name_is_broken_between_its_words() {
        let words = "word ".repeat(300) + "end";
        let quoted = "a, \"b\" ".repeat(200) + "end";
        for name in [&"😀".repeat(1_000), &"x".repeat(5_000), &words, &quoted, &"=?".repeat(500)] {
            let field = to(&[Some(name), Some(name)]);
            assert!(field.is_ascii() && field.split("\r\n").all(|line| line.len() <= WIDTH), "{field}");
            assert_eq!(field.matches("jane@example.com").count(), 2);
        }
        assert!(to(&[Some(&words)]).replace("\r\n", "").contains(&format!("To: {words} <jane")));
    }
}
