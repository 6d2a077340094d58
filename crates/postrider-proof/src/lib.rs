//! What the processes of a proof have in common: the channel to the peer, and opening a database.
//!
//! A proof runs real processes on a real database. The *peer* is the outside world: it writes
//! every key that it receives to a file, and the verdict compares that file with the table.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider::channel::{Channel, Delivery};
use postrider::model::{Blame, FailureScope, InDoubt, NotificationRow, OutboxView, Outcome, Retry, Sent};
use postrider::store::{Database, PostgresDatabase, SqliteDatabase, Synchronous};
use postrider::{Outbox, OutboxBuilder, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// The name of the channel that leads to the peer.
pub const CHANNEL: &str = "peer";

/// Delivers a row by sending its idempotency key as a line; the peer answers `ok` once the key is
/// in its file.
#[derive(Debug)]
pub struct PeerChannel {
    address: String,
}

impl PeerChannel {
    /// The peer that listens at `address`.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }

    async fn send(&self, delivery: Delivery<'_>) -> std::result::Result<(), (bool, std::io::Error)> {
        let before = |error| (false, error);
        let after = |error| (true, error);
        let mut stream = TcpStream::connect(&self.address).await.map_err(before)?;
        if !delivery.point_of_no_return().cross() {
            return Err((false, std::io::Error::other("the delivery was cut")));
        }
        stream.write_all(format!("{}\n", delivery.idempotency_key()).as_bytes()).await.map_err(after)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.map_err(after)?;
        if answer == "ok\n" { Ok(()) } else { Err((true, std::io::Error::other("no answer"))) }
    }
}

impl Channel for PeerChannel {
    fn name(&self) -> &str {
        CHANNEL
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.send(delivery).await {
                Ok(()) => Outcome::Sent(Sent { provider: Some(CHANNEL.to_owned()), ..Sent::default() }),
                Err((true, error)) => Outcome::InDoubt(InDoubt { error: error.to_string(), ledger: None }),
                Err((false, error)) => Outcome::Retry(Retry {
                    error: error.to_string(),
                    after: Some(Duration::from_secs(1)),
                    scope: FailureScope::Destination,
                    blame: Blame::Nobody,
                    ledger: None,
                }),
            }
        })
    }
}

/// Opens `sqlite:PATH` or `postgres://…`.
///
/// # Errors
/// What the database says, or [`postrider::ErrorKind::Configuration`].
pub async fn open(url: &str) -> Result<Arc<dyn Database>> {
    Ok(match url.strip_prefix("sqlite:") {
        Some(path) => Arc::new(SqliteDatabase::open(path.trim_start_matches("//"), Synchronous::Full).await?),
        None => Arc::new(PostgresDatabase::connect_lazy(url, 8)?),
    })
}

/// An outbox whose only channel leads to the peer.
pub fn outbox(database: Arc<dyn Database>, peer: &str) -> OutboxBuilder<NotificationRow> {
    Outbox::builder(database, Arc::new(postrider::model::SystemClock::new())).channel(Arc::new(PeerChannel::new(peer)))
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
