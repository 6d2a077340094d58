//! The answer to the final dot, and what its absence means.

use std::time::Duration;

use postrider::channel::PointOfNoReturn;
use postrider::model::AddressState::{InDoubt, Rejected};
use postrider::model::FailureScope::Destination;
use postrider::model::Role::{Cc, To};
use postrider::model::{Blame, Ledger, Outcome};
use postrider_channels::Timeouts;
use postrider_testkit::smtp::{Answer, Script, Step};

use crate::support::{Post, reject, retry, row, row_with_copies, sent, states};

#[track_caller]
fn in_doubt(outcome: Outcome) -> (String, Ledger) {
    match outcome {
        Outcome::InDoubt(doubt) => (doubt.error, doubt.ledger.unwrap()),
        other => panic!("not in doubt: {other:?}"),
    }
}

/// Case C22.
#[tokio::test]
async fn a_lost_answer_to_the_final_dot_is_in_doubt() {
    let mut limits = Timeouts::default();
    limits.data_end = Duration::from_millis(300);
    for answer in [
        Answer::close(),
        Answer::stall(),
        Answer::bytes("250 half a line").then(Answer::close()),
        Answer::reply("not a reply"),
        Answer::reply("354 still waiting"),
    ] {
        let script = Script::new()
            .recipient("b@example.com", Answer::reply("550 5.1.1 unknown"))
            .once(Step::EndOfData, answer.clone());
        let post = Post::configured(script, |config| config.timeouts(limits)).await;
        let row = row_with_copies(["b@example.com", "c@example.com"]);
        let point = PointOfNoReturn::new();
        let (error, ledger) = in_doubt(post.deliver_with(&row, &point).await);
        assert!(point.has_been_crossed());
        assert!(error.contains("the outcome is unknown after the end of data"), "{answer:?}: {error}");
        assert_eq!(ledger.state(To, "jane@example.com"), Some(InDoubt));
        assert_eq!(ledger.state(Cc, "c@example.com"), Some(InDoubt));
        assert_eq!(ledger.state(Cc, "b@example.com"), Some(Rejected));

        // Doubt is no acceptance: the next attempt asks for the same addresses again.
        let mut again = row;
        again.state.recipients = Some(ledger);
        sent(post.deliver(&again).await);
        let record = post.relay.record();
        assert_eq!(record.messages[0].wire, record.messages[1].wire);
        assert_eq!(record.messages[0].recipients, record.messages[1].recipients);
        assert_eq!(record.connections, 2);
    }
}

/// Case C22: a slow answer is waited for.
#[tokio::test]
async fn a_slow_answer_to_the_final_dot_is_waited_for() {
    let slow = Answer::reply("250 2.0.0 stored").after(Duration::from_millis(60));
    let post = Post::open(Script::new().always(Step::EndOfData, slow)).await;
    let ledger = sent(post.deliver(&row()).await).ledger.unwrap();
    assert_eq!(ledger.entries()[0].reply.as_deref(), Some("250 2.0.0 stored"));
}

#[tokio::test]
async fn a_goodbye_instead_of_an_acceptance_leaves_no_doubt() {
    let post = Post::open(Script::new().always(Step::EndOfData, Answer::reply("421 4.3.2 closing"))).await;
    let failed = retry(post.deliver(&row()).await);
    assert_eq!(failed.scope, Destination);
    let ledger = failed.ledger.unwrap();
    assert!(states(&ledger).iter().all(|(.., state)| *state != InDoubt), "{ledger:?}");
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_the_message_leaves_no_doubt() {
    let refusal = Answer::reply("354 go ahead").then(Answer::reply("552 5.3.4 too large")).then(Answer::close());
    for size in [10, 2_000_000] {
        let post = Post::open(Script::new().once(Step::Data, refusal.clone())).await;
        let mut row = row();
        row.body = Some("x".repeat(size));
        assert_eq!(reject(post.deliver(&row).await).blame, Blame::Message, "{size}");
        sent(post.deliver(&row).await);
        assert_eq!(post.relay.record().connections, 2);
    }
}

/// A reply that came before the final dot is no answer to it: the dot is not written.
#[tokio::test]
async fn an_acceptance_before_the_final_dot_is_none() {
    let in_one = Answer::reply("354 go ahead\n250 2.0.0 queued");
    let apart = Answer::reply("354 go ahead").then(Answer::reply("250 2.0.0 queued"));
    for (early, size) in [(in_one.clone(), 10), (in_one, 2_000_000), (apart, 2_000_000)] {
        let post = Post::open(Script::new().once(Step::Data, early.clone())).await;
        let mut row = row();
        row.body = Some("x".repeat(size));
        let point = PointOfNoReturn::new();
        let failed = retry(post.deliver_with(&row, &point).await);
        assert_eq!(failed.scope, Destination, "{early:?}");
        assert!(!point.has_been_crossed());
        post.relay.wait_until(|record| record.open == 0).await;
        assert!(post.relay.record().messages.is_empty());
        sent(post.deliver(&row).await);
        assert_eq!(post.relay.record().connections, 2);
    }
}

/// A refusal before the final dot leaves the connection in the middle of a message.
#[tokio::test]
async fn a_refusal_right_behind_the_go_ahead_hands_nothing_over() {
    let post = Post::open(Script::new().once(Step::Data, Answer::reply("354 go ahead\n452 4.3.1 full"))).await;
    let point = PointOfNoReturn::new();
    assert!(retry(post.deliver_with(&row(), &point).await).error.contains("452 4.3.1 full"));
    assert!(!point.has_been_crossed());
    post.relay.wait_until(|record| record.open == 0).await;
    assert!(post.relay.record().messages.is_empty());
    sent(post.deliver(&row()).await);
    let record = post.relay.record();
    assert_eq!((record.connections, record.lines("RSET").len()), (2, 0));
}

/// Two replies to one command: every later one would answer the command before.
#[tokio::test]
async fn a_reply_too_many_ends_the_conversation() {
    for step in [Step::Greeting, Step::Ehlo, Step::Mail, Step::Recipient] {
        let code = if step == Step::Greeting { "220" } else { "250" };
        let post = Post::open(Script::new().once(step, Answer::reply(format!("{code} one\n{code} two")))).await;
        assert_eq!(retry(post.deliver(&row()).await).scope, Destination, "{step:?}");
        assert!(post.relay.record().lines("DATA").is_empty(), "{step:?}");
    }
}

#[tokio::test]
async fn a_connection_lost_before_the_final_dot_leaves_no_doubt() {
    let post = Post::open(Script::new().once(Step::Data, Answer::close())).await;
    let point = PointOfNoReturn::new();
    let failed = retry(post.deliver_with(&row(), &point).await);
    assert_eq!((failed.scope, failed.ledger), (Destination, None));
    assert!(!point.has_been_crossed());
    assert!(post.relay.record().messages.is_empty());
}

#[tokio::test]
async fn a_delivery_that_was_cut_never_writes_the_final_dot() {
    let post = Post::open(Script::new()).await;
    let point = PointOfNoReturn::new();
    assert!(point.close());
    let failed = retry(post.deliver_with(&row(), &point).await);
    assert_eq!(failed.scope, Destination);
    post.relay.wait_until(|record| record.open == 0).await;
    assert!(post.relay.record().messages.is_empty());
    sent(post.deliver(&row()).await);
    assert_eq!(post.relay.record().connections, 2);
}
