//! Keys that there are not, in a wrong form, or twice.

use postrider::OutboxEntity;
use postrider::model::OutboxRow;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(tabel = "mail")]
struct OnStruct {
    #[outbox(row)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct OnField {
    #[outbox(raw)]
    row: OutboxRow,
    #[outbox(table = "x")]
    order_id: i64,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = 7)]
struct NoText {
    #[outbox(row)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
#[outbox(table = "post")]
struct Twice {
    #[outbox(row)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", rename = "x")]
struct NoList {
    #[outbox(row)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
struct NoTable {
    #[outbox(row)]
    row: OutboxRow,
}

fn main() {}
