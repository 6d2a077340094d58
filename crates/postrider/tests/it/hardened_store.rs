//! The store under odd names, odd values, wide tables and rows that somebody holds.

use std::sync::Arc;
use std::sync::LazyLock;

use postrider::accept::{Notification, Recipient};
use postrider::model::{
    Clock, Kind, NotificationRow, OutboxEntity, OutboxId, OutboxRow, OutboxStatus, OwnColumn, Ownership, TableDef,
    TenantId, Timestamp, Value,
};
use postrider::store::{Cancel, Claim, Ending, OutboxRepository, Query, Requeue, Settlement, schema};
use postrider::testing::RecordingChannel;
use postrider::{ErrorKind, Result};
use serde_json::json;
use sqlx::Connection as _;

use super::support::{World, on_each, seconds};

async fn claim(world: &World, id: OutboxId) -> Claim {
    let reclaim_at = world.now().plus(seconds(60));
    world.rows().claim(id, world.now(), reclaim_at, "n1").await.unwrap().expect("due and free").claim
}

/// An ownership entity with forty columns of its own, or with one whose name is reserved.
#[derive(Debug, Clone, PartialEq)]
struct Wide<const RESERVED: bool> {
    row: OutboxRow,
    tenant: TenantId,
}

static FORTY: LazyLock<Vec<OwnColumn>> = LazyLock::new(|| {
    let column =
        |n| OwnColumn { name: Box::leak(format!("own_{n}").into_boxed_str()), kind: Kind::Int, nullable: true };
    (0..40).map(column).collect()
});

impl<const RESERVED: bool> OutboxEntity for Wide<RESERVED> {
    type Tenancy = Ownership;

    fn table() -> Result<TableDef> {
        TableDef::new("wide")
    }

    fn own_columns() -> &'static [OwnColumn] {
        if RESERVED { &[OwnColumn { name: "pr_seq", kind: Kind::Int, nullable: true }] } else { &FORTY }
    }

    fn row(&self) -> &OutboxRow {
        &self.row
    }

    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn own_values(&self) -> Vec<Value> {
        vec![7_i64.into(); 40]
    }

    fn assemble(row: OutboxRow, tenant: TenantId, own: Vec<Value>) -> Result<Self> {
        assert!(own.iter().all(|value| *value == 7_i64.into()));
        Ok(Self { row, tenant })
    }
}

