//! A program in Python writes rows in its own transactions; the daemon delivers what it committed.

use postrider_testkit::database::TestDatabase;
use postrider_testkit::python::Python;
use serde_json::{Value as Json, json};

use crate::schema::run_sql;
use crate::support::{Daemon, Folder, wait_until};

const WRITER: &str = include_str!("python_writer.py");

/// A folder with a daemon on a database where an application has its table.
struct Shop {
    python: Python,
    database: TestDatabase,
    folder: Folder,
    daemon: Daemon,
}

impl Shop {
    async fn open(database: Option<TestDatabase>) -> Option<Self> {
        let (database, python) = (database?, Python::find()?);
        let folder = Folder::new();
        let on = ["--database", database.url()];
        folder.run(&[&["migrate"][..], &on].concat()).ok();
        run_sql(database.url(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)").await;
        // Without a notification a row waits no longer than that.
        let daemon = Daemon::start(&folder, &[&on[..], &["--set", "dispatch.poll_max=300ms"]].concat());
        Some(Self { python, database, folder, daemon })
    }

    /// One transaction of the application; for each row, whether it was written.
    fn order(&self, work: &Json) -> Json {
        let printed = self.python.run(WRITER, &[self.database.url(), &work.to_string()]);
        serde_json::from_str(&printed).unwrap()
    }

    /// All rows, once so many of them are SENT; newest first.
    fn sent(&self, count: usize) -> Vec<Json> {
        wait_until(&format!("{count} rows to be SENT"), || {
            let rows = self.folder.json(&["list", "--database", self.database.url()]);
            let rows = rows.as_array().unwrap().clone();
            (rows.iter().filter(|row| row["status"] == "SENT").count() == count).then_some(rows)
        })
    }

    async fn close(self) {
        assert_eq!(self.daemon.stop(), Some(0));
        self.database.close().await;
    }
}

async fn rows_are_delivered_if_they_were_committed(database: Option<TestDatabase>) {
    let Some(shop) = Shop::open(database).await else { return };
    let receipt = json!({ "channel": "email", "recipient_address": "alice@example.com", "dedupe_key": "receipt-7",
        "subject": "Your receipt \u{1f4ee}", "body": "Thank you, Zo\u{eb}." });
    let whole = json!({ "channel": "email", "recipient": "user-17", "recipient_address": "bob@example.com",
        "cc_addresses": "[\"carol@example.com\"]", "subject": "News", "payload": "{\"html\": \"<p>Hi</p>\"}",
        "max_attempts": 3, "priority": 5, "next_attempt_at": "2026-01-01T00:00:00+00:00",
        "expires_at": "2999-01-01T00:00:00.123456+00:00", "category": "news", "locale": "de",
        "metadata": "{\"order\": 7}", "tenant_id": "acme", "dedupe_key": "receipt-7" });
    let written = shop.order(&json!({ "order": 7, "rows": [receipt, whole], "commit": true }));
    assert_eq!(written, json!([true, true]));
    let lost = json!({ "channel": "email", "recipient_address": "lost@example.com" });
    assert_eq!(shop.order(&json!({ "order": 8, "rows": [lost], "commit": false })), json!([true]));
    // The transaction goes on after a key that exists, and order 8 was never there.
    let again = shop.order(&json!({ "order": 8, "rows": [receipt, { "channel": "email",
        "recipient_address": "dave@example.com" }], "commit": true }));
    assert_eq!(again, json!([false, true]));
    let rows = shop.sent(3);
    assert_eq!(rows.len(), 3, "{rows:?}");
    let to = |address: &str| rows.iter().find(|row| row["recipient_address"] == address).unwrap();
    let alice = to("alice@example.com");
    assert_eq!((&alice["subject"], &alice["body"]), (&receipt["subject"], &receipt["body"]));
    assert_eq!((&alice["attempts"], &alice["max_attempts"], &alice["tenant"]), (&1.into(), &11.into(), &"".into()));
    let bob = to("bob@example.com");
    assert_eq!((&bob["tenant"], &bob["expires_at"]), (&"acme".into(), &"2999-01-01T00:00:00.123456Z".into()));
    assert_eq!((&bob["payload"]["html"], &bob["metadata"]["order"]), (&"<p>Hi</p>".into(), &7.into()));
    assert_eq!(bob["cc_addresses"], json!(["carol@example.com"]));
    assert!(to("dave@example.com")["dedupe_key"].is_string());
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_python_commits_is_delivered_on_sqlite() {
    rows_are_delivered_if_they_were_committed(Some(TestDatabase::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_python_commits_is_delivered_on_postgres() {
    rows_are_delivered_if_they_were_committed(TestDatabase::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_python_commits_is_delivered_on_mariadb() {
    rows_are_delivered_if_they_were_committed(TestDatabase::mariadb().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_python_writes_by_the_function_is_delivered_on_postgres() {
    let Some(shop) = Shop::open(TestDatabase::postgres().await).await else { return };
    let receipt = json!({ "channel": "email", "recipient_address": "alice@example.com", "subject": "Your receipt",
        "html": "<p>Thank you.</p>", "cc": "[\"carol@example.com\"]", "dedupe_key": "receipt-7", "priority": 5,
        "at": "2026-01-01T00:00:00+00:00", "tenant_id": "acme", "metadata": "{\"order\": 7}" });
    let order = |number: i32, commit: bool| {
        shop.order(&json!({ "order": number, "rows": [receipt], "commit": commit, "function": true }))
    };
    assert_eq!(order(7, false), json!([true]));
    assert_eq!(order(7, true), json!([true]));
    assert_eq!(order(8, true), json!([false]));
    let rows = shop.sent(1);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!((&row["tenant"], &row["dedupe_key"]), (&"acme".into(), &"receipt-7".into()));
    assert_eq!((&row["payload"]["html"], &row["priority"]), (&"<p>Thank you.</p>".into(), &5.into()));
    assert_eq!(row["cc_addresses"], json!(["carol@example.com"]));
    shop.close().await;
}
