//! What is written of a delivery when the database is away, held or unwilling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider::dispatch::Dispatcher;
use postrider::model::{
    AddressState, Blame, Clock, FailureScope, Ledger, LedgerEntry, NotificationRow, OutboxId, OutboxStatus, Outcome,
    Retry, Role, SystemClock,
};
use postrider::store::{Database, Dialect, PostgresDatabase};
use postrider::testing::RecordingChannel;
use postrider::{ErrorKind, Outbox};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::net::{TcpListener, TcpStream};

use super::hardened_dispatch::{Gate, pass, start};
use super::support::{World, eventually, node, on_each, seconds};

/// A node by the machine's clock.
fn start_real(
    database: &Arc<dyn Database>,
    channel: &Arc<Gate>,
    claim_timeout: Duration,
) -> Dispatcher<NotificationRow> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let outbox =
        Outbox::<NotificationRow>::builder(Arc::clone(database), clock).channel(channel.clone()).build().unwrap();
    let mut config = node("n1");
    config.claim_timeout = claim_timeout;
    outbox.start(config).unwrap()
}

async fn all_sent(world: &World, ids: &[OutboxId]) -> bool {
    for id in ids {
        if world.state(*id).await.status != OutboxStatus::Sent {
            return false;
        }
    }
    true
}

/// A way to the database's server that can be cut: connections are closed, new ones at once.
async fn proxy(world: &World) -> (Arc<dyn Database>, Arc<AtomicBool>) {
    let up = Arc::new(AtomicBool::new(true));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (_, rest) = world.test.url().split_once('@').expect("the address names a user");
    let server = rest.split('/').next().unwrap().to_owned();
    let url = world.test.url().replace(&server, &listener.local_addr().unwrap().to_string());
    let switch = Arc::clone(&up);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            if !switch.load(Ordering::SeqCst) {
                continue;
            }
            let (switch, server) = (Arc::clone(&switch), server.clone());
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await.unwrap();
                let cut = async {
                    while switch.load(Ordering::SeqCst) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    () = cut => {}
                }
            });
        }
    });
    (Arc::new(PostgresDatabase::connect_lazy(&url, 20).unwrap()), up)
}

on_each! {
    /// Contract C4.4, C5.6: an error that says nothing about a row loses no ending, and sends nothing twice.
    async fn a_table_that_is_away_for_a_moment_loses_no_ending(world: World) {
        let id = world.pending().await;
        let channel = Gate::new(true);
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        channel.wait_for(1).await;
        world.sql("ALTER TABLE postrider_outbox RENAME TO away").await;
        channel.let_go(1);
        // Time for the ending to be tried again and again; longer than a claim lasts.
        pass(&world, 90).await;
        assert_eq!(channel.sent(), 1);
        world.sql("ALTER TABLE away RENAME TO postrider_outbox").await;
        channel.let_go(10);
        eventually("the ending is written", async || {
            world.clock.advance(Duration::from_millis(500));
            all_sent(&world, &[id]).await
        })
        .await;
        let state = world.state(id).await;
        assert_eq!((channel.started(), state.claim_seq, state.attempts), (1, 1, 1));
        dispatcher.shutdown().await;
    }

    /// Contract C3.6: where the database refuses a peer's words, who accepted the message stays known.
    async fn an_ending_without_the_peers_words_keeps_who_accepted(world: World) {
        world.sql(match world.database.dialect() {
            Dialect::Postgres | Dialect::Mysql => "ALTER TABLE postrider_outbox_attempt ADD CHECK (error <> '450')",
            _ => "CREATE TRIGGER refuse BEFORE INSERT ON postrider_outbox_attempt WHEN NEW.error = '450' \
                  BEGIN SELECT RAISE(ABORT, 'refused'); END",
        })
        .await;
        let id = world.pending().await;
        let mut ledger = Ledger::default();
        for (role, state, address) in
            [(Role::To, AddressState::Accepted, "alice@example.com"), (Role::Cc, AddressState::Deferred, "b@example.com")]
        {
            let entry = LedgerEntry { address: address.into(), role, state, at: world.now(), reply: Some("odd".into()) };
            ledger.record(entry);
        }
        let (error, blame, ledger) = ("450".to_owned(), Blame::Nobody, Some(ledger));
        let channel = Arc::new(RecordingChannel::new("email"));
        channel.answer_next(Outcome::Retry(Retry { error, after: None, scope: FailureScope::Row, blame, ledger }));
        let (_outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        eventually("the failure is written", async || world.state(id).await.status == OutboxStatus::Failed).await;
        let state = world.state(id).await;
        assert_eq!((state.attempts, state.accepted_at), (1, Some(world.now())));
        let kept = state.recipients.unwrap();
        assert_eq!(kept.state(Role::To, "alice@example.com"), Some(AddressState::Accepted));
        assert_eq!(kept.state(Role::Cc, "b@example.com"), Some(AddressState::Deferred));
        assert!(kept.entries().iter().all(|entry| entry.reply.is_none()));
        assert_ne!(state.last_error.as_deref(), Some("450"));
        dispatcher.shutdown().await;
    }

    /// Settings that no node can work with are refused when it starts.
    async fn absurd_settings_are_refused(world: World) {
        let outbox = world.outbox().channel(Gate::new(false)).build().unwrap();
        for absurd in 0..10 {
            let mut config = node("n1");
            match absurd {
                0 => config.claim_timeout = Duration::MAX,
                1 => config.claim_timeout = Duration::ZERO,
                2 => config.poll_max = Duration::MAX,
                3 => config.poll_min = Duration::ZERO,
                4 => config.settle_window = seconds(600),
                5 => config.grace = Duration::MAX,
                6 => config.concurrency = usize::MAX,
                7 => config.batch = usize::MAX,
                8 => config.node = "n\0".to_owned(),
                _ => config.poll_max = config.poll_min / 2,
            }
            let refused = outbox.start(config).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Configuration, "{absurd}");
        }
    }
}

