//! One task per node that claims: rows handed over after a commit, and due rows found by polling.
//!
//! It claims no more than there are free slots, so nothing waits claimed in memory. Polling alone
//! is enough; everything else only shortens it.

mod drain;
mod suspects;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::Shared;
use super::deliver::deliver;
use super::settler::{Job, renew};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{OutboxEntity, Timestamp};
use crate::store::clock::offset;
use crate::store::{ClaimOrder, Claimed};

/// How far behind now the floor of the claims stays.
const FLOOR_LAG: Duration = Duration::from_secs(60);
/// How often a claim looks below the floor, for rows that were committed late.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How often rows are looked for that lost their worker again and again.
const SUSPECTS_EVERY: Duration = Duration::from_secs(1);
/// How often the clock is compared with the database's; while they are apart, more often.
const CLOCK_EVERY: Duration = Duration::from_secs(30);
const CLOCK_AGAIN: Duration = Duration::from_secs(2);
/// The longest pause after the database refused.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// Starts the task; it ends when the dispatcher stops.
pub(super) fn start<E: OutboxEntity>(shared: &Arc<Shared<E>>, endings: mpsc::Sender<Job>) -> JoinHandle<()> {
    let claimer = Claimer {
        slots: Arc::new(Semaphore::new(shared.config.concurrency)),
        interval: shared.config.poll_min,
        next_poll: Duration::ZERO,
        next_sweep: Duration::ZERO,
        next_suspects: Duration::ZERO,
        next_clock: Duration::ZERO,
        clock_is_off: false,
        floor: None,
        seen: None,
        polled_last: false,
        failures: 0,
        is_alone: false,
        shared: Arc::clone(shared),
        endings,
    };
    tokio::spawn(claimer.run())
}

struct Claimer<E> {
    shared: Arc<Shared<E>>,
    endings: mpsc::Sender<Job>,
    slots: Arc<Semaphore>,
    interval: Duration,
    next_poll: Duration,
    next_sweep: Duration,
    next_suspects: Duration,
    next_clock: Duration,
    clock_is_off: bool,
    /// No row due before this is looked at, but for sweeps.
    floor: Option<Timestamp>,
    /// Wall time and monotonic reading of the latest poll, to notice a clock that steps.
    seen: Option<(Timestamp, Duration)>,
    polled_last: bool,
    failures: u32,
    /// A row that lost its worker again and again is under way, and nothing may join it.
    is_alone: bool,
}

impl<E: OutboxEntity> Claimer<E> {
    async fn run(mut self) {
        self.until_stopped().await;
        let drained = AssertUnwindSafe(self.drain()).catch_unwind().await;
        if let Err(error) = drained.unwrap_or_else(|_| Err(panicked())) {
            warn!(%error, "rows handed over before the stop cannot be claimed; another node delivers them");
        }
    }

    async fn until_stopped(&mut self) {
        let stopping = self.shared.stopping.clone();
        while !stopping.is_cancelled() {
            // Only this task takes slots, so one that was free stays free.
            tokio::select! {
                () = stopping.cancelled() => return,
                slot = self.slots.acquire() => drop(slot),
            }
            // A panic is an error like another: a loop that ends in silence would deliver no more.
            let turn = AssertUnwindSafe(self.turn()).catch_unwind().await;
            let error = match turn.unwrap_or_else(|_| Err(panicked())) {
                Err(error) => error,
                Ok(Turn::Claimed) if self.failures > 0 => {
                    info!("rows are claimed again");
                    self.failures = 0;
                    continue;
                }
                Ok(_) => continue,
            };
            if self.failures == 0 {
                warn!(%error, "rows cannot be claimed; tried again until they can");
            }
            self.failures = self.failures.saturating_add(1);
            let pause = (Duration::from_millis(100) * 2_u32.pow(self.failures.min(10))).min(BACK_OFF_MAX);
            tokio::select! {
                () = stopping.cancelled() => return,
                () = self.shared.clock.sleep(pause) => {}
            }
        }
    }

