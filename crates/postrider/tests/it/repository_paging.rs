//! Contract C7: pages by place, in a total order, while rows come and go.

use std::collections::BTreeSet;

use postrider::ErrorKind;
use postrider::model::{OutboxId, Timestamp};
use postrider::store::{Cursor, Dialect, Direction, Query};
use uuid::Uuid;

use super::repository_own::{OrderMail, Shop, tenant};
use super::support::{World, on_each, seconds};

use Direction::{Ascending, Descending};

/// All pages of a query, and what happens after each.
async fn pages(shop: &Shop<'_>, query: &Query, mut between: impl AsyncFnMut(usize)) -> Vec<OrderMail> {
    let mut query = query.clone();
    let mut all = Vec::new();
    for number in 0.. {
        let page = shop.rows().page(&query).await.unwrap();
        assert!(page.unreadable.is_empty());
        all.extend(page.rows);
        let Some(next) = page.next else { return all };
        // Through text, as over HTTP.
        query = query.after(next.to_string().parse::<Cursor>().unwrap());
        between(number).await;
    }
    unreachable!()
}

/// Forty rows with many ties and nulls.
async fn many(shop: &Shop<'_>) -> Vec<OrderMail> {
    let mut mails = Vec::new();
    for n in 0_u32..40 {
        let mut mail = shop.draft("");
        mail.score = (n % 5 != 0).then(|| i64::from(n % 3));
        mail.note = (n % 7 != 0).then(|| ["b", "B", "é", "b "][usize::try_from(n % 4).unwrap()].to_owned());
        mail.seen_at = (n % 2 == 0).then(|| shop.world.now().plus(seconds(u64::from(n % 6))));
        mail.urgent = n % 2 == 0;
        mail.weight = (n % 4 != 0).then(|| f64::from(n % 5) / 3.0);
        mail.raw = (n % 6 != 0).then(|| vec![u8::try_from(n % 3).unwrap() * 100; 3]);
        mail.order_id = (n % 3 == 0).then(|| Uuid::from_u128(u128::from(n % 9)));
        mails.push(mail);
    }
    shop.save(&mails).await;
    mails
}

