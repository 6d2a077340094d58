//! Whether the relay works, told once when that changes and not once per row.
//!
//! Where it stands: fed by each attempt, it decides when something is said and says it. An attempt
//! counts only if it began after the latest change, so that one under way cannot undo what a later
//! one found. A relay that fails and works by turns is reported at most once a minute. It must not
//! log what a peer said, nor an address or a secret.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The shortest time between two reports of a failure.
const QUIET: Duration = Duration::from_secs(60);

/// What is known of one relay.
#[derive(Debug)]
pub(super) struct Health {
    relay: String,
    state: Mutex<State>,
}

/// Times are the clock's monotonic reading.
#[derive(Debug, Default)]
struct State {
    failing: bool,
    changed_at: Duration,
    /// The latest report, if the failure that it told of goes on or another may be reported.
    reported: Option<Report>,
    /// How many attempts failed since the latest report.
    failures: u64,
}

#[derive(Debug)]
struct Report {
    cause: String,
    at: Duration,
    recovered: bool,
}

impl Health {
    /// A relay that is taken to work.
    pub(super) fn new(relay: String) -> Self {
        Self { relay, state: Mutex::default() }
    }

    /// The relay, as `host:port`.
    pub(super) fn relay(&self) -> &str {
        &self.relay
    }

    /// An attempt that began at `begun` found at `now` that the relay fails.
    pub(super) fn fails(&self, cause: &str, begun: Duration, now: Duration) {
        if self.lock().fails(cause, begun, now) {
            let relay = &self.relay;
            tracing::warn!(relay, cause, "the e-mail relay fails; rows are put off, at no cost of attempts");
        }
    }

    /// An attempt that began at `begun` found at `now` that the relay works.
    pub(super) fn works(&self, begun: Duration, now: Duration) {
        if let Some(failures) = self.lock().works(begun, now) {
            tracing::info!(relay = self.relay, failures, "the e-mail relay works again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// True if it is to be reported.
    fn fails(&mut self, cause: &str, begun: Duration, now: Duration) -> bool {
        if !self.failing {
            if begun < self.changed_at {
                return false;
            }
            (self.failing, self.changed_at) = (true, now);
        }
        self.failures += 1;
        let due = self
            .reported
            .as_ref()
            .is_none_or(|report| (report.recovered || report.cause != cause) && now.saturating_sub(report.at) >= QUIET);
        if due {
            self.reported = Some(Report { cause: cause.to_owned(), at: now, recovered: false });
        }
        due
    }

    /// How many attempts had failed, if it is to be reported that it works.
    fn works(&mut self, begun: Duration, now: Duration) -> Option<u64> {
        if !self.failing || begun < self.changed_at {
            return None;
        }
        (self.failing, self.changed_at) = (false, now);
        let failures = std::mem::take(&mut self.failures);
        let report = self.reported.as_mut().filter(|report| !report.recovered)?;
        report.recovered = true;
        Some(failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_failure_is_reported_once_and_so_is_its_end() {
        let mut state = State::default();
        assert_eq!(state.works(at(0), at(1)), None);
        let reported = (1..500).filter(|n| state.fails("connection refused", at(*n), at(*n))).count();
        assert_eq!(reported, 1);
        assert_eq!(state.works(at(600), at(601)), Some(499));
        assert_eq!(state.works(at(602), at(603)), None);
        assert!(state.fails("connection refused", at(604), at(604)));
    }

    #[test]
    fn another_cause_is_reported_too() {
        let mut state = State::default();
        assert!(state.fails("connection refused", at(0), at(0)));
        assert!(!state.fails("the login was refused (535)", at(30), at(30)));
        assert!(state.fails("the login was refused (535)", at(60), at(60)));
    }

    #[test]
    fn an_attempt_that_began_before_the_change_does_not_undo_it() {
        let mut state = State::default();
        assert!(state.fails("connection refused", at(10), at(11)));
        assert_eq!(state.works(at(9), at(12)), None);
        assert_eq!(state.works(at(12), at(13)), Some(1));
        assert!(!state.fails("connection refused", at(12), at(99)));
    }

    #[test]
    fn a_relay_that_fails_by_turns_is_reported_once_a_minute() {
        let mut state = State::default();
        let mut reports = (0, 0);
        for n in 0..120 {
            reports.0 += u32::from(state.fails("connection refused", at(n), at(n)));
            reports.1 += u32::from(state.works(at(n), at(n)).is_some());
        }
        assert_eq!(reports, (2, 2));
    }
}
