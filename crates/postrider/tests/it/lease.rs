//! A delivery whose claim has run out does not send, whoever notices it first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use postrider::Result;
use postrider::channel::{Channel, Delivery};
use postrider::model::{Blame, FailureScope, OutboxStatus, OutboxView, Outcome, Retry, Sent};
use postrider::testing::ManualClock;

use super::hardened_dispatch::{settled, start};
use super::support::{World, eventually, node, seconds};

/// A channel that sleeps through its first claim, as a process does that was stopped, and goes on
/// before anybody else of its process.
#[derive(Debug)]
struct Sleeper {
    clock: Arc<ManualClock>,
    tries: AtomicUsize,
    sent: AtomicUsize,
}

impl Channel for Sleeper {
    fn name(&self) -> &str {
        "email"
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if self.tries.fetch_add(1, Ordering::SeqCst) == 0 {
                self.clock.advance(seconds(61));
            }
            if delivery.point_of_no_return().cross() {
                self.sent.fetch_add(1, Ordering::SeqCst);
                return Outcome::Sent(Sent::default());
            }
            let error = "the delivery was cut".to_owned();
            let (scope, blame) = (FailureScope::Row, Blame::Nobody);
            Outcome::Retry(Retry { error, after: None, scope, blame, ledger: None })
        })
    }
}

/// Contract C4.2: past its lease a delivery crosses no more; the row is given back, at no cost.
/// One thread: nothing runs between the waking up and the crossing.
#[tokio::test]
async fn a_delivery_whose_lease_ran_out_never_crosses() {
    let Some(world) = World::sqlite().await else { return };
    let id = world.pending().await;
    let (tries, sent) = Default::default();
    let channel = Arc::new(Sleeper { clock: Arc::clone(&world.clock), tries, sent });
    let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
    eventually("it is tried again", async || {
        world.clock.advance(std::time::Duration::from_millis(10));
        channel.tries.load(Ordering::SeqCst) >= 2
    })
    .await;
    settled(&world, id, OutboxStatus::Sent).await;
    let state = world.state(id).await;
    assert_eq!((channel.sent.load(Ordering::SeqCst), state.attempts, state.last_error), (1, 1, None));
    assert!(state.claim_seq >= 2);
    dispatcher.shutdown().await;
}
