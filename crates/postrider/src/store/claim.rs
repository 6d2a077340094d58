//! Claiming rows: at most one worker gets each.

use std::cmp::Reverse;
use std::sync::Arc;

use super::database::{Extent, write};
use super::history;
use super::statements::Change;
use super::{Root, Rows, codec};
use crate::error::Result;
use crate::model::{Kind, OutboxEntity, OutboxId, OutboxStatus, Timestamp, Value};

/// The token of a claim: the row, and the fence that every settle must carry. Source: contract C4.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The row.
    pub id: OutboxId,
    /// The value of `claim_seq` that this claim set.
    pub seq: i64,
}

/// A claimed row, as the claim returned it.
#[derive(Debug)]
pub struct Claimed<E> {
    /// The token.
    pub claim: Claim,
    /// The row, or why it cannot be read: it is then settled as a failure like any other.
    pub entity: Result<E>,
}

/// What a claim of due rows asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOrder {
    /// Rows due at this instant or before.
    pub now: Timestamp,
    /// When others may take the rows over.
    pub reclaim_at: Timestamp,
    /// The claiming node's name.
    pub node: String,
    /// No row due before this instant is looked at; `None` looks at all.
    pub floor: Option<Timestamp>,
    /// Most rows.
    pub limit: usize,
}

impl<E: OutboxEntity> Rows<E, Root> {
    /// Claims one row if it is PENDING, FAILED or a SENDING whose time has passed, and due.
    ///
    /// `None`: somebody else has it, it is final, not due, or not there: skip it silently.
    /// Source: contract C4.1.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`](crate::ErrorKind::Transient) if the database did not answer: no
    /// claim then, whatever it did.
    ///
    /// # Cancel safety
    /// Safe; a claim that was made and not received is taken over at `reclaim_at`.
    pub async fn claim(
        &self,
        id: OutboxId,
        now: Timestamp,
        reclaim_at: Timestamp,
        node: &str,
    ) -> Result<Option<Claimed<E>>> {
        Ok(self.claim_ids(&[id], now, reclaim_at, node).await?.pop())
    }

    /// Claims those of the rows that are due and free, in one statement.
    ///
    /// # Errors
    /// As [`Self::claim`].
    ///
    /// # Cancel safety
    /// As [`Self::claim`].
    pub async fn claim_ids(
        &self,
        ids: &[OutboxId],
        now: Timestamp,
        reclaim_at: Timestamp,
        node: &str,
    ) -> Result<Vec<Claimed<E>>> {
        let values = vec![now.into(), reclaim_at.into(), node.into(), self.ids_batch(ids)];
        self.take(&self.shared.statements.claim_ids, values).await
    }

    /// Claims up to `limit` due rows, oldest first, across tenants; returns them by priority.
    ///
    /// # Errors
    /// As [`Self::claim`].
    ///
    /// # Cancel safety
    /// As [`Self::claim`].
    pub async fn claim_due(&self, order: &ClaimOrder) -> Result<Vec<Claimed<E>>> {
        let limit = i64::try_from(order.limit).unwrap_or(i64::MAX);
        let statements = &self.shared.statements;
        let mut values = vec![order.now.into(), order.reclaim_at.into(), order.node.as_str().into(), limit.into()];
        let change = match order.floor {
            Some(floor) => {
                values.push(floor.into());
                &statements.claim_due
            }
            None => &statements.claim_all_due,
        };
        self.take(change, values).await
    }

    /// Whether a row waits to be tried alone.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn has_suspect(&self, now: Timestamp) -> Result<bool> {
        let found = self.fetch(&self.shared.statements.has_suspect, vec![now.into()], vec![Kind::Uuid]).await?;
        Ok(!found.is_empty())
    }

    /// Claims one row that lost its worker twice, to be tried alone. Source: contract C4.6.
    ///
    /// # Errors
    /// As [`Self::claim`].
    ///
    /// # Cancel safety
    /// As [`Self::claim`].
    pub async fn claim_suspect(&self, now: Timestamp, reclaim_at: Timestamp, node: &str) -> Result<Option<Claimed<E>>> {
        let change = &self.shared.statements.claim_suspect;
        Ok(self.take(change, vec![now.into(), reclaim_at.into(), node.into()]).await?.pop())
    }

    async fn take(&self, change: &Change, values: Vec<Value>) -> Result<Vec<Claimed<E>>> {
        let work = Arc::new((change.clone(), values, Arc::clone(&self.shared)));
        let fetched = write(&self.shared.database, &self.shared.clock, change.extent(), move |connection| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.0.fetch(connection, &work.1, &work.2.kinds).await })
        })
        .await?;
        let mut claimed = Vec::with_capacity(fetched.len());
        for values in fetched {
            match codec::identity(&values) {
                Ok((id, seq)) => {
                    let entity = codec::decode::<E>(values, self.shared.by_tenant);
                    claimed.push(Claimed { claim: Claim { id, seq }, entity });
                }
                // Nothing can be written to it either; the others go on.
                Err(error) => tracing::error!(%error, "a row cannot be told from others; mend its id by hand"),
            }
        }
        claimed.sort_by_key(|claimed| {
            let row = claimed.entity.as_ref().ok().map(OutboxEntity::row);
            (Reverse(row.map_or(0, |row| row.priority)), row.map(|row| row.created_at), claimed.claim.id)
        });
        Ok(claimed)
    }

    /// Ends the rows whose lone claim was lost too; returns how many. Source: contract C4.6.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn bury_lost(&self, now: Timestamp) -> Result<usize> {
        const ERROR: &str =
            "given up: the worker was lost three times in a row, and again when the row was tried alone";
        let shared = Arc::clone(&self.shared);
        write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let values = [now.into(), ERROR.into()];
                let kinds = [Kind::Uuid, Kind::Int, Kind::Text, Kind::Text, Kind::Int];
                let buried = shared.statements.bury_lost.fetch(connection, &values, &kinds).await?;
                let mut lines = Vec::with_capacity(4 * buried.len());
                for values in &buried {
                    match history::buried(values, now, ERROR) {
                        Ok(told) => lines.extend(told),
                        Err(error) => tracing::error!(%error, "a row that was given up cannot be told from others"),
                    }
                }
                history::write(connection, &shared, &lines).await?;
                Ok(buried.len())
            })
        })
        .await
    }

    /// Due rows in these statuses, oldest first, at most `limit`, across tenants; claims nothing.
    ///
    /// Rows that cannot be read are left out here; a claim reports them. Source: contract C4.3.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_due(&self, statuses: &[OutboxStatus], now: Timestamp, limit: usize) -> Result<Vec<E>> {
        let statements = &self.shared.statements;
        let indexed = statuses.iter().all(|status| !status.is_final());
        let text = if indexed { &statements.find_due } else { &statements.find_due_any };
        let names: Vec<_> = statuses.iter().map(|status| status.as_str()).collect();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.fetch_readable(text, vec![now.into(), codec::json_text(&names)?.into(), limit.into()]).await
    }

    /// When the next row falls due, of those not before `floor` (the past, if one is due already);
    /// `None` if no row waits.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next_due(&self, floor: Timestamp) -> Result<Option<Timestamp>> {
        let found = self.fetch(&self.shared.statements.next_due, vec![floor.into()], vec![Kind::Time]).await?;
        found.into_iter().flatten().next().map_or(Ok(None), Option::try_from)
    }
}
