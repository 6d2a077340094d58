//! Random events on a real row and on the model in memory: both must always be the same.

use postrider::model::{AddressState, Ledger, LedgerEntry, OutboxId, Role, Timestamp};
use postrider::store::{Cancel, Claim, Ending, Requeue, Run, Settlement};
use postrider::testing::{Act, Model};
use postrider::{ErrorKind, Result};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::support::{World, seconds, start};

const LIMIT: std::time::Duration = std::time::Duration::from_secs(72 * 3600);

/// A step: time passes, then something happens. The token is the newest claim's, or an older one.
#[derive(Debug, Clone)]
struct Step {
    pass: u64,
    kind: u8,
    stale: bool,
    accepted: bool,
    flag: bool,
    text: String,
}

fn step() -> impl Strategy<Value = Step> {
    (
        prop_oneof![Just(0_u64), 1_u64..90, Just(24 * 3600)],
        0_u8..18,
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.2),
        any::<bool>(),
        "[ -~é\u{0}]{0,12}",
    )
        .prop_map(|(pass, kind, stale, accepted, flag, text)| Step { pass, kind, stale, accepted, flag, text })
}

fn ledger(accepted: bool, now: Timestamp) -> Option<Ledger> {
    accepted.then(|| {
        let mut ledger = Ledger::default();
        ledger.record(LedgerEntry {
            address: "alice@example.com".to_owned(),
            role: Role::To,
            state: AddressState::Accepted,
            at: now,
            reply: None,
        });
        ledger
    })
}

fn act(step: &Step, model: &Model, now: Timestamp) -> Act {
    let seq = model.state.claim_seq - i64::from(step.stale);
    let (error, ledger) = (step.text.clone(), ledger(step.accepted, now));
    let reclaim_at = now.plus(seconds(60));
    let node = "node-7".to_owned();
    match step.kind {
        0..=3 => Act::Claim { reclaim_at, node },
        4 => Act::ClaimAlone { reclaim_at, node },
        5 => Act::BuryLost { error: String::new() },
        6 => Act::Sent { seq, provider: "smtp".into(), ledger },
        7 | 8 => Act::Failure { seq, error, next: now.plus(seconds(30)), in_doubt: step.flag, ledger },
        9 => Act::Dead { seq, error, code: "rejected".into(), in_doubt: step.flag, ledger },
        10 => Act::Suppress { seq, reason: error, code: "policy".into() },
        11 => Act::Defer {
            seq,
            until: now.plus(seconds(20)),
            code: "destination".into(),
            error,
            run: Run::Failure { limit: LIMIT },
            ledger,
        },
        12 => {
            let run = if step.flag { Run::Pause } else { Run::OwnLimit };
            Act::Defer { seq, until: now.plus(seconds(5)), code: "limit".into(), error, run, ledger: None }
        }
        13 => Act::Release { seq },
        14 => Act::Renew { seq, reclaim_at },
        15 => Act::Requeue,
        16 if step.flag => Act::Cancel { actor: "ops".into() },
        16 => Act::Expedite,
        _ if step.flag => Act::Postpone { until: now.plus(seconds(40)), code: "paused".into() },
        _ => Act::Resume { code: "paused".into() },
    }
}

