//! One outbox in an open database: whether its tables can be used, and its rows.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use postrider::channel::Channel;
use postrider::model::{NotificationRow, OutboxEntity, TableDef, column};
use postrider::render::TemplateCatalogue;
use postrider::store::OutboxRepository;
use postrider::store::schema::{self, Finding};
use postrider::{Error, ErrorKind, Outbox, Result};

use super::open::{Opened, Purpose};
use crate::config::{DatabaseAddress, OutboxConfig};

/// An outbox in an open database. The schema's functions are told the table; which of the ready-made
/// entities they are called for makes no difference, since neither has columns of its own.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    opened: Arc<Opened>,
    outbox: OutboxConfig,
}

impl Deref for Store {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

impl Store {
    /// Opens the outbox's database and proves that it answers, within `limit` for a server.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub(crate) async fn open(outbox: &OutboxConfig, purpose: Purpose, limit: Duration) -> Result<Self> {
        let opened = Opened::open(&outbox.database, outbox.connections, purpose, limit).await?;
        Ok(Self { opened: Arc::new(opened), outbox: outbox.clone() })
    }

    /// Another outbox of the same database.
    pub(crate) fn beside(&self, outbox: &OutboxConfig) -> Self {
        Self { opened: Arc::clone(&self.opened), outbox: outbox.clone() }
    }

    /// The table.
    pub(crate) fn table(&self) -> &TableDef {
        &self.outbox.table
    }

    /// The outbox's name in the configuration, if there may be several.
    pub(crate) fn name(&self) -> Option<&str> {
        self.outbox.name.as_deref()
    }

    /// Whether the table has a tenant column.
    pub(crate) fn has_tenants(&self) -> bool {
        self.table().tenant().is_some()
    }

    /// What the tables lack or have otherwise.
    ///
    /// # Errors
    /// What the database says.
    pub(crate) async fn verify(&self) -> Result<Vec<Finding>> {
        schema::verify::<NotificationRow>(&self.database, &self.clock, self.table()).await
    }

    /// Makes sure that the table has all columns, as looking at rows needs it.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], naming what is missing and the remedy.
    pub(crate) async fn require_table(&self) -> Result<()> {
        self.complete(&self.verify().await?)
    }

    /// Makes sure that rows can be delivered: the tables are as the library needs them.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], naming what is wrong and the remedy.
    pub(crate) async fn require_usable(&self) -> Result<()> {
        let findings = self.verify().await?;
        self.complete(&findings)?;
        self.judge(&findings, is_problem)
    }

    /// Makes sure that rows can be written as well; makes the tables in a SQLite file that has none.
    ///
    /// # Errors
    /// As [`Self::require_usable`]; also if the table has columns that only its application fills.
    pub(crate) async fn require_writable(&self) -> Result<()> {
        let findings = self.verify().await?;
        let file = matches!(self.address, DatabaseAddress::Sqlite(_));
        if file && self.has_no_table(&findings) {
            return self.migrate().await.map(drop);
        }
        self.complete(&findings)?;
        self.judge(&findings, is_problem)?;
        let unwritten: Vec<&str> = findings.iter().filter_map(|finding| self.unwritten(finding)).collect();
        if unwritten.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "rows of the table {} can only be written by its own application, which alone fills the columns {}; \
                 what it writes is delivered",
                self.table().name(),
                unwritten.join(", ")
            ),
        ))
    }

    /// The name of a column of the outbox's table that only its application fills.
    fn unwritten<'a>(&self, finding: &'a Finding) -> Option<&'a str> {
        match finding {
            Finding::Unwritten { table, column, .. } if table == self.table().name() => Some(column),
            _ => None,
        }
    }

    fn judge(&self, findings: &[Finding], counts: impl Fn(&Finding) -> bool) -> Result<()> {
        let told: Vec<String> = findings.iter().filter(|finding| counts(finding)).map(ToString::to_string).collect();
        if told.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the tables in {} cannot be used as they are: {}; `postrider schema --verify{}` has the statements \
                 that mend them",
                self.address,
                told.join("; "),
                self.flag()
            ),
        ))
    }

    /// Makes or updates the tables; returns how many steps were run. A table that its application
    /// keeps is left alone.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if they were made by a later version.
    pub(crate) async fn migrate(&self) -> Result<usize> {
        let version = schema::version(&self.database, &self.clock, self.table()).await?;
        if version.is_none() && !self.has_no_table(&self.verify().await?) {
            return Ok(0);
        }
        let done = schema::migrate::<NotificationRow>(&self.database, &self.clock, self.table()).await;
        match done {
            // This login may not change the tables: if they have all that is needed, there is nothing to do.
            Err(error) if error.kind() == ErrorKind::Database => match self.require_table().await {
                Ok(()) => Ok(0),
                Err(_) => Err(error.context(format!("the tables cannot be made in {}", self.address))),
            },
            done => done,
        }
    }

    /// Refuses a table that is not there, or lacks columns.
    fn complete(&self, findings: &[Finding]) -> Result<()> {
        let (name, address, flag) = (self.table().name(), &self.address, self.flag());
        let missing: Vec<&str> = findings.iter().filter_map(|finding| self.missing(finding)).collect();
        let message = if self.has_no_table(findings) {
            format!("the database {address} has no table {name}; `postrider migrate{flag}` makes what is missing")
        } else if missing.is_empty() {
            return Ok(());
        } else {
            format!(
                "the table {name} in {address} lacks the columns {}; `postrider migrate{flag}` makes what this version \
                 added, and `postrider schema --verify{flag}` has the statements for a table of your own",
                missing.join(", ")
            )
        };
        Err(Error::new(ErrorKind::Configuration, message))
    }

    /// The name of a column that the outbox's table lacks.
    fn missing<'a>(&self, finding: &'a Finding) -> Option<&'a str> {
        match finding {
            Finding::MissingColumn { table, column, .. } if table == self.table().name() => Some(column),
            _ => None,
        }
    }

    /// The flag with which another call is about this outbox.
    pub(crate) fn flag(&self) -> String {
        self.name().map(|name| format!(" --outbox {name}")).unwrap_or_default()
    }

    /// Whether the whole table is missing; one without its key is none.
    fn has_no_table(&self, findings: &[Finding]) -> bool {
        let id = self.table().column(column::ID);
        findings.iter().any(|finding| match finding {
            Finding::MissingTable { table, .. } => table == self.table().name(),
            finding => self.missing(finding) == Some(id),
        })
    }

    /// The rows, as the entity of [`served_by`](crate::served_by).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the entity is not the table's.
    pub(crate) fn repository<E: OutboxEntity>(&self) -> Result<OutboxRepository<E>> {
        OutboxRepository::with_table(Arc::clone(&self.database), Arc::clone(&self.clock), self.table().clone())
    }

    /// The outbox with the configured channels and templates.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] or [`ErrorKind::Template`], naming the setting or the file.
    pub(crate) fn outbox<E: OutboxEntity>(
        &self,
        channels: Vec<Arc<dyn Channel>>,
        templates: TemplateCatalogue,
    ) -> Result<Outbox<E>> {
        let builder = Outbox::builder(Arc::clone(&self.database), Arc::clone(&self.clock));
        let builder = builder.table(self.table().clone());
        let builder = channels.into_iter().fold(builder, |builder, channel| builder.channel(channel));
        builder.renderer(Arc::new(templates)).build()
    }
}

/// Whether it keeps rows from being delivered. A column that only the application fills does not.
pub(crate) fn is_problem(finding: &Finding) -> bool {
    !finding.is_advice() && !matches!(finding, Finding::Unwritten { .. })
}
