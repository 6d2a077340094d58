//! Writing rows in the caller's transaction, each only if its dedupe key is free.
//!
//! Source: contract C2.1 to C2.4.

use std::collections::{HashMap, HashSet};

use super::{Connection, Dialect, Rows, codec};
use crate::error::{Error, ErrorKind, Result};
use crate::model::text::refuse_nul;
use crate::model::{Kind, OutboxEntity, OutboxId, OutboxRow, TenantId, Value};

/// Most rows of one statement.
const CHUNK_ROWS: usize = 500;
/// Most values that every database takes in one statement.
const CHUNK_VALUES: usize = 32_766;
/// Most bytes of content in one statement.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// A key's holder can vanish between the insert and the look: tried so often in all.
const TRIES: usize = 3;

/// What became of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// Written; it exists once the caller's transaction commits.
    Created(OutboxId),
    /// A row with this dedupe key exists in the tenant: nothing was written.
    Duplicate {
        /// The existing row.
        existing: OutboxId,
    },
}

impl<E: OutboxEntity, S> Rows<E, S> {
    /// Writes the rows on the caller's connection; one answer per row, in order.
    ///
    /// One round trip per chunk of at most 500 rows and 4 MB; only duplicates cost further ones.
    /// A transaction that writes one of the keys at this moment is waited for. Nothing else is
    /// sent: no notification, no trigger.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if a row belongs to a tenant outside of this scope, or its dedupe key is
    /// empty or longer than [`OutboxRow::MAX_DEDUPE_KEY_BYTES`]: nothing was sent;
    /// [`ErrorKind::TransactionGone`] if the database undid the caller's transaction;
    /// [`ErrorKind::Transient`] for a deferred SQLite transaction that could not get the write
    /// lock: begin with BEGIN IMMEDIATE.
    ///
    /// # Cancel safety
    /// Not safe: roll the transaction back.
    pub async fn insert(&self, connection: &mut dyn Connection, entities: &[E]) -> Result<Vec<Inserted>> {
        self.check_written(connection, entities)?;
        let mut answers = Vec::with_capacity(entities.len());
        let mut rest = entities;
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(chunk_length(rest, self.shared.kinds.len()));
            answers.extend(self.insert_chunk(connection, chunk).await?);
            rest = later;
        }
        Ok(answers)
    }

    pub(super) fn check_written(&self, connection: &mut dyn Connection, entities: &[E]) -> Result<()> {
        let ours = self.shared.database.dialect();
        if connection.dialect() != ours {
            return Err(Error::invalid(format!(
                "the transaction is of {}, the outbox table is in {}",
                connection.dialect().name(),
                ours.name()
            )));
        }
        let foreign = |entity: &&E| self.tenant.as_ref().is_some_and(|tenant| entity.tenant() != tenant);
        if let Some(entity) = entities.iter().find(foreign) {
            return Err(Error::invalid(format!("the row {} belongs to another tenant", entity.row().id)));
        }
        entities.iter().try_for_each(|entity| check_key(entity.row()))
    }

    async fn insert_chunk(&self, connection: &mut dyn Connection, chunk: &[E]) -> Result<Vec<Inserted>> {
        let mut answers: Vec<Option<Inserted>> = vec![None; chunk.len()];
        let mut refusal = None;
        for _ in 0..TRIES {
            let open: Vec<usize> = (0..chunk.len()).filter(|index| answers[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            refusal = self.insert_open(connection, chunk, &open, &mut answers).await?;
            let missing: Vec<usize> = open.into_iter().filter(|index| answers[*index].is_none()).collect();
            if !missing.is_empty() {
                self.look_up(connection, chunk, &missing, &mut answers).await?;
            }
        }
        answers.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| {
            let vanished = "a row with the same dedupe key came and went while this one was written";
            refusal.unwrap_or_else(|| Error::new(ErrorKind::Transient, vanished))
        })
    }

    /// Writes those of the open rows whose key is free, and answers for them. The refusal is that of
    /// a database that refuses all rows for the sake of one.
    async fn insert_open(
        &self,
        connection: &mut dyn Connection,
        chunk: &[E],
        open: &[usize],
        answers: &mut [Option<Inserted>],
    ) -> Result<Option<Error>> {
        let all_or_none = connection.dialect() == Dialect::Mysql;
        let rows = if all_or_none { first_of_each_key(chunk, open) } else { open.to_vec() };
        let mut values = Vec::with_capacity(rows.len() * self.shared.kinds.len());
        for index in &rows {
            let encoded = codec::encode(&chunk[*index], &self.shared.table)?;
            for value in &encoded {
                // Refused on every database alike, though only PostgreSQL could not store it.
                if let Value::Text(Some(text)) = value {
                    refuse_nul("row", text)?;
                }
            }
            values.extend(encoded);
        }
        let insert = self.shared.statements.insert(rows.len());
        let created: HashSet<uuid::Uuid> = if all_or_none {
            match insert.execute(connection, &values).await {
                Ok(_) => rows.iter().map(|index| chunk[*index].row().id.as_uuid()).collect(),
                Err(error) if error.kind() == ErrorKind::Duplicate => return Ok(Some(error)),
                Err(error) => return Err(error),
            }
        } else {
            let created = insert.fetch(connection, &values, &[Kind::Uuid]).await?;
            created.into_iter().flatten().map(TryInto::try_into).collect::<Result<_>>()?
        };
        for index in rows {
            let id = chunk[index].row().id;
            if created.contains(&id.as_uuid()) {
                answers[index] = Some(Inserted::Created(id));
            }
        }
        Ok(None)
    }

    /// A second statement, which sees what the insert ran into.
    async fn look_up(
        &self,
        connection: &mut dyn Connection,
        chunk: &[E],
        missing: &[usize],
        answers: &mut [Option<Inserted>],
    ) -> Result<()> {
        let mut by_tenant: HashMap<&TenantId, Vec<usize>> = HashMap::new();
        for index in missing {
            by_tenant.entry(chunk[*index].tenant()).or_default().push(*index);
        }
        for (tenant, indexes) in by_tenant {
            let keys: Vec<_> = indexes.iter().map(|index| chunk[*index].row().dedupe_key.as_str()).collect();
            let values: [Value; 2] = [codec::json_text(&keys)?.into(), tenant.as_str().into()];
            let found =
                self.shared.statements.existing_keys.fetch(connection, &values, &[Kind::Uuid, Kind::Text]).await?;
            let mut holders = HashMap::with_capacity(found.len());
            for row in found {
                let [id, key]: [Value; 2] =
                    row.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a dedupe look-up has other columns"))?;
                holders.insert(String::try_from(key)?, OutboxId::from(uuid::Uuid::try_from(id)?));
            }
            for index in indexes {
                if let Some(existing) = holders.get(&chunk[index].row().dedupe_key) {
                    answers[index] = Some(Inserted::Duplicate { existing: *existing });
                }
            }
        }
        Ok(())
    }
}

