//! Contract C4: at most one worker has a row, and a lost one never writes over its successor.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::{join, join_all};

use super::{Bench, Rule};
use crate::error::ErrorKind;
use crate::model::{OutboxEntity, OutboxStatus};
use crate::store::{Cancel, Claim, Ending, Settlement};

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C3.3" of_a_claim_and_a_cancel_at_once_one_wins;
        "C4.1" of_many_claims_of_a_row_one_wins;
        "C4.1" batches_of_many_workers_share_no_row_and_leave_none_out;
        "C4.2" a_claim_lasts_until_its_time_and_no_longer;
        "C4.3" due_rows_are_found_oldest_first;
        "C4.4" a_stale_worker_cannot_settle_renew_or_release;
        "C4.4" a_late_success_counts_while_nobody_took_over;
        "C4.5" a_renewed_claim_lasts_longer_and_never_shorter;
        "C4.6" a_row_that_kills_its_workers_ends_dead;
        "C4.6" losses_count_in_a_row_only;
        "C4.7" one_batch_settles_in_many_ways;
    }
}

async fn of_a_claim_and_a_cancel_at_once_one_wins<E: OutboxEntity>(bench: &Bench<E>) {
    for _ in 0..8 {
        let id = bench.pending().await;
        let claims = join_all((0..3).map(|_| bench.claim(id)));
        let cancels = join_all((0..3).map(|_| async {
            let rows = bench.rows();
            rows.cancel(id, bench.now(), "ops").await.is_ok_and(|cancel| cancel == Cancel::Cancelled)
        }));
        let (claims, cancels) = bench.passing(join(claims, cancels)).await;
        let won = (claims.iter().flatten().count(), cancels.iter().filter(|won| **won).count());
        let status = bench.state(id).await.status;
        match won {
            (1, 0) => assert_eq!(status, OutboxStatus::Sending),
            (0, 1) => assert_eq!(status, OutboxStatus::Suppressed),
            _ => panic!("claims and cancels that won: {won:?}"),
        }
    }
}

async fn of_many_claims_of_a_row_one_wins<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    let won: Vec<_> = bench.passing(join_all((0..24).map(|_| bench.claim(id)))).await.into_iter().flatten().collect();
    assert_eq!(won, [Claim { id, seq: 1 }]);
    let mut later = bench.draft();
    later.state.next_attempt_at = bench.later(1);
    let later = bench.write(later).await;
    assert_eq!(bench.claim(later).await, None, "it is not due");
    assert_eq!(bench.claim(bench.draft().id).await, None, "there is no such row");
}

async fn batches_of_many_workers_share_no_row_and_leave_none_out<E: OutboxEntity>(bench: &Bench<E>) {
    let rows: Vec<_> = (0..120).map(|_| bench.draft()).collect();
    let all: HashSet<_> = rows.iter().map(|row| row.id).collect();
    bench.insert(rows.into_iter().map(|row| bench.entity(row)).collect()).await;
    let worker = async || {
        let mut mine = Vec::new();
        loop {
            let claimed = bench.claim_due(7).await;
            assert!(claimed.len() <= 7, "a batch is no larger than it was asked for");
            if claimed.is_empty() {
                return mine;
            }
            mine.extend(claimed.into_iter().map(|claimed| claimed.claim.id));
        }
    };
    let claimed: Vec<_> = bench.passing(join_all((0..6).map(|_| worker()))).await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 120, "no row is claimed twice");
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), all);
}

async fn a_claim_lasts_until_its_time_and_no_longer<E: OutboxEntity>(bench: &Bench<E>) {
    let first = bench.claimed().await;
    bench.pass(59);
    assert_eq!(bench.claim(first.id).await, None);
    assert!(bench.claim_due(10).await.is_empty());
    bench.pass(1);
    let taken = bench.claim_due(10).await;
    assert_eq!(taken.iter().map(|claimed| claimed.claim).collect::<Vec<_>>(), [Claim { id: first.id, seq: 2 }]);
    let state = bench.state(first.id).await;
    assert_eq!((state.lost_claims, state.attempts), (1, 0), "a lost claim is no attempt");
}

async fn due_rows_are_found_oldest_first<E: OutboxEntity>(bench: &Bench<E>) {
    bench.pass(100);
    let mut ids = Vec::new();
    for back in [30, 10, 20] {
        let mut row = bench.draft();
        row.state.next_attempt_at = bench.now().minus(Duration::from_secs(back));
        ids.push(bench.write(row).await);
    }
    let mut later = bench.draft();
    later.state.next_attempt_at = bench.later(1);
    bench.write(later).await;
    let waiting = [OutboxStatus::Pending, OutboxStatus::Failed];
    let found = async |statuses: &[OutboxStatus], limit| {
        let due = bench.rows().find_due(statuses, bench.now(), limit).await.unwrap();
        due.iter().map(|entity| entity.row().id).collect::<Vec<_>>()
    };
    assert_eq!(found(&waiting, 10).await, [ids[0], ids[2], ids[1]]);
    assert_eq!(found(&waiting, 2).await, [ids[0], ids[2]], "at most one batch");
    bench.claim(ids[0]).await.expect("it is due");
    assert_eq!(found(&waiting, 10).await, [ids[2], ids[1]]);
    bench.pass(60);
    assert!(found(&[OutboxStatus::Sending], 10).await.contains(&ids[0]), "an overdue claim is due too");
    let claimed: Vec<_> = bench.claim_due(2).await.into_iter().map(|claimed| claimed.claim.id).collect();
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), HashSet::from([ids[2], ids[1]]), "the oldest are claimed");
}