/// Contract C4.4, C5.6: a server that refuses connections for a moment loses no ending.
#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_lose_no_ending() {
    let Some(world) = World::postgres().await else { return };
    let id = world.pending().await;
    let channel = Gate::new(true);
    let dispatcher = start_real(&world.database, &channel, seconds(60));
    channel.wait_for(1).await;
    let name = world.test.name().unwrap();
    let mut admin = sqlx::PgConnection::connect(&world.test.url().replace(name, "postgres")).await.unwrap();
    for sql in [
        format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false"),
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
    }
    channel.let_go(1);
    // The ending has to meet the refusal, which nothing shows from outside.
    tokio::time::sleep(seconds(1)).await;
    let sql = format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
    eventually("the ending is written", async || all_sent(&world, &[id]).await).await;
    assert_eq!((channel.started(), world.state(id).await.claim_seq), (1, 1));
    dispatcher.shutdown().await;
}

/// Contract C4.4, C5.6: after an outage longer than its claims a node first writes what it delivered.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_longer_than_the_claims_repeats_no_delivery() {
    // Who comes first when the database is back depends on how long it was away.
    let outages = [1_500, 2_000, 2_500, 3_000, 3_500, 4_500, 5_500].map(|millis| {
        tokio::spawn(async move {
            let Some(world) = World::postgres().await else { return };
            let (database, up) = proxy(&world).await;
            let mut ids = Vec::new();
            for _ in 0..10 {
                ids.push(world.pending().await);
            }
            let channel = Gate::new(true);
            let dispatcher = start_real(&database, &channel, seconds(1));
            channel.wait_for(10).await;
            up.store(false, Ordering::SeqCst);
            channel.let_go(10);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            up.store(true, Ordering::SeqCst);
            // A row that is sent again must end as well, to be seen.
            channel.let_go(1_000);
            eventually("the endings are written", async || all_sent(&world, &ids).await).await;
            assert_eq!((channel.started(), channel.sent()), (10, 10), "away for {millis} ms");
            dispatcher.shutdown().await;
        })
    });
    for outage in outages {
        outage.await.unwrap();
    }
}

/// Contract C4.7: a row that another session holds locked keeps neither the endings of other rows
/// waiting nor their claims from being renewed.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_held_locked_holds_up_no_other_ending() {
    let Some(world) = World::postgres().await else { return };
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(world.pending().await);
    }
    let channel = Gate::new(true);
    let dispatcher = start_real(&world.database, &channel, seconds(60));
    channel.wait_for(6).await;
    let mut stranger = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    let mut open = stranger.begin().await.unwrap();
    let lock = "SELECT 1 FROM postrider_outbox WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(ids[0].as_uuid()).execute(&mut *open).await.unwrap();
    channel.let_go(6);
    eventually("the other endings are written", async || all_sent(&world, &ids[1..]).await).await;
    let next = world.pending().await;
    dispatcher.dispatch([next]);
    channel.let_go(1);
    eventually("new rows are delivered", async || all_sent(&world, &[next]).await).await;
    assert_eq!(world.state(ids[0]).await.status, OutboxStatus::Sending);
    open.rollback().await.unwrap();
    eventually("its ending is written too", async || all_sent(&world, &ids).await).await;
    assert_eq!((channel.started(), world.state(ids[0]).await.claim_seq), (7, 1));
    dispatcher.shutdown().await;
}

/// Contract C4.4, C5.6: a row that somebody holds locked for longer than its claim lasts, while it is
/// being delivered, is settled under whatever claim this node then has, and sent once.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_longer_than_the_claim_repeats_no_delivery() {
    let Some(world) = World::postgres().await else { return };
    let id = world.pending().await;
    let channel = Gate::new(true);
    let dispatcher = start_real(&world.database, &channel, seconds(3));
    channel.wait_for(1).await;
    let mut stranger = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    let mut open = stranger.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM postrider_outbox WHERE id = $1 FOR UPDATE")
        .bind(id.as_uuid())
        .execute(&mut *open)
        .await
        .unwrap();
    // Longer than the claim, so that it is claimed anew as soon as it is let go.
    tokio::time::sleep(seconds(5)).await;
    let other = world.pending().await;
    dispatcher.dispatch([other]);
    eventually("others go on meanwhile", async || channel.started() == 2).await;
    channel.let_go(1_000);
    open.rollback().await.unwrap();
    eventually("both are sent", async || all_sent(&world, &[id, other]).await).await;
    assert_eq!(channel.started(), 2);
    dispatcher.shutdown().await;
}
