//! Doubles and assertions for tests, an application's own too: a clock that is turned by hand, a channel
//! that records, the contracts that every channel and every entity must pass, and the state machine in
//! plain words to compare a database with.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use postrider::model::{Clock, NotificationRow, OutboxStatus, TenantId, Timestamp};
//! use postrider::store::{Database, Query, SqliteDatabase, Synchronous, schema};
//! use postrider::testing::{ManualClock, RecordingChannel, assert_enqueued, assert_status};
//! use postrider::Outbox;
//! use postrider::accept::{Notification, Recipient};
//! # let folder = tempfile::tempdir()?;
//! # tokio::runtime::Runtime::new()?.block_on(async {
//!
//! let clock = Arc::new(ManualClock::new(Timestamp::parse("2026-03-01T10:00:00Z")?));
//! let channel = Arc::new(RecordingChannel::new("email"));
//! let opened = SqliteDatabase::open(folder.path().join("test.db"), Synchronous::Normal).await?;
//! let database: Arc<dyn Database> = Arc::new(opened);
//! let as_clock: Arc<dyn Clock> = clock.clone();
//! let outbox = Outbox::<NotificationRow>::builder(database.clone(), as_clock.clone()).channel(channel.clone()).build()?;
//! schema::migrate::<NotificationRow>(&database, &as_clock, outbox.repository().table()).await?;
//!
//! // What the application does in its transaction: a reminder for the next day.
//! let reminder = Notification::text("Reminder", "Your order waits.").over("email")
//!     .to(Recipient::new("alice").at("email", "alice@example.com"))
//!     .send_at(clock.now().plus(Duration::from_secs(86_400)));
//! let mut open = database.begin().await?;
//! let root = |row| NotificationRow { row, tenant_id: TenantId::ROOT };
//! outbox.service().root().enqueue(open.connection(), &reminder, root).await?;
//! open.commit().await?;
//!
//! let rows = outbox.repository().root();
//! let mail = assert_enqueued(&rows, &Query::new().eq("recipient", "alice")).await;
//! assert_status(&rows, mail.row.id, OutboxStatus::Pending).await;
//!
//! // The day passes. (By a clock of one's own a node does not ask the database for the time.)
//! clock.advance(Duration::from_secs(86_400));
//! let mut node = postrider::dispatch::DispatchConfig::new("test");
//! node.check_clock = false;
//! let dispatcher = outbox.start(node)?;
//! let sent = channel.wait_for(1).await;
//! dispatcher.shutdown().await;
//! assert_eq!(sent[0].subject.as_deref(), Some("Reminder"));
//! assert_status(&rows, mail.row.id, OutboxStatus::Sent).await;
//! # Ok::<(), postrider::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assertions;
mod channel;
mod clock;
pub mod contract;
mod recording;
mod reference;

pub use assertions::{assert_enqueued, assert_nothing_enqueued, assert_status};
pub use channel::assert_channel_contract;
pub use clock::ManualClock;
pub use recording::RecordingChannel;
pub use reference::{Act, Model};
