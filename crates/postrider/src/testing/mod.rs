//! Doubles for tests, an application's own too: a clock that is turned by hand, a channel that
//! records, and the state machine in plain words to compare a database with.

mod clock;
mod recording;
mod reference;

pub use clock::ManualClock;
pub use recording::RecordingChannel;
pub use reference::{Act, Model};
