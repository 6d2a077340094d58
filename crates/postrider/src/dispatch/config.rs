//! The settings of a dispatcher.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// How a node claims and delivers. Every setting has a default that suits a first start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchConfig {
    /// The node's name, written into the rows that it claims; unique per process start.
    pub node: String,
    /// Deliveries at once; 32 by default.
    pub concurrency: usize,
    /// Most rows of one claim; 100 by default.
    pub batch: usize,
    /// How long a claim lasts before others may take the row over; 60 s by default.
    pub claim_timeout: Duration,
    /// How long deliveries under way may go on at shutdown; 30 s by default.
    pub grace: Duration,
    /// The shortest time between two looks for due rows; 50 ms by default.
    pub poll_min: Duration,
    /// The longest time between two looks for due rows; 5 s by default.
    pub poll_max: Duration,
    /// Whether the node compares its clock with the database's, and claims nothing while they are
    /// apart by more than a quarter of the claim timeout; on by default. Off is for simulated time.
    pub check_clock: bool,
    /// How long an ending waits for others to be settled with it; 2 ms by default.
    pub settle_window: Duration,
}

impl DispatchConfig {
    /// The defaults, for a node of that name.
    #[must_use]
    pub fn new(node: impl Into<String>) -> Self {
        Self {
            node: node.into(),
            concurrency: 32,
            batch: 100,
            claim_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(30),
            poll_min: Duration::from_millis(50),
            poll_max: Duration::from_secs(5),
            check_clock: true,
            settle_window: Duration::from_millis(2),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refuse = |why: &'static str| Err(Error::new(ErrorKind::Configuration, why));
        if self.node.is_empty() || self.node.len() > 255 || self.node.contains('\0') {
            return refuse("the node's name must be 1 to 255 bytes without NUL");
        }
        if self.concurrency == 0 || self.concurrency > 100_000 {
            return refuse("concurrency must be between 1 and 100,000");
        }
        if self.batch == 0 || self.batch > 10_000 {
            return refuse("batch must be between 1 and 10,000");
        }
        let day = Duration::from_secs(24 * 3600);
        if self.claim_timeout < Duration::from_secs(1) || self.claim_timeout > day {
            return refuse("claim_timeout must be between 1 s and a day");
        }
        if self.grace > day {
            return refuse("grace must be at most a day");
        }
        if self.poll_min < Duration::from_millis(1) || self.poll_max < self.poll_min || self.poll_max > day {
            return refuse("poll_min must be at least 1 ms, and poll_max no less than it and at most a day");
        }
        if self.settle_window > Duration::from_secs(1) {
            return refuse("settle_window must be at most 1 s");
        }
        Ok(())
    }
}
