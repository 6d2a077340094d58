//! A scripted SMTP server: a real listener on loopback that does what a test tells it.
//!
//! Where it stands: the peer of every test that sends mail. Without a script it is a polite server
//! that takes everything; each step can be given another answer, once or always. It records the
//! commands and messages byte for byte. It must not be lenient where a test could then pass by
//! luck: it hands over what came, and interprets no more than it needs to go on.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use postrider_testkit::smtp::{Answer, Script, ScriptedSmtp, Step};
//!
//! let script = Script::new()
//!     .abilities(["SIZE 10000", "AUTH PLAIN"])
//!     .once(Step::Mail, Answer::reply("451 4.3.0 later"))
//!     .recipient("b@example.com", Answer::reply("550 5.1.1 unknown"));
//! let server = ScriptedSmtp::start(script).await?;
//! // … send to 127.0.0.1:server.port() …
//! assert_eq!(server.record().messages.len(), 1);
//! # Ok(())
//! # }
//! ```

mod script;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use script::Act;
pub use script::{Answer, Script, Step};

/// A command line as it came, without its end. The lines inside AUTH are commands too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Which connection: 0 is the first.
    pub connection: usize,
    /// True if it came through TLS.
    pub encrypted: bool,
    /// The line.
    pub line: String,
}

/// A message whose final dot arrived, whatever was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Which connection: 0 is the first.
    pub connection: usize,
    /// The MAIL line.
    pub mail: String,
    /// The addresses of the RCPT lines that were answered with 2yz.
    pub recipients: Vec<String>,
    /// The bytes between the answer to DATA and the final dot, dots doubled as they came.
    pub wire: Vec<u8>,
}

impl ReceivedMessage {
    /// The message with its doubled dots undone, as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(self.wire.len());
        for line in self.wire.split_inclusive(|b| *b == b'\n') {
            bytes.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What has happened so far.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Connections accepted.
    pub connections: usize,
    /// Connections open now.
    pub open: usize,
    /// The most that were open at once.
    pub most_open: usize,
    /// All commands, in the order of their arrival.
    pub commands: Vec<Command>,
    /// All messages, in the order of their arrival.
    pub messages: Vec<ReceivedMessage>,
}

impl Record {
    /// The commands that begin with `verb`.
    #[must_use]
    pub fn lines(&self, verb: &str) -> Vec<&str> {
        self.commands.iter().map(|command| command.line.as_str()).filter(|line| line.starts_with(verb)).collect()
    }
}

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct ScriptedSmtp {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    record: watch::Sender<Record>,
    listener: JoinHandle<()>,
}

impl ScriptedSmtp {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let script = Arc::new(Mutex::new(script));
        let record = watch::Sender::new(Record::default());
        let serve = accept_all(listener, Arc::clone(&script), record.clone());
        Ok(Self { address, script, record, listener: tokio::spawn(serve) })
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Goes on by another script, from the next step of every connection.
    pub fn follow(&self, script: Script) {
        *lock(&self.script) = script;
    }

    /// What has happened so far.
    #[must_use]
    pub fn record(&self) -> Record {
        self.record.borrow().clone()
    }

    /// Waits until the record is as `condition` says.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn wait_until(&self, condition: impl FnMut(&Record) -> bool) {
        // The sender lives as long as the server, so the wait ends by the condition alone.
        let ended = self.record.subscribe().wait_for(condition).await.map(drop);
        drop(ended);
    }
}

