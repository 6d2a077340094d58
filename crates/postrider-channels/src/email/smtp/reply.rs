//! Replies of an SMTP server, read from bytes: pure, without I/O.
//!
//! Where it stands: between the bytes that arrive and every decision about them. It knows the
//! grammar of a reply and nothing of commands; what a code means is `classify`'s.
//! It must not assume that a packet holds a whole line, that a text is UTF-8, or that a server is
//! honest about lengths. Source: RFC 5321 §4.2.1, RFC 2034 §4.

use std::fmt;

use postrider::model::text::storable_error_bytes;

/// Most octets of one line, its end included. RFC 5321 §4.5.3.1.5 asks for 512; servers write more.
const MAX_LINE: usize = 4_096;

/// Most octets of one reply, all lines together.
const MAX_REPLY: usize = 64 * 1_024;

/// An enhanced status code, `class.subject.detail`. Source: RFC 3463 §2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EnhancedCode {
    /// 2, 4 or 5; always the first digit of the reply's code.
    pub(crate) class: u16,
    /// What it is about: 1 address, 2 mailbox, 3 system, 4 network, 5 protocol, 6 content, 7 policy.
    pub(crate) subject: u16,
    /// Which of its kind.
    pub(crate) detail: u16,
}

impl EnhancedCode {
    /// Reads the code that `text` begins with, and what follows it.
    fn split_off(text: &[u8]) -> Option<(Self, &[u8])> {
        let end = text.iter().position(|b| *b == b' ').unwrap_or(text.len());
        let word = std::str::from_utf8(&text[..end]).ok()?;
        let mut parts = word.split('.').map(|part| {
            let plain = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            if plain { part.parse::<u16>().ok() } else { None }
        });
        let code = Self { class: parts.next()??, subject: parts.next()??, detail: parts.next()?? };
        let known = matches!(code.class, 2 | 4 | 5) && parts.next().is_none();
        known.then(|| (code, text.get(end + 1..).unwrap_or_default()))
    }
}

impl fmt::Display for EnhancedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

/// One whole reply: a code, perhaps an enhanced code, and the text of all its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    code: u16,
    enhanced: Option<EnhancedCode>,
    lines: Vec<Vec<u8>>,
}

impl Reply {
    /// Puts lines (texts without their code) together; the enhanced code is taken out of them.
    fn new(code: u16, mut lines: Vec<Vec<u8>>) -> Self {
        let first = lines.first().and_then(|line| EnhancedCode::split_off(line)).map(|(enhanced, _)| enhanced);
        let enhanced = first.filter(|enhanced| enhanced.class == code / 100);
        for line in &mut lines {
            if let Some((own, rest)) = EnhancedCode::split_off(line)
                && Some(own) == enhanced
            {
                *line = rest.to_vec();
            }
        }
        Self { code, enhanced, lines }
    }

    /// The three digits, 200 to 599.
    pub(crate) fn code(&self) -> u16 {
        self.code
    }

    /// The enhanced code, if the first line begins with one of the reply's own class.
    pub(crate) fn enhanced(&self) -> Option<EnhancedCode> {
        self.enhanced
    }

    /// True for 2yz: done.
    pub(crate) fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// True for 3yz: go on.
    pub(crate) fn is_intermediate(&self) -> bool {
        self.code / 100 == 3
    }

    /// True for 4yz and 5yz: refused, for now or for good.
    pub(crate) fn is_negative(&self) -> bool {
        self.code >= 400
    }

    /// The texts of the lines, without code and enhanced code; bytes, since servers write any.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().map(Vec::as_slice)
    }

    /// The same reply without the server's words: what it said may repeat what it was told.
    pub(crate) fn without_words(self) -> Self {
        Self { lines: Vec::new(), ..self }
    }

    /// The whole reply in one line, as it is stored: code, enhanced code once, all lines' text.
    pub(crate) fn text(&self) -> String {
        let mut bytes = self.code.to_string().into_bytes();
        if let Some(enhanced) = self.enhanced {
            bytes.extend_from_slice(format!(" {enhanced}").as_bytes());
        }
        for line in self.lines().map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            bytes.push(b' ');
            bytes.extend_from_slice(line);
        }
        storable_error_bytes(&bytes)
    }
}

