//! A real mail server for tests that takes everything: Python's aiosmtpd.
//!
//! Somebody else's reading of RFC 5321 at the other end of the line. A recipient whose local part
//! begins with `refused` gets 550, with `later` 451; all others are taken.

#![expect(clippy::expect_used, reason = "test support: what cannot go on fails the test, and says why")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use tempfile::TempDir;

use crate::server::{AIOSMTPD, LIMIT, required, wait_until};

const SINK: &str = include_str!("aiosmtpd_sink.py");

/// One message that was taken, as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The envelope's sender; empty for the null sender `<>`.
    pub from: String,
    /// The envelope's recipients that were taken, in order.
    pub to: Vec<String>,
    /// The parameters of MAIL, such as `BODY=8BITMIME` or `SMTPUTF8`.
    pub options: Vec<String>,
    /// The message, dots unstuffed.
    pub data: Vec<u8>,
}

/// A running sink. It ends when this is dropped, or when the test's process dies.
#[derive(Debug)]
pub struct Aiosmtpd {
    child: Child,
    port: u16,
    file: PathBuf,
    _dir: TempDir,
}

impl Aiosmtpd {
    /// Starts a sink with the Python of `POSTRIDER_TEST_AIOSMTPD`.
    ///
    /// `None` when there is none, after a line that names the skipped test (see [`required`]).
    ///
    /// # Panics
    /// When there must be one and is none, or when it does not start within [`LIMIT`].
    #[must_use]
    pub fn start() -> Option<Self> {
        let python = required(AIOSMTPD)?;
        let dir =
            tempfile::Builder::new().prefix("postrider-aiosmtpd-").tempdir().expect("a temporary folder can be made");
        let script = dir.path().join("sink.py");
        let file = dir.path().join("received");
        std::fs::write(&script, SINK).expect("a file can be written into a new folder");
        let mut child = Command::new(&python)
            // -I: neither the user's packages nor PYTHON* variables.
            .arg("-I")
            .arg(&script)
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {python} ({AIOSMTPD}): {error}"));
        let stdout = child.stdout.take().expect("standard output is piped");
        // The thread ends with the child's output.
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = tell.send(line);
        });
        let line = told.recv_timeout(LIMIT).unwrap_or_default();
        let Ok(port) = line.trim().parse() else {
            let _ = child.kill();
            let _ = child.wait();
            panic!(
                "aiosmtpd did not start within {} s (its own words are above); it printed {line:?}",
                LIMIT.as_secs()
            );
        };
        Some(Self { child, port, file, _dir: dir })
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The messages taken so far, oldest first. One that was acknowledged is among them.
    ///
    /// # Panics
    /// When the sink's record cannot be read.
    #[must_use]
    pub fn messages(&self) -> Vec<Received> {
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => panic!("cannot read what aiosmtpd received: {error}"),
        };
        // A line without its end is still being written.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| received(line.trim_end_matches('\n')))
            .collect()
    }

    /// Waits until there are at least `count` messages.
    ///
    /// # Panics
    /// When [`LIMIT`] has passed.
    #[must_use]
    pub fn wait_for(&self, count: usize) -> Vec<Received> {
        wait_until(&format!("{count} messages at aiosmtpd"), || {
            Some(self.messages()).filter(|found| found.len() >= count)
        })
    }
}

impl Drop for Aiosmtpd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads one line of the sink's record.
fn received(line: &str) -> Received {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_else(|| panic!("aiosmtpd's record has a short line: {line}"));
    let list = |field: &str| field.split(',').filter(|value| !value.is_empty()).map(text).collect();
    let (from, to, options, data) = (next(), next(), next(), next());
    Received { from: text(from), to: list(to), options: list(options), data: bytes(data) }
}

fn text(hex: &str) -> String {
    String::from_utf8_lossy(&bytes(hex)).into_owned()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    hex.as_bytes().chunks(2).map(|two| pair(two).unwrap_or_else(|| panic!("not hexadecimal: {hex}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use crate::server::dialogue;

    #[test]
    fn a_line_of_the_record_is_read_back() {
        let read = received("61\t62,c3a4\t\t0d0a2e");
        let to = vec!["b".to_owned(), "ä".to_owned()];
        assert_eq!(read, Received { from: "a".to_owned(), to, options: vec![], data: b"\r\n.".to_vec() });
    }

    #[test]
    fn a_message_sent_to_it_is_written_down() {
        let Some(sink) = Aiosmtpd::start() else {
            return;
        };
        let mut say = dialogue(sink.port());
        assert!(say("").starts_with("220"));
        assert!(say("EHLO test\r\n").contains("SMTPUTF8"));
        assert!(say("MAIL FROM:<a@example.com> BODY=8BITMIME SMTPUTF8\r\n").starts_with("250"));
        assert!(say("RCPT TO:<refused@example.com>\r\n").starts_with("550 5.1.1"));
        assert!(say("RCPT TO:<later@example.com>\r\n").starts_with("451 4.2.1"));
        assert!(say("RCPT TO:<b@example.com>\r\n").starts_with("250"));
        assert!(say("RCPT TO:<ä@example.com>\r\n").starts_with("250"));
        assert!(say("DATA\r\n").starts_with("354"));
        assert!(say("Subject: x\r\n\r\n..ü\r\n.\r\n").starts_with("250"));
        let expected = Received {
            from: "a@example.com".to_owned(),
            to: vec!["b@example.com".to_owned(), "ä@example.com".to_owned()],
            options: vec!["BODY=8BITMIME".to_owned(), "SMTPUTF8".to_owned()],
            data: "Subject: x\r\n\r\n.ü\r\n".as_bytes().to_vec(),
        };
        assert_eq!(sink.messages(), [expected]);
        let port = sink.port();
        drop(sink);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "still listening");
    }
}
