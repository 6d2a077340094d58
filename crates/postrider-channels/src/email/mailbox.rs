//! A mailbox: an address and perhaps a name, read from `Name <address>`.
//!
//! Where it stands: for the sender of the configuration and for what a row's payload names. It
//! must not take a list for one mailbox. How a name is written into a header is `header`'s.

use std::str::FromStr;

use postrider::model::MailAddress;
use postrider::model::text::refuse_line_break;
use postrider::{Error, Result};

/// An address with an optional name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mailbox {
    name: Option<String>,
    address: MailAddress,
}

impl Mailbox {
    /// Puts a mailbox together; a name of blanks alone is none.
    pub(crate) fn new(name: Option<String>, address: MailAddress) -> Self {
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Self { name, address }
    }

    /// Reads `address`, `Name <address>` or `"Name" <address>`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](postrider::ErrorKind::Invalid) if it is none, or several.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        refuse_line_break("mailbox", text)?;
        let text = text.trim();
        let Some((name, address)) = text.strip_suffix('>').and_then(|inner| inner.rsplit_once('<')) else {
            return Ok(Self { name: None, address: MailAddress::parse(text)? });
        };
        let name = name.trim();
        let name = match name.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
            Some(quoted) => unescape(quoted),
            None if name.contains(['<', '>', '"']) => {
                return Err(Error::invalid(format!("{text:?} is not one mailbox like 'Name <address>'")));
            }
            None => name.to_owned(),
        };
        Ok(Self::new(Some(name), MailAddress::parse(address)?))
    }

    /// The name, without blanks around it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address.
    pub(crate) fn address(&self) -> &MailAddress {
        &self.address
    }
}

impl FromStr for Mailbox {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Takes the backslashes out of quoted pairs. Source: RFC 5322 §3.2.4.
fn unescape(quoted: &str) -> String {
    let mut plain = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_an_address_with_or_without_a_name() {
        for (text, name, address) in [
            ("shop@example.com", None, "shop@example.com"),
            ("<shop@example.com>", None, "shop@example.com"),
            ("Shop <shop@example.com>", Some("Shop"), "shop@example.com"),
            ("Dupré, Jane <j@example.com>", Some("Dupré, Jane"), "j@example.com"),
            (r#""Ann \"Q\" O'Hara" <ann@example.com>"#, Some("Ann \"Q\" O'Hara"), "ann@example.com"),
            (r#""a \\ b" <ann@example.com>"#, Some(r"a \ b"), "ann@example.com"),
            ("  Shop   <shop@example.com>  ", Some("Shop"), "shop@example.com"),
        ] {
            let mailbox = Mailbox::parse(text).unwrap();
            assert_eq!((mailbox.name(), mailbox.address().as_str()), (name, address), "{text}");
        }
    }

    /// Case C06.
    #[test]
    fn what_is_not_one_mailbox_is_refused() {
        for text in [
            "",
            "Shop",
            "Shop shop@example.com",
            "A <a@example.com>, B <b@example.com>",
            "Shop <shop@example.com",
            "Shop <shop@example.com>\r\nBcc: x@example.com",
            "Shop <shop@example.com>\n",
            "a\"b <shop@example.com>",
        ] {
            assert!(Mailbox::parse(text).unwrap_err().is_invalid(), "{text:?}");
        }
    }
}
