//! Behind one tenant's door nothing is claimed, and nothing due is looked for.

use postrider::model::{NotificationRow, OutboxId, OutboxStatus, TenantId, Timestamp};
use postrider::store::{Claim, ClaimOrder, OutboxRepository};

async fn narrow(
    repository: OutboxRepository<NotificationRow>,
    tenant: TenantId,
    (id, now): (OutboxId, Timestamp),
    (claim, order): (Claim, ClaimOrder),
) {
    let rows = repository.scoped(&tenant);
    let _ = rows.claim(id, now, now, "node").await;
    let _ = rows.claim_ids(&[id], now, now, "node").await;
    let _ = rows.claim_due(&order).await;
    let _ = rows.find_due(&[OutboxStatus::Pending], now, 10).await;
    let _ = rows.find_all_by_dedupe_key("key").await;
    let _ = rows.renew(&[claim], now, now).await;
}

fn main() {}
