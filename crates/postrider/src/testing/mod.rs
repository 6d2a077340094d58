//! Doubles for tests, an application's own too: a clock that is turned by hand, a channel that
//! records, the contracts that every channel and every entity must pass, and the state machine in plain
//! words to compare a database with.

mod channel;
mod clock;
pub mod contract;
mod recording;
mod reference;

pub use channel::assert_channel_contract;
pub use clock::ManualClock;
pub use recording::RecordingChannel;
pub use reference::{Act, Model};
