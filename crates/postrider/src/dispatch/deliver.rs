//! One claimed row: hand it to its channel, watch over it, say how it ended.
//!
//! The channel runs in a task of its own, so that a panic ends its row alone. It is cut when its
//! claim is lost, its time is over or the node stops, but never past its point of no return
//! without being noted as in doubt.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::Shared;
use super::ending::{self, Written};
use super::flight::Flight;
use super::settler::Job;
use crate::channel::{Channel, Delivery, PointOfNoReturn};
use crate::error::Error;
use crate::model::{
    Blame, Clock, FailureScope, InDoubt, InDoubtPolicy, OutboxEntity, OutboxId, OutboxRow, Outcome, Retry, Suppress,
};
use crate::policy::RetryPolicy;
use crate::store::{Claimed, Ending, Settlement};

/// Delivers one claimed row and waits until its ending is written.
pub(super) async fn deliver<E: OutboxEntity>(
    shared: Arc<Shared<E>>,
    claimed: Claimed<E>,
    flight: Flight,
    endings: mpsc::Sender<Job>,
    _slot: Option<OwnedSemaphorePermit>,
) {
    let claim = claimed.claim;
    let started_at = shared.clock.now();
    let losses = claimed.entity.as_ref().map_or(0, |entity| entity.row().state.lost_claims);
    let written = match claimed.entity {
        // Claimed while the node stops, it has the grace period like any other.
        Ok(_) if shared.cutting.is_cancelled() => Some(released()),
        Ok(entity) => {
            let entity = Arc::new(entity);
            // The channel's own task is watched; this is for what it says of itself.
            let attempt = AssertUnwindSafe(attempt(&shared, &entity, &flight)).catch_unwind();
            attempt.await.unwrap_or_else(|_| Some(panicked_outside(entity.row(), &*shared.clock)))
        }
        Err(error) => Some(unreadable(claim.id, &error, &*shared.clock)),
    };
    let Some(Written { ending, ledger, blame }) = written else {
        shared.counters.claims_lost(1);
        warn!(id = %claim.id, "the claim was lost to another node before the delivery began to count; it was cut");
        return;
    };
    let node = Some(shared.config.node.clone());
    let settlement = Settlement {
        claim: flight.claim(),
        at: shared.clock.now(),
        ending,
        ledger,
        started_at: Some(started_at),
        node,
        blame,
        losses,
    };
    let (done, confirmed) = oneshot::channel();
    let job = Job { settlement, flight, done, bare: false, asked: false, again_at: None };
    let sent = endings.send(job).await;
    // The settler ends once nobody can send it anything more; it must not wait for who waits for it.
    drop(endings);
    if sent.is_ok() {
        // The slot is held until the database confirmed.
        let _ = confirmed.await;
    }
}

/// What to write for the row; `None` if the claim is lost and nothing is.
async fn attempt<E: OutboxEntity>(shared: &Shared<E>, entity: &Arc<E>, flight: &Flight) -> Option<Written> {
    let row = entity.row();
    let now = shared.clock.now();
    let Some(channel) = shared.channels.get(&row.channel) else {
        let error = format!("this node has no channel {:?}", row.channel);
        return Some(own_failure(row, error, Blame::Configuration, &RetryPolicy::default(), &*shared.clock));
    };
    if row.expires_at.is_some_and(|expires| expires <= now) {
        let reason = format!("expired at {}", row.expires_at.unwrap_or(now));
        let stop = Outcome::Suppress(Suppress { reason, reason_code: "expired".to_owned() });
        return Some(ending::of(row, stop, &channel.retry_policy(), InDoubtPolicy::Retry, now));
    }
    if flight.lease_left(shared.clock.monotonic()) < shared.config.claim_timeout / 2 {
        debug!(id = %row.id, "given back: too little of the claim was left to begin");
        return Some(released());
    }
    // Asked before anything is sent: should the channel panic here, nothing is out yet.
    let (retry, in_doubt, deadline) = (channel.retry_policy(), channel.in_doubt_policy(), channel.deadline());
    match watch(shared, entity, channel, flight, deadline).await {
        Watched::Ended(outcome) => Some(ending::of(entity.row(), outcome, &retry, in_doubt, shared.clock.now())),
        Watched::GivenBack => Some(released()),
        Watched::Lost => None,
    }
}

enum Watched {
    Ended(Outcome),
    GivenBack,
    Lost,
}

/// Why a delivery is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Deadline,
    Lost,
    Lease,
    Stop,
}

