//! A bounded number of connections to one relay, kept for reuse only when known to be clean.
//!
//! Where it stands: hands a session to each attempt and takes it back only when the attempt says
//! that every reply was read. It must not keep a connection whose attempt was dropped, failed or
//! heard 421: a reply left unread would be taken for the next message's. Nothing runs in the
//! background: an idle connection that grew too old is closed when the next attempt finds it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postrider::model::Clock;
use postrider::model::clock::within;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::classify::Phase;
use super::failure::{Cause, Failure};
use super::session::{Relay, Session};

/// An idle connection is not used after this long: relays close theirs from 10 s on.
const MAX_IDLE: Duration = Duration::from_secs(9);

/// No connection is used for longer, so that a changed address of the relay is noticed.
const MAX_AGE: Duration = Duration::from_secs(300);

/// Messages over one connection.
const MAX_MESSAGES: u32 = 100;

/// The connections to one relay: at most `size` in all, in use and idle together.
#[derive(Debug)]
pub(crate) struct Pool {
    relay: Relay,
    slots: Semaphore,
    idle: Mutex<Vec<Kept>>,
}

/// A session and its history; times are the clock's monotonic reading.
#[derive(Debug)]
struct Kept {
    session: Session,
    opened: Duration,
    used: Duration,
    messages: u32,
}

impl Kept {
    fn is_fresh_enough(&self, now: Duration) -> bool {
        now.saturating_sub(self.opened) < MAX_AGE
            && now.saturating_sub(self.used) < MAX_IDLE
            && self.messages < MAX_MESSAGES
    }
}

impl Pool {
    /// No connection yet; `size` must be at least 1.
    pub(crate) fn new(relay: Relay, size: usize) -> Self {
        Self { relay, slots: Semaphore::new(size), idle: Mutex::new(Vec::new()) }
    }

    /// What it connects to.
    pub(crate) fn relay(&self) -> &Relay {
        &self.relay
    }

    /// A session that is ready for MAIL: a kept one if there is one, otherwise a new one.
    ///
    /// # Errors
    /// [`Failure`] if no slot became free in time or the relay cannot be talked to.
    ///
    /// # Cancel safety
    /// Dropping the future gives the slot back and closes a connection being opened.
    pub(crate) async fn checkout(&self, clock: &dyn Clock) -> Result<Checkout<'_>, Failure> {
        let limit = self.relay.timeouts.slot;
        // The semaphore is never closed, so the second case cannot occur.
        let Some(Ok(slot)) = within(clock, limit, self.slots.acquire()).await else {
            return Err(Cause::PoolExhausted(limit).during(Phase::Connect));
        };
        // A new connection is opened only when none is idle; with the slot that bounds them all.
        while let Some(mut kept) = self.pop_idle() {
            if !kept.session.is_quiet().await {
                continue;
            }
            if kept.is_fresh_enough(clock.monotonic()) {
                return Ok(Checkout { pool: self, slot, kept, is_reused: true });
            }
            kept.session.quit(clock).await;
        }
        let kept = self.open(clock).await?;
        Ok(Checkout { pool: self, slot, kept, is_reused: false })
    }

    async fn open(&self, clock: &dyn Clock) -> Result<Kept, Failure> {
        let session = Session::open(&self.relay, self.relay.timeouts, clock).await?;
        let now = clock.monotonic();
        Ok(Kept { session, opened: now, used: now, messages: 0 })
    }

    fn pop_idle(&self) -> Option<Kept> {
        self.lock_idle().pop()
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session lent to one attempt. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Checkout<'a> {
    pool: &'a Pool,
    slot: SemaphorePermit<'a>,
    kept: Kept,
    is_reused: bool,
}

impl Checkout<'_> {
    /// The session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.kept.session
    }

    /// True if the connection has served an earlier message.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Closes the connection and opens a new one in its place. Case C17.
    ///
    /// # Errors
    /// [`Failure`] if the relay cannot be talked to.
    ///
    /// # Cancel safety
    /// Dropping the future closes whatever is open and gives the slot back.
    pub(crate) async fn replace(self, clock: &dyn Clock) -> Result<Self, Failure> {
        let Self { pool, slot, kept, .. } = self;
        drop(kept);
        let kept = pool.open(clock).await?;
        Ok(Self { pool, slot, kept, is_reused: false })
    }

    /// Gives the session back after a transaction whose last reply was read.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub(crate) async fn give_back(self, clock: &dyn Clock) {
        let Self { pool, slot, mut kept, .. } = self;
        kept.used = clock.monotonic();
        kept.messages += 1;
        if kept.is_fresh_enough(kept.used) {
            pool.lock_idle().push(kept);
        } else {
            kept.session.quit(clock).await;
        }
        // Only now may another attempt look for an idle connection.
        drop(slot);
    }

    /// Undoes a transaction that failed, and gives the session back if it is clean again.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub(crate) async fn reset_and_give_back(mut self, clock: &dyn Clock) {
        if self.kept.session.reset(clock).await {
            self.give_back(clock).await;
        }
    }
}
