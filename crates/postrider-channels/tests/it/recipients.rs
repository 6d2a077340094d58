//! A result per address: To first, copies on their own.

use std::time::Duration;

use postrider::model::{
    AddressState::{Accepted, Blocked, Deferred, Rejected},
    Blame, FailureScope, Ledger, LedgerEntry, Outcome,
    Role::{Cc, To},
};
use postrider_channels::Timeouts;
use postrider_testkit::smtp::{Answer, Script, Step};

use crate::support::{Post, reject, retry, row, row_with_copies, sent, states};

/// Case C18.
#[tokio::test]
async fn a_refused_copy_does_not_stop_the_mail() {
    let script = Script::new().recipient("b@example.com", Answer::reply("550 5.1.1 unknown"));
    let post = Post::open(script).await;
    let sent = sent(post.deliver(&row_with_copies(["b@example.com", "c@example.com"])).await);
    let ledger = sent.ledger.unwrap();
    assert_eq!(
        states(&ledger),
        [(To, "jane@example.com", Accepted), (Cc, "b@example.com", Rejected), (Cc, "c@example.com", Accepted)]
    );
    assert!(ledger.entries()[1].reply.as_deref().unwrap().contains("550 5.1.1 unknown"));
    assert_eq!(sent.provider.as_deref(), Some("smtp"));
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["jane@example.com", "c@example.com"]);
    let asked = ["RCPT TO:<jane@example.com>", "RCPT TO:<b@example.com>", "RCPT TO:<c@example.com>"];
    assert_eq!(record.lines("RCPT"), asked);
}

/// Case C18, C21 (d).
#[tokio::test]
async fn a_refused_recipient_ends_the_row_and_nothing_is_handed_over() {
    let script = Script::new().recipient("jane@example.com", Answer::reply("550 5.1.1 unknown"));
    let post = Post::open(script).await;
    let rejected = reject(post.deliver(&row_with_copies(["c@example.com"])).await);
    assert_eq!(rejected.blame, Blame::Recipient);
    assert_eq!(states(rejected.ledger.as_ref().unwrap()), [(To, "jane@example.com", Rejected)]);
    let record = post.relay.record();
    assert_eq!((record.lines("RCPT").len(), record.lines("DATA").len(), record.lines("RSET").len()), (1, 0, 1));
}

#[tokio::test]
async fn a_recipient_put_off_keeps_all_copies_together() {
    let script = Script::new().recipient("jane@example.com", Answer::reply("450 4.2.0 busy"));
    let post = Post::open(script).await;
    let put_off = retry(post.deliver(&row_with_copies(["c@example.com"])).await);
    assert_eq!(put_off.scope, FailureScope::Row);
    assert_eq!(states(put_off.ledger.as_ref().unwrap()), [(To, "jane@example.com", Deferred)]);
    assert!(post.relay.record().messages.is_empty());
}

#[tokio::test]
async fn a_copy_put_off_is_tried_again_alone_with_the_same_message() {
    let script = Script::new()
        .recipient("b@example.com", Answer::reply("550 5.1.1 unknown"))
        .recipient("c@example.com", Answer::reply("450 4.2.0 busy"));
    let post = Post::open(script).await;
    let mut row = row_with_copies(["b@example.com", "c@example.com"]);
    let put_off = retry(post.deliver(&row).await);
    assert_eq!(put_off.scope, FailureScope::Row);
    assert!(put_off.error.contains("450 4.2.0 busy"), "{}", put_off.error);
    let ledger = put_off.ledger.unwrap();
    assert!(ledger.to_accepted_at().is_some());

    post.relay.follow(Script::new());
    row.state.recipients = Some(ledger);
    row.state.attempts = 1;
    let ledger = sent(post.deliver(&row).await).ledger.unwrap();
    assert_eq!(ledger.state(Cc, "c@example.com"), Some(Accepted));
    assert_eq!(ledger.state(Cc, "b@example.com"), Some(Rejected));
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["jane@example.com"]);
    assert_eq!(record.messages[1].recipients, ["c@example.com"]);
    assert_eq!(record.messages[0].wire, record.messages[1].wire);

    row.state.recipients = Some(ledger);
    sent(post.deliver(&row).await);
    assert_eq!(post.relay.record().messages.len(), 2, "nobody was left to send to");
}

