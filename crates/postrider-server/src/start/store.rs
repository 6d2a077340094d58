//! One outbox in an open database: whether its tables can be used, and its rows.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use postrider::channel::Channel;
use postrider::model::{NotificationRow, OutboxEntity};
use postrider::render::TemplateCatalogue;
use postrider::store::{OutboxRepository, schema};
use postrider::{Error, ErrorKind, Outbox, Result};

use super::open::{Opened, Purpose};
use crate::config::{Config, DatabaseAddress};

/// An outbox in an open database.
#[derive(Debug)]
pub(crate) struct Store {
    opened: Opened,
}

impl Deref for Store {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

impl Store {
    /// Opens the database and proves that it answers, within `limit` for a server.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub(crate) async fn open(config: &Config, purpose: Purpose, limit: Duration) -> Result<Self> {
        let opened = Opened::open(&config.database, config.connections, purpose, limit).await?;
        Ok(Self { opened })
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
}

/// Whether that is the whole table: its key is missing.
fn has_no_table(missing: &[String]) -> bool {
    missing.iter().any(|column| column == "id")
}
