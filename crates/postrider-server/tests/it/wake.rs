//! `postrider wake`: the nodes are told of rows that another program wrote.

use postrider_testkit::database::TestDatabase;
use postrider_testkit::server::free_port;

use crate::schema::run_sql;
use crate::support::{Daemon, Folder};

const ROW: &str = "INSERT INTO postrider_outbox (channel, recipient_address, subject, dedupe_key) \
                   VALUES ('email', 'alice@example.com', 'Hello', 'k')";

#[test]
fn bad_input_is_refused() {
    let folder = Folder::new();
    folder.run(&["wake", "now"]).refused(2, &["unexpected argument"]);
    folder.run(&["wake"]).refused(2, &["there is no database at postrider.db yet"]);
    folder.run(&["wake", "--outbox", "x"]).refused(2, &["the configuration has no [[outbox]]"]);
    folder.write("postrider.db", "");
    folder.run(&["wake"]).refused(2, &["has no table postrider_outbox"]);
    let url = format!("postgres://me@127.0.0.1:{}/db", free_port());
    folder.run(&["wake", "--database", &url]).refused(5, &["cannot be reached"]);
}

#[test]
fn where_nothing_can_be_told_it_says_when_the_rows_are_found() {
    let folder = Folder::new();
    folder.run(&["migrate"]).ok();
    let told = folder.run(&["wake", "--set", "dispatch.poll_max=1m30s"]).ok().stdout;
    assert!(told.contains("by themselves, within 1m30s (dispatch.poll_max)"), "{told}");
    let told = folder.json(&["wake"]);
    let expected = serde_json::json!(
        [{ "database": "sqlite:postrider.db", "notified": false, "found_within": "5s" }]
    );
    assert_eq!(told, expected);
}

/// The daemon would not look by itself before the test gives up.
#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_a_sleeping_daemon_is_woken() {
    let Some(database) = TestDatabase::postgres().await else { return };
    let folder = Folder::new();
    let on = ["--database", database.url(), "--set", "dispatch.poll_max=10m", "--set", "dispatch.poll_min=10m"];
    let daemon = Daemon::start(&folder, &on);
    // Its first look, and its listening, have begun.
    let first = folder.send(&on);
    folder.wait_for(&first, "SENT", &on);
    run_sql(database.url(), ROW).await;
    let told = folder.json(&[&["wake"][..], &on].concat());
    assert_eq!((&told[0]["notified"], &told[0]["found_within"]), (&true.into(), &"10m".into()));
    let id = folder.json(&[&["list"][..], &on].concat())[0]["id"].as_str().unwrap().to_owned();
    folder.wait_for(&id, "SENT", &on);
    assert_eq!(daemon.stop(), Some(0));
    database.close().await;
}
