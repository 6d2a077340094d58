//! Two columns of one name, renames of columns that there are not.

use postrider::OutboxEntity;
use postrider::model::{OutboxRow, TenantId};

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", rename(create_at = "created_date"))]
struct NoSuchColumn {
    #[outbox(row)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", rename(created_at = "updated_at", sent_at = "a", sent_at = "b"))]
struct Renamed {
    #[outbox(row)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", tenant = "org", rename(created_at = "created_date"))]
struct Own {
    #[outbox(row)]
    row: OutboxRow,
    org: TenantId,
    // Free again.
    created_at: i64,
    created_date: i64,
    status: i64,
    #[outbox(column = "ORG")]
    other: i64,
}

fn main() {}
