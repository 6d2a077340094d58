//! Contract C7, C7.1: saving writes what is the application's, and never what is the state machine's.

use std::sync::Arc;

use postrider::model::{
    OutboxEntity, OutboxId, OutboxRow, OutboxStatus, OwnColumn, Ownership, RowState, TableDef, TenantId, Value,
};
use postrider::store::database::{Extent, write};
use postrider::store::{Deleted, OutboxRepository, Query, Saved, schema};
use postrider::{ErrorKind, Result};

use super::repository_own::{Shop, tenant};
use super::support::{World, on_each, seconds};

on_each! {
    /// Contract C7: a new row is inserted; of an existing one the content is written.
    async fn save_inserts_what_is_new_and_writes_the_content_of_what_is_there(world: World) {
        let shop = Shop::on(&world).await;
        let mut mail = shop.draft("one");
        assert_eq!(shop.save(std::slice::from_ref(&mail)).await, [Saved::Created(mail.row.id)]);
        world.clock.advance(seconds(5));
        mail.row.subject = Some("changed".to_owned());
        mail.row.body = None;
        mail.row.cc_addresses = vec!["b@example.com".to_owned()];
        mail.row.payload = Some(serde_json::json!({ "html": "<p>" }));
        mail.row.priority = 7;
        mail.row.expires_at = Some(world.now());
        (mail.score, mail.note, mail.urgent) = (Some(3), Some("note".to_owned()), true);
        assert_eq!(shop.save(std::slice::from_ref(&mail)).await, [Saved::Updated(mail.row.id)]);
        let stored = shop.rows().find_by_id(mail.row.id).await.unwrap().unwrap();
        mail.row.state.updated_at = world.now();
        assert_eq!(stored, mail);
    }

    /// Contract C7.1: a stale object saved over a claimed row cannot walk round the fence.
    async fn a_stale_object_saved_over_a_claimed_row_leaves_the_claim_alone(world: World) {
        let shop = Shop::on(&world).await;
        let mut stale = shop.made(|_| ()).await;
        let id = stale.row.id;
        let reclaim_at = world.now().plus(seconds(60));
        let claim = shop.rows().claim(id, world.now(), reclaim_at, "n1").await.unwrap().unwrap().claim;
        let before = shop.rows().find_by_id(id).await.unwrap().unwrap();
        // Everything that is not content is made up.
        stale.row.subject = Some("new".to_owned());
        stale.row.channel = "webhook".to_owned();
        stale.row.dedupe_key = "another".to_owned();
        stale.row.max_attempts = 99;
        stale.row.created_at = world.now().plus(seconds(999));
        stale.row.state = RowState {
            status: OutboxStatus::Dead,
            attempts: 5,
            last_error: Some("made up".to_owned()),
            sent_at: Some(world.now()),
            claim_seq: 77,
            lost_claims: 2,
            claimed_by: Some("me".to_owned()),
            deferrals: 4,
            resends: 3,
            in_doubt: true,
            reason_code: Some("made_up".to_owned()),
            ..RowState::pending(world.now(), world.now().plus(seconds(5)))
        };
        world.clock.advance(seconds(1));
        assert_eq!(shop.save(&[stale]).await, [Saved::Updated(id)]);
        let after = shop.rows().find_by_id(id).await.unwrap().unwrap();
        let mut expected = before;
        expected.row.subject = Some("new".to_owned());
        expected.row.state.updated_at = world.now();
        assert_eq!(after, expected);
        shop.rows().mark_sent(claim, world.now()).await.unwrap();
        let sent = shop.rows().find_by_id(id).await.unwrap().unwrap();
        assert_eq!((sent.row.state.status, sent.row.state.claim_seq), (OutboxStatus::Sent, 1));
    }

    /// Contract C2.2: a new row whose key is held is no error and no row.
    async fn a_new_row_with_a_key_that_is_held_is_told(world: World) {
        let shop = Shop::on(&world).await;
        let first = shop.made(|mail| mail.row.dedupe_key = "key".to_owned()).await;
        let mut second = shop.draft("");
        second.row.dedupe_key = "key".to_owned();
        assert_eq!(shop.save(&[second]).await, [Saved::Duplicate { existing: first.row.id }]);
        assert_eq!(shop.rows().count().await.unwrap(), 1);
    }

    /// Contract C6.1: another tenant's row looks like none, is never changed, and nothing of it is told.
    async fn a_row_of_another_tenant_cannot_be_saved_over(world: World) {
        let shop = Shop::on(&world).await;
        let mut theirs = shop.draft("theirs");
        theirs.row.subject = Some("secret".to_owned());
        theirs.note = Some("secret".to_owned());
        shop.save(std::slice::from_ref(&theirs)).await;
        let before = shop.rows().find_by_id(theirs.row.id).await.unwrap();
        let ours = shop.repository.scoped(&tenant("ours"));

        let mut forged = shop.draft("ours");
        forged.row.id = theirs.row.id;
        for rows in [vec![forged.clone()], vec![shop.draft("ours"), forged.clone()]] {
            let refused = shop.try_save(&ours, &rows).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Duplicate);
            assert!(!format!("{refused:?}").contains("secret") && !refused.to_string().contains("theirs"), "{refused:?}");
        }
        // Root gives a row to no other tenant either.
        assert_eq!(shop.try_save(&shop.rows(), &[forged]).await.unwrap_err().kind(), ErrorKind::Duplicate);
        // Its own row, saved from a scope that does not see it.
        assert_eq!(shop.try_save(&ours, &[theirs]).await.unwrap_err().kind(), ErrorKind::Invalid);
        let id = before.as_ref().unwrap().row.id;
        assert_eq!(shop.rows().find_by_id(id).await.unwrap(), before);
        assert_eq!(shop.rows().count().await.unwrap(), 1);
    }

    /// Contract C7: many at once, new, there, twice, and told row by row.
    async fn save_all_answers_row_by_row(world: World) {
        let shop = Shop::on(&world).await;
        let mut old: Vec<_> = (0..3).map(|_| shop.draft("one")).collect();
        old[0].row.dedupe_key = "key".to_owned();
        shop.save(&old).await;
        let mut all: Vec<_> = (0..700).map(|_| shop.draft("two")).collect();
        for mail in &mut old {
            mail.score = Some(1);
        }
        all[5] = old[0].clone();
        all[650] = old[1].clone();
        all[651] = shop.draft("one");
        all[651].row.dedupe_key = "key".to_owned();
        // There twice: inserted, then written over.
        all[20] = all[10].clone();
        all[20].score = Some(9);
        let saved = shop.save(&all).await;
        assert_eq!(saved.len(), 700);
        for (at, (saved, mail)) in saved.iter().zip(&all).enumerate() {
            let expected = match at {
                5 | 20 | 650 => Saved::Updated(mail.row.id),
                651 => Saved::Duplicate { existing: old[0].row.id },
                _ => Saved::Created(mail.row.id),
            };
            assert_eq!(*saved, expected, "{at}");
        }
        assert_eq!(shop.rows().count().await.unwrap(), 3 + 700 - 4);
        assert_eq!(shop.rows().count_by(&Query::new().eq("score", 1)).await.unwrap(), 2);
        assert_eq!(shop.rows().count_by(&Query::new().eq("score", 9)).await.unwrap(), 1);
        assert!(shop.save(&[]).await.is_empty());
    }

    /// Contract C2.1: in the caller's transaction, which may roll back.
    async fn what_is_saved_is_the_callers_to_commit(world: World) {
        let shop = Shop::on(&world).await;
        let mut mail = shop.made(|_| ()).await;
        let new = shop.draft("");
        mail.score = Some(1);
        let mut open = world.database.begin().await.unwrap();
        assert_eq!(shop.rows().save(open.connection(), &mail).await.unwrap(), Saved::Updated(mail.row.id));
        assert_eq!(shop.rows().save(open.connection(), &new).await.unwrap(), Saved::Created(new.row.id));
        open.rollback().await.unwrap();
        assert!(!shop.rows().exists_by_id(new.row.id).await.unwrap());
        assert_eq!(shop.rows().find_by_id(mail.row.id).await.unwrap().unwrap().score, None);
        // What no row can store is refused before anything is written.
        mail.note = Some("a\0".to_owned());
        assert_eq!(shop.try_save(&shop.rows(), &[mail]).await.unwrap_err().kind(), ErrorKind::Invalid);
    }

    /// Contract C6.2: the same without a tenant column.
    async fn an_ownership_entity_has_the_same_repository(world: World) {
        let clock: Arc<dyn postrider::model::Clock> = world.clock.clone();
        let repository = OutboxRepository::<Receipt>::new(Arc::clone(&world.database), Arc::clone(&clock)).unwrap();
        schema::migrate::<Receipt>(&world.database, &clock, repository.table()).await.unwrap();
        let rows = repository.root();
        let make = |total| {
            let id = OutboxId::new(&*world.clock);
            Receipt { row: OutboxRow::new(id, "email", "alice", "alice@example.com", world.now()), total }
        };
        let mut receipts = [make(1), make(2)];
        let save = async |receipts: &[Receipt]| {
            let work = Arc::new((rows.clone(), receipts.to_vec()));
            write(&world.database, &clock, Extent::Transaction, move |connection| {
                let work = Arc::clone(&work);
                Box::pin(async move { work.0.save_all(connection, &work.1).await })
            })
            .await
            .unwrap()
        };
        let [a, b] = [receipts[0].row.id, receipts[1].row.id];
        assert_eq!(save(&receipts).await, [Saved::Created(a), Saved::Created(b)]);
        receipts[0].total = 3;
        assert_eq!(save(&receipts).await, [Saved::Updated(a), Saved::Updated(b)]);
        let key = receipts[0].row.dedupe_key.as_str();
        assert_eq!(rows.find_by_dedupe_key(key).await.unwrap().unwrap().total, 3);
        assert_eq!(rows.find_all_by_dedupe_key(key).await.unwrap().len(), 1);
        assert_eq!(rows.find_by(&Query::new().ge("total", 3)).await.unwrap().len(), 1);
        let probe = Query::new().matching(&receipts[0], &["total", "channel"]);
        assert_eq!(rows.find_one(&probe).await.unwrap().unwrap().row.id, a);
        assert_eq!(rows.page(&Query::new().limit(1)).await.unwrap().rows.len(), 1);
        assert_eq!(rows.find_all_by_id(&[b, a]).await.unwrap().len(), 2);
        assert!(rows.delete(&receipts[1]).await.unwrap());
        let Deleted { deleted, sending, .. } = rows.delete_all().await.unwrap();
        assert_eq!((deleted, sending), (1, 0));
    }
}

/// An entity without tenants.
#[derive(Debug, Clone)]
struct Receipt {
    row: OutboxRow,
    total: i64,
}

impl OutboxEntity for Receipt {
    type Tenancy = Ownership;

    fn table() -> Result<TableDef> {
        TableDef::new("receipt_mail")
    }

    fn own_columns() -> &'static [OwnColumn] {
        &[OwnColumn { name: "total", kind: postrider::model::Kind::Int, nullable: false }]
    }

    fn row(&self) -> &OutboxRow {
        &self.row
    }

    fn tenant(&self) -> &TenantId {
        const { &TenantId::ROOT }
    }

    fn own_values(&self) -> Vec<Value> {
        vec![self.total.into()]
    }

    fn assemble(row: OutboxRow, _: TenantId, own: Vec<Value>) -> Result<Self> {
        Ok(Self { row, total: own.into_iter().next().unwrap().try_into()? })
    }
}
