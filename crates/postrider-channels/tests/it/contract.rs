//! Every channel passes the contract of channels.

use std::sync::Arc;

use postrider::model::SystemClock;
use postrider::testing::assert_channel_contract;
use postrider_channels::SandboxChannel;
use postrider_testkit::smtp::Script;

use crate::support::{Post, row, row_with_copies};

#[tokio::test]
async fn e_mail_passes_the_contract_of_channels() {
    let Post { relay, channel, clock } = Post::open(Script::new()).await;
    assert_channel_contract(Arc::new(channel), &row_with_copies(["c@example.com"]), &clock).await;
    // Whatever was dropped, nobody got half of a message.
    assert!(relay.record().messages.iter().all(|message| message.text().contains("Subject: ")));
}

#[tokio::test]
async fn the_sandbox_passes_the_contract_of_channels() {
    assert_channel_contract(Arc::new(SandboxChannel::new("email")), &row(), &SystemClock::new()).await;
}
