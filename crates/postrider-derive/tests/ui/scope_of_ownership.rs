//! An ownership entity has no tenants to choose from.

use postrider::OutboxEntity;
use postrider::model::{OutboxRow, TenantId};
use postrider::store::OutboxRepository;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Mail {
    #[outbox(row)]
    row: OutboxRow,
}

fn choose(repository: OutboxRepository<Mail>, tenant: TenantId) {
    let _ = repository.root();
    let _ = repository.scoped(&tenant);
}

fn main() {}
