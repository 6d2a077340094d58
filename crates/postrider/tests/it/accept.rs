//! Accepting: in the caller's transaction, rendered first, refused before anything is written.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use postrider::accept::{Content, Dedupe, Notification, Recipient};
use postrider::model::{Kind, NotificationRow, OutboxRow, TenantId, Timestamp, Value};
use postrider::render::{Part, TemplateCatalogue};
use postrider::store::{Connection, Dialect, Fetched, Inserted, Query, Transaction};
use postrider::testing::RecordingChannel;
use postrider::{ErrorKind, Outbox};
use serde_json::json;

use super::support::{World, on_each, seconds};

fn root(row: OutboxRow) -> NotificationRow {
    NotificationRow { row, tenant_id: TenantId::ROOT }
}

fn outbox(world: &World) -> Outbox<NotificationRow> {
    let mut templates = TemplateCatalogue::new();
    templates.add("welcome", Part::Subject, "Hello {{ customer.name }}").unwrap();
    templates.add("welcome", Part::Text, "Dear {{ customer.name }},\nwelcome.").unwrap();
    templates.add("welcome", Part::Html, "<p>Dear {{ customer.name }}</p>").unwrap();
    world
        .outbox()
        .channel(Arc::new(RecordingChannel::new("email")))
        .channel(Arc::new(RecordingChannel::new("sms")))
        .renderer(Arc::new(templates))
        .build()
        .unwrap()
}

fn alice() -> Recipient {
    Recipient::new("alice").at("email", "alice@example.com").at("sms", "+4366012345")
}

fn hello() -> Notification {
    Notification::text("Hello", "Hi there").over("email").to(alice())
}

async fn count(world: &World) -> usize {
    world.rows().page(&Query::new().limit(10_000)).await.unwrap().rows.len()
}

/// Counts what is sent to the database.
struct Counting<'a> {
    inner: &'a mut dyn Connection,
    sent: Vec<String>,
}

impl Connection for Counting<'_> {
    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn execute<'c>(&'c mut self, sql: &'c str, values: &'c [Value]) -> BoxFuture<'c, postrider::Result<u64>> {
        self.sent.push(sql.to_owned());
        self.inner.execute(sql, values)
    }

    fn fetch<'c>(
        &'c mut self,
        sql: &'c str,
        values: &'c [Value],
        kinds: &'c [Kind],
    ) -> BoxFuture<'c, postrider::Result<Vec<Fetched>>> {
        self.sent.push(sql.to_owned());
        self.inner.fetch(sql, values, kinds)
    }
}

