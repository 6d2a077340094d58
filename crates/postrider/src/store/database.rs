//! The library's own pool: begin, commit, isolation, and repeating what may be repeated.
//!
//! Every transaction runs in a task of its own, so that a caller who stops waiting never leaves
//! one open in the pool: cancelling a `begin` in the middle would.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::{Connection, Dialect};
use crate::error::{Error, ErrorKind, Result};
use crate::model::clock::within;
use crate::model::{Clock, Timestamp};

/// A pool of connections to one database.
pub trait Database: fmt::Debug + Send + Sync {
    /// Which database it is.
    fn dialect(&self) -> Dialect;

    /// Opens a transaction that writes: READ COMMITTED, or `BEGIN IMMEDIATE` on SQLite.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if no connection could be had.
    ///
    /// # Cancel safety
    /// Not cancel safe; call it through [`write()`].
    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn Transaction>>>;

    /// A connection outside a transaction, for reading.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if no connection could be had.
    ///
    /// # Cancel safety
    /// Safe: a connection that was not handed out goes back to the pool.
    fn reader(&self) -> BoxFuture<'_, Result<Box<dyn Connection>>>;

    /// The database server's own wall time; `None` where it is this machine's.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    fn now(&self) -> BoxFuture<'_, Result<Option<Timestamp>>> {
        Box::pin(async { Ok(None) })
    }

    /// Wakes other nodes that listen, on a connection of its own, never in a business commit.
    /// A database that cannot is silent: polling is enough.
    fn notify_others(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Tells `listener` that it listens, and whenever another node notifies; returns when the
    /// connection is lost, or at once where the database cannot listen ([`Heard::Unsupported`]).
    ///
    /// # Errors
    /// What the database says where it refuses to listen, or to connect.
    ///
    /// # Cancel safety
    /// Safe: the connection is closed.
    fn listen<'a>(&'a self, _clock: &'a dyn Clock, _listener: &'a dyn Listener) -> BoxFuture<'a, Result<Heard>> {
        Box::pin(async { Ok(Heard::Unsupported) })
    }

    /// Closes the pool once its connections are given back.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Who is told what a listening connection hears.
pub trait Listener: Send + Sync {
    /// It listens from now on; whatever came before is found by one poll.
    fn connected(&self);

    /// Another node has written rows.
    fn notified(&self);
}

/// Wakes for either.
impl Listener for Notify {
    fn connected(&self) {
        self.notify_one();
    }

    fn notified(&self) {
        self.notify_one();
    }
}

/// How listening ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// This database has no notifications between nodes.
    Unsupported,
    /// The connection was lost or did not answer its heartbeat.
    Lost,
}

/// An open transaction of the library's own.
pub trait Transaction: Send {
    /// Commits. An error leaves the result unknown: it may have been committed.
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>>;

    /// Rolls back.
    fn rollback(self: Box<Self>) -> BoxFuture<'static, Result<()>>;

    /// The connection in it.
    fn connection(&mut self) -> &mut dyn Connection;
}

/// How long one transaction of the library's own may take before it is given up.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How often a transaction that the database refused for now is repeated.
const TRIES: u32 = 5;

/// What a write consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// One statement, which the database commits by itself: no BEGIN and COMMIT around it.
    Statement,
    /// Several statements: all or none.
    Transaction,
}

