//! Counts of what this node did since it started.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Counters of one node; cheap to raise from many workers.
#[derive(Debug, Default)]
pub struct Counters {
    claimed: AtomicU64,
    sent: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
    suppressed: AtomicU64,
    deferred: AtomicU64,
    released: AtomicU64,
    in_doubt: AtomicU64,
    claims_lost: AtomicU64,
    listener_lost: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Rows claimed.
    pub claimed: u64,
    /// Rows settled as SENT.
    pub sent: u64,
    /// Rows settled as FAILED.
    pub failed: u64,
    /// Rows settled as DEAD.
    pub dead: u64,
    /// Rows settled as SUPPRESSED.
    pub suppressed: u64,
    /// Rows put off at no cost.
    pub deferred: u64,
    /// Claims given back.
    pub released: u64,
    /// Attempts that ended in doubt.
    pub in_doubt: u64,
    /// Outcomes dropped because the claim was lost.
    pub claims_lost: u64,
    /// Times that the connection listening for other nodes was lost.
    pub listener_lost: u64,
}

macro_rules! counters {
    ($($name:ident),*) => {
        impl Counters {
            $(
                /// Raises the counter of that name.
                pub(crate) fn $name(&self, by: usize) {
                    self.$name.fetch_add(u64::try_from(by).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
            )*

            /// All counters now.
            #[must_use]
            pub fn snapshot(&self) -> Snapshot {
                Snapshot { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }
    };
}

counters!(claimed, sent, failed, dead, suppressed, deferred, released, in_doubt, claims_lost, listener_lost);
