//! A clock that stands still until a test turns it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::model::{Clock, Timestamp};

/// Stands still; [`Self::advance`] turns wall time and monotonic time, and wakes who sleeps.
///
/// A dispatcher on PostgreSQL, MariaDB or MySQL claims nothing while its clock is far from the
/// database's: beside this one, set [`check_clock`](crate::dispatch::DispatchConfig::check_clock) to
/// false.
///
/// ```
/// use std::time::Duration;
///
/// use postrider::model::{Clock, Timestamp};
/// use postrider::testing::ManualClock;
///
/// let clock = ManualClock::new(Timestamp::parse("2026-03-01T10:00:00Z")?);
/// clock.advance(Duration::from_secs(90));
/// assert_eq!(clock.now(), Timestamp::parse("2026-03-01T10:01:30Z")?);
/// assert_eq!(clock.monotonic(), Duration::from_secs(90));
/// # Ok::<(), postrider::Error>(())
/// ```
pub struct ManualClock {
    inner: Mutex<Inner>,
}

struct Inner {
    now: Timestamp,
    monotonic: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { inner: Mutex::new(Inner { now, monotonic: Duration::ZERO, sleepers: Vec::new() }) }
    }

    /// Lets `duration` pass.
    pub fn advance(&self, duration: Duration) {
        let mut inner = self.lock();
        inner.now = inner.now.plus(duration);
        inner.monotonic += duration;
        let now = inner.monotonic;
        let (due, later) = inner.sleepers.drain(..).partition::<Vec<_>, _>(|(until, _)| *until <= now);
        inner.sleepers = later;
        drop(inner);
        for (_, sleeper) in due {
            // Whoever slept may have been dropped meanwhile.
            let _ = sleeper.send(());
        }
    }

    /// Sets the wall time alone, in either direction, as an administrator would.
    pub fn set(&self, now: Timestamp) {
        self.lock().now = now;
    }

    /// How many wait for this clock at the moment.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.iter().filter(|(_, sleeper)| !sleeper.is_closed()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut inner = self.lock();
        if duration.is_zero() {
            return Box::pin(tokio::task::yield_now());
        }
        let (sender, woken) = oneshot::channel();
        let until = inner.monotonic.saturating_add(duration);
        inner.sleepers.push((until, sender));
        Box::pin(async move {
            // The clock is gone: then this sleeps for ever.
            if woken.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.lock().now).finish_non_exhaustive()
    }
}