/// Case C18: in whatever way a copy is refused, the others get the mail.
#[tokio::test]
async fn a_relay_that_hangs_up_at_a_copy_still_gets_the_mail_for_the_others() {
    let mut limits = Timeouts::default();
    limits.recipient = Duration::from_millis(80);
    let goodbye = Answer::reply("421 4.3.2 closing").then(Answer::close());
    for hang_up in [goodbye, Answer::reply("421 4.3.2 closing"), Answer::close(), Answer::stall()] {
        let script = Script::new().recipient("b@example.com", hang_up.clone());
        let post = Post::configured(script, |config| config.timeouts(limits)).await;
        let mut row = row_with_copies(["a@example.com", "b@example.com"]);
        let put_off = retry(post.deliver(&row).await);
        assert_eq!(put_off.scope, FailureScope::Row, "{hang_up:?}");
        let ledger = put_off.ledger.unwrap();
        assert_eq!(
            states(&ledger),
            [(To, "jane@example.com", Accepted), (Cc, "b@example.com", Deferred), (Cc, "a@example.com", Accepted)]
        );
        let record = post.relay.record();
        assert_eq!(record.messages[0].recipients, ["jane@example.com", "a@example.com"], "{hang_up:?}");

        row.state.recipients = Some(ledger);
        row.state.attempts = 1;
        assert_eq!(retry(post.deliver(&row).await).scope, FailureScope::Destination, "{hang_up:?}");
        post.relay.follow(Script::new());
        sent(post.deliver(&row).await);
        assert_eq!(post.relay.record().messages[1].recipients, ["b@example.com"], "{hang_up:?}");
    }
}

/// The relay lets nobody in for a while after it hung up: the next attempt begins without the copy.
#[tokio::test]
async fn a_copy_at_which_the_relay_hung_up_waits_for_the_others() {
    let goodbye = Answer::reply("421 4.3.2 closing").then(Answer::close());
    let script = Script::new()
        .once(Step::Greeting, Answer::reply("220 ready"))
        .once(Step::Greeting, Answer::reply("554 not you"))
        .recipient("b@example.com", goodbye);
    let post = Post::open(script).await;
    let mut row = row_with_copies(["b@example.com", "c@example.com"]);
    let put_off = retry(post.deliver(&row).await);
    assert_eq!(put_off.scope, FailureScope::Destination);
    row.state.recipients = put_off.ledger;
    row.state.deferrals = 1;
    let ledger = retry(post.deliver(&row).await).ledger.unwrap();
    assert_eq!(ledger.state(To, "jane@example.com"), Some(Accepted));
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["jane@example.com", "c@example.com"]);
    assert_eq!(record.lines("RCPT TO:<b@").len(), 1);
}

/// However many copies the relay hangs up at, the attempt ends, and with the mail sent.
#[tokio::test]
async fn a_relay_that_hangs_up_at_every_further_copy_is_asked_three_times() {
    let goodbye = Answer::reply("421 4.5.3 too many").then(Answer::close());
    let mut script = Script::new();
    for number in 1..20 {
        script = script.recipient(format!("copy-{number}@example.com"), goodbye.clone());
    }
    let post = Post::open(script).await;
    let mut row = row();
    row.cc_addresses = (0..20).map(|number| format!("copy-{number}@example.com")).collect();
    let ledger = retry(post.deliver(&row).await).ledger.unwrap();
    assert_eq!(ledger.entries().len(), 21);
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["jane@example.com", "copy-0@example.com"]);
    assert_eq!(record.connections, 4);
}