async fn a_stale_worker_cannot_settle_renew_or_release<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let stale = bench.claimed().await;
    bench.pass(60);
    let fresh = bench.claim(stale.id).await.expect("it is overdue");
    let before = bench.row(stale.id).await;
    let refused = rows.mark_sent(stale, bench.now()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ClaimLost);
    let refused = rows.record_failure(stale, bench.now(), "no", bench.now()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ClaimLost);
    let released = rows.settle(&[Settlement::new(stale, bench.now(), Ending::Released)]).await.unwrap();
    assert!(matches!(released[0].now, Ok(None)));
    let renewed = rows.renew(&[stale], bench.now(), bench.later(900)).await.unwrap();
    assert_eq!((renewed.kept.as_slice(), renewed.lost.as_slice()), (&[][..], &[stale][..]));
    assert_eq!(bench.row(stale.id).await, before, "nothing changed");
    rows.mark_sent(fresh, bench.now()).await.unwrap();
}

async fn a_late_success_counts_while_nobody_took_over<E: OutboxEntity>(bench: &Bench<E>) {
    let slow = bench.claimed().await;
    bench.pass(500);
    bench.rows().mark_sent(slow, bench.now()).await.unwrap();
    assert_eq!(bench.state(slow.id).await.status, OutboxStatus::Sent);
}

async fn a_renewed_claim_lasts_longer_and_never_shorter<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.pass(30);
    let renewed = bench.rows().renew(&[claim], bench.now(), bench.later(60)).await.unwrap();
    assert_eq!(renewed.kept, [claim]);
    bench.pass(40);
    assert_eq!(bench.claim(claim.id).await, None, "the first time has passed, the renewed one has not");
    bench.rows().renew(&[claim], bench.now(), bench.later(1)).await.unwrap();
    bench.pass(5);
    assert_eq!(bench.claim(claim.id).await, None, "a renewal never shortens a claim");
    bench.pass(15);
    assert!(bench.claim(claim.id).await.is_some());
}

async fn a_row_that_kills_its_workers_ends_dead<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let id = bench.pending().await;
    for seq in 1..=3 {
        assert_eq!(bench.claim(id).await, Some(Claim { id, seq }));
        bench.pass(60);
    }
    assert_eq!(bench.claim(id).await, None, "lost three times: no ordinary claim takes it");
    assert!(bench.claim_due(10).await.is_empty());
    assert!(rows.has_suspect(bench.now()).await.unwrap());
    let alone = rows.claim_suspect(bench.now(), bench.later(60), "node-1").await.unwrap().expect("the lone claim does");
    assert_eq!(alone.claim, Claim { id, seq: 4 });
    assert_eq!(rows.bury_lost(bench.now()).await.unwrap(), 0);
    bench.pass(60);
    assert!(rows.claim_suspect(bench.now(), bench.later(60), "node-1").await.unwrap().is_none());
    assert_eq!(rows.bury_lost(bench.now()).await.unwrap(), 1);
    let state = bench.state(id).await;
    assert_eq!((state.status, state.attempts), (OutboxStatus::Dead, 0));
    assert!(state.last_error.is_some_and(|error| error.contains("lost")));
}

async fn losses_count_in_a_row_only<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    for _ in 0..2 {
        bench.claim(id).await.expect("it is due or overdue");
        bench.pass(60);
    }
    let third = bench.claim(id).await.expect("it is overdue");
    assert_eq!(bench.state(id).await.lost_claims, 2);
    bench.rows().record_failure(third, bench.now(), "no", bench.now()).await.unwrap();
    assert_eq!(bench.state(id).await.lost_claims, 0);
}

async fn one_batch_settles_in_many_ways<E: OutboxEntity>(bench: &Bench<E>) {
    let mut claims = Vec::new();
    for _ in 0..5 {
        claims.push(bench.claimed().await);
    }
    let sent = || Ending::Sent { provider: Some("smtp".to_owned()), provider_message_id: None, reason_code: None };
    let failure = |error: &str| Ending::Failure {
        error: error.to_owned(),
        next: bench.later(9),
        reason_code: None,
        in_doubt: false,
    };
    let stale = Claim { id: claims[4].id, seq: 77 };
    let endings = [
        (claims[0], sent()),
        (claims[1], failure("one")),
        (claims[2], failure("two")),
        (claims[3], Ending::Released),
        (stale, sent()),
    ];
    let all: Vec<_> = endings.into_iter().map(|(claim, how)| Settlement::new(claim, bench.now(), how)).collect();
    let settled = bench.rows().settle(&all).await.unwrap();
    assert_eq!(settled.len(), 5, "one answer each");
    let lost: Vec<_> = settled.iter().filter(|one| matches!(one.now, Ok(None))).map(|one| one.claim).collect();
    assert_eq!(lost, [stale]);
    let mut found = Vec::new();
    for claim in &claims {
        let state = bench.state(claim.id).await;
        found.push((state.status, state.last_error));
    }
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(
        found,
        [
            (OutboxStatus::Sent, None),
            (OutboxStatus::Failed, said("one")),
            (OutboxStatus::Failed, said("two")),
            (OutboxStatus::Pending, None),
            (OutboxStatus::Sending, None),
        ]
    );
}
