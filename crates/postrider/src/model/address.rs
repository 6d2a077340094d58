//! Mail addresses: what is accepted, and why not.
//!
//! One answer for library, command line and importer. Stricter than RFC 5321 where the grammar
//! is a trap: quoted local parts and comments are refused. Letter case is never changed.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::error::{Error, Result};

/// A checked mail address `local@domain`, kept as it was given.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MailAddress {
    text: String,
    at: usize,
    ascii_domain: String,
}

impl MailAddress {
    /// Checks an address.
    ///
    /// Accepted: a dot-atom local part of at most 64 octets, also with non-ASCII letters (RFC
    /// 6531); a domain of at most 255 octets whose labels have at most 63, also internationalised
    /// (RFC 5890); an address literal `[192.0.2.1]` or `[IPv6:2001:db8::1]`. Blanks around it, a
    /// trailing dot, comments and quoted local parts are refused, not mended.
    ///
    /// Source: RFC 5321 §4.1.2, §4.1.3, §4.5.3.1; cases C01 and C05.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), naming the address and the reason.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: &str| Err(Error::invalid(format!("{text:?} is not a mail address: {why}")));
        if text.is_empty() {
            return refuse("it is empty");
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return refuse("it holds a blank, a line break or another control character");
        }
        let Some(at) = text.rfind('@') else {
            return refuse("there is no '@'");
        };
        let (local, domain) = (&text[..at], &text[at + 1..]);
        if let Err(why) = check_local(local) {
            return refuse(why);
        }
        match check_domain(domain) {
            Ok(ascii_domain) => Ok(Self { text: text.to_owned(), at, ascii_domain }),
            Err(why) => refuse(why),
        }
    }

    /// The address as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the `@`.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.text[..self.at]
    }

    /// The domain for the wire: A-labels (punycode), or an address literal in its brackets.
    #[must_use]
    pub fn ascii_domain(&self) -> &str {
        &self.ascii_domain
    }

    /// True if the local part cannot be written in ASCII, so that the peer must offer SMTPUTF8.
    #[must_use]
    pub fn needs_smtputf8(&self) -> bool {
        !self.local().is_ascii()
    }

    /// The address for the wire: the local part untouched, the domain in A-labels.
    #[must_use]
    pub fn wire(&self) -> String {
        format!("{}@{}", self.local(), self.ascii_domain)
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MailAddress({:?})", self.text)
    }
}

fn check_local(local: &str) -> Result<(), &'static str> {
    if local.is_empty() {
        return Err("there is nothing before the '@'");
    }
    if local.len() > 64 {
        return Err("the part before the '@' is longer than 64 octets");
    }
    if local.starts_with('"') || local.contains(['"', '\\']) {
        return Err("quoted local parts are not accepted");
    }
    if local.starts_with('.') || local.ends_with('.') || local.contains("..") {
        return Err("a dot stands first, last or doubled before the '@'");
    }
    let atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c) || !c.is_ascii();
    if local.chars().any(|c| !atom(c)) {
        return Err("a character before the '@' is not allowed unquoted");
    }
    Ok(())
}

fn check_domain(domain: &str) -> Result<String, &'static str> {
    if let Some(literal) = domain.strip_prefix('[') {
        let inner = literal.strip_suffix(']').ok_or("the address literal is not closed")?;
        let good = match inner.get(..5) {
            Some(tag) if tag.eq_ignore_ascii_case("IPv6:") => inner[5..].parse::<Ipv6Addr>().is_ok(),
            _ => inner.parse::<Ipv4Addr>().is_ok(),
        };
        return if good { Ok(domain.to_owned()) } else { Err("the address literal is not an IP address") };
    }
    if domain.is_empty() {
        return Err("there is nothing after the '@'");
    }
    if domain.ends_with('.') {
        return Err("the domain ends with a dot");
    }
    let ascii = idna::domain_to_ascii_cow(domain.as_bytes(), idna::AsciiDenyList::STD3)
        .map_err(|_| "the domain is not a valid name")?;
    if ascii.len() > 255 {
        return Err("the domain is longer than 255 octets");
    }
    for label in ascii.split('.') {
        if label.is_empty() {
            return Err("the domain has an empty label");
        }
        if label.len() > 63 {
            return Err("a label of the domain is longer than 63 octets");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("a label of the domain begins or ends with a hyphen");
        }
    }
    Ok(ascii.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case C05.
    #[test]
    fn the_edge_table_of_addresses() {
        let local = |n| format!("{}@example.com", "a".repeat(n));
        let label = |n| format!("user@{}.com", "a".repeat(n));
        let good = [
            local(64),
            label(63),
            "user@[192.0.2.1]".into(),
            "user@[IPv6:2001:db8::1]".into(),
            "user@xn--hxajbheg2az3al.xn--jxalpdlp".into(),
            "zoë@example.com".into(),
            "info@bücher.example".into(),
            "first.last+tag@EXAMPLE.com".into(),
        ];
        for address in good {
            assert_eq!(MailAddress::parse(&address).unwrap().as_str(), address);
        }
        let bad = [
            "user@example.com.".into(),
            "user@example.com\n".into(),
            " user@example.com ".into(),
            local(65),
            label(64),
            "user@[IPv6:2001:db8::1::2]".into(),
            "user@[IPv6:2001:db8::1".into(),
            "user@[999.0.2.1]".into(),
            "user@-example.com".into(),
            "\"open@example.com".into(),
            "(c)user@example.com".into(),
            "user(c)@example.com".into(),
            "user@exam ple.com".into(),
            "user@exam_ple.com".into(),
            "user@a..b".into(),
            ".user@example.com".into(),
            "us..er@example.com".into(),
            "user@".into(),
            "@example.com".into(),
            "user".into(),
            String::new(),
            "a@b@example.com".into(),
            "user@example.com\0".into(),
            "\"ops@outside.example> ORCPT=rfc822;x\"@corp.example".into(),
        ];
        for address in bad {
            let error = MailAddress::parse(&address).unwrap_err();
            assert!(error.is_invalid(), "{address:?}");
        }
    }

    /// Case C03: an A-label for the domain only; the local part is never changed.
    #[test]
    fn only_the_domain_is_written_in_a_labels() {
        let address = MailAddress::parse("Info@Bücher.example").unwrap();
        assert_eq!(address.wire(), "Info@xn--bcher-kva.example");
        assert!(!address.needs_smtputf8());
        assert!(MailAddress::parse("zoë@example.com").unwrap().needs_smtputf8());
    }
}
