//! Connections: bounded, reused when clean, never when not.

use std::time::Duration;

use futures_util::future::join_all;
use postrider::model::Blame;
use postrider_testkit::smtp::{Answer, Script, Step};

use crate::support::{Post, numbered, reject, row, sent};

#[tokio::test]
async fn a_clean_connection_serves_the_next_message() {
    let post = Post::open(Script::new()).await;
    for number in 1..=3 {
        sent(post.deliver(&numbered(number)).await);
    }
    let record = post.relay.record();
    assert_eq!((record.connections, record.messages.len(), record.lines("EHLO").len()), (1, 3, 1));
}

/// Case C17: the relay said goodbye and closed while nobody looked.
#[tokio::test]
async fn a_kept_connection_that_the_relay_closed_costs_the_row_nothing() {
    let goodbye = Answer::reply("421 4.4.2 idle").then(Answer::close());
    for end in [
        Answer::reply("250 stored").then(goodbye.clone()),
        Answer::reply("250 stored").then(Answer::close()),
        Answer::reply("250 stored").then(goodbye.after(Duration::from_millis(20))),
    ] {
        let post = Post::open(Script::new().once(Step::EndOfData, end)).await;
        sent(post.deliver(&numbered(1)).await);
        post.relay.wait_until(|record| record.open == 0).await;
        sent(post.deliver(&numbered(2)).await);
        let record = post.relay.record();
        assert_eq!((record.connections, record.messages.len()), (2, 2));
        assert_eq!(record.messages[1].connection, 1);
    }
}

/// Case C17: a reply that nobody asked for came while the connection was idle.
#[tokio::test]
async fn a_kept_connection_on_which_the_relay_spoke_is_not_used_again() {
    for stray in ["250 stored", "554 5.6.0 refused"] {
        let twice = Answer::reply("250 stored").then(Answer::reply(stray).after(Duration::from_millis(20)));
        let script = Script::new()
            .once(Step::EndOfData, twice)
            .once(Step::Greeting, Answer::reply("220 ready"))
            .once(Step::Greeting, Answer::reply("220 ready").after(Duration::from_millis(200)));
        let post = Post::open(script).await;
        sent(post.deliver(&numbered(1)).await);
        // A conversation of its own: by its end the stray reply has long come.
        post.channel.probe(&post.clock, Duration::from_secs(5)).await.unwrap();
        sent(post.deliver(&numbered(2)).await);
        let record = post.relay.record();
        assert_eq!((record.connections, record.lines("MAIL").len()), (3, 2), "{stray}");
        assert_eq!(record.messages[1].connection, 2, "{stray}");
    }
}

/// Case C17: the goodbye is already on its way when MAIL is written.
#[tokio::test]
async fn a_kept_connection_that_refuses_its_first_command_is_replaced_once() {
    for refusal in [
        Answer::reply("421 4.4.2 idle").then(Answer::close()),
        Answer::reply("451 4.4.2 timeout"),
        Answer::reply("503 5.5.1 sender already specified"),
        Answer::close(),
    ] {
        let script = Script::new().once(Step::Mail, Answer::reply("250 ok")).once(Step::Mail, refusal.clone());
        let post = Post::open(script).await;
        sent(post.deliver(&numbered(1)).await);
        sent(post.deliver(&numbered(2)).await);
        let record = post.relay.record();
        assert_eq!((record.connections, record.messages.len()), (2, 2), "{refusal:?}");
        assert_eq!(record.lines("MAIL").len(), 3, "{refusal:?}");
    }
}

#[tokio::test]
async fn after_a_refusal_the_connection_is_reset_and_used_again() {
    let script = Script::new().once(Step::Recipient, Answer::reply("550 5.1.1 unknown"));
    let post = Post::open(script).await;
    assert_eq!(reject(post.deliver(&numbered(1)).await).blame, Blame::Recipient);
    sent(post.deliver(&numbered(2)).await);
    let record = post.relay.record();
    assert_eq!((record.connections, record.lines("RSET").len()), (1, 1));
}

#[tokio::test]
async fn a_connection_that_does_not_reset_is_closed() {
    let script = Script::new()
        .once(Step::Recipient, Answer::reply("550 5.1.1 unknown"))
        .once(Step::Reset, Answer::reply("500 what"));
    let post = Post::open(script).await;
    reject(post.deliver(&numbered(1)).await);
    sent(post.deliver(&numbered(2)).await);
    assert_eq!(post.relay.record().connections, 2);
}

/// A reply that nobody read must never be taken for the next message's.
#[tokio::test]
async fn a_dropped_conversation_never_serves_again() {
    for step in [Step::Mail, Step::Recipient, Step::Data, Step::EndOfData] {
        let late = Answer::reply("250 for the dropped one").after(Duration::from_millis(40));
        let post = Post::open(Script::new().once(step, late)).await;
        let first = numbered(1);
        let is_reached = |record: &postrider_testkit::smtp::Record| match step {
            Step::Mail => !record.lines("MAIL").is_empty(),
            Step::Recipient => !record.lines("RCPT").is_empty(),
            Step::Data => !record.lines("DATA").is_empty(),
            _ => !record.messages.is_empty(),
        };
        tokio::select! {
            early = post.deliver(&first) => panic!("{early:?}"),
            () = post.relay.wait_until(is_reached) => {}
        }
        let script = Script::new().always(Step::EndOfData, Answer::reply("554 5.6.0 refused"));
        post.relay.follow(script);
        assert_eq!(reject(post.deliver(&numbered(2)).await).blame, Blame::Message, "{step:?}");
        assert_eq!(post.relay.record().connections, 2, "{step:?}");
    }
}

#[tokio::test]
async fn there_are_never_more_connections_than_the_pool_may_hold() {
    let slow = Answer::reply("250 stored").after(Duration::from_millis(5));
    let script = Script::new().always(Step::EndOfData, slow);
    let post = Post::configured(script, |config| config.pool_size(3)).await;
    let rows: Vec<_> = (1..=20).map(numbered).collect();
    for outcome in join_all(rows.iter().map(|row| post.deliver(row))).await {
        sent(outcome);
    }
    let record = post.relay.record();
    assert_eq!((record.messages.len(), record.connections, record.most_open), (20, 3, 3));
    let mut ids: Vec<_> = record.messages.iter().map(|message| message.text()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}

#[tokio::test]
async fn a_connection_is_closed_politely_after_a_hundred_messages() {
    let post = Post::open(Script::new()).await;
    for _ in 0..101 {
        sent(post.deliver(&row()).await);
    }
    post.relay.wait_until(|record| !record.lines("QUIT").is_empty()).await;
    assert_eq!(post.relay.record().connections, 2);
}
