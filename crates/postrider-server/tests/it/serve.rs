//! `postrider serve`: starting and stopping.

use crate::support::{Daemon, Folder, finish, wait_until};

#[test]
fn both_signals_end_it_in_an_orderly_way() {
    for signal in ["TERM", "INT"] {
        let folder = Folder::new();
        let mut daemon = Daemon::start(&folder, &[]);
        daemon.signal(signal);
        assert_eq!(daemon.ended().code(), Some(0));
        daemon.wait_for_line("stopped");
    }
}

#[test]
fn for_programs_it_says_in_json_that_it_is_ready() {
    let folder = Folder::new();
    let mut daemon = Daemon::spawn(folder.command(&["serve", "--json", "--set", "node=n1"]));
    daemon.wait_for_line("\"message\":\"delivering\"");
    for line in daemon.stderr().lines() {
        let log: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(log["level"].is_string(), "{log}");
    }
    // The two streams are read by threads of their own.
    let ready: serde_json::Value = wait_until("the line on stdout", || serde_json::from_str(&daemon.stdout()).ok());
    assert_eq!((&ready["event"], &ready["email"], &ready["node"]), (&"ready".into(), &"sandbox".into(), &"n1".into()));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn logs_never_hold_an_address_or_a_body() {
    let folder = Folder::new();
    let mut command = folder.command(&["serve"]);
    command.env("POSTRIDER_LOG", "trace");
    let mut daemon = Daemon::spawn(command);
    daemon.wait_for_line("delivering");
    let send = ["send", "--to", "alice@example.com", "--body", "top secret words", "--recipient", "user-17", "--json"];
    let mut command = folder.command(&send);
    command.env("POSTRIDER_LOG", "trace");
    let sent = finish(command, "").ok();
    let id = sent.json()[0]["id"].as_str().unwrap().to_owned();
    folder.wait_for(&id, "SENT", &[]);
    daemon.wait_for_line(&id);
    daemon.signal("TERM");
    assert_eq!(daemon.ended().code(), Some(0));
    let logs = daemon.stderr().replace("--to alice@example.com", "") + &sent.stderr;
    // Statements are not logged either, with or without what is bound to them.
    for word in ["alice@example.com", "top secret words", "user-17", "INSERT INTO", "UPDATE "] {
        assert!(!logs.contains(word), "{word} is in {logs}");
    }
}

#[test]
fn a_wrong_filter_for_logs_is_refused() {
    let folder = Folder::new();
    let mut command = folder.command(&["list"]);
    command.env("POSTRIDER_LOG", "postrider=loud");
    finish(command, "").refused(2, &["POSTRIDER_LOG is \"postrider=loud\""]);
}

#[test]
fn two_daemons_share_one_database() {
    let folder = Folder::new();
    let (one, two) = (Daemon::start(&folder, &[]), Daemon::start(&folder, &[]));
    let ids: Vec<String> = (0..5).map(|_| folder.send(&[])).collect();
    for id in &ids {
        let row = folder.wait_for(id, "SENT", &[]);
        assert_eq!((&row["attempts"], &row["claim_seq"]), (&1.into(), &1.into()));
    }
    assert_eq!((one.stop(), two.stop()), (Some(0), Some(0)));
}

#[test]
fn what_was_not_said_yet_is_said_at_the_end() {
    let folder = Folder::new();
    let mut daemon = Daemon::start(&folder, &[]);
    let id = folder.send(&[]);
    folder.wait_for(&id, "SENT", &[]);
    daemon.signal("TERM");
    assert_eq!(daemon.ended().code(), Some(0));
    daemon.wait_for_line("delivered 1");
}
