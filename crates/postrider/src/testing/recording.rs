//! A channel that keeps what it was given, and answers as the test says.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::channel::{Channel, Delivery};
use crate::error::Result;
use crate::model::{OutboxRow, OutboxView, Outcome, Sent, TenantId};

/// Keeps every row it is given; answers SENT, or what [`Self::answer_next`] laid ready.
///
/// ```
/// use postrider::model::{Blame, FailureScope, Outcome, Retry};
/// use postrider::testing::RecordingChannel;
///
/// let channel = RecordingChannel::new("sms");
/// // The first delivery fails, and uses an attempt; the second is SENT.
/// channel.answer_next(Outcome::Retry(Retry {
///     error: "no network".to_owned(),
///     after: None,
///     scope: FailureScope::Row,
///     blame: Blame::Nobody,
///     ledger: None,
/// }));
/// assert!(channel.deliveries().is_empty());
/// ```
pub struct RecordingChannel {
    name: String,
    inner: Mutex<Inner>,
    delivered: Notify,
}

#[derive(Default)]
struct Inner {
    deliveries: Vec<(TenantId, OutboxRow)>,
    answers: VecDeque<Outcome>,
}

impl RecordingChannel {
    /// A channel of that name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), inner: Mutex::default(), delivered: Notify::new() }
    }

    /// Lays an answer ready for one coming delivery, after those laid ready before.
    pub fn answer_next(&self, outcome: Outcome) {
        self.lock().answers.push_back(outcome);
    }

    /// The rows as they were delivered, in order.
    #[must_use]
    pub fn deliveries(&self) -> Vec<OutboxRow> {
        self.lock().deliveries.iter().map(|(_, row)| row.clone()).collect()
    }

    /// Whose rows they were, in the same order.
    #[must_use]
    pub fn tenants(&self) -> Vec<TenantId> {
        self.lock().deliveries.iter().map(|(tenant, _)| tenant.clone()).collect()
    }

    /// Waits until at least `count` deliveries were made; returns them.
    pub async fn wait_for(&self, count: usize) -> Vec<OutboxRow> {
        loop {
            let more = self.delivered.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            let deliveries = self.deliveries();
            if deliveries.len() >= count {
                return deliveries;
            }
            more.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel for RecordingChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, _row: OutboxView<'_>) -> Result<()> {
        Ok(())
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut inner = self.lock();
            inner.deliveries.push((delivery.row().tenant().clone(), delivery.row().content().clone()));
            let answer = inner.answers.pop_front();
            drop(inner);
            self.delivered.notify_waiters();
            answer.unwrap_or_else(|| Outcome::Sent(Sent { provider: Some("recording".to_owned()), ..Sent::default() }))
        })
    }
}

impl fmt::Debug for RecordingChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingChannel").field("name", &self.name).finish_non_exhaustive()
    }
}
