//! Opening what the configuration names: the database, its tables, the channels, the outbox.
//!
//! Where it stands: between the configuration and the commands. It makes a SQLite file only where
//! a command is about to write, and says what to do where something is missing.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use postrider::channel::Channel;
use postrider::model::clock::within;
use postrider::model::{Clock, NotificationRow, OutboxEntity, SystemClock};
use postrider::render::TemplateCatalogue;
use postrider::store::{
    Database, DatabaseClock, OutboxRepository, PostgresDatabase, SqliteDatabase, Synchronous, schema,
};
use postrider::{Error, ErrorKind, Outbox, Result};
use postrider_channels::{EmailChannel, SandboxChannel};

use crate::config::{Config, DatabaseAddress};

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
pub(crate) struct Store {
    /// The pool.
    pub(crate) database: Arc<dyn Database>,
    /// The database's clock, so that all nodes and commands agree on what is due.
    pub(crate) clock: Arc<dyn Clock>,
    database_clock: Arc<DatabaseClock>,
    address: DatabaseAddress,
}

impl Store {
    /// Opens the database and proves that it answers, within `limit` for a server.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if a server does not answer; [`ErrorKind::Configuration`] if the
    /// file cannot be used or the server refuses the login. Both name the database and the remedy.
    pub(crate) async fn open(config: &Config, purpose: Purpose, limit: Duration) -> Result<Self> {
        let database_clock = Arc::new(DatabaseClock::new(Arc::new(SystemClock::new())));
        let clock: Arc<dyn Clock> = database_clock.clone();
        let address = config.database.clone();
        let database: Arc<dyn Database> = match &address {
            DatabaseAddress::Sqlite(path) => Arc::new(open_file(path, purpose, &*clock).await?),
            DatabaseAddress::Postgres(url) => {
                let database = PostgresDatabase::connect_lazy(url, config.connections)?;
                reach(&database, &address, &*clock, limit).await?;
                Arc::new(database)
            }
        };
        let store = Self { database, clock, database_clock, address };
        if let DatabaseAddress::Sqlite(path) = &store.address
            && purpose != Purpose::Read
        {
            store.try_write(path).await?;
        }
        store.database_clock.follow(&*store.database).await?;
        Ok(store)
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

    /// The columns that the table lacks.
    ///
    /// # Errors
    /// What the database says.
    pub(crate) async fn missing_columns(&self) -> Result<Vec<String>> {
        let table = NotificationRow::table()?;
        schema::missing_columns::<NotificationRow>(&self.database, &self.clock, &table).await
    }

    /// Makes sure that the table can be used as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], naming what is missing and the remedy.
    pub(crate) async fn require_table(&self) -> Result<()> {
        let missing = self.missing_columns().await?;
        if missing.is_empty() { Ok(()) } else { Err(self.lacks(&missing)?) }
    }

    /// As [`Self::require_table`], but makes the tables in a SQLite file that has none.
    ///
    /// # Errors
    /// As [`Self::require_table`].
    pub(crate) async fn require_or_make_table(&self) -> Result<()> {
        let missing = self.missing_columns().await?;
        if missing.is_empty() {
            return Ok(());
        }
        let file = matches!(self.address, DatabaseAddress::Sqlite(_));
        if file && has_no_table(&missing) {
            return self.migrate().await.map(drop);
        }
        Err(self.lacks(&missing)?)
    }

    /// Makes or updates the tables; returns how many steps were run.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if they were made by a later version.
    pub(crate) async fn migrate(&self) -> Result<usize> {
        let table = NotificationRow::table()?;
        let done = schema::migrate::<NotificationRow>(&self.database, &self.clock, &table).await;
        match done {
            // The table is the application's own, or this login may not change it: if it has all
            // that it needs, there is nothing to do.
            Err(error) if error.kind() == ErrorKind::Database => match self.missing_columns().await {
                Ok(missing) if missing.is_empty() => Ok(0),
                _ => Err(error.context(format!("the tables cannot be made in {}", self.address))),
            },
            done => done,
        }
    }

    fn lacks(&self, missing: &[String]) -> Result<Error> {
        let table = NotificationRow::table()?;
        let (name, address) = (table.name(), &self.address);
        let what = if has_no_table(missing) {
            format!("the database {address} has no table {name}")
        } else {
            format!("the table {name} in {address} lacks the columns {}", missing.join(", "))
        };
        Ok(Error::new(ErrorKind::Configuration, format!("{what}; `postrider migrate` makes what is missing")))
    }

    /// The rows.
    ///
    /// # Errors
    /// None with the ready-made entity.
    pub(crate) fn repository(&self) -> Result<OutboxRepository<NotificationRow>> {
        OutboxRepository::new(Arc::clone(&self.database), Arc::clone(&self.clock))
    }

    /// The outbox with the configured channels and templates.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] or [`ErrorKind::Template`], naming the setting or the file.
    pub(crate) fn outbox(
        &self,
        channels: Vec<Arc<dyn Channel>>,
        templates: TemplateCatalogue,
    ) -> Result<Outbox<NotificationRow>> {
        let builder = Outbox::builder(Arc::clone(&self.database), Arc::clone(&self.clock));
        let builder = channels.into_iter().fold(builder, |builder, channel| builder.channel(channel));
        builder.renderer(Arc::new(templates)).build()
    }

    /// Gives the connections back.
    pub(crate) async fn close(&self) {
        let _ = within(&*self.clock, CLOSE_LIMIT, self.database.close()).await;
    }
}

/// Makes sure that a server answers, and lets this user in.
async fn reach(
    database: &PostgresDatabase,
    address: &DatabaseAddress,
    clock: &dyn Clock,
    limit: Duration,
) -> Result<()> {
    let hint = if address.seems_badly_encoded() {
        "; the address seems to hold a user or password with characters such as / ? # @ %, which must be \
         percent-encoded (/ is %2F, ? is %3F, # is %23, @ is %40, % is %25)"
    } else {
        ""
    };
    match within(clock, limit, database.try_connect()).await {
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
                 PostgreSQL runs there, that host and port are right, and that no firewall is between{hint}",
                limit.as_secs()
            ),
        )),
    }
}

/// Whether that is the whole table: its key is missing.
fn has_no_table(missing: &[String]) -> bool {
    missing.iter().any(|column| column == "id")
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

/// The channels: e-mail over the relay, or in the sandbox if there is none.
///
/// # Errors
/// [`ErrorKind::Configuration`], naming the setting and the remedy.
pub(crate) fn channels(config: &Config) -> Result<Vec<Arc<dyn Channel>>> {
    let email: Arc<dyn Channel> = match relay(config)? {
        Some(relay) => Arc::new(relay),
        None => Arc::new(SandboxChannel::new("email")),
    };
    Ok(vec![email])
}

/// The channel to the relay, if there is one.
///
/// # Errors
/// As [`channels`].
pub(crate) fn relay(config: &Config) -> Result<Option<EmailChannel>> {
    config.relay.as_ref().map(|relay| EmailChannel::new(relay.settings()?)).transpose()
}

/// The templates of the configured folder; none without one.
///
/// # Errors
/// [`ErrorKind::Configuration`] or [`ErrorKind::Template`], naming the file.
pub(crate) fn templates(config: &Config) -> Result<TemplateCatalogue> {
    match &config.templates {
        Some(folder) => TemplateCatalogue::from_directory(folder),
        None => Ok(TemplateCatalogue::new()),
    }
}
