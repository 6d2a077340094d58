//! Tells other nodes of rows that this node has no free slot for, where the database can tell.
//!
//! After the commit, on a connection of the library's own, at most once per moment for all rows:
//! a notification inside the business transaction would serialise the commits of all writers.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::debug;

use super::Shared;
use crate::model::OutboxEntity;

/// How long handed-over rows may wait for a slot here before others are told, and the shortest
/// time between two notifications.
const MOMENT: Duration = Duration::from_millis(20);

/// Starts the task; it ends when the dispatcher stops.
pub(super) fn start<E: OutboxEntity>(shared: &Arc<Shared<E>>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = shared.stopping.cancelled() => return,
                () = shared.signal.rows_came() => {}
            }
            shared.clock.sleep(MOMENT).await;
            if !shared.signal.has_waiting() {
                continue;
            }
            if let Err(error) = shared.repository.database().notify_others().await {
                // Only a short cut was missed: the others poll.
                debug!(%error, "other nodes could not be notified");
            }
        }
    })
}
