//! What a server says it can do: the keywords of its answer to EHLO.
//!
//! Where it stands: read once per connection (twice with STARTTLS: what was said in clear is
//! forgotten), asked by the session and the transaction. It must not guess: what was not offered
//! is not used. Source: RFC 5321 §4.1.1.1, RFC 4954 §3.

use super::reply::Reply;

/// The abilities of one server on one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// STARTTLS. RFC 3207.
    pub(crate) starttls: bool,
    /// SIZE, and the most octets of a message if it names a limit. RFC 1870.
    pub(crate) size: Option<Option<u64>>,
    /// 8BITMIME. RFC 6152.
    pub(crate) eight_bit_mime: bool,
    /// SMTPUTF8. RFC 6531.
    pub(crate) smtputf8: bool,
    /// PIPELINING. RFC 2920.
    pub(crate) pipelining: bool,
    /// ENHANCEDSTATUSCODES. RFC 2034.
    pub(crate) enhanced_status_codes: bool,
    /// AUTH PLAIN. RFC 4616.
    pub(crate) auth_plain: bool,
    /// AUTH LOGIN, which no RFC describes.
    pub(crate) auth_login: bool,
}

impl Abilities {
    /// Reads a positive answer to EHLO; its first line is the server's greeting, not a keyword.
    pub(crate) fn read(reply: &Reply) -> Self {
        let mut abilities = Self::default();
        for line in reply.lines().skip(1) {
            abilities.note(&String::from_utf8_lossy(line).to_ascii_uppercase());
        }
        abilities
    }

    fn note(&mut self, line: &str) {
        // Servers for old clients also write `AUTH=LOGIN PLAIN`.
        let mut words = line.split([' ', '\t', '=']).filter(|word| !word.is_empty());
        match words.next() {
            Some("STARTTLS") => self.starttls = true,
            Some("SIZE") => {
                let limit = words.next().and_then(|limit| limit.parse().ok());
                self.size = Some(limit.filter(|limit| *limit > 0));
            }
            Some("8BITMIME") => self.eight_bit_mime = true,
            Some("SMTPUTF8") => self.smtputf8 = true,
            Some("PIPELINING") => self.pipelining = true,
            Some("ENHANCEDSTATUSCODES") => self.enhanced_status_codes = true,
            Some("AUTH") => {
                for mechanism in words {
                    self.auth_plain |= mechanism == "PLAIN";
                    self.auth_login |= mechanism == "LOGIN";
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::reply;
    use super::*;

    /// Case C15.
    #[test]
    fn keywords_are_read_in_any_case_and_in_the_old_form() {
        let abilities = Abilities::read(&reply(
            b"250-STARTTLS.example.com\r\n250-auth=LOGIN PLAIN\r\n250-size 1000\r\n250-8bitmime\r\n\
              250-SmtpUtf8\r\n250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250-DSN\r\n250 X-ODD \xff\r\n",
        ));
        let expected = Abilities {
            starttls: false,
            size: Some(Some(1_000)),
            eight_bit_mime: true,
            smtputf8: true,
            pipelining: true,
            enhanced_status_codes: true,
            auth_plain: true,
            auth_login: true,
        };
        assert_eq!(abilities, expected);
    }

    #[test]
    fn a_size_of_zero_or_none_is_no_limit() {
        for answer in ["250-x\r\n250 SIZE\r\n", "250-x\r\n250 SIZE 0\r\n", "250-x\r\n250 SIZE many\r\n"] {
            assert_eq!(Abilities::read(&reply(answer.as_bytes())).size, Some(None), "{answer}");
        }
        assert_eq!(Abilities::read(&reply(b"250 x\r\n")), Abilities::default());
    }
}
