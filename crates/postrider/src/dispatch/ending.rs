//! From what a channel answered to what is written: attempts, deferrals, back-off, doubt.
//!
//! Pure: a function of the row, the outcome, the policies and the time. Source: contract C3, C3.4.

use crate::model::{AddressState, Blame, FailureScope, InDoubtPolicy, Ledger, OutboxRow, Outcome, Retry, Timestamp};
use crate::policy::{DEFERRAL_LIMIT, RetryPolicy};
use crate::store::{Ending, Run};

/// What is written for an outcome.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) ending: Ending,
    pub(super) ledger: Option<Ledger>,
    pub(super) blame: Option<Blame>,
}

/// Decides what is written when `row`'s attempt ended at `now` with `outcome`.
pub(super) fn of(
    row: &OutboxRow,
    outcome: Outcome,
    retry: &RetryPolicy,
    in_doubt: InDoubtPolicy,
    now: Timestamp,
) -> Written {
    let next = |after| retry.next_at(now, row.state.attempts.saturating_add(1), after, row.id);
    match outcome {
        Outcome::Sent(sent) => {
            let whole =
                sent.ledger.as_ref().is_none_or(|l| l.entries().iter().all(|e| e.state == AddressState::Accepted));
            let ending = Ending::Sent {
                provider: sent.provider,
                provider_message_id: sent.provider_message_id,
                reason_code: (!whole).then(|| "partial".to_owned()),
            };
            Written { ending, ledger: sent.ledger, blame: None }
        }
        Outcome::Retry(failed) => {
            let (ledger, blame) = (failed.ledger.clone(), Some(failed.blame));
            Written { ending: failure(row, failed, retry, now), ledger, blame }
        }
        Outcome::Reject(refused) => dead(refused.error, "rejected", false, refused.ledger, Some(refused.blame)),
        Outcome::Gone(refused) => dead(refused.error, "gone", false, refused.ledger, Some(refused.blame)),
        Outcome::Suppress(stop) => {
            let ending = Ending::Suppressed { reason: stop.reason, reason_code: stop.reason_code };
            Written { ending, ledger: None, blame: None }
        }
        Outcome::InDoubt(doubt) => match in_doubt {
            InDoubtPolicy::Retry => {
                let reason_code = Some("in_doubt".to_owned());
                let ending = Ending::Failure { error: doubt.error, next: next(None), reason_code, in_doubt: true };
                Written { ending, ledger: doubt.ledger, blame: None }
            }
            InDoubtPolicy::Hold => dead(doubt.error, "held", true, doubt.ledger, None),
        },
    }
}

/// A failure of the row uses up an attempt; any other puts the row off.
fn failure(row: &OutboxRow, failed: Retry, retry: &RetryPolicy, now: Timestamp) -> Ending {
    if failed.scope == FailureScope::Row {
        let next = retry.next_at(now, row.state.attempts.saturating_add(1), failed.after, row.id);
        return Ending::Failure { error: failed.error, next, reason_code: None, in_doubt: false };
    }
    Ending::Deferred {
        until: retry.next_in_run(now, row.state.deferred_since, failed.after, row.id),
        reason_code: failed.scope.reason_code().to_owned(),
        error: failed.error,
        run: Run::Failure { limit: DEFERRAL_LIMIT },
    }
}

fn dead(error: String, code: &str, in_doubt: bool, ledger: Option<Ledger>, blame: Option<Blame>) -> Written {
    Written { ending: Ending::Dead { error, reason_code: code.to_owned(), in_doubt }, ledger, blame }
}
