//! Case C26: a table of the application's own is compared with what the library needs of it.

use std::sync::Arc;

use postrider::ErrorKind;
use postrider::model::{
    Clock, Kind, NotificationRow, OutboxEntity, OutboxRow, OwnColumn, Ownership, TableDef, TenantId, Value,
};
use postrider::store::schema::{Finding, migrate, missing_columns, require, verify};
use postrider::store::{Dialect, OutboxRepository, Query};

use super::support::{World, on_each};

async fn found(world: &World) -> Vec<Finding> {
    let clock: Arc<dyn Clock> = world.clock.clone();
    verify::<NotificationRow>(&world.database, &clock, world.repository.table()).await.unwrap()
}

/// Every finding in one line.
async fn told(world: &World) -> Vec<String> {
    found(world).await.iter().map(ToString::to_string).collect()
}

async fn refused(world: &World) -> bool {
    let clock: Arc<dyn Clock> = world.clock.clone();
    match require::<NotificationRow>(&world.database, &clock, world.repository.table()).await {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
            true
        }
    }
}

/// Runs what the findings say, after which nothing is found, and rows can be written and claimed.
async fn mend(world: &World) {
    for finding in found(world).await {
        world.try_all(finding.statements()).await.unwrap();
    }
    assert_eq!(told(world).await, [""; 0]);
    assert!(!refused(world).await);
    let id = world.pending().await;
    let claimed = world.rows().claim(id, world.now(), world.now(), "n").await.unwrap().unwrap();
    assert!(claimed.entity.is_ok());
}

/// Changes the type of a column with rows in it, as an application's own migration could have it.
async fn retype(world: &World, column: &str, to: &str) {
    match world.database.dialect() {
        Dialect::Postgres => {
            let using = match to {
                "bigint" => format!("(extract(epoch FROM {column}) * 1000000)::bigint"),
                to => format!("{column}::{to}"),
            };
            let sql = format!(
                "ALTER TABLE postrider_outbox ALTER COLUMN {column} DROP DEFAULT, ALTER COLUMN {column} TYPE {to} USING {using}"
            );
            world.sql(&sql).await;
        }
        Dialect::Mysql => {
            if to == "bigint" {
                world.sql(&format!("ALTER TABLE postrider_outbox DROP COLUMN {column}")).await;
                world.sql(&format!("ALTER TABLE postrider_outbox ADD COLUMN {column} {to}")).await;
            } else {
                world.sql(&format!("ALTER TABLE postrider_outbox MODIFY COLUMN {column} {to}")).await;
            }
        }
        _ => {
            world.sql(&format!("ALTER TABLE postrider_outbox DROP COLUMN {column}")).await;
            world.sql(&format!("ALTER TABLE postrider_outbox ADD COLUMN {column} {to}")).await;
        }
    }
}

async fn drop_index(world: &World, name: &str) {
    let of = if world.database.dialect() == Dialect::Mysql { " ON postrider_outbox" } else { "" };
    world.sql(&format!("DROP INDEX {name}{of}")).await;
}

