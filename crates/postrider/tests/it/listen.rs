//! Case C38: waking between nodes on PostgreSQL, and what happens when that connection dies.

use std::sync::Arc;
use std::time::Duration;

use postrider::dispatch::DispatchConfig;
use postrider::model::{Clock, NotificationRow, OutboxId, OutboxStatus, SystemClock};
use postrider::observe::Listening;
use postrider::store::{Database, PostgresDatabase};
use postrider::testing::RecordingChannel;
use postrider::{Outbox, store::OutboxRepository};
use sqlx::Connection as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::hardened_dispatch::pass;
use crate::support::{World, eventually, seconds};
use crate::wire::Wire;

/// Polls seldom, so that only a notification can be quick.
fn seldom() -> DispatchConfig {
    let mut config = DispatchConfig::new("listening");
    config.poll_min = Duration::from_secs(5);
    config.poll_max = Duration::from_secs(5);
    config
}

fn node(world: &World, channel: Arc<RecordingChannel>) -> Outbox<NotificationRow> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    Outbox::builder(Arc::clone(&world.database), clock).channel(channel).build().unwrap()
}

/// A row that is due by the real time, as these nodes see it.
async fn write_row(world: &World) -> OutboxId {
    let now = SystemClock::new().now();
    let mut draft = world.draft();
    draft.row.created_at = now;
    draft.row.state.next_attempt_at = now;
    let id = draft.row.id;
    world.insert(vec![draft]).await;
    id
}

async fn listeners(world: &World) -> i64 {
    let mut observer = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    sqlx::query_scalar(sql).fetch_one(&mut observer).await.unwrap()
}

async fn kill_listeners(world: &World) {
    let mut admin = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
}

/// A notification after the commit wakes a node that would sleep for seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_notification_wakes_another_node() {
    let Some(world) = World::postgres().await else { return };
    let channel = Arc::new(RecordingChannel::new("email"));
    let outbox = node(&world, channel.clone());
    let dispatcher = outbox.start(seldom()).unwrap();
    eventually("the node listens", async || listeners(&world).await == 1).await;
    // Past the first polls, into the long sleep.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let written = std::time::Instant::now();
    write_row(&world).await;
    world.database.notify_others().await.unwrap();
    channel.wait_for(1).await;
    assert!(written.elapsed() < Duration::from_secs(4), "it was the poll, not the notification");
    dispatcher.shutdown().await;
}

/// Rows that a busy node has no slot for are announced to the others, after the commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_node_tells_the_others() {
    let Some(world) = World::postgres().await else { return };
    let held = super::dispatch::Held::new(false);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let busy: Outbox<NotificationRow> =
        Outbox::builder(Arc::clone(&world.database), clock).channel(held.clone()).build().unwrap();
    let mut config = seldom();
    config.concurrency = 1;
    let busy_node = busy.start(config).unwrap();
    let first = write_row(&world).await;
    busy_node.dispatch([first]);
    held.wait_until_reached().await;
    let channel = Arc::new(RecordingChannel::new("email"));
    let idle = node(&world, channel.clone());
    let idle_node = idle.start(seldom()).unwrap();
    eventually("both listen", async || listeners(&world).await == 2).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let written = std::time::Instant::now();
    let second = write_row(&world).await;
    busy_node.dispatch([second]);
    assert_eq!(channel.wait_for(1).await[0].id, second);
    assert!(written.elapsed() < Duration::from_secs(4), "it was the poll, not the notification");
    held.let_go();
    idle_node.shutdown().await;
    busy_node.shutdown().await;
}

/// The backend is terminated: the node listens again, and polls once for what it missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listener_comes_back() {
    let Some(world) = World::postgres().await else { return };
    let channel = Arc::new(RecordingChannel::new("email"));
    let outbox = node(&world, channel.clone());
    let dispatcher = outbox.start(seldom()).unwrap();
    eventually("the node listens", async || listeners(&world).await == 1).await;
    kill_listeners(&world).await;
    write_row(&world).await;
    channel.wait_for(1).await;
    eventually("the node listens again", async || listeners(&world).await == 1).await;
    assert!(dispatcher.counters().snapshot().listener_lost >= 1);
    dispatcher.shutdown().await;
}

/// After a failover LISTEN is refused at first: polling goes on, nothing spins, and once it is allowed
/// the node listens within the heartbeat of 15 s. Where it stands is shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_is_refused_at_first_comes_up() {
    let Some(world) = World::postgres().await else { return };
    let wire = Wire::to(&world).await;
    wire.refuse(Some("LISTEN \"postrider\""));
    let database: Arc<dyn Database> = Arc::new(PostgresDatabase::connect_lazy(wire.url(), 5).unwrap());
    let channel = Arc::new(RecordingChannel::new("email"));
    let builder = Outbox::<NotificationRow>::builder(database, world.clock.clone());
    let outbox = builder.channel(channel.clone()).build().unwrap();
    let began = world.now();
    let dispatcher = outbox.start(crate::support::node("n1")).unwrap();
    let counters = || dispatcher.counters().snapshot();
    eventually("it is refused", async || {
        world.clock.advance(Duration::from_millis(10));
        wire.refusals() >= 3
    })
    .await;
    let id = world.pending().await;
    pass(&world, 300).await;
    assert_eq!(world.state(id).await.status, OutboxStatus::Sent, "polling goes on");
    assert!(wire.refusals() <= 30, "{} attempts in five minutes", wire.refusals());
    assert!(wire.connections() <= 60, "{} connections in five minutes", wire.connections());
    // A listener that never was is not lost.
    assert_eq!((counters().listening, counters().listener_lost), (Listening::Disconnected { since: began }, 0));
    wire.refuse(None);
    let allowed = world.clock.monotonic();
    let comes_up = async || {
        eventually("the node listens", async || {
            world.clock.advance(Duration::from_millis(100));
            matches!(counters().listening, Listening::Connected { since } if since > began)
        })
        .await;
    };
    comes_up().await;
    let took = world.clock.monotonic() - allowed;
    assert!(took <= seconds(20), "a pause of 15 s and 5 s to connect: {took:?}");
    assert_eq!((listeners(&world).await, counters().listener_lost), (1, 0));
    kill_listeners(&world).await;
    eventually("the loss is shown", async || counters().listener_lost == 1).await;
    comes_up().await;
    let shown = serde_json::to_value(counters()).unwrap();
    assert_eq!(shown["listening"]["state"], "connected");
    dispatcher.shutdown().await;
}

