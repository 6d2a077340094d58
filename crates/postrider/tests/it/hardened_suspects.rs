//! Rows that may kill their workers: tried alone, in the way of nobody.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider::Result;
use postrider::channel::{Channel, Delivery};
use postrider::model::{OutboxId, OutboxStatus, OutboxView, Outcome, Sent};
use postrider::testing::RecordingChannel;

use super::hardened_dispatch::{Gate, pass, settled, start};
use super::support::{World, eventually, node, on_each, seconds};

/// A channel that takes 70 s over each row that lost three workers, and no time over any other.
#[derive(Debug)]
struct SlowSuspects(RecordingChannel);

impl Channel for SlowSuspects {
    fn name(&self) -> &str {
        "email"
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if delivery.row().state().lost_claims >= 3 {
                delivery.clock().sleep(seconds(70)).await;
                return Outcome::Sent(Sent::default());
            }
            self.0.deliver(delivery).await
        })
    }

    fn deadline(&self) -> Duration {
        seconds(600)
    }
}

/// A row that three workers lost. A node that runs already never sees it in another state.
async fn suspect(world: &World) -> OutboxId {
    let mut draft = world.draft();
    let id = draft.row.id;
    draft.row.recipient = id.to_string();
    draft.row.state.next_attempt_at = world.now().plus(seconds(86_400));
    world.insert(vec![draft]).await;
    let lost = "status = 'SENDING', lost_claims = 2, claim_seq = 3, next_attempt_at = created_at";
    world.sql(&format!("UPDATE postrider_outbox SET {lost} WHERE recipient = '{id}'")).await;
    id
}

on_each! {
    /// Contract C4.6: a suspect waits until nothing else is under way, and nothing joins it at once.
    async fn a_suspect_is_tried_with_nothing_else_under_way(world: World) {
        world.pending().await;
        let channel = Gate::new(true);
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        channel.wait_for(1).await;
        let suspect = suspect(&world).await;
        pass(&world, 100).await;
        assert_eq!((channel.started(), world.state(suspect).await.claim_seq), (1, 3));
        channel.let_go(1);
        eventually("the suspect is tried", async || {
            world.clock.advance(seconds(1));
            channel.started() == 2
        })
        .await;
        assert_eq!(world.state(suspect).await.claim_seq, 4);
        let other = world.pending().await;
        dispatcher.dispatch([other]);
        pass(&world, 10).await;
        assert_eq!((channel.started(), world.state(other).await.claim_seq), (2, 0));
        channel.let_go(2);
        eventually("both are sent", async || {
            world.clock.advance(seconds(1));
            channel.sent() == 3
        })
        .await;
        settled(&world, suspect, OutboxStatus::Sent).await;
        settled(&world, other, OutboxStatus::Sent).await;
        dispatcher.shutdown().await;
    }

    /// Contract C4.7, C5.2: rows that kill their workers do not starve those that do not.
    async fn many_suspects_do_not_starve_other_rows(world: World) {
        for _ in 0..5 {
            suspect(&world).await;
        }
        world.insert((0..300).map(|_| world.draft()).collect()).await;
        let channel = Arc::new(SlowSuspects(RecordingChannel::new("email")));
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        let began = world.now();
        eventually("the other rows are sent", async || {
            world.clock.advance(Duration::from_millis(100));
            channel.0.deliveries().len() == 300
        })
        .await;
        let took = world.now().since(began);
        assert!(took < seconds(200), "{took:?}");
        drop(dispatcher);
    }

    /// Contract C5.7: a suspect that hangs holds up no shutdown, and nothing is claimed meanwhile.
    async fn shutdown_keeps_to_its_grace_while_a_suspect_hangs(world: World) {
        let suspect = suspect(&world).await;
        let channel = Gate::new(false);
        let mut config = node("n1");
        config.grace = seconds(1);
        let (_outbox, dispatcher) = start(&world, channel.clone(), config);
        channel.wait_for(1).await;
        let (late, began) = (world.pending().await, world.now());
        dispatcher.dispatch([late]);
        let stopping = tokio::spawn(dispatcher.shutdown());
        eventually("the dispatcher stops", async || {
            world.clock.advance(Duration::from_millis(50));
            stopping.is_finished()
        })
        .await;
        let took = world.now().since(began);
        assert!(took < seconds(10), "{took:?}");
        assert_eq!((channel.started(), world.state(suspect).await.status), (1, OutboxStatus::Pending));
        assert_eq!(world.state(late).await.claim_seq, 0);
    }

    /// Contract C4.6: a suspect under way is not given up because the wall clock steps forward.
    async fn a_step_of_the_wall_clock_gives_up_no_suspect_under_way(world: World) {
        let suspect = suspect(&world).await;
        let channel = Gate::new(true);
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        channel.wait_for(1).await;
        // Until the node no longer leaves it alone, but looks for others again.
        pass(&world, 41).await;
        world.clock.set(world.now().plus(seconds(120)));
        pass(&world, 10).await;
        assert_eq!((channel.started(), world.state(suspect).await.status), (1, OutboxStatus::Sending));
        channel.let_go(1);
        settled(&world, suspect, OutboxStatus::Sent).await;
        dispatcher.shutdown().await;
    }
}
