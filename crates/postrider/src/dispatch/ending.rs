//! From what a channel answered to what is written: attempts, deferrals, back-off, doubt.
//!
//! Pure: a function of the row, the outcome, the policies and the time. Source: contract C3, C3.4.

use std::time::Duration;

use crate::model::{AddressState, Blame, FailureScope, InDoubtPolicy, Ledger, OutboxRow, Outcome, Retry, Timestamp};
use crate::policy::{DEFERRAL_LIMIT, RetryPolicy};
use crate::store::{Ending, Run};

/// How long a row waits that met a limit of our own, unless its channel says more.
const OWN_LIMIT_DELAY: Duration = Duration::from_secs(5);

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

/// A failure of the row uses up an attempt; any other puts the row off. A limit of our own says
/// nothing about the destination: it neither lengthens the delay nor counts for the age limit.
fn failure(row: &OutboxRow, failed: Retry, retry: &RetryPolicy, now: Timestamp) -> Ending {
    if failed.scope == FailureScope::Row {
        let next = retry.next_at(now, row.state.attempts.saturating_add(1), failed.after, row.id);
        return Ending::Failure { error: failed.error, next, reason_code: None, in_doubt: false };
    }
    if failed.scope == FailureScope::Own {
        return Ending::Deferred {
            until: now.plus(failed.after.unwrap_or_default().clamp(OWN_LIMIT_DELAY, RetryPolicy::MAX_DELAY)),
            reason_code: failed.scope.reason_code().to_owned(),
            error: failed.error,
            run: Run::OwnLimit,
        };
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::OutboxId;

    /// Contract C3: a deferral due to one's own limits does not count for the 72 hours.
    #[test]
    fn a_limit_of_our_own_puts_off_shortly_and_begins_no_run() {
        let now = Timestamp::parse("2026-03-01T10:00:00Z").unwrap();
        let mut row = OutboxRow::new(OutboxId::from(Uuid::from_u128(7)), "email", "jane", "jane@example.com", now);
        row.state.deferred_since = Some(Timestamp::MIN);
        for (after, waits) in [(None, 5), (Some(1), 5), (Some(60), 60)] {
            let failed = Retry {
                error: "busy".into(),
                after: after.map(Duration::from_secs),
                scope: FailureScope::Own,
                blame: Blame::Nobody,
                ledger: None,
            };
            let written = of(&row, Outcome::Retry(failed), &RetryPolicy::email(), InDoubtPolicy::Retry, now);
            let expected = Ending::Deferred {
                until: now.plus(Duration::from_secs(waits)),
                reason_code: "own_limit".into(),
                error: "busy".into(),
                run: Run::OwnLimit,
            };
            assert_eq!(written.ending, expected);
        }
    }
}
