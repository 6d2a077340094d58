//! One task per node that writes endings and renews claims, both in batches.
//!
//! An ending that is not written yet is a possible duplicate, so the window is a few milliseconds;
//! while the database does not answer, endings are kept and tried again for as long as it takes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::{debug, error, info, warn};

use super::Shared;
use super::flight::Flight;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{OutboxEntity, OutboxStatus};
use crate::store::{Claim, Ending, Settlement};

/// Most rows of one settling.
const BATCH: usize = 256;
/// How soon an ending is tried again whose row somebody holds locked.
const LOCKED_AGAIN: Duration = Duration::from_millis(200);
/// The longest pause after the database refused.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// An ending to be written.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) settlement: Settlement,
    /// Under way until this is dropped.
    pub(super) flight: Flight,
    /// Told once the database confirmed, or the claim is known to be lost.
    pub(super) done: oneshot::Sender<()>,
    /// What the peer said was taken out, since the database would not store it.
    pub(super) bare: bool,
    /// It was asked to be written once without an answer, and may have been.
    pub(super) asked: bool,
    /// When to try again, on the monotonic clock, since somebody held the row locked.
    pub(super) again_at: Option<Duration>,
}

/// Starts the task; it ends once every sender is gone and everything is written.
pub(super) fn start<E: OutboxEntity>(shared: &Arc<Shared<E>>) -> (JoinHandle<()>, mpsc::Sender<Job>) {
    let (sender, jobs) = mpsc::channel(shared.config.concurrency.clamp(BATCH, 4 * BATCH));
    let settler = Settler {
        next_renewal: shared.clock.monotonic() + shared.config.claim_timeout / 3,
        shared: Arc::clone(shared),
        jobs,
        pending: Vec::new(),
        held_up: Vec::new(),
        closed_at: None,
        failures: 0,
    };
    (tokio::spawn(settler.run()), sender)
}

struct Settler<E> {
    shared: Arc<Shared<E>>,
    jobs: mpsc::Receiver<Job>,
    pending: Vec<Job>,
    /// Those whose rows somebody holds locked: they wait, and nobody waits for them.
    held_up: Vec<Job>,
    next_renewal: Duration,
    /// When the last sender went, on the monotonic clock.
    closed_at: Option<Duration>,
    failures: u32,
}

impl<E: OutboxEntity> Settler<E> {
    async fn run(mut self) {
        loop {
            // A panic must not end the loop: endings would then never be written.
            if AssertUnwindSafe(self.turn()).catch_unwind().await.is_err() {
                error!("settling panicked; tried again");
                self.back_off().await;
            }
            if self.is_finished() {
                return;
            }
        }
    }

    async fn turn(&mut self) {
        self.gather().await;
        if self.shared.clock.monotonic() >= self.next_renewal {
            self.renew().await;
        }
        if !self.pending.is_empty() && !self.settle().await {
            self.back_off().await;
        }
    }

    /// Waits for an ending or the next renewal, then a moment for more endings.
    async fn gather(&mut self) {
        let now = self.shared.clock.monotonic();
        self.pending.extend(self.held_up.extract_if(.., |job| job.again_at.is_none_or(|again_at| again_at <= now)));
        if self.pending.is_empty() {
            let again_at = self.held_up.iter().filter_map(|job| job.again_at).min();
            let until = again_at.map_or(self.next_renewal, |again_at| again_at.min(self.next_renewal));
            tokio::select! {
                job = self.jobs.recv(), if self.closed_at.is_none() => self.take(job),
                () = self.shared.clock.sleep(until.saturating_sub(now)) => return,
            }
        }
        let mut window = self.shared.clock.sleep(self.shared.config.settle_window);
        // With nothing else under way there is nobody to wait for.
        while self.closed_at.is_none() && self.pending.len() < BATCH && self.pending.len() < self.shared.flights.len() {
            tokio::select! {
                job = self.jobs.recv() => self.take(job),
                () = &mut window => return,
            }
        }
    }

    fn take(&mut self, job: Option<Job>) {
        match job {
            Some(job) => self.pending.push(job),
            None => self.closed_at = Some(self.shared.clock.monotonic()),
        }
    }

