//! What goes over the wire as the message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use postrider::model::{Blame, FailureScope};
use postrider_testkit::smtp::{Answer, Script, Step};
use serde_json::json;

use crate::support::{Post, check, numbered, reject, retry, row, row_with_copies, sent};

/// Case C06.
#[tokio::test]
async fn a_subject_with_a_line_break_is_refused_and_never_sent() {
    let post = Post::open(Script::new()).await;
    for subject in
        ["Hi\r\nBcc: victim@example.net\r\n\r\nnew body", "Hi\nBcc: victim@example.net", "Hi\rBcc: victim@example.net"]
    {
        let mut row = row();
        row.subject = Some(subject.into());
        let refused = check(&post.channel, &row).unwrap_err();
        assert!(refused.is_invalid() && refused.to_string().contains("subject"), "{refused}");
        // A row that another program wrote past the check ends in the same refusal.
        assert_eq!(reject(post.deliver(&row).await).blame, Blame::Message);
    }
    assert_eq!(post.relay.record().connections, 0);
}

/// Case C07.
#[tokio::test]
async fn lines_that_begin_with_a_dot_arrive_as_they_were() {
    let post = Post::open(Script::new()).await;
    let mut row = row();
    row.body = Some(".\n..\n.test\na.\n.".into());
    sent(post.deliver(&row).await);
    let record = post.relay.record();
    let message = &record.messages[0];
    assert!(message.wire.ends_with(b"\r\n\r\n..\r\n...\r\n..test\r\na.\r\n..\r\n"), "{}", message.text());
    assert!(message.text().ends_with("\r\n\r\n.\r\n..\r\n.test\r\na.\r\n.\r\n"));
    assert_eq!((record.messages.len(), record.lines("DATA").len()), (1, 1));
}

/// Case C14.
#[tokio::test]
async fn every_attempt_of_a_row_sends_the_same_bytes() {
    let post = Post::open(Script::new().once(Step::EndOfData, Answer::close())).await;
    let mut row = row();
    row.payload = Some(json!({ "html": "<p>Grüße</p>" }));
    post.deliver(&row).await;
    sent(post.deliver(&row).await);
    row.state.resends = 1;
    sent(post.deliver(&row).await);
    sent(post.deliver(&numbered(2)).await);
    let record = post.relay.record();
    let [first, second, resent, other] = &record.messages[..] else { panic!("{record:?}") };
    assert_eq!(first.wire, second.wire);
    let id = |text: String| text.split("\r\n").find(|line| line.starts_with("Message-ID: ")).unwrap().to_owned();
    assert_eq!(id(first.text()), "Message-ID: <00000000-0000-0000-0000-000000000001@example.com>");
    assert_eq!(id(resent.text()), "Message-ID: <00000000-0000-0000-0000-000000000001.1@example.com>");
    assert_eq!(id(other.text()), "Message-ID: <00000000-0000-0000-0000-000000000002@example.com>");
}

/// What a header's encoded words say, each decoded alone, with the plain text between them.
fn decoded(header: &str) -> String {
    let mut text = String::new();
    let mut after_a_word = false;
    for word in header.split_inclusive(' ') {
        let bare = word.trim_end();
        match bare.strip_prefix("=?utf-8?b?").and_then(|rest| rest.strip_suffix("?=")) {
            Some(encoded) => {
                assert!(bare.len() <= 75, "{bare}");
                if after_a_word {
                    text.truncate(text.trim_end().len());
                }
                text.push_str(&String::from_utf8(BASE64.decode(encoded).unwrap()).unwrap());
                text.push_str(&word[bare.len()..]);
                after_a_word = true;
            }
            None => {
                text.push_str(word);
                after_a_word = false;
            }
        }
    }
    text
}

fn header<'a>(message: &'a str, name: &str) -> &'a str {
    let (_, rest) = message.split_once(&format!("\r\n{name}: ")).unwrap();
    let end = rest.match_indices("\r\n").find(|(at, _)| !rest[at + 2..].starts_with(' ')).unwrap().0;
    &rest[..end]
}

