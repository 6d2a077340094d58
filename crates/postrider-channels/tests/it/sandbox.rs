//! The sandbox refuses what the real channel refuses, and delivers nowhere.

use std::sync::Arc;

use postrider::channel::{Channel, Delivery, PointOfNoReturn};
use postrider::model::{AddressState::Accepted, Blame, OutboxRow, OutboxView, Outcome, Role, SystemClock, TenantId};
use postrider_channels::{EmailChannel, EmailConfig, SandboxChannel};
use serde_json::json;

use crate::support::{check, reject, retry, row, row_with_copies, sent, states};

async fn deliver(channel: &SandboxChannel, row: &OutboxRow) -> Outcome {
    let (root, clock, point) = (TenantId::ROOT, SystemClock::new(), PointOfNoReturn::new());
    channel.deliver(Delivery::new(OutboxView::new(row, &root), &clock, &point)).await
}

#[tokio::test]
async fn it_takes_an_e_mail_and_says_so() {
    let sandbox = SandboxChannel::new("email");
    let mut row = row_with_copies(["c@example.com"]);
    row.state.resends = 2;
    let sent = sent(deliver(&sandbox, &row).await);
    assert_eq!(sent.provider.as_deref(), Some("sandbox"));
    assert_eq!(sent.provider_message_id.as_deref(), Some("sandbox-00000000-0000-0000-0000-000000000001.2"));
    let expected = [(Role::To, "jane@example.com", Accepted), (Role::Cc, "c@example.com", Accepted)];
    assert_eq!(states(&sent.ledger.unwrap()), expected);
}

/// Case C06.
#[tokio::test]
async fn under_the_name_email_it_refuses_what_the_channel_refuses() {
    let real = EmailChannel::new(EmailConfig::new("relay.example.com", 587, "shop@example.com")).unwrap();
    let sandbox = SandboxChannel::new("email");
    let mut subject = row();
    subject.subject = Some("Hi\r\nBcc: victim@example.net".into());
    let mut address = row();
    address.recipient_address = "jane".into();
    let mut payload = row();
    payload.payload = Some(json!({ "v": 2 }));
    for bad in [&subject, &address, &payload, &row_with_copies(["no address"])] {
        let refused = check(&sandbox, bad).unwrap_err();
        assert!(refused.is_invalid());
        assert_eq!(refused.to_string(), check(&real, bad).unwrap_err().to_string());
    }
    assert!(check(&sandbox, &row()).is_ok());
    assert_eq!(reject(deliver(&sandbox, &subject).await).blame, Blame::Message);
    assert_eq!(reject(deliver(&sandbox, &address).await).blame, Blame::Recipient);
    retry(deliver(&sandbox, &payload).await);
}

#[tokio::test]
async fn under_any_other_name_it_asks_the_channel_that_it_replaces() {
    let mut row = row();
    row.channel = "sms".into();
    row.recipient_address = "+43 1 234".into();
    let alone = SandboxChannel::new("sms");
    assert!(check(&alone, &row).is_ok());
    assert_eq!(sent(deliver(&alone, &row).await).ledger, None);

    let real: Arc<dyn Channel> =
        Arc::new(EmailChannel::new(EmailConfig::new("relay.example.com", 587, "shop@example.com")).unwrap());
    let replacing = SandboxChannel::in_place_of(Arc::clone(&real));
    assert_eq!((replacing.name(), replacing.deadline()), ("email", real.deadline()));
    assert!(check(&replacing, &row).is_err());
}
