//! Contract C3: the state machine, event by event.

use std::time::Duration;

use super::{Bench, Rule};
use crate::error::ErrorKind;
use crate::model::{AddressState, Ledger, LedgerEntry, OutboxEntity, OutboxId, OutboxStatus, Role};
use crate::store::{Cancel, Claim, Ending, Requeue, Run, Settlement};

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C3" a_claimed_row_is_sending;
        "C3" a_sent_row_is_final;
        "C3" a_failure_is_tried_again_until_the_attempts_are_used_up;
        "C3.1" a_suppressed_row_used_no_attempt;
        "C3" what_can_never_succeed_is_dead_at_once;
        "C3" a_released_row_is_due_and_used_no_attempt;
        "C3.4" a_deferred_row_used_no_attempt_and_ends_with_its_run;
        "C3" an_attempt_in_doubt_is_marked;
        "C3" requeue_gives_the_whole_budget_back;
        "C3" requeue_of_a_pending_row_changes_nothing;
        "C3" requeue_of_a_row_under_way_is_a_conflict;
        "C3.5" a_resend_has_a_key_of_its_own;
        "C3" cancel_stops_a_waiting_row_alone;
        "C3" expedite_makes_a_waiting_row_due;
        "C3" postponed_rows_come_back_with_their_cause;
        "C3.2" an_event_from_a_wrong_status_changes_nothing;
        "C3.6" what_was_delivered_in_part_ends_sent;
    }
}

/// Settles a claim; the status that the row has then.
async fn settle<E: OutboxEntity>(bench: &Bench<E>, settlement: Settlement) -> OutboxStatus {
    let mut settled = bench.rows().settle(&[settlement]).await.unwrap();
    settled.remove(0).now.unwrap().expect("the claim holds").0
}

fn deferral<E: OutboxEntity>(bench: &Bench<E>, claim: Claim, run: Run) -> Settlement {
    let (reason_code, error) = ("destination".to_owned(), "no route".to_owned());
    Settlement::new(claim, bench.now(), Ending::Deferred { until: bench.later(30), reason_code, error, run })
}

fn dead(claim: Claim, in_doubt: bool) -> Ending {
    Ending::Dead { error: format!("{} will never do", claim.id), reason_code: "rejected".to_owned(), in_doubt }
}

async fn a_claimed_row_is_sending<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    let state = bench.state(claim.id).await;
    assert_eq!((state.status, state.attempts, state.claim_seq), (OutboxStatus::Sending, 0, 1));
    assert_eq!(state.next_attempt_at, bench.later(60));
    assert_eq!(state.claimed_by.as_deref(), Some("node-1"));
}

async fn a_sent_row_is_final<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.pass(2);
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    let state = bench.state(claim.id).await;
    assert_eq!((state.status, state.attempts, state.sent_at), (OutboxStatus::Sent, 1, Some(bench.now())));
    bench.pass(1_000_000);
    assert_eq!(bench.claim(claim.id).await, None, "nobody claims it again");
}

async fn a_failure_is_tried_again_until_the_attempts_are_used_up<E: OutboxEntity>(bench: &Bench<E>) {
    let mut row = bench.draft();
    row.max_attempts = 2;
    let id = bench.write(row).await;
    let claim = bench.claim(id).await.expect("it is due");
    let status = bench.rows().record_failure(claim, bench.now(), "450 later", bench.later(30)).await.unwrap();
    let state = bench.state(id).await;
    assert_eq!((status, state.status, state.attempts), (OutboxStatus::Failed, OutboxStatus::Failed, 1));
    assert_eq!((state.next_attempt_at, state.last_error.as_deref()), (bench.later(30), Some("450 later")));
    assert_eq!(bench.claim(id).await, None, "it is not due yet");
    bench.pass(30);
    let claim = bench.claim(id).await.expect("it is due again");
    let status = bench.rows().record_failure(claim, bench.now(), "450 no more", bench.later(30)).await.unwrap();
    let state = bench.state(id).await;
    assert_eq!((status, state.attempts, state.last_error.as_deref()), (OutboxStatus::Dead, 2, Some("450 no more")));
    bench.pass(1_000_000);
    assert_eq!(bench.claim(id).await, None);
}

