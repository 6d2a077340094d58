//! The contract of a channel, as a suite: a new channel is done when it passes.
//!
//! Runs against the real counterpart or a scripted one; the caller brings a channel whose peer takes
//! the given row. Panics name the rule that was broken.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::json;

use crate::channel::{Channel, ChannelRegistry, Delivery, PointOfNoReturn};
use crate::model::clock::within;
use crate::model::{Clock, OutboxRow, OutboxView, Outcome, TenantId};

/// How often a delivery is polled before it is dropped, from once to so many times.
const CUTS: usize = 40;

/// Holds `channel` to the contract of channels, with `row` as one that its peer accepts.
///
/// # Panics
/// If a rule is broken; the message says which.
pub async fn assert_channel_contract(channel: Arc<dyn Channel>, row: &OutboxRow, clock: &dyn Clock) {
    let registered = ChannelRegistry::new().register(Arc::clone(&channel));
    assert!(registered.is_ok(), "its name can be registered: {registered:?}");
    assert_eq!(channel.name(), row.channel, "the row that is tried is of this channel");
    assert!(channel.deadline() > Duration::ZERO, "it has a deadline");
    assert!(channel.retry_policy().max_attempts() >= 1, "a row has at least one attempt");
    let checked = channel.check(view(row));
    assert!(checked.is_ok(), "a good row passes the check: {checked:?}");

    let point = PointOfNoReturn::new();
    let sent = deliver(&*channel, row, clock, &point).await;
    assert!(matches!(sent, Outcome::Sent(_)), "a good row is sent: {sent:?}");
    let crosses = point.has_been_crossed();

    if crosses {
        // Contract C5.7: cut by the dispatcher first, it must not be handed over.
        let cut = PointOfNoReturn::new();
        assert!(cut.close(), "nobody has crossed yet");
        let outcome = deliver(&*channel, row, clock, &cut).await;
        assert!(
            !matches!(outcome, Outcome::Sent(_) | Outcome::InDoubt(_)),
            "a delivery that was cut before its point of no return is not handed over: {outcome:?}"
        );
    }
    bad_rows_are_outcomes(&*channel, row, clock).await;
    dropped_deliveries_leave_nothing_behind(&*channel, row, clock).await;
}

/// Case C29: what cannot be read or reached is an answer, never a panic, and never a success.
async fn bad_rows_are_outcomes(channel: &dyn Channel, row: &OutboxRow, clock: &dyn Clock) {
    let mut nowhere = row.clone();
    nowhere.recipient_address = String::new();
    assert!(channel.check(view(&nowhere)).is_err(), "a row without an address does not pass the check");
    let outcome = deliver(channel, &nowhere, clock, &PointOfNoReturn::new()).await;
    assert!(!matches!(outcome, Outcome::Sent(_)), "a row without an address is not sent: {outcome:?}");
    for payload in [json!({"v": 999}), json!([1]), json!("text"), json!(null)] {
        let mut odd = row.clone();
        odd.payload = Some(payload);
        // Sent or not is the channel's affair; it must come back.
        deliver(channel, &odd, clock, &PointOfNoReturn::new()).await;
    }
}

/// A delivery dropped at any await leaves nothing that the next one could mistake for its own.
async fn dropped_deliveries_leave_nothing_behind(channel: &dyn Channel, row: &OutboxRow, clock: &dyn Clock) {
    for polls in 1..=CUTS {
        let point = PointOfNoReturn::new();
        {
            let mut dropped = pin!(channel.deliver(delivery(row, clock, &point)));
            let mut left = polls;
            // Each poll but the first follows a real wake-up: the delivery is stopped further on each time.
            poll_fn(|context| {
                left -= 1;
                if dropped.as_mut().poll(context).is_ready() || left == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        let next = deliver(channel, row, clock, &PointOfNoReturn::new()).await;
        assert!(
            matches!(next, Outcome::Sent(_)),
            "after a delivery dropped at poll {polls} the next is sent: {next:?}"
        );
    }
}

async fn deliver(channel: &dyn Channel, row: &OutboxRow, clock: &dyn Clock, point: &PointOfNoReturn) -> Outcome {
    let outcome = within(clock, channel.deadline(), channel.deliver(delivery(row, clock, point))).await;
    outcome.unwrap_or_else(|| panic!("a delivery ends within its deadline of {:?}", channel.deadline()))
}

fn delivery<'a>(row: &'a OutboxRow, clock: &'a dyn Clock, point: &'a PointOfNoReturn) -> Delivery<'a> {
    Delivery::new(view(row), clock, point)
}

fn view(row: &OutboxRow) -> OutboxView<'_> {
    OutboxView::new(row, TenantId::root())
}
