//! Deleting rows with their history. A row that is being delivered stays, whoever asks.
//!
//! Many rows go in batches, each in a transaction of its own. Source: contract C7, C7.1.

use std::ops::AddAssign;
use std::sync::Arc;

use super::database::{Extent, write};
use super::query::{Plan, Query};
use super::statements::{Bound, IDS_BATCH, Test};
use super::{Connection, Rows, Shared};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Kind, OutboxEntity, OutboxId, OutboxStatus, Value};

/// Most rows of one transaction.
const BATCH: usize = 1_000;

/// What a delete of many rows did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Deleted {
    /// Rows that are gone.
    pub deleted: u64,
    /// Rows that were meant and are being delivered (SENDING): they stay.
    pub sending: u64,
}

impl AddAssign for Deleted {
    fn add_assign(&mut self, more: Self) {
        self.deleted += more.deleted;
        self.sending += more.sending;
    }
}

impl<E: OutboxEntity, S> Rows<E, S> {
    /// Deletes a row and its history; false if this scope sees no such row.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if it is SENDING, overdue or not: try again once it is settled.
    ///
    /// # Cancel safety
    /// Safe: row and history go together, or not at all.
    pub async fn delete_by_id(&self, id: OutboxId) -> Result<bool> {
        let (shared, id_value, tenant) = (Arc::clone(&self.shared), self.id_value(id), self.tenant_value());
        let gone = write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection| {
            let (shared, id, tenant) = (Arc::clone(&shared), id_value.clone(), tenant.clone());
            Box::pin(async move {
                let gone = shared.statements.delete_row.execute(connection, &[id.clone(), tenant]).await?;
                if gone > 0 {
                    shared.statements.delete_history.execute(connection, &[id]).await?;
                }
                Ok(gone)
            })
        })
        .await?;
        if gone > 0 {
            return Ok(true);
        }
        match self.status_of(id).await {
            Ok(OutboxStatus::Sending) => Err(Error::new(
                ErrorKind::Conflict,
                format!("the row {id} is being delivered (SENDING); try again once it is settled"),
            )),
            Ok(_) => {
                Err(Error::new(ErrorKind::Transient, format!("the row {id} changed at the same moment; try again")))
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the row with this row's id; as [`Self::delete_by_id`].
    ///
    /// # Errors
    /// As [`Self::delete_by_id`].
    ///
    /// # Cancel safety
    /// As [`Self::delete_by_id`].
    pub async fn delete(&self, entity: &E) -> Result<bool> {
        self.delete_by_id(entity.row().id).await
    }

    /// Deletes those of the rows that this scope sees, but none that is SENDING. Any number of ids;
    /// up to 1,000 rows go in one transaction.
    ///
    /// # Errors
    /// What the database says; [`ErrorKind::Locked`] if somebody holds one of the rows for longer
    /// than is waited for. What went before stays deleted: call it again.
    ///
    /// # Cancel safety
    /// Safe: each batch goes as a whole or not at all, later ones stay.
    pub async fn delete_all_by_id(&self, ids: &[OutboxId]) -> Result<Deleted> {
        let plan = Query::new().conditions_alone(&self.columns(), self.tenant.as_ref())?;
        let mut ids = ids.to_vec();
        // In the order of all other locks; and what is there twice must not be counted twice.
        ids.sort_unstable();
        ids.dedup();
        let mut all = Deleted::default();
        for chunk in ids.chunks(BATCH) {
            let batch = self.batch(chunk.iter().map(|id| id.as_uuid().into()));
            all += self.delete_picked(&plan, batch, Spared::Counted).await?;
        }
        Ok(all)
    }

    /// Deletes all rows that this scope sees, but none that is SENDING; as [`Self::delete_by`].
    ///
    /// # Errors
    /// As [`Self::delete_by`].
    ///
    /// # Cancel safety
    /// As [`Self::delete_by`].
    pub async fn delete_all(&self) -> Result<Deleted> {
        self.delete_by(&Query::new()).await
    }

    /// Deletes the rows that meet the query's conditions, with their history, but none that is
    /// SENDING; those are counted at the end.
    ///
    /// Up to 1,000 rows go in one transaction, so that nobody waits for long; it goes through the
    /// rows once, along an index. Rows that are written meanwhile may stay.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the query does not fit the entity, or has an order, a limit or a
    /// cursor; [`ErrorKind::Locked`] if somebody holds one of the rows for longer than is waited
    /// for. What went before stays deleted: call it again.
    ///
    /// # Cancel safety
    /// Safe: each batch goes as a whole or not at all, later ones stay.
    pub async fn delete_by(&self, query: &Query) -> Result<Deleted> {
        let mut plan = query.conditions_alone(&self.columns(), self.tenant.as_ref())?;
        let mut all = Deleted::default();
        loop {
            let Some(picked) = self.pick(&plan, BATCH).await? else { break };
            all += self.delete_picked(&plan, picked.ids, Spared::Uncounted).await?;
            if picked.count < BATCH {
                break;
            }
            plan.selection.after = Some(picked.place);
        }
        let mut sending = plan.selection;
        sending.conditions.push(self.columns().status(Test::Equal, OutboxStatus::Sending)?);
        all.sending = self.count_of(&sending).await?;
        Ok(all)
    }

    /// Deletes up to `limit` rows (1,000 at most) that meet the query's conditions, but none that is
    /// SENDING, in one transaction; returns how many. 0: there is none left.
    ///
    /// For those who want to show how far they are, or to pause between batches.
    ///
    /// # Errors
    /// As [`Self::delete_by`]; [`ErrorKind::Invalid`] if the limit is 0.
    ///
    /// # Cancel safety
    /// Safe: the batch goes as a whole or not at all.
    pub async fn delete_batch(&self, query: &Query, limit: usize) -> Result<u64> {
        if limit == 0 {
            return Err(Error::invalid("the limit is 0 rows; it must be at least 1"));
        }
        let mut plan = query.conditions_alone(&self.columns(), self.tenant.as_ref())?;
        loop {
            let Some(picked) = self.pick(&plan, limit.min(BATCH)).await? else { return Ok(0) };
            let deleted = self.delete_picked(&plan, picked.ids, Spared::Uncounted).await?.deleted;
            // If each of them changed meanwhile, there may still be others.
            if deleted > 0 {
                return Ok(deleted);
            }
            plan.selection.after = Some(picked.place);
        }
    }

    /// The next rows that may be deleted: a batch of their ids, their number, and the last one's
    /// place; `None` if there are none. Locks nothing.
    async fn pick(&self, plan: &Plan, limit: usize) -> Result<Option<Picked>> {
        let mut selection = plan.selection.clone();
        selection.conditions.push(self.columns().status(Test::NotEqual, OutboxStatus::Sending)?);
        selection.limit = Some(limit);
        let (statement, values) = selection.ids_and_places(&self.template())?;
        let kinds = [self.columns().id_kind()].into_iter().chain(plan.kinds()).collect();
        let found = self.fetch(&statement, values, kinds).await?;
        let Some((_, place)) = found.last().and_then(|last| last.split_first()) else { return Ok(None) };
        let (place, count) = (place.to_vec(), found.len());
        let ids = self.batch(found.into_iter().filter_map(|row| row.into_iter().next()));
        Ok(Some(Picked { ids, count, place }))
    }

    /// Ids, as they are stored, as a batch.
    fn batch(&self, ids: impl Iterator<Item = Value>) -> Value {
        let batches = self.shared.statements.batches;
        serde_json::Value::from(ids.map(|id| batches.row(&IDS_BATCH[..1], &[id])).collect::<Vec<_>>())
            .to_string()
            .into()
    }

    /// Deletes those rows of a batch that still meet the conditions and are not SENDING.
    async fn delete_picked(&self, plan: &Plan, batch: Value, spared: Spared) -> Result<Deleted> {
        let lock = plan.selection.lock(&self.template(), batch.clone())?;
        let sending = match spared {
            Spared::Counted => Some(plan.selection.sending(&self.template(), batch)?),
            Spared::Uncounted => None,
        };
        let work =
            Arc::new(Work { shared: Arc::clone(&self.shared), id_kind: self.columns().id_kind(), lock, sending });
        write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.run(connection).await })
        })
        .await
    }
}

