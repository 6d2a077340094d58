//! When a row is tried again: a list of delays, jitter, and how many attempts that makes.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{OutboxId, Timestamp};

/// An unbroken run of failure-caused deferrals ends DEAD after this long. Source: contract C3.
pub const DEFERRAL_LIMIT: Duration = Duration::from_secs(72 * 3600);

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Delays between attempts, indexed by how many there were; the last one repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    delays: Vec<Duration>,
    jitter: f64,
}

impl RetryPolicy {
    /// The longest delay that a policy may hold: 30 days.
    pub const MAX_DELAY: Duration = Duration::from_secs(30 * 24 * HOUR);

    /// A policy of these delays; `jitter` is the share by which each varies both ways.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if there is no delay, one is zero or over
    /// [`Self::MAX_DELAY`], or the jitter is not within 0 and 0.9 (NaN is not).
    pub fn new(delays: Vec<Duration>, jitter: f64) -> Result<Self> {
        let refuse = |why: String| Err(Error::new(ErrorKind::Configuration, why));
        if delays.is_empty() {
            return refuse("a retry policy needs at least one delay".into());
        }
        if let Some(bad) = delays.iter().find(|d| d.is_zero() || **d > Self::MAX_DELAY) {
            return refuse(format!("a retry delay of {bad:?} is not between 1 ns and 30 days"));
        }
        if !(0.0..=0.9).contains(&jitter) {
            return refuse(format!("a jitter of {jitter} is not between 0 and 0.9"));
        }
        Ok(Self { delays, jitter })
    }

    /// Exponential delays: `base`, then times `factor` each, never over `cap`.
    ///
    /// # Errors
    /// As [`Self::new`]; also if the factor is not a finite number of at least 1, if `steps` is
    /// not 1 to 1,000, or `cap` is below `base`.
    pub fn exponential(base: Duration, factor: f64, cap: Duration, steps: usize, jitter: f64) -> Result<Self> {
        let refuse = |why: String| Err(Error::new(ErrorKind::Configuration, why));
        if !factor.is_finite() || factor < 1.0 {
            return refuse(format!("a back-off factor of {factor} is not a number of at least 1"));
        }
        if steps == 0 || steps > 1_000 {
            return refuse(format!("{steps} back-off steps are not between 1 and 1,000"));
        }
        if base.is_zero() || cap < base || cap > Self::MAX_DELAY {
            return refuse(format!("a back-off from {base:?} up to {cap:?} is not between 1 ns and 30 days, rising"));
        }
        let mut delays = Vec::with_capacity(steps);
        let mut delay = base;
        for _ in 0..steps {
            delays.push(delay);
            // The cap is put on before the multiplication could leave the range of a duration.
            let next = delay.as_secs_f64() * factor;
            delay = if next >= cap.as_secs_f64() { cap } else { Duration::from_secs_f64(next) };
        }
        Self::new(delays, jitter)
    }

    /// For e-mail: 1, 5, 15, 30 min, 1, 2, 4, 8, 12, 24 h; ±20 %.
    #[must_use]
    pub fn email() -> Self {
        Self::of([
            MINUTE,
            5 * MINUTE,
            15 * MINUTE,
            30 * MINUTE,
            HOUR,
            2 * HOUR,
            4 * HOUR,
            8 * HOUR,
            12 * HOUR,
            24 * HOUR,
        ])
    }

    /// For webhooks: 5 s, 5, 30 min, 2, 5, 10, 14, 20, 24 h; ±20 %.
    #[must_use]
    pub fn webhook() -> Self {
        Self::of([5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR])
    }

    fn of<const N: usize>(seconds: [u64; N]) -> Self {
        Self { delays: seconds.into_iter().map(Duration::from_secs).collect(), jitter: 0.2 }
    }

    /// How many attempts a row gets by default: one more than there are delays.
    #[must_use]
    pub fn max_attempts(&self) -> i32 {
        i32::try_from(self.delays.len()).unwrap_or(i32::MAX - 1) + 1
    }

    /// When to try again a row that was put off at no cost, in a run of such deferrals that began
    /// at `since` (`None`: with this one). The same list, indexed by how far the run has come.
    #[must_use]
    pub fn next_in_run(
        &self,
        now: Timestamp,
        since: Option<Timestamp>,
        asked: Option<Duration>,
        seed: OutboxId,
    ) -> Timestamp {
        // Three quarters of each delay must have passed, since jitter can shorten it by a fifth.
        let mut elapsed = since.map_or(Duration::ZERO, |since| now.since(since)).mul_f64(4.0 / 3.0);
        let mut place = 1;
        for delay in &self.delays {
            let Some(left) = elapsed.checked_sub(*delay) else { break };
            elapsed = left;
            place += 1;
        }
        self.next_at(now, place, asked, seed)
    }