    async fn renew(&mut self) {
        let (now, timeout) = (self.shared.clock.monotonic(), self.shared.config.claim_timeout);
        self.next_renewal = now + timeout / 3;
        let all_known = match renew(&self.shared).await {
            Ok(all_known) => all_known,
            Err(error) => {
                self.shared.cut_off.store(true, Ordering::SeqCst);
                warn!(%error, "the claims could not be renewed; tried again soon");
                false
            }
        };
        if !all_known {
            self.next_renewal = now + timeout / 12;
        }
    }

    /// True if everything that was asked for is written or known to be lost.
    async fn settle(&mut self) -> bool {
        for job in &mut self.pending {
            job.settlement.claim = job.flight.claim();
        }
        let batch: Vec<_> = self.pending.iter().take(BATCH).map(|job| job.settlement.clone()).collect();
        let settled = match self.shared.rows.settle(&batch).await {
            Ok(settled) => settled,
            Err(error) => {
                self.shared.cut_off.store(true, Ordering::SeqCst);
                self.pending.iter_mut().take(BATCH).for_each(|job| job.asked = true);
                self.say_failed(&error, batch.len());
                return false;
            }
        };
        let (mut put_off, mut unsure, mut locked) = (None, Vec::new(), 0);
        for settled in settled {
            let Some(at) = self.pending.iter().position(|job| job.settlement.claim == settled.claim) else { continue };
            let mut job = self.pending.swap_remove(at);
            match settled.now {
                // Meanwhile this node has claimed the row anew: it is settled under that claim.
                Ok(None) if job.flight.claim() != settled.claim => self.pending.push(job),
                Ok(None) if job.asked => unsure.push(job),
                Ok(now) => self.confirm(job, now),
                Err(error) if error.kind() == ErrorKind::Locked => {
                    locked += usize::from(job.again_at.is_none());
                    job.again_at = Some(self.shared.clock.monotonic() + LOCKED_AGAIN);
                    self.held_up.push(job);
                }
                Err(error) if !error.blames_the_row() => {
                    // The database went away in between: not its fault.
                    job.asked = true;
                    self.pending.push(job);
                    put_off = Some(error);
                }
                Err(error) if !job.bare => {
                    warn!(id = %settled.claim.id, %error, "an ending was refused; written without the peer's words");
                    strip(&mut job.settlement);
                    job.bare = true;
                    self.pending.push(job);
                }
                Err(error) => {
                    error!(id = %settled.claim.id, %error, "an ending cannot be written; the row will be tried again");
                    finish(job);
                }
            }
        }
        if locked > 0 {
            warn!(rows = locked, "somebody holds rows locked; their endings are written once they are let go");
        }
        for job in unsure {
            match self.written(job.settlement.claim).await {
                Ok(now) => self.confirm(job, now),
                Err(error) => {
                    self.pending.push(job);
                    put_off = Some(error);
                }
            }
        }
        if let Some(error) = put_off {
            self.say_failed(&error, 1);
            return false;
        }
        if self.failures > 0 {
            info!("endings are written again");
            self.failures = 0;
        }
        true
    }

    /// Where the row stands if its ending was written and the answer was lost: only the claim's
    /// holder can have ended it while nobody claimed it anew.
    async fn written(&self, claim: Claim) -> Result<Option<(OutboxStatus, i32)>> {
        let found = match self.shared.rows.find_by_id(claim.id).await {
            // Nothing more is to be learnt of it.
            Err(error) if error.blames_the_row() => None,
            found => found?,
        };
        let state = found.map(|entity| entity.row().state.clone());
        let ended = state.filter(|state| state.claim_seq == claim.seq && state.status != OutboxStatus::Sending);
        Ok(ended.map(|state| (state.status, state.attempts)))
    }

    fn say_failed(&self, error: &Error, rows: usize) {
        if self.failures == 0 {
            warn!(%error, rows, "endings could not be written; tried again until they are");
        }
    }

