//! A statement as one database gets it, and a change that tells which rows it changed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::{Batches, IDS_BATCH};
use crate::error::Result;
use crate::model::{Kind, RESERVED_PREFIX, Value};
use crate::store::database::Extent;
use crate::store::{Connection, Fetched};

/// The number of the value that [`Change`] itself makes: the rows that it picked and locked.
pub(super) const PICKED: usize = 0;

/// One text for one database, and which value goes to which place of it.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(super) text: Arc<str>,
    /// Which value stands at each place, where the database counts places and not values.
    pub(super) places: Option<Arc<[usize]>>,
}

impl Statement {
    /// Runs it; the number of rows that it matched.
    ///
    /// # Errors
    /// What the database says.
    pub(crate) async fn execute(&self, connection: &mut dyn Connection, values: &[Value]) -> Result<u64> {
        connection.execute(&self.text, &self.arranged(None, values)).await
    }

    /// Runs it; the rows that it returns.
    ///
    /// # Errors
    /// What the database says.
    pub(crate) async fn fetch(
        &self,
        connection: &mut dyn Connection,
        values: &[Value],
        kinds: &[Kind],
    ) -> Result<Vec<Fetched>> {
        connection.fetch(&self.text, &self.arranged(None, values), kinds).await
    }

    fn arranged<'v>(&self, picked: Option<&Value>, values: &'v [Value]) -> Cow<'v, [Value]> {
        let Some(places) = &self.places else { return Cow::Borrowed(values) };
        let value = |n: &usize| match n.checked_sub(1) {
            Some(index) => values.get(index).cloned(),
            None => picked.cloned(),
        };
        // A value that is missing would be a fault of the text's; its null matches nothing.
        Cow::Owned(places.iter().map(|n| value(n).unwrap_or(Value::Text(None))).collect())
    }
}

/// A conditional UPDATE that tells which rows it changed.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// One statement with RETURNING.
    Returning(Statement),
    /// Where the database has no RETURNING for it: in one transaction the rows are locked, changed
    /// and read. What is read is what was written: nobody else can get in between.
    Steps {
        /// Locks the rows and tells their ids, as texts.
        pick: Statement,
        /// Changes them.
        update: Statement,
        /// Reads them.
        read: Statement,
        /// Makes a batch of the ids.
        batches: Batches,
        /// Whether the batch `?1` is narrowed to the locked rows before they are changed: the change
        /// would wait for those that were passed over.
        narrows: bool,
    },
}

impl Change {
    /// What it needs around it.
    pub(crate) fn extent(&self) -> Extent {
        match self {
            Self::Returning(_) => Extent::Statement,
            Self::Steps { .. } => Extent::Transaction,
        }
    }

    /// Runs it; the changed rows, in no order.
    ///
    /// # Errors
    /// What the database says.
    pub(crate) async fn fetch(
        &self,
        connection: &mut dyn Connection,
        values: &[Value],
        kinds: &[Kind],
    ) -> Result<Vec<Fetched>> {
        let (pick, update, read, batches, narrows) = match self {
            Self::Returning(statement) => return statement.fetch(connection, values, kinds).await,
            Self::Steps { pick, update, read, batches, narrows } => (pick, update, read, batches, *narrows),
        };
        let picked = pick.fetch(connection, values, &[Kind::Text]).await?;
        if picked.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<_> = picked.iter().map(|id| batches.row(&IDS_BATCH[..1], id)).collect();
        let narrowed = if narrows { narrowed(values, &rows) } else { None };
        let picked: Value = serde_json::Value::from(rows).to_string().into();
        let written = narrowed.as_deref().unwrap_or(values);
        connection.execute(&update.text, &update.arranged(Some(&picked), written)).await?;
        connection.fetch(&read.text, &read.arranged(Some(&picked), values), kinds).await
    }
}

/// The values, with only those rows of the first one, a batch, that were picked; `None` if all were.
fn narrowed(values: &[Value], picked: &[serde_json::Value]) -> Option<Vec<Value>> {
    let (Value::Text(Some(batch)), others) = values.split_first()? else { return None };
    let rows: Vec<serde_json::Value> = serde_json::from_str(batch).ok()?;
    if rows.len() == picked.len() {
        return None;
    }
    let id = format!("{RESERVED_PREFIX}{}", IDS_BATCH[0].0);
    // The database may tell an id in the other case.
    let id_of = |row: &serde_json::Value| row.get(&id).and_then(|id| id.as_str()).map(str::to_ascii_lowercase);
    let picked: HashSet<_> = picked.iter().map(id_of).collect();
    let rows: Vec<_> = rows.into_iter().filter(|row| picked.contains(&id_of(row))).collect();
    let narrowed = Value::from(serde_json::Value::from(rows).to_string());
    Some([narrowed].into_iter().chain(others.iter().cloned()).collect())
}

#[cfg(test)]
impl Change {
    /// The texts that it consists of.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Returning(statement) => statement.text.to_string(),
            Self::Steps { pick, update, read, .. } => [&pick.text, &update.text, &read.text].map(|t| &**t).join(";\n"),
        }
    }
}
