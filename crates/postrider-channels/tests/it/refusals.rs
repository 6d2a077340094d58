//! Whom a refusal is about: the relay, the login, the sender or the row.

use std::time::Duration;

use postrider::model::Blame::{Configuration, Nobody};
use postrider::model::FailureScope::{Credential, Destination, Own, Row};
use postrider_channels::{Credentials, EmailConfig, Timeouts, TlsMode};
use postrider_testkit::smtp::{Answer, Script, Step};

use crate::support::{Post, numbered, retry, row, scope, sent, short};

fn with_login(config: EmailConfig) -> EmailConfig {
    config.credentials(Credentials::new("user", "hunter2"))
}

/// Case C21 (a).
#[tokio::test]
async fn a_refused_login_says_nothing_about_the_row() {
    let script = Script::new().abilities(["AUTH PLAIN"]).always(Step::Auth, Answer::reply("535 5.7.8 bad login"));
    let post = Post::configured(script, with_login).await;
    let failed = retry(post.deliver(&row()).await);
    assert_eq!((failed.scope, failed.blame), (Credential, Configuration));
    assert!(failed.error.contains("535 5.7.8") && !failed.error.contains("hunter2"), "{}", failed.error);
    assert!(post.relay.record().lines("MAIL").is_empty());
}

/// Case C21 (b).
#[tokio::test]
async fn a_relay_that_refuses_in_its_greeting_is_tried_again() {
    let post = Post::open(Script::new().always(Step::Greeting, Answer::reply("554 no service"))).await;
    assert_eq!(scope(post.deliver(&row()).await), (Destination, Nobody));
    assert!(post.relay.record().lines("EHLO").is_empty());
}

/// Case C21 (c).
#[tokio::test]
async fn a_relay_whose_name_does_not_resolve_is_tried_again() {
    let limits = Timeouts::uniform(Duration::from_secs(2));
    let elsewhere =
        |_| EmailConfig::new("relay.invalid", 25, "shop@example.com").tls(TlsMode::StartTls).timeouts(limits);
    let post = Post::configured(Script::new(), elsewhere).await;
    assert_eq!(scope(post.deliver(&row()).await), (Destination, Nobody));
}

/// Case C21 (c): nobody listens.
#[tokio::test]
async fn a_relay_that_takes_no_connection_is_tried_again() {
    let post =
        Post::configured(Script::new(), |_| EmailConfig::new("127.0.0.1", 1, "shop@example.com").tls(TlsMode::None))
            .await;
    assert_eq!(scope(post.deliver(&row()).await), (Destination, Nobody));
}

/// Case C21 (e).
#[tokio::test]
async fn a_sender_put_off_is_an_ordinary_failure() {
    let post = Post::open(Script::new().always(Step::Mail, Answer::reply("451 4.3.0 later"))).await;
    let failed = retry(post.deliver(&row()).await);
    assert_eq!((failed.scope, failed.blame), (Row, Nobody));
    assert!(failed.error.contains("451 4.3.0 later"), "{}", failed.error);
    assert_eq!(post.relay.record().connections, 1, "a new connection is no stale one");
}

/// Case C21 (f).
#[tokio::test]
async fn a_login_put_off_says_nothing_about_the_row() {
    let script = Script::new().abilities(["AUTH PLAIN"]).always(Step::Auth, Answer::reply("454 4.7.0 later"));
    let post = Post::configured(script, with_login).await;
    assert_eq!(scope(post.deliver(&row()).await), (Credential, Nobody));
}

/// Case C21: 421 at any step is the relay's goodbye, and its connection is not used again.
#[tokio::test]
async fn a_goodbye_at_any_step_is_the_relays_failure() {
    for step in [Step::Greeting, Step::Ehlo, Step::Mail, Step::Recipient, Step::Data, Step::EndOfData] {
        let post = Post::open(Script::new().once(step, Answer::reply("421 4.3.2 closing"))).await;
        assert_eq!(scope(post.deliver(&row()).await), (Destination, Nobody), "{step:?}");
        sent(post.deliver(&row()).await);
        assert_eq!(post.relay.record().connections, 2, "{step:?}");
    }
}

