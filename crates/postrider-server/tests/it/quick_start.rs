//! What somebody sees who starts the program for the first time.

use crate::support::{Daemon, Folder, wait_until};

#[test]
fn the_first_message_goes_to_the_sandbox_with_nothing_configured() {
    let folder = Folder::new();
    let daemon = Daemon::start(&folder, &[]);
    let banner = daemon.stderr();
    for said in [
        "postrider.db",
        "nothing leaves this machine",
        "[email]",
        "host = ",
        "postrider send --channel email --to alice@example.com --subject Hello --body 'Hi there'",
    ] {
        assert!(banner.contains(said), "{said:?} is not in {banner}");
    }
    let tried = ["send", "--channel", "email", "--to", "alice@example.com", "--subject", "Hello", "--body", "Hi there"];
    let sent = folder.run(&tried).ok();
    assert!(sent.stdout.starts_with("created "), "{sent:?}");
    assert!(sent.stderr.contains("postrider show "), "{sent:?}");
    let row = wait_until("the row to be SENT", || {
        let rows = folder.json(&["list"]);
        assert_eq!(rows.as_array().unwrap().len(), 1);
        (rows[0]["status"] == "SENT").then(|| rows[0].clone())
    });
    assert_eq!((&row["sandbox"], &row["provider"]), (&true.into(), &"sandbox".into()));
    assert_eq!((&row["subject"], &row["body"]), (&"Hello".into(), &"Hi there".into()));
    assert_eq!(row["attempts"], 1);
    let list = folder.run(&["list"]).ok();
    assert!(list.stdout.contains("SENT (sandbox)") && !list.stdout.contains('\u{1b}'), "{list:?}");
    let colored = folder.run(&["list", "--color", "always"]).ok();
    assert!(colored.stdout.contains("\u{1b}[32mSENT (sandbox)\u{1b}[0m"), "{colored:?}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn rows_can_be_written_before_anybody_serves_them() {
    let folder = Folder::new();
    let id = folder.send(&[]);
    assert_eq!(folder.json(&["show", &id])["row"]["status"], "PENDING");
    let _daemon = Daemon::start(&folder, &[]);
    assert_eq!(folder.wait_for(&id, "SENT", &[])["sandbox"], true);
}

#[test]
fn send_can_wait_for_the_end() {
    let folder = Folder::new();
    let late = folder.run(&["send", "--to", "a@example.com", "--subject", "x", "--wait", "0"]);
    late.refused(
        1,
        &["not SENT within 0 s", "is PENDING", "attempts 0", "no node has claimed it yet", "postrider serve"],
    );
    let _daemon = Daemon::start(&folder, &[]);
    let send = ["send", "--to", "a@example.com", "--to", "b@example.com", "--subject", "x", "--wait"];
    let people = folder.run(&send).ok();
    assert_eq!(people.stdout.matches("SENT (sandbox)").count(), 2, "{people:?}");
    let programs = folder.json(&send);
    for row in programs.as_array().unwrap() {
        assert_eq!((&row["outcome"], &row["status"]), (&"created".into(), &"SENT".into()));
        assert_eq!(row["sandbox"], true);
    }
}

#[test]
fn a_requeued_row_is_sent_again() {
    let folder = Folder::new();
    let daemon = Daemon::start(&folder, &[]);
    let id = folder.send(&[]);
    folder.wait_for(&id, "SENT", &[]);
    assert_eq!(daemon.stop(), Some(0));
    let first = folder.json(&["requeue", &id]);
    assert_eq!(first, serde_json::json!([{ "id": id, "outcome": "reset" }]));
    let waiting = folder.json(&["show", &id]);
    assert_eq!((&waiting["row"]["status"], &waiting["row"]["attempts"]), (&"PENDING".into(), &0.into()));
    assert_eq!(waiting["history"][0]["actor"], "tester");
    let again = folder.run(&["requeue", &id]).ok();
    assert!(again.stdout.contains("was waiting already"), "{again:?}");
    let _daemon = Daemon::start(&folder, &[]);
    let row = folder.wait_for(&id, "SENT", &[]);
    assert_eq!(row["provider_message_id"], format!("sandbox-{id}.1"));
    let history = folder.json(&["show", &id])["history"].clone();
    let events: Vec<&str> = history.as_array().unwrap().iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["requeue", "sent"]);
    assert_eq!((&history[1]["status"], &history[1]["at"]), (&"SENT".into(), &row["sent_at"]));
    // The ledger is JSON, and not text that holds it.
    assert_eq!(history[1]["recipients"][0]["address"], "alice@example.com", "{history}");
    assert_eq!(history[0]["recipients"][0]["state"], "accepted", "{history}");
    let shown = folder.run(&["show", &id]).ok().stdout;
    assert!(shown.contains("requeue (status SENT) by tester") && shown.contains("sent (status SENT) by "), "{shown}");
}
