//! What the daemon says while it runs: how many rows were settled.

use std::convert::Infallible;
use std::time::Duration;

use postrider::model::Clock;
use postrider::observe::{Counters, Snapshot};
use tracing::info;

use crate::cli::words::grouped;

/// How often it is said what was settled.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// What was said so far of an outbox.
#[derive(Debug)]
pub(super) struct Report<'a> {
    outbox: Option<&'a str>,
    before: Snapshot,
}

impl<'a> Report<'a> {
    pub(super) fn new(outbox: Option<&'a str>, counters: &Counters) -> Self {
        Self { outbox, before: counters.snapshot() }
    }

    /// Says every few seconds what was settled in them, if anything was.
    pub(super) async fn follow(&mut self, counters: &Counters, clock: &dyn Clock) -> Infallible {
        loop {
            clock.sleep(REPORT_EVERY).await;
            let now = counters.snapshot();
            if let Some(words) = settled_since(&self.before, &now) {
                info!(outbox = self.outbox, "{words} in the last {} s", REPORT_EVERY.as_secs());
            }
            self.before = now;
        }
    }

    /// Says what was settled since it was last said.
    pub(super) fn end(self, now: &Snapshot) {
        if let Some(words) = settled_since(&self.before, now) {
            info!(outbox = self.outbox, "{words} since that was last said");
        }
    }
}

/// Such as `delivered 1,234, failed 5`; nothing where nothing was settled.
fn settled_since(before: &Snapshot, now: &Snapshot) -> Option<String> {
    let counts = [
        ("delivered", now.sent - before.sent),
        ("failed", now.failed - before.failed),
        ("put off", now.deferred - before.deferred),
        ("given up", now.dead - before.dead),
        ("suppressed", now.suppressed - before.suppressed),
    ];
    let words = counts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = words.map(|(what, count)| format!("{what} {}", grouped(count))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_said() {
        let before = Snapshot::default();
        let mut now = before;
        assert_eq!(settled_since(&before, &now), None);
        (now.sent, now.failed, now.claimed) = (1_234, 5, 2_000);
        assert_eq!(settled_since(&before, &now).as_deref(), Some("delivered 1,234, failed 5"));
        assert_eq!(settled_since(&now, &now), None);
    }
}
