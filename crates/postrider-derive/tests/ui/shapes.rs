//! What is no struct with named fields, or has generic parameters.

use postrider::OutboxEntity;
use postrider::model::OutboxRow;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Tuple(OutboxRow);

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Unit;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
enum Choice {
    Mail { row: OutboxRow },
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Generic<T> {
    #[outbox(row)]
    row: OutboxRow,
    own: T,
}

fn main() {}