/// Case C20.
#[tokio::test]
async fn a_relay_that_never_speaks_is_given_up_in_time() {
    for step in [Step::Greeting, Step::Ehlo, Step::Mail, Step::Recipient, Step::Data] {
        let script = Script::new().always(step, Answer::stall());
        let post = Post::configured(script, |config| config.timeouts(short())).await;
        let failed = retry(post.deliver(&row()).await);
        assert_eq!((failed.scope, failed.blame), (Destination, Nobody), "{step:?}");
        assert!(failed.error.contains("did not answer within"), "{}", failed.error);
        post.relay.wait_until(|record| record.open == 0).await;
    }
}

/// Case C20: a relay that stalls does not keep the slots for ever.
#[tokio::test]
async fn waiting_for_a_connection_ends_in_time_too() {
    let mut limits = Timeouts::uniform(Duration::from_secs(30));
    limits.slot = Duration::from_millis(30);
    let script = Script::new().always(Step::Greeting, Answer::stall());
    let post = Post::configured(script, |config| config.timeouts(limits).pool_size(1)).await;
    let (first, second) = (numbered(1), numbered(2));
    let waiting = async {
        post.relay.wait_until(|record| record.open == 1).await;
        post.deliver(&second).await
    };
    tokio::select! {
        stalled = post.deliver(&first) => panic!("{stalled:?}"),
        outcome = waiting => {
            let failed = retry(outcome);
            // The limit is our own: nothing is known of the relay.
            assert_eq!((failed.scope, failed.blame), (Own, Nobody));
            assert!(failed.error.contains("no connection"), "{}", failed.error);
        }
    }
    // The first delivery was dropped: its slot is free again.
    post.relay.follow(Script::new());
    sent(post.deliver(&second).await);
}

/// Case C15.
#[tokio::test]
async fn replies_of_many_lines_in_single_bytes_are_read() {
    let ehlo = "250-scripted.example\n250-A\n250-B\n250-C\n250-D\n250-E\n250-F\n250-G\n250-H\n250-AUTH=LOGIN PLAIN\n250-I\n250 J";
    let script = Script::new()
        .byte_by_byte()
        .always(Step::Greeting, Answer::reply("220-a\n220-b\n220 ready"))
        .always(Step::Ehlo, Answer::reply(ehlo))
        .always(Step::Recipient, Answer::reply("250-2.1.5 one\n250 2.1.5 two"));
    let post = Post::configured(script, with_login).await;
    sent(post.deliver(&row()).await);
    let record = post.relay.record();
    assert_eq!((record.connections, record.lines("AUTH PLAIN").len()), (1, 1));
}

/// Case C19.
#[tokio::test]
async fn the_name_in_ehlo_is_an_address_literal_unless_one_is_given() {
    let post = Post::open(Script::new()).await;
    sent(post.deliver(&row()).await);
    assert_eq!(post.relay.record().lines("EHLO"), ["EHLO [127.0.0.1]"]);
    let post = Post::configured(Script::new(), |config| config.ehlo_name("app.example.com")).await;
    sent(post.deliver(&row()).await);
    assert_eq!(post.relay.record().lines("EHLO"), ["EHLO app.example.com"]);
}

#[tokio::test]
async fn a_server_without_ehlo_is_greeted_with_helo() {
    let post = Post::open(Script::new().always(Step::Ehlo, Answer::reply("502 5.5.1 not implemented"))).await;
    sent(post.deliver(&row()).await);
    assert_eq!(post.relay.record().lines("HELO"), ["HELO [127.0.0.1]"]);
}

#[tokio::test]
async fn a_peer_that_speaks_no_smtp_is_the_destinations_failure() {
    let post = Post::open(Script::new().always(Step::Greeting, Answer::reply("HTTP/1.1 400 Bad Request"))).await;
    assert_eq!(scope(post.deliver(&row()).await), (Destination, Nobody));
}
