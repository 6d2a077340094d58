//! A result per address: To first, copies on their own.

use postrider::model::{
    AddressState::{Accepted, Blocked, Deferred, Rejected},
    Blame, FailureScope, Ledger, LedgerEntry, Outcome,
    Role::{Cc, To},
};
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
