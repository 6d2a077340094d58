//! SQLite: one writer at a time, `BEGIN IMMEDIATE`, WAL, `synchronous=FULL`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments, AssertSqlSafe, ConnectOptions as _, Row, Sqlite, SqliteConnection, TypeInfo, ValueRef};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::transaction::PoolTransaction;
use super::{connection, delegate, failed};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Kind, Timestamp, Value};
use crate::store::connection::Fetched;
use crate::store::statements::READ_PROBE;
use crate::store::{Connection, Database, Dialect, Transaction};

/// How surely a commit is on the disk before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// After every commit: a sent message's row never vanishes. The default.
    #[default]
    Full,
    /// At checkpoints: faster, but power loss can undo the latest commits after their mail went out.
    Normal,
}

/// An SQLite file as the outbox's database. Local disks only: WAL does not work over a network.
#[derive(Debug, Clone)]
pub struct SqliteDatabase {
    pool: SqlitePool,
    /// One writer at a time in this process, in the order of asking: SQLite's own waiting is a
    /// lottery, which a busy process can lose for longer than its busy timeout.
    writer: Arc<Semaphore>,
}

impl SqliteDatabase {
    /// Opens the file, and makes it if it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file can neither be opened nor made, or not written.
    pub async fn open(path: impl AsRef<Path>, synchronous: Synchronous) -> Result<Self> {
        let path = path.as_ref();
        let options =
            options(path).create_if_missing(true).journal_mode(SqliteJournalMode::Wal).synchronous(match synchronous {
                Synchronous::Full => SqliteSynchronous::Full,
                Synchronous::Normal => SqliteSynchronous::Normal,
            });
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.map_err(|cause| {
            Error::new(
                ErrorKind::Configuration,
                format!(
                    "the SQLite file {} cannot be opened for writing ({cause}); check that its folder exists \
                     and that this user may write the file and its folder",
                    path.display()
                ),
            )
            .caused_by(cause)
        })?;
        Ok(Self::from_pool(pool))
    }

    /// Opens the file for reading only, also where neither it nor its folder may be written.
    ///
    /// If nobody has the file open, and its folder may not be written, it is read as it stands now:
    /// what is written while this pool is open is not seen.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if it cannot be read: also if it was left with changes in the
    /// `-wal` file beside it, which only somebody who may write the folder can take over.
    pub async fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let refused = |cause: sqlx::Error, remedy: &str| {
            let message = format!("the SQLite file {} cannot be read ({cause}); {remedy}", path.display());
            Error::new(ErrorKind::Configuration, message).caused_by(cause)
        };
        let options = options(path).read_only(true);
        let first = match Self::readable(options.clone()).await {
            Ok(pool) => return Ok(Self::from_pool(pool)),
            Err(error) => error,
        };
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        // Without its folder SQLite can make no index of that file, and would not see what is in it.
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            return Err(refused(
                first,
                "its latest changes are in the -wal file beside it, and taking them over writes into the folder: \
                 let this user write the folder, or copy both files elsewhere",
            ));
        }
        let pool = Self::readable(options.immutable(true)).await;
        let pool =
            pool.map_err(|cause| refused(cause, "check that it is an SQLite file, and that this user may read it"))?;
        Ok(Self::from_pool(pool))
    }

    /// A pool whose first connection has read from the file.
    async fn readable(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await?;
        match sqlx::query(READ_PROBE).execute(&pool).await {
            Ok(_) => Ok(pool),
            Err(error) => {
                pool.close().await;
                Err(error)
            }
        }
    }

    /// Uses a pool of the application's own; it must be in WAL mode with a busy timeout.
    #[must_use]
    pub fn from_pool(pool: SqlitePool) -> Self {
        Self { pool, writer: Arc::new(Semaphore::new(1)) }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }
}

/// What every connection has. Statements are never logged, slow or not: one of them may be large.
fn options(path: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(Duration::from_secs(5));
    options.disable_statement_logging()
}

impl Database for SqliteDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn Transaction>>> {
        Box::pin(async {
            let turn = Arc::clone(&self.writer).acquire_owned().await.map_err(|_| failed(sqlx::Error::PoolClosed))?;
            let connection = self.pool.acquire().await.map_err(failed)?;
            let open = PoolTransaction::<Sqlite>::begin(connection, "BEGIN IMMEDIATE", Some(turn)).await?;
            Ok(Box::new(open) as Box<dyn Transaction>)
        })
    }

    fn reader(&self) -> BoxFuture<'_, Result<Box<dyn Connection>>> {
        Box::pin(async { Ok(Box::new(self.pool.acquire().await.map_err(failed)?) as Box<dyn Connection>) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.close())
    }
}

connection!(Sqlite, SqliteConnection, Dialect::Sqlite, Timestamp::as_micros, read);

/// Reads one column; SQLite's columns may hold anything, so what does not fit is told, not fatal.
fn read(row: &SqliteRow, at: usize, kind: Kind) -> Value {
    let Ok(raw) = row.try_get_raw(at) else {
        return Value::Unreadable(format!("column {at} is missing"));
    };
    if raw.is_null() {
        return Value::null(kind);
    }
    let stored = raw.type_info();
    let stored = stored.name();
    let value = match (kind, stored) {
        (Kind::Bool, "INTEGER" | "BOOLEAN") => row.try_get::<i64, _>(at).map(|v| Value::from(v != 0)),
        (Kind::Int, "INTEGER" | "BOOLEAN") => row.try_get::<i64, _>(at).map(Value::from),
        (Kind::Time, "INTEGER") => row.try_get::<i64, _>(at).map(|v| Value::from(Timestamp::from_micros(v))),
        (Kind::Float, "REAL") => row.try_get::<f64, _>(at).map(Value::from),
        (Kind::Bytes, "BLOB") => row.try_get::<Vec<u8>, _>(at).map(Value::from),
        (Kind::Text, "TEXT") => row.try_get::<String, _>(at).map(Value::from),
        (Kind::Uuid, "BLOB") => row.try_get::<Uuid, _>(at).map(Value::from),
        (Kind::Uuid, "TEXT") => row
            .try_get::<String, _>(at)
            .and_then(|text| Uuid::parse_str(&text).map_err(|cause| sqlx::Error::Decode(cause.into())))
            .map(Value::from),
        _ => return Value::Unreadable(format!("expected {kind:?}, found {stored}")),
    };
    value.unwrap_or_else(|cause| Value::Unreadable(cause.to_string()))
}
