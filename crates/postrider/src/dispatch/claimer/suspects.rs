//! Rows that lost their worker again and again.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::Claimer;
use crate::error::Result;
use crate::model::OutboxEntity;
use crate::model::clock::within;

/// The longest that this node waits to be empty for one of them, and that it then leaves it alone.
const ALONE_MAX: Duration = Duration::from_secs(20);

impl<E: OutboxEntity> Claimer<E> {
    /// Rows that lost their worker again and again are tried alone, once; after that they are given up.
    ///
    /// Alone means that nothing else is under way here, so that no other row can be blamed for a
    /// crash. It is waited for only so long; a busy node tries again later.
    pub(super) async fn look_after_lost(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let buried = shared.rows.bury_lost(shared.clock.now()).await?;
        if buried > 0 {
            shared.counters.dead(buried);
            warn!(rows = buried, "rows were given up: each lost its worker again and again");
        }
        if !shared.rows.has_suspect(shared.clock.now()).await? {
            return Ok(());
        }
        let patience = (shared.config.claim_timeout / 3).min(ALONE_MAX);
        // The others have their time in between, however many such rows there are.
        self.next_suspects = shared.clock.monotonic() + 2 * patience;
        let empty = within(&*shared.clock, patience, shared.flights.all_landed());
        tokio::select! {
            () = shared.stopping.cancelled() => return Ok(()),
            empty = empty => if empty.is_none() { return Ok(()) },
        }
        let lease = self.lease();
        let Some(suspect) = shared.rows.claim_suspect(lease.now, lease.reclaim_at, &shared.config.node).await? else {
            return Ok(());
        };
        warn!(id = %suspect.claim.id, "a row lost its worker three times in a row; it is tried alone");
        self.is_alone = true;
        self.send_off(vec![suspect], lease.until);
        tokio::select! {
            () = shared.stopping.cancelled() => {}
            _ = within(&*shared.clock, patience, shared.flights.all_landed()) => self.is_alone = false,
        }
        Ok(())
    }
}
