//! Fields that cannot stand in a column.

use postrider::OutboxEntity;
use postrider::model::OutboxRow;

#[derive(Clone, Debug)]
struct Money(i64);

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Mail {
    #[outbox(row)]
    row: OutboxRow,
    price: Money,
    discount: Option<Money>,
}

fn main() {}
