//! Counts of what this node did since it started, and how its listener stands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::model::Timestamp;

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
    listening: Mutex<Listening>,
}

/// How the connection stands that listens for other nodes. Without one they are found by polling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Listening {
    /// There is none to be had: the database cannot notify, or nothing was started.
    #[default]
    Off,
    /// There is none, and it is tried again and again.
    Disconnected {
        /// Since when, by the node's clock, UTC: its start, or the moment of the loss.
        since: Timestamp,
    },
    /// It listens.
    Connected {
        /// Since when, by the node's clock, UTC.
        since: Timestamp,
    },
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
    /// Times that the connection listening for other nodes was lost after it had been there.
    pub listener_lost: u64,
    /// How that connection stands now.
    pub listening: Listening,
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
                Snapshot { $($name: self.$name.load(Ordering::Relaxed),)* listening: *self.listening() }
            }
        }
    };
}

counters!(claimed, sent, failed, dead, suppressed, deferred, released, in_doubt, claims_lost, listener_lost);

impl Counters {
    /// The listener is there from now on.
    pub(crate) fn listener_connected(&self, now: Timestamp) {
        *self.listening() = Listening::Connected { since: now };
    }

    /// The listener is not there; told again and again, the first time counts.
    pub(crate) fn listener_disconnected(&self, now: Timestamp) {
        let mut listening = self.listening();
        match *listening {
            Listening::Disconnected { .. } => return,
            Listening::Connected { .. } => self.listener_lost(1),
            Listening::Off => {}
        }
        *listening = Listening::Disconnected { since: now };
    }

    /// There will be no listener.
    pub(crate) fn listener_off(&self) {
        *self.listening() = Listening::Off;
    }

    fn listening(&self) -> MutexGuard<'_, Listening> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
