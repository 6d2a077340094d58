//! Contract C6.1: whatever a tenant does, in whatever order, no other tenant's row is changed or read.
//!
//! Random calls of every scoped method by random tenants, on any row's id, against a plain model of
//! the tenant's own rows; after each call all other rows must be what they were.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use postrider::model::{OutboxId, OutboxStatus};
use postrider::store::{Cancel, Direction, Query, Requeue, Rows, Saved, Tenant};
use postrider::{ErrorKind, Result};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::repository_own::{OrderMail, Shop, tenant};
use super::support::{World, seconds};

const TENANTS: [&str; 3] = ["one", "two", "three"];

/// A call: who, which, on which of the rows there ever were, and with which number.
#[derive(Debug, Clone, Copy)]
struct Call {
    who: usize,
    what: u8,
    row: usize,
    number: i64,
}

fn call() -> impl Strategy<Value = Call> {
    (0..TENANTS.len(), 0_u8..26, any::<prop::sample::Index>(), 0_i64..3).prop_map(|(who, what, row, number)| Call {
        who,
        what,
        row: row.index(1 << 20),
        number,
    })
}

/// What the model knows of a row: whose it is, where it stands, its number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    who: usize,
    status: OutboxStatus,
    score: Option<i64>,
}

struct Scene<'w> {
    shop: Shop<'w>,
    /// All ids that ever were.
    ids: Vec<OutboxId>,
    model: BTreeMap<OutboxId, Known>,
}

