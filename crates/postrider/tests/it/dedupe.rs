//! Dedupe keys: one row per key and tenant, whatever races for it.

use std::sync::Arc;

use postrider::model::{Clock, NotificationRow, TenantId};
use postrider::store::{Dialect, Inserted};
use postrider::{ErrorKind, Result};
use sqlx::Connection as _;

use super::support::{World, on_each, seconds};

fn keyed(world: &World, key: &str) -> NotificationRow {
    let mut draft = world.draft();
    draft.row.dedupe_key = key.to_owned();
    draft
}

on_each! {
    /// Contract C2.2: nothing is written, and the caller gets the existing row, row by row.
    async fn a_taken_key_writes_nothing_and_names_its_holder(world: World) {
        let first = keyed(&world, "order-1");
        let id = first.row.id;
        world.insert(vec![first]).await;
        let free = keyed(&world, "order-2");
        let free_id = free.row.id;
        let answers = world.insert(vec![keyed(&world, "order-1"), free, keyed(&world, "order-2")]).await;
        assert_eq!(
            answers,
            [
                Inserted::Duplicate { existing: id },
                Inserted::Created(free_id),
                Inserted::Duplicate { existing: free_id }
            ]
        );
    }

    /// Contract C1.4: the key is held whatever the holder's status.
    async fn a_final_row_still_holds_its_key(world: World) {
        let first = keyed(&world, "k");
        let id = first.row.id;
        world.insert(vec![first]).await;
        let claimed = world.rows().claim(id, world.now(), world.now().plus(seconds(9)), "n").await.unwrap().unwrap();
        world.rows().mark_sent(claimed.claim, world.now()).await.unwrap();
        assert_eq!(world.insert(vec![keyed(&world, "k")]).await, [Inserted::Duplicate { existing: id }]);
    }

    /// Contract C1.4, case C32: case, accents and trailing blanks count.
    async fn keys_are_compared_byte_for_byte(world: World) {
        let keys = ["Order-1", "order-1", "Order-1 ", "order-1\t", "ordér-1", "order\u{301}-1"];
        for key in keys {
            let draft = keyed(&world, key);
            let id = draft.row.id;
            assert_eq!(world.insert(vec![draft]).await, [Inserted::Created(id)], "{key:?}");
        }
        for key in keys {
            assert_eq!(world.rows().find_by_dedupe_key(key).await.unwrap().unwrap().row.dedupe_key, key);
        }
    }

    /// Contract C1.4, case C33: one limit in bytes on every database, before any SQL; nothing is cut.
    async fn a_key_over_the_limit_is_refused_before_any_sql(world: World) {
        let mut open = world.database.begin().await.unwrap();
        for (letter, characters) in [("k", 0), ("k", 256), ("k", 768), ("k", 769), ("k", 3_000), ("k", 10_000),
                                     ("😀", 64), ("😀", 255), ("😀", 10_000)] {
            let long = keyed(&world, &letter.repeat(characters));
            let refused = world.rows().insert(open.connection(), &[long]).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{letter} {characters}");
        }
        let head = "h".repeat(254);
        for key in [format!("{head}1"), format!("{head}2"), "😀".repeat(63) + "abc"] {
            assert_eq!(key.len(), 255);
            let row = keyed(&world, &key);
            let id = row.row.id;
            assert_eq!(world.rows().insert(open.connection(), &[row]).await.unwrap(), [Inserted::Created(id)]);
        }
        open.commit().await.unwrap();
        let found = world.rows().find_by_dedupe_key(&format!("{head}2")).await.unwrap().unwrap();
        assert!(found.row.dedupe_key.ends_with('2'));
    }

    /// Contract C2.3, C6.3: the same key in two tenants and in root: three rows.
    async fn a_key_binds_within_its_tenant(world: World) {
        let (a, b) = (TenantId::new("a").unwrap(), TenantId::new("b").unwrap());
        for tenant in [&TenantId::ROOT, &a, &b] {
            let mut draft = keyed(&world, "k");
            draft.tenant_id = tenant.clone();
            let id = draft.row.id;
            assert_eq!(world.insert(vec![draft]).await, [Inserted::Created(id)]);
        }
        let of_a = world.repository.scoped(&a).find_by_dedupe_key("k").await.unwrap().unwrap();
        assert_eq!(of_a.tenant_id, a);
        assert!(world.rows().find_by_dedupe_key("k").await.unwrap().unwrap().tenant_id.is_root());
        assert_eq!(world.rows().find_all_by_dedupe_key("k").await.unwrap().len(), 3);
        // A tenant sees nothing of another's row, by whatever call.
        let scoped = world.repository.scoped(&b);
        assert!(scoped.find_by_id(of_a.row.id).await.unwrap().is_none());
        assert!(scoped.requeue(of_a.row.id, world.now(), "b").await.unwrap_err().is_not_found());
        assert!(scoped.cancel(of_a.row.id, world.now(), "b").await.unwrap_err().is_not_found());
        assert!(scoped.expedite(of_a.row.id, world.now()).await.unwrap_err().is_not_found());
        assert!(scoped.history(of_a.row.id).await.unwrap_err().is_not_found());
    }

    /// Contract C2.2, case C31: fifty callers at once write one row, and all name the same.
    async fn fifty_callers_with_one_key_write_one_row(world: World) {
        let world = Arc::new(world);
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let world = Arc::clone(&world);
                tokio::spawn(async move { world.insert(vec![keyed(&world, "once")]).await.remove(0) })
            })
            .collect();
        let (mut created, mut existing) = (Vec::new(), Vec::new());
        for task in tasks {
            match task.await.unwrap() {
                Inserted::Created(id) => created.push(id),
                Inserted::Duplicate { existing: id } => existing.push(id),
            }
        }
        assert_eq!(created.len(), 1);
        assert!(existing.len() == 49 && existing.iter().all(|id| *id == created[0]));
    }

    /// Contract C2.4: many rows in one call, with a duplicate in each chunk.
    async fn twelve_hundred_rows_are_written_in_chunks(world: World) {
        world.insert(vec![keyed(&world, "taken-0"), keyed(&world, "taken-600"), keyed(&world, "taken-1199")]).await;
        let drafts: Vec<_> = (0..1_200).map(|n| keyed(&world, &format!("taken-{n}"))).collect();
        let answers = world.insert(drafts).await;
        let duplicates: Vec<_> =
            answers.iter().enumerate().filter(|(_, a)| matches!(a, Inserted::Duplicate { .. })).map(|(n, _)| n).collect();
        assert_eq!(duplicates, [0, 600, 1_199]);
    }

    /// Contract C2.2: another unique index of the application's is no duplicate, but an error.
    async fn another_unique_index_is_not_taken_for_a_duplicate(world: World) {
        world.sql(match world.database.dialect() {
            Dialect::Mysql => "CREATE UNIQUE INDEX one_subject ON postrider_outbox (subject(100))",
            _ => "CREATE UNIQUE INDEX one_subject ON postrider_outbox (subject)",
        }).await;
        let mut first = world.draft();
        first.row.subject = Some("same".to_owned());
        let mut second = world.draft();
        second.row.subject = Some("same".to_owned());
        world.insert(vec![first]).await;
        let mut open = world.database.begin().await.unwrap();
        let refused = world.rows().insert(open.connection(), &[second]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Duplicate);
        open.rollback().await.unwrap();
    }

    /// An entity of another tenant than the scope's is refused before any SQL.
    async fn a_scope_writes_its_own_tenant_only(world: World) {
        let scoped = world.repository.scoped(&TenantId::new("a").unwrap());
        let mut open = world.database.begin().await.unwrap();
        let refused = scoped.insert(open.connection(), &[world.draft()]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        open.rollback().await.unwrap();
        assert!(world.clock.now() == world.now());
    }
}

