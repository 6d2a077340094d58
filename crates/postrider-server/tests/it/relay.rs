//! A relay instead of the sandbox, and stopping while it keeps the program waiting.

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