on_each! {
    /// Contract C4.2, C4.5: a renewal by a clock that stepped back leaves the claim as long as it was.
    async fn a_renewal_never_shortens_a_claim(world: World) {
        let id = world.pending().await;
        let token = claim(&world, id).await;
        let until = world.state(id).await.next_attempt_at;
        let past = world.now().minus(seconds(120));
        let renewed = world.rows().renew(&[token], past, past.plus(seconds(60))).await.unwrap();
        assert_eq!(renewed.kept, [token]);
        assert_eq!(world.state(id).await.next_attempt_at, until);
        let early = until.minus(seconds(1));
        assert!(world.rows().claim(id, early, until, "other").await.unwrap().is_none());
    }

    /// Contract C1: `updated_at` and the history say when a row was requeued, not when it is due.
    async fn a_requeue_for_later_is_dated_now(world: World) {
        let id = world.pending().await;
        world.rows().cancel(id, world.now(), "ops").await.unwrap();
        world.clock.advance(seconds(5));
        let later = world.now().plus(seconds(86_400));
        assert_eq!(world.rows().requeue(id, later, "ops").await.unwrap(), Requeue::Reset);
        let state = world.state(id).await;
        assert_eq!((state.next_attempt_at, state.updated_at), (later, world.now()));
        let history = world.rows().history(id).await.unwrap();
        assert_eq!((history[1].event.as_str(), history[1].at), ("requeue", world.now()));
    }

    /// Contract C3.6: the caller of a cancel, the row and its history agree that it was delivered.
    async fn a_cancel_of_a_delivered_row_says_that_it_was_delivered(world: World) {
        let id = world.pending().await;
        let token = claim(&world, id).await;
        world.rows().record_failure(token, world.now(), "450 one of the copies", world.now()).await.unwrap();
        world.sql("UPDATE postrider_outbox SET accepted_at = updated_at").await;
        world.clock.advance(seconds(5));
        assert_eq!(world.rows().cancel(id, world.now(), "ops").await.unwrap(), Cancel::AlreadyDelivered);
        let state = world.state(id).await;
        assert_eq!((state.status, state.reason_code.as_deref()), (OutboxStatus::Sent, Some("partial")));
        assert_eq!(state.sent_at, state.accepted_at);
        let history = world.rows().history(id).await.unwrap();
        let line = &history[1];
        assert_eq!((line.event.as_str(), line.status.as_str(), line.claim_seq), ("cancel", "SENT", 1));
    }

    /// Contract C4.6: a row that was given up shows each of the claims that were lost on it.
    async fn a_buried_rows_history_has_all_four_losses(world: World) {
        let id = world.pending().await;
        for _ in 0..3 {
            claim(&world, id).await;
            world.clock.advance(seconds(60));
        }
        let reclaim_at = world.now().plus(seconds(60));
        world.rows().claim_suspect(world.now(), reclaim_at, "alone").await.unwrap().unwrap();
        world.clock.advance(seconds(60));
        assert_eq!(world.rows().bury_lost(world.now()).await.unwrap(), 1);
        let history = world.rows().history(id).await.unwrap();
        let mut lines: Vec<_> = history.iter().map(|line| (line.claim_seq, line.event.as_str(), line.status.as_str())).collect();
        lines.sort_unstable();
        assert_eq!(lines, [(1, "lost", "SENDING"), (2, "lost", "SENDING"), (3, "lost", "SENDING"), (4, "lost", "DEAD")]);
        let last = history.iter().find(|line| line.claim_seq == 4).unwrap();
        assert_eq!(last.node.as_deref(), Some("alone"));
        assert!(last.error.as_deref().unwrap().contains("given up"));
    }

    /// Contract C6.3: the entity decides about tenancy; a table of the other kind is refused.
    async fn a_table_that_disagrees_with_its_entity_about_tenancy_is_refused(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let bare = TableDef::new("plain").unwrap();
        let with = bare.clone().with_tenant("tenant_id").unwrap();
        let database = || Arc::clone(&world.database);
        let error = OutboxRepository::<NotificationRow>::with_table(database(), clock.clone(), bare.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        let error = OutboxRepository::<Wide<false>>::with_table(database(), clock.clone(), with.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(OutboxRepository::<NotificationRow>::with_table(database(), clock.clone(), with).is_ok());
        assert!(OutboxRepository::<Wide<false>>::with_table(database(), clock, bare).is_ok());
    }

    /// Contract C1.6: a column may have any other name, those inside the statements' batches included.
    async fn columns_may_be_named_like_the_fields_of_a_batch(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let mut table = TableDef::new("renamed").unwrap().with_tenant("row_id").unwrap();
        for (from, to) in [("claim_seq", "seq"), ("last_error", "error"), ("reason_code", "code"), ("status", "due_id")] {
            table = table.rename(from, to).unwrap();
        }
        schema::migrate::<NotificationRow>(&world.database, &clock, &table).await.unwrap();
        let rows = OutboxRepository::<NotificationRow>::with_table(Arc::clone(&world.database), clock, table).unwrap().root();
        let draft = world.draft();
        let id = draft.row.id;
        let mut open = world.database.begin().await.unwrap();
        rows.insert(open.connection(), &[draft]).await.unwrap();
        open.commit().await.unwrap();
        let (now, reclaim_at) = (world.now(), world.now().plus(seconds(60)));
        let token = rows.claim(id, now, reclaim_at, "n1").await.unwrap().unwrap().claim;
        assert_eq!(rows.renew(&[token], now, reclaim_at).await.unwrap().kept, [token]);
        rows.record_failure(token, now, "no", now).await.unwrap();
        rows.requeue(id, now, "ops").await.unwrap();
        rows.cancel(id, now, "ops").await.unwrap();
        assert_eq!(rows.find_by_id(id).await.unwrap().unwrap().row.state.status, OutboxStatus::Suppressed);
    }

    /// Contract C2.4, C1.6: however many columns the application adds, a statement holds what it can.
    async fn five_hundred_rows_with_forty_own_columns_are_written(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let table = Wide::<false>::table().unwrap();
        schema::migrate::<Wide<false>>(&world.database, &clock, &table).await.unwrap();
        let rows = OutboxRepository::<Wide<false>>::new(Arc::clone(&world.database), clock).unwrap().root();
        let entities: Vec<_> =
            (0..500).map(|_| Wide::<false> { row: world.draft().row, tenant: TenantId::ROOT }).collect();
        let mut open = world.database.begin().await.unwrap();
        assert_eq!(rows.insert(open.connection(), &entities).await.unwrap().len(), 500);
        open.commit().await.unwrap();
        assert_eq!(rows.page(&Query::new().limit(1_000)).await.unwrap().rows.len(), 500);
    }

    /// Contract C2.1, C2.5: what could not be read again, or would send twice, is refused unwritten.
    async fn deep_documents_and_a_channel_named_twice_are_refused(world: World) {
        let outbox = world.outbox().channel(Arc::new(RecordingChannel::new("email"))).build().unwrap();
        let hello = || Notification::text("H", "t").over("email").to(Recipient::new("a").at("email", "a@example.com"));
        let nested = |levels: usize| (1..levels).fold(json!(1), |inner, _| json!([inner]));
        let mut open = world.database.begin().await.unwrap();
        for bad in [hello().metadata(nested(33)), hello().payload(json!({ "deep": nested(33) })), hello().over("email")] {
            let root = |row| NotificationRow { row, tenant_id: TenantId::ROOT };
            let refused = outbox.service().root().enqueue(open.connection(), &bad, root).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        }
        // The transaction is usable still, and what is accepted can be read.
        let root = |row| NotificationRow { row, tenant_id: TenantId::ROOT };
        let good = hello().metadata(nested(32));
        let written = outbox.service().root().enqueue(open.connection(), &good, root).await.unwrap();
        open.commit().await.unwrap();
        let id = written.created().next().unwrap();
        assert_eq!(world.find(id).await.row.metadata, Some(nested(32)));
        assert_eq!(world.rows().page(&Query::new().limit(10)).await.unwrap().rows.len(), 1);
    }

    /// Contract C1.6: names that begin as those inside the statements do are refused everywhere.
    async fn names_that_begin_with_pr_are_refused(world: World) {
        let table = TableDef::new("fine").unwrap();
        let refused = [
            TableDef::new("pr_outbox"),
            table.clone().with_tenant("pr_run"),
            table.clone().in_schema("pr_app"),
            table.clone().rename("claim_seq", "pr_seq"),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Configuration);
        }
        let clock: Arc<dyn Clock> = world.clock.clone();
        let own = OutboxRepository::<Wide<true>>::with_table(Arc::clone(&world.database), clock, table);
        assert_eq!(own.unwrap_err().kind(), ErrorKind::Configuration);
    }
}

/// Contract C4.7: a row that another session holds locked delays only itself, whatever is done to it
/// together with others.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_delays_only_itself() {
    let Some(world) = World::postgres().await else { return };
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(world.pending().await);
    }
    let (held, free) = (claim(&world, ids[0]).await, claim(&world, ids[1]).await);
    let mut stranger = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
    let mut open = stranger.begin().await.unwrap();
    for locked in [ids[0], ids[2]] {
        let lock = "SELECT 1 FROM postrider_outbox WHERE id = $1 FOR UPDATE";
        sqlx::query(lock).bind(locked.as_uuid()).execute(&mut *open).await.unwrap();
    }
    let (now, reclaim_at) = (world.now(), world.now().plus(seconds(90)));
    let work = async {
        let renewed = world.rows().renew(&[held, free], now, reclaim_at).await.unwrap();
        assert_eq!((renewed.kept.as_slice(), renewed.lost.len()), (&[free][..], 0));
        let claimed = world.rows().claim_ids(&ids[2..], now, reclaim_at, "n1").await.unwrap();
        assert_eq!(claimed.iter().map(|claimed| claimed.claim.id).collect::<Vec<_>>(), [ids[3]]);
        let sent = |claim| {
            let ending = Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
            Settlement::new(claim, now, ending)
        };
        let settled = world.rows().settle(&[sent(held), sent(free)]).await.unwrap();
        let of = |claim| &settled.iter().find(|settled| settled.claim == claim).unwrap().now;
        assert_eq!(of(free).as_ref().unwrap(), &Some((OutboxStatus::Sent, 1)));
        let error = of(held).as_ref().unwrap_err();
        assert_eq!((error.kind(), error.blames_the_row()), (ErrorKind::Locked, false));
    };
    tokio::time::timeout(seconds(20), work).await.expect("nothing waits for the stranger");
    open.rollback().await.unwrap();
    world.rows().mark_sent(held, now).await.unwrap();
    claim(&world, ids[2]).await;
}