impl Scene<'_> {
    fn scope(&self, who: usize) -> Rows<OrderMail, Tenant> {
        self.shop.repository.scoped(&tenant(TENANTS[who]))
    }

    async fn all(&self) -> BTreeMap<OutboxId, OrderMail> {
        let all = self.shop.rows().find_by(&Query::new()).await.unwrap();
        all.into_iter().map(|mail| (mail.row.id, mail)).collect()
    }

    /// One call; every other tenant's rows must stay, and the own ones become what the model says.
    async fn step(&mut self, call: Call) {
        let before = self.all().await;
        self.shop.world.clock.advance(seconds(1));
        self.call(call).await;
        let after = self.all().await;
        let foreign = |all: &BTreeMap<OutboxId, OrderMail>| {
            let name = TENANTS[call.who];
            all.values().filter(|mail| mail.shop.as_str() != name).cloned().collect::<Vec<_>>()
        };
        // Only background work, as root, may touch anybody's.
        if call.what != CLAIM {
            assert_eq!(foreign(&before), foreign(&after), "{call:?} changed a row of another tenant");
        }
        let known: BTreeMap<_, _> = after
            .values()
            .map(|mail| {
                let who = TENANTS.iter().position(|name| *name == mail.shop.as_str()).unwrap();
                (mail.row.id, Known { who, status: mail.row.state.status, score: mail.score })
            })
            .collect();
        assert_eq!(known, self.model, "{call:?} did something else than it should");
    }

    async fn call(&mut self, call: Call) {
        let Call { who, number, .. } = call;
        let rows = self.scope(who);
        let id = *self.ids.get(call.row % self.ids.len().max(1)).unwrap_or(&OutboxId::from(uuid::Uuid::nil()));
        let own = self.model.get(&id).copied().filter(|known| known.who == who);
        let sending = own.is_some_and(|known| known.status == OutboxStatus::Sending);
        let now = self.shop.world.now();
        let query = Query::new().eq("score", number);
        match call.what {
            0..=4 => self.save_new(who, number).await,
            5 | 6 => self.save_over(who, id, number).await,
            CLAIM => self.claim_or_settle(id).await,
            8 => {
                let deleted = rows.delete_by_id(id).await;
                self.expect_deleted(deleted, id, own.is_some(), sending);
            }
            9 => {
                let mut mail = self.shop.draft(TENANTS[(who + 1) % 3]);
                mail.row.id = id;
                let deleted = rows.delete(&mail).await;
                self.expect_deleted(deleted, id, own.is_some(), sending);
            }
            10 if number == 0 => {
                let deleted = rows.delete_all().await.unwrap();
                self.forget((deleted.deleted, deleted.sending), who, |_, _| true);
            }
            10 | 11 => {
                let deleted = rows.delete_by(&query).await.unwrap();
                self.forget((deleted.deleted, deleted.sending), who, |_, known| known.score == Some(number));
            }
            12 => {
                let some: Vec<_> = self.ids.iter().copied().skip(call.row % 7).step_by(5).collect();
                let deleted = rows.delete_all_by_id(&some).await.unwrap();
                self.forget((deleted.deleted, deleted.sending), who, |id, _| some.contains(id));
            }
            13 => {
                let mine = |known: &&Known| known.who == who && known.score == Some(number);
                let sending = self.model.values().filter(mine).filter(|k| k.status == OutboxStatus::Sending).count();
                let deleted = rows.delete_batch(&query, 1_000).await.unwrap();
                self.forget((deleted, u64::try_from(sending).unwrap()), who, |_, known| known.score == Some(number));
            }
            14 => self.requeue(&rows, id, own).await,
            15 => self.cancel(&rows, id, own).await,
            16 => {
                let expected = match own.map(|known| known.status) {
                    None => Some(ErrorKind::NotFound),
                    Some(OutboxStatus::Sending) => Some(ErrorKind::Conflict),
                    Some(status) if status.is_final() => Some(ErrorKind::WrongStatus),
                    Some(_) => None,
                };
                assert_eq!(rows.expedite(id, now).await.err().map(|error| error.kind()), expected);
            }
            _ => self.read(call, &rows, id).await,
        }
    }

    /// Every way of reading finds the tenant's own rows, and no other.
    async fn read(&self, call: Call, rows: &Rows<OrderMail, Tenant>, id: OutboxId) {
        let mine = |known: &Known| known.who == call.who;
        let own = self.model.get(&id).is_some_and(mine);
        let of_number = |known: &Known| mine(known) && known.score == Some(call.number);
        let expect = |wanted: &dyn Fn(&Known) -> bool| -> Vec<OutboxId> {
            self.model.iter().filter(|(_, known)| wanted(known)).map(|(id, _)| *id).collect()
        };
        let (all, some) = (expect(&mine), expect(&of_number));
        let ids = |found: Vec<OrderMail>| {
            let mut ids: Vec<_> = found.into_iter().map(|mail| mail.row.id).collect();
            ids.sort_unstable();
            ids
        };
        let query = Query::new().eq("score", call.number);
        match call.what {
            17 => assert_eq!(
                ids(rows.find_by_id(id).await.unwrap().into_iter().collect()),
                if own { vec![id] } else { vec![] }
            ),
            18 => {
                assert_eq!(rows.exists_by_id(id).await.unwrap(), own);
                assert_eq!(rows.exists_by(&query).await.unwrap(), !some.is_empty());
                assert_eq!(rows.history(id).await.is_ok(), own);
                assert_eq!(rows.cursor_at(&Query::new(), id).await.unwrap().is_some(), own);
            }
            19 => assert_eq!(ids(rows.find_all_by_id(&self.ids).await.unwrap()), all),
            20 => {
                assert_eq!(ids(rows.find_by(&query).await.unwrap()), some);
                // Naming another tenant opens nothing.
                let other = Query::new().eq("shop", TENANTS[(call.who + 1) % 3]);
                assert!(rows.find_by(&other).await.unwrap().is_empty());
                let any = Query::new().is_in("shop", TENANTS);
                assert_eq!(ids(rows.find_by(&any).await.unwrap()), all);
            }
            21 => {
                assert_eq!(rows.count().await.unwrap(), u64::try_from(all.len()).unwrap());
                assert_eq!(rows.count_by(&query).await.unwrap(), u64::try_from(some.len()).unwrap());
            }
            22 => {
                // The place may be another tenant's: what is read from there is one's own.
                let order = Query::new().order_by("score", Direction::Ascending).limit(2);
                let from = self.shop.rows().cursor_at(&order, id).await.unwrap();
                let mut query = from.map_or(order.clone(), |place| order.after(place));
                loop {
                    let page = rows.page(&query).await.unwrap();
                    assert!(page.rows.iter().all(|mail| mail.shop.as_str() == TENANTS[call.who]));
                    let Some(next) = page.next else { break };
                    query = query.after(next);
                }
            }
            23 => assert_eq!(ids(rows.stream(&Query::new()).try_collect().await.unwrap()), all),
            24 => {
                let found = rows.select(&Query::new(), &["shop"]).await.unwrap().concat();
                assert_eq!(found, vec![TENANTS[call.who].into(); all.len()]);
            }
            _ => {
                let found = rows.find_by_dedupe_key(&format!("key {}", call.number)).await.unwrap();
                assert!(found.is_none_or(|mail| mail.shop.as_str() == TENANTS[call.who]));
                if let [only] = some[..] {
                    assert_eq!(rows.find_one(&query).await.unwrap().unwrap().row.id, only);
                }
            }
        }
    }

    async fn save_new(&mut self, who: usize, number: i64) {
        let mut mail = self.shop.draft(TENANTS[who]);
        mail.score = Some(number);
        if number == 1 {
            mail.row.dedupe_key = "key 1".to_owned();
        }
        let saved = self.shop.try_save(&self.scope(who), std::slice::from_ref(&mail)).await.unwrap();
        match saved[..] {
            [Saved::Created(id)] => {
                self.ids.push(id);
                self.model.insert(id, Known { who, status: OutboxStatus::Pending, score: Some(number) });
            }
            [Saved::Duplicate { existing }] => assert_eq!(self.model[&existing].who, who),
            _ => panic!("{saved:?}"),
        }
    }

    /// Saves over whatever row has that id.
    async fn save_over(&mut self, who: usize, id: OutboxId, number: i64) {
        let mut mail = self.shop.draft(TENANTS[who]);
        mail.row.id = id;
        mail.row.state.status = OutboxStatus::Dead;
        mail.row.state.status = OutboxStatus::Pending;
        mail.score = Some(number);
        let saved = self.shop.try_save(&self.scope(who), &[mail]).await.map(|saved| saved[0]);
        match self.model.get_mut(&id) {
            Some(known) if known.who == who => {
                assert_eq!(saved.unwrap(), Saved::Updated(id));
                known.score = Some(number);
            }
            Some(_) => assert_eq!(saved.unwrap_err().kind(), ErrorKind::Duplicate),
            None => {
                assert_eq!(saved.unwrap(), Saved::Created(id));
                self.ids.push(id);
                self.model.insert(id, Known { who, status: OutboxStatus::Pending, score: Some(number) });
            }
        }
    }

    /// Background work, as root: claims the row, or settles its claim.
    async fn claim_or_settle(&mut self, id: OutboxId) {
        let now = self.shop.world.now();
        let rows = self.shop.rows();
        let Some(known) = self.model.get_mut(&id) else { return };
        if known.status == OutboxStatus::Sending {
            let seq = rows.find_by_id(id).await.unwrap().unwrap().row.state.claim_seq;
            rows.mark_sent(postrider::store::Claim { id, seq }, now).await.unwrap();
            known.status = OutboxStatus::Sent;
        } else if rows.claim(id, now, now.plus(seconds(99_999)), "n1").await.unwrap().is_some() {
            known.status = OutboxStatus::Sending;
        }
    }

    fn expect_deleted(&mut self, deleted: Result<bool>, id: OutboxId, own: bool, sending: bool) {
        match deleted {
            Err(error) => assert!(sending && error.kind() == ErrorKind::Conflict, "{error}"),
            Ok(deleted) => {
                assert_eq!((deleted, sending), (own, false));
                if own {
                    self.model.remove(&id);
                }
            }
        }
    }

    fn forget(&mut self, told: (u64, u64), who: usize, meant: impl Fn(&OutboxId, &Known) -> bool) {
        let meant = |id: &OutboxId, known: &Known| known.who == who && meant(id, known);
        let all = self.model.iter().filter(|(id, known)| meant(id, known)).count();
        self.model.retain(|id, known| !meant(id, known) || known.status == OutboxStatus::Sending);
        let stay = self.model.iter().filter(|(id, known)| meant(id, known)).count();
        assert_eq!(told, (u64::try_from(all - stay).unwrap(), u64::try_from(stay).unwrap()));
    }

    async fn requeue(&mut self, rows: &Rows<OrderMail, Tenant>, id: OutboxId, own: Option<Known>) {
        let told = rows.requeue(id, self.shop.world.now(), "ops").await;
        match own.map(|known| known.status) {
            None => assert!(told.unwrap_err().is_not_found()),
            Some(OutboxStatus::Sending) => assert!(told.unwrap_err().is_conflict()),
            Some(OutboxStatus::Pending) => assert_eq!(told.unwrap(), Requeue::AlreadyPending),
            Some(_) => {
                assert_eq!(told.unwrap(), Requeue::Reset);
                self.model.get_mut(&id).unwrap().status = OutboxStatus::Pending;
            }
        }
    }

    async fn cancel(&mut self, rows: &Rows<OrderMail, Tenant>, id: OutboxId, own: Option<Known>) {
        let told = rows.cancel(id, self.shop.world.now(), "ops").await;
        match own.map(|known| known.status) {
            None => assert!(told.unwrap_err().is_not_found()),
            Some(OutboxStatus::Sending) => assert!(told.unwrap_err().is_conflict()),
            Some(status) if status.is_final() => assert_eq!(told.unwrap(), Cancel::AlreadyFinal(status)),
            Some(_) => {
                assert_eq!(told.unwrap(), Cancel::Cancelled);
                self.model.get_mut(&id).unwrap().status = OutboxStatus::Suppressed;
            }
        }
    }
}

/// The call that background work makes.
const CLAIM: u8 = 7;

async fn isolated(world: World, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    Shop::on(&world).await;
    let handle = tokio::runtime::Handle::current();
    let run = |calls: Vec<Call>| {
        handle.block_on(async {
            let mut scene = Scene { shop: Shop::on(&world).await, ids: Vec::new(), model: BTreeMap::new() };
            world.sql("DELETE FROM order_mail").await;
            for call in calls {
                scene.step(call).await;
            }
        });
        Ok(())
    };
    tokio::task::block_in_place(|| {
        TestRunner::new(config).run(&prop::collection::vec(call(), 30), run).unwrap();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_reads_or_changes_a_row_of_anothers_on_sqlite() {
    if let Some(world) = World::sqlite().await {
        isolated(world, 32).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_reads_or_changes_a_row_of_anothers_on_mariadb() {
    if let Some(world) = World::mysql().await {
        isolated(world, 12).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_reads_or_changes_a_row_of_anothers_on_postgres() {
    if let Some(world) = World::postgres().await {
        isolated(world, 12).await;
    }
}
