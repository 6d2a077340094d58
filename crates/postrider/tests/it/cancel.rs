//! Futures dropped at any moment leave no open transaction behind.

use std::sync::Arc;
use std::time::Duration;

use postrider::store::PostgresDatabase;
use sqlx::Connection as _;

use super::support::World;

/// Six hundred calls cut after a few microseconds, on a pool of one: the pool stays clean.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_leaves_no_transaction_in_the_pool() {
    let Some(mut world) = World::postgres().await else {
        return;
    };
    let database = Arc::new(PostgresDatabase::connect_lazy(world.test.url(), 1).unwrap());
    let pool = database.pool().clone();
    world.database = database.clone();
    world.repository = postrider::store::OutboxRepository::new(database.clone(), world.clock.clone()).unwrap();
    let mut observer = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    for round in 0..600_u64 {
        let cut = Duration::from_micros(round * 7 % 900);
        let id = postrider::model::OutboxId::new(&*world.clock);
        let _ = tokio::time::timeout(cut, world.rows().requeue(id, world.now(), "cut")).await;
        let _ = tokio::time::timeout(cut, async {
            use postrider::store::Database as _;
            let open = database.begin().await.unwrap();
            open.rollback().await.unwrap();
        })
        .await;
        // Whoever gets the connection next must get it outside of a transaction.
        let mut connection = pool.acquire().await.unwrap();
        let (pid,): (i32,) = sqlx::query_as("SELECT pg_backend_pid()").fetch_one(&mut *connection).await.unwrap();
        let (state,): (String,) = sqlx::query_as("SELECT state FROM pg_stat_activity WHERE pid = $1")
            .bind(pid)
            .fetch_one(&mut observer)
            .await
            .unwrap();
        assert_eq!(state, "idle", "round {round}");
    }
}