/// Case C08.
#[tokio::test]
async fn a_subject_is_read_as_it_was_given() {
    let post = Post::open(Script::new()).await;
    let mixed = "한 a 한 bc 한 ".repeat(30) + "end";
    let ascii = "ordinary words ".repeat(20) + "end";
    for subject in [&"😀".repeat(40), &mixed, &ascii, "=?utf-8?q?looks_encoded?= but is not", "a bell \u{7} and a\ttab"]
    {
        let mut row = row();
        row.subject = Some(subject.to_owned());
        sent(post.deliver(&row).await);
        let text = post.relay.record().messages.pop().unwrap().text();
        let raw = header(&text, "Subject");
        assert!(raw.is_ascii() && raw.split("\r\n").all(|line| line.len() <= 78), "{raw}");
        assert_eq!(decoded(&raw.replace("\r\n", "")), subject);
    }
}

/// Case C02.
#[tokio::test]
async fn a_name_with_specials_stays_one_mailbox() {
    let post = Post::open(Script::new()).await;
    for name in ["Dupré, Jane", "Lefèvre ,Ann", "Grün; GmbH", "Ann \"Q\" O'Hara", "R&D | Company", "Jane", "Jane Doe"]
    {
        let mut row = row();
        row.payload = Some(json!({ "to_name": name }));
        sent(post.deliver(&row).await);
        let message = post.relay.record().messages.pop().unwrap();
        let text = message.text();
        let shown = header(&text, "To").strip_suffix(" <jane@example.com>").unwrap();
        let plain = shown.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
        assert_eq!(plain.map_or_else(|| decoded(shown), |quoted| quoted.replace('\\', "")), name);
        assert!(shown.is_ascii() && (plain.is_some() || !shown.contains([',', ';', '"'])), "{shown}");
        assert_eq!(message.recipients, ["jane@example.com"]);
    }
}

/// A mail with more copies than any line holds: each has its RCPT, and the header names them all.
#[tokio::test]
async fn ten_thousand_copies_are_shown_and_asked_for() {
    let post = Post::open(Script::new()).await;
    let mut row = row();
    row.cc_addresses = (0..10_000).map(|number| format!("copy-{number:05}@example.com")).collect();
    check(&post.channel, &row).unwrap();
    sent(post.deliver(&row).await);
    let message = post.relay.record().messages.pop().unwrap();
    assert_eq!(message.recipients[0], "jane@example.com");
    assert_eq!(message.recipients[1..], row.cc_addresses);
    let text = message.text();
    assert!(text.split("\r\n").all(|line| line.len() <= 78));
    let shown: Vec<_> = header(&text, "Cc").split(',').map(str::trim).collect();
    assert_eq!(shown, row.cc_addresses);
}

/// Case C08: what can be folded as encoded words has no length that cannot be sent.
#[tokio::test]
async fn a_long_word_is_folded_and_read_as_it_was_given() {
    let post = Post::open(Script::new()).await;
    for word in ["😀".repeat(300), "x".repeat(1_500), format!("Ж{}", "x".repeat(1_500))] {
        let mut row = row();
        row.subject = Some(word.clone());
        row.payload = Some(json!({
            "to_name": word, "from": format!("{word} <f@example.com>"), "reply_to": format!("{word} <r@example.com>"),
        }));
        check(&post.channel, &row).unwrap();
        sent(post.deliver(&row).await);
        let text = post.relay.record().messages.pop().unwrap().text();
        assert!(text.is_ascii() && text.split("\r\n").all(|line| line.len() <= 78), "{text}");
        for (field, after) in [("Subject", ""), ("To", " <jane@example.com>"), ("From", " <f@example.com>")] {
            assert_eq!(decoded(&header(&text, field).replace("\r\n", "")), format!("{word}{after}"), "{field}");
        }
    }
}

