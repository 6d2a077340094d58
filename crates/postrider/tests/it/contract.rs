//! The contract of rows, on three entities and three databases.
//!
//! A tenant's entity, one without tenants, and one in the manner of a Java application: other names,
//! ids as text, columns of its own that take no null, and rows that were there before.

use std::sync::Arc;

use postrider::OutboxEntity;
use postrider::model::{Clock, OutboxRow, TableDef, TenantId};
use postrider::store::{Database, Dialect, schema};
use postrider::testing::contract::{Bench, assert_ownership_contract, assert_tenant_contract};
use uuid::Uuid;

use super::support::World;

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "order_mail", tenant = "tenant_id")]
struct OrderMail {
    #[outbox(row)]
    row: OutboxRow,
    tenant_id: TenantId,
    order_id: Uuid,
    note: Option<String>,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "system_mail")]
struct SystemMail {
    #[outbox(row)]
    row: OutboxRow,
    job: i64,
}

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "NOTIFICATION_OUTBOX", tenant = "ORGANISATION", id = "text", attempts = "NOTIFICATION_HISTORY")]
#[outbox(rename(
    id = "UUID",
    created_at = "CREATED_DATE",
    updated_at = "LAST_MODIFIED_DATE",
    status = "STATE",
    next_attempt_at = "NEXT_ATTEMPT",
    dedupe_key = "UNIQUE_KEY",
    recipient_address = "ADDRESS"
))]
struct JavaMail {
    #[outbox(row)]
    row: OutboxRow,
    #[outbox(tenant)]
    organisation: TenantId,
    #[outbox(column = "ENTITY_TYPE")]
    entity_type: String,
    #[outbox(column = "ENTITY_VERSION")]
    entity_version: i32,
}

async fn bench<E: OutboxEntity>(
    world: &World,
    make: impl Fn(OutboxRow, TenantId) -> E + Send + Sync + 'static,
) -> Bench<E> {
    let (database, clock): (Arc<dyn Database>, Arc<dyn Clock>) = (Arc::clone(&world.database), world.clock.clone());
    let table: TableDef = E::table().unwrap();
    schema::migrate::<E>(&database, &clock, &table).await.unwrap();
    schema::require::<E>(&database, &clock, &table).await.unwrap();
    Bench::new(database, table, make).unwrap()
}

async fn a_tenants_entity(world: World) {
    let make = |row: OutboxRow, tenant_id| OrderMail { order_id: row.id.as_uuid(), row, tenant_id, note: None };
    let kept = assert_tenant_contract(&bench(&world, make).await).await;
    assert!(kept.len() > 40, "{kept:?}");
}

async fn an_ownership_entity(world: World) {
    let bench = bench(&world, |row, _| SystemMail { row, job: 7 }).await;
    assert_ownership_contract(&bench).await;
}

async fn a_java_style_entity(world: World) {
    let make = |row, organisation| JavaMail { row, organisation, entity_type: "ORDER".into(), entity_version: 1 };
    let bench = bench(&world, make).await;
    // A column that the library knows nothing of, and a row of the application's from before.
    let quote = |name: &str| {
        if world.database.dialect() == Dialect::Mysql { format!("`{name}`") } else { format!("\"{name}\"") }
    };
    let table = quote("NOTIFICATION_OUTBOX");
    let (version, number) =
        (quote("OPTLOCK"), if world.database.dialect() == Dialect::Sqlite { "INTEGER" } else { "BIGINT" });
    world.sql(&format!("ALTER TABLE {table} ADD COLUMN {version} {number} NOT NULL DEFAULT 0")).await;
    let names = ["ADDRESS", "channel", "ENTITY_TYPE", "ENTITY_VERSION"].map(quote).join(", ");
    world.sql(&format!("INSERT INTO {table} ({names}) VALUES ('old@example.com', 'email', 'ORDER', 1)")).await;
    assert_tenant_contract(&bench).await;
}

/// Defines a test of each entity on each database.
macro_rules! on_each_database {
    ($($entity:ident)*) => {
        $(mod $entity {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn keeps_the_contract_on_sqlite() {
                super::$entity(World::sqlite().await.unwrap()).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn keeps_the_contract_on_postgres() {
                let Some(world) = World::postgres().await else { return };
                super::$entity(world).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn keeps_the_contract_on_mariadb() {
                let Some(world) = World::mysql().await else { return };
                super::$entity(world).await;
            }
        })*
    };
}

on_each_database! { a_tenants_entity an_ownership_entity a_java_style_entity }
