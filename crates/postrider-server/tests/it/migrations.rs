//! Several processes make the tables at once, and one of them is killed at it.

use std::process::{Child, Stdio};
use std::time::Duration;

use postrider::model::{NotificationRow, OutboxEntity};
use postrider::store::{Dialect, schema};
use postrider_testkit::database::TestDatabase;

use crate::support::Folder;

fn start(folder: &Folder, url: &str) -> Child {
    let mut command = folder.command(&["migrate", "--database", url]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Four at once, the first killed after a while; the others all say that the tables are made.
#[expect(clippy::disallowed_methods, reason = "a real process is killed after real time")]
fn race(folder: &Folder, url: &str, kill_after: Duration) {
    let mut first = start(folder, url);
    let others: Vec<_> = (0..3).map(|_| start(folder, url)).collect();
    std::thread::sleep(kill_after);
    // It may be done already.
    let _ = first.kill();
    first.wait().unwrap();
    for other in others {
        let ended = other.wait_with_output().unwrap();
        assert!(ended.status.success(), "{kill_after:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

/// Nothing is left to be done, nothing is half done, and rows can be written.
fn complete(folder: &Folder, url: &str) {
    assert_eq!(folder.json(&["migrate", "--database", url])["steps"], 0);
    folder.run(&["schema", "--verify", "--database", url]).ok();
    let id = folder.send(&["--database", url]);
    assert_eq!(folder.json(&["show", &id, "--database", url])["row"]["status"], "PENDING");
}

/// What the first step of an older version left: its statements, and its number.
fn older(dialect: Dialect) -> Vec<String> {
    let steps = schema::steps::<NotificationRow>(dialect, &NotificationRow::table().unwrap()).unwrap();
    let (number, time) = match dialect {
        Dialect::Postgres => ("bigint", "timestamptz"),
        Dialect::Mysql => ("BIGINT", "DATETIME(6)"),
        _ => ("INTEGER", "INTEGER"),
    };
    let made = if dialect == Dialect::Sqlite { "0" } else { "'2026-01-01 00:00:00'" };
    let version = [
        format!("CREATE TABLE postrider_outbox_schema (version {number} PRIMARY KEY, applied_at {time} NOT NULL)"),
        format!("INSERT INTO postrider_outbox_schema VALUES (1, {made})"),
    ];
    version.into_iter().chain(steps.into_iter().next().unwrap()).collect()
}

const KILLED_AFTER: [u64; 5] = [4, 12, 25, 45, 90];

#[test]
fn a_killed_process_leaves_nothing_half_done_on_sqlite() {
    for milliseconds in KILLED_AFTER {
        let folder = Folder::new();
        let url = "sqlite:race.db";
        race(&folder, url, Duration::from_millis(milliseconds));
        complete(&folder, url);
    }
}

/// Defines the races on a server, on empty databases and on older ones.
macro_rules! on_a_server {
    ($($name:ident $open:ident $dialect:expr, $connection:ty;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            use sqlx::{Connection as _, Executor as _};
            for (round, milliseconds) in KILLED_AFTER.into_iter().enumerate() {
                let Some(database) = TestDatabase::$open().await else { return };
                if round % 2 == 1 {
                    let mut connection = <$connection>::connect(database.url()).await.unwrap();
                    for statement in older($dialect) {
                        connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
                    }
                    connection.close().await.unwrap();
                }
                let url = database.url().to_owned();
                tokio::task::spawn_blocking(move || {
                    let folder = Folder::new();
                    race(&folder, &url, Duration::from_millis(milliseconds));
                    complete(&folder, &url);
                })
                .await
                .unwrap();
            }
        })*
    };
}

on_a_server! {
    a_killed_process_leaves_nothing_half_done_on_postgres postgres Dialect::Postgres, sqlx::PgConnection;
    a_killed_process_leaves_nothing_half_done_on_mariadb mariadb Dialect::Mysql, sqlx::MySqlConnection;
}
