//! What a rule is tried with: rows of the entity, on a table, under a clock that is turned by hand.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::dispatch::DispatchConfig;
use crate::error::Result;
use crate::model::{Clock, OutboxEntity, OutboxId, OutboxRow, RowState, SystemClock, TableDef, TenantId, Timestamp};
use crate::store::database::{Extent, write};
use crate::store::{Claim, ClaimOrder, Claimed, Database, Inserted, OutboxRepository, Root, Rows};
use crate::testing::ManualClock;

/// How finely time passes while a dispatcher is at work.
const TICK: Duration = Duration::from_millis(5);

/// How an application makes its entity around a row of a tenant's.
type Make<E> = Arc<dyn Fn(OutboxRow, TenantId) -> E + Send + Sync>;

/// An entity on a table of a database. Nobody else may write to the table while rules are tried.
pub struct Bench<E> {
    /// The database.
    pub database: Arc<dyn Database>,
    /// The clock that all times come from.
    pub clock: Arc<ManualClock>,
    /// The rows.
    pub repository: OutboxRepository<E>,
    make: Make<E>,
}

impl<E: OutboxEntity> Bench<E> {
    /// A bench on `table`, which is there with its history; rows that are in it are final or far from
    /// being due. `make` fills the application's own columns; it is called for every row that is
    /// written, and must keep the row and the tenant as they are given.
    ///
    /// # Errors
    /// As [`OutboxRepository::with_table`].
    pub fn new(
        database: Arc<dyn Database>,
        table: TableDef,
        make: impl Fn(OutboxRow, TenantId) -> E + Send + Sync + 'static,
    ) -> Result<Self> {
        // Some years before the present: of rows that other clocks wrote none is due.
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_600_000_000_000_000)));
        let repository = OutboxRepository::with_table(Arc::clone(&database), clock.clone(), table)?;
        Ok(Self { database, clock, repository, make: Arc::new(make) })
    }

    pub(super) fn rows(&self) -> Rows<E, Root> {
        self.repository.root()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn later(&self, seconds: u64) -> Timestamp {
        self.now().plus(Duration::from_secs(seconds))
    }

    pub(super) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A row that is due now, not written yet.
    pub(super) fn draft(&self) -> OutboxRow {
        OutboxRow::new(OutboxId::new(&*self.clock), "email", "alice", "alice@example.com", self.now())
    }

    /// The entity around a row of root's.
    pub(super) fn entity(&self, row: OutboxRow) -> E {
        self.entity_of(row, TenantId::ROOT)
    }

    pub(super) fn entity_of(&self, row: OutboxRow, tenant: TenantId) -> E {
        (self.make)(row, tenant)
    }

    /// Writes entities in a transaction of their own.
    pub(super) async fn insert(&self, entities: Vec<E>) -> Vec<Inserted> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let work = Arc::new((self.rows(), entities));
        let written = write(&self.database, &clock, Extent::Transaction, move |connection| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.0.insert(connection, &work.1).await })
        });
        written.await.unwrap()
    }

    /// Writes a row of root's.
    pub(super) async fn write(&self, row: OutboxRow) -> OutboxId {
        let id = row.id;
        assert_eq!(self.insert(vec![self.entity(row)]).await, [Inserted::Created(id)], "a free key is written");
        id
    }

    /// Writes a row of root's, due now.
    pub(super) async fn pending(&self) -> OutboxId {
        self.write(self.draft()).await
    }

    /// Claims a row for 60 s.
    pub(super) async fn claim(&self, id: OutboxId) -> Option<Claim> {
        self.rows().claim(id, self.now(), self.later(60), "node-1").await.unwrap().map(|claimed| claimed.claim)
    }

    /// Writes a row and claims it.
    pub(super) async fn claimed(&self) -> Claim {
        let id = self.pending().await;
        self.claim(id).await.expect("a row that is due and free is claimed")
    }

    /// Claims due rows for 60 s.
    pub(super) async fn claim_due(&self, limit: usize) -> Vec<Claimed<E>> {
        let (now, reclaim_at) = (self.now(), self.later(60));
        let order = ClaimOrder { now, reclaim_at, node: "node-1".to_owned(), floor: None, limit };
        self.rows().claim_due(&order).await.unwrap()
    }

    pub(super) async fn find(&self, id: OutboxId) -> E {
        self.rows().find_by_id(id).await.unwrap().expect("a row that was written is found")
    }

    pub(super) async fn row(&self, id: OutboxId) -> OutboxRow {
        self.find(id).await.row().clone()
    }

    pub(super) async fn state(&self, id: OutboxId) -> RowState {
        self.row(id).await.state
    }

    /// A dispatcher's settings, by this clock.
    pub(super) fn node(&self, name: &str) -> DispatchConfig {
        let mut config = DispatchConfig::new(name);
        config.check_clock = false;
        config
    }

    /// Waits for `work` while time passes, as much by the bench's clock as in truth: whoever waits by it
    /// for a moment goes on.
    pub(super) async fn passing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match select(work.as_mut(), pin!(SystemClock::new().sleep(TICK))).await {
                Either::Left((done, _)) => return done,
                Either::Right(_) => self.clock.advance(TICK),
            }
        }
    }

    /// Ends whatever a rule left behind, so that the next one finds nothing due, and lets a day pass.
    pub(super) async fn finish_all(&self) {
        self.pass(365 * 86_400);
        loop {
            let mut claims: Vec<_> = self.claim_due(500).await.into_iter().map(|claimed| claimed.claim).collect();
            let suspect = self.rows().claim_suspect(self.now(), self.later(60), "node-1").await.unwrap();
            claims.extend(suspect.map(|claimed| claimed.claim));
            for claim in &claims {
                self.rows().mark_sent(*claim, self.now()).await.unwrap();
            }
            if claims.is_empty() && self.rows().bury_lost(self.now()).await.unwrap() == 0 {
                return;
            }
        }
    }
}

impl<E> fmt::Debug for Bench<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("repository", &self.repository).finish_non_exhaustive()
    }
}
