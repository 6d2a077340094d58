//! Saving: a new row is inserted, an existing one gets its content, and nothing else of it changes.
//!
//! What the state machine owns is in no statement of this file: a stale object that is saved over
//! a claimed row cannot walk round the fence. Source: contract C7, C7.1.

use std::collections::HashSet;

use super::statements::IDS_BATCH;
use super::{Connection, Inserted, Rows, codec};
use crate::error::Result;
use crate::model::column::{self, Owner};
use crate::model::text::refuse_nul;
use crate::model::{Kind, OutboxEntity, OutboxId, Value};

/// Rows that are looked up and inserted together.
const CHUNK: usize = 500;

/// What became of a saved row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Saved {
    /// There was no such row: it was inserted.
    Created(OutboxId),
    /// The row was there: its content and the application's own columns are written.
    Updated(OutboxId),
    /// There was no such row, but one with its dedupe key in the tenant: nothing was written.
    Duplicate {
        /// The existing row.
        existing: OutboxId,
    },
}

impl From<Inserted> for Saved {
    fn from(inserted: Inserted) -> Self {
        match inserted {
            Inserted::Created(id) => Self::Created(id),
            Inserted::Duplicate { existing } => Self::Duplicate { existing },
        }
    }
}

impl<E: OutboxEntity, S> Rows<E, S> {
    /// Saves a row on the caller's connection: inserts it, or, where its id exists, writes its
    /// content, the application's own columns, and `updated_at`.
    ///
    /// Never written over an existing row are what identifies it (channel, dedupe key,
    /// `max_attempts`, `created_at`, tenant) and what the state machine owns (status, attempts, times,
    /// claims, errors): transitions alone change those. Source: contract C7.1.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the row belongs to a tenant outside of
    /// this scope; [`ErrorKind::Duplicate`](crate::ErrorKind::Duplicate) if its id, or what else of
    /// it is unique in the table, is taken by a row that this save may not change (another
    /// tenant's, of which nothing is told). As [`Self::insert`].
    ///
    /// # Cancel safety
    /// Not safe, and after an error neither: roll the transaction back.
    pub async fn save(&self, connection: &mut dyn Connection, entity: &E) -> Result<Saved> {
        self.check_written(connection, std::slice::from_ref(entity))?;
        self.save_one(connection, entity).await
    }

    /// Saves rows on the caller's connection; one answer per row, in order.
    ///
    /// New rows cost one round trip per 500; each existing one costs one. A row that is there twice
    /// is inserted and then written over.
    ///
    /// # Errors
    /// As [`Self::save`].
    ///
    /// # Cancel safety
    /// As [`Self::save`].
    pub async fn save_all(&self, connection: &mut dyn Connection, entities: &[E]) -> Result<Vec<Saved>> {
        self.check_written(connection, entities)?;
        let mut answers = Vec::with_capacity(entities.len());
        for chunk in entities.chunks(CHUNK) {
            let mut seen = self.existing(connection, chunk).await?;
            let is_new: Vec<bool> = chunk.iter().map(|entity| seen.insert(entity.row().id)).collect();
            let new: Vec<E> =
                chunk.iter().zip(&is_new).filter(|(_, new)| **new).map(|(entity, _)| entity.clone()).collect();
            let mut inserted = self.insert(connection, &new).await?.into_iter();
            for (entity, new) in chunk.iter().zip(is_new) {
                let answer = if new { inserted.next().map(Saved::from) } else { None };
                answers.push(match answer {
                    Some(answer) => answer,
                    None => self.save_one(connection, entity).await?,
                });
            }
        }
        Ok(answers)
    }

    async fn save_one(&self, connection: &mut dyn Connection, entity: &E) -> Result<Saved> {
        let values = self.content(entity)?;
        // The one that was deleted a moment ago is new again.
        if self.shared.statements.save.execute(connection, &values).await? > 0 {
            return Ok(Saved::Updated(entity.row().id));
        }
        let inserted = self.insert(connection, std::slice::from_ref(entity)).await?;
        Ok(inserted.into_iter().next().map_or(Saved::Created(entity.row().id), Saved::from))
    }

    /// Which of the rows exist in this scope.
    async fn existing(&self, connection: &mut dyn Connection, chunk: &[E]) -> Result<HashSet<OutboxId>> {
        let batches = self.shared.statements.batches;
        let row = |entity: &E| batches.row(&IDS_BATCH[..1], &[entity.row().id.as_uuid().into()]);
        let ids: Value = serde_json::Value::from(chunk.iter().map(row).collect::<Vec<_>>()).to_string().into();
        let found =
            self.shared.statements.known_ids.fetch(connection, &[ids, self.tenant_value()], &[Kind::Uuid]).await?;
        found.into_iter().flatten().map(|id| Ok(uuid::Uuid::try_from(id)?.into())).collect()
    }

    /// What is written of an existing row, in the order of the statement.
    fn content(&self, entity: &E) -> Result<Vec<Value>> {
        let mut ours = codec::encode(entity, &self.shared.table)?;
        for value in &ours {
            if let Value::Text(Some(text)) = value {
                refuse_nul("row", text)?;
            }
        }
        let own = ours.split_off(column::ALL.len());
        let (tenant, own) = own.split_at(usize::from(self.shared.by_tenant));
        let content = column::ALL.iter().zip(ours).filter(|(column, _)| column.owner == Owner::Content);
        let mut values: Vec<Value> = content.map(|(_, value)| value).collect();
        values.push(self.shared.clock.now().into());
        values.extend_from_slice(own);
        values.push(self.id_value(entity.row().id));
        values.extend_from_slice(tenant);
        Ok(values)
    }
}
