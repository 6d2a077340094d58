//! A look at the relay: what it finds, what it says to do, and that no mail is sent.

use std::time::Duration;

use postrider::ErrorKind;
use postrider::model::SystemClock;
use postrider_channels::{Credentials, EmailChannel, EmailConfig, RelayReport, TlsMode};
use postrider_testkit::server::free_port;
use postrider_testkit::smtp::{Answer, Script, Step};

use crate::support::Post;

async fn probe(post: &Post) -> postrider::Result<RelayReport> {
    post.channel.probe(&post.clock, Duration::from_secs(5)).await
}

#[track_caller]
fn refused(found: postrider::Result<RelayReport>, kind: ErrorKind, said: &[&str]) {
    let error = found.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for text in said {
        assert!(error.to_string().contains(text), "{text:?} is not in {error}");
    }
}

#[tokio::test]
async fn a_relay_that_works_is_greeted_and_left_without_a_mail() {
    let script = Script::new().abilities(["AUTH PLAIN", "SIZE 10000"]);
    let post = Post::configured(script, |config| config.credentials(Credentials::new("user", "pass"))).await;
    let found = probe(&post).await.unwrap();
    assert_eq!(found.relay, format!("127.0.0.1:{}", post.relay.port()));
    assert_eq!((found.encrypted, found.logged_in, found.size_limit), (false, true, Some(10_000)));
    assert!(found.to_string().ends_with("answers, not encrypted, and takes the login"), "{found}");
    let record = post.relay.record();
    assert_eq!((record.lines("EHLO").len(), record.lines("AUTH").len()), (1, 1));
    assert!(record.lines("MAIL").is_empty() && record.messages.is_empty());
}

#[tokio::test]
async fn a_login_that_is_offered_and_not_configured_is_told() {
    let post = Post::open(Script::new().abilities(["AUTH LOGIN"])).await;
    let found = probe(&post).await.unwrap();
    assert!(found.to_string().ends_with("it offers a login, and none is configured"), "{found}");
}

#[tokio::test]
async fn a_refused_login_names_the_settings() {
    let script = Script::new().abilities(["AUTH PLAIN"]).always(Step::Auth, Answer::reply("535 5.7.8 bad login"));
    let post = Post::configured(script, |config| config.credentials(Credentials::new("user", "hunter2"))).await;
    let found = probe(&post).await;
    assert!(!format!("{found:?}").contains("hunter2"));
    refused(found, ErrorKind::Configuration, &["cannot be used", "535 5.7.8", "check `username` and the password"]);
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named() {
    let port = free_port();
    let config = EmailConfig::new("127.0.0.1", port, "shop@example.com").tls(TlsMode::None);
    let channel = EmailChannel::new(config).unwrap();
    let found = channel.probe(&SystemClock::new(), Duration::from_secs(5)).await;
    refused(found, ErrorKind::Transient, &[&format!("127.0.0.1:{port}"), "refused", "check `host` and `port`"]);
}

#[tokio::test]
async fn the_wrong_kind_of_tls_is_told_apart() {
    let post = Post::configured(Script::new(), |config| config.tls(TlsMode::StartTls)).await;
    refused(probe(&post).await, ErrorKind::Configuration, &["does not offer STARTTLS", "set `tls` to implicit"]);
    let post = Post::configured(Script::new(), |config| config.tls(TlsMode::Implicit)).await;
    refused(probe(&post).await, ErrorKind::Transient, &["TLS", "set `tls` to starttls"]);
    // A server that waits for TLS says nothing.
    let silent = Script::new().always(Step::Greeting, Answer::stall());
    let post = Post::configured(silent, |config| config.tls(TlsMode::StartTls)).await;
    let found = post.channel.probe(&post.clock, Duration::from_millis(80)).await;
    refused(found, ErrorKind::Transient, &["did not answer within 80ms", "set `tls` to implicit"]);
}
