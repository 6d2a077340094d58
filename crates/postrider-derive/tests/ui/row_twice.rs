//! Two fields are marked as the row, or one as both row and tenant, or the row as a column.

use postrider::OutboxEntity;
use postrider::model::OutboxRow;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Mail {
    #[outbox(row)]
    row: OutboxRow,
    #[outbox(row)]
    other: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail", tenant = "org")]
struct Both {
    #[outbox(row, tenant)]
    row: OutboxRow,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "mail")]
struct Column {
    #[outbox(row, column = "row_text")]
    row: OutboxRow,
}

fn main() {}