    /// When to try again after the `failures`-th failure (1 is the first), at `now`.
    ///
    /// Never before `now`, never zero, and never later than the longest delay, jitter included,
    /// unless the peer asked for more: what it `asked` is never shortened, only capped at
    /// [`Self::MAX_DELAY`]. The jitter depends on `seed` and `failures` alone.
    #[must_use]
    pub fn next_at(&self, now: Timestamp, failures: i32, asked: Option<Duration>, seed: OutboxId) -> Timestamp {
        let index = usize::try_from(failures.max(1) - 1).unwrap_or(0).min(self.delays.len() - 1);
        let spread = 1.0 + self.jitter * unit(seed, failures);
        let longest = self.delays.iter().copied().max().unwrap_or(Self::MAX_DELAY);
        let own = self.delays[index].mul_f64(spread).min(longest).max(Duration::from_micros(1));
        let asked = asked.unwrap_or(Duration::ZERO).min(Self::MAX_DELAY);
        now.plus(own.max(asked))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::email()
    }
}

/// A number from -1 to 1 that looks random and is the same for the same row and failure.
#[expect(clippy::cast_precision_loss, reason = "53 bits are kept exactly")]
#[expect(clippy::cast_sign_loss, reason = "only the bits matter")]
fn unit(seed: OutboxId, failures: i32) -> f64 {
    let (high, low) = seed.as_uuid().as_u64_pair();
    let mut x = high ^ low.rotate_left(32) ^ (failures as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^= x >> 31;
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn at() -> Timestamp {
        Timestamp::parse("2026-03-01T10:00:00Z").unwrap()
    }

    /// Case C27.
    #[test]
    fn the_next_attempt_is_never_in_the_past_and_never_past_the_cap() {
        let day = Duration::from_secs(24 * 3600);
        let policy = RetryPolicy::exponential(Duration::from_secs(2), 2.0, day, 30, 0.2).unwrap();
        for (failures, seed) in (1..=2_000).zip(1_u128..) {
            let next = policy.next_at(at(), failures, None, OutboxId::from(Uuid::from_u128(seed)));
            assert!(next > at(), "{failures}");
            assert!(next <= at().plus(day), "{failures}");
        }
        for failures in [i32::MIN, -1, 0, i32::MAX] {
            assert!(policy.next_at(at(), failures, None, OutboxId::from(Uuid::nil())) > at());
        }
        assert_eq!(policy.next_at(Timestamp::MAX, 1, None, OutboxId::from(Uuid::nil())), Timestamp::MAX);
    }

    /// Case C27: bad configuration is refused when it is read, not when a mail fails.
    #[test]
    fn a_bad_back_off_is_refused_at_once() {
        let second = Duration::from_secs(1);
        let year = Duration::from_secs(400 * 24 * 3600);
        for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5, -1.0] {
            assert!(RetryPolicy::exponential(second, factor, second * 9, 5, 0.2).is_err(), "{factor}");
        }
        assert!(RetryPolicy::exponential(second, 10.0, year, 5, 0.2).is_err());
        assert!(RetryPolicy::exponential(Duration::ZERO, 2.0, second, 5, 0.2).is_err());
        for jitter in [f64::NAN, f64::INFINITY, -0.1, 1.0] {
            assert!(RetryPolicy::new(vec![second], jitter).is_err(), "{jitter}");
        }
        assert!(RetryPolicy::new(vec![], 0.2).is_err());
        assert!(RetryPolicy::new(vec![Duration::ZERO], 0.2).is_err());
    }

    #[test]
    fn the_defaults_are_the_documented_lists() {
        assert_eq!(RetryPolicy::email().max_attempts(), 11);
        assert_eq!(RetryPolicy::webhook().max_attempts(), 10);
    }

    #[test]
    fn a_run_of_deferrals_goes_through_the_list_once() {
        let policy = RetryPolicy::email();
        let (mut now, mut delays) = (at(), Vec::new());
        for _ in 0..10 {
            let next = policy.next_in_run(now, Some(at()), None, OutboxId::from(Uuid::from_u128(7)));
            delays.push(next.since(now).as_secs());
            now = next;
        }
        assert!(delays.windows(2).all(|pair| pair[1] > pair[0] || pair[1] >= 69_000), "{delays:?}");
        assert!(delays[0] <= 72 && delays[9] >= 69_000, "{delays:?}");
    }

    proptest! {
        #[test]
        fn a_delay_keeps_within_its_jitter_and_what_the_peer_asked(
            failures in 1_i32..20, seed in any::<u128>(), asked in proptest::option::of(0_u64..10_000_000),
        ) {
            let policy = RetryPolicy::email();
            let asked = asked.map(Duration::from_secs);
            let next = policy.next_at(at(), failures, asked, OutboxId::from(Uuid::from_u128(seed)));
            let base = policy.delays[usize::try_from(failures - 1).unwrap().min(9)];
            let floor = base.mul_f64(0.799_999).max(asked.unwrap_or_default().min(RetryPolicy::MAX_DELAY));
            prop_assert!(next >= at().plus(floor));
            let ceiling = base.mul_f64(1.200_001).max(asked.unwrap_or_default());
            prop_assert!(next <= at().plus(ceiling));
        }
    }
}
