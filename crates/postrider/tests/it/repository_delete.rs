//! Contract C7.1: rows are deleted with their history, and never while they are being delivered.

use postrider::ErrorKind;
use postrider::model::{IdType, Kind, OutboxEntity as _, OutboxId};
use postrider::store::{Claim, Cursor, Deleted, Direction, Query};

use super::repository_own::{OrderMail, Shop, tenant};
use super::support::{World, on_each, seconds};

/// Claims a row.
async fn claimed(shop: &Shop<'_>, id: OutboxId) -> Claim {
    let (now, rows) = (shop.world.now(), shop.rows());
    rows.claim(id, now, now.plus(seconds(60)), "n1").await.unwrap().unwrap().claim
}

/// Writes a line of history for a row, which ends DEAD.
async fn with_history(shop: &Shop<'_>, id: OutboxId) {
    let claim = claimed(shop, id).await;
    let at = shop.world.now();
    shop.rows().record_failure(claim, at, "no", at).await.unwrap();
    assert_eq!(shop.rows().history(id).await.unwrap().len(), 1);
}

/// How many lines of history there are, of any row.
async fn lines(shop: &Shop<'_>) -> i64 {
    let mut reader = shop.world.database.reader().await.unwrap();
    let found = reader.fetch("SELECT COUNT(*) FROM order_mail_attempt", &[], &[Kind::Int]).await.unwrap();
    found.into_iter().flatten().next().unwrap().try_into().unwrap()
}

fn told(deleted: Deleted) -> (u64, u64) {
    (deleted.deleted, deleted.sending)
}