on_each! {
    /// What the library itself makes is as the library needs it.
    async fn the_librarys_own_tables_lack_nothing(world: World) {
        assert_eq!(found(&world).await, []);
    }

    /// Case C26: a time that is coarse, or none, is named with what mends it, and mending keeps it.
    async fn a_time_column_of_another_type_is_refused(world: World) {
        let at = world.now().plus(std::time::Duration::from_micros(123_456));
        let types: &[(&str, &str)] = match world.database.dialect() {
            Dialect::Postgres => &[
                ("timestamptz(0)", "timestamp(0) with time zone"),
                ("timestamptz(3)", "timestamp(3) with time zone"),
                ("timestamp", "timestamp without time zone"),
                ("date", "date"),
                ("bigint", "bigint"),
                ("text", "text"),
            ],
            Dialect::Mysql => &[
                ("datetime", "datetime"),
                ("datetime(3)", "datetime(3)"),
                ("timestamp(6) null", "timestamp(6)"),
                ("date", "date"),
                ("bigint", "bigint(20)"),
            ],
            // In a STRICT table the others are refused by SQLite itself.
            _ => &[("TEXT", "TEXT"), ("REAL", "REAL"), ("ANY", "ANY")],
        };
        for (to, said) in types {
            let mut draft = world.draft();
            draft.row.expires_at = Some(at);
            let id = draft.row.id;
            world.insert(vec![draft]).await;
            retype(&world, "expires_at", to).await;
            let wanted = match world.database.dialect() {
                Dialect::Postgres => "timestamptz",
                Dialect::Mysql => "DATETIME(6)",
                _ => "INTEGER",
            };
            let line = format!("the column postrider_outbox.expires_at is {said}; it must be {wanted}");
            assert_eq!(told(&world).await, [line]);
            assert!(refused(&world).await, "{to}");
            mend(&world).await;
            let kept = ["text", "timestamp", "timestamp(6) null"].contains(to)
                || *to == "bigint" && world.database.dialect() == Dialect::Postgres;
            if kept {
                assert_eq!(world.find(id).await.row.expires_at, Some(at), "{to}");
            }
        }
    }

    /// Every column that is declared is looked at, not those of time alone.
    async fn a_column_of_any_other_type_is_refused(world: World) {
        let types: &[(&str, &str)] = match world.database.dialect() {
            Dialect::Postgres => &[
                ("in_doubt", "text"),
                ("attempts", "smallint"),
                ("claim_seq", "integer"),
                ("priority", "numeric(5,0)"),
                ("last_error", "varchar(255)"),
                ("provider", "char(20)"),
                ("dedupe_key", "varchar(254)"),
                ("recipients", "varchar(4000)"),
                ("tenant_id", "varchar(36)"),
                ("category", "name"),
                ("traceparent", "bytea"),
            ],
            Dialect::Mysql => &[
                ("in_doubt", "char(1) not null"),
                ("attempts", "smallint not null"),
                ("claim_seq", "int not null"),
                ("last_error", "varchar(255)"),
                ("recipients", "text charset utf8mb4"),
                ("subject", "blob"),
                ("dedupe_key", "varchar(255) charset utf8mb4 collate utf8mb4_bin not null"),
                ("tenant_id", "varbinary(36) not null"),
                ("status", "varchar(9) not null"),
            ],
            _ => &[("last_error", "INTEGER"), ("deferrals", "TEXT"), ("provider", "ANY")],
        };
        for (column, to) in types {
            retype(&world, column, to).await;
            let findings = found(&world).await;
            let wrong = |finding: &&Finding| matches!(finding, Finding::WrongType { column: c, .. } if c == column);
            assert_eq!(findings.iter().filter(wrong).count(), 1, "{column} {to}: {findings:?}");
            assert!(refused(&world).await, "{column} {to}");
            if *to == "bytea" {
                // What the bytes mean nobody knows but the application.
                return;
            }
            mend(&world).await;
        }
    }

    /// A column that is gone, takes no null, or that nobody knows; each with what mends it.
    async fn missing_and_closed_columns_are_named(world: World) {
        world.pending().await;
        world.sql("ALTER TABLE postrider_outbox DROP COLUMN traceparent").await;
        world.sql("ALTER TABLE postrider_outbox DROP COLUMN deferrals").await;
        world.sql("ALTER TABLE postrider_outbox_attempt DROP COLUMN blame").await;
        let (text, number) = match world.database.dialect() {
            Dialect::Postgres => ("text", "bigint"),
            Dialect::Mysql => ("LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "BIGINT"),
            _ => ("TEXT", "INTEGER"),
        };
        let extra = if world.database.dialect() == Dialect::Mysql { "VARCHAR(9)" } else { "TEXT" };
        let extra = format!("ALTER TABLE postrider_outbox ADD COLUMN invoice_no {extra} NOT NULL DEFAULT 'none'");
        world.sql(&extra).await;
        let lines = [
            format!("there is no column postrider_outbox.deferrals; it must be {number}"),
            format!("there is no column postrider_outbox.traceparent; it must be {text}"),
            format!("there is no column postrider_outbox_attempt.blame; it must be {text}"),
        ];
        assert_eq!(told(&world).await, lines);
        let clock: Arc<dyn Clock> = world.clock.clone();
        let missing = missing_columns::<NotificationRow>(&world.database, &clock, world.repository.table()).await.unwrap();
        assert_eq!(missing, ["deferrals", "traceparent"]);
        mend(&world).await;
    }

    /// Without the unique constraint a key is written twice; without the index every claim reads all.
    async fn missing_constraints_and_indexes_are_named(world: World) {
        drop_index(&world, "postrider_outbox_claim").await;
        assert_eq!(told(&world).await, ["postrider_outbox has no index like postrider_outbox_claim: every claim reads the whole table"]);
        assert!(!refused(&world).await, "slow is not wrong");
        mend(&world).await;
        drop_index(&world, "postrider_outbox_lost").await;
        assert_eq!(told(&world).await.len(), 1);
        mend(&world).await;
        world.sql("DROP TABLE postrider_outbox_attempt").await;
        assert_eq!(told(&world).await, ["there is no table postrider_outbox_attempt"]);
        assert!(refused(&world).await);
        mend(&world).await;
        if world.database.dialect() == Dialect::Postgres {
            world.sql("ALTER TABLE postrider_outbox DROP CONSTRAINT postrider_outbox_tenant_id_dedupe_key_key").await;
            // Neither of these answers to ON CONFLICT (tenant_id, dedupe_key).
            world.sql("CREATE UNIQUE INDEX half ON postrider_outbox (dedupe_key)").await;
            world.sql("CREATE UNIQUE INDEX part ON postrider_outbox (tenant_id, dedupe_key) WHERE status = 'SENT'").await;
            assert_eq!(told(&world).await, ["no unique constraint of postrider_outbox is on (tenant_id, dedupe_key)"]);
            assert!(refused(&world).await);
            mend(&world).await;
            world.sql("ALTER TABLE postrider_outbox DROP CONSTRAINT postrider_outbox_pkey").await;
            assert_eq!(told(&world).await.len(), 1);
            mend(&world).await;
        }
        if world.database.dialect() == Dialect::Mysql {
            world.sql("ALTER TABLE postrider_outbox DROP INDEX postrider_outbox_lost, DROP COLUMN lost_at").await;
            let lines = told(&world).await;
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[0].starts_with("there is no column postrider_outbox.lost_at; it must be `lost_at` DATETIME(6) GENERATED"));
            mend(&world).await;
        }
        world.sql("DROP TABLE postrider_outbox").await;
        assert_eq!(told(&world).await, ["there is no table postrider_outbox"]);
        let clock: Arc<dyn Clock> = world.clock.clone();
        let missing = missing_columns::<NotificationRow>(&world.database, &clock, world.repository.table()).await.unwrap();
        assert!(missing.len() > 30 && missing.contains(&"tenant_id".to_owned()));
        mend(&world).await;
    }

    /// Contract C1.6: names of the application's own, and its own columns, are looked at as well.
    async fn a_table_with_other_names_is_looked_at(world: World) {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let mut table = TableDef::new("Mixed_Case").unwrap().rename("next_attempt_at", "Due").unwrap();
        if world.database.dialect() == Dialect::Postgres {
            world.sql("CREATE SCHEMA \"Other\"").await;
            // The same name where the search path finds it first.
            world.sql("CREATE TABLE \"Mixed_Case\" (id text)").await;
            table = table.in_schema("Other").unwrap();
        }
        migrate::<Invoice>(&world.database, &clock, &table).await.unwrap();
        let found = async || verify::<Invoice>(&world.database, &clock, &table).await.unwrap();
        assert_eq!(found().await, []);
        let name = if world.database.dialect() == Dialect::Postgres { "\"Other\".\"Mixed_Case\"" } else { "\"Mixed_Case\"" };
        let rename = format!("ALTER TABLE {name} RENAME COLUMN \"Paid_At\" TO gone");
        world.sql(&if world.database.dialect() == Dialect::Mysql { rename.replace('"', "`") } else { rename }).await;
        let told: Vec<_> = found().await.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("there is no column Mixed_Case.Paid_At"), "{told:?}");
        for statement in found().await.iter().flat_map(Finding::statements) {
            world.sql(statement).await;
        }
        assert_eq!(found().await, []);
        let rows = OutboxRepository::<Invoice>::with_table(Arc::clone(&world.database), clock.clone(), table.clone()).unwrap().root();
        let mut open = world.database.begin().await.unwrap();
        rows.insert(open.connection(), &[Invoice { row: world.draft().row, tenant: TenantId::ROOT }]).await.unwrap();
        open.commit().await.unwrap();
    }
}

