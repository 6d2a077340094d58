//! A table that an application in Java had before: it is served after what `verify` said was done.
//!
//! Other names, ids as text, coarse times, columns of its own that take no null and that nobody here
//! knows, rows in it.

use std::sync::Arc;

use postrider::OutboxEntity;
use postrider::model::{Clock, OutboxRow, OutboxStatus, TenantId};
use postrider::store::schema::{require, verify};
use postrider::store::{Dialect, Inserted, OutboxRepository};
use postrider::testing::RecordingChannel;
use postrider::{ErrorKind, Outbox};

use super::support::{World, eventually, node, on_each};

#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "notification_outbox", tenant = "organisation", id = "text")]
#[outbox(rename(id = "uuid", created_at = "created_date", updated_at = "last_modified_date", status = "state"))]
#[outbox(rename(next_attempt_at = "next_attempt", dedupe_key = "unique_key", recipient_address = "address"))]
struct JavaMail {
    #[outbox(row)]
    row: OutboxRow,
    #[outbox(tenant)]
    organisation: TenantId,
    entity_type: String,
}

/// The table as the application made it, and two rows of it.
fn before(dialect: Dialect) -> Vec<String> {
    let (text, long, number, time, default) = match dialect {
        Dialect::Postgres => ("varchar(255)", "text", "integer", "timestamp", "CURRENT_TIMESTAMP"),
        Dialect::Mysql => ("varchar(255)", "text", "int", "datetime", "CURRENT_TIMESTAMP"),
        _ => ("VARCHAR(255)", "TEXT", "INTEGER", "INTEGER", "0"),
    };
    let id = if dialect == Dialect::Sqlite { "CHAR(36)" } else { "varchar(36)" };
    let row = |id: &str, state: &str, key: &str| {
        format!(
            "INSERT INTO notification_outbox (uuid, optlock, entity_type, channel, recipient, address, subject, body, \
             state, attempts, max_attempts, unique_key, organisation) VALUES ('{id}', 3, 'ORDER', 'email', 'alice', \
             'alice@example.com', 'Grüße', 'from before', '{state}', 0, 5, '{key}', 'acme')"
        )
    };
    vec![
        format!(
            "CREATE TABLE notification_outbox (uuid {id} NOT NULL PRIMARY KEY, optlock {number} NOT NULL DEFAULT 0, \
             entity_type {text} NOT NULL, created_date {time} NOT NULL DEFAULT {default}, \
             last_modified_date {time} NOT NULL DEFAULT {default}, channel {text} NOT NULL, \
             recipient {text} NOT NULL, address {text} NOT NULL, subject {text}, body {long}, state {text} NOT NULL, \
             attempts {number} NOT NULL, max_attempts {number} NOT NULL, \
             next_attempt {time} NOT NULL DEFAULT {default}, last_error {text}, sent_at {time}, \
             unique_key {text} NOT NULL, organisation {text} NOT NULL)"
        ),
        row("0190a000-0000-7000-8000-000000000001", "PENDING", "order-1"),
        row("0190a000-0000-7000-8000-000000000002", "SENT", "order-2"),
    ]
}

/// Rows of before are due by the real time, in whole seconds.
fn begin(world: &World) {
    world.clock.set(postrider::model::SystemClock::new().now().plus(std::time::Duration::from_secs(5)));
}

on_each! {
    /// Contract C1.6: what `verify` says is done, nothing is lost, and the rows of before go out.
    async fn an_older_table_is_served_after_what_verify_said(world: World) {
        begin(&world);
        let clock: Arc<dyn Clock> = world.clock.clone();
        let table = JavaMail::table().unwrap();
        for statement in before(world.database.dialect()) {
            world.sql(&statement).await;
        }
        let refused = require::<JavaMail>(&world.database, &clock, &table).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Configuration);
        // What one statement needs another may have to make first.
        for _ in 0..3 {
            for finding in verify::<JavaMail>(&world.database, &clock, &table).await.unwrap() {
                world.try_all(finding.statements()).await.unwrap_or_else(|error| panic!("{finding}: {error}"));
            }
        }
        assert_eq!(verify::<JavaMail>(&world.database, &clock, &table).await.unwrap(), []);
        require::<JavaMail>(&world.database, &clock, &table).await.unwrap();

        let channel = Arc::new(RecordingChannel::new("email"));
        let outbox = Outbox::<JavaMail>::builder(Arc::clone(&world.database), clock.clone()).channel(channel.clone());
        let outbox = outbox.build().unwrap();
        let dispatcher = outbox.start(node("n1")).unwrap();
        let sent = channel.wait_for(1).await.remove(0);
        assert_eq!((sent.subject.as_deref(), sent.body.as_deref()), (Some("Grüße"), Some("from before")));
        assert_eq!(channel.tenants(), [TenantId::new("acme").unwrap()]);
        let rows = OutboxRepository::<JavaMail>::new(Arc::clone(&world.database), clock).unwrap().root();
        let status = async |key: &str| {
            let found = rows.find_all_by_dedupe_key(key).await.unwrap().remove(0);
            (found.row.state.status, found.entity_type)
        };
        eventually("it is settled", async || status("order-1").await.0 == OutboxStatus::Sent).await;
        assert_eq!(status("order-2").await, (OutboxStatus::Sent, "ORDER".to_owned()));
        dispatcher.shutdown().await;

        let row = world.draft().row;
        let id = row.id;
        let mut again = world.draft().row;
        again.dedupe_key = "order-2".to_owned();
        let mail = |row| JavaMail { row, organisation: TenantId::new("acme").unwrap(), entity_type: "ORDER".into() };
        let mut open = world.database.begin().await.unwrap();
        let answers = rows.insert(open.connection(), &[mail(row), mail(again)]).await.unwrap();
        open.commit().await.unwrap();
        assert!(matches!(answers[..], [Inserted::Created(new), Inserted::Duplicate { .. }] if new == id), "{answers:?}");
        assert_eq!(channel.deliveries().len(), 1, "the row that was SENT is not sent again");
    }
}