impl Drop for ScriptedSmtp {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept_all(listener: TcpListener, script: Arc<Mutex<Script>>, record: watch::Sender<Record>) {
    let mut conversations = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let mut number = 0;
        record.send_modify(|record| {
            number = record.connections;
            record.connections += 1;
            record.open += 1;
            record.most_open = record.most_open.max(record.open);
        });
        let (script, record) = (Arc::clone(&script), record.clone());
        conversations.spawn(async move {
            // How a conversation ends is the test's business; what was said is in the record.
            drop(converse(stream, number, &script, &record).await);
            record.send_modify(|record| record.open -= 1);
        });
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// One conversation.
struct Conversation<'a> {
    stream: Box<dyn Duplex>,
    buffer: Vec<u8>,
    number: usize,
    encrypted: bool,
    mail: String,
    recipients: Vec<String>,
    script: &'a Mutex<Script>,
    record: &'a watch::Sender<Record>,
}

async fn converse(
    stream: TcpStream,
    number: usize,
    script: &Mutex<Script>,
    record: &watch::Sender<Record>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let implicit = lock(script).implicit_tls.clone();
    let mut conversation = Conversation {
        stream: Box::new(stream),
        buffer: Vec::new(),
        number,
        encrypted: false,
        mail: String::new(),
        recipients: Vec::new(),
        script,
        record,
    };
    if let Some(config) = implicit {
        conversation = conversation.encrypt(config).await?;
    }
    conversation.play(Step::Greeting, "220 scripted.example ready").await?;
    loop {
        let line = conversation.command().await?;
        conversation = conversation.obey(&line).await?;
    }
}

impl Conversation<'_> {
    async fn obey(mut self, line: &str) -> io::Result<Self> {
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" => {
                let polite = lock(self.script).ehlo(self.encrypted);
                self.play(Step::Ehlo, &polite).await?;
            }
            "HELO" => drop(self.play(Step::Helo, "250 scripted.example").await?),
            "STARTTLS" => {
                let config = lock(self.script).starttls.clone();
                let polite = if config.is_some() { "220 go ahead" } else { "502 not implemented" };
                let answer = self.play(Step::StartTls, polite).await?;
                if let Some(config) = config.filter(|_| answer.begins_with(b"220")) {
                    self = self.encrypt(config).await?;
                }
            }
            "AUTH" => self.auth(line).await?,
            "MAIL" => {
                self.mail = line.to_owned();
                self.recipients.clear();
                self.play(Step::Mail, "250 sender ok").await?;
            }
            "RCPT" => self.recipient(line).await?,
            "DATA" => {
                if self.play(Step::Data, "354 go ahead").await?.begins_with(b"354") {
                    self.message().await?;
                }
            }
            "RSET" => drop(self.play(Step::Reset, "250 forgotten").await?),
            "QUIT" => {
                self.play(Step::Quit, "221 bye").await?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            _ => drop(self.play(Step::Unknown, "500 what").await?),
        }
        Ok(self)
    }

    async fn auth(&mut self, line: &str) -> io::Result<()> {
        let prompts = match line.split(' ').collect::<Vec<_>>()[..] {
            [_, mechanism, ..] if mechanism.eq_ignore_ascii_case("LOGIN") => 2,
            [_, _, _] => 0,
            _ => 1,
        };
        for _ in 0..prompts {
            self.write(b"334 VXNlcm5hbWU6\r\n").await?;
            self.command().await?;
        }
        self.play(Step::Auth, "235 welcome").await.map(drop)
    }

    async fn recipient(&mut self, line: &str) -> io::Result<()> {
        let address = line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(line, |(inner, _)| inner);
        let own = lock(self.script).recipients.get(address).cloned();
        let answer = match own {
            Some(answer) => answer,
            None => lock(self.script).answer(Step::Recipient, "250 recipient ok"),
        };
        if answer.begins_with(b"2") {
            self.recipients.push(address.to_owned());
        }
        self.perform(&answer).await
    }

    async fn message(&mut self) -> io::Result<()> {
        // A message may be empty: then the dot follows at once.
        let end = loop {
            let alone = self.buffer.starts_with(b".\r\n").then_some(0);
            let after_a_line = self.buffer.windows(5).position(|window| window == b"\r\n.\r\n").map(|at| at + 2);
            if let Some(end) = alone.or(after_a_line) {
                break end;
            }
            self.fill().await?;
        };
        let wire: Vec<u8> = self.buffer.drain(..end + 3).take(end).collect();
        let (connection, mail, recipients) = (self.number, self.mail.clone(), std::mem::take(&mut self.recipients));
        self.record.send_modify(|record| {
            record.messages.push(ReceivedMessage { connection, mail, recipients, wire });
        });
        self.play(Step::EndOfData, "250 2.0.0 queued").await.map(drop)
    }

    /// Does what the script says at `step`, and returns it.
    async fn play(&mut self, step: Step, polite: &str) -> io::Result<Answer> {
        let answer = lock(self.script).answer(step, polite);
        self.perform(&answer).await?;
        Ok(answer)
    }

    async fn perform(&mut self, answer: &Answer) -> io::Result<()> {
        for act in &answer.0 {
            match act {
                Act::Write(bytes) => self.write(bytes).await?,
                Act::Pause(pause) => real_pause(*pause).await,
                Act::Stall => loop {
                    self.fill().await?;
                },
                Act::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let portion = if lock(self.script).byte_by_byte { 1 } else { bytes.len().max(1) };
        for portion in bytes.chunks(portion) {
            self.stream.write_all(portion).await?;
            self.stream.flush().await?;
        }
        Ok(())
    }

    async fn encrypt(self, config: Arc<ServerConfig>) -> io::Result<Self> {
        let stream = TlsAcceptor::from(config).accept(self.stream).await?;
        Ok(Self { stream: Box::new(stream), buffer: Vec::new(), encrypted: true, ..self })
    }

    /// The next line, recorded.
    async fn command(&mut self) -> io::Result<String> {
        let end = loop {
            match self.buffer.iter().position(|b| *b == b'\n') {
                Some(end) => break end,
                None => self.fill().await?,
            }
        };
        let bytes: Vec<u8> = self.buffer.drain(..=end).collect();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into_owned();
        let command = Command { connection: self.number, encrypted: self.encrypted, line: line.clone() };
        self.record.send_modify(|record| record.commands.push(command));
        Ok(line)
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a scripted server is slow in real time")]
async fn real_pause(pause: Duration) {
    tokio::time::sleep(pause).await;
}
