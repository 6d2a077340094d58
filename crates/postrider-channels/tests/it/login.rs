//! AUTH: which mechanism, and when not at all.

use std::time::Duration;

use postrider::model::Blame::Configuration;
use postrider::model::FailureScope::Credential;
use postrider_channels::{Credentials, EmailConfig};
use postrider_testkit::smtp::{Answer, Script, Step};

use crate::support::{Post, retry, row, sent};

fn with_login(config: EmailConfig) -> EmailConfig {
    config.credentials(Credentials::new("user", "pass"))
}

#[tokio::test]
async fn plain_is_preferred_and_sent_in_one_line() {
    let post = Post::configured(Script::new().abilities(["AUTH LOGIN PLAIN"]), with_login).await;
    sent(post.deliver(&row()).await);
    assert_eq!(post.relay.record().lines("AUTH"), ["AUTH PLAIN AHVzZXIAcGFzcw=="]);
}

#[tokio::test]
async fn login_is_used_where_plain_is_not_offered() {
    let post = Post::configured(Script::new().abilities(["AUTH LOGIN CRAM-MD5"]), with_login).await;
    sent(post.deliver(&row()).await);
    let record = post.relay.record();
    let lines: Vec<_> = record.commands.iter().map(|command| command.line.as_str()).skip(1).take(3).collect();
    assert_eq!(lines, ["AUTH LOGIN", "dXNlcg==", "cGFzcw=="]);
}

#[tokio::test]
async fn a_relay_without_a_known_mechanism_is_a_matter_of_configuration() {
    let post = Post::configured(Script::new().abilities(["AUTH CRAM-MD5"]), with_login).await;
    let failed = retry(post.deliver(&row()).await);
    assert_eq!((failed.scope, failed.blame), (Credential, Configuration));
    assert!(failed.error.contains("AUTH PLAIN"), "{}", failed.error);
}

/// A relay that repeats the line it refuses must not bring the password into the history.
#[tokio::test]
async fn what_a_relay_says_to_a_login_is_not_kept() {
    for (mechanism, echo) in [("AUTH PLAIN", "AHVzZXIAcGFzcw=="), ("AUTH LOGIN", "cGFzcw==")] {
        for refusal in
            [format!("535 5.7.8 {echo} refused"), format!("421 4.7.0 {echo}"), format!("235 2.7.0\n535 {echo}")]
        {
            let script = Script::new().abilities([mechanism]).always(Step::Auth, Answer::reply(&refusal));
            let post = Post::configured(script, with_login).await;
            let failed = retry(post.deliver(&row()).await);
            assert!(!format!("{failed:?}").contains(echo), "{failed:?}");
            let found = post.channel.probe(&post.clock, Duration::from_secs(5)).await;
            assert!(!format!("{found:?}").contains(echo), "{found:?}");
        }
    }
}