/// The order that a column must have: the least first, nulls last in both directions.
fn ordered<T: Ord>(a: &Option<T>, b: &Option<T>, direction: Direction) -> std::cmp::Ordering {
    match (a, b) {
        (Some(a), Some(b)) if direction == Descending => b.cmp(a),
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

on_each! {
    /// Contract C7: sorted as asked, with ties and nulls, in pages of any size.
    async fn pages_of_any_size_give_the_whole_order(world: World) {
        let shop = Shop::on(&world).await;
        let mails = many(&shop).await;
        for ways in [[Ascending, Descending], [Descending, Ascending], [Descending, Descending]] {
            let q = |columns: [&'static str; 2]| Query::new().order_by(columns[0], ways[0]).order_by(columns[1], ways[1]);
            type Sort = fn(&OrderMail, &OrderMail, [Direction; 2]) -> std::cmp::Ordering;
            let sorts: [([&str; 2], Sort); 5] = [
                (["score", "note"], |a, b, [x, y]| ordered(&a.score, &b.score, x).then(ordered(&a.note, &b.note, y))),
                (["note", "seen_at"], |a, b, [x, y]| ordered(&a.note, &b.note, x).then(ordered(&a.seen_at, &b.seen_at, y))),
                (["urgent", "order_id"], |a, b, [x, y]| {
                    ordered(&Some(a.urgent), &Some(b.urgent), x).then(ordered(&a.order_id, &b.order_id, y))
                }),
                (["raw", "weight"], |a, b, [x, y]| {
                    // Of one sign, so that their bits sort as they do.
                    let bits = |mail: &OrderMail| mail.weight.map(f64::to_bits);
                    ordered(&a.raw, &b.raw, x).then(ordered(&bits(a), &bits(b), y))
                }),
                (["status", "seen_at"], |a, b, [_, y]| ordered(&a.seen_at, &b.seen_at, y)),
            ];
            for (columns, sort) in sorts {
                let mut expected = mails.clone();
                expected.sort_by(|a, b| {
                    sort(a, b, ways).then(ordered(&Some(a.row.id), &Some(b.row.id), ways[1]))
                });
                let expected: Vec<_> = expected.iter().map(|mail| mail.row.id).collect();
                let ids = |found: Vec<OrderMail>| found.into_iter().map(|mail| mail.row.id).collect::<Vec<_>>();
                assert_eq!(ids(shop.rows().find_by(&q(columns)).await.unwrap()), expected, "{columns:?} {ways:?}");
                for size in [1, 7, 39, 40, 41] {
                    let found = pages(&shop, &q(columns).limit(size), async |_| ()).await;
                    assert_eq!(ids(found), expected, "{columns:?} {ways:?} by {size}");
                }
            }
        }
    }

    /// Contract C7: without an order the newest come first.
    async fn the_newest_come_first_by_default(world: World) {
        let shop = Shop::on(&world).await;
        let mut ids = Vec::new();
        for _ in 0..5 {
            world.clock.advance(seconds(1));
            ids.push(shop.made(|_| ()).await.row.id);
        }
        ids.reverse();
        let found = pages(&shop, &Query::new().order_by("score", Ascending).newest_first().limit(2), async |_| ()).await;
        assert_eq!(found.iter().map(|mail| mail.row.id).collect::<Vec<_>>(), ids);
        let by_id = Query::new().order_by("id", Descending).order_by("score", Ascending).limit(2);
        let found = pages(&shop, &by_id, async |_| ()).await;
        assert_eq!(found.iter().map(|mail| mail.row.id).collect::<Vec<_>>(), ids);
        // From a row on, which need not meet the conditions.
        let from = shop.rows().cursor_at(&Query::new().eq("score", 9), ids[2]).await.unwrap().unwrap();
        assert_eq!(from.row(), Some(ids[2]));
        let page = shop.rows().page(&Query::new().after(from)).await.unwrap();
        assert_eq!(page.rows.iter().map(|mail| mail.row.id).collect::<Vec<_>>(), ids[3..]);
        let other = shop.repository.scoped(&tenant("other"));
        assert_eq!(other.cursor_at(&Query::new(), ids[2]).await.unwrap(), None);
        assert_eq!(shop.rows().cursor_at(&Query::new(), OutboxId::new(&*world.clock)).await.unwrap(), None);
    }

    /// No row twice, and none left out that was there throughout.
    async fn paging_bears_rows_that_come_and_go(world: World) {
        for (query, name) in [
            (Query::new(), "newest"),
            (Query::new().order_by("score", Ascending), "score"),
            (Query::new().order_by("note", Descending).order_by("seen_at", Ascending), "note"),
            (Query::new().order_by("id", Ascending), "id"),
        ] {
            let shop = Shop::on(&world).await;
            shop.rows().delete_all().await.unwrap();
            let mails = many(&shop).await;
            let doomed: Vec<OutboxId> = mails.iter().skip(1).step_by(3).map(|mail| mail.row.id).collect();
            let last_seen = std::sync::Mutex::new(doomed.clone());
            let found = pages(&shop, &query.limit(3), async |number| {
                // One goes, maybe the cursor's own row, and one comes, anywhere in the order.
                let gone = last_seen.lock().unwrap().pop();
                if let Some(gone) = gone {
                    assert!(shop.rows().delete_by_id(gone).await.unwrap());
                }
                let n = i64::try_from(number).unwrap();
                if n < 12 {
                    shop.made(|mail| {
                        mail.row.recipient = "new".to_owned();
                        mail.score = (n % 4 != 0).then_some(n % 3);
                        mail.note = Some("b".to_owned());
                    })
                    .await;
                }
            })
            .await;
            let seen: Vec<_> = found.iter().map(|mail| mail.row.id).collect();
            let distinct: BTreeSet<_> = seen.iter().collect();
            assert_eq!(distinct.len(), seen.len(), "{name}: a row came twice");
            for mail in mails.iter().filter(|mail| !doomed.contains(&mail.row.id)) {
                assert!(seen.contains(&mail.row.id), "{name}: a row was left out");
            }
        }
    }

    /// The place stays when its row is gone.
    async fn a_cursor_outlives_its_row(world: World) {
        let shop = Shop::on(&world).await;
        let mails = many(&shop).await;
        for query in [Query::new(), Query::new().order_by("score", Descending), Query::new().order_by("id", Ascending)] {
            let all = shop.rows().find_by(&query).await.unwrap();
            let page = shop.rows().page(&query.clone().limit(10)).await.unwrap();
            let next = page.next.unwrap();
            assert_eq!(next.row(), Some(all[9].row.id));
            assert!(shop.rows().delete(&all[9]).await.unwrap());
            let page = shop.rows().page(&query.after(next)).await.unwrap();
            assert_eq!(page.rows, all[10..]);
            assert!(page.next.is_none());
        }
        assert_eq!(shop.rows().count().await.unwrap(), u64::try_from(mails.len()).unwrap() - 3);
    }

    /// A cursor is a place in one order.
    async fn a_cursor_of_another_order_is_refused(world: World) {
        let shop = Shop::on(&world).await;
        many(&shop).await;
        let by_score = Query::new().order_by("score", Ascending);
        let cursor = shop.rows().page(&by_score.clone().limit(1)).await.unwrap().next.unwrap();
        let orders = [
            Query::new(),
            Query::new().order_by("score", Descending),
            Query::new().order_by("note", Ascending),
            Query::new().order_by("score", Ascending).order_by("note", Ascending),
        ];
        for query in orders {
            let refused = shop.rows().page(&query.after(cursor.clone())).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
            assert!(refused.to_string().contains("+score"), "{refused}");
        }
        // Other conditions are no other order.
        let rest = by_score.after(cursor).eq("urgent", true).limit(100);
        assert!(!shop.rows().page(&rest).await.unwrap().rows.is_empty());
        // A place of the right order with values of the wrong kind.
        let text = "{\"o\":\"+score +id\",\"v\":[\"x\",\"y\"]}";
        let forged: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let query = Query::new().order_by("score", Ascending).after(forged.parse().unwrap());
        assert_eq!(shop.rows().page(&query).await.unwrap_err().kind(), ErrorKind::Invalid);
    }

    /// The last instants of all: `infinity` is read as one, and must not turn paging in circles.
    async fn the_ends_of_time_have_their_places(world: World) {
        let shop = Shop::on(&world).await;
        for at in [Timestamp::MAX, Timestamp::MIN, world.now(), Timestamp::MAX, Timestamp::MIN] {
            shop.made(|mail| mail.seen_at = Some(at)).await;
        }
        if world.database.dialect() == Dialect::Postgres {
            world.sql("UPDATE order_mail SET seen_at = 'infinity' WHERE seen_at > '9000-01-01'").await;
            world.sql("UPDATE order_mail SET seen_at = '-infinity' WHERE seen_at < '1000-01-01'").await;
        }
        for way in [Ascending, Descending] {
            let query = Query::new().order_by("seen_at", way).order_by("created_at", way).limit(1);
            let found: BTreeSet<_> = pages(&shop, &query, async |number| assert!(number < 5)).await
                .iter().map(|mail| mail.row.id).collect();
            assert_eq!(found.len(), 5);
        }
    }

    /// Case C29: one bad row hides no page.
    async fn a_page_tells_of_the_rows_that_cannot_be_read(world: World) {
        let shop = Shop::on(&world).await;
        many(&shop).await;
        world.sql("UPDATE order_mail SET cc_addresses = '{}' WHERE score = 1").await;
        let mut query = Query::new().order_by("note", Ascending).limit(6);
        let (mut rows, mut unreadable) = (0, 0);
        loop {
            let page = shop.rows().page(&query).await.unwrap();
            assert!(page.unreadable.iter().all(|(_, error)| error.kind() == ErrorKind::Decode));
            rows += page.rows.len();
            unreadable += page.unreadable.len();
            let Some(next) = page.next else { break };
            query = query.after(next);
        }
        assert_eq!((rows, unreadable), (40 - unreadable, unreadable));
        assert!(unreadable > 5);
    }
}
