//! Opening a database, and proving that it answers and can do what the command is about to do.
//!
//! Errors name the database, without its password, and the remedy.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use postrider::model::clock::within;
use postrider::model::{Clock, SystemClock};
use postrider::store::{Database, DatabaseClock, MysqlDatabase, PostgresDatabase, SqliteDatabase, Synchronous};
use postrider::{Error, ErrorKind, Result};

use crate::config::DatabaseAddress;

/// How long a command waits for a server that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);
/// How often opening a SQLite file is tried: it is locked while another process first opens it.
const OPEN_TRIES: u32 = 5;
/// Undone at once; only a statement that writes tells whether SQLite may write.
const WRITE_PROBE: &str = "CREATE TABLE postrider_write_probe (id INTEGER)";
/// How long the pool may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// What a command does with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Looks only; a missing file is an error.
    Read,
    /// Changes rows that exist; a missing file is an error.
    Change,
    /// Writes; a missing file is made.
    Write,
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The pool.
    pub(crate) database: Arc<dyn Database>,
    /// The database's clock, so that all nodes and commands agree on what is due.
    pub(crate) clock: Arc<dyn Clock>,
    pub(super) address: DatabaseAddress,
    database_clock: Arc<DatabaseClock>,
}

impl Opened {
    /// Opens the database and proves that it answers, within `limit` for a server.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if a server does not answer; [`ErrorKind::Configuration`] if the
    /// file cannot be used or the server refuses the login. Both name the database and the remedy.
    pub(crate) async fn open(
        address: &DatabaseAddress,
        connections: u32,
        purpose: Purpose,
        limit: Duration,
    ) -> Result<Self> {
        let database_clock = Arc::new(DatabaseClock::new(Arc::new(SystemClock::new())));
        let clock: Arc<dyn Clock> = database_clock.clone();
        let database: Arc<dyn Database> = match address {
            DatabaseAddress::Sqlite(path) => Arc::new(open_file(path, purpose, &*clock).await?),
            DatabaseAddress::Postgres(url) => {
                let database = PostgresDatabase::connect_lazy(url, connections)?;
                reached(within(&*clock, limit, database.try_connect()).await, address, limit)?;
                Arc::new(database)
            }
            DatabaseAddress::Mysql(url) => {
                let database = MysqlDatabase::connect_lazy(url, connections)?;
                reached(within(&*clock, limit, database.try_connect()).await, address, limit)?;
                Arc::new(database)
            }
        };
        let opened = Self { database, clock, address: address.clone(), database_clock };
        if let DatabaseAddress::Sqlite(path) = &opened.address
            && purpose != Purpose::Read
        {
            opened.try_write(path).await?;
        }
        opened.database_clock.follow(&*opened.database).await?;
        Ok(opened)
    }

    /// Follows the database's clock for as long as this is polled.
    pub(crate) async fn follow_clock(&self) -> Infallible {
        loop {
            self.clock.sleep(DatabaseClock::EVERY).await;
            if let Err(error) = self.database_clock.follow(&*self.database).await {
                tracing::debug!(%error, "the database was not asked for its time; the last answer is kept");
            }
        }
    }

    /// SQLite opens a file that it may not write for reading, without a word.
    async fn try_write(&self, path: &Path) -> Result<()> {
        let tried = async {
            let mut open = self.database.begin().await?;
            let written = open.connection().execute(WRITE_PROBE, &[]).await;
            open.rollback().await?;
            written.map(drop)
        };
        match tried.await {
            Err(error) if !error.is_transient() => Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "the SQLite file {} cannot be written ({error}); let this user write the file \
                     and its folder, or name another with --database sqlite:PATH",
                    path.display()
                ),
            )
            .caused_by(error)),
            // Somebody else writes at this moment: that it can be written is proved.
            _ => Ok(()),
        }
    }

    /// Gives the connections back.
    pub(crate) async fn close(&self) {
        let _ = within(&*self.clock, CLOSE_LIMIT, self.database.close()).await;
    }
}

/// What one try to connect to a server came to, in words with a remedy; no answer within `limit` is none.
fn reached(answer: Option<Result<()>>, address: &DatabaseAddress, limit: Duration) -> Result<()> {
    let hint = if address.seems_badly_encoded() {
        "; the address seems to hold a user or password with characters such as / ? # @ %, which must be \
         percent-encoded (/ is %2F, ? is %3F, # is %23, @ is %40, % is %25)"
    } else {
        ""
    };
    match answer {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) if error.is_transient() => {
            Err(Error::new(ErrorKind::Transient, format!("the database {address} cannot be reached: {error}{hint}"))
                .caused_by(error))
        }
        Some(Err(error)) => {
            let message = format!("the database {address} refuses: {error}{hint}");
            Err(Error::new(ErrorKind::Configuration, message).caused_by(error))
        }
        None => Err(Error::new(
            ErrorKind::Transient,
            format!(
                "the database {address} cannot be reached: nobody answered within {} s; check that \
                 {} runs there, that host and port are right, and that no firewall is between{hint}",
                limit.as_secs(),
                address.product()
            ),
        )),
    }
}

async fn open_file(path: &Path, purpose: Purpose, clock: &dyn Clock) -> Result<SqliteDatabase> {
    if purpose != Purpose::Write && !path.exists() {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "there is no database at {} yet; `postrider serve`, `postrider send` and `postrider \
                 migrate` make it, or name another with --database",
                path.display()
            ),
        ));
    }
    let mut tries = 1;
    loop {
        match SqliteDatabase::open(path, Synchronous::Full).await {
            // Another's file, or a folder that may not be written: it can still be looked at.
            Err(_) if purpose == Purpose::Read && path.is_file() => match SqliteDatabase::open_read_only(path).await {
                Err(_) if tries < OPEN_TRIES => tries += 1,
                opened => return opened,
            },
            Err(_) if tries < OPEN_TRIES && path.is_file() => tries += 1,
            opened => return opened,
        }
        clock.sleep(Duration::from_millis(200)).await;
    }
}
