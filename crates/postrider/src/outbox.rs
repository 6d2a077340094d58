//! The builder that wires all stages; the only file that knows them all.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::accept::{Enqueued, NotificationService};
use crate::channel::{Channel, ChannelRegistry};
use crate::dispatch::{DispatchConfig, Dispatcher};
use crate::error::Result;
use crate::model::{Clock, OutboxEntity, TableDef};
use crate::render::{Renderer, TemplateCatalogue};
use crate::signal::Signal;
use crate::store::{Connection, Database, OutboxRepository};

/// An outbox: its rows, and the service that writes them. Start a dispatcher to deliver.
pub struct Outbox<E> {
    repository: OutboxRepository<E>,
    channels: ChannelRegistry,
    signal: Arc<Signal>,
    service: NotificationService<E>,
}

/// Puts an [`Outbox`] together.
#[must_use]
pub struct OutboxBuilder<E> {
    database: Arc<dyn Database>,
    clock: Arc<dyn Clock>,
    table: Result<TableDef>,
    channels: ChannelRegistry,
    renderer: Arc<dyn Renderer>,
    refused: Result<()>,
    entity: std::marker::PhantomData<fn() -> E>,
}

impl<E: OutboxEntity> Outbox<E> {
    /// Begins with what there must be: the database, and the clock that all times come from.
    pub fn builder(database: Arc<dyn Database>, clock: Arc<dyn Clock>) -> OutboxBuilder<E> {
        OutboxBuilder {
            database,
            clock,
            table: E::table(),
            channels: ChannelRegistry::new(),
            renderer: Arc::new(TemplateCatalogue::new()),
            refused: Ok(()),
            entity: std::marker::PhantomData,
        }
    }

    /// The rows.
    #[must_use]
    pub fn repository(&self) -> &OutboxRepository<E> {
        &self.repository
    }

    /// The service that writes notifications in the caller's transaction.
    #[must_use]
    pub fn service(&self) -> &NotificationService<E> {
        &self.service
    }

    /// Starts claiming and delivering; must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a setting is unusable.
    pub fn start(&self, config: DispatchConfig) -> Result<Dispatcher<E>> {
        Dispatcher::start(self.repository.clone(), self.channels.clone(), Arc::clone(&self.signal), config)
    }

    /// Tells the nodes that listen to look for due rows now: for a process that writes rows and
    /// has no dispatcher of its own, after its commit. Without it they poll.
    ///
    /// # Errors
    /// What the database says; nothing is lost by it.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wake_others(&self) -> Result<()> {
        self.repository.database().notify_others().await
    }

    /// Runs `work` in a transaction of the library's own pool; its rows are handed to this
    /// process's dispatcher once the commit returned.
    ///
    /// `work` is repeated from its beginning if the database undoes the transaction.
    ///
    /// # Errors
    /// What `work` returned, or the database's. [`ErrorKind::CommitUnknown`](crate::ErrorKind::CommitUnknown)
    /// if the commit was not answered: all rows are there, or none, and nothing is handed over.
    /// Repeat it only with dedupe keys of your own.
    ///
    /// # Cancel safety
    /// Safe: the transaction goes on in its own task; the poller delivers its rows.
    pub async fn in_transaction<F>(&self, work: F) -> Result<Enqueued>
    where
        F: for<'c> Fn(&'c mut dyn Connection) -> BoxFuture<'c, Result<Enqueued>> + Send + Sync + 'static,
    {
        use crate::store::database::{Extent, write};
        let (database, clock) = (self.repository.database(), self.repository.clock());
        let enqueued = write(database, clock, Extent::Transaction, work).await?;
        self.signal.hand_over(enqueued.created());
        Ok(enqueued)
    }
}

impl<E: OutboxEntity> OutboxBuilder<E> {
    /// Another table than the entity's own.
    pub fn table(mut self, table: TableDef) -> Self {
        self.table = Ok(table);
        self
    }

    /// Registers a channel.
    pub fn channel(mut self, channel: Arc<dyn Channel>) -> Self {
        let registered = self.channels.register(channel);
        self.refused = self.refused.and(registered);
        self
    }

    /// Renders templates; there are none by default.
    pub fn renderer(mut self, renderer: Arc<dyn Renderer>) -> Self {
        self.renderer = renderer;
        self
    }

    /// The outbox.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a name is no identifier or
    /// a channel is registered twice.
    pub fn build(self) -> Result<Outbox<E>> {
        self.refused?;
        let repository = OutboxRepository::with_table(self.database, Arc::clone(&self.clock), self.table?)?;
        let signal = Arc::new(Signal::new(self.clock));
        let service =
            NotificationService::new(repository.clone(), self.channels.clone(), self.renderer, Arc::clone(&signal));
        Ok(Outbox { repository, channels: self.channels, signal, service })
    }
}

impl<E> fmt::Debug for Outbox<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("repository", &self.repository).finish_non_exhaustive()
    }
}

impl<E> fmt::Debug for OutboxBuilder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxBuilder").field("channels", &self.channels).finish_non_exhaustive()
    }
}
