//! The calls that settle and renew claimed rows.

use std::collections::HashSet;
use std::sync::Arc;

use super::batch::{self, SETTLED, Text, claim_of, needs_history, write_all};
use super::{Ending, Renewed, Settled, Settlement};
use crate::error::{Error, ErrorKind, Result};
use crate::model::transition::{Event, Verdict, verdict};
use crate::model::{OutboxEntity, OutboxId, OutboxStatus, Timestamp, Value};
use crate::store::database::{Extent, write};
use crate::store::{Claim, Root, Rows, codec};

impl<E: OutboxEntity> Rows<E, Root> {
    /// Writes how attempts ended, each fenced by its claim; one answer per settlement, in the
    /// order of their ids.
    ///
    /// One transaction for all. If a row's values are refused, or somebody holds a row locked, each
    /// row is settled by itself, so that one bad row blocks no other. Source: contract C4.7.
    ///
    /// # Errors
    /// If nothing is known to be written: settle all of them again. A settlement whose commit was
    /// unknown then answers that its claim is lost.
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let mut settlements = settlements.to_vec();
        settlements.sort_by_key(|settlement| settlement.claim.id);
        match self.settle_together(settlements.clone()).await {
            Err(error) if concerns_one_row(&error) => {
                let mut all = Vec::with_capacity(settlements.len());
                for settlement in settlements {
                    let claim = settlement.claim;
                    match self.settle_together(vec![settlement]).await {
                        Ok(settled) => all.extend(settled),
                        Err(error) => all.push(Settled { claim, now: Err(error) }),
                    }
                }
                Ok(all)
            }
            answer => answer,
        }
    }

    async fn settle_together(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        let settlements = Arc::new(settlements);
        let shared = Arc::clone(&self.shared);
        let one = settlements.windows(2).all(|pair| Text::of(&pair[0].ending) == Text::of(&pair[1].ending));
        let one_statement = one && !settlements.iter().any(needs_history);
        let extent = if one_statement { self.shared.statements.mark_sent.extent() } else { Extent::Transaction };
        write(&self.shared.database, &self.shared.clock, extent, move |connection| {
            let (shared, settlements) = (Arc::clone(&shared), Arc::clone(&settlements));
            Box::pin(async move { write_all(connection, &shared, &settlements).await })
        })
        .await
    }

    /// Settles one row as SENT.
    ///
    /// # Errors
    /// [`ErrorKind::ClaimLost`] or [`ErrorKind::WrongStatus`]: nothing changed.
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn mark_sent(&self, claim: Claim, at: Timestamp) -> Result<()> {
        let ending = Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
        self.settle_one(Settlement::new(claim, at, ending), Event::MarkSent).await.map(drop)
    }

    /// Settles one row as SUPPRESSED, for this reason.
    ///
    /// # Errors
    /// As [`Self::mark_sent`].
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn mark_suppressed(&self, claim: Claim, at: Timestamp, reason: &str) -> Result<()> {
        let ending = Ending::Suppressed { reason: reason.to_owned(), reason_code: "policy".to_owned() };
        self.settle_one(Settlement::new(claim, at, ending), Event::MarkSuppressed).await.map(drop)
    }

    /// Records a failure; FAILED and due again at `next`, or DEAD with the last attempt.
    ///
    /// # Errors
    /// As [`Self::mark_sent`].
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn record_failure(
        &self,
        claim: Claim,
        at: Timestamp,
        error: &str,
        next: Timestamp,
    ) -> Result<OutboxStatus> {
        let ending = Ending::Failure { error: error.to_owned(), next, reason_code: None, in_doubt: false };
        self.settle_one(Settlement::new(claim, at, ending), Event::RecordFailure).await
    }

    async fn settle_one(&self, settlement: Settlement, event: Event) -> Result<OutboxStatus> {
        let id = settlement.claim.id;
        let settled = self.settle(&[settlement]).await?.pop().map_or(Ok(None), |settled| settled.now)?;
        match settled {
            Some((status, _)) => Ok(status),
            None => Err(self.refusal(id, event).await?),
        }
    }

    /// Why an event changed nothing.
    async fn refusal(&self, id: OutboxId, event: Event) -> Result<Error> {
        let status = self.status_of(id).await?;
        Ok(match verdict(status, event) {
            Verdict::Refused => Error::new(ErrorKind::WrongStatus, format!("the row {id} is {status}, not SENDING")),
            _ => Error::new(ErrorKind::ClaimLost, format!("the claim of row {id} was lost to a newer one")),
        })
    }

    /// Keeps these claims until `reclaim_at`; returns those that are lost. A row that somebody holds
    /// locked is neither kept nor lost.
    ///
    /// # Errors
    /// What the database says; the claims may or may not have been kept.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn renew(&self, claims: &[Claim], now: Timestamp, reclaim_at: Timestamp) -> Result<Renewed> {
        let mut claims = claims.to_vec();
        claims.sort_by_key(|claim| claim.id);
        match self.renew_together(&claims, now, reclaim_at).await {
            Err(error) if concerns_one_row(&error) => {
                let mut all = Renewed::default();
                for claim in claims {
                    match self.renew_together(&[claim], now, reclaim_at).await {
                        Ok(one) => {
                            all.kept.extend(one.kept);
                            all.lost.extend(one.lost);
                        }
                        Err(error) if concerns_one_row(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(all)
            }
            answer => answer,
        }
    }

    async fn renew_together(&self, claims: &[Claim], now: Timestamp, reclaim_at: Timestamp) -> Result<Renewed> {
        let batches = self.shared.statements.batches;
        let rows = claims.iter().map(|claim| batch::renewal(batches, *claim, now, reclaim_at)).collect::<Vec<_>>();
        let batch: Value = codec::json_text(&rows)?.into();
        let shared = Arc::clone(&self.shared);
        let extent = self.shared.statements.renew.extent();
        let kept = write(&self.shared.database, &self.shared.clock, extent, move |connection| {
            let (shared, batch) = (Arc::clone(&shared), batch.clone());
            Box::pin(async move { shared.statements.renew.fetch(connection, &[batch], &SETTLED[..2]).await })
        })
        .await?;
        let kept: HashSet<Claim> = kept.into_iter().map(claim_of).collect::<Result<_>>()?;
        let (kept, lost) = claims.iter().copied().partition(|claim| kept.contains(claim));
        Ok(Renewed { kept, lost })
    }
}

/// One row is to blame, or held by somebody: the others can go on without it.
fn concerns_one_row(error: &Error) -> bool {
    error.blames_the_row() || error.kind() == ErrorKind::Locked
}
