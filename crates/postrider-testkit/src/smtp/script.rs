//! What a scripted SMTP server is to do: an answer per step, once or always.
//!
//! Where it stands: written by a test, followed by the server. It must not know connections.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;

/// A point of the conversation at which the server can be told what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The first line, before any command.
    Greeting,
    /// EHLO; the polite answer lists [`Script::abilities`].
    Ehlo,
    /// HELO.
    Helo,
    /// STARTTLS; an answer that begins with `220` is followed by the handshake.
    StartTls,
    /// The end of AUTH, after all its lines.
    Auth,
    /// MAIL.
    Mail,
    /// RCPT, for addresses without an answer of their own.
    Recipient,
    /// DATA; an answer that begins with `354` is followed by the message.
    Data,
    /// The final dot; the message is recorded before this answer.
    EndOfData,
    /// RSET.
    Reset,
    /// QUIT.
    Quit,
    /// Anything else.
    Unknown,
}

/// What the server does at a step: a list of acts, done in order.
#[derive(Debug, Clone, Default)]
pub struct Answer(pub(super) Vec<Act>);

#[derive(Debug, Clone)]
pub(super) enum Act {
    Write(Vec<u8>),
    Pause(Duration),
    Stall,
    Close,
}

impl Answer {
    /// Writes one or more lines; `\n` in `text` and its end become CRLF.
    pub fn reply(text: impl AsRef<str>) -> Self {
        let lines = text.as_ref().replace('\n', "\r\n");
        Self::bytes(format!("{lines}\r\n").into_bytes())
    }

    /// Writes these bytes as they are.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Act::Write(bytes.into())])
    }

    /// Says nothing and waits until the client goes away.
    pub fn stall() -> Self {
        Self(vec![Act::Stall])
    }

    /// Closes the connection without a word.
    pub fn close() -> Self {
        Self(vec![Act::Close])
    }

    /// Waits that long in real time before anything else is done.
    #[must_use]
    pub fn after(mut self, pause: Duration) -> Self {
        self.0.insert(0, Act::Pause(pause));
        self
    }

    /// Then does this too.
    #[must_use]
    pub fn then(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// True if the first bytes that it writes at some point are this code.
    pub(super) fn begins_with(&self, code: &[u8]) -> bool {
        self.0.iter().any(|act| matches!(act, Act::Write(bytes) if bytes.starts_with(code)))
    }
}

/// What a server is to do; a polite server where nothing is said.
#[derive(Clone, Default)]
pub struct Script {
    always: HashMap<Step, Answer>,
    once: HashMap<Step, Vec<Answer>>,
    pub(super) recipients: HashMap<String, Answer>,
    abilities: Vec<String>,
    pub(super) starttls: Option<Arc<ServerConfig>>,
    pub(super) implicit_tls: Option<Arc<ServerConfig>>,
    pub(super) byte_by_byte: bool,
}

impl Script {
    /// A polite server without any ability.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The answer to every such step.
    #[must_use]
    pub fn always(mut self, step: Step, answer: Answer) -> Self {
        self.always.insert(step, answer);
        self
    }

    /// The answer to the next such step; called again, to the one after it.
    #[must_use]
    pub fn once(mut self, step: Step, answer: Answer) -> Self {
        self.once.entry(step).or_default().push(answer);
        self
    }

    /// The answer to RCPT for that address, compared as it stands between `<` and `>`.
    #[must_use]
    pub fn recipient(mut self, address: impl Into<String>, answer: Answer) -> Self {
        self.recipients.insert(address.into(), answer);
        self
    }

    /// The keyword lines of the polite answer to EHLO. STARTTLS is listed by itself.
    #[must_use]
    pub fn abilities<const N: usize>(mut self, lines: [&str; N]) -> Self {
        self.abilities = lines.map(str::to_owned).to_vec();
        self
    }

    /// Offers STARTTLS with that configuration.
    #[must_use]
    pub fn starttls(mut self, config: Arc<ServerConfig>) -> Self {
        self.starttls = Some(config);
        self
    }

    /// Speaks TLS from the first byte.
    #[must_use]
    pub fn implicit_tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.implicit_tls = Some(config);
        self
    }

    /// Writes every byte in a packet of its own.
    #[must_use]
    pub fn byte_by_byte(mut self) -> Self {
        self.byte_by_byte = true;
        self
    }

    /// Takes the answer to `step`; answers that hold once are used up.
    pub(super) fn answer(&mut self, step: Step, polite: &str) -> Answer {
        if let Some(next) = self.once.get_mut(&step).filter(|answers| !answers.is_empty()) {
            return next.remove(0);
        }
        self.always.get(&step).cloned().unwrap_or_else(|| Answer::reply(polite))
    }

    /// The polite answer to EHLO.
    pub(super) fn ehlo(&self, encrypted: bool) -> String {
        let mut lines = vec!["scripted.example".to_owned()];
        if self.starttls.is_some() && !encrypted {
            lines.push("STARTTLS".to_owned());
        }
        lines.extend(self.abilities.iter().cloned());
        let last = lines.len() - 1;
        let marked =
            lines.iter().enumerate().map(|(at, line)| format!("250{}{line}", if at == last { ' ' } else { '-' }));
        marked.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("always", &self.always).field("once", &self.once).finish_non_exhaustive()
    }
}