/// Case C31 on PostgreSQL: the loser waits for the winner's end, at each isolation level.
#[tokio::test(flavor = "multi_thread")]
async fn the_loser_waits_for_the_winner_on_postgres() {
    let Some(world) = World::postgres().await else { return };
    assert_eq!(world.database.dialect(), Dialect::Postgres);
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for commit in [false, true] {
            let key = format!("{isolation}-{commit}");
            let mut winner = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
            let mut first = winner.begin().await.unwrap();
            let row = keyed(&world, &key);
            let id = row.row.id;
            assert_eq!(world.rows().insert(&mut first, &[row]).await.unwrap(), [Inserted::Created(id)]);

            let (rows, draft, url) = (world.rows(), keyed(&world, &key), world.test.url().to_owned());
            let loser_id = draft.row.id;
            let begun = Arc::new(tokio::sync::Notify::new());
            let told = Arc::clone(&begun);
            let loser = tokio::spawn(async move {
                let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
                let begin = format!("BEGIN ISOLATION LEVEL {isolation}");
                let mut second = connection.begin_with(sqlx::AssertSqlSafe(begin)).await.unwrap();
                // Takes the snapshot before the winner ends.
                sqlx::query("SELECT 1 FROM postrider_outbox LIMIT 1").execute(&mut *second).await.unwrap();
                told.notify_one();
                let answer: Result<Vec<Inserted>> = rows.insert(&mut second, &[draft]).await;
                let usable = sqlx::query("SELECT 1").execute(&mut *second).await.is_ok();
                second.commit().await.unwrap();
                (answer, usable)
            });
            begun.notified().await;
            if commit {
                first.commit().await.unwrap();
            } else {
                first.rollback().await.unwrap();
            }
            let (answer, usable) = loser.await.unwrap();
            match (commit, isolation) {
                (false, _) => assert_eq!(answer.unwrap(), [Inserted::Created(loser_id)], "{key}"),
                (true, "READ COMMITTED") => {
                    assert_eq!(answer.unwrap(), [Inserted::Duplicate { existing: id }], "{key}");
                    assert!(usable, "the transaction stays usable");
                }
                // Retryable, and never success without a row.
                (true, _) => assert!(answer.unwrap_err().is_transaction_gone(), "{key}"),
            }
        }
    }
}

/// Case C31 on SQLite: the loser waits for the write lock, then sees how the winner ended.
#[tokio::test(flavor = "multi_thread")]
async fn the_loser_waits_for_the_winner_on_sqlite() {
    let world = World::sqlite().await.unwrap();
    for commit in [false, true] {
        let key = format!("k-{commit}");
        let mut first = world.database.begin().await.unwrap();
        let row = keyed(&world, &key);
        let id = row.row.id;
        world.rows().insert(first.connection(), &[row]).await.unwrap();
        let (rows, database, draft) = (world.rows(), Arc::clone(&world.database), keyed(&world, &key));
        let loser_id = draft.row.id;
        let loser = tokio::spawn(async move {
            let mut second = database.begin().await.unwrap();
            let answer = rows.insert(second.connection(), &[draft]).await;
            second.commit().await.unwrap();
            answer.unwrap()
        });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        if commit {
            first.commit().await.unwrap();
            assert_eq!(loser.await.unwrap(), [Inserted::Duplicate { existing: id }]);
        } else {
            first.rollback().await.unwrap();
            assert_eq!(loser.await.unwrap(), [Inserted::Created(loser_id)]);
        }
    }
}
