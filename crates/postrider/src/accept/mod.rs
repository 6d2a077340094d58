//! Accepting a notification: render, expand, check, write PENDING rows in the caller's transaction.
//!
//! ```text
//! Notification ──render──► one message per channel × locale ──expand──► rows ──► store.insert
//! ```
//! Everything that can be refused is refused before the first statement, so that a refusal leaves
//! the caller's transaction usable. Source: contract C2.

mod enqueued;
mod expand;
mod request;

use std::fmt;
use std::sync::Arc;

pub use enqueued::{Enqueued, EnqueuedRow};
pub use expand::MAX_CONTENT_BYTES;
pub use request::{Content, Dedupe, Notification, Recipient};

use crate::channel::ChannelRegistry;
use crate::error::Result;
use crate::model::{ByTenant, OutboxEntity, OutboxRow, TenantId};
use crate::render::Renderer;
use crate::signal::Signal;
use crate::store::{Connection, OutboxRepository, Root, Rows, Tenant};

/// Writes notifications into the outbox, in the caller's own transaction.
pub struct NotificationService<E> {
    repository: OutboxRepository<E>,
    channels: ChannelRegistry,
    renderer: Arc<dyn Renderer>,
    signal: Arc<Signal>,
}

impl<E: OutboxEntity> NotificationService<E> {
    /// A service over these parts; [`Outbox`](crate::Outbox) puts them together.
    #[must_use]
    pub fn new(
        repository: OutboxRepository<E>,
        channels: ChannelRegistry,
        renderer: Arc<dyn Renderer>,
        signal: Arc<Signal>,
    ) -> Self {
        Self { repository, channels, renderer, signal }
    }

    /// Writes root's own rows (all rows, for an ownership entity).
    #[must_use]
    pub fn root(&self) -> Accept<'_, E, Root> {
        Accept { service: self, rows: self.repository.root(), tenant: TenantId::ROOT }
    }
}

impl<E: OutboxEntity<Tenancy = ByTenant>> NotificationService<E> {
    /// Writes this tenant's rows.
    #[must_use]
    pub fn scoped(&self, tenant: &TenantId) -> Accept<'_, E, Tenant> {
        Accept { service: self, rows: self.repository.scoped(tenant), tenant: tenant.clone() }
    }
}

/// Accepts notifications in one scope.
pub struct Accept<'a, E, S> {
    service: &'a NotificationService<E>,
    rows: Rows<E, S>,
    tenant: TenantId,
}

impl<E: OutboxEntity, S: Send + 'static> Accept<'_, E, S> {
    /// Renders, then writes one PENDING row per recipient × channel on the caller's connection.
    ///
    /// `make` puts each row into the application's entity and fills its own columns; the entity's
    /// tenant must be this scope's. The rows exist once the caller commits, and never if it rolls
    /// back. Hand the answer to [`Dispatcher::dispatch`](crate::dispatch::Dispatcher::dispatch)
    /// after the commit; without that the poller delivers them.
    ///
    /// One round trip per 500 rows and 4 MB; duplicates cost further ones. Source: contract C2.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) or
    /// [`ErrorKind::Template`](crate::ErrorKind::Template): nothing was sent to the database and the
    /// transaction is usable. Otherwise as [`Rows::insert`].
    ///
    /// # Cancel safety
    /// Not safe: roll the transaction back.
    pub async fn enqueue(
        &self,
        connection: &mut dyn Connection,
        notification: &Notification,
        make: impl FnMut(OutboxRow) -> E,
    ) -> Result<Enqueued> {
        let service = self.service;
        let clock = &**service.repository.clock();
        let rows = expand::rows(notification, &service.channels, &*service.renderer, &self.tenant, clock)?;
        let entities: Vec<E> = rows.into_iter().map(make).collect();
        let written = self.rows.insert(connection, &entities).await?;
        service.signal.expect_rows();
        Ok(Enqueued::new(entities.iter().map(OutboxEntity::row).zip(written)))
    }
}

impl<E> Clone for NotificationService<E> {
    fn clone(&self) -> Self {
        Self {
            repository: self.repository.clone(),
            channels: self.channels.clone(),
            renderer: Arc::clone(&self.renderer),
            signal: Arc::clone(&self.signal),
        }
    }
}

impl<E> fmt::Debug for NotificationService<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotificationService").field("channels", &self.channels).finish_non_exhaustive()
    }
}

impl<E, S> fmt::Debug for Accept<'_, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accept").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}
