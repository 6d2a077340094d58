//! Contract C7: long lists are streamed, in constant memory.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _};
use postrider::ErrorKind;
use postrider::model::{NotificationRow, OutboxRow};
use postrider::store::{Direction, Query};

use super::repository_own::{Shop, tenant};
use super::support::{World, on_each};

on_each! {
    /// Contract C7: all rows, each once, in the order of the query.
    async fn a_stream_of_thousands_equals_the_table(world: World) {
        let mut drafts = Vec::new();
        for n in 0..3_000 {
            let mut draft = world.draft();
            draft.row.recipient = format!("{:05}", (n * 7) % 3_000);
            // A few large ones, so that the pages change their size.
            draft.row.body = Some("x".repeat(if n % 500 == 0 { 400_000 } else { 10 }));
            drafts.push(draft);
        }
        let ids: BTreeSet<_> = drafts.iter().map(|draft| draft.row.id).collect();
        world.insert(drafts).await;
        let rows = world.rows();
        let all: Vec<NotificationRow> = rows.stream(&Query::new()).try_collect().await.unwrap();
        assert_eq!(all.len(), 3_000);
        assert_eq!(all.iter().map(|entity| entity.row.id).collect::<BTreeSet<_>>(), ids);
        assert_eq!(all, rows.find_by(&Query::new()).await.unwrap());
        // Another order, a limit, and from a place on.
        let query = Query::new().order_by("recipient", Direction::Ascending);
        let names = async |query: Query| -> Vec<String> {
            rows.stream(&query).map_ok(|entity| entity.row.recipient).try_collect().await.unwrap()
        };
        let expected: Vec<_> = (0..3_000).map(|n| format!("{n:05}")).collect();
        assert_eq!(names(query.clone()).await, expected);
        assert_eq!(names(query.clone().limit(1_234)).await, expected[..1_234]);
        let place = rows.page(&query.clone().limit(2_900)).await.unwrap().next.unwrap();
        assert_eq!(names(query.after(place)).await, expected[2_900..]);
        assert!(names(Query::new().eq("channel", "pigeon")).await.is_empty());
    }

    /// Rows that cannot be read are told, and end nothing; what does not fit is the only item.
    async fn a_stream_goes_on_behind_a_row_that_cannot_be_read(world: World) {
        let shop = Shop::on(&world).await;
        for n in 0..10 {
            shop.made(|mail| mail.score = Some(n)).await;
        }
        world.sql("UPDATE order_mail SET cc_addresses = '{}' WHERE score = 4 OR score = 9").await;
        let items: Vec<_> = shop.rows().stream(&Query::new().order_by("score", Direction::Ascending)).collect().await;
        assert_eq!(items.len(), 10);
        for (n, item) in items.iter().enumerate() {
            match item {
                Ok(mail) => assert_eq!(mail.score, i64::try_from(n).ok()),
                Err(error) => {
                    assert!(n == 4 || n == 9);
                    assert_eq!(error.kind(), ErrorKind::Decode);
                    assert!(error.to_string().contains("cc_addresses"), "{error}");
                }
            }
        }
        let refused: Vec<_> = shop.rows().stream(&Query::new().eq("scor", 1)).collect().await;
        assert!(matches!(&refused[..], [Err(error)] if error.kind() == ErrorKind::Invalid));
        let other: Vec<_> = shop.repository.scoped(&tenant("other")).stream(&Query::new()).collect().await;
        assert!(other.is_empty());
        // A failing database is the last item.
        world.sql("ALTER TABLE order_mail RENAME TO elsewhere").await;
        let failed: Vec<_> = shop.rows().stream(&Query::new()).collect().await;
        assert!(matches!(&failed[..], [Err(error)] if error.kind() == ErrorKind::Database), "{failed:?}");
    }

    /// Nothing is held between pages: with a single connection, others can work.
    async fn a_stream_holds_nothing_between_its_items(world: World) {
        let drafts = (0..600).map(|_| world.draft()).collect();
        world.insert(drafts).await;
        let mut stream = world.rows().stream(&Query::new());
        let mut held = Vec::new();
        for _ in 0..250 {
            held.push(stream.next().await.unwrap().unwrap());
        }
        // Every connection of the pool at once, and a transaction that writes.
        assert_eq!(world.rows().delete_all().await.unwrap().deleted, 600);
        // What was read ahead still comes, then the end.
        assert!(stream.count().await <= 500);
    }
}

/// How much memory a stream of a million rows takes; run by name, with `--ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a gigabyte"]
async fn a_million_rows_on_sqlite_are_streamed_in_constant_memory() {
    let world = World::sqlite().await.unwrap();
    let sample = world.draft();
    world.insert(vec![sample.clone()]).await;
    world
        .sql(
            "INSERT INTO postrider_outbox (channel, recipient, recipient_address, subject, body, max_attempts)
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 999999)
             SELECT 'email', 'alice', 'alice@example.com', 'subject ' || n, printf('%.*c', 700, 'x'), 11 FROM n",
        )
        .await;
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    let mut stream = world.rows().stream(&Query::new());
    let mut count = 0;
    let mut bytes = 0;
    while let Some(entity) = stream.try_next().await.unwrap() {
        let row: OutboxRow = entity.row;
        count += 1;
        bytes += row.body.map_or(0, |body| body.len());
    }
    let after = peak();
    println!("{count} rows, {bytes} bytes of bodies; VmHWM {before} kB before, {after} kB after");
    assert_eq!(count, 1_000_000);
    assert!(after < 128 * 1024, "{after} kB");
}

/// The peak of this process's resident memory, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