async fn a_suppressed_row_used_no_attempt<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    bench.rows().mark_suppressed(claim, bench.now(), "unsubscribed").await.unwrap();
    let state = bench.state(claim.id).await;
    assert_eq!((state.status, state.attempts, state.sent_at), (OutboxStatus::Suppressed, 0, None));
    assert_eq!(state.last_error.as_deref(), Some("unsubscribed"));
    bench.pass(1_000_000);
    assert_eq!(bench.claim(claim.id).await, None, "no retry is planned");
}

async fn what_can_never_succeed_is_dead_at_once<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    let settlement = Settlement::new(claim, bench.now(), dead(claim, false));
    assert_eq!(settle(bench, settlement).await, OutboxStatus::Dead);
    let state = bench.state(claim.id).await;
    assert_eq!((state.attempts, state.reason_code.as_deref()), (1, Some("rejected")));
}

async fn a_released_row_is_due_and_used_no_attempt<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    assert_eq!(settle(bench, Settlement::new(claim, bench.now(), Ending::Released)).await, OutboxStatus::Pending);
    let state = bench.state(claim.id).await;
    assert_eq!((state.attempts, state.next_attempt_at), (0, bench.now()));
    let claim = bench.claim(claim.id).await.expect("it is due");
    bench.rows().record_failure(claim, bench.now(), "no", bench.now()).await.unwrap();
    let claim = bench.claim(claim.id).await.expect("it is due");
    assert_eq!(settle(bench, Settlement::new(claim, bench.now(), Ending::Released)).await, OutboxStatus::Failed);
}

async fn a_deferred_row_used_no_attempt_and_ends_with_its_run<E: OutboxEntity>(bench: &Bench<E>) {
    let (limit, id) = (Duration::from_secs(72 * 3_600), bench.pending().await);
    let began = bench.now();
    let defer = async |run| {
        let claim = bench.claim(id).await.expect("it is due");
        let status = settle(bench, deferral(bench, claim, run)).await;
        (status, bench.state(id).await)
    };
    let (status, state) = defer(Run::Failure { limit }).await;
    assert_eq!((status, state.attempts, state.deferrals), (OutboxStatus::Pending, 0, 1));
    assert_eq!((state.next_attempt_at, state.deferred_since), (bench.later(30), Some(began)));
    assert_eq!((state.reason_code.as_deref(), state.last_error), (Some("destination"), None));
    bench.pass(3_600);
    assert_eq!(defer(Run::Failure { limit }).await.1.deferred_since, Some(began), "the run goes on");
    bench.pass(3_600);
    assert_eq!(
        defer(Run::OwnLimit).await.1.deferred_since,
        Some(began),
        "one's own limit neither counts nor breaks it"
    );
    bench.pass(3_600);
    assert_eq!(defer(Run::Pause).await.1.deferred_since, None, "a pause breaks it");
    bench.pass(3_600);
    defer(Run::Failure { limit }).await;
    bench.pass(72 * 3_600);
    let (status, state) = defer(Run::Failure { limit }).await;
    assert_eq!((status, state.attempts, state.deferrals), (OutboxStatus::Dead, 0, 6));
    assert_eq!(state.last_error.as_deref(), Some("no route"));
}

async fn an_attempt_in_doubt_is_marked<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    let (error, next) = ("the connection broke".to_owned(), bench.now());
    let failure = Ending::Failure { error, next, reason_code: None, in_doubt: true };
    assert_eq!(settle(bench, Settlement::new(claim, bench.now(), failure)).await, OutboxStatus::Failed);
    let state = bench.state(claim.id).await;
    assert_eq!((state.attempts, state.in_doubt), (1, true));
    let claim = bench.claim(claim.id).await.expect("it is tried again");
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    let state = bench.state(claim.id).await;
    assert!(state.in_doubt && state.last_error.is_some(), "a copy may exist: success does not clear it");
    bench.rows().requeue(claim.id, bench.now(), "ops").await.unwrap();
    assert!(!bench.state(claim.id).await.in_doubt, "only a requeue does");
}