/// Contract C3.5: a requeue asks again whoever refused, and nobody who accepted.
#[tokio::test]
async fn a_requeued_row_asks_the_refused_copies_anew() {
    let script = Script::new().recipient("b@example.com", Answer::reply("550 5.1.1 unknown"));
    let post = Post::open(script).await;
    let mut row = row_with_copies(["b@example.com"]);
    let ledger = sent(post.deliver(&row).await).ledger.unwrap();
    assert_eq!(ledger.state(Cc, "b@example.com"), Some(Rejected));

    post.relay.follow(Script::new());
    row.state.recipients = Some(ledger);
    row.state.attempts = 0;
    let ledger = sent(post.deliver(&row).await).ledger.unwrap();
    assert_eq!(states(&ledger), [(To, "jane@example.com", Accepted), (Cc, "b@example.com", Accepted)]);
    assert_eq!(post.relay.record().messages[1].recipients, ["b@example.com"]);
}

#[tokio::test]
async fn the_last_copies_refused_still_leave_the_row_sent() {
    let script = Script::new().recipient("c@example.com", Answer::reply("450 4.2.0 busy"));
    let post = Post::open(script).await;
    let mut row = row_with_copies(["c@example.com"]);
    row.state.recipients = retry(post.deliver(&row).await).ledger;
    post.relay.follow(Script::new().recipient("c@example.com", Answer::reply("550 5.1.1 gone")));
    let ledger = sent(post.deliver(&row).await).ledger.unwrap();
    assert_eq!(states(&ledger), [(To, "jane@example.com", Accepted), (Cc, "c@example.com", Rejected)]);
    assert_eq!(post.relay.record().messages.len(), 1);
}

/// Contract C5.4.
#[tokio::test]
async fn an_address_that_policy_blocked_gets_nothing_and_is_not_shown() {
    let post = Post::open(Script::new()).await;
    let mut row = row_with_copies(["x@outside.example"]);
    let block = |address: &str, role| LedgerEntry {
        address: address.into(),
        role,
        state: Blocked,
        at: row.created_at,
        reply: None,
    };
    let mut ledger = Ledger::default();
    ledger.record(block("x@outside.example", Cc));
    let to = block("jane@example.com", To);
    row.state.recipients = Some(ledger.clone());
    sent(post.deliver(&row).await);
    let record = post.relay.record();
    assert_eq!(record.messages[0].recipients, ["jane@example.com"]);
    assert!(!record.messages[0].text().contains("outside.example"));

    ledger.record(to);
    row.state.recipients = Some(ledger);
    assert!(matches!(post.deliver(&row).await, Outcome::Suppress(_)));
    assert_eq!(post.relay.record().lines("MAIL").len(), 1);
}

/// Case C16.
#[tokio::test]
async fn a_refusal_of_several_lines_is_kept_whole() {
    let lines = "550-5.7.1 first\n550-5.7.1 second\n550 5.7.1 see https://example.com/x";
    let post = Post::open(Script::new().always(Step::EndOfData, Answer::reply(lines))).await;
    let rejected = reject(post.deliver(&row()).await);
    assert!(rejected.error.ends_with("550 5.7.1 first second see https://example.com/x"), "{}", rejected.error);
    assert_eq!(rejected.error.matches("5.7.1").count(), 1);
    assert_eq!(rejected.blame, Blame::Sender);
    assert_eq!(states(rejected.ledger.as_ref().unwrap()), [(To, "jane@example.com", Rejected)]);
}

#[tokio::test]
async fn the_answer_to_the_final_dot_holds_for_everybody() {
    for (answer, state) in [("451 4.3.0 later", Deferred), ("554 5.6.0 content", Rejected)] {
        let post = Post::open(Script::new().always(Step::EndOfData, Answer::reply(answer))).await;
        let ledger = match post.deliver(&row_with_copies(["c@example.com"])).await {
            Outcome::Retry(retry) => retry.ledger,
            Outcome::Reject(reject) => reject.ledger,
            other => panic!("{other:?}"),
        };
        assert_eq!(states(&ledger.unwrap()), [(To, "jane@example.com", state), (Cc, "c@example.com", state)]);
    }
}
