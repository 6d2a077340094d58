//! A database, a clock turned by hand, and rows to try things on.

use std::sync::Arc;
use std::time::Duration;

use postrider::dispatch::DispatchConfig;
use postrider::model::{Clock, NotificationRow, OutboxId, OutboxRow, RowState, TenantId, Timestamp};
use postrider::store::database::{Extent, write};
use postrider::store::{
    Database, Dialect, Inserted, MysqlDatabase, OutboxRepository, PostgresDatabase, Root, Rows, SqliteDatabase,
    Synchronous, schema,
};
use postrider::testing::ManualClock;
use postrider::{Outbox, OutboxBuilder};
use postrider_testkit::database::TestDatabase;

/// The instant at which every test begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-03-01T10:00:00Z").unwrap()
}

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A node by the manual clock, which has nothing to do with the database's.
pub(crate) fn node(name: &str) -> DispatchConfig {
    let mut config = DispatchConfig::new(name);
    config.check_clock = false;
    config
}

/// An outbox of its own on one database.
pub(crate) struct World {
    pub(crate) database: Arc<dyn Database>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) repository: OutboxRepository<NotificationRow>,
    pub(crate) test: TestDatabase,
}

impl World {
    pub(crate) async fn sqlite() -> Option<Self> {
        let test = TestDatabase::sqlite();
        let opened = SqliteDatabase::open(test.path().unwrap(), Synchronous::Full).await.unwrap();
        Some(Self::on(test, Arc::new(opened)).await)
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let test = TestDatabase::postgres().await?;
        let opened = PostgresDatabase::connect_lazy(test.url(), 20).unwrap();
        Some(Self::on(test, Arc::new(opened)).await)
    }

    pub(crate) async fn mysql() -> Option<Self> {
        let test = TestDatabase::mariadb().await?;
        let opened = MysqlDatabase::connect_lazy(test.url(), 20).unwrap();
        Some(Self::on(test, Arc::new(opened)).await)
    }

    async fn on(test: TestDatabase, database: Arc<dyn Database>) -> Self {
        let clock = Arc::new(ManualClock::new(start()));
        let as_clock: Arc<dyn Clock> = clock.clone();
        let repository = OutboxRepository::new(Arc::clone(&database), as_clock.clone()).unwrap();
        schema::migrate::<NotificationRow>(&database, &as_clock, repository.table()).await.unwrap();
        Self { database, clock, repository, test }
    }

    pub(crate) fn rows(&self) -> Rows<NotificationRow, Root> {
        self.repository.root()
    }

    pub(crate) fn outbox(&self) -> OutboxBuilder<NotificationRow> {
        Outbox::builder(Arc::clone(&self.database), self.clock.clone())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A root row, due now, not written yet.
    pub(crate) fn draft(&self) -> NotificationRow {
        let id = OutboxId::new(&*self.clock);
        let row = OutboxRow::new(id, "email", "alice", "alice@example.com", self.now());
        NotificationRow { row, tenant_id: TenantId::ROOT }
    }

    /// Writes rows in a transaction of their own.
    pub(crate) async fn insert(&self, entities: Vec<NotificationRow>) -> Vec<Inserted> {
        let rows = self.rows();
        let clock: Arc<dyn Clock> = self.clock.clone();
        let work = Arc::new((rows, entities));
        write(&self.database, &clock, Extent::Transaction, move |connection| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.0.insert(connection, &work.1).await })
        })
        .await
        .unwrap()
    }

    /// Writes one root row, due now.
    pub(crate) async fn pending(&self) -> OutboxId {
        let draft = self.draft();
        let id = draft.row.id;
        assert_eq!(self.insert(vec![draft]).await, [Inserted::Created(id)]);
        id
    }

    pub(crate) async fn find(&self, id: OutboxId) -> NotificationRow {
        self.rows().find_by_id(id).await.unwrap().expect("the row exists")
    }

    pub(crate) async fn state(&self, id: OutboxId) -> RowState {
        self.find(id).await.row.state
    }

    /// Runs plain SQL, as another program would.
    pub(crate) async fn sql(&self, sql: &str) {
        self.try_sql(sql).await.unwrap();
    }

    /// Runs plain SQL that may be refused.
    pub(crate) async fn try_sql(&self, sql: &str) -> postrider::Result<()> {
        self.try_all(&[sql.to_owned()]).await
    }

    /// Runs statements in one transaction.
    pub(crate) async fn try_all(&self, statements: &[String]) -> postrider::Result<()> {
        let mut statements = statements.to_vec();
        if self.database.dialect() == Dialect::Sqlite {
            // A connection learns of a changed table when it reads, and ALTER TABLE comes too soon for that.
            statements.insert(0, "SELECT COUNT(*) FROM sqlite_master".to_owned());
        }
        let clock: Arc<dyn Clock> = self.clock.clone();
        write(&self.database, &clock, Extent::Transaction, move |connection| {
            let statements = statements.clone();
            Box::pin(async move {
                for sql in &statements {
                    connection.execute(sql, &[]).await?;
                }
                Ok(())
            })
        })
        .await
    }
}

/// Makes the table one that an earlier version made, which takes documents that are no JSON.
pub(crate) async fn drop_document_checks(world: &World) {
    const ENDS: [&str; 4] = ["cc", "payload", "recipients", "metadata"];
    if world.database.dialect() == Dialect::Postgres {
        let drops = ENDS.map(|end| format!("DROP CONSTRAINT postrider_outbox_{end}_json"));
        world.sql(&format!("ALTER TABLE postrider_outbox {}", drops.join(", "))).await;
        return;
    }
    if world.database.dialect() == Dialect::Mysql {
        for end in ENDS {
            world.sql(&format!("ALTER TABLE postrider_outbox DROP CONSTRAINT postrider_outbox_{end}_json")).await;
        }
        return;
    }
    // SQLite drops no constraint: the table is made anew without them.
    let ddl = schema::create_tables::<NotificationRow>(Dialect::Sqlite).unwrap();
    world.sql("DROP TABLE postrider_outbox").await;
    let checks = |line: &&str| !ENDS.iter().any(|end| line.contains(&format!("postrider_outbox_{end}_json")));
    let table: Vec<_> = ddl[0].lines().filter(checks).collect();
    world.sql(&table.join("\n")).await;
    for index in &ddl[1..3] {
        world.sql(index).await;
    }
}

/// Waits, in real time and bounded, until `done` says so.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    for _ in 0..3_000 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited 30 s in vain: {what}");
}

/// Defines each test three times: on SQLite, on PostgreSQL and on MariaDB.
macro_rules! on_each {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        $(
            mod $name {
                use super::*;

                async fn run($world: World) $body

                $(#[$meta])*
                #[tokio::test(flavor = "multi_thread")]
                async fn on_sqlite() {
                    if let Some(world) = World::sqlite().await {
                        run(world).await;
                    }
                }

                $(#[$meta])*
                #[tokio::test(flavor = "multi_thread")]
                async fn on_mariadb() {
                    if let Some(world) = World::mysql().await {
                        run(world).await;
                    }
                }

                $(#[$meta])*
                #[tokio::test(flavor = "multi_thread")]
                async fn on_postgres() {
                    if let Some(world) = World::postgres().await {
                        run(world).await;
                    }
                }
            }
        )*
    };
}
pub(crate) use on_each;