/// Why bytes are no reply. The conversation cannot go on: nobody knows where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyError {
    /// A line does not begin with three digits and a blank, a hyphen or its end.
    NotAReply,
    /// Lines of one reply carry different codes.
    MixedCodes,
    /// A line has no end within 4,096 octets.
    LineTooLong,
    /// A reply has no end within 64 KiB.
    ReplyTooLong,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAReply => "a line is no SMTP reply",
            Self::MixedCodes => "the lines of one reply carry different codes",
            Self::LineTooLong => "a line of a reply is too long",
            Self::ReplyTooLong => "a reply is too long",
        })
    }
}

/// Reads replies out of bytes that arrive in any portions; what follows a reply is kept.
#[derive(Debug, Default)]
pub(crate) struct ReplyParser {
    pending: Vec<u8>,
    code: Option<u16>,
    lines: Vec<Vec<u8>>,
    octets: usize,
    failed: Option<ReplyError>,
}

impl ReplyParser {
    /// Takes bytes as they came.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// True if no byte waits to become part of a reply.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.lines.is_empty()
    }

    /// The next whole reply; `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`ReplyError`] if the bytes are no reply; every later call answers the same.
    pub(crate) fn next_reply(&mut self) -> Result<Option<Reply>, ReplyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance();
        self.failed = result.as_ref().err().copied();
        result
    }

    fn advance(&mut self) -> Result<Option<Reply>, ReplyError> {
        loop {
            let Some(end) = self.pending.iter().position(|b| *b == b'\n') else {
                let unfinished = self.pending.len() > MAX_LINE;
                return if unfinished { Err(ReplyError::LineTooLong) } else { Ok(None) };
            };
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            if line.len() > MAX_LINE {
                return Err(ReplyError::LineTooLong);
            }
            self.octets += line.len();
            if self.octets > MAX_REPLY {
                return Err(ReplyError::ReplyTooLong);
            }
            let (code, is_last, text) = split_line(&line)?;
            if self.code.is_some_and(|known| known != code) {
                return Err(ReplyError::MixedCodes);
            }
            self.code = Some(code);
            self.lines.push(text.to_vec());
            if is_last {
                self.code = None;
                self.octets = 0;
                return Ok(Some(Reply::new(code, std::mem::take(&mut self.lines))));
            }
        }
    }
}

/// Code, whether the line is the last of its reply, and its text.
fn split_line(line: &[u8]) -> Result<(u16, bool, &[u8]), ReplyError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (digits, rest) = line.split_at_checked(3).ok_or(ReplyError::NotAReply)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(ReplyError::NotAReply);
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    let (is_last, text) = match rest.split_first() {
        None => (true, rest),
        Some((b' ', text)) => (true, text),
        Some((b'-', text)) => (false, text),
        Some(_) => return Err(ReplyError::NotAReply),
    };
    if (200..600).contains(&code) { Ok((code, is_last, text)) } else { Err(ReplyError::NotAReply) }
}

