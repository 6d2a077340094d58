//! Hears from other nodes that rows were written, where the database can tell.
//!
//! Only a short cut: while the connection is down, polling finds the rows.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::Shared;
use crate::model::OutboxEntity;
use crate::store::{Heard, Listener};

/// The longest pause between two attempts to listen: no longer than a lost one takes to be noticed.
const BACK_OFF_MAX: Duration = Duration::from_secs(15);
/// A connection that lived this long was a good one.
const GOOD: Duration = Duration::from_secs(60);

/// Starts the task; it ends at once where the database cannot notify.
pub(super) fn start<E: OutboxEntity>(shared: &Arc<Shared<E>>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    shared.counters.listener_disconnected(shared.clock.now());
    tokio::spawn(async move {
        let mut failures = 0_u32;
        loop {
            let since = shared.clock.monotonic();
            let ear = Ear { shared: &shared, again: failures > 0 };
            let heard = tokio::select! {
                () = shared.stopping.cancelled() => break,
                heard = shared.repository.database().listen(&*shared.clock, &ear) => heard,
            };
            if matches!(heard, Ok(Heard::Unsupported)) {
                break;
            }
            if shared.clock.monotonic() - since > GOOD {
                failures = 0;
            }
            shared.counters.listener_disconnected(shared.clock.now());
            match (&heard, failures) {
                (Ok(_), 0) => info!("the listening connection was lost; polling goes on"),
                (Err(error), 0) => warn!(%error, "listening for other nodes failed; polling goes on"),
                _ => {}
            }
            let pause = (Duration::from_millis(250) * 2_u32.pow(failures.min(10))).min(BACK_OFF_MAX);
            failures = failures.saturating_add(1);
            tokio::select! {
                () = shared.stopping.cancelled() => break,
                () = shared.clock.sleep(pause) => {}
            }
        }
        shared.counters.listener_off();
    })
}

/// Wakes the claimer, and keeps count of how listening goes.
struct Ear<'a, E> {
    shared: &'a Shared<E>,
    /// It failed before.
    again: bool,
}

impl<E: OutboxEntity> Listener for Ear<'_, E> {
    fn connected(&self) {
        if self.again {
            info!("other nodes are listened to again");
        }
        self.shared.counters.listener_connected(self.shared.clock.now());
        // Whatever came while nobody listened is found by one poll.
        self.shared.signal.wake().notify_one();
    }

    fn notified(&self) {
        self.shared.signal.wake().notify_one();
    }
}
