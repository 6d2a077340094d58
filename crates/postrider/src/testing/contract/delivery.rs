//! Contract C5: rows that are due are delivered, whether or not anybody says so.

use std::sync::Arc;

use super::{Bench, Rule};
use crate::dispatch::Dispatcher;
use crate::model::{Clock, OutboxEntity, OutboxStatus};
use crate::outbox::Outbox;
use crate::store::Requeue;
use crate::testing::RecordingChannel;

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C1.7" a_channel_sees_the_row_as_the_claim_returned_it;
        "C5.2" the_poller_delivers_what_nobody_handed_over;
        "C5.5" a_resend_is_delivered_once;
        "C5.6" a_retry_carries_the_same_key;
        "C5.7" shutdown_leaves_no_row_under_way;
    }
}

pub(super) fn start<E: OutboxEntity>(bench: &Bench<E>, channel: &Arc<RecordingChannel>) -> Dispatcher<E> {
    let clock: Arc<dyn Clock> = bench.clock.clone();
    let outbox = Outbox::<E>::builder(Arc::clone(&bench.database), clock)
        .table(bench.repository.table().clone())
        .channel(channel.clone())
        .build()
        .unwrap();
    outbox.start(bench.node("node-1")).unwrap()
}

async fn a_channel_sees_the_row_as_the_claim_returned_it<E: OutboxEntity>(bench: &Bench<E>) {
    let mut row = bench.draft();
    (row.subject, row.body) = (Some("Hello".to_owned()), Some("Hi there".to_owned()));
    let id = bench.write(row.clone()).await;
    let channel = Arc::new(RecordingChannel::new("email"));
    let dispatcher = start(bench, &channel);
    let sent = bench.passing(channel.wait_for(1)).await.remove(0);
    bench.passing(dispatcher.shutdown()).await;
    assert_eq!((sent.id, &sent.subject, &sent.body, &sent.dedupe_key), (id, &row.subject, &row.body, &row.dedupe_key));
    assert_eq!((sent.state.status, sent.state.claim_seq), (OutboxStatus::Sending, 1));
}

async fn the_poller_delivers_what_nobody_handed_over<E: OutboxEntity>(bench: &Bench<E>) {
    // A worker died on the way, too.
    let (waiting, stuck) = (bench.pending().await, bench.claimed().await);
    bench.pass(60);
    let channel = Arc::new(RecordingChannel::new("email"));
    let dispatcher = start(bench, &channel);
    let sent = bench.passing(channel.wait_for(2)).await;
    bench.passing(dispatcher.shutdown()).await;
    assert_eq!(sent.len(), 2);
    for id in [waiting, stuck.id] {
        assert_eq!(sent.iter().filter(|row| row.id == id).count(), 1);
        let state = bench.state(id).await;
        assert_eq!((state.status, state.attempts), (OutboxStatus::Sent, 1));
    }
}

async fn a_resend_is_delivered_once<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    assert_eq!(bench.rows().requeue(claim.id, bench.now(), "ops").await.unwrap(), Requeue::Reset);
    let channel = Arc::new(RecordingChannel::new("email"));
    let (one, two) = (start(bench, &channel), start(bench, &channel));
    bench.passing(channel.wait_for(1)).await;
    bench.passing(one.shutdown()).await;
    bench.passing(two.shutdown()).await;
    assert_eq!(channel.deliveries().len(), 1);
    assert_eq!(bench.state(claim.id).await.status, OutboxStatus::Sent);
}

async fn a_retry_carries_the_same_key<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.rows().record_failure(claim, bench.now(), "no answer", bench.now()).await.unwrap();
    let channel = Arc::new(RecordingChannel::new("email"));
    let dispatcher = start(bench, &channel);
    let sent = bench.passing(channel.wait_for(1)).await;
    bench.passing(dispatcher.shutdown()).await;
    assert_eq!(sent[0].idempotency_key(), claim.id.to_string());
}

async fn shutdown_leaves_no_row_under_way<E: OutboxEntity>(bench: &Bench<E>) {
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(bench.pending().await);
    }
    let channel = Arc::new(RecordingChannel::new("email"));
    let dispatcher = start(bench, &channel);
    bench.passing(channel.wait_for(1)).await;
    bench.passing(dispatcher.shutdown()).await;
    let sent: Vec<_> = channel.deliveries().iter().map(|row| row.id).collect();
    for id in ids {
        let expected = if sent.contains(&id) { OutboxStatus::Sent } else { OutboxStatus::Pending };
        assert_eq!(bench.state(id).await.status, expected);
    }
}
