//! `list`, `show` and `requeue`.

use crate::support::{Daemon, Folder};

const NOBODY: &str = "0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44";

#[test]
fn a_list_is_newest_first_filtered_and_paged() {
    let folder = Folder::new();
    let ids: Vec<String> =
        [&[][..], &["--tenant", "acme"], &["--in", "1h"]].into_iter().map(|more| folder.send(more)).collect();
    let listed = |more: &[&str]| -> Vec<String> {
        let rows = folder.json(&[&["list"], more].concat());
        rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(listed(&[]), newest_first);
    assert_eq!(listed(&["--limit", "2"]), newest_first[..2]);
    assert_eq!(listed(&["--before", &newest_first[1]]), newest_first[2..]);
    assert_eq!(listed(&["--tenant", "acme"]), [ids[1].clone()]);
    assert_eq!(listed(&["--status", "pending", "--channel", "email"]), newest_first);
    assert!(listed(&["--status", "SENT"]).is_empty());
    let people = folder.run(&["list", "--limit", "2"]).ok();
    assert!(people.stdout.starts_with("ID  "), "{people:?}");
    assert!(people.stdout.contains("TENANT") && people.stdout.contains("acme"), "{people:?}");
    assert!(people.stderr.contains(&format!("postrider list --before {}", newest_first[1])), "{people:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new();
    folder.send(&[]);
    assert_eq!(Daemon::stop_reading(folder.command(&["list", "--json"])).code(), Some(0));
}

#[test]
fn a_row_of_another_program_cannot_move_the_cursor() {
    let folder = Folder::new();
    folder.send(&["--recipient", "evil\u{1b}[2J", "--body", "a\u{1b}]0;x\u{7}b"]);
    let id = folder.json(&["list"])[0]["id"].as_str().unwrap().to_owned();
    for run in [folder.run(&["list"]).ok(), folder.run(&["show", &id]).ok()] {
        assert!(!run.stdout.contains(['\u{1b}', '\u{7}']), "{run:?}");
    }
}

#[test]
fn a_row_shows_what_happens_next() {
    let folder = Folder::new();
    let id = folder.send(&[]);
    let shown = folder.run(&["show", &id]).ok().stdout;
    assert!(shown.contains("PENDING") && shown.contains("`postrider serve` delivers it"), "{shown}");
    let json = folder.json(&["show", &id]);
    assert_eq!((&json["row"]["id"], &json["history"]), (&id.as_str().into(), &serde_json::json!([])));
}

#[test]
fn a_row_that_is_not_there_ends_with_3() {
    let folder = Folder::new();
    let id = folder.send(&[]);
    folder.run(&["show", NOBODY]).refused(3, &["error: there is no row 0199f5b1"]);
    let run = folder.run(&["show", NOBODY, "--json"]).refused(3, &[]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    // The others are done all the same.
    let run = folder.run(&["requeue", NOBODY, &id]).refused(3, &["there is no row"]);
    assert!(run.stdout.contains("was waiting already"), "{run:?}");
}

/// Runs a statement on the folder's SQLite file, whatever its constraints say: a table of the
/// application's own may have none.
async fn change(folder: &Folder, sql: &'static str) {
    let url = format!("sqlite://{}", folder.path().join("postrider.db").display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql("PRAGMA ignore_check_constraints = ON").execute(&mut connection).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_shown_as_far_as_it_can() {
    let folder = Folder::new();
    let broken = folder.send(&[]);
    change(&folder, "UPDATE postrider_outbox SET payload = '{broken', attempts = 2").await;
    let good = folder.send(&[]);
    let listed = folder.json(&["list"]);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&good.as_str().into(), &broken.as_str().into()), "{listed}");
    let row = &listed[1];
    assert!(row["unreadable"].as_str().unwrap().starts_with("payload: no JSON"), "{row}");
    assert_eq!((&row["status"], &row["subject"]), (&"PENDING".into(), &"Hello".into()));
    assert_eq!((&row["payload"], &row["attempts"], &row["tenant"]), (&"{broken".into(), &2.into(), &"".into()));
    let people = folder.run(&["list"]).ok();
    assert!(
        people.stdout.contains("PENDING (unreadable)") && people.stdout.contains("alice@example.com"),
        "{people:?}"
    );
    assert!(people.stderr.contains(&format!("the row {broken} cannot be read: payload")), "{people:?}");
    let shown = folder.run(&["show", &broken]).ok().stdout;
    for said in ["unreadable", "payload: no JSON", "{broken", "alice@example.com", "PENDING"] {
        assert!(shown.contains(said), "{said} is not in {shown}");
    }
    let shown = folder.json(&["show", &broken]);
    assert_eq!((&shown["row"]["status"], &shown["history"]), (&"PENDING".into(), &serde_json::json!([])));
    assert!(shown["unreadable"].as_str().unwrap().contains("payload"), "{shown}");
    // Other columns, the status among them.
    change(&folder, "UPDATE postrider_outbox SET payload = NULL, status = 'ODD'").await;
    assert_eq!(folder.json(&["list"])[0]["status"], "ODD");
    assert!(folder.run(&["show", &broken]).ok().stdout.contains("ODD"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_id_is_none_stops_no_list() {
    let folder = Folder::new();
    folder.send(&[]);
    change(&folder, "UPDATE postrider_outbox SET id = x'0102'").await;
    let good = folder.send(&[]);
    let listed = folder.json(&["list"]);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&good.into(), &serde_json::Value::Null));
    assert!(listed[1]["unreadable"].as_str().unwrap().starts_with("id: "), "{listed}");
    assert!(folder.run(&["list"]).ok().stdout.contains("(id unreadable)"));
}

#[test]
fn the_beginning_of_an_id_names_a_row_if_it_is_the_only_one() {
    let folder = Folder::new();
    let (one, two) = (folder.send(&[]), folder.send(&[]));
    // Up to where they differ, and one character more.
    let same = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    let shown = folder.json(&["show", &one[..=same]]);
    assert_eq!(shown["row"]["id"], one);
    assert_eq!(folder.json(&["show", &two[..=same].replace('-', "").to_uppercase()])["row"]["id"], two);
    assert_eq!(folder.json(&["requeue", &one[..=same]])[0]["id"], one);
    folder.run(&["show", &one[..8]]).refused(2, &["several ids begin with", &one, &two]);
    folder.run(&["requeue", "ffffffff"]).refused(3, &["there is no row whose id begins with ffffffff"]);
    folder.run(&["show", &one[..7]]).refused(2, &["8 or more characters"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_time_is_over_is_requeued_only_with_another() {
    let folder = Folder::new();
    let id = folder.send(&["--expires-at", "2999-01-01T00:00:00Z"]);
    let expire = "UPDATE postrider_outbox SET status = 'SUPPRESSED', reason_code = 'expired', expires_at = 1000000";
    change(&folder, expire).await;
    let refused = folder.run(&["requeue", &id]);
    refused.refused(2, &["expired at 1970-01-01T00:00:01Z", "--expires-in", "--expires-at TIME", "--no-expiry"]);
    folder.run(&["requeue", &id, "--expires-at", "2000-01-01T00:00:00Z"]).refused(2, &["is past"]);
    folder.run(&["requeue", &id, "--expires-in", "-1d"]).refused(2, &["the past cannot be waited for"]);
    assert_eq!(folder.json(&["show", &id])["row"]["status"], "SUPPRESSED");
    let expires_at = |more: &[&str]| {
        assert_eq!(folder.json(&[&["requeue", &id][..], more].concat())[0]["outcome"], "reset");
        folder.json(&["show", &id])["row"]["expires_at"].clone()
    };
    assert!(expires_at(&["--expires-in", "2d"]).as_str() > Some("2026"));
    change(&folder, expire).await;
    assert_eq!(expires_at(&["--expires-at", "2999-01-01T00:00:00Z"]), "2999-01-01T00:00:00.000000Z");
    change(&folder, expire).await;
    assert_eq!(expires_at(&["--no-expiry"]), serde_json::Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_being_delivered_is_a_conflict() {
    let folder = Folder::new();
    let id = folder.send(&[]);
    let url = format!("sqlite://{}", folder.path().join("postrider.db").display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    let far =
        "UPDATE postrider_outbox SET status = 'SENDING', claimed_by = 'other', next_attempt_at = 99999999999999999";
    sqlx::raw_sql(far).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    folder.run(&["requeue", &id]).refused(4, &["is being delivered (SENDING)", "try again"]);
    let run = folder.run(&["requeue", &id, "--json"]).refused(4, &[]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "conflict");
    let shown = folder.run(&["show", &id]).ok().stdout;
    assert!(shown.contains("is being delivered by other"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_row_is_made_due_now() {
    let folder = Folder::new();
    let (late, soon, sent) = (folder.send(&["--in", "1d"]), folder.send(&["--in", "1h"]), folder.send(&[]));
    change(&folder, "UPDATE postrider_outbox SET status = 'SENT' WHERE next_attempt_at <= created_at").await;
    let run = folder.run(&["requeue", &late]).ok();
    assert!(run.stdout.contains("was waiting already"), "{run:?}");
    assert!(run.stderr.contains(&format!("`postrider expedite {late}` makes it due now")), "{run:?}");
    let run = folder.run(&["expedite", &late, NOBODY]).refused(3, &["there is no row"]);
    assert!(run.stdout.contains("due now"), "{run:?}");
    assert_eq!(folder.json(&["expedite", &soon])[0]["outcome"], "due");
    for id in [&late, &soon] {
        let shown = folder.run(&["show", id]).ok().stdout;
        assert!(shown.contains("due since"), "{shown}");
    }
    folder.run(&["expedite", &sent]).refused(4, &["is SENT, which is final; requeue it"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_not_delivered_is_told() {
    let folder = Folder::new();
    let id = folder.send(&["--cc", "carol@example.com"]);
    change(&folder, "UPDATE postrider_outbox SET status = 'SENT', reason_code = 'partial', provider = 'smtp'").await;
    let listed = folder.run(&["list"]).ok().stdout;
    assert!(listed.contains("SENT (partial)"), "{listed}");
    let shown = folder.run(&["show", &id]).ok().stdout;
    assert!(shown.contains("SENT (partial)") && shown.contains("a copy was not delivered"), "{shown}");
    assert!(shown.contains(&format!("`postrider requeue {id}`")), "{shown}");
}
