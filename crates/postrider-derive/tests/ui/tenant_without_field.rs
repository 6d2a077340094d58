//! The tenant column is no field's, or several fields'.

use postrider::OutboxEntity;
use postrider::model::{OutboxRow, TenantId};

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", tenant = "tenant_id")]
struct NoField {
    #[outbox(row)]
    row: OutboxRow,
    tenant: TenantId,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", tenant = "org")]
struct Two {
    #[outbox(row)]
    row: OutboxRow,
    #[outbox(tenant)]
    a: TenantId,
    #[outbox(tenant)]
    b: TenantId,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", tenant = "org")]
struct NamedTwice {
    #[outbox(row)]
    row: OutboxRow,
    #[outbox(tenant, column = "organisation")]
    a: TenantId,
}

fn main() {}
