//! A transactional notification outbox.

pub mod channel;
mod error;
pub mod model;
pub mod policy;
pub mod store;

pub use error::{Error, ErrorKind, Result};
