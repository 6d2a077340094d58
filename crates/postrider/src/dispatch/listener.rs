//! Hears from other nodes that rows were written, where the database can tell.
//!
//! Only a short cut: while the connection is down, polling finds the rows.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::Shared;
use crate::model::OutboxEntity;
use crate::store::Heard;

/// The longest pause between two attempts to listen.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// A connection that lived this long was a good one.
const GOOD: Duration = Duration::from_secs(60);

/// Starts the task; it ends at once where the database cannot notify.
pub(super) fn start<E: OutboxEntity>(shared: &Arc<Shared<E>>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let mut failures = 0_u32;
        loop {
            let since = shared.clock.monotonic();
            let heard = tokio::select! {
                () = shared.stopping.cancelled() => return,
                heard = shared.repository.database().listen(&*shared.clock, shared.signal.wake()) => heard,
            };
            if matches!(heard, Ok(Heard::Unsupported)) {
                return;
            }
            if shared.clock.monotonic() - since > GOOD {
                failures = 0;
            }
            shared.counters.listener_lost(1);
            match (&heard, failures) {
                (Ok(_), 0) => info!("the listening connection was lost; polling goes on"),
                (Err(error), 0) => warn!(%error, "listening for other nodes failed; polling goes on"),
                _ => {}
            }
            let pause = (Duration::from_millis(250) * 2_u32.pow(failures.min(10))).min(BACK_OFF_MAX);
            failures = failures.saturating_add(1);
            tokio::select! {
                () = shared.stopping.cancelled() => return,
                () = shared.clock.sleep(pause) => {}
            }
        }
    })
}