/// A row in each status from which a requeue resets it.
async fn in_each_final_status<E: OutboxEntity>(bench: &Bench<E>) -> Vec<(OutboxStatus, OutboxId)> {
    let rows = bench.rows();
    let mut all = Vec::new();
    for status in [OutboxStatus::Sent, OutboxStatus::Dead, OutboxStatus::Suppressed, OutboxStatus::Failed] {
        let claim = bench.claimed().await;
        match status {
            OutboxStatus::Sent => rows.mark_sent(claim, bench.now()).await.unwrap(),
            OutboxStatus::Suppressed => rows.mark_suppressed(claim, bench.now(), "no").await.unwrap(),
            OutboxStatus::Failed => {
                rows.record_failure(claim, bench.now(), "no", bench.later(9)).await.unwrap();
            }
            _ => {
                settle(bench, Settlement::new(claim, bench.now(), dead(claim, true))).await;
            }
        }
        assert_eq!(bench.state(claim.id).await.status, status);
        all.push((status, claim.id));
    }
    all
}

async fn requeue_gives_the_whole_budget_back<E: OutboxEntity>(bench: &Bench<E>) {
    for (status, id) in in_each_final_status(bench).await {
        let before = bench.row(id).await;
        bench.pass(5);
        assert_eq!(bench.rows().requeue(id, bench.later(7), "ops").await.unwrap(), Requeue::Reset, "{status}");
        let after = bench.row(id).await;
        let state = &after.state;
        assert_eq!((state.status, state.attempts, state.next_attempt_at), (OutboxStatus::Pending, 0, bench.later(7)));
        assert_eq!((&state.last_error, state.sent_at, &state.reason_code), (&None, None, &None), "{status}");
        assert_eq!((state.claim_seq, state.in_doubt, state.lost_claims), (before.state.claim_seq, false, 0));
        assert_eq!((after.max_attempts, &after.dedupe_key), (before.max_attempts, &before.dedupe_key));
    }
}

async fn requeue_of_a_pending_row_changes_nothing<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    let before = bench.row(id).await;
    bench.pass(5);
    assert_eq!(bench.rows().requeue(id, bench.later(7), "ops").await.unwrap(), Requeue::AlreadyPending);
    assert_eq!(bench.row(id).await, before);
}

async fn requeue_of_a_row_under_way_is_a_conflict<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    let before = bench.row(claim.id).await;
    for _ in 0..2 {
        let refused = bench.rows().requeue(claim.id, bench.now(), "ops").await.unwrap_err();
        assert!(refused.is_conflict(), "{refused}");
        assert_eq!(bench.row(claim.id).await, before);
        // The second time it is overdue.
        bench.pass(61);
    }
    let unknown = bench.draft().id;
    assert!(bench.rows().requeue(unknown, bench.now(), "ops").await.unwrap_err().is_not_found());
}

async fn a_resend_has_a_key_of_its_own<E: OutboxEntity>(bench: &Bench<E>) {
    for (status, id) in in_each_final_status(bench).await {
        let before = bench.row(id).await.idempotency_key();
        bench.rows().requeue(id, bench.now(), "ops").await.unwrap();
        let after = bench.row(id).await;
        let anew = status == OutboxStatus::Sent;
        assert_eq!((after.state.resends, after.idempotency_key() != before), (i32::from(anew), anew), "{status}");
    }
}

async fn cancel_stops_a_waiting_row_alone<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let id = bench.pending().await;
    assert_eq!(rows.cancel(id, bench.now(), "ops").await.unwrap(), Cancel::Cancelled);
    let state = bench.state(id).await;
    assert_eq!((state.status, state.reason_code.as_deref()), (OutboxStatus::Suppressed, Some("cancelled")));
    let again = rows.cancel(id, bench.now(), "ops").await.unwrap();
    assert_eq!(again, Cancel::AlreadyFinal(OutboxStatus::Suppressed));
    assert_eq!(bench.claim(id).await, None);
    let claim = bench.claimed().await;
    assert!(rows.cancel(claim.id, bench.now(), "ops").await.unwrap_err().is_conflict());
    assert_eq!(bench.state(claim.id).await.status, OutboxStatus::Sending);
}

async fn expedite_makes_a_waiting_row_due<E: OutboxEntity>(bench: &Bench<E>) {
    let mut row = bench.draft();
    row.state.next_attempt_at = bench.later(3_600);
    let id = bench.write(row).await;
    assert_eq!(bench.claim(id).await, None);
    bench.rows().expedite(id, bench.now()).await.unwrap();
    assert_eq!(bench.state(id).await.next_attempt_at, bench.now());
    let claim = bench.claim(id).await.expect("it is due");
    assert!(bench.rows().expedite(id, bench.now()).await.unwrap_err().is_conflict());
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    assert_eq!(bench.rows().expedite(id, bench.now()).await.unwrap_err().kind(), ErrorKind::WrongStatus);
}

