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
use crate::model::clock::within;

/// How long handed-over rows may wait for a slot here before others are told, and the shortest
/// time between two notifications.
const MOMENT: Duration = Duration::from_millis(20);

/// How long a notification may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Starts the task; it ends when the dispatcher stops.
pub(super) fn start<E: OutboxEntity>(shared: &Arc<Shared<E>>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = shared.stopping.cancelled() => return,
                () = shared.signal.rows_came() => {}
            }
            tokio::select! {
                () = shared.stopping.cancelled() => return,
                () = shared.clock.sleep(MOMENT) => {}
            }
            if shared.signal.waiting() == 0 {
                continue;
            }
            let told = tokio::select! {
                () = shared.stopping.cancelled() => return,
                told = within(&*shared.clock, LIMIT, shared.repository.database().notify_others()) => told,
            };
            if !matches!(told, Some(Ok(()))) {
                // Only a short cut was missed: the others poll.
                debug!("other nodes could not be notified");
            }
        }
    })
}