on_each! {
    /// Contract C2.1, case C36: rolled back, no row exists; committed, the rows exist.
    async fn rows_live_and_die_with_the_callers_transaction(world: World) {
        let outbox = outbox(&world);
        let mut open = world.database.begin().await.unwrap();
        let lost = outbox.service().root().enqueue(open.connection(), &hello(), root).await.unwrap();
        assert_eq!(lost.created().count(), 1);
        open.rollback().await.unwrap();
        assert_eq!(count(&world).await, 0);

        let mut open = world.database.begin().await.unwrap();
        let kept = outbox.service().root().enqueue(open.connection(), &hello(), root).await.unwrap();
        open.commit().await.unwrap();
        let id = kept.created().next().unwrap();
        let row = world.find(id).await.row;
        assert_eq!((row.subject.as_deref(), row.body.as_deref()), (Some("Hello"), Some("Hi there")));
        assert_eq!((row.recipient.as_str(), row.recipient_address.as_str()), ("alice", "alice@example.com"));
        assert_eq!(row.dedupe_key, id.to_string());
        assert_eq!(row.state.next_attempt_at, world.now());
    }

    /// Contract C2.4: one round trip for many rows, and nothing but the insert: no NOTIFY.
    async fn five_hundred_rows_cost_one_round_trip(world: World) {
        let outbox = outbox(&world);
        let mut notification = Notification::text("Hello", "Hi").over("email");
        for n in 0..500 {
            notification = notification.to(Recipient::new(format!("u{n}")).at("email", format!("u{n}@example.com")));
        }
        let mut open = world.database.begin().await.unwrap();
        let mut counting = Counting { inner: open.connection(), sent: Vec::new() };
        let enqueued = outbox.service().root().enqueue(&mut counting, &notification, root).await.unwrap();
        assert_eq!(enqueued.created().count(), 500);
        assert_eq!(counting.sent.len(), 1);
        assert!(counting.sent[0].starts_with("INSERT INTO"));
        assert!(!counting.sent[0].to_lowercase().contains("notify"));
        open.commit().await.unwrap();
        assert_eq!(count(&world).await, 500);
    }

    /// Contract C1: one row per recipient × channel; C1.1: copies on e-mail rows alone.
    async fn a_notification_expands_to_recipients_times_channels(world: World) {
        let outbox = outbox(&world);
        let bob = Recipient::new("bob").at("email", "bob@example.com").at("sms", "+43").cc("boss@example.com");
        let notification = hello().over("sms").to(bob).dedupe(Dedupe::Prefix("order-7".into()));
        let enqueued = outbox.in_transaction(enqueue_root(&outbox, notification)).await.unwrap();
        let ids: Vec<_> = enqueued.created().collect();
        let mut seen = Vec::new();
        for id in ids {
            let row = world.find(id).await.row;
            seen.push((row.recipient, row.channel, row.cc_addresses.len(), row.dedupe_key));
        }
        let expected = [
            ("alice", "email", 0, "order-7:email:alice"),
            ("alice", "sms", 0, "order-7:sms:alice"),
            ("bob", "email", 1, "order-7:email:bob"),
            ("bob", "sms", 0, "order-7:sms:bob"),
        ];
        let expected: Vec<_> =
            expected.map(|(who, channel, cc, key)| (who.to_owned(), channel.to_owned(), cc, key.to_owned())).into();
        assert_eq!(seen, expected);
    }

    /// Contract C2.1: rendered first; the rendered content is what is stored. Case C51.
    async fn a_template_is_rendered_before_the_insert(world: World) {
        let outbox = outbox(&world);
        let name = "Ann's & \"Bob's\" <Ltd>";
        let notification = Notification::template("welcome", json!({"customer": {"name": name}})).over("email").to(alice());
        let enqueued = outbox.in_transaction(enqueue_root(&outbox, notification)).await.unwrap();
        let row = world.find(enqueued.created().next().unwrap()).await.row;
        assert_eq!(row.subject.unwrap(), format!("Hello {name}"));
        assert_eq!(row.body.unwrap(), format!("Dear {name},\nwelcome."));
        let html = row.payload.unwrap()["html"].as_str().unwrap().to_owned();
        assert_eq!(html, "<p>Dear Ann&#x27;s &amp; &quot;Bob&#x27;s&quot; &lt;Ltd&gt;</p>");
        assert_eq!(row.template.as_deref(), Some("welcome"));
    }

    /// Every refusal is clear, comes before the first statement, and leaves the transaction usable.
    /// Contract C2.1, C2.5; cases C06, C24, C52.
    async fn bad_input_is_refused_and_nothing_is_written(world: World) {
        let outbox = outbox(&world);
        let given = |subject: &str, text: &str| Content::Given {
            subject: Some(subject.into()),
            text: Some(text.into()),
            html: None,
        };
        let to = |content| Notification::new(content).over("email").to(alice());
        let key = |key: String| hello().dedupe(Dedupe::Key(key));
        let cases: Vec<(&str, Notification, ErrorKind, &str)> = vec![
            ("no recipient", Notification::text("a", "b").over("email"), ErrorKind::Invalid, "no recipient"),
            ("no channel", Notification::text("a", "b").to(alice()), ErrorKind::Invalid, "no channel"),
            ("unknown channel", hello().over("pigeon"), ErrorKind::Invalid, "pigeon"),
            (
                "no address",
                Notification::text("a", "b").over("sms").to(Recipient::new("bob").at("email", "bob@example.com")),
                ErrorKind::Invalid,
                "no address",
            ),
            (
                "missing template",
                Notification::template("welcom", json!({})).over("email").to(alice()),
                ErrorKind::Template,
                "welcome",
            ),
            (
                "missing variable",
                Notification::template("welcome", json!({"customer": {}})).over("email").to(alice()),
                ErrorKind::Template,
                "line 1",
            ),
            ("NUL in a subject", to(given("a\0b", "c")), ErrorKind::Invalid, "NUL"),
            ("NUL in a text", to(given("a", "b\0")), ErrorKind::Invalid, "NUL"),
            ("NUL in a payload", hello().payload(json!({"a": ["b\0"]})), ErrorKind::Invalid, "NUL"),
            ("NUL in metadata", hello().metadata(json!({"a\0": 1})), ErrorKind::Invalid, "NUL"),
            ("NUL in a key", key("k\0".into()), ErrorKind::Invalid, "NUL"),
            (
                "NUL in a variable",
                Notification::template("welcome", json!({"customer": {"name": "a\0"}})).over("email").to(alice()),
                ErrorKind::Invalid,
                "NUL",
            ),
            (
                "a line break through a variable",
                Notification::template("welcome", json!({"customer": {"name": "a\r\nBcc: v@example.net"}}))
                    .over("email")
                    .to(alice()),
                ErrorKind::Invalid,
                "line break",
            ),
            ("a key too long", key("k".repeat(256)), ErrorKind::Invalid, "255"),
            ("a key too long in bytes", key("ü".repeat(128)), ErrorKind::Invalid, "256 bytes"),
            ("an empty key", key(String::new()), ErrorKind::Invalid, "empty"),
            ("one key, two rows", key("k".into()).over("sms"), ErrorKind::Invalid, "prefix"),
            (
                "two rows, same key",
                hello().to(Recipient::new("alice").at("email", "other@example.com")).dedupe(Dedupe::Prefix("p".into())),
                ErrorKind::Invalid,
                "same dedupe key",
            ),
            (
                "composed key too long",
                hello().dedupe(Dedupe::Prefix("p".repeat(250))),
                ErrorKind::Invalid,
                "255",
            ),
            ("no attempts", hello().max_attempts(0), ErrorKind::Invalid, "max_attempts"),
            ("payload no object", hello().payload(json!([1])), ErrorKind::Invalid, "object"),
            (
                "expires before it is sent",
                hello().send_at(world.now().plus(seconds(9))).expires_at(world.now()),
                ErrorKind::Invalid,
                "expires",
            ),
            ("huge content", to(given("a", &"x".repeat(17 * 1024 * 1024))), ErrorKind::Invalid, "16777216"),
        ];
        let mut open = world.database.begin().await.unwrap();
        let mut counting = Counting { inner: open.connection(), sent: Vec::new() };
        for (name, notification, kind, says) in &cases {
            let error = outbox.service().root().enqueue(&mut counting, notification, root).await.unwrap_err();
            assert_eq!(error.kind(), *kind, "{name}: {error}");
            assert!(error.to_string().contains(says), "{name}: {error}");
        }
        assert!(counting.sent.is_empty());
        // The caller's transaction goes on as if nothing had been asked.
        let kept = outbox.service().root().enqueue(open.connection(), &hello(), root).await.unwrap();
        open.commit().await.unwrap();
        assert_eq!(kept.created().count(), 1);
        assert_eq!(count(&world).await, 1);
    }

    /// Sending later: the row is not due before its time.
    async fn a_row_can_be_sent_later(world: World) {
        let outbox = outbox(&world);
        let at = world.now().plus(seconds(3_600));
        let enqueued = outbox.in_transaction(enqueue_root(&outbox, hello().send_at(at))).await.unwrap();
        let id = enqueued.created().next().unwrap();
        assert_eq!(world.state(id).await.next_attempt_at, at);
        assert!(world.rows().claim(id, world.now(), at, "n").await.unwrap().is_none());
        assert!(world.rows().claim(id, at, at.plus(seconds(1)), "n").await.unwrap().is_some());
    }

    /// Contract C2.2: a duplicate is told row by row.
    async fn a_duplicate_is_told_row_by_row(world: World) {
        let outbox = outbox(&world);
        let keyed = || hello().over("sms").dedupe(Dedupe::Prefix("p".into()));
        let first = outbox.in_transaction(enqueue_root(&outbox, keyed())).await.unwrap();
        let again = outbox.in_transaction(enqueue_root(&outbox, keyed())).await.unwrap();
        let existing: Vec<_> = first.created().map(|existing| Inserted::Duplicate { existing }).collect();
        assert_eq!(again.rows().iter().map(|row| row.outcome).collect::<Vec<_>>(), existing);
        assert_eq!(again.created().count(), 0);
    }

    /// Everything that a caller can ask for comes back from the database as it was given.
    async fn every_field_survives_the_database(world: World) {
        let outbox = outbox(&world);
        let notification = Notification::new(Content::Given {
            subject: Some("Grüße 😀".into()),
            text: Some("line\r\nline\ttab 'quote' \"double\" \\ back".into()),
            html: Some("<p>ü</p>".into()),
        })
        .over("email")
        .to(alice().cc("c@example.com").display_name("Alice Ä").locale("de-AT"))
        .payload(json!({"big": 9_007_199_254_740_993_i64, "nested": {"a": [1, null, "x"]}}))
        .metadata(json!({"order": 7}))
        .priority(-3)
        .ordering_key("customer-9")
        .category("receipt")
        .traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .max_attempts(7)
        .expires_at(Timestamp::parse("2026-03-02T00:00:00.123456Z").unwrap());
        let enqueued = outbox.in_transaction(enqueue_root(&outbox, notification)).await.unwrap();
        let row = world.find(enqueued.created().next().unwrap()).await.row;
        assert_eq!(row.subject.as_deref(), Some("Grüße 😀"));
        assert_eq!(row.body.as_deref(), Some("line\r\nline\ttab 'quote' \"double\" \\ back"));
        let payload = row.payload.unwrap();
        assert_eq!(payload["big"], 9_007_199_254_740_993_i64);
        assert_eq!((payload["html"].as_str(), payload["to_name"].as_str()), (Some("<p>ü</p>"), Some("Alice Ä")));
        assert_eq!(row.metadata.unwrap(), json!({"order": 7}));
        assert_eq!(row.cc_addresses, ["c@example.com"]);
        assert_eq!((row.priority, row.max_attempts), (-3, 7));
        assert_eq!(row.ordering_key.as_deref(), Some("customer-9"));
        assert_eq!((row.category.as_deref(), row.locale.as_deref()), (Some("receipt"), Some("de-AT")));
        assert!(row.traceparent.unwrap().starts_with("00-4bf9"));
        assert_eq!(row.expires_at.unwrap().to_string(), "2026-03-02T00:00:00.123456Z");
    }
}

