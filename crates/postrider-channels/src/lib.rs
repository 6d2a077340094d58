//! The concrete channels of the postrider outbox.
//!
//! | channel | type | module |
//! |---|---|---|
//! | `email` | [`EmailChannel`]: SMTP to one relay | [`email`] |
//! | any name | [`SandboxChannel`]: delivers nowhere, for a laptop and for tests | [`sandbox`] |
//!
//! Each implements [`postrider::channel::Channel`] and is registered in a
//! [`ChannelRegistry`](postrider::channel::ChannelRegistry). A channel answers with an
//! [`Outcome`](postrider::model::Outcome) and never changes a row.

pub mod email;
pub mod sandbox;

pub use email::{Credentials, EmailChannel, EmailConfig, RelayReport, Timeouts, TlsMode};
pub use sandbox::SandboxChannel;
