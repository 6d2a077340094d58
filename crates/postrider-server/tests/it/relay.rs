//! A relay instead of the sandbox: whether it works, and stopping while it keeps the program waiting.

use postrider_testkit::server::free_port;
use postrider_testkit::smtp::{Answer, Script, ScriptedSmtp, Step};

use crate::support::{Daemon, Folder, wait_until};

fn configured(folder: &Folder, port: u16) {
    let text =
        format!("[email]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\nfrom = \"Shop <shop@example.com>\"\n");
    folder.write("postrider.toml", &text);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_relay_configured_the_message_leaves() {
    let server = ScriptedSmtp::start(Script::new()).await.unwrap();
    let folder = Folder::new();
    configured(&folder, server.port());
    let daemon = Daemon::start(&folder, &[]);
    assert!(daemon.stderr().contains(&format!("to the relay 127.0.0.1:{}", server.port())));
    let id = folder.send(&[]);
    let row = folder.wait_for(&id, "SENT", &[]);
    assert_eq!(row["sandbox"], false);
    assert_eq!(server.record().messages.len(), 1);
    assert!(server.record().messages[0].text().contains("Subject: Hello\r\n"));
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_fails_is_warned_of_once_and_so_is_its_end() {
    let server =
        ScriptedSmtp::start(Script::new().always(Step::Greeting, Answer::reply("554 not for alice"))).await.unwrap();
    let folder = Folder::new();
    configured(&folder, server.port());
    let ids: Vec<String> = (0..4).map(|_| folder.send(&[])).collect();
    let mut daemon = Daemon::start(&folder, &["--set", "email.retry=1s", "--set", "dispatch.poll_max=100ms"]);
    daemon.wait_for_line("the e-mail relay fails");
    for id in &ids {
        wait_until("the row to be put off", || {
            (folder.json(&["show", id])["row"]["deferrals"].as_i64() > Some(0)).then_some(())
        });
    }
    let cause = "cause=\"it answered the greeting with 554\"";
    let said = daemon.stderr();
    assert!(said.contains(cause) && said.contains(&format!("127.0.0.1:{}", server.port())), "{said}");
    assert!(!said.contains("works again"), "{said}");
    server.follow(Script::new());
    daemon.wait_for_line("the e-mail relay works again");
    for id in &ids {
        folder.wait_for(id, "SENT", &[]);
    }
    let said = daemon.stderr();
    assert_eq!((said.matches(" WARN ").count(), said.matches("works again").count()), (1, 1), "{said}");
    assert!(!said.contains("alice@") && !said.contains("not for alice"), "{said}");
    // No line per row.
    assert!(!said.contains(&ids[0]), "{said}");
    daemon.wait_for_line("delivered ");
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_in_vain_tells_what_happened_so_far() {
    let folder = Folder::new();
    configured(&folder, free_port());
    let id = folder.send(&["--dedupe-key", "k"]);
    let mut daemon = Daemon::start(&folder, &[]);
    daemon.wait_for_line("cause=\"connection refused\"");
    wait_until("the row to be put off", || (folder.json(&["show", &id])["row"]["deferrals"] == 1).then_some(()));
    let again = ["send", "--to", "a@example.com", "--subject", "x", "--dedupe-key", "k", "--wait", "0"];
    let run = folder.run(&again).refused(
        1,
        &["not SENT within 0 s", &id, "is PENDING, attempts 0: was put off", "(destination)", "last error: the relay"],
    );
    assert!(run.stderr.contains("refused") && run.stderr.contains("tried again at"), "{run:?}");
    assert!(!run.stderr.contains("is a `postrider serve` running"), "{run:?}");
    let run = folder.run(&[&again[..], &["--json"]].concat()).refused(1, &[]);
    let row = run.json()[0].clone();
    assert_eq!(
        (&row["status"], &row["attempts"], &row["reason_code"]),
        (&"PENDING".into(), &0.into(), &"destination".into())
    );
    assert!(row["last_error"].as_str().unwrap().contains("refused"), "{row}");
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_greets_the_relay_and_sends_nothing() {
    let script = Script::new().abilities(["AUTH PLAIN"]);
    let server = ScriptedSmtp::start(script.clone()).await.unwrap();
    let folder = Folder::new();
    configured(&folder, server.port());
    let more = "username = \"shop\"\npassword = \"hunter2\"\n";
    let text = std::fs::read_to_string(folder.path().join("postrider.toml")).unwrap();
    folder.write("postrider.toml", &(text + more));
    let check = folder.run(&["check"]).ok();
    assert!(check.stdout.contains("answers, not encrypted, and takes the login"), "{check:?}");
    server.follow(script.always(Step::Auth, Answer::reply("535 5.7.8 no")));
    let check = folder.run(&["check"]).refused(1, &["1 check failed"]);
    assert!(check.stdout.contains("535 5.7.8; check `username` and the password"), "{check:?}");
    assert!(!format!("{check:?}").contains("hunter2"));
    folder.run(&["check", "--offline"]).ok();
    let record = server.record();
    assert_eq!((record.connections, record.lines("MAIL").len()), (2, 0));
    configured(&folder, free_port());
    let check = folder.run(&["check"]).refused(1, &[]);
    assert!(check.stdout.contains("refused") && check.stdout.contains("check `host` and `port`"), "{check:?}");
}

#[expect(clippy::disallowed_methods, reason = "a real process goes by real time")]
async fn wait_a_second() {
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    let server = ScriptedSmtp::start(Script::new().always(Step::Mail, Answer::stall())).await.unwrap();
    let folder = Folder::new();
    configured(&folder, server.port());
    let mut daemon = Daemon::start(&folder, &["--set", "dispatch.grace=10m"]);
    folder.send(&[]);
    wait_until("the message to be under way", || {
        server.record().commands.iter().any(|command| command.line.starts_with("MAIL")).then_some(())
    });
    daemon.signal("TERM");
    daemon.wait_for_line("a second signal ends them at once");
    // What comes at once is the same signal, as `timeout` sends it twice.
    daemon.signal("TERM");
    wait_a_second().await;
    assert!(!daemon.stderr().contains("ended at once"), "{}", daemon.stderr());
    daemon.signal("TERM");
    assert_eq!(daemon.ended().code(), Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_grace_period_cuts_is_given_back() {
    let server = ScriptedSmtp::start(Script::new().always(Step::Mail, Answer::stall())).await.unwrap();
    let folder = Folder::new();
    configured(&folder, server.port());
    let daemon = Daemon::start(&folder, &["--set", "dispatch.grace=1ms"]);
    let id = folder.send(&[]);
    wait_until("the message to be under way", || {
        server.record().commands.iter().any(|command| command.line.starts_with("MAIL")).then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    let row = folder.json(&["show", &id])["row"].clone();
    assert_eq!((&row["status"], &row["attempts"]), (&"PENDING".into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_the_remedy_for_a_plain_relay() {
    let server = ScriptedSmtp::start(Script::new()).await.unwrap();
    let folder = Folder::new();
    configured(&folder, server.port());
    let check = folder.run(&["check", "--set", "email.tls=starttls"]).refused(1, &["1 check failed"]);
    for text in ["does not offer STARTTLS", "set `email.tls` to none"] {
        assert!(check.stdout.contains(text), "{text}: {check:?}");
    }
}