/// Rows that were picked to be deleted.
struct Picked {
    ids: Value,
    count: usize,
    /// The place of the last of them in the order of picking.
    place: Vec<Value>,
}

/// Whether the SENDING rows of a batch are counted with it.
#[derive(Clone, Copy)]
enum Spared {
    Counted,
    Uncounted,
}

/// One batch.
struct Work {
    shared: Arc<Shared>,
    id_kind: Kind,
    lock: Bound,
    sending: Option<Bound>,
}

impl Work {
    async fn run(&self, connection: &mut dyn Connection) -> Result<Deleted> {
        let Self { shared, id_kind, lock: (lock, values), sending } = self;
        let locked = lock.fetch(connection, values, &[*id_kind]).await?;
        let mut done = Deleted::default();
        if !locked.is_empty() {
            let batches = shared.statements.batches;
            let rows: Vec<_> = locked.iter().map(|id| batches.row(&IDS_BATCH[..1], id)).collect();
            let batch = [Value::from(serde_json::Value::from(rows).to_string())];
            shared.statements.delete_histories.execute(connection, &batch).await?;
            done.deleted = shared.statements.delete_rows.execute(connection, &batch).await?;
        }
        if let Some((sending, values)) = sending {
            let count = sending.fetch(connection, values, &[Kind::Int]).await?;
            let count = count.into_iter().flatten().next().map_or(Ok(0), i64::try_from)?;
            done.sending = u64::try_from(count).unwrap_or(0);
        }
        Ok(done)
    }
}