/// Case C01.
#[tokio::test]
async fn a_quoted_local_part_is_refused_and_smuggles_nothing() {
    let post = Post::open(Script::new()).await;
    let mut row = row();
    row.recipient_address = "\"ops@outside.example> ORCPT=rfc822;x\"@corp.example".into();
    assert!(check(&post.channel, &row).unwrap_err().is_invalid());
    reject(post.deliver(&row).await);
    assert_eq!(post.relay.record().connections, 0);
}

/// Case C03.
#[tokio::test]
async fn an_address_that_needs_smtputf8_is_not_sent_without_it() {
    let post = Post::open(Script::new()).await;
    let mut row = row();
    row.recipient_address = "zoë@example.com".into();
    let rejected = reject(post.deliver(&row).await);
    assert_eq!(rejected.blame, Blame::Recipient);
    assert!(rejected.error.contains("SMTPUTF8"), "{}", rejected.error);
    assert!(post.relay.record().lines("MAIL").is_empty());

    let post = Post::open(Script::new().abilities(["8BITMIME", "SMTPUTF8"])).await;
    sent(post.deliver(&row).await);
    let record = post.relay.record();
    assert_eq!(record.messages[0].mail, "MAIL FROM:<shop@example.com> BODY=8BITMIME SMTPUTF8");
    assert_eq!(record.messages[0].recipients, ["zoë@example.com"]);

    let post = Post::open(Script::new()).await;
    row.recipient_address = "info@bücher.example".into();
    sent(post.deliver(&row).await);
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["info@xn--bcher-kva.example"]);
    assert_eq!(record.messages[0].mail, "MAIL FROM:<shop@example.com>");
}

/// Case C03: one copy that the relay cannot reach does not stop the mail.
#[tokio::test]
async fn a_copy_that_needs_smtputf8_is_left_out_where_it_is_not_offered() {
    let post = Post::open(Script::new()).await;
    let ledger = sent(post.deliver(&row_with_copies(["zoë@example.com", "c@example.com"])).await).ledger.unwrap();
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["jane@example.com", "c@example.com"]);
    assert!(record.messages[0].text().contains("\r\nCc: c@example.com\r\n"), "{}", record.messages[0].text());
    let refused = ledger.entries().iter().find(|entry| entry.address == "zoë@example.com").unwrap();
    assert!(refused.reply.as_deref().unwrap().contains("SMTPUTF8"));
}

#[tokio::test]
async fn the_size_is_declared_and_a_message_over_the_limit_is_not_sent() {
    let post = Post::open(Script::new().abilities(["SIZE 100000"])).await;
    sent(post.deliver(&row()).await);
    let record = post.relay.record();
    let declared = format!("MAIL FROM:<shop@example.com> SIZE={}", record.messages[0].wire.len());
    assert_eq!(record.messages[0].mail, declared);

    let post = Post::open(Script::new().abilities(["SIZE 100"])).await;
    let rejected = reject(post.deliver(&row()).await);
    assert_eq!(rejected.blame, Blame::Message);
    assert!(rejected.error.contains("SIZE"), "{}", rejected.error);
    assert!(post.relay.record().lines("MAIL").is_empty());
}

#[tokio::test]
async fn an_optional_parameter_that_the_relay_does_not_know_is_left_out() {
    let script = Script::new().abilities(["SIZE"]).once(Step::Mail, Answer::reply("555 5.5.4 unknown parameter"));
    let post = Post::open(script).await;
    sent(post.deliver(&row()).await);
    assert_eq!(post.relay.record().messages[0].mail, "MAIL FROM:<shop@example.com>");
}

/// Case C29.
#[tokio::test]
async fn a_payload_of_a_newer_version_costs_an_attempt_and_no_connection() {
    let post = Post::open(Script::new()).await;
    let mut row = row();
    row.payload = Some(json!({ "v": 2 }));
    let failed = retry(post.deliver(&row).await);
    assert_eq!((failed.scope, failed.blame), (FailureScope::Row, Blame::Message));
    row.payload = None;
    row.recipient_address = "jane@".into();
    assert_eq!(reject(post.deliver(&row).await).blame, Blame::Recipient);
    assert_eq!(post.relay.record().connections, 0);
}
