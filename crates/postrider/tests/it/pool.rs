//! Case C39: connections that the server closed while they were idle.

use std::sync::Arc;

use postrider::dispatch::DispatchConfig;
use postrider::model::{Clock, NotificationRow, OutboxStatus, SystemClock};
use postrider::store::Query;
use postrider::testing::RecordingChannel;
use postrider::{Outbox, store::OutboxRepository};
use sqlx::Connection as _;

use super::support::{World, eventually};

async fn kill_all_others(world: &World) {
    let mut admin = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
}

/// The first call after a quiet night succeeds on a fresh connection.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_after_all_connections_died_succeeds() {
    let Some(world) = World::postgres().await else { return };
    let id = world.pending().await;
    kill_all_others(&world).await;
    assert_eq!(world.state(id).await.status, OutboxStatus::Pending);
    kill_all_others(&world).await;
    world.rows().expedite(id, world.now()).await.unwrap();
}

/// The poller goes on, and counts nothing against a row.
#[tokio::test(flavor = "multi_thread")]
async fn the_poller_survives_the_loss_of_all_connections() {
    let Some(world) = World::postgres().await else { return };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let channel = Arc::new(RecordingChannel::new("email"));
    let outbox: Outbox<NotificationRow> =
        Outbox::builder(Arc::clone(&world.database), Arc::clone(&clock)).channel(channel.clone()).build().unwrap();
    let dispatcher = outbox.start(DispatchConfig::new("n1")).unwrap();
    let first = world.pending().await;
    channel.wait_for(1).await;
    for _ in 0..5 {
        kill_all_others(&world).await;
        world.pending().await;
    }
    channel.wait_for(6).await;
    let rows = OutboxRepository::<NotificationRow>::new(Arc::clone(&world.database), clock).unwrap().root();
    eventually("every row is sent", async || {
        let all = rows.page(&Query::new().limit(100)).await.unwrap().rows;
        all.len() == 6 && all.iter().all(|entity| entity.row.state.status == OutboxStatus::Sent)
    })
    .await;
    assert_eq!(world.state(first).await.attempts, 1);
    dispatcher.shutdown().await;
}