/// Does `act` on the real row; true if it changed it.
async fn on_the_row(world: &World, id: OutboxId, act: &Act, now: Timestamp) -> Result<bool> {
    let rows = world.rows();
    let settle = async |seq: i64, ending: Ending, ledger: &Option<Ledger>| {
        let mut settlement = Settlement::new(Claim { id, seq }, now, ending);
        settlement.ledger.clone_from(ledger);
        let settled = rows.settle(&[settlement]).await?.pop().expect("one answer");
        Ok(settled.now?.is_some())
    };
    match act.clone() {
        Act::Claim { reclaim_at, node } => Ok(rows.claim(id, now, reclaim_at, &node).await?.is_some()),
        Act::ClaimAlone { reclaim_at, node } => Ok(rows.claim_suspect(now, reclaim_at, &node).await?.is_some()),
        Act::BuryLost { .. } => Ok(rows.bury_lost(now).await? > 0),
        Act::Sent { seq, provider, ledger } => {
            let ending = Ending::Sent { provider: Some(provider), provider_message_id: None, reason_code: None };
            settle(seq, ending, &ledger).await
        }
        Act::Failure { seq, error, next, in_doubt, ledger } => {
            settle(seq, Ending::Failure { error, next, reason_code: None, in_doubt }, &ledger).await
        }
        Act::Dead { seq, error, code, in_doubt, ledger } => {
            settle(seq, Ending::Dead { error, reason_code: code, in_doubt }, &ledger).await
        }
        Act::Suppress { seq, reason, code } => {
            settle(seq, Ending::Suppressed { reason, reason_code: code }, &None).await
        }
        Act::Defer { seq, until, code, error, run, ledger } => {
            settle(seq, Ending::Deferred { until, reason_code: code, error, run }, &ledger).await
        }
        Act::Release { seq } => settle(seq, Ending::Released, &None).await,
        Act::Renew { seq, reclaim_at } => Ok(rows.renew(&[Claim { id, seq }], now, reclaim_at).await?.lost.is_empty()),
        Act::Requeue => Ok(rows.requeue(id, now, "ops").await? == Requeue::Reset),
        Act::Cancel { actor } => Ok(!matches!(rows.cancel(id, now, &actor).await?, Cancel::AlreadyFinal(_))),
        Act::Expedite => rows.expedite(id, now).await.map(|()| true),
        Act::Postpone { until, code } => Ok(rows.postpone("email", now, until, &code, 10).await? > 0),
        Act::Resume { code } => Ok(rows.resume("email", now, &code, 10).await? > 0),
        other => panic!("{other:?} is not known here"),
    }
}

/// A refusal is a typed error or a plain no; both change nothing.
fn changed(answer: Result<bool>) -> bool {
    match answer {
        Ok(changed) => changed,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Conflict | ErrorKind::WrongStatus), "{error:?}");
            false
        }
    }
}

fn compare(cases: u32, open: impl AsyncFn() -> Option<World>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(world) = runtime.block_on(open()) else { return };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&(prop::collection::vec(step(), 1..40), 1_i32..4), |(steps, max_attempts)| {
        runtime.block_on(async {
            world.clock.set(start());
            let mut draft = world.draft();
            draft.row.max_attempts = max_attempts;
            let id = draft.row.id;
            let mut model = Model { state: draft.row.state.clone(), max_attempts };
            world.insert(vec![draft]).await;
            let mut now = start();
            for step in &steps {
                now = now.plus(seconds(step.pass));
                world.clock.set(now);
                let act = act(step, &model, now);
                let before = model.clone();
                let expected = model.apply(&act, now);
                let found = changed(on_the_row(&world, id, &act, now).await);
                prop_assert_eq!(found, expected, "{:?} on {:?}", act, before);
                let mut state = world.state(id).await;
                if let (Act::BuryLost { .. }, true) = (&act, expected) {
                    prop_assert!(state.last_error.is_some());
                    model.state.last_error.clone_from(&state.last_error);
                }
                // The token and the times are compared too: the whole state is.
                prop_assert_eq!(&mut state, &mut model.state, "after {:?} on {:?}", act, before);
            }
            // Out of the way of the next case, whose claims are not by id alone.
            world.sql(&format!("DELETE FROM postrider_outbox WHERE status <> '{}'", "none")).await;
            Ok(())
        })
    });
    result.unwrap();
}

/// Contract C3, C3.2, C3.6, C4.4, C4.6.
#[test]
fn random_events_end_as_the_contract_says_on_sqlite() {
    compare(300, World::sqlite);
}

/// Contract C3, C3.2, C3.6, C4.4, C4.6: that MariaDB assigns from left to right changes nothing.
#[test]
fn random_events_end_as_the_contract_says_on_mariadb() {
    compare(100, World::mysql);
}

/// Contract C3, C3.2, C3.6, C4.4, C4.6.
#[test]
fn random_events_end_as_the_contract_says_on_postgres() {
    compare(150, World::postgres);
}
