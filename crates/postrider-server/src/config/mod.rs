//! The configuration: one list of settings, three layers, and where each value comes from.
//!
//! ```text
//! default < postrider.toml < POSTRIDER_… < flag ──► Values ──► Config
//!           (file)          (environment)          (layers)   (typed)
//! ```
//! [`setting`] is the only place that knows a setting's key, kind and default; the key of the
//! file, the variable's name and the output of `postrider check` follow from it. A wrong value
//! is refused where it stands: file and line, variable or flag. Nothing here opens a database
//! or a socket, and this is the only part of the program that reads the environment.

mod address;
mod duration;
pub(crate) mod environment;
mod error;
mod file;
mod givens;
mod layers;
mod node;
mod outbox;
mod relay;
mod secret;
mod section;
mod setting;
mod suggest;
mod typed;
mod value;

pub(crate) use address::DatabaseAddress;
pub(crate) use layers::{Shown, Sources, Values};
pub(crate) use outbox::OutboxConfig;
pub(crate) use typed::Config;

pub(crate) use duration::{display as display_duration, parse as parse_duration};
