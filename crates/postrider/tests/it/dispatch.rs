//! Dispatching: fast path, poller, back-off, deferral, doubt, panics, shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider::accept::{Notification, Recipient};
use postrider::channel::{Channel, Delivery};
use postrider::dispatch::{DispatchConfig, Dispatcher};
use postrider::model::{
    AddressState, Blame, Clock, FailureScope, InDoubt, Ledger, LedgerEntry, NotificationRow, OutboxId, OutboxRow,
    OutboxStatus, OutboxView, Outcome, Reject, Retry, Role, Sent, Suppress, SystemClock, TenantId,
};
use postrider::store::Query;
use postrider::testing::RecordingChannel;
use postrider::{Outbox, Result};
use tokio::sync::Notify;

use super::support::{World, eventually, node, on_each, seconds};

fn root(row: OutboxRow) -> NotificationRow {
    NotificationRow { row, tenant_id: TenantId::ROOT }
}

fn start(world: &World, channel: Arc<dyn Channel>) -> (Outbox<NotificationRow>, Dispatcher<NotificationRow>) {
    start_with(world, channel, node("n1"))
}

fn start_with(
    world: &World,
    channel: Arc<dyn Channel>,
    config: DispatchConfig,
) -> (Outbox<NotificationRow>, Dispatcher<NotificationRow>) {
    let outbox = world.outbox().channel(channel).build().unwrap();
    let dispatcher = outbox.start(config).unwrap();
    (outbox, dispatcher)
}

async fn settled(world: &World, id: OutboxId, status: OutboxStatus) {
    eventually(&format!("the row becomes {status}"), async || world.state(id).await.status == status).await;
}

fn retry(scope: FailureScope, after: Option<Duration>) -> Outcome {
    Outcome::Retry(Retry { error: "450 later".into(), after, scope, blame: Blame::Nobody, ledger: None })
}

/// A channel that waits in a delivery until it is let go, before or after its point of no return.
#[derive(Debug)]
pub(crate) struct Held {
    crosses: bool,
    reached: Notify,
    go: Notify,
    sent: AtomicUsize,
}

impl Held {
    pub(crate) fn new(crosses: bool) -> Arc<Self> {
        Arc::new(Self { crosses, reached: Notify::new(), go: Notify::new(), sent: AtomicUsize::new(0) })
    }

    pub(crate) async fn wait_until_reached(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn let_go(&self) {
        self.go.notify_one();
    }
}

impl Channel for Held {
    fn name(&self) -> &str {
        "email"
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if self.crosses {
                assert!(delivery.point_of_no_return().cross());
            }
            self.reached.notify_one();
            self.go.notified().await;
            self.sent.fetch_add(1, Ordering::SeqCst);
            Outcome::Sent(Sent::default())
        })
    }

    fn deadline(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// A channel that panics.
#[derive(Debug)]
struct Panics {
    crosses: bool,
}

impl Channel for Panics {
    fn name(&self) -> &str {
        "email"
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if self.crosses {
                assert!(delivery.point_of_no_return().cross());
            }
            panic!("this channel is broken");
        })
    }
}

