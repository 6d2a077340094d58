//! The seam to the world: a channel delivers one row and says how it ended.
//!
//! | channel | where |
//! |---|---|
//! | e-mail over SMTP, the sandbox | the crate `postrider-channels` |
//! | one of your own | implement [`Channel`] and register it |
//!
//! A channel sees a read-only view, answers with an [`Outcome`], and never changes a row.

mod delivery;
mod registry;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

pub use delivery::{Delivery, PointOfNoReturn};
pub use registry::ChannelRegistry;

use crate::error::Result;
use crate::model::{InDoubtPolicy, OutboxView, Outcome};
use crate::policy::RetryPolicy;

/// A way to reach somebody.
pub trait Channel: fmt::Debug + Send + Sync {
    /// The name in the row's `channel` column: lower-case ASCII letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// Looks at a row before it is written: address, header lines, payload.
    ///
    /// Called inside the caller's transaction, so it must neither wait nor do I/O.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), naming what is wrong: nothing is written.
    fn check(&self, row: OutboxView<'_>) -> Result<()>;

    /// Delivers one row. An unreadable row is an outcome too, not a panic.
    ///
    /// # Cancel safety
    /// The future is dropped when its claim is lost, its deadline has passed or the node stops,
    /// unless it has crossed its [`PointOfNoReturn`]; dropping it must leave nothing behind that a
    /// later delivery could mistake for its own (a pooled connection in the middle of a reply).
    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome>;

    /// The longest time that one delivery may take in all.
    fn deadline(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// When to try again after a failure.
    fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::default()
    }

    /// What becomes of a row whose attempt ended in doubt.
    fn in_doubt_policy(&self) -> InDoubtPolicy {
        InDoubtPolicy::Retry
    }
}
