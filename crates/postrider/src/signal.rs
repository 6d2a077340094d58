//! The wake-up inside one process: rows handed over after a commit, and a reason to look soon.
//!
//! Bounded and lossy by design: what does not fit, or is never handed over, the poller finds.
//! Source: contract C5.1.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::model::{Clock, OutboxId};

/// Most rows that wait to be taken over.
const CAPACITY: usize = 10_000;
/// How long the poller looks often after somebody wrote rows.
const EAGER: Duration = Duration::from_secs(2);

/// The wake-up between writing and dispatching in one process.
pub struct Signal {
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
    wake: Notify,
    handed_over: Notify,
}

#[derive(Default)]
struct Inner {
    handed_over: VecDeque<OutboxId>,
    eager_until: Duration,
}

impl Signal {
    /// Nothing handed over yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, inner: Mutex::default(), wake: Notify::new(), handed_over: Notify::new() }
    }

    /// Hands committed rows over; those that do not fit are left to the poller. Returns how many
    /// were taken.
    pub fn hand_over(&self, ids: impl IntoIterator<Item = OutboxId>) -> usize {
        let mut inner = self.lock();
        let before = inner.handed_over.len();
        let room = CAPACITY - before;
        inner.handed_over.extend(ids.into_iter().take(room));
        let taken = inner.handed_over.len() - before;
        drop(inner);
        self.wake.notify_one();
        self.handed_over.notify_one();
        taken
    }

    /// Rows were written that will be committed soon: the poller looks often for 2 s.
    pub fn expect_rows(&self) {
        self.lock().eager_until = self.clock.monotonic() + EAGER;
        self.wake.notify_one();
    }

    /// Takes up to `limit` handed-over rows, oldest first.
    pub(crate) fn take(&self, limit: usize) -> Vec<OutboxId> {
        let mut inner = self.lock();
        let limit = limit.min(inner.handed_over.len());
        inner.handed_over.drain(..limit).collect()
    }

    /// Completes once rows were handed over since the last call.
    pub(crate) async fn rows_came(&self) {
        self.handed_over.notified().await;
    }

    /// How many handed-over rows wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().handed_over.len()
    }

    /// True while rows are expected.
    pub(crate) fn is_eager(&self) -> bool {
        self.clock.monotonic() < self.lock().eager_until
    }

    /// Where a waiting dispatcher is woken; another node's notification comes in here too.
    pub(crate) fn wake(&self) -> &Notify {
        &self.wake
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("handed_over", &self.lock().handed_over.len()).finish_non_exhaustive()
    }
}
