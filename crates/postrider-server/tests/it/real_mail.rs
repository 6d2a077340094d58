//! Real mail servers: a row that an application wrote in its own transaction, in plain SQL, arrives;
//! rolled back, it does not. Contract C2.1, C5.2; case C36.

use postrider_testkit::aiosmtpd::Aiosmtpd;
use postrider_testkit::database::TestDatabase;
use postrider_testkit::postfix::Postfix;
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

use crate::support::{Daemon, Folder};

/// A mail server of somebody else.
enum Server {
    Aiosmtpd(Aiosmtpd),
    Postfix(Postfix),
}

impl Server {
    fn port(&self) -> u16 {
        match self {
            Self::Aiosmtpd(server) => server.port(),
            Self::Postfix(server) => server.port(),
        }
    }

    /// The messages that arrived, once there are `count`.
    fn wait_for(&self, count: usize) -> Vec<String> {
        match self {
            Self::Aiosmtpd(server) => {
                let received = server.wait_for(count);
                received.iter().map(|message| String::from_utf8_lossy(&message.data).into_owned()).collect()
            }
            Self::Postfix(server) => server.wait_for(count),
        }
    }
}

/// An application with a connection of its own; it knows nothing of postrider but the table.
enum Application {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Application {
    async fn connect(database: &TestDatabase) -> Self {
        match database.path() {
            Some(_) => Self::Sqlite(SqliteConnection::connect(database.url()).await.unwrap()),
            None => Self::Postgres(PgConnection::connect(database.url()).await.unwrap()),
        }
    }

    async fn run(&mut self, sql: &str) {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(connection) => connection.execute(sqlx::raw_sql(sql)).await.map(drop),
            Self::Postgres(connection) => connection.execute(sqlx::raw_sql(sql)).await.map(drop),
        }
        .unwrap();
    }

    /// Writes an order and its receipt, as an application in any language would, and ends the
    /// transaction with `end`.
    async fn order(&mut self, number: u32, end: &str) {
        self.run(if matches!(self, Self::Sqlite(_)) { "BEGIN IMMEDIATE" } else { "BEGIN" }).await;
        self.run(&format!("INSERT INTO orders (number) VALUES ({number})")).await;
        self.run(&format!(
            "INSERT INTO postrider_outbox (channel, recipient_address, subject, body, dedupe_key) \
             VALUES ('email', 'customer{number}@example.com', 'Receipt {number}', 'Grüße, thank you.', 'receipt-{number}')"
        ))
        .await;
        self.run(end).await;
    }
}

async fn committed_arrives_and_rolled_back_does_not(server: &Server, database: &TestDatabase) {
    let folder = Folder::new();
    let url = match database.path() {
        Some(path) => format!("sqlite:{}", path.display()),
        None => database.url().to_owned(),
    };
    let port = server.port();
    folder.write(
        "postrider.toml",
        &format!(
            "database = \"{url}\"\n[email]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\nfrom = \"Shop <shop@example.com>\"\n"
        ),
    );
    folder.run(&["migrate"]).ok();
    let mut application = Application::connect(database).await;
    application.run("CREATE TABLE orders (number INTEGER PRIMARY KEY)").await;

    // Row first, daemon after.
    application.order(1, "COMMIT").await;
    application.order(2, "ROLLBACK").await;
    let daemon = Daemon::start(&folder, &[]);
    server.wait_for(1);
    // Daemon first, row after.
    application.order(3, "ROLLBACK").await;
    application.order(4, "COMMIT").await;
    let messages = server.wait_for(2);

    let mut subjects: Vec<_> =
        messages.iter().map(|m| m.lines().find(|line| line.starts_with("Subject: ")).unwrap().to_owned()).collect();
    subjects.sort();
    assert_eq!(subjects, ["Subject: Receipt 1", "Subject: Receipt 4"]);
    assert!(messages.iter().all(|message| message.contains("@example.com>") && message.contains("Message-I")));
    let rows = folder.json(&["list"]);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let row = folder.wait_for(id, "SENT", &[]);
        assert_eq!((&row["sandbox"], &row["attempts"]), (&false.into(), &1.into()));
    }
    assert_eq!(daemon.stop(), Some(0));
}

async fn on_both_databases(server: Option<Server>, start: impl Fn() -> Option<Server>) {
    let Some(server) = server else { return };
    committed_arrives_and_rolled_back_does_not(&server, &TestDatabase::sqlite()).await;
    drop(server);
    if let (Some(server), Some(database)) = (start(), TestDatabase::postgres().await) {
        committed_arrives_and_rolled_back_does_not(&server, &database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn aiosmtpd_gets_what_was_committed() {
    let start = || Aiosmtpd::start().map(Server::Aiosmtpd);
    on_both_databases(start(), start).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postfix_gets_what_was_committed() {
    let start = || Postfix::start().map(Server::Postfix);
    on_both_databases(start(), start).await;
}