/// Runs `work` and commits it; repeats all of it where the database refused for now or undid it
/// (`work` must therefore bear being repeated). An unknown commit is an error, never repeated.
///
/// # Errors
/// What `work` returned; [`ErrorKind::Transient`] past 30 s or after 5 tries;
/// [`ErrorKind::CommitUnknown`] if the database did not answer the COMMIT.
///
/// # Cancel safety
/// Safe: the write goes on in its own task, and commits or rolls back by itself.
pub async fn write<T, F>(database: &Arc<dyn Database>, clock: &Arc<dyn Clock>, extent: Extent, work: F) -> Result<T>
where
    T: Send + 'static,
    F: for<'c> Fn(&'c mut dyn Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
{
    // SQLite's write lock is waited for only from BEGIN IMMEDIATE on.
    let alone = extent == Extent::Statement && database.dialect() != Dialect::Sqlite;
    let (database, clock) = (Arc::clone(database), Arc::clone(clock));
    own_task(async move {
        let committing = AtomicBool::new(false);
        within(&*clock, TIME_LIMIT, async {
            let mut tries = 1;
            loop {
                let (answer, undone) = if alone {
                    statement(&*database, &work).await
                } else {
                    transaction(&*database, &work, &committing).await
                };
                match answer {
                    // A lock has been waited for already: whoever asked may have something better to do.
                    Err(error)
                        if undone && error.is_transient() && error.kind() != ErrorKind::Locked && tries < TRIES =>
                    {
                        tries += 1
                    }
                    answer => return answer,
                }
                clock.sleep(Duration::from_millis(10) * 2_u32.pow(tries)).await;
            }
        })
        .await
        .unwrap_or_else(|| Err(if committing.into_inner() { unknown(timed_out()) } else { timed_out() }))
    })
    .await
}

/// The answer, and whether an error is known to have left nothing behind.
async fn statement<T, F>(database: &dyn Database, work: &F) -> (Result<T>, bool)
where
    F: for<'c> Fn(&'c mut dyn Connection) -> BoxFuture<'c, Result<T>>,
{
    let mut reader = match database.reader().await {
        Ok(reader) => reader,
        Err(error) => return (Err(error), false),
    };
    let answer = work(&mut *reader).await;
    let undone = answer.as_ref().is_err_and(Error::is_transaction_gone);
    (answer, undone)
}

/// The answer, and whether an error is known to have left nothing behind; `committing` is true
/// while a COMMIT is under way.
async fn transaction<T, F>(database: &dyn Database, work: &F, committing: &AtomicBool) -> (Result<T>, bool)
where
    F: for<'c> Fn(&'c mut dyn Connection) -> BoxFuture<'c, Result<T>>,
{
    let mut open = match database.begin().await {
        Ok(open) => open,
        Err(error) => return (Err(error), true),
    };
    match work(open.connection()).await {
        Ok(value) => {
            committing.store(true, Ordering::SeqCst);
            let answer = open.commit().await;
            committing.store(false, Ordering::SeqCst);
            match answer {
                Ok(()) => (Ok(value), false),
                // A refused commit was undone; any other failure leaves its result unknown.
                Err(error) if error.is_transaction_gone() || error.blames_the_row() => (Err(error), true),
                Err(error) => (Err(unknown(error)), false),
            }
        }
        Err(error) => {
            // The error that matters is the first; the connection is closed if this one fails.
            let _ = open.rollback().await;
            (Err(error), true)
        }
    }
}

/// Reads on a connection outside a transaction, within the time limit.
///
/// # Errors
/// What `work` returned, or [`ErrorKind::Transient`] past the time limit.
///
/// # Cancel safety
/// Safe: the read goes on in its own task.
pub async fn read<T, F>(database: &Arc<dyn Database>, clock: &Arc<dyn Clock>, work: F) -> Result<T>
where
    T: Send + 'static,
    F: for<'c> Fn(&'c mut dyn Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
{
    let (database, clock) = (Arc::clone(database), Arc::clone(clock));
    own_task(async move {
        within(&*clock, TIME_LIMIT, async {
            let first = work(&mut *database.reader().await?).await;
            // A pooled connection that the server closed while it was idle costs one more look.
            match first {
                Err(error) if error.is_transient() => work(&mut *database.reader().await?).await,
                answer => answer,
            }
        })
        .await
        .unwrap_or_else(|| Err(timed_out()))
    })
    .await
}

async fn own_task<T: Send + 'static>(future: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    match tokio::spawn(future).await {
        Ok(answer) => answer,
        Err(stopped) => Err(Error::new(ErrorKind::Database, "a database task was stopped").caused_by(stopped)),
    }
}

fn unknown(error: Error) -> Error {
    Error::new(ErrorKind::CommitUnknown, format!("the commit's result is unknown: {error}")).caused_by(error)
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Transient, "the database did not answer within 30 s")
}
