//! The scene of a proof: a database, a peer with its file, nodes, and the verdict.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use postrider::model::{NotificationRow, OutboxStatus, SystemClock};
use postrider::store::{OutboxRepository, Query, schema};
use postrider_proof::open;
use postrider_testkit::database::TestDatabase;
use tempfile::TempDir;

/// Kills its process when dropped.
pub(crate) struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    fn start(program: &str, arguments: &[String]) -> Self {
        let mut child =
            Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, lines }
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let stopped = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(stopped.success());
        assert!(self.child.wait().unwrap().success(), "a node stops in an orderly way");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the peer received, against what the table says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Rows that are SENT.
    pub(crate) sent: usize,
    /// Rows in any other status.
    pub(crate) unfinished: usize,
    /// Rows that are SENT and that the peer never saw.
    pub(crate) missing: usize,
    /// Keys that the peer saw more than once, each counted as often as it was too many.
    pub(crate) doubles: usize,
    /// Keys that the peer saw and that are no row's.
    pub(crate) strange: usize,
}

pub(crate) struct Scene {
    database: TestDatabase,
    url: String,
    _peer: Process,
    peer: String,
    file: PathBuf,
    _folder: TempDir,
}

impl Scene {
    /// Starts the peer; it answers `delay_ms` after it wrote a key down.
    pub(crate) fn new(database: TestDatabase, delay_ms: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("received");
        let arguments = ["--file".into(), file.display().to_string(), "--delay-ms".into(), delay_ms.to_string()];
        let mut process = Process::start(env!("CARGO_BIN_EXE_proof-peer"), &arguments);
        let peer = process.line();
        let url = database.url().to_owned();
        Self { database, url, _peer: process, peer, file, _folder: folder }
    }

    /// Makes the tables, so that nodes do not race for that.
    pub(crate) async fn migrate(&self) {
        let repository = self.repository().await;
        schema::migrate::<NotificationRow>(repository.database(), repository.clock(), repository.table())
            .await
            .unwrap();
    }

    pub(crate) async fn repository(&self) -> OutboxRepository<NotificationRow> {
        OutboxRepository::new(open(&self.url).await.unwrap(), Arc::new(SystemClock::new())).unwrap()
    }

    pub(crate) fn node(&self, name: &str, more: &[&str]) -> Process {
        let mut arguments: Vec<String> =
            ["--database", &self.url, "--peer", &self.peer, "--name", name].map(str::to_owned).into();
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        let mut node = Process::start(env!("CARGO_BIN_EXE_proof-node"), &arguments);
        assert_eq!(node.line(), "started");
        node
    }

    /// How many keys the peer has written down.
    pub(crate) fn received(&self) -> usize {
        self.keys().values().sum()
    }

    fn keys(&self) -> BTreeMap<String, usize> {
        let mut keys = BTreeMap::new();
        for key in std::fs::read_to_string(&self.file).unwrap_or_default().lines() {
            *keys.entry(key.to_owned()).or_default() += 1;
        }
        keys
    }

    /// Waits until `count` rows are final, at most two minutes.
    pub(crate) async fn wait_until_final(&self, count: usize) {
        let rows = self.repository().await.root();
        for _ in 0..1_200 {
            let now = postrider::model::Clock::now(&SystemClock::new());
            let waiting: i64 = rows.count_waiting(now).await.unwrap().iter().map(|count| count.rows).sum();
            if waiting == 0 && self.keys().len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("rows are not final after two minutes: {:?}", self.verdict().await);
    }

    /// Computed from the peer's file and the table alone.
    pub(crate) async fn verdict(&self) -> Verdict {
        let rows = self.repository().await.root();
        let mut keys = self.keys();
        let mut verdict = Verdict { sent: 0, unfinished: 0, missing: 0, doubles: 0, strange: 0 };
        let mut all = rows.stream(&Query::new());
        while let Some(entity) = all.next().await {
            let entity = entity.unwrap();
            let seen = keys.remove(&entity.row.idempotency_key()).unwrap_or(0);
            match entity.row.state.status {
                OutboxStatus::Sent => verdict.sent += 1,
                _ => verdict.unfinished += 1,
            }
            verdict.missing += usize::from(seen == 0);
            verdict.doubles += seen.saturating_sub(1);
        }
        verdict.strange = keys.len();
        verdict
    }

    pub(crate) async fn close(self) {
        self.database.close().await;
    }
}