/// Case C36: the commit itself fails, and the caller hands its rows over all the same.
mod a_failed_commit_sends_nothing {
    use sqlx::Connection as _;

    use super::*;
    use crate::support::node;

    /// A constraint that is looked at only when the transaction commits.
    const TABLES: [&str; 2] = [
        "CREATE TABLE customer (id INTEGER PRIMARY KEY)",
        "CREATE TABLE purchase (customer INTEGER REFERENCES customer (id) DEFERRABLE INITIALLY DEFERRED)",
    ];
    const ORPHAN: &str = "INSERT INTO purchase (customer) VALUES (7)";

    async fn nothing_was_sent(
        world: &World,
        outbox: &Outbox<NotificationRow>,
        channel: &RecordingChannel,
        enqueued: postrider::accept::Enqueued,
    ) {
        let dispatcher = outbox.start(node("n1")).unwrap();
        assert_eq!(enqueued.created().count(), 1);
        dispatcher.dispatch(enqueued);
        // A row that does exist goes out after it: the hand-over was looked at.
        let good = world.pending().await;
        dispatcher.dispatch([good]);
        channel.wait_for(1).await;
        dispatcher.shutdown().await;
        let delivered: Vec<_> = channel.deliveries().iter().map(|row| row.id).collect();
        assert_eq!(delivered, [good]);
        assert_eq!(count(world).await, 1);
    }