/// Contract C4.7: `infinity`, which PostgreSQL can store and no clock shows, is read as the end of time.
#[tokio::test(flavor = "multi_thread")]
async fn an_infinite_instant_can_be_read() {
    let Some(world) = World::postgres().await else { return };
    let odd = world.pending().await;
    let good = world.pending().await;
    world
        .sql(&format!(
            "UPDATE postrider_outbox SET expires_at = 'infinity', deferred_since = '-infinity' WHERE id = '{odd}'"
        ))
        .await;
    let row = world.find(odd).await.row;
    assert_eq!((row.expires_at, row.state.deferred_since), (Some(Timestamp::MAX), Some(Timestamp::MIN)));
    assert_eq!(world.rows().page(&Query::new().limit(10)).await.unwrap().rows.len(), 2);
    let (now, reclaim_at) = (world.now(), world.now().plus(seconds(60)));
    let claimed = world.rows().claim_ids(&[odd, good], now, reclaim_at, "n1").await.unwrap();
    assert!(claimed.len() == 2 && claimed.iter().all(|claimed| claimed.entity.is_ok()));
}

/// Case C29: an id that cannot be told from others does not get into the table.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_length_is_refused_on_sqlite() {
    let Some(world) = World::sqlite().await else { return };
    let mut open = world.database.begin().await.unwrap();
    let insert = "INSERT INTO postrider_outbox (id, channel, recipient_address) \
                  VALUES (CAST('019a0000-0000-7000-8000-000000000000' AS BLOB), 'email', 'x@example.com')";
    let refused = open.connection().execute(insert, &[]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    open.rollback().await.unwrap();
}
