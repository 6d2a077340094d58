//! One attempt, as a channel sees it.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::model::{Clock, OutboxView, TenantId};

/// What a channel gets to deliver one row.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    row: OutboxView<'a>,
    clock: &'a dyn Clock,
    point_of_no_return: &'a PointOfNoReturn,
}

impl<'a> Delivery<'a> {
    /// Puts an attempt together.
    #[must_use]
    pub fn new(row: OutboxView<'a>, clock: &'a dyn Clock, point_of_no_return: &'a PointOfNoReturn) -> Self {
        Self { row, clock, point_of_no_return }
    }

    /// The row, as its claim returned it.
    #[must_use]
    pub fn row(self) -> OutboxView<'a> {
        self.row
    }

    /// Whose notification it is: settings of the tenant are resolved by this. Source: contract C5.3.
    #[must_use]
    pub fn tenant(self) -> &'a TenantId {
        self.row.tenant()
    }

    /// The clock for every time limit.
    #[must_use]
    pub fn clock(self) -> &'a dyn Clock {
        self.clock
    }

    /// The key by which a receiver can drop copies: the same on every retry. Source: contract C5.6.
    #[must_use]
    pub fn idempotency_key(self) -> String {
        self.row.content().idempotency_key()
    }

    /// Must be crossed before the bytes are written after which the peer may take the message.
    #[must_use]
    pub fn point_of_no_return(self) -> &'a PointOfNoReturn {
        self.point_of_no_return
    }
}

const OPEN: u8 = 0;
const CROSSED: u8 = 1;
const CLOSED: u8 = 2;
const LATE: u8 = 3;

/// The moment in a delivery after which cutting it leaves doubt.
///
/// Channel and dispatcher race for it: either the channel crosses first and is then waited for, or
/// the dispatcher closes first and the channel must not go on. A channel that never crosses can be
/// cut at any time and is then taken not to have delivered. One whose claim has run out cannot cross,
/// even if the dispatcher has not noticed yet: a process that was stopped wakes up in any order.
pub struct PointOfNoReturn {
    state: AtomicU8,
    is_held: Option<Held>,
}

/// Whether the delivery's claim is still its own.
type Held = Box<dyn Fn() -> bool + Send + Sync>;

impl PointOfNoReturn {
    /// Not crossed yet.
    #[must_use]
    pub fn new() -> Self {
        Self { state: AtomicU8::new(OPEN), is_held: None }
    }

    /// Not crossed yet; it cannot be once `is_held` says no.
    pub(crate) fn while_held(is_held: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { state: AtomicU8::new(OPEN), is_held: Some(Box::new(is_held)) }
    }

    /// For the channel: true if it may go on; false if the delivery was cut, or its claim has run
    /// out, and it must end here.
    #[must_use]
    pub fn cross(&self) -> bool {
        let is_held = self.is_held.as_ref().is_none_or(|is_held| is_held());
        self.leave_open(if is_held { CROSSED } else { LATE }) == CROSSED
    }

    /// For the dispatcher: true if the delivery is now cut; false if it was crossed before.
    #[must_use]
    pub fn close(&self) -> bool {
        self.leave_open(CLOSED) != CROSSED
    }

    /// True once [`Self::cross`] has succeeded.
    #[must_use]
    pub fn has_been_crossed(&self) -> bool {
        self.state.load(Ordering::SeqCst) == CROSSED
    }

    /// True once [`Self::cross`] came too late for the claim.
    pub(crate) fn was_too_late(&self) -> bool {
        self.state.load(Ordering::SeqCst) == LATE
    }

    /// Takes this state if there is none yet; the state that counts.
    fn leave_open(&self, state: u8) -> u8 {
        match self.state.compare_exchange(OPEN, state, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => state,
            Err(before) => before,
        }
    }
}

impl Default for PointOfNoReturn {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PointOfNoReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state.load(Ordering::SeqCst) {
            OPEN => "PointOfNoReturn(open)",
            CROSSED => "PointOfNoReturn(crossed)",
            LATE => "PointOfNoReturn(too late)",
            _ => "PointOfNoReturn(closed)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn either_the_channel_crosses_or_the_dispatcher_closes_never_both() {
        let point = PointOfNoReturn::new();
        assert!(point.cross() && point.cross());
        assert!(!point.close());
        let point = PointOfNoReturn::new();
        assert!(point.close() && point.close());
        assert!(!point.cross() && !point.has_been_crossed());
    }

    #[test]
    fn a_claim_that_ran_out_cannot_be_crossed_and_one_that_was_crossed_stays_so() {
        let held = Arc::new(AtomicBool::new(true));
        let point = || {
            let held = Arc::clone(&held);
            PointOfNoReturn::while_held(move || held.load(Ordering::SeqCst))
        };
        let (crossed, late) = (point(), point());
        assert!(crossed.cross());
        held.store(false, Ordering::SeqCst);
        assert!(crossed.cross() && !crossed.close() && !crossed.was_too_late());
        assert!(!late.cross() && late.was_too_late());
        held.store(true, Ordering::SeqCst);
        assert!(!late.cross() && late.close() && !late.has_been_crossed());
    }
}
