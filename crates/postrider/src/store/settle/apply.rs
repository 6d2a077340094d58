//! The calls that settle and renew claimed rows.

use std::collections::{HashMap, HashSet};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use super::batch::{self, SETTLED, Text, claim_of, needs_history, write_all};
use super::{Ending, Renewed, Settled, Settlement};
use crate::error::{Error, ErrorKind, Result};
use crate::model::transition::{Event, Verdict, verdict};
use crate::model::{OutboxEntity, OutboxId, OutboxStatus, Timestamp, Value};
use crate::store::database::{Extent, read, write};
use crate::store::{Claim, Dialect, Root, Rows, codec};

/// How often a single row that somebody holds locked is tried, and how long after one another.
const LOCKED_TRIES: u32 = 20;
const LOCKED_PAUSE: Duration = Duration::from_millis(50);

impl<E: OutboxEntity> Rows<E, Root> {
    /// Writes how attempts ended, each fenced by its claim; one answer per settlement, in the
    /// order of their ids.
    ///
    /// One transaction for all. If a row's values are refused, each row is settled by itself, so that
    /// one bad row blocks no other. A row that somebody holds locked is not waited for: it answers
    /// [`ErrorKind::Locked`]. Source: contract C4.7.
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
        let settlements = Arc::new(settlements);
        let mut all = self.settle_free(&settlements).await?;
        let held: HashSet<Claim> = all.iter().filter(|one| is_locked(one)).map(|one| one.claim).collect();
        if held.is_empty() {
            return Ok(all);
        }
        // Mostly it was another statement's lock, and is gone by now.
        let locked = settlements.iter().filter(|settlement| held.contains(&settlement.claim)).cloned().collect();
        let mut again: HashMap<_, _> = match self.settle_free(&Arc::new(locked)).await {
            Ok(again) => again.into_iter().map(|one| (one.claim, one.now)).collect(),
            Err(error) => {
                let error = |claim| (claim, Err(Error::new(error.kind(), format!("it may not be written: {error}"))));
                held.into_iter().map(error).collect()
            }
        };
        for one in &mut all {
            if let Some(now) = again.remove(&one.claim) {
                one.now = now;
            }
        }
        Ok(all)
    }

    /// Settles all rows that nobody holds locked.
    async fn settle_free(&self, settlements: &Arc<Vec<Settlement>>) -> Result<Vec<Settled>> {
        let mut all = match self.settle_together(Arc::clone(settlements)).await {
            Err(error) if error.blames_the_row() => {
                let mut all = Vec::with_capacity(settlements.len());
                for settlement in settlements.iter() {
                    let claim = settlement.claim;
                    match self.settle_together(Arc::new(vec![settlement.clone()])).await {
                        Ok(settled) => all.extend(settled),
                        Err(error) => all.push(Settled { claim, now: Err(error) }),
                    }
                }
                all
            }
            answer => answer?,
        };
        self.tell_locked_from_lost(&mut all).await;
        Ok(all)
    }

    /// What was not written was passed over, or its claim is lost.
    async fn tell_locked_from_lost(&self, all: &mut [Settled]) {
        let untouched: Vec<_> = all.iter().filter(|one| matches!(one.now, Ok(None))).map(|one| one.claim).collect();
        let held = self.still_held(&untouched).await;
        for one in all.iter_mut().filter(|one| matches!(one.now, Ok(None))) {
            one.now = match &held {
                Ok(held) if held.contains(&one.claim) => Err(locked(one.claim)),
                Ok(_) => Ok(None),
                Err(error) => Err(Error::new(error.kind(), format!("it is not known who has the row: {error}"))),
            };
        }
    }

    /// Which of these claims hold still; nobody is waited for.
    async fn still_held(&self, claims: &[Claim]) -> Result<HashSet<Claim>> {
        if claims.is_empty() || self.shared.database.dialect() == Dialect::Sqlite {
            // SQLite locks no rows: what it did not write is lost.
            return Ok(HashSet::new());
        }
        let ids: Vec<_> = claims.iter().map(|claim| claim.id).collect();
        let values = [self.ids_batch(&ids), self.tenant_value()];
        let shared = Arc::clone(&self.shared);
        let found = read(&self.shared.database, &self.shared.clock, move |connection| {
            let (shared, values) = (Arc::clone(&shared), values.clone());
            Box::pin(async move { shared.statements.claims_of.fetch(connection, &values, &SETTLED[..2]).await })
        })
        .await?;
        let found: HashSet<Claim> = found.into_iter().map(claim_of).collect::<Result<_>>()?;
        Ok(claims.iter().copied().filter(|claim| found.contains(claim)).collect())
    }

    async fn settle_together(&self, settlements: Arc<Vec<Settlement>>) -> Result<Vec<Settled>> {
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
        let mut tries = 1;
        let settled = loop {
            let settled = self.settle(slice::from_ref(&settlement)).await?.pop();
            match settled.map_or(Ok(None), |settled| settled.now) {
                // One row holds up no other: whoever has it may be done soon.
                Err(error) if error.kind() == ErrorKind::Locked && tries < LOCKED_TRIES => tries += 1,
                answer => break answer?,
            }
            self.shared.clock.sleep(LOCKED_PAUSE).await;
        };
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
    /// locked is neither kept nor lost, and not waited for.
    ///
    /// # Errors
    /// What the database says; the claims may or may not have been kept.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn renew(&self, claims: &[Claim], now: Timestamp, reclaim_at: Timestamp) -> Result<Renewed> {
        let mut claims = claims.to_vec();
        claims.sort_by_key(|claim| claim.id);
        let mut kept = self.renew_free(&claims, now, reclaim_at).await?;
        let untouched: Vec<_> = claims.iter().copied().filter(|claim| !kept.contains(claim)).collect();
        let held = self.still_held(&untouched).await?;
        if !held.is_empty() {
            // Mostly it was another statement's lock, and is gone by now.
            let locked: Vec<_> = untouched.into_iter().filter(|claim| held.contains(claim)).collect();
            kept.extend(self.renew_free(&locked, now, reclaim_at).await?);
        }
        let lost = claims.iter().copied().filter(|claim| !kept.contains(claim) && !held.contains(claim)).collect();
        Ok(Renewed { kept: claims.into_iter().filter(|claim| kept.contains(claim)).collect(), lost })
    }

    /// Keeps all claims whose rows nobody holds locked.
    async fn renew_free(&self, claims: &[Claim], now: Timestamp, reclaim_at: Timestamp) -> Result<HashSet<Claim>> {
        match self.renew_together(claims, now, reclaim_at).await {
            Err(error) if error.blames_the_row() => {
                let mut all = HashSet::new();
                for claim in claims {
                    match self.renew_together(slice::from_ref(claim), now, reclaim_at).await {
                        Ok(one) => all.extend(one),
                        Err(error) if error.blames_the_row() => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(all)
            }
            answer => answer,
        }
    }

    async fn renew_together(&self, claims: &[Claim], now: Timestamp, reclaim_at: Timestamp) -> Result<HashSet<Claim>> {
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
        kept.into_iter().map(claim_of).collect()
    }
}

fn is_locked(settled: &Settled) -> bool {
    settled.now.as_ref().is_err_and(|error| error.kind() == ErrorKind::Locked)
}

fn locked(claim: Claim) -> Error {
    Error::new(ErrorKind::Locked, format!("somebody holds the row {} locked", claim.id))
}