on_each! {
    /// Contract C7.1: gone with its history; unknown is false; SENDING is a Conflict, overdue too.
    async fn one_row_goes_with_its_history_or_stays_as_a_conflict(world: World) {
        let shop = Shop::on(&world).await;
        let [a, b] = [shop.made(|_| ()).await, shop.made(|_| ()).await];
        with_history(&shop, a.row.id).await;
        with_history(&shop, b.row.id).await;
        assert!(shop.rows().delete_by_id(a.row.id).await.unwrap());
        assert!(!shop.rows().delete_by_id(a.row.id).await.unwrap());
        assert_eq!(lines(&shop).await, 1);
        assert!(shop.rows().delete(&b).await.unwrap());
        assert_eq!(lines(&shop).await, 0);

        let c = shop.made(|_| ()).await;
        let claim = claimed(&shop, c.row.id).await;
        for _ in 0..2 {
            assert_eq!(shop.rows().delete_by_id(c.row.id).await.unwrap_err().kind(), ErrorKind::Conflict);
            assert_eq!(shop.rows().delete(&c).await.unwrap_err().kind(), ErrorKind::Conflict);
            world.clock.advance(seconds(3_600));
        }
        // The claim is as good as before.
        shop.rows().mark_sent(claim, world.now()).await.unwrap();
        assert!(shop.rows().delete(&c).await.unwrap());
    }

    /// Contract C6.1: another tenant's row is none.
    async fn a_tenant_deletes_its_own_rows_alone(world: World) {
        let shop = Shop::on(&world).await;
        let mails: Vec<OrderMail> = ["one", "one", "two", ""].map(|name| shop.draft(name)).into();
        shop.save(&mails).await;
        with_history(&shop, mails[2].row.id).await;
        let one = shop.repository.scoped(&tenant("one"));
        let ids: Vec<_> = mails.iter().map(|mail| mail.row.id).collect();
        assert!(!one.delete_by_id(ids[2]).await.unwrap());
        assert!(!one.delete(&mails[3]).await.unwrap());
        // Being delivered for somebody else is nothing that one may know of.
        claimed(&shop, ids[3]).await;
        assert!(!one.delete_by_id(ids[3]).await.unwrap());
        assert_eq!(told(one.delete_by(&Query::new().eq("shop", "two")).await.unwrap()), (0, 0));
        assert_eq!(told(one.delete_all_by_id(&ids[1..]).await.unwrap()), (1, 0));
        assert_eq!(told(one.delete_all().await.unwrap()), (1, 0));
        assert_eq!(one.delete_batch(&Query::new(), 10).await.unwrap(), 0);
        assert_eq!(shop.rows().count().await.unwrap(), 2);
        assert_eq!(lines(&shop).await, 1);
    }

    /// Contract C7.1: every other delete leaves SENDING rows alone, and reports how many.
    async fn many_rows_go_and_those_under_way_are_counted(world: World) {
        let shop = Shop::on(&world).await;
        let mut mails: Vec<_> = (0..2_500).map(|_| shop.draft("")).collect();
        for (n, mail) in mails.iter_mut().enumerate() {
            mail.score = Some(i64::try_from(n % 2).unwrap());
        }
        shop.save(&mails).await;
        let ids: Vec<_> = mails.iter().map(|mail| mail.row.id).collect();
        let claims = [claimed(&shop, ids[0]).await, claimed(&shop, ids[1]).await, claimed(&shop, ids[2_001]).await];
        with_history(&shop, ids[7]).await;
        with_history(&shop, ids[8]).await;

        // By ids: twice there, unknown, under way.
        let mut some = ids[..1_200].to_vec();
        some.push(ids[7]);
        some.push(OutboxId::new(&*world.clock));
        assert_eq!(told(shop.rows().delete_all_by_id(&some).await.unwrap()), (1_198, 2));
        assert_eq!(told(shop.rows().delete_all_by_id(&[]).await.unwrap()), (0, 0));
        assert_eq!(lines(&shop).await, 0);
        // By a condition.
        assert_eq!(told(shop.rows().delete_by(&Query::new().eq("score", 1)).await.unwrap()), (649, 2));
        // Batch by batch.
        let mut batches = Vec::new();
        loop {
            let deleted = shop.rows().delete_batch(&Query::new(), 200).await.unwrap();
            batches.push(deleted);
            if deleted == 0 {
                break;
            }
        }
        assert_eq!(batches, [200, 200, 200, 50, 0]);
        assert_eq!(told(shop.rows().delete_all().await.unwrap()), (0, 3));
        for claim in claims {
            shop.rows().mark_sent(claim, world.now()).await.unwrap();
        }
        assert_eq!(told(shop.rows().delete_all().await.unwrap()), (3, 0));
        assert_eq!(shop.rows().count().await.unwrap(), 0);
    }

    /// A delete of many asks conditions alone: what it would leave out by a limit is no detail.
    async fn a_delete_of_many_takes_conditions_only(world: World) {
        let shop = Shop::on(&world).await;
        shop.made(|_| ()).await;
        shop.made(|_| ()).await;
        let cursor: Cursor = shop.rows().page(&Query::new().limit(1)).await.unwrap().next.unwrap();
        for query in
            [Query::new().limit(1), Query::new().order_by("id", Direction::Ascending), Query::new().after(cursor)]
        {
            assert_eq!(shop.rows().delete_by(&query).await.unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(shop.rows().delete_batch(&query, 5).await.unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(shop.rows().delete_batch(&Query::new(), 0).await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(told(shop.rows().delete_by(&Query::new().is_in("id", [] as [OutboxId; 0])).await.unwrap()), (0, 0));
        assert_eq!(shop.rows().count().await.unwrap(), 2);
    }

    /// Ids that are stored as text are ids like any others.
    async fn rows_whose_ids_are_stored_as_text_have_the_same_repository(world: World) {
        let table = OrderMail::table().unwrap().with_id_type(IdType::Text);
        let shop = Shop::in_table(&world, table).await;
        let mut mails: Vec<_> = (0..20).map(|_| shop.draft("one")).collect();
        shop.save(&mails).await;
        mails.sort_by_key(|mail| mail.row.id);
        let ids: Vec<_> = mails.iter().map(|mail| mail.row.id).collect();
        let (root, one) = (shop.rows(), shop.repository.scoped(&tenant("one")));
        let found = |mails: Vec<OrderMail>| mails.into_iter().map(|mail| mail.row.id).collect::<Vec<_>>();
        let up = Query::new().order_by("id", Direction::Ascending);
        let page = root.page(&up.clone().limit(5)).await.unwrap();
        assert_eq!(found(page.rows), ids[..5]);
        assert_eq!(found(root.find_by(&up.clone().after(page.next.unwrap())).await.unwrap()), ids[5..]);
        assert_eq!(found(one.find_by(&up.clone().gt("id", ids[17])).await.unwrap()), ids[18..]);
        assert_eq!(found(one.find_by(&up.is_in("id", [ids[3], ids[4]])).await.unwrap()), ids[3..5]);
        assert_eq!(one.select(&Query::new().eq("id", ids[0]), &["id"]).await.unwrap(), [[ids[0].into()]]);
        assert_eq!(found(one.find_by(&Query::new().matching(&mails[2], &["id"])).await.unwrap()), ids[2..3]);
        assert_eq!(found(root.find_all_by_id(&ids[..3]).await.unwrap()), ids[..3]);
        with_history(&shop, ids[1]).await;
        let claim = claimed(&shop, ids[0]).await;
        assert_eq!(root.delete_by_id(ids[0]).await.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(told(one.delete_all_by_id(&ids[..2]).await.unwrap()), (1, 1));
        assert_eq!(lines(&shop).await, 0);
        assert_eq!(root.delete_batch(&Query::new().lt("id", ids[4]), 100).await.unwrap(), 2);
        assert_eq!(told(one.delete_all().await.unwrap()), (16, 1));
        root.mark_sent(claim, world.now()).await.unwrap();
        assert!(one.delete_by_id(ids[0]).await.unwrap());
    }

    /// Contract C7.1: whoever claims while rows are deleted keeps what was claimed.
    async fn claiming_and_deleting_at_once_lose_no_claim(world: World) {
        let shop = Shop::on(&world).await;
        let mails: Vec<_> = (0..300).map(|_| shop.draft("")).collect();
        shop.save(&mails).await;
        let rows = shop.rows();
        let (claimer, now) = (rows.clone(), world.now());
        let ids: Vec<_> = mails.iter().map(|mail| mail.row.id).collect();
        let claiming = tokio::spawn(async move {
            let mut claims = Vec::new();
            for chunk in ids.chunks(10) {
                let claimed = claimer.claim_ids(chunk, now, now.plus(seconds(60)), "n1").await.unwrap();
                claims.extend(claimed.into_iter().map(|claimed| claimed.claim));
            }
            claims
        });
        let mut deleted = 0;
        for _ in 0..20 {
            deleted += rows.delete_batch(&Query::new(), 10).await.unwrap();
        }
        let claims = claiming.await.unwrap();
        assert_eq!(deleted + u64::try_from(claims.len()).unwrap(), 300 - rows.count_by(&Query::new().eq("status", "PENDING")).await.unwrap());
        for claim in claims {
            rows.mark_sent(claim, now).await.unwrap();
        }
    }
}