on_each! {
    /// Contract C5.1: rows handed over after the commit are delivered without a poll.
    async fn the_fast_path_delivers_at_once(world: World) {
        let channel = Arc::new(RecordingChannel::new("email"));
        let (outbox, dispatcher) = start(&world, channel.clone());
        // The clock stands still: no poll but the first can run.
        let notification = Notification::text("Hello", "Hi").over("email").to(Recipient::new("a").at("email", "a@example.com"));
        let mut open = world.database.begin().await.unwrap();
        let enqueued = outbox.service().root().enqueue(open.connection(), &notification, root).await.unwrap();
        open.commit().await.unwrap();
        let id = enqueued.created().next().unwrap();
        dispatcher.dispatch(enqueued);
        channel.wait_for(1).await;
        settled(&world, id, OutboxStatus::Sent).await;
        let state = world.state(id).await;
        assert_eq!((state.attempts, state.provider.as_deref()), (1, Some("recording")));
        assert_eq!(state.claimed_by.as_deref(), Some("n1"));
        dispatcher.shutdown().await;
    }

    /// Contract C5.2: forgotten, the row is delivered by the poller; also one written before the start.
    async fn the_poller_delivers_what_nobody_handed_over(world: World) {
        let before = world.pending().await;
        let channel = Arc::new(RecordingChannel::new("email"));
        let (_outbox, dispatcher) = start(&world, channel.clone());
        settled(&world, before, OutboxStatus::Sent).await;
        let after = world.pending().await;
        eventually("a poll finds it", async || {
            world.clock.advance(seconds(1));
            world.state(after).await.status == OutboxStatus::Sent
        })
        .await;
        dispatcher.shutdown().await;
    }

    /// Contract C4.1, C5.1, case C25: fast path and eight pollers, counting channel, no row twice.
    async fn fast_path_and_pollers_send_each_row_once(world: World) {
        let channel = Arc::new(RecordingChannel::new("email"));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let mut nodes = Vec::new();
        for n in 0..8 {
            let outbox = Outbox::<NotificationRow>::builder(Arc::clone(&world.database), Arc::clone(&clock))
                .channel(channel.clone())
                .build()
                .unwrap();
            let dispatcher = outbox.start(DispatchConfig::new(format!("n{n}"))).unwrap();
            nodes.push((outbox, dispatcher));
        }
        for n in 0..1_000 {
            let notification = Notification::text("Hello", "Hi")
                .over("email")
                .to(Recipient::new(format!("u{n}")).at("email", format!("u{n}@example.com")));
            let (outbox, dispatcher) = &nodes[n % 2];
            let mut open = world.database.begin().await.unwrap();
            let enqueued = outbox.service().root().enqueue(open.connection(), &notification, root).await.unwrap();
            open.commit().await.unwrap();
            dispatcher.dispatch(enqueued);
        }
        channel.wait_for(1_000).await;
        eventually("all rows are settled", async || {
            let sent = world.rows().page(&Query::new().limit(2_000)).await.unwrap().rows;
            sent.iter().all(|entity| entity.row.state.status == OutboxStatus::Sent)
        })
        .await;
        for (_, dispatcher) in nodes {
            dispatcher.shutdown().await;
        }
        let mut delivered: Vec<_> = channel.deliveries().into_iter().map(|row| row.id).collect();
        assert_eq!(delivered.len(), 1_000);
        delivered.sort();
        delivered.dedup();
        assert_eq!(delivered.len(), 1_000);
    }

    /// Contract C3, C3.4: a row-scoped failure uses an attempt and is due again by the schedule.
    async fn a_failure_of_the_row_is_tried_again_until_dead(world: World) {
        let mut draft = world.draft();
        draft.row.max_attempts = 2;
        let id = draft.row.id;
        world.insert(vec![draft]).await;
        let channel = Arc::new(RecordingChannel::new("email"));
        channel.answer_next(retry(FailureScope::Row, None));
        channel.answer_next(retry(FailureScope::Row, None));
        let (_outbox, dispatcher) = start(&world, channel.clone());
        settled(&world, id, OutboxStatus::Failed).await;
        let state = world.state(id).await;
        let delay = state.next_attempt_at.since(world.now());
        assert!(delay >= seconds(48) && delay <= seconds(72), "{delay:?}");
        assert_eq!((state.attempts, state.last_error.as_deref()), (1, Some("450 later")));
        eventually("the row becomes DEAD", async || {
            world.clock.advance(seconds(10));
            world.state(id).await.status == OutboxStatus::Dead
        })
        .await;
        assert_eq!(channel.deliveries().len(), 2);
        // Counted once the database confirmed, which the row shows a moment before.
        eventually("it is counted", async || dispatcher.counters().snapshot().dead == 1).await;
        dispatcher.shutdown().await;
    }

    /// Contract C3.4: a failure of the destination costs no attempt; what the peer asked is kept.
    async fn a_failure_of_the_destination_defers(world: World) {
        let id = world.pending().await;
        let channel = Arc::new(RecordingChannel::new("email"));
        channel.answer_next(retry(FailureScope::Destination, Some(seconds(1_000))));
        let (_outbox, dispatcher) = start(&world, channel);
        eventually("the row is put off", async || world.state(id).await.deferrals == 1).await;
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts), (OutboxStatus::Pending, 0));
        assert_eq!(state.reason_code.as_deref(), Some("destination"));
        assert_eq!(state.next_attempt_at, world.now().plus(seconds(1_000)));
        assert_eq!((state.deferred_since, state.last_error), (Some(world.now()), None));
        let history = world.rows().history(id).await.unwrap();
        assert_eq!((history[0].event.as_str(), history[0].error.as_deref()), ("defer", Some("450 later")));
        dispatcher.shutdown().await;
    }

    /// Contract C3: reject and suppress are final at once; a suppression uses no attempt.
    async fn reject_and_suppress_are_final(world: World) {
        let channel = Arc::new(RecordingChannel::new("email"));
        channel.answer_next(Outcome::Reject(Reject { error: "550 no".into(), blame: Blame::Recipient, ledger: None }));
        let rejected = world.pending().await;
        let (_outbox, dispatcher) = start(&world, channel.clone());
        settled(&world, rejected, OutboxStatus::Dead).await;
        assert_eq!(world.state(rejected).await.attempts, 1);
        channel.answer_next(Outcome::Suppress(Suppress { reason: "opted out".into(), reason_code: "opt_out".into() }));
        let suppressed = world.pending().await;
        dispatcher.dispatch([suppressed]);
        settled(&world, suppressed, OutboxStatus::Suppressed).await;
        let state = world.state(suppressed).await;
        assert_eq!((state.attempts, state.reason_code.as_deref()), (0, Some("opt_out")));
        dispatcher.shutdown().await;
    }

    /// Contract C3.6: once the To address was accepted the row never ends DEAD.
    async fn a_row_whose_to_was_accepted_ends_sent_partial(world: World) {
        let mut draft = world.draft();
        draft.row.max_attempts = 1;
        let id = draft.row.id;
        world.insert(vec![draft]).await;
        let mut ledger = Ledger::default();
        for (role, state, address) in
            [(Role::To, AddressState::Accepted, "alice@example.com"), (Role::Cc, AddressState::Deferred, "b@example.com")]
        {
            ledger.record(LedgerEntry { address: address.into(), role, state, at: world.now(), reply: None });
        }
        let channel = Arc::new(RecordingChannel::new("email"));
        let mut answer = retry(FailureScope::Row, None);
        if let Outcome::Retry(retry) = &mut answer {
            retry.ledger = Some(ledger.clone());
        }
        channel.answer_next(answer);
        let (_outbox, dispatcher) = start(&world, channel);
        settled(&world, id, OutboxStatus::Sent).await;
        let state = world.state(id).await;
        assert_eq!(state.reason_code.as_deref(), Some("partial"));
        assert_eq!((state.sent_at, state.recipients), (Some(world.now()), Some(ledger)));
        dispatcher.shutdown().await;
    }

    /// Contract C3: an answer in doubt is recorded on the row and tried again with the same key.
    async fn an_attempt_in_doubt_is_marked_and_tried_again(world: World) {
        let id = world.pending().await;
        let channel = Arc::new(RecordingChannel::new("email"));
        channel.answer_next(Outcome::InDoubt(InDoubt { error: "no answer after the final dot".into(), ledger: None }));
        let (_outbox, dispatcher) = start(&world, channel.clone());
        settled(&world, id, OutboxStatus::Failed).await;
        let state = world.state(id).await;
        assert!(state.in_doubt);
        assert_eq!(state.attempts, 1);
        world.rows().expedite(id, world.now()).await.unwrap();
        dispatcher.dispatch([id]);
        settled(&world, id, OutboxStatus::Sent).await;
        assert!(world.state(id).await.in_doubt, "a copy may exist, so the mark stays");
        let keys: Vec<_> = channel.deliveries().iter().map(OutboxRow::idempotency_key).collect();
        assert_eq!(keys[0], keys[1]);
        dispatcher.shutdown().await;
    }

    /// Contract C1.5: a node whose clock is off from the database's claims nothing, and goes on once
    /// it is mended. SQLite has no clock of its own.
    async fn a_node_whose_clock_is_off_claims_nothing(world: World) {
        let id = world.pending().await;
        let channel = Arc::new(RecordingChannel::new("email"));
        let (_outbox, dispatcher) = start_with(&world, channel.clone(), DispatchConfig::new("n1"));
        let has_a_clock = world.database.dialect() != postrider::store::Dialect::Sqlite;
        if has_a_clock {
            eventually("it waits", async || world.clock.sleepers() >= 2).await;
            assert_eq!(world.state(id).await.status, OutboxStatus::Pending);
        }
        eventually("it claims", async || {
            world.clock.advance(seconds(2));
            if has_a_clock {
                // The wall clock is mended; only the monotonic one runs fast.
                world.clock.set(SystemClock::new().now());
            }
            world.state(id).await.status == OutboxStatus::Sent
        })
        .await;
        dispatcher.shutdown().await;
    }

    /// A panic in a channel ends its row's attempt alone.
    async fn a_panicking_channel_fails_its_row_alone(world: World) {
        let id = world.pending().await;
        let (_outbox, dispatcher) = start(&world, Arc::new(Panics { crosses: false }));
        settled(&world, id, OutboxStatus::Failed).await;
        assert_eq!(world.state(id).await.last_error.as_deref(), Some("the channel panicked"));
        dispatcher.shutdown().await;
        let other = world.pending().await;
        let (_outbox, dispatcher) = start(&world, Arc::new(Panics { crosses: true }));
        settled(&world, other, OutboxStatus::Failed).await;
        assert!(world.state(other).await.in_doubt);
        dispatcher.shutdown().await;
    }

    /// Contract C3: claimed after its time, the row is not sent.
    async fn an_expired_row_is_suppressed(world: World) {
        let mut draft = world.draft();
        draft.row.expires_at = Some(world.now());
        let id = draft.row.id;
        world.insert(vec![draft]).await;
        let channel = Arc::new(RecordingChannel::new("email"));
        let (_outbox, dispatcher) = start(&world, channel.clone());
        settled(&world, id, OutboxStatus::Suppressed).await;
        let state = world.state(id).await;
        assert_eq!((state.attempts, state.reason_code.as_deref()), (0, Some("expired")));
        assert!(channel.deliveries().is_empty());
        dispatcher.shutdown().await;
    }

    /// Contract C4.5: a long delivery keeps its claim.
    async fn a_long_delivery_renews_its_claim(world: World) {
        let id = world.pending().await;
        let channel = Held::new(false);
        let (_outbox, dispatcher) = start(&world, channel.clone());
        channel.wait_until_reached().await;
        let first = world.state(id).await.next_attempt_at;
        for _ in 0..6 {
            let before = world.state(id).await.next_attempt_at;
            world.clock.advance(seconds(20));
            eventually("the claim is renewed", async || world.state(id).await.next_attempt_at > before).await;
        }
        assert!(world.now() > first);
        channel.let_go();
        settled(&world, id, OutboxStatus::Sent).await;
        let state = world.state(id).await;
        assert_eq!((state.claim_seq, state.lost_claims), (1, 0));
        dispatcher.shutdown().await;
    }

    /// Contract C4.4: a delivery whose claim was taken over is cut, and says nothing any more.
    async fn a_delivery_that_lost_its_claim_is_cut(world: World) {
        let id = world.pending().await;
        let channel = Held::new(false);
        let (_outbox, dispatcher) = start(&world, channel.clone());
        channel.wait_until_reached().await;
        // Another node believes that the claim ran out.
        let future = world.now().plus(seconds(61));
        let taken = world.rows().claim(id, future, future.plus(seconds(600)), "other").await.unwrap().unwrap();
        eventually("the loss is noticed", async || {
            world.clock.advance(seconds(20));
            dispatcher.counters().snapshot().claims_lost == 1
        })
        .await;
        channel.let_go();
        world.rows().mark_sent(taken.claim, future).await.unwrap();
        assert_eq!(channel.sent.load(Ordering::SeqCst), 0);
        dispatcher.shutdown().await;
        assert_eq!(world.state(id).await.claimed_by.as_deref(), Some("other"));
    }

    /// Contract C5.7: shutdown lets deliveries finish within the grace period.
    async fn shutdown_waits_for_what_is_under_way(world: World) {
        let id = world.pending().await;
        let channel = Held::new(false);
        let (_outbox, dispatcher) = start(&world, channel.clone());
        channel.wait_until_reached().await;
        let stopping = tokio::spawn(dispatcher.shutdown());
        channel.let_go();
        stopping.await.unwrap();
        assert_eq!(world.state(id).await.status, OutboxStatus::Sent);
        // And it claims nothing any more.
        let late = world.pending().await;
        world.clock.advance(seconds(30));
        assert_eq!(world.state(late).await.status, OutboxStatus::Pending);
    }

    /// Contract C5.7, case C30: what is cut before its point of no return is given back, due now.
    async fn shutdown_gives_back_what_it_cuts(world: World) {
        let id = world.pending().await;
        let channel = Held::new(false);
        let (_outbox, dispatcher) = start(&world, channel.clone());
        channel.wait_until_reached().await;
        stop_after_grace(&world, dispatcher).await;
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts, state.lost_claims), (OutboxStatus::Pending, 0, 0));
        assert!(state.next_attempt_at <= world.now());
        assert!(!state.in_doubt);
    }

    /// Contract C5.7: what is cut past its point of no return is in doubt.
    async fn shutdown_marks_as_in_doubt_what_may_be_out(world: World) {
        let id = world.pending().await;
        let channel = Held::new(true);
        let (_outbox, dispatcher) = start(&world, channel.clone());
        channel.wait_until_reached().await;
        stop_after_grace(&world, dispatcher).await;
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts, state.in_doubt), (OutboxStatus::Failed, 1, true));
    }

    /// A delivery that takes too long is cut by the channel's deadline, and only put off.
    async fn the_channels_deadline_ends_a_delivery(world: World) {
        let id = world.pending().await;
        let channel = Held::new(false);
        let (_outbox, dispatcher) = start(&world, channel.clone());
        channel.wait_until_reached().await;
        eventually("the deadline cuts it", async || {
            world.clock.advance(seconds(15));
            world.state(id).await.deferrals == 1
        })
        .await;
        let history = world.rows().history(id).await.unwrap();
        let put_off = history.iter().find(|line| line.event == "defer").unwrap();
        assert!(put_off.error.as_deref().unwrap().contains("600 s"));
        let stopping = tokio::spawn(dispatcher.shutdown());
        channel.let_go();
        eventually("the dispatcher stops", async || {
            world.clock.advance(seconds(10));
            stopping.is_finished()
        })
        .await;
    }

    /// Contract C4.6: a row that lost its worker three times is tried alone, and can still succeed.
    async fn a_suspect_row_is_tried_alone(world: World) {
        let id = world.pending().await;
        for _ in 0..3 {
            let reclaim_at = world.now().plus(seconds(60));
            world.rows().claim(id, world.now(), reclaim_at, "dying").await.unwrap().unwrap();
            world.clock.advance(seconds(60));
        }
        let channel = Arc::new(RecordingChannel::new("email"));
        let (_outbox, dispatcher) = start(&world, channel.clone());
        settled(&world, id, OutboxStatus::Sent).await;
        assert_eq!(channel.deliveries()[0].state.lost_claims, 3);
        assert_eq!(world.rows().history(id).await.unwrap().len(), 3);
        dispatcher.shutdown().await;
    }
}

/// Shuts down while a delivery hangs, and lets the grace period pass.
async fn stop_after_grace(world: &World, dispatcher: Dispatcher<NotificationRow>) {
    let stopping = tokio::spawn(dispatcher.shutdown());
    eventually("the dispatcher stops", async || {
        world.clock.advance(seconds(10));
        stopping.is_finished()
    })
    .await;
    stopping.await.unwrap();
}
