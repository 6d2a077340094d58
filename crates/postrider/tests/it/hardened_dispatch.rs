//! Dispatching when channels, entities and clocks misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider::channel::{Channel, Delivery};
use postrider::dispatch::{DispatchConfig, Dispatcher};
use postrider::model::{
    ByTenant, NotificationRow, OutboxEntity, OutboxId, OutboxRow, OutboxStatus, OutboxView, Outcome, OwnColumn, Sent,
    TableDef, TenantId, Value,
};
use postrider::store::Dialect;
use postrider::testing::RecordingChannel;
use postrider::{Outbox, Result};
use tokio::sync::Semaphore;

use super::support::{World, eventually, node, on_each, seconds};

/// A channel that counts its deliveries and holds each until it is let go.
#[derive(Debug)]
pub(crate) struct Gate {
    crosses: bool,
    broken_deadline: bool,
    started: AtomicUsize,
    sent: AtomicUsize,
    open: Semaphore,
}

impl Gate {
    /// Holds deliveries past their point of no return, or before it.
    pub(crate) fn new(crosses: bool) -> Arc<Self> {
        Self::with(crosses, false)
    }

    fn with(crosses: bool, broken_deadline: bool) -> Arc<Self> {
        let (started, sent) = Default::default();
        Arc::new(Self { crosses, broken_deadline, started, sent, open: Semaphore::new(0) })
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    pub(crate) async fn wait_for(&self, deliveries: usize) {
        eventually("deliveries begin", async || self.started() >= deliveries).await;
    }

    pub(crate) fn let_go(&self, deliveries: usize) {
        self.open.add_permits(deliveries);
    }
}

impl Channel for Gate {
    fn name(&self) -> &str {
        "email"
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            self.started.fetch_add(1, Ordering::SeqCst);
            assert!(!self.crosses || delivery.point_of_no_return().cross());
            self.open.acquire().await.unwrap().forget();
            self.sent.fetch_add(1, Ordering::SeqCst);
            Outcome::Sent(Sent::default())
        })
    }

    fn deadline(&self) -> Duration {
        assert!(!self.broken_deadline, "this channel has no deadline");
        seconds(6_000)
    }
}

/// An entity that panics when it is put together for the recipient `poison`.
#[derive(Debug, Clone, PartialEq)]
struct Fragile(NotificationRow);

impl OutboxEntity for Fragile {
    type Tenancy = ByTenant;

    fn table() -> Result<TableDef> {
        NotificationRow::table()
    }

    fn own_columns() -> &'static [OwnColumn] {
        &[]
    }

    fn row(&self) -> &OutboxRow {
        &self.0.row
    }

    fn tenant(&self) -> &TenantId {
        &self.0.tenant_id
    }

    fn own_values(&self) -> Vec<Value> {
        Vec::new()
    }

    fn assemble(row: OutboxRow, tenant_id: TenantId, _own: Vec<Value>) -> Result<Self> {
        assert_ne!(row.recipient, "poison");
        Ok(Self(NotificationRow { row, tenant_id }))
    }
}

pub(crate) fn start(
    world: &World,
    channel: Arc<dyn Channel>,
    config: DispatchConfig,
) -> (Outbox<NotificationRow>, Dispatcher<NotificationRow>) {
    let outbox = world.outbox().channel(channel).build().unwrap();
    let dispatcher = outbox.start(config).unwrap();
    (outbox, dispatcher)
}

pub(crate) async fn settled(world: &World, id: OutboxId, status: OutboxStatus) {
    eventually(&format!("the row becomes {status}"), async || world.state(id).await.status == status).await;
}

/// Lets so many seconds pass, with a moment of real time after each.
pub(crate) async fn pass(world: &World, turns: u64) {
    let until = world.now().plus(seconds(turns));
    eventually("time passes", async || {
        world.clock.advance(seconds(1));
        world.now() >= until
    })
    .await;
}

on_each! {
    /// Contract C4.5, C5.6: a wall clock that steps forward makes no node take its own rows over.
    async fn a_wall_clock_that_steps_forward_repeats_no_delivery(world: World) {
        let id = world.pending().await;
        let channel = Gate::new(true);
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        channel.wait_for(1).await;
        let stepped = world.now().plus(seconds(120));
        world.clock.set(stepped);
        eventually("the claim is renewed by the new time", async || {
            world.clock.advance(Duration::from_millis(500));
            world.state(id).await.next_attempt_at > stepped
        })
        .await;
        pass(&world, 10).await;
        assert_eq!((channel.started(), world.state(id).await.claim_seq), (1, 1));
        channel.let_go(1);
        settled(&world, id, OutboxStatus::Sent).await;
        dispatcher.shutdown().await;
    }

    /// Contract C4.7, case C29: an entity that panics in `assemble` fails its own row alone.
    async fn a_panicking_entity_fails_its_row_alone(world: World) {
        let mut bad = world.draft();
        bad.row.recipient = "poison".to_owned();
        let (bad_id, good) = (bad.row.id, world.draft());
        let good_id = good.row.id;
        world.insert(vec![bad, good]).await;
        let channel = Arc::new(RecordingChannel::new("email"));
        let outbox = Outbox::<Fragile>::builder(Arc::clone(&world.database), world.clock.clone());
        let dispatcher = outbox.channel(channel.clone()).build().unwrap().start(node("n1")).unwrap();
        settled(&world, good_id, OutboxStatus::Sent).await;
        settled(&world, bad_id, OutboxStatus::Failed).await;
        assert_eq!((channel.deliveries().len(), world.state(good_id).await.claim_seq), (1, 1));
        let state = world.state(bad_id).await;
        assert_eq!((state.attempts, state.reason_code.as_deref()), (1, Some("unreadable")));
        assert!(state.last_error.unwrap().contains("panicked"));
        dispatcher.shutdown().await;
    }

    /// Contract C5.7: a channel that panics over its deadline leaves nothing behind that goes on unwatched.
    async fn a_panicking_deadline_leaves_no_unwatched_delivery(world: World) {
        let id = world.pending().await;
        let channel = Gate::with(true, true);
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        settled(&world, id, OutboxStatus::Failed).await;
        let state = world.state(id).await;
        assert_eq!((state.attempts, state.claim_seq, channel.started()), (1, 1, 0));
        assert!(state.last_error.unwrap().contains("panicked"));
        dispatcher.shutdown().await;
    }

    /// Contract C1.2, C5.2: a row whose due time is before all others is found by the poller.
    async fn a_row_due_before_all_time_is_delivered(world: World) {
        let id = world.pending().await;
        world.sql(match world.database.dialect() {
            Dialect::Postgres => "UPDATE postrider_outbox SET next_attempt_at = '-infinity'",
            Dialect::Mysql => "UPDATE postrider_outbox SET next_attempt_at = '0001-01-01'",
            _ => "UPDATE postrider_outbox SET next_attempt_at = -9223372036854775808",
        })
        .await;
        let (_outbox, dispatcher) = start(&world, Arc::new(RecordingChannel::new("email")), node("n1"));
        settled(&world, id, OutboxStatus::Sent).await;
        dispatcher.shutdown().await;
    }
}