/// A server that is down when the node starts is waited for without a storm of connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_before_its_server_listens_once_it_is_there() {
    let Some(world) = World::postgres().await else { return };
    let wire = Wire::to(&world).await;
    wire.set_down(true);
    let id = write_row(&world).await;
    let database: Arc<dyn Database> = Arc::new(PostgresDatabase::connect_lazy(wire.url(), 5).unwrap());
    let channel = Arc::new(RecordingChannel::new("email"));
    let builder = Outbox::<NotificationRow>::builder(database, Arc::new(SystemClock::new()));
    let outbox = builder.channel(channel.clone()).build().unwrap();
    let dispatcher = outbox.start(DispatchConfig::new("early")).unwrap();
    tokio::time::sleep(seconds(3)).await;
    assert!((2..=60).contains(&wire.connections()), "{} connections in 3 s", wire.connections());
    assert!(matches!(dispatcher.counters().snapshot().listening, Listening::Disconnected { .. }));
    wire.set_down(false);
    assert_eq!(channel.wait_for(1).await[0].id, id);
    eventually("the node listens", async || {
        matches!(dispatcher.counters().snapshot().listening, Listening::Connected { .. })
    })
    .await;
    assert_eq!(listeners(&world).await, 1);
    dispatcher.shutdown().await;
}

/// Where the database cannot notify there is no listener to be shown as lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_notifications_has_no_listener() {
    let Some(world) = World::sqlite().await else { return };
    let outbox = world.outbox().channel(Arc::new(RecordingChannel::new("email"))).build().unwrap();
    let dispatcher = outbox.start(crate::support::node("n1")).unwrap();
    eventually("it is off", async || dispatcher.counters().snapshot().listening == Listening::Off).await;
    dispatcher.shutdown().await;
}

/// Packets to the listener vanish without FIN or RST: the heartbeat notices; polling goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_listener_is_noticed_by_its_heartbeat() {
    let Some(world) = World::postgres().await else { return };
    let (freeze, frozen) = watch::channel(false);
    let port = freezing_proxy(world.test.url(), frozen).await;
    let through = proxied(world.test.url(), port);
    let database: Arc<dyn Database> = Arc::new(PostgresDatabase::connect_lazy(&through, 3).unwrap());
    let wake = Arc::new(tokio::sync::Notify::new());
    let (clock, told) = (world.clock.clone(), Arc::clone(&wake));
    let listening = tokio::spawn(async move { database.listen(&*clock, &*told).await });
    // It asks for one poll as soon as it listens.
    wake.notified().await;
    freeze.send(true).unwrap();
    // By the manual clock: a heartbeat every 15 s, 5 s for its answer.
    let frozen_at = world.clock.monotonic();
    eventually("the heartbeat is missed", async || {
        world.clock.advance(seconds(1));
        listening.is_finished()
    })
    .await;
    assert!(world.clock.monotonic() - frozen_at >= seconds(20), "a heartbeat and its answer take their time");
    assert!(matches!(listening.await.unwrap(), Ok(postrider::store::Heard::Lost)));
    // Rows written meanwhile go out by polling, whatever the listener does.
    let repository =
        OutboxRepository::<NotificationRow>::new(Arc::clone(&world.database), world.clock.clone()).unwrap();
    let channel = Arc::new(RecordingChannel::new("email"));
    let outbox = world.outbox().channel(channel.clone()).build().unwrap();
    let id = world.pending().await;
    let dispatcher = outbox.start(crate::support::node("n")).unwrap();
    channel.wait_for(1).await;
    eventually("it is sent", async || {
        repository.root().find_by_id(id).await.unwrap().unwrap().row.state.status == OutboxStatus::Sent
    })
    .await;
    dispatcher.shutdown().await;
}

/// The same address by way of the proxy's port.
fn proxied(url: &str, port: u16) -> String {
    let (head, tail) = url.split_once('@').unwrap();
    let (_, database) = tail.split_once('/').unwrap();
    format!("{head}@127.0.0.1:{port}/{database}")
}

/// Passes bytes on until it is frozen; then connections stay open and nothing moves.
async fn freezing_proxy(url: &str, frozen: watch::Receiver<bool>) -> u16 {
    let tail = url.split_once('@').unwrap().1;
    let host = tail.split_once('/').unwrap().0.to_owned();
    let host = if host.contains(':') { host } else { format!("{host}:5432") };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (host, mut frozen) = (host.clone(), frozen.clone());
            tokio::spawn(async move {
                let mut far = TcpStream::connect(host).await.unwrap();
                let freezing = async { while !*frozen.borrow_and_update() && frozen.changed().await.is_ok() {} };
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    () = freezing => std::future::pending::<()>().await,
                }
            });
        }
    });
    port
}