    fn with_channel(world: &World) -> (Outbox<NotificationRow>, Arc<RecordingChannel>) {
        let channel = Arc::new(RecordingChannel::new("email"));
        (world.outbox().channel(channel.clone()).build().unwrap(), channel)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn by_a_deferred_constraint_on_postgres() {
        let Some(world) = World::postgres().await else { return };
        for table in TABLES {
            world.sql(table).await;
        }
        let (outbox, channel) = with_channel(&world);
        let mut caller = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
        let mut tx = caller.begin().await.unwrap();
        sqlx::query(ORPHAN).execute(&mut *tx).await.unwrap();
        let enqueued = outbox.service().root().enqueue(&mut tx, &hello(), root).await.unwrap();
        tx.commit().await.unwrap_err();
        nothing_was_sent(&world, &outbox, &channel, enqueued).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn by_a_deferred_constraint_on_sqlite() {
        let world = World::sqlite().await.unwrap();
        for table in TABLES {
            world.sql(table).await;
        }
        let (outbox, channel) = with_channel(&world);
        let mut caller = sqlx::SqliteConnection::connect(world.test.url()).await.unwrap();
        let mut tx = caller.begin_with("BEGIN IMMEDIATE").await.unwrap();
        sqlx::query(ORPHAN).execute(&mut *tx).await.unwrap();
        let enqueued = outbox.service().root().enqueue(&mut tx, &hello(), root).await.unwrap();
        // SQLite keeps the transaction open after a refused COMMIT: it must be rolled back.
        tx.commit().await.unwrap_err();
        caller.close().await.unwrap();
        nothing_was_sent(&world, &outbox, &channel, enqueued).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn by_a_connection_lost_at_commit_on_postgres() {
        let Some(world) = World::postgres().await else { return };
        let (outbox, channel) = with_channel(&world);
        let mut caller = sqlx::PgConnection::connect(world.test.url()).await.unwrap();
        let mut tx = caller.begin().await.unwrap();
        let enqueued = outbox.service().root().enqueue(&mut tx, &hello(), root).await.unwrap();
        world
            .sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()",
            )
            .await;
        tx.commit().await.unwrap_err();
        nothing_was_sent(&world, &outbox, &channel, enqueued).await;
    }
}

type Work = Box<
    dyn for<'c> Fn(&'c mut dyn Connection) -> BoxFuture<'c, postrider::Result<postrider::accept::Enqueued>>
        + Send
        + Sync,
>;

/// The closure that an application would write around its own business statements.
fn enqueue_root(outbox: &Outbox<NotificationRow>, notification: Notification) -> Work {
    let service = Arc::new(outbox.service().clone());
    let notification = Arc::new(notification);
    Box::new(move |connection| {
        let (service, notification) = (Arc::clone(&service), Arc::clone(&notification));
        Box::pin(async move { service.root().enqueue(connection, &notification, root).await })
    })
}

/// A transaction of the library's own is a connection like the caller's.
#[expect(dead_code, reason = "compiles or not: the seam is object safe in both roles")]
fn a_transaction_is_a_connection(mut open: Box<dyn Transaction>) {
    let _: &mut dyn Connection = open.connection();
}
