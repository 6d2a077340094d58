//! A folder to run `postrider` in, and a guard around its daemon.
//!
//! Every wait has an end: [`wait_until`] fails the test after 30 s.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub(crate) use postrider_testkit::server::wait_until;
use serde_json::Value as Json;

/// Variables of the program that the tests' own environment may hold.
const FOREIGN: [&str; 9] = [
    "COLUMNS",
    "NO_COLOR",
    "POSTRIDER_CONFIG",
    "POSTRIDER_DATABASE",
    "POSTRIDER_DATABASE_FILE",
    "POSTRIDER_EMAIL_FROM",
    "POSTRIDER_EMAIL_HOST",
    "POSTRIDER_LOG",
    "POSTRIDER_NODE",
];

/// A new folder where `postrider` runs; removed at the end.
pub(crate) struct Folder(tempfile::TempDir);

/// What a run of `postrider` left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("postrider-it-").tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, folders included.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with these arguments, not started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).current_dir(self.path()).env("USER", "tester");
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        finish(self.command(arguments), "")
    }

    /// Runs the program, which must end with 0, and reads its JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Json {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        self.run(&arguments).ok().json()
    }

    /// Writes one e-mail and returns its id.
    pub(crate) fn send(&self, more: &[&str]) -> String {
        let base = ["send", "--to", "alice@example.com", "--subject", "Hello"];
        let body: &[&str] = if more.contains(&"--body") { &[] } else { &["--body", "Hi there"] };
        let answer = self.json(&[&base, body, more].concat());
        answer[0]["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the row has that status, and returns it.
    pub(crate) fn wait_for(&self, id: &str, status: &str, more: &[&str]) -> Json {
        wait_until(&format!("{id} to be {status}"), || {
            let shown = self.json(&[&["show", id], more].concat());
            (shown["row"]["status"] == status).then(|| shown["row"].clone())
        })
    }
}

/// Runs a command to its end, with that text on its stdin.
pub(crate) fn finish(mut command: Command, stdin: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    // A program that reads nothing may have closed it.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    let mut child = Daemon { child, stdout, stderr };
    let code = child.ended().code();
    Run { code, stdout: child.stdout.whole(), stderr: child.stderr.whole() }
}

impl Run {
    /// The same, if it ended with 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// The same, if it ended with that code and said each of these on stderr.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, said: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for text in said {
            assert!(self.stderr.contains(text), "{text:?} is not in {self:?}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A running program; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

impl Daemon {
    /// Starts `postrider serve` and waits until it delivers.
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let mut daemon = Self::spawn(folder.command(&[&["serve"], arguments].concat()));
        daemon.wait_for_line("delivering");
        daemon
    }

    /// Starts a command, whatever it comes to.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Waits until stderr holds that text.
    pub(crate) fn wait_for_line(&mut self, text: &str) {
        wait_until(&format!("{text:?} on stderr"), || {
            if self.stderr().contains(text) {
                return Some(());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("ended with {status} before {text:?}: {}", self.stderr.whole());
            }
            None
        });
    }

    /// What came on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// What came on stdout so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap();
        assert!(sent.success(), "kill -{name} {id}: {sent}");
    }

    /// Closes the program's stdout on the reader's side.
    pub(crate) fn stop_reading(mut command: Command) -> ExitStatus {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        wait_until("the program to end", || child.try_wait().unwrap())
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_until("the program to end", || self.child.try_wait().unwrap())
    }

    /// Stops it with SIGTERM and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.ended().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a stream held, read by a thread of its own.
struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

fn collect(mut from: impl Read + Send + 'static) -> Stream {
    let text = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&text);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            into.lock().unwrap().extend_from_slice(&buffer[..read]);
        }
    });
    Stream { text, reader: Some(reader) }
}

impl Stream {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    /// All of it, once the program has ended.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}
