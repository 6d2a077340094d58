//! What the node has done, to be looked at from outside. It decides nothing.

mod counters;

pub use counters::{Counters, Listening, Snapshot};