    /// Claims something, or waits until there may be something to claim.
    async fn turn(&mut self) -> Result<Turn> {
        if let Some(pause) = self.may_not_claim().await? {
            tokio::select! {
                () = self.shared.stopping.cancelled() => {}
                () = self.shared.clock.sleep(pause) => {}
            }
            return Ok(Turn::Waited);
        }
        let poll_is_due = self.shared.clock.monotonic() >= self.next_poll;
        // Both have their turn, however busy the other is.
        if poll_is_due && !self.polled_last {
            self.polled_last = true;
            self.poll().await?;
            return Ok(Turn::Claimed);
        }
        self.polled_last = false;
        if self.take_handed_over(usize::MAX).await? > 0 {
            return Ok(Turn::Claimed);
        }
        if !poll_is_due {
            self.wait().await;
        }
        Ok(Turn::Waited)
    }

    /// Claims up to `limit` rows that were handed over; how many it asked for.
    async fn take_handed_over(&mut self, limit: usize) -> Result<usize> {
        let handed_over = self.shared.signal.take(self.free().min(limit));
        if !handed_over.is_empty() {
            self.notice_steps().await?;
            let lease = self.lease();
            let claimed =
                self.shared.rows.claim_ids(&handed_over, lease.now, lease.reclaim_at, &self.shared.config.node).await?;
            self.send_off(claimed, lease.until);
        }
        Ok(handed_over.len())
    }

    /// How long to wait before it is asked again, where this node may claim nothing now.
    async fn may_not_claim(&mut self) -> Result<Option<Duration>> {
        if self.shared.config.check_clock && self.shared.clock.monotonic() >= self.next_clock {
            self.compare_clocks().await?;
        }
        if self.clock_is_off {
            return Ok(Some(CLOCK_AGAIN));
        }
        // After an outage what this node holds comes first: it must not send its own rows again.
        let cut_off = self.shared.cut_off.load(Ordering::SeqCst);
        let waits = cut_off && self.shared.flights.are_overdue(self.shared.clock.monotonic());
        Ok(waits.then_some(self.shared.config.poll_min))
    }

    /// A node whose clock is off would take rows over too early, or hold them too long.
    /// Source: contract C1.5.
    async fn compare_clocks(&mut self) -> Result<()> {
        let clock = &*self.shared.clock;
        let offset = Duration::from_micros(offset(&**self.shared.repository.database(), clock).await?.unsigned_abs());
        let is_off = offset > self.shared.config.claim_timeout / 4;
        if is_off && !self.clock_is_off {
            warn!(
                seconds = offset.as_secs_f64(),
                "this node's clock is off from the database's by more than a quarter of the claim timeout; \
                 it claims nothing until that is mended"
            );
        } else if self.clock_is_off && !is_off {
            info!("the clock agrees with the database's again");
        }
        self.clock_is_off = is_off;
        self.next_clock = clock.monotonic() + if is_off { CLOCK_AGAIN } else { CLOCK_EVERY };
        Ok(())
    }

    async fn wait(&mut self) {
        let pause = self.next_poll.saturating_sub(self.shared.clock.monotonic());
        tokio::select! {
            () = self.shared.stopping.cancelled() => {}
            () = self.shared.clock.sleep(pause) => {}
            () = self.shared.signal.wake().notified() => {
                self.interval = self.shared.config.poll_min;
                let soon = if self.shared.signal.is_eager() { self.interval } else { Duration::ZERO };
                self.next_poll = self.next_poll.min(self.shared.clock.monotonic() + soon);
            }
        }
    }

    /// How many rows can be delivered at once now, in one claim.
    fn free(&self) -> usize {
        self.slots.available_permits().min(self.shared.config.batch)
    }

