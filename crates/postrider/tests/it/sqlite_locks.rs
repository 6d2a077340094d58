//! Case C37: SQLite's one writer, waited for and told clearly.

use std::sync::Arc;
use std::time::Duration;

use postrider::ErrorKind;
use postrider::model::Kind;
use postrider::store::{Database, Query, SqliteDatabase, Synchronous};
use sqlx::{Connection as _, SqliteConnection};

use super::support::{World, seconds};

/// Eight writers in one process and a stranger who holds the lock for a while: no lock error.
#[tokio::test(flavor = "multi_thread")]
async fn writers_wait_for_each_other() {
    let world = Arc::new(World::sqlite().await.unwrap());
    let mut stranger = SqliteConnection::connect(world.test.url()).await.unwrap();
    let holding = stranger.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                for _ in 0..125 {
                    let id = world.pending().await;
                    let reclaim_at = world.now().plus(seconds(60));
                    let claimed = world.rows().claim(id, world.now(), reclaim_at, "n").await.unwrap().unwrap();
                    world.rows().mark_sent(claimed.claim, world.now()).await.unwrap();
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Readers go on while the lock is held.
    world.rows().page(&Query::new().limit(1)).await.unwrap();
    holding.rollback().await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Two pools stand for two processes: transactions that read first and then write never fail.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_two_processes_that_read_and_then_write_wait_for_each_other() {
    let world = Arc::new(World::sqlite().await.unwrap());
    let other = SqliteDatabase::open(world.test.path().unwrap(), Synchronous::Full).await.unwrap();
    let pools: [Arc<dyn Database>; 2] = [Arc::clone(&world.database), Arc::new(other)];
    let mut writers = Vec::new();
    for database in pools.iter().cycle().take(8) {
        let (world, database) = (Arc::clone(&world), Arc::clone(database));
        writers.push(tokio::spawn(async move {
            for _ in 0..30 {
                let mut open = database.begin().await.unwrap();
                open.connection().fetch("SELECT COUNT(*) FROM postrider_outbox", &[], &[Kind::Int]).await.unwrap();
                world.rows().insert(open.connection(), &[world.draft()]).await.unwrap();
                open.commit().await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(world.rows().page(&Query::new().limit(1_000)).await.unwrap().rows.len(), 240);
}

/// A caller's deferred transaction that has read cannot wait: a typed, retryable error that says
/// what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_transaction_that_has_read_is_told_to_begin_immediate() {
    let world = World::sqlite().await.unwrap();
    let mut caller = SqliteConnection::connect(world.test.url()).await.unwrap();
    let mut deferred = caller.begin().await.unwrap();
    sqlx::query("SELECT COUNT(*) FROM postrider_outbox").execute(&mut *deferred).await.unwrap();
    world.pending().await;
    let error = world.rows().insert(&mut deferred, &[world.draft()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient);
    assert!(error.to_string().contains("BEGIN IMMEDIATE"), "{error}");
    deferred.rollback().await.unwrap();
    // The same transaction, begun as told, succeeds.
    let mut immediate = caller.begin_with("BEGIN IMMEDIATE").await.unwrap();
    world.rows().insert(&mut immediate, &[world.draft()]).await.unwrap();
    immediate.commit().await.unwrap();
}