async fn postponed_rows_come_back_with_their_cause<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let (mail, under_way) = (bench.pending().await, bench.claimed().await);
    let mut hook = bench.draft();
    hook.channel = "webhook".to_owned();
    let hook = bench.write(hook).await;
    assert_eq!(rows.postpone("email", bench.now(), bench.later(100), "paused", 100).await.unwrap(), 1);
    let state = bench.state(mail).await;
    assert_eq!((state.status, state.next_attempt_at), (OutboxStatus::Pending, bench.later(100)));
    assert_eq!(state.reason_code.as_deref(), Some("paused"));
    assert_eq!(bench.state(under_way.id).await.status, OutboxStatus::Sending);
    assert_eq!(bench.state(hook).await.reason_code, None, "another channel's rows stay");
    bench.pass(5);
    assert_eq!(rows.resume("email", bench.now(), "breaker", 100).await.unwrap(), 0, "another cause's rows stay");
    assert_eq!(rows.resume("email", bench.now(), "paused", 100).await.unwrap(), 1);
    let state = bench.state(mail).await;
    assert_eq!((state.next_attempt_at, state.reason_code, state.attempts), (bench.now(), None, 0));
}

async fn an_event_from_a_wrong_status_changes_nothing<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let claim = bench.claimed().await;
    rows.mark_sent(claim, bench.now()).await.unwrap();
    let before = bench.row(claim.id).await;
    bench.pass(1);
    for refused in [
        rows.mark_sent(claim, bench.now()).await.unwrap_err(),
        rows.mark_suppressed(claim, bench.now(), "no").await.unwrap_err(),
        rows.record_failure(claim, bench.now(), "no", bench.now()).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::WrongStatus, "{refused}");
    }
    for ending in [Ending::Released, dead(claim, true)] {
        let settled = rows.settle(&[Settlement::new(claim, bench.now(), ending)]).await.unwrap();
        assert!(matches!(settled[0].now, Ok(None)), "{settled:?}");
    }
    assert_eq!(bench.row(claim.id).await, before);
}

async fn what_was_delivered_in_part_ends_sent<E: OutboxEntity>(bench: &Bench<E>) {
    let accepted = |at| {
        let mut ledger = Ledger::default();
        let (address, role, state) = ("alice@example.com".to_owned(), Role::To, AddressState::Accepted);
        ledger.record(LedgerEntry { address, role, state, at, reply: None });
        ledger
    };
    for end in ["dead", "suppressed", "cancelled", "attempts"] {
        let mut row = bench.draft();
        row.max_attempts = 2;
        let id = bench.write(row).await;
        let claim = bench.claim(id).await.expect("it is due");
        let (taken_at, error) = (bench.now(), "450 a copy was refused".to_owned());
        let failure = Ending::Failure { error, next: bench.now(), reason_code: None, in_doubt: false };
        let mut settlement = Settlement::new(claim, bench.now(), failure);
        settlement.ledger = Some(accepted(taken_at));
        settle(bench, settlement).await;
        bench.pass(5);
        if end == "cancelled" {
            assert_eq!(bench.rows().cancel(id, bench.now(), "ops").await.unwrap(), Cancel::AlreadyDelivered);
        } else {
            let claim = bench.claim(id).await.expect("it is due");
            match end {
                "dead" => drop(settle(bench, Settlement::new(claim, bench.now(), dead(claim, false))).await),
                "suppressed" => bench.rows().mark_suppressed(claim, bench.now(), "no").await.unwrap(),
                _ => drop(bench.rows().record_failure(claim, bench.now(), "no", bench.now()).await.unwrap()),
            }
        }
        let state = bench.state(id).await;
        assert_eq!((state.status, state.sent_at), (OutboxStatus::Sent, Some(taken_at)), "{end}");
        assert_eq!(state.reason_code.as_deref(), Some("partial"), "{end}");
        assert!(state.last_error.is_some(), "{end}: the reason is kept");
    }
}