/// Nulls, defaults and domains as PostgreSQL tells them.
#[tokio::test(flavor = "multi_thread")]
async fn nulls_and_domains_are_looked_through_on_postgres() {
    let Some(world) = World::postgres().await else { return };
    world.pending().await;
    world.sql("CREATE DOMAIN moment AS timestamptz").await;
    world.sql("CREATE DOMAIN later_moment AS moment").await;
    world.sql("ALTER TABLE postrider_outbox ALTER COLUMN sent_at TYPE later_moment").await;
    assert_eq!(told(&world).await, [""; 0]);
    world.sql("CREATE DOMAIN coarse AS timestamptz(0)").await;
    world.sql("CREATE DOMAIN coarser AS coarse").await;
    world.sql("ALTER TABLE postrider_outbox ALTER COLUMN sent_at TYPE coarser").await;
    let line = "the column postrider_outbox.sent_at is timestamp(0) with time zone; it must be timestamptz";
    assert_eq!(told(&world).await, [line]);
    mend(&world).await;
    world.sql("UPDATE postrider_outbox SET last_error = ''").await;
    world.sql("ALTER TABLE postrider_outbox ALTER COLUMN last_error SET NOT NULL").await;
    assert_eq!(told(&world).await, ["the column postrider_outbox.last_error is NOT NULL; it must take nulls"]);
    assert!(refused(&world).await);
    mend(&world).await;
    world.sql("ALTER TABLE postrider_outbox ALTER COLUMN recipient DROP NOT NULL").await;
    assert_eq!(told(&world).await, ["the column postrider_outbox.recipient takes nulls; it should be NOT NULL"]);
    assert!(!refused(&world).await);
    mend(&world).await;
    world.sql("ALTER TABLE postrider_outbox ADD COLUMN invoice_no bigint").await;
    world.sql("UPDATE postrider_outbox SET invoice_no = 1").await;
    world.sql("ALTER TABLE postrider_outbox ALTER COLUMN invoice_no SET NOT NULL").await;
    let line = "the column postrider_outbox.invoice_no is NOT NULL without a default, and nothing writes it";
    assert_eq!(told(&world).await, [line]);
    assert!(refused(&world).await);
    mend(&world).await;
}

