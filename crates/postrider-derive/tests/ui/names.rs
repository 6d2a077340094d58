//! Names that are no plain identifiers; all of them are told at once.

use postrider::OutboxEntity;
use postrider::model::{OutboxRow, TenantId};

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "order-mail", schema = "1st", tenant = "pr_tenant", rename(created_at = "created date"))]
struct Wrong {
    #[outbox(row)]
    row: OutboxRow,
    #[outbox(tenant)]
    org: TenantId,
    #[outbox(column = "")]
    note: String,
    größe: i64,
    PR_run: i64,
    #[outbox(column = "a23456789_123456789_123456789_123456789_123456789_123456789_1234")]
    long: i64,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "a23456789_123456789_123456789_123456789_12345678")]
struct LongTable {
    #[outbox(row)]
    row: OutboxRow,
}

fn main() {}