    fn confirm(&self, job: Job, now: Option<(OutboxStatus, i32)>) {
        let claim = job.settlement.claim;
        let counters = &self.shared.counters;
        match now {
            None => {
                counters.claims_lost(1);
                warn!(id = %claim.id, ending = kind(&job.settlement.ending), "the claim was lost; its ending is dropped");
            }
            Some((status, attempts)) => {
                match (&job.settlement.ending, status) {
                    (Ending::Released, _) => counters.released(1),
                    (_, OutboxStatus::Sent) => counters.sent(1),
                    (_, OutboxStatus::Dead) => counters.dead(1),
                    (_, OutboxStatus::Suppressed) => counters.suppressed(1),
                    (Ending::Deferred { .. }, _) => counters.deferred(1),
                    (_, _) => counters.failed(1),
                }
                if matches!(
                    job.settlement.ending,
                    Ending::Failure { in_doubt: true, .. } | Ending::Dead { in_doubt: true, .. }
                ) {
                    counters.in_doubt(1);
                }
                // Never the error's text: it may hold an address.
                debug!(id = %claim.id, %status, attempts, ending = kind(&job.settlement.ending), "settled");
            }
        }
        finish(job);
    }

    async fn back_off(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let pause = (Duration::from_millis(50) * 2_u32.pow(self.failures.min(10))).min(BACK_OFF_MAX);
        self.shared.clock.sleep(pause).await;
    }

    fn is_finished(&mut self) -> bool {
        if self.jobs.is_closed() && self.jobs.is_empty() {
            self.closed_at.get_or_insert(self.shared.clock.monotonic());
        }
        let Some(closed_at) = self.closed_at else { return false };
        let given_up = self.shared.clock.monotonic() >= closed_at + self.shared.config.claim_timeout;
        let unwritten = || self.pending.iter().chain(&self.held_up);
        if given_up && unwritten().next().is_some() {
            let in_lease = unwritten().filter(|job| !job.flight.lease_left(closed_at).is_zero()).count();
            error!(rows = unwritten().count(), in_lease, "stopping with endings that the database never took");
        }
        unwritten().next().is_none() || given_up
    }
}

/// Keeps the claims of all rows under way for another claim timeout; false if somebody holds some of
/// the rows locked, so that it is not known whether they can be kept.
pub(super) async fn renew<E: OutboxEntity>(shared: &Shared<E>) -> Result<bool> {
    let timeout = shared.config.claim_timeout;
    let claims = shared.flights.claims();
    let mut all_known = true;
    if !claims.is_empty() {
        let (asked, now) = (shared.clock.monotonic(), shared.clock.now());
        let renewed = shared.rows.renew(&claims, now, now.plus(timeout)).await?;
        all_known = renewed.kept.len() + renewed.lost.len() == claims.len();
        shared.flights.renewed(&renewed, asked + timeout);
    }
    shared.cut_off.store(false, Ordering::SeqCst);
    Ok(all_known)
}

/// The row is no longer under way, and its slot becomes free.
fn finish(job: Job) {
    drop(job.flight);
    // The delivery may be gone; then nobody waits.
    let _ = job.done.send(());
}

fn kind(ending: &Ending) -> &'static str {
    match ending {
        Ending::Sent { .. } => "sent",
        Ending::Failure { in_doubt: true, .. } => "in doubt",
        Ending::Failure { .. } => "failure",
        Ending::Dead { .. } => "dead",
        Ending::Suppressed { .. } => "suppressed",
        Ending::Deferred { .. } => "deferred",
        Ending::Released => "given back",
    }
}

/// Takes out everything that came from outside.
fn strip(settlement: &mut Settlement) {
    const NOTE: &str = "the peer's words could not be stored";
    if let Some(ledger) = &mut settlement.ledger {
        ledger.forget_replies();
    }
    match &mut settlement.ending {
        Ending::Sent { provider, provider_message_id, .. } => (*provider, *provider_message_id) = (None, None),
        Ending::Failure { error, .. } | Ending::Dead { error, .. } | Ending::Deferred { error, .. } => {
            NOTE.clone_into(error);
        }
        Ending::Suppressed { reason, .. } => NOTE.clone_into(reason),
        Ending::Released => {}
    }
}
