//! Making the tables: by several nodes at once, and as text for one's own tool.

use std::sync::Arc;

use postrider::ErrorKind;
use postrider::model::{Clock, NotificationRow, OutboxEntity, SystemClock};
use postrider::store::schema::{create_tables, migrate, missing_columns};
use postrider::store::{Database, Dialect, PostgresDatabase, SqliteDatabase, Synchronous};
use postrider_testkit::database::TestDatabase;

use super::support::{World, on_both};

/// Eight nodes start at once on an empty database: one makes the tables, the others wait.
async fn race(open: impl AsyncFn() -> Arc<dyn Database>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let table = NotificationRow::table().unwrap();
    let mut nodes = Vec::new();
    for _ in 0..8 {
        let (database, clock, table) = (open().await, Arc::clone(&clock), table.clone());
        nodes.push(tokio::spawn(async move { migrate::<NotificationRow>(&database, &clock, &table).await.unwrap() }));
    }
    let mut steps = 0;
    for node in nodes {
        steps += node.await.unwrap();
    }
    assert_eq!(steps, 1);
    assert!(missing_columns::<NotificationRow>(&open().await, &clock, &table).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_migrate_at_once_on_sqlite() {
    let test = TestDatabase::sqlite();
    let path = test.path().unwrap().to_owned();
    race(async || Arc::new(SqliteDatabase::open(&path, Synchronous::Full).await.unwrap()) as Arc<dyn Database>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_migrate_at_once_on_postgres() {
    let Some(test) = TestDatabase::postgres().await else {
        return;
    };
    race(async || Arc::new(PostgresDatabase::connect_lazy(test.url(), 3).unwrap()) as Arc<dyn Database>).await;
}

on_both! {
    /// A column that is gone is named; tables of a later version are refused.
    async fn what_is_missing_is_named(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        world.sql("ALTER TABLE postrider_outbox DROP COLUMN traceparent").await;
        let missing = missing_columns::<NotificationRow>(&world.database, &clock, world.repository.table()).await.unwrap();
        assert_eq!(missing, ["traceparent"]);
        world.sql("INSERT INTO postrider_outbox_schema (version, applied_at) SELECT 99, MAX(applied_at) FROM postrider_outbox_schema").await;
        let refused = migrate::<NotificationRow>(&world.database, &clock, world.repository.table()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Configuration);
    }

    /// Another language names only what it must: every other column has a default that is valid.
    async fn a_row_from_another_language_needs_few_columns(world: World) {
        world.sql("INSERT INTO postrider_outbox (channel, recipient_address, subject, body) \
                   VALUES ('email', 'alice@example.com', 'Hello', 'Hi')").await;
        // A later millisecond, which is how finely such ids are ordered.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        world.sql("INSERT INTO postrider_outbox (channel, recipient_address) VALUES ('email', 'bob@example.com')").await;
        let rows = world.rows().list(&Default::default(), 10).await.unwrap().rows;
        assert_eq!(rows.len(), 2);
        // Newest first, also where the column's default made the id.
        assert_eq!(rows[0].row.recipient_address, "bob@example.com");
        if world.database.dialect() == Dialect::Postgres {
            assert_eq!(rows[0].row.id.as_uuid().get_version_num(), 7);
        }
        assert_ne!(rows[0].row.dedupe_key, rows[1].row.dedupe_key);
        assert!(rows.iter().all(|entity| entity.tenant_id.is_root()));
        // Due by the database's own time, which is the real one here.
        let now = SystemClock::new().now();
        let claimed = world.rows().claim(rows[0].row.id, now, now.plus(std::time::Duration::from_secs(9)), "n").await.unwrap();
        assert!(claimed.unwrap().entity.is_ok());
    }
}

/// The texts for one's own migration tool are those that `migrate` runs.
#[test]
fn the_ddl_is_given_as_text() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let ddl = create_tables::<NotificationRow>(dialect).unwrap();
        assert_eq!(ddl.len(), 5);
        assert!(ddl[0].starts_with("CREATE TABLE \"postrider_outbox\""));
    }
}
