//! Opening what the configuration names: the database, its tables, the channels, the outbox.
//!
//! Where it stands: between the configuration and the commands. `open` reaches a database, `store`
//! is one outbox in it, `channels` makes what delivers. A SQLite file is made only where a command
//! is about to write, and what is missing is named with what to do.

mod channels;
mod open;
mod store;

pub(crate) use channels::{channels, relay, templates};
pub(crate) use open::{PATIENCE, Purpose};
pub(crate) use store::{Store, is_problem};
