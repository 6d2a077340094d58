//! Pure decisions: when to try again, and when to give up. No I/O, no clock of its own.

mod retry;

pub use retry::{DEFERRAL_LIMIT, RetryPolicy};