/// The one reply that `bytes` are; for tests of other modules.
#[cfg(test)]
pub(crate) fn reply(bytes: &[u8]) -> Reply {
    let mut parser = ReplyParser::default();
    parser.feed(bytes);
    parser.next_reply().unwrap().unwrap()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that `portions` hold: the replies, then the error that ended them.
    fn read(portions: &[&[u8]]) -> (Vec<Reply>, Option<ReplyError>, bool) {
        let mut parser = ReplyParser::default();
        let mut replies = Vec::new();
        for portion in portions {
            parser.feed(portion);
            loop {
                match parser.next_reply() {
                    Ok(Some(reply)) => replies.push(reply),
                    Ok(None) => break,
                    Err(error) => return (replies, Some(error), false),
                }
            }
        }
        (replies, None, parser.is_empty())
    }

    /// Case C15.
    #[test]
    fn a_reply_of_several_lines_ends_at_the_line_with_a_blank() {
        let (replies, error, empty) = read(&[b"220-a\r\n220-b\r\n220 ready\r\n250\r\n"]);
        assert_eq!((replies.len(), error, empty), (2, None, true));
        assert_eq!(replies[0].lines().collect::<Vec<_>>(), [b"a".as_slice(), b"b", b"ready"]);
        assert_eq!(replies[1].text(), "250");
    }

    /// Case C16.
    #[test]
    fn the_text_has_the_enhanced_code_once_and_every_line() {
        let refused = reply(b"550-5.7.1 first\r\n550-5.7.1 second\r\n550 5.7.1 see https://example.com/x\r\n");
        assert_eq!(refused.text(), "550 5.7.1 first second see https://example.com/x");
        assert_eq!(refused.enhanced(), Some(EnhancedCode { class: 5, subject: 7, detail: 1 }));
    }

    #[test]
    fn an_enhanced_code_of_another_class_is_only_text() {
        for line in
            ["250 5.1.1 odd\r\n", "550 192.0.2.1 refused\r\n", "550 5.7 x\r\n", "550 5.1.1.1 x\r\n", "550 3.1.1\r\n"]
        {
            assert_eq!(reply(line.as_bytes()).enhanced(), None, "{line}");
        }
        let mixed = reply(b"550-5.1.1 no\r\n550 5.7.1 other\r\n");
        assert_eq!(mixed.text(), "550 5.1.1 no 5.7.1 other");
    }

    #[test]
    fn text_that_is_not_utf_8_is_kept_readable() {
        let latin = reply(b"550 5.1.1 Empf\xe4nger unbekannt\r\n");
        assert_eq!(latin.text(), "550 5.1.1 Empf\u{fffd}nger unbekannt");
    }

    #[test]
    fn what_is_no_reply_is_refused_for_good() {
        let long = [b"250 ".as_slice(), &vec![b'x'; MAX_LINE], b"\r\n"].concat();
        let endless = b"250-more text that never comes to an end\r\n".repeat(2_000);
        for (bytes, expected) in [
            (b"hello\r\n".as_slice(), ReplyError::NotAReply),
            (b"25\r\n", ReplyError::NotAReply),
            (b"250_x\r\n", ReplyError::NotAReply),
            (b"999 x\r\n", ReplyError::NotAReply),
            (b"100 x\r\n", ReplyError::NotAReply),
            (b"\r\n", ReplyError::NotAReply),
            (b"250-a\r\n251 b\r\n", ReplyError::MixedCodes),
            (&long, ReplyError::LineTooLong),
            (&long[..long.len() - 2], ReplyError::LineTooLong),
            (&endless, ReplyError::ReplyTooLong),
        ] {
            let mut parser = ReplyParser::default();
            parser.feed(bytes);
            assert_eq!(parser.next_reply(), Err(expected));
            parser.feed(b"250 ok\r\n");
            assert_eq!(parser.next_reply(), Err(expected));
        }
    }

    /// Bytes that look like replies often enough to reach every branch.
    fn reply_like() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            4 => "(220|250|354|421|550|999)[ -](5\\.1\\.1 )?[ -~]{0,20}\r\n".prop_map(String::into_bytes),
            1 => "[ -~]{0,10}\n?".prop_map(String::into_bytes),
            1 => proptest::collection::vec(any::<u8>(), 0..20),
        ];
        proptest::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
    }

    proptest! {
        /// Case C15: packets end where they like.
        #[test]
        fn the_same_bytes_give_the_same_replies_however_they_are_split(
            bytes in reply_like(), cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let portions: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = read(&[&bytes]);
            prop_assert_eq!(&read(&portions), &whole);
            prop_assert_eq!(&read(&single), &whole);
        }

        #[test]
        fn no_bytes_make_the_parser_or_the_text_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for reply in read(&[&bytes]).0 {
                prop_assert!(!reply.text().contains('\0'));
            }
        }
    }
}
