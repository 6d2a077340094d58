//! A repository has no row methods of its own: `root()` and `scoped()` are the only doors.

use postrider::model::{NotificationRow, OutboxId, OutboxStatus, Timestamp};
use postrider::store::{OutboxRepository, Query};

async fn forgotten(repository: OutboxRepository<NotificationRow>, id: OutboxId, now: Timestamp) {
    let _ = repository.find_by_id(id).await;
    let _ = repository.find_by(&Query::new()).await;
    let _ = repository.page(&Query::new()).await;
    let _ = repository.stream(&Query::new());
    let _ = repository.count().await;
    let _ = repository.delete_by_id(id).await;
    let _ = repository.delete_all().await;
    let _ = repository.find_by_dedupe_key("key").await;
    let _ = repository.find_due(&[OutboxStatus::Pending], now, 10).await;
    let _ = repository.claim(id, now, now, "node").await;
    let _ = repository.requeue(id, now, "actor").await;
    let _ = repository.cancel(id, now, "actor").await;
}

fn main() {}
