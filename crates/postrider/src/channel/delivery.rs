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

/// The moment in a delivery after which cutting it leaves doubt.
///
/// Channel and dispatcher race for it: either the channel crosses first and is then waited for, or
/// the dispatcher closes first and the channel must not go on. A channel that never crosses can be
/// cut at any time and is then taken not to have delivered.
pub struct PointOfNoReturn(AtomicU8);

impl PointOfNoReturn {
    /// Not crossed yet.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU8::new(OPEN))
    }

    /// For the channel: true if it may go on; false if the delivery was cut and must end here.
    #[must_use]
    pub fn cross(&self) -> bool {
        self.0.compare_exchange(OPEN, CROSSED, Ordering::SeqCst, Ordering::SeqCst).is_ok() || self.has_been_crossed()
    }

    /// For the dispatcher: true if the delivery is now cut; false if it was crossed before.
    #[must_use]
    pub fn close(&self) -> bool {
        self.0.compare_exchange(OPEN, CLOSED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            || self.0.load(Ordering::SeqCst) == CLOSED
    }

    /// True once [`Self::cross`] has succeeded.
    #[must_use]
    pub fn has_been_crossed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == CROSSED
    }
}

impl Default for PointOfNoReturn {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PointOfNoReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.load(Ordering::SeqCst) {
            OPEN => "PointOfNoReturn(open)",
            CROSSED => "PointOfNoReturn(crossed)",
            _ => "PointOfNoReturn(closed)",
        })
    }
}

#[cfg(test)]
mod tests {
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
}