async fn watch<E: OutboxEntity>(
    shared: &Shared<E>,
    entity: &Arc<E>,
    channel: &Arc<dyn Channel>,
    flight: &Flight,
    deadline: Duration,
) -> Watched {
    let point = Arc::new(PointOfNoReturn::while_held(flight.hold(Arc::clone(&shared.clock))));
    let mut task = run(Arc::clone(channel), Arc::clone(entity), Arc::clone(&shared.clock), Arc::clone(&point));
    let mut over = shared.clock.sleep(deadline);
    let mut claim_gone = false;
    loop {
        let cut = tokio::select! {
            biased;
            ended = &mut task => return match ended {
                Ok(outcome) => said(&point, outcome),
                Err(stopped) => Watched::Ended(panicked(&point, &stopped)),
            },
            () = &mut over => Cut::Deadline,
            () = shared.cutting.cancelled() => Cut::Stop,
            () = flight.lost(), if !claim_gone => Cut::Lost,
            () = lease_out(flight, &*shared.clock), if !claim_gone => Cut::Lease,
        };
        if point.close() {
            return cut_before(cut, &point, &mut task, deadline).await;
        }
        match cut {
            // Past the point of no return its answer is waited for: the message may be out.
            Cut::Lost | Cut::Lease => claim_gone = true,
            Cut::Stop | Cut::Deadline => {
                task.abort();
                let error = format!("cut while waiting for the peer's answer ({})", reason(cut, deadline));
                return Watched::Ended(match task.await {
                    Ok(outcome) => outcome,
                    Err(_) => Outcome::InDoubt(InDoubt { error, ledger: None }),
                });
            }
        }
    }
}

/// Cut before its point of no return: the peer has not got the message.
async fn cut_before(
    cut: Cut,
    point: &PointOfNoReturn,
    task: &mut AbortOnDropHandle<Outcome>,
    deadline: Duration,
) -> Watched {
    task.abort();
    if let Ok(outcome) = task.await {
        // It ended at the same moment; what it says is true.
        return said(point, outcome);
    }
    match cut {
        Cut::Lost => Watched::Lost,
        Cut::Lease | Cut::Stop => Watched::GivenBack,
        Cut::Deadline => Watched::Ended(Outcome::Retry(Retry {
            error: reason(cut, deadline),
            after: None,
            scope: FailureScope::Destination,
            blame: Blame::Nobody,
            ledger: None,
        })),
    }
}

fn reason(cut: Cut, deadline: Duration) -> String {
    match cut {
        Cut::Deadline => format!("the delivery took longer than {} s", deadline.as_secs_f64()),
        Cut::Stop => "the node stopped".to_owned(),
        Cut::Lost | Cut::Lease => "the claim was lost".to_owned(),
    }
}

fn run<E: OutboxEntity>(
    channel: Arc<dyn Channel>,
    entity: Arc<E>,
    clock: Arc<dyn Clock>,
    point: Arc<PointOfNoReturn>,
) -> AbortOnDropHandle<Outcome> {
    // Whatever becomes of the watcher, no delivery goes on unwatched.
    AbortOnDropHandle::new(tokio::spawn(
        async move { channel.deliver(Delivery::new(entity.view(), &*clock, &point)).await },
    ))
}

async fn lease_out(flight: &Flight, clock: &dyn Clock) {
    loop {
        let left = flight.lease_left(clock.monotonic());
        if left.is_zero() {
            return;
        }
        clock.sleep(left).await;
    }
}

/// What the channel said. One that came too late to send, and has to try again, tells of nothing else.
fn said(point: &PointOfNoReturn, outcome: Outcome) -> Watched {
    match outcome {
        Outcome::Retry(_) if point.was_too_late() => Watched::GivenBack,
        outcome => Watched::Ended(outcome),
    }
}

fn panicked(point: &PointOfNoReturn, stopped: &tokio::task::JoinError) -> Outcome {
    let error = if stopped.is_panic() { "the channel panicked" } else { "the channel's task was stopped" };
    if point.has_been_crossed() {
        let error = format!("{error} while waiting for the peer's answer");
        return Outcome::InDoubt(InDoubt { error, ledger: None });
    }
    Outcome::Retry(Retry {
        error: error.to_owned(),
        after: None,
        scope: FailureScope::Row,
        blame: Blame::Configuration,
        ledger: None,
    })
}

fn released() -> Written {
    Written { ending: Ending::Released, ledger: None, blame: None }
}

fn panicked_outside(row: &OutboxRow, clock: &dyn Clock) -> Written {
    let error = "the channel panicked outside of a delivery".to_owned();
    own_failure(row, error, Blame::Configuration, &RetryPolicy::default(), clock)
}

/// A failure of our own doing: it counts, so that the row cannot go round for ever.
fn own_failure(row: &OutboxRow, error: String, blame: Blame, retry: &RetryPolicy, clock: &dyn Clock) -> Written {
    let outcome = Outcome::Retry(Retry { error, after: None, scope: FailureScope::Row, blame, ledger: None });
    ending::of(row, outcome, retry, InDoubtPolicy::Retry, clock.now())
}

/// A row that this node cannot read; a later version may be able to. Case C29.
fn unreadable(id: OutboxId, error: &Error, clock: &dyn Clock) -> Written {
    let now = clock.now();
    let next = RetryPolicy::default().next_at(now, 1, None, id);
    let error = format!("the row cannot be read: {error}");
    let ending = Ending::Failure { error, next, reason_code: Some("unreadable".to_owned()), in_doubt: false };
    Written { ending, ledger: None, blame: Some(Blame::Message) }
}