/// One limit on every database, in bytes: none of them may cut a key, or complain of an index.
fn check_key(row: &OutboxRow) -> Result<()> {
    match row.dedupe_key.len() {
        1..=OutboxRow::MAX_DEDUPE_KEY_BYTES => Ok(()),
        0 => Err(Error::invalid(format!("the dedupe key of the row {} is empty", row.id))),
        bytes => Err(Error::invalid(format!(
            "the dedupe key of the row {} is {bytes} bytes long; at most {} are allowed",
            row.id,
            OutboxRow::MAX_DEDUPE_KEY_BYTES
        ))),
    }
}

/// Of rows with the same key the first alone: two would refuse each other.
fn first_of_each_key<E: OutboxEntity>(chunk: &[E], open: &[usize]) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(open.len());
    let key = |index: usize| (chunk[index].tenant(), chunk[index].row().dedupe_key.as_str());
    open.iter().copied().filter(|index| seen.insert(key(*index))).collect()
}

/// How many of the rows fit into one statement; at least one.
fn chunk_length<E: OutboxEntity>(entities: &[E], columns: usize) -> usize {
    let most = CHUNK_ROWS.min(CHUNK_VALUES / columns).max(1);
    let mut bytes = 0;
    for (index, entity) in entities.iter().take(most).enumerate() {
        bytes += content_bytes(entity.row()) + entity.own_values().iter().map(Value::size).sum::<usize>();
        if bytes > CHUNK_BYTES && index > 0 {
            return index;
        }
    }
    entities.len().min(most)
}

fn content_bytes(row: &OutboxRow) -> usize {
    let texts = [Some(&row.recipient_address), row.subject.as_ref(), row.body.as_ref()];
    let documents = [row.payload.as_ref(), row.metadata.as_ref()];
    texts.into_iter().flatten().map(String::len).sum::<usize>()
        + row.cc_addresses.iter().map(String::len).sum::<usize>()
        + documents.into_iter().flatten().map(|document| document.to_string().len()).sum::<usize>()
}
