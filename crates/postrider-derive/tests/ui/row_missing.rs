//! No field is marked as the row.

use postrider::OutboxEntity;
use postrider::model::OutboxRow;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Mail {
    row: OutboxRow,
    order_id: i64,
}

fn main() {}