/// A table without STRICT, as another tool makes it: DATETIME promises text to every other writer.
#[tokio::test(flavor = "multi_thread")]
async fn declared_types_count_on_sqlite_whatever_they_hold() {
    let Some(world) = World::sqlite().await else { return };
    let ddl = postrider::store::schema::create_tables::<NotificationRow>(Dialect::Sqlite).unwrap();
    world.sql("DROP TABLE postrider_outbox").await;
    let table = ddl[0].replace(" STRICT", "");
    let table = table.replace("\"sent_at\" INTEGER", "\"sent_at\" DATETIME");
    let table = table.replace("\"updated_at\" INTEGER", "\"updated_at\" timestamp");
    world.sql(&table.replace("\"in_doubt\" INTEGER", "\"in_doubt\" BOOLEAN")).await;
    for index in &ddl[1..3] {
        world.sql(index).await;
    }
    let lines = ["sent_at is DATETIME", "updated_at is timestamp"]
        .map(|column| format!("the column postrider_outbox.{column}; it must be INTEGER"));
    assert_eq!(told(&world).await, lines);
    world.sql("INSERT INTO postrider_outbox (channel, recipient_address, updated_at) VALUES ('e', 'a', '2026-03-01 10:00:00')").await;
    mend(&world).await;
    let rows = world.rows().page(&Query::new().limit(10)).await.unwrap().rows;
    assert!(rows.iter().any(|entity| entity.row.state.updated_at == world.now() && entity.row.channel == "e"));
    // A column of an index cannot be moved: what is to be done is said instead.
    let (sql, as_text) = (&ddl[0], ddl[0].replace("\"next_attempt_at\" INTEGER", "\"next_attempt_at\" TEXT"));
    assert_ne!(*sql, as_text);
    world.sql("DROP TABLE postrider_outbox").await;
    for statement in [&as_text, &ddl[1], &ddl[2]] {
        world.sql(statement).await;
    }
    let findings = found(&world).await;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].statement().starts_with("-- SQLite cannot change next_attempt_at"), "{findings:?}");
}

/// An entity with a column of its own.
#[derive(Debug, Clone)]
struct Invoice {
    row: OutboxRow,
    tenant: TenantId,
}

impl OutboxEntity for Invoice {
    type Tenancy = Ownership;

    fn table() -> postrider::Result<TableDef> {
        TableDef::new("Mixed_Case")
    }

    fn own_columns() -> &'static [OwnColumn] {
        &[OwnColumn { name: "Paid_At", kind: Kind::Time, nullable: true }]
    }

    fn row(&self) -> &OutboxRow {
        &self.row
    }

    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn own_values(&self) -> Vec<Value> {
        vec![Value::null(Kind::Time)]
    }

    fn assemble(row: OutboxRow, _tenant: TenantId, _own: Vec<Value>) -> postrider::Result<Self> {
        Ok(Self { row, tenant: TenantId::ROOT })
    }
}
