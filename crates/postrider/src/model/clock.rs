//! The one clock that the application supplies: wall time, a monotonic reading, and waiting.
//!
//! The library calls no other clock; ids, due times, leases and every wait come from here, so a
//! test can turn time by hand. Source: contract C1.5.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};

use super::Timestamp;

/// Wall time, a monotonic reading and waiting, all of one source.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The wall time, UTC, cut to microseconds. It may step in either direction.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary fixed point; never goes back. Leases and deadlines use it.
    fn monotonic(&self) -> Duration;

    /// Completes once [`Self::monotonic`] has advanced by `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Runs `future` for at most `limit`; `None` if time ran out (the future is then dropped).
pub async fn within<F: Future>(clock: &dyn Clock, limit: Duration, future: F) -> Option<F::Output> {
    match select(pin!(future), clock.sleep(limit)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

/// The machine's clock. Give it to the library where no other clock is wanted.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic reading begins now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        jiff::Timestamp::now().into()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that sleeps")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Tokio's timer takes at most some centuries; a wait that long is for ever.
        let duration = duration.min(Duration::from_secs(30 * 365 * 24 * 3600));
        Box::pin(tokio::time::sleep(duration))
    }
}
