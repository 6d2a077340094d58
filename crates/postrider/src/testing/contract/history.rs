//! Contract C3 and C4: what happened stays written, beside the row.

use super::{Bench, Rule};
use crate::model::OutboxEntity;
use crate::store::{Ending, Settlement};

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C3" a_plain_success_stands_on_the_row_alone;
        "C3" attempts_that_failed_are_told_in_order;
        "C3.5" a_requeue_keeps_what_the_row_was;
        "C4.6" lost_claims_are_told;
    }
}

async fn events<E: OutboxEntity>(bench: &Bench<E>, id: crate::model::OutboxId) -> Vec<(String, i64)> {
    let lines = bench.rows().history(id).await.unwrap();
    lines.into_iter().map(|line| (line.event, line.claim_seq)).collect()
}

async fn a_plain_success_stands_on_the_row_alone<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    assert_eq!(events(bench, claim.id).await, []);
    assert!(bench.rows().history(bench.draft().id).await.unwrap_err().is_not_found());
}

async fn attempts_that_failed_are_told_in_order<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    for error in ["450 first", "450 second"] {
        let claim = bench.claim(id).await.expect("it is due");
        bench.rows().record_failure(claim, bench.now(), error, bench.now()).await.unwrap();
        bench.pass(1);
    }
    let lines = bench.rows().history(id).await.unwrap();
    let told: Vec<_> = lines.iter().map(|line| (line.event.as_str(), line.error.as_deref())).collect();
    assert_eq!(told, [("failure", Some("450 first")), ("failure", Some("450 second"))]);
    bench.rows().cancel(id, bench.now(), "ops").await.unwrap();
    assert_eq!(events(bench, id).await.pop(), Some(("cancel".to_owned(), 2)));
}

async fn a_requeue_keeps_what_the_row_was<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.rows().mark_suppressed(claim, bench.now(), "unsubscribed").await.unwrap();
    bench.pass(1);
    bench.rows().requeue(claim.id, bench.now(), "ops").await.unwrap();
    let line = bench.rows().history(claim.id).await.unwrap().pop().expect("a requeue is told");
    assert_eq!((line.event.as_str(), line.status.as_str()), ("requeue", "SUPPRESSED"));
    assert_eq!((line.actor.as_deref(), line.error.as_deref()), (Some("ops"), Some("unsubscribed")));
}

async fn lost_claims_are_told<E: OutboxEntity>(bench: &Bench<E>) {
    let first = bench.claimed().await;
    bench.pass(60);
    let second = bench.claim(first.id).await.expect("it is overdue");
    let ending = Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
    let mut settlement = Settlement::new(second, bench.now(), ending);
    settlement.losses = bench.state(first.id).await.lost_claims;
    bench.rows().settle(&[settlement]).await.unwrap();
    assert_eq!(events(bench, first.id).await, [("lost".to_owned(), 1)]);
}