    async fn poll(&mut self) -> Result<()> {
        let started = self.shared.clock.monotonic();
        self.notice_steps().await?;
        if started >= self.next_suspects {
            self.next_suspects = started + SUSPECTS_EVERY;
            self.look_after_lost().await?;
            self.notice_steps().await?;
        }
        let free = self.free();
        if free == 0 || self.shared.stopping.is_cancelled() {
            return Ok(());
        }
        let lease = self.lease();
        let sweep = started >= self.next_sweep;
        let order = ClaimOrder {
            now: lease.now,
            reclaim_at: lease.reclaim_at,
            node: self.shared.config.node.clone(),
            floor: if sweep { None } else { self.floor },
            limit: free,
        };
        let claimed = self.shared.rows.claim_due(&order).await?;
        let found = claimed.len();
        self.send_off(claimed, lease.until);
        if found < free {
            if sweep {
                self.next_sweep = started + SWEEP_EVERY;
            }
            self.floor = Some(lease.now.minus(FLOOR_LAG));
        }
        self.schedule(found, free).await
    }

    /// A wall clock that steps forward makes one's own claims look stale: they are renewed by the new
    /// time before anything is claimed. One that steps back lowers the floor.
    async fn notice_steps(&mut self) -> Result<()> {
        let (wall, reading) = (self.shared.clock.now(), self.shared.clock.monotonic());
        if let Some((wall_before, reading_before)) = self.seen {
            let passed = reading.saturating_sub(reading_before);
            if wall.since(wall_before) > passed + self.shared.config.claim_timeout / 4 {
                renew(&self.shared).await?;
            }
            if wall < wall_before {
                self.floor = None;
            }
        }
        self.seen = Some((wall, reading));
        Ok(())
    }

    /// When to look again: at once after a full claim, often after some, then ever more seldom,
    /// but never past the next due time.
    async fn schedule(&mut self, found: usize, free: usize) -> Result<()> {
        let config = &self.shared.config;
        if found == free {
            self.next_poll = self.shared.clock.monotonic();
            return Ok(());
        }
        let often = found > 0 || self.shared.signal.is_eager();
        self.interval = if often { config.poll_min } else { (self.interval * 2).min(config.poll_max) };
        let mut pause = self.interval.mul_f64(jitter(self.shared.clock.monotonic()));
        if self.interval > config.poll_min
            && let Some(next_due) = self.shared.rows.next_due(self.floor.unwrap_or(Timestamp::MIN)).await?
        {
            pause = pause.min(next_due.since(self.shared.clock.now()).max(config.poll_min));
        }
        self.next_poll = self.shared.clock.monotonic() + pause;
        Ok(())
    }

    fn send_off(&self, claimed: Vec<Claimed<E>>, lease_until: Duration) {
        self.shared.counters.claimed(claimed.len());
        for claimed in claimed {
            if self.shared.flights.adopt(claimed.claim, lease_until) {
                continue;
            }
            // A claimed row is always looked after, slot or not.
            let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
            let flight = self.shared.flights.depart(claimed.claim, lease_until);
            tokio::spawn(deliver(Arc::clone(&self.shared), claimed, flight, self.endings.clone(), slot));
        }
    }

    /// The lease of a claim that is asked for now: its timer starts before the claim does.
    fn lease(&self) -> Lease {
        let timeout = self.shared.config.claim_timeout;
        let until = self.shared.clock.monotonic() + timeout;
        let now = self.shared.clock.now();
        Lease { now, reclaim_at: now.plus(timeout), until }
    }
}

/// What a turn came to.
enum Turn {
    /// The database was asked, and answered.
    Claimed,
    /// Nothing was asked.
    Waited,
}

struct Lease {
    now: Timestamp,
    reclaim_at: Timestamp,
    until: Duration,
}

/// A share between 0.8 and 1, so that nodes do not poll in step.
fn jitter(reading: Duration) -> f64 {
    0.8 + 0.2 * f64::from(reading.subsec_nanos() % 1_000) / 1_000.0
}

fn panicked() -> Error {
    Error::new(ErrorKind::Database, "claiming panicked")
}
