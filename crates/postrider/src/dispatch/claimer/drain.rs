//! The rows that were handed over before a shutdown was asked for.

use super::Claimer;
use crate::error::Result;
use crate::model::OutboxEntity;

impl<E: OutboxEntity> Claimer<E> {
    /// Claims what was handed over before the stop was asked for, as slots become free within the
    /// grace period. Nothing else is looked for; what is left over, another node finds.
    pub(super) async fn drain(&mut self) -> Result<()> {
        let cutting = self.shared.cutting.clone();
        let mut left = self.shared.signal.waiting();
        if left > 0 && self.is_alone {
            tokio::select! {
                () = cutting.cancelled() => return Ok(()),
                () = self.shared.flights.all_landed() => {}
            }
        }
        while left > 0 {
            // Only this task takes slots, so one that was free stays free.
            tokio::select! {
                () = cutting.cancelled() => return Ok(()),
                slot = self.slots.acquire() => drop(slot),
            }
            let pause = self.may_not_claim().await?;
            if self.clock_is_off || cutting.is_cancelled() {
                return Ok(());
            }
            if let Some(pause) = pause {
                tokio::select! {
                    () = cutting.cancelled() => return Ok(()),
                    () = self.shared.clock.sleep(pause) => continue,
                }
            }
            match self.take_handed_over(left).await? {
                // Somebody else with the same signal took them.
                0 => return Ok(()),
                taken => left -= taken,
            }
        }
        Ok(())
    }
}
