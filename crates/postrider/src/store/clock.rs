//! The database's clock: how far a node's own is off, and a clock that follows the database's.
//!
//! Leases of several nodes are only as good as their clocks agree. Source: contract C1.5.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Database;
use crate::error::{Error, ErrorKind, Result};
use crate::model::clock::within;
use crate::model::{Clock, Timestamp};

/// How often the database is asked for one measurement.
const SAMPLES: usize = 3;
/// How long the database may take to tell its time.
const LIMIT: Duration = Duration::from_secs(5);

/// How far `clock` is behind the database's, in microseconds (negative: ahead); zero where the
/// database has no clock of its own.
///
/// The answer is right to half of the time that the database took to give it.
///
/// # Errors
/// What the database says.
///
/// # Cancel safety
/// Safe.
pub async fn offset(database: &dyn Database, clock: &dyn Clock) -> Result<i64> {
    let mut best: Option<(Duration, i64)> = None;
    // The first answer can hold the time of connecting: the quickest is the truest.
    for _ in 0..SAMPLES {
        let (asked_at, asked) = (clock.now(), clock.monotonic());
        let answer = within(clock, LIMIT, database.now()).await;
        let late = || Error::new(ErrorKind::Transient, "the database did not tell its time within 5 s");
        let Some(server) = answer.ok_or_else(late)?? else { return Ok(0) };
        let took = clock.monotonic().saturating_sub(asked);
        if best.is_none_or(|(quickest, _)| took < quickest) {
            best = Some((took, server.as_micros() - asked_at.plus(took / 2).as_micros()));
        }
    }
    Ok(best.map_or(0, |(_, offset)| offset))
}

/// A clock whose wall time is the database's: another clock's, corrected by the measured offset.
///
/// Monotonic readings and waiting are the other clock's own.
#[derive(Debug)]
pub struct DatabaseClock {
    own: Arc<dyn Clock>,
    offset: AtomicI64,
}

impl DatabaseClock {
    /// How often [`Self::follow`] should be called.
    pub const EVERY: Duration = Duration::from_secs(30);

    /// A clock that shows `own` until it is first told the database's time.
    #[must_use]
    pub fn new(own: Arc<dyn Clock>) -> Self {
        Self { own, offset: AtomicI64::new(0) }
    }

    /// Measures the offset anew and keeps it; returns it in microseconds.
    ///
    /// # Errors
    /// What the database says; the old offset then stays.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn follow(&self, database: &dyn Database) -> Result<i64> {
        let offset = offset(database, &*self.own).await?;
        self.offset.store(offset, Ordering::SeqCst);
        Ok(offset)
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.own.now().as_micros().saturating_add(self.offset.load(Ordering::SeqCst)))
    }

    fn monotonic(&self) -> Duration {
        self.own.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.own.sleep(duration)
    }
}
