//! The two ready-made entities that the program serves: a table with tenants, and one without.
//!
//! Which of the two a table needs is told by its configuration; [`served_by`](crate::served_by) runs
//! code that is generic over the entity for the right one.

use postrider::accept::{Enqueued, Notification, NotificationService};
use postrider::model::{NotificationRow, OutboxEntity, SystemRow, TenantId};
use postrider::store::Connection;
use postrider::{Error, Result};

/// What writing needs beyond the library's own trait.
pub(crate) trait Entity: OutboxEntity {
    /// Writes a notification: a tenant's, or root's.
    ///
    /// # Errors
    /// Those of the library; [`ErrorKind::Invalid`](postrider::ErrorKind::Invalid) for a tenant's
    /// notification where the table knows no tenants.
    fn enqueue(
        connection: &mut dyn Connection,
        service: &NotificationService<Self>,
        tenant: Option<&TenantId>,
        notification: &Notification,
    ) -> impl Future<Output = Result<Enqueued>> + Send;
}

impl Entity for NotificationRow {
    async fn enqueue(
        connection: &mut dyn Connection,
        service: &NotificationService<Self>,
        tenant: Option<&TenantId>,
        notification: &Notification,
    ) -> Result<Enqueued> {
        let make = |row| Self { row, tenant_id: tenant.cloned().unwrap_or(TenantId::ROOT) };
        match tenant {
            None => service.root().enqueue(connection, notification, make).await,
            Some(tenant) => service.scoped(tenant).enqueue(connection, notification, make).await,
        }
    }
}

impl Entity for SystemRow {
    async fn enqueue(
        connection: &mut dyn Connection,
        service: &NotificationService<Self>,
        tenant: Option<&TenantId>,
        notification: &Notification,
    ) -> Result<Enqueued> {
        if tenant.is_some() {
            return Err(no_tenants());
        }
        service.root().enqueue(connection, notification, |row| Self { row }).await
    }
}

/// A tenant was named, and the table has none.
pub(crate) fn no_tenants() -> Error {
    Error::invalid("the table has no tenant column: leave --tenant out")
}

/// Runs the expression with `$entity` as the entity that the store's table needs.
#[macro_export]
macro_rules! served_by {
    ($store:expr, $entity:ident => $work:expr) => {
        if $store.has_tenants() {
            type $entity = postrider::model::NotificationRow;
            $work
        } else {
            type $entity = postrider::model::SystemRow;
            $work
        }
    };
}
