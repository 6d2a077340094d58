//! Making the tables: by several nodes at once, and as text for one's own tool.

use std::sync::Arc;

use postrider::ErrorKind;
use postrider::model::{Clock, NotificationRow, OutboxEntity, SystemClock, SystemRow, TableDef, TenantId};
use postrider::store::schema::{create_tables, migrate, missing_columns, script, steps, version};
use postrider::store::{Database, Dialect, OutboxRepository, PostgresDatabase, Query, SqliteDatabase, Synchronous};
use postrider_testkit::database::TestDatabase;

use super::support::{World, drop_document_checks, on_each};

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
    assert_eq!(steps, 3);
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

on_each! {
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

    /// A table that was dropped is made again, whichever it is, and rows can be written.
    async fn a_dropped_table_is_made_again(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let table = world.repository.table();
        for gone in [&["postrider_outbox"][..], &["postrider_outbox_attempt"], &["postrider_outbox", "postrider_outbox_attempt"]] {
            for name in gone {
                world.sql(&format!("DROP TABLE {name}")).await;
            }
            assert_eq!(migrate::<NotificationRow>(&world.database, &clock, table).await.unwrap(), 1, "{gone:?}");
            assert_eq!(migrate::<NotificationRow>(&world.database, &clock, table).await.unwrap(), 0, "{gone:?}");
            let found = postrider::store::schema::verify::<NotificationRow>(&world.database, &clock, table).await.unwrap();
            assert!(found.is_empty(), "{gone:?}: {found:?}");
            world.pending().await;
        }
    }

    /// Another language names only what it must: every other column has a default that is valid.
    async fn a_row_from_another_language_needs_few_columns(world: World) {
        world.sql("INSERT INTO postrider_outbox (channel, recipient_address, subject, body) \
                   VALUES ('email', 'alice@example.com', 'Hello', 'Hi')").await;
        // A later millisecond, which is how finely such ids are ordered.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        world.sql("INSERT INTO postrider_outbox (channel, recipient_address) VALUES ('email', 'bob@example.com')").await;
        let rows = world.rows().page(&Query::new().limit(10)).await.unwrap().rows;
        assert_eq!(rows.len(), 2);
        // Newest first, also where the column's default made the id.
        assert_eq!(rows[0].row.recipient_address, "bob@example.com");
        if world.database.dialect() != Dialect::Sqlite {
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

on_each! {
    /// How many steps were run is known, and where they never were.
    async fn the_version_tells_how_many_steps_were_run(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let table = world.repository.table();
        let known = steps::<NotificationRow>(world.database.dialect(), table).unwrap().len();
        assert_eq!(version(&world.database, &clock, table).await.unwrap(), Some(known));
        world.sql("DELETE FROM postrider_outbox_schema").await;
        assert_eq!(version(&world.database, &clock, table).await.unwrap(), Some(0));
        world.sql("DROP TABLE postrider_outbox_schema").await;
        assert_eq!(version(&world.database, &clock, table).await.unwrap(), None);
    }

    /// A table without tenants, and a row in it, by the ready-made entity.
    async fn a_table_without_tenants_has_a_ready_made_entity(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let table = TableDef::new("system_mail").unwrap();
        migrate::<SystemRow>(&world.database, &clock, &table).await.unwrap();
        let rows = OutboxRepository::<SystemRow>::with_table(Arc::clone(&world.database), clock, table).unwrap().root();
        world.sql("INSERT INTO system_mail (channel, recipient_address) VALUES ('email', 'alice@example.com')").await;
        let listed = rows.page(&Query::new().limit(10)).await.unwrap().rows;
        assert_eq!((listed.len(), listed[0].view().tenant()), (1, TenantId::root()));
    }
}

/// One text, of all steps or of those that are new.
#[test]
fn the_ddl_is_given_as_one_text() {
    let table = NotificationRow::table().unwrap().in_schema("shop").unwrap();
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
        let all = script::<NotificationRow>(dialect, &table, 0).unwrap();
        assert!(all.starts_with("-- The outbox postrider_outbox in the schema shop on "), "{all}");
        let parts = steps::<NotificationRow>(dialect, &table).unwrap();
        for statement in parts.concat() {
            assert!(all.contains(&format!("\n{statement};\n")), "{statement}");
        }
        let rest = script::<NotificationRow>(dialect, &table, parts.len()).unwrap();
        assert_eq!(rest.lines().count(), 1, "{rest}");
    }
}

on_each! {
    /// A writer in any language that leaves no JSON is refused at once, and the column is named.
    async fn a_document_that_is_no_json_is_refused_by_the_table(world: World) {
        for column in ["cc_addresses", "payload", "recipients", "metadata"] {
            let insert = |value: &str| {
                format!("INSERT INTO postrider_outbox (channel, recipient_address, {column}) \
                         VALUES ('email', 'alice@example.com', {value})")
            };
            for good in ["NULL", "'[]'", r#"'{"a": "\u0000"}'"#, "'\"text\"'"] {
                world.sql(&insert(good)).await;
            }
            for bad in ["''", "'{not json'", "'[1'", "'{''a'': 1}'"] {
                let refused = world.try_sql(&insert(bad)).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Refused, "{column} {bad}: {refused}");
                let told = refused.to_string();
                let names = format!("postrider_outbox_{}", if column == "cc_addresses" { "cc" } else { column });
                assert!(told.contains(&names) || told.contains("invalid input syntax for type json"), "{told}");
            }
        }
    }
}

/// Tables that an earlier version made get the checks too; what is in them is not read.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_table_gets_the_checks_of_documents_on_postgres() {
    let Some(world) = World::postgres().await else { return };
    let clock: Arc<dyn Clock> = world.clock.clone();
    world.sql("DELETE FROM postrider_outbox_schema WHERE version >= 2").await;
    drop_document_checks(&world).await;
    let insert =
        "INSERT INTO postrider_outbox (channel, recipient_address, payload) VALUES ('email', 'a@example.com', '[1')";
    world.sql(insert).await;
    assert_eq!(migrate::<NotificationRow>(&world.database, &clock, world.repository.table()).await.unwrap(), 2);
    assert_eq!(world.try_sql(insert).await.unwrap_err().kind(), ErrorKind::Refused);
    // The broken row can still be mended.
    world.sql("UPDATE postrider_outbox SET payload = '[1]'").await;
}

/// Case C40: steps are known by their number, not by a checksum of a text, and no line end of a checkout
/// gets into them. What a real table has otherwise is refused by looking at it.
#[test]
fn line_ends_change_no_step() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
        for statement in create_tables::<NotificationRow>(dialect).unwrap() {
            assert!(!statement.contains('\r'), "{statement}");
        }
    }
}

/// The texts for one's own migration tool are those that `migrate` runs.
#[test]
fn the_ddl_is_given_as_text() {
    // PostgreSQL adds the checks of documents to a table that may be there already, and has a function.
    for (dialect, statements) in [(Dialect::Sqlite, 5), (Dialect::Postgres, 8), (Dialect::Mysql, 2)] {
        let ddl = create_tables::<NotificationRow>(dialect).unwrap();
        assert_eq!(ddl.len(), statements);
        assert!(ddl[0].starts_with("CREATE TABLE ") && ddl[0].contains("postrider_outbox"));
    }
}
