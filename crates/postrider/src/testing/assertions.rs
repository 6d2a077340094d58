//! What an application's test wants to know about the rows that its code wrote.

use crate::model::{OutboxEntity, OutboxId, OutboxStatus};
use crate::store::{Query, Rows};

/// Looks for the one row that the query means, and returns it.
///
/// ```
/// # use std::sync::Arc;
/// # use postrider::model::{Clock, NotificationRow, SystemClock};
/// # use postrider::store::{Database, OutboxRepository, Query, SqliteDatabase, Synchronous, schema};
/// # use postrider::testing::{assert_enqueued, assert_nothing_enqueued};
/// # let folder = tempfile::tempdir()?;
/// # let runtime = tokio::runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// # let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
/// # let opened = SqliteDatabase::open(folder.path().join("test.db"), Synchronous::Normal).await?;
/// # let database: Arc<dyn Database> = Arc::new(opened);
/// # let repository = OutboxRepository::<NotificationRow>::new(database.clone(), clock.clone())?;
/// # schema::migrate::<NotificationRow>(&database, &clock, repository.table()).await?;
/// # use postrider::model::{OutboxId, OutboxRow, TenantId};
/// # let order_service = async || {
/// #     let row = OutboxRow::new(OutboxId::new(&*clock), "email", "alice", "alice@example.com", clock.now());
/// #     let mut open = database.begin().await?;
/// #     let entity = NotificationRow { row, tenant_id: TenantId::ROOT };
/// #     repository.root().insert(open.connection(), &[entity]).await?;
/// #     open.commit().await
/// # };
/// assert_nothing_enqueued(&repository.root(), &Query::new()).await;
/// order_service().await?;
/// let mail = assert_enqueued(&repository.root(), &Query::new().eq("recipient", "alice")).await;
/// assert_eq!(mail.row.recipient_address, "alice@example.com");
/// # Ok::<(), postrider::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If there is no such row, or more than one; or if the database fails.
pub async fn assert_enqueued<E: OutboxEntity, S>(rows: &Rows<E, S>, query: &Query) -> E {
    let mut found = found(rows, query).await;
    assert!(found.len() == 1, "one row was expected, {} are there: {query:?}", found.len());
    found.remove(0)
}

/// Looks that there is no row that the query means.
///
/// # Panics
/// If there is one; or if the database fails.
pub async fn assert_nothing_enqueued<E: OutboxEntity, S>(rows: &Rows<E, S>, query: &Query) {
    let found = found(rows, query).await;
    assert!(found.is_empty(), "no row was expected, {} are there: {query:?}", found.len());
}

/// Looks where a row stands; says why, if it stands elsewhere.
///
/// # Panics
/// If it has another status, or there is no such row; or if the database fails.
pub async fn assert_status<E: OutboxEntity, S>(rows: &Rows<E, S>, id: OutboxId, status: OutboxStatus) {
    let found = match rows.find_by_id(id).await {
        Ok(found) => found,
        Err(error) => panic!("the row {id} cannot be read: {error}"),
    };
    let Some(entity) = found else { panic!("there is no row {id}") };
    let state = &entity.row().state;
    assert!(
        state.status == status,
        "the row {id} is {} and not {status}: attempts {}, reason {:?}, last error {:?}, due {}",
        state.status,
        state.attempts,
        state.reason_code,
        state.last_error,
        state.next_attempt_at,
    );
}

async fn found<E: OutboxEntity, S>(rows: &Rows<E, S>, query: &Query) -> Vec<E> {
    match rows.find_by(query).await {
        Ok(found) => found,
        Err(error) => panic!("the rows cannot be read: {error}"),
    }
}
