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
    assert!(run.stdout.contains("AlreadyPending"), "{run:?}");
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
