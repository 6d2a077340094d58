//! The row and the tenant have types of their own.

use postrider::OutboxEntity;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", tenant = "org")]
struct Mail {
    #[outbox(row)]
    row: String,
    org: String,
}

fn main() {}
