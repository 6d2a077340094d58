//! A transactional notification outbox.
//!
//! An application writes "tell these people" in the **same database transaction** as its business
//! data; the outbox renders, stores one row per recipient × channel, delivers, retries, stops by
//! policy, and can always say what happened to a message and why.
//!
//! ```text
//! accept ──► render ──► store ──► claim ──► deliver ──► settle
//! (caller's transaction)          (any node, fenced)   (batched)
//! ```
//!
//! | stage | module |
//! |---|---|
//! | what a row is, where it may go | [`model`] |
//! | when to try again, when to give up | [`policy`] |
//! | templates to text | [`render`] |
//! | the seam to e-mail, webhooks and your own channels | [`channel`] |
//! | the rows in SQLite and PostgreSQL | [`store`] |
//! | writing in the caller's transaction | [`accept`] |
//! | claiming, delivering, settling | [`dispatch`] |
//! | all of them wired together | [`Outbox`] |
//!
//! The rows are the application's: a struct of its own that embeds a [`model::OutboxRow`] and derives
//! [`OutboxEntity`], or the ready-made [`model::NotificationRow`].
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! use postrider::OutboxEntity;
//! use postrider::model::{OutboxRow, TenantId};
//!
//! #[derive(Clone, Debug, OutboxEntity)]
//! #[outbox(table = "order_mail", tenant = "tenant_id")]
//! struct OrderMail {
//!     #[outbox(row)]
//!     row: OutboxRow,
//!     tenant_id: TenantId,
//!     order_id: i64,
//! }
//! # }
//! ```
//!
//! The library owns no table, reads no environment, and takes every time from the [`model::Clock`]
//! that the application supplies.

pub mod accept;
pub mod channel;
pub mod dispatch;
mod error;
pub mod model;
pub mod observe;
mod outbox;
pub mod policy;
pub mod render;
pub mod signal;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::{Error, ErrorKind, Result};
pub use model::OutboxEntity;
pub use outbox::{Outbox, OutboxBuilder};
#[cfg(feature = "derive")]
pub use postrider_derive::OutboxEntity;
