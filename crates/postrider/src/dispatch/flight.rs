//! The rows that this node is delivering, and how long it may count on each claim.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::model::{Clock, OutboxId};
use crate::store::{Claim, Renewed};

/// One claimed row under way; it lands when this is dropped, however its delivery ended.
#[derive(Debug)]
pub(super) struct Flight {
    id: OutboxId,
    known: Arc<Known>,
    flights: Arc<Flights>,
}

/// What is known of a claim.
#[derive(Debug)]
struct Known {
    /// The claim was taken over by somebody else.
    lost: CancellationToken,
    lease_until: AtomicU64,
    /// The claim's `claim_seq`; a later one once this node has claimed the row anew itself.
    seq: AtomicI64,
}

impl Flight {
    /// The claim under which the row is under way now.
    pub(super) fn claim(&self) -> Claim {
        Claim { id: self.id, seq: self.known.seq.load(Ordering::SeqCst) }
    }

    /// How much of the lease is left at `now`, on the monotonic clock.
    pub(super) fn lease_left(&self, now: Duration) -> Duration {
        Duration::from_micros(self.known.lease_until.load(Ordering::SeqCst)).saturating_sub(now)
    }

    /// Says at any time whether the row is still this node's to send, by this clock.
    pub(super) fn hold(&self, clock: Arc<dyn Clock>) -> impl Fn() -> bool + Send + Sync + use<> {
        let known = Arc::clone(&self.known);
        move || !known.lost.is_cancelled() && known.lease_until.load(Ordering::SeqCst) > micros(clock.monotonic())
    }

    /// Completes once the claim was taken over by somebody else.
    pub(super) async fn lost(&self) {
        self.known.lost.cancelled().await;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        flights.remove(&self.claim());
        drop(flights);
        self.flights.landed.notify_waiters();
    }
}

/// All rows under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: Mutex<HashMap<Claim, Arc<Known>>>,
    landed: Notify,
}

impl Flights {
    /// Notes a claimed row; its lease lasts until `lease_until` on the monotonic clock, counted
    /// from before the claim was asked for.
    pub(super) fn depart(self: &Arc<Self>, claim: Claim, lease_until: Duration) -> Flight {
        let known = Arc::new(Known {
            lost: CancellationToken::new(),
            lease_until: AtomicU64::new(micros(lease_until)),
            seq: AtomicI64::new(claim.seq),
        });
        self.lock().insert(claim, Arc::clone(&known));
        Flight { id: claim.id, known, flights: Arc::clone(self) }
    }

    /// True if the row is under way here already, under an older claim that ran out: what is under
    /// way goes on under this claim, and the row must not be sent a second time.
    pub(super) fn adopt(&self, claim: Claim, lease_until: Duration) -> bool {
        let mut flights = self.lock();
        let older = |(known, state): (&Claim, &Arc<Known>)| {
            (known.id == claim.id && !state.lost.is_cancelled()).then_some(*known)
        };
        let Some(state) = flights.iter().find_map(older).and_then(|older| flights.remove(&older)) else { return false };
        state.seq.store(claim.seq, Ordering::SeqCst);
        state.lease_until.fetch_max(micros(lease_until), Ordering::SeqCst);
        flights.insert(claim, state);
        true
    }

    /// How many rows are under way.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The claims under way.
    pub(super) fn claims(&self) -> Vec<Claim> {
        self.lock().keys().copied().collect()
    }

    /// What a renewal came to; the kept claims last until `lease_until`.
    pub(super) fn renewed(&self, renewed: &Renewed, lease_until: Duration) {
        let flights = self.lock();
        for known in renewed.kept.iter().filter_map(|claim| flights.get(claim)) {
            known.lease_until.fetch_max(micros(lease_until), Ordering::SeqCst);
        }
        for known in renewed.lost.iter().filter_map(|claim| flights.get(claim)) {
            known.lost.cancel();
        }
    }

    /// True if a claim has run out at `now` and nobody is known to have taken it over.
    pub(super) fn are_overdue(&self, now: Duration) -> bool {
        let out = |known: &Arc<Known>| known.lease_until.load(Ordering::SeqCst) <= micros(now);
        self.lock().values().any(|known| !known.lost.is_cancelled() && out(known))
    }

    /// Completes once nothing is under way.
    pub(super) async fn all_landed(&self) {
        loop {
            let landed = self.landed.notified();
            tokio::pin!(landed);
            // Registered before the look, so that no landing in between is missed.
            landed.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            landed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Claim, Arc<Known>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
