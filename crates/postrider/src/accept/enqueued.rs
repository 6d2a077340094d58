//! What an enqueue answers: row by row, written or a duplicate.

use crate::model::{OutboxId, OutboxRow};
use crate::store::Inserted;

/// One row of an [`Enqueued`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueuedRow {
    /// The row's channel.
    pub channel: String,
    /// The row's recipient.
    pub recipient: String,
    /// Written, or the row that already holds the key. Source: contract C2.2.
    pub outcome: Inserted,
}

/// The rows of one notification, in the order of recipients, then channels.
///
/// They exist once the caller commits: hand this to the dispatcher after that. A dispatcher that is
/// shut down afterwards delivers them first.
#[must_use = "after the commit, hand it to `Dispatcher::dispatch`; otherwise the rows wait for the poller"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    rows: Vec<EnqueuedRow>,
}

impl Enqueued {
    pub(super) fn new<'a>(rows: impl Iterator<Item = (&'a OutboxRow, Inserted)>) -> Self {
        let rows = rows.map(|(row, outcome)| EnqueuedRow {
            channel: row.channel.clone(),
            recipient: row.recipient.clone(),
            outcome,
        });
        Self { rows: rows.collect() }
    }

    /// The answer per row.
    #[must_use]
    pub fn rows(&self) -> &[EnqueuedRow] {
        &self.rows
    }

    /// The ids of the rows that were written.
    pub fn created(&self) -> impl Iterator<Item = OutboxId> {
        self.rows.iter().filter_map(|row| match row.outcome {
            Inserted::Created(id) => Some(id),
            Inserted::Duplicate { .. } => None,
        })
    }
}

impl IntoIterator for Enqueued {
    type Item = OutboxId;
    type IntoIter = std::vec::IntoIter<OutboxId>;

    /// The ids of the rows that were written, as the dispatcher takes them.
    fn into_iter(self) -> Self::IntoIter {
        self.created().collect::<Vec<_>>().into_iter()
    }
}
