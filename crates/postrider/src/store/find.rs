//! Reading rows for people and programs.

use std::collections::HashMap;
use std::sync::Arc;

use super::database::read;
use super::history::{self, HistoryLine};
use super::statements::{Selection, Statement};
use super::{Fetched, Query, Root, Rows, Tenant, codec};
use crate::error::{Error, ErrorKind, Result};
use crate::model::text::refuse_nul;
use crate::model::{ByTenant, Kind, OutboxEntity, OutboxId, OutboxStatus, TenantId, Timestamp, Value, column};

/// Most ids of one statement.
const IDS_CHUNK: usize = 500;

/// How many rows of a status wait, and how many of them are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct DueCount {
    /// PENDING, FAILED or SENDING.
    pub status: OutboxStatus,
    /// All of them.
    pub rows: i64,
    /// Those whose `next_attempt_at` has passed.
    pub due: i64,
}

impl<E: OutboxEntity, S> Rows<E, S> {
    /// The row with that id, if this scope sees it.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] if it cannot be read.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_by_id(&self, id: OutboxId) -> Result<Option<E>> {
        let values = vec![self.id_value(id), self.tenant_value()];
        let found = self.fetch(&self.shared.statements.by_id, values, self.shared.kinds.clone()).await?;
        found.into_iter().next().map(|row| codec::decode(row, self.shared.by_tenant)).transpose()
    }

    /// Whether this scope sees a row with that id.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn exists_by_id(&self, id: OutboxId) -> Result<bool> {
        let values = vec![self.id_value(id), self.tenant_value()];
        Ok(!self.fetch(&self.shared.statements.status_of, values, vec![Kind::Text]).await?.is_empty())
    }

    /// The rows with those ids that this scope sees, in the order of the ids, each once.
    ///
    /// Any number of ids; one round trip for each 500.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] if one of them cannot be read.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_all_by_id(&self, ids: &[OutboxId]) -> Result<Vec<E>> {
        let mut found = HashMap::with_capacity(ids.len());
        for chunk in ids.chunks(IDS_CHUNK) {
            let values = vec![self.ids_batch(chunk), self.tenant_value()];
            for row in self.fetch(&self.shared.statements.by_ids, values, self.shared.kinds.clone()).await? {
                let entity = codec::decode::<E>(row, self.shared.by_tenant)?;
                found.insert(entity.row().id, entity);
            }
        }
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    /// The rows that the query selects, in its order; all of them are held in memory, so use
    /// [`Self::page`] or [`Self::stream`] for many.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the query does not fit the entity; [`ErrorKind::Decode`] if one
    /// of the rows cannot be read ([`Self::page`] tells which, and shows the others).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_by(&self, query: &Query) -> Result<Vec<E>> {
        self.found(&self.plan(query)?.selection).await
    }

    /// The only row that the query selects, or none. With [`Query::limit`]`(1)` it is the first.
    ///
    /// # Errors
    /// [`ErrorKind::Ambiguous`] if there are more; as [`Self::find_by`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_one(&self, query: &Query) -> Result<Option<E>> {
        let mut selection = self.plan(query)?.selection;
        selection.limit = Some(selection.limit.map_or(2, |limit| limit.min(2)));
        let mut found = self.found(&selection).await?;
        let row = found.pop();
        if !found.is_empty() {
            return Err(Error::new(
                ErrorKind::Ambiguous,
                "the query selects more than one row, one at most was asked for",
            ));
        }
        Ok(row)
    }

    /// How many rows this scope sees.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn count(&self) -> Result<u64> {
        self.count_by(&Query::new()).await
    }

    /// How many rows meet the query's conditions; its order, limit and cursor do not count, so that
    /// it gives a page's total.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the query does not fit the entity.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn count_by(&self, query: &Query) -> Result<u64> {
        self.count_of(&self.plan(query)?.selection).await
    }

    /// Whether a row meets the query's conditions; its order, limit and cursor do not count.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the query does not fit the entity.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn exists_by(&self, query: &Query) -> Result<bool> {
        let (statement, values) = self.plan(query)?.selection.exists(&self.template())?;
        Ok(!self.fetch(&statement, values, vec![self.columns().id_kind()]).await?.is_empty())
    }

    /// These columns alone of the rows that the query selects, in its order: a value for each
    /// column, in the order of the names. Nothing else is read.
    ///
    /// Columns go by the names that [`Query`] takes. JSON columns come as the text that is stored.
    /// A value that cannot be read is [`Value::Unreadable`], and hides no other.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the query or a name does not fit the entity, or there is no name.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn select(&self, query: &Query, columns: &[&str]) -> Result<Vec<Vec<Value>>> {
        if columns.is_empty() {
            return Err(Error::invalid("a projection names no column"));
        }
        let known = self.columns();
        let named = columns.iter().map(|name| known.named(name)).collect::<Result<Vec<_>>>()?;
        let kinds = columns.iter().zip(&named).map(|(name, column)| match *name {
            // Read from text too, where ids are stored so.
            name if name == column::ID.name => Kind::Uuid,
            _ => column.kind,
        });
        let (statement, values) = self.plan(query)?.selection.columns(&self.template(), &named)?;
        self.fetch(&statement, values, kinds.collect()).await
    }

    /// What happened to a row beside a plain success, oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if this scope sees no such row.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn history(&self, id: OutboxId) -> Result<Vec<HistoryLine>> {
        self.status_of(id).await?;
        let found = self.fetch(&self.shared.statements.attempts_of, vec![self.id_value(id)], history::kinds()).await?;
        found.into_iter().map(HistoryLine::read).collect()
    }

    pub(super) async fn status_of(&self, id: OutboxId) -> Result<OutboxStatus> {
        let values = vec![self.id_value(id), self.tenant_value()];
        let found = self.fetch(&self.shared.statements.status_of, values, vec![Kind::Text]).await?;
        let status = found.into_iter().flatten().next();
        let status = status.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no row {id}")))?;
        String::try_from(status)?.parse()
    }

    pub(super) async fn fetch_readable(&self, statement: &Statement, values: Vec<Value>) -> Result<Vec<E>> {
        let found = self.fetch(statement, values, self.shared.kinds.clone()).await?;
        Ok(found.into_iter().filter_map(|row| codec::decode(row, self.shared.by_tenant).ok()).collect())
    }

    pub(super) async fn fetch(
        &self,
        statement: &Statement,
        values: Vec<Value>,
        kinds: Vec<Kind>,
    ) -> Result<Vec<Fetched>> {
        let query = Arc::new((statement.clone(), values, kinds));
        read(&self.shared.database, &self.shared.clock, move |connection| {
            let query = Arc::clone(&query);
            Box::pin(async move { query.0.fetch(connection, &query.1, &query.2).await })
        })
        .await
    }

    pub(super) async fn count_of(&self, selection: &Selection) -> Result<u64> {
        let (statement, values) = selection.count(&self.template())?;
        let found = self.fetch(&statement, values, vec![Kind::Int]).await?;
        let count = found.into_iter().flatten().next().map_or(Ok(0), i64::try_from)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn found(&self, selection: &Selection) -> Result<Vec<E>> {
        let (statement, values) = selection.rows(&self.template())?;
        let found = self.fetch(&statement, values, self.shared.kinds.clone()).await?;
        found.into_iter().map(|row| codec::decode(row, self.shared.by_tenant)).collect()
    }

    /// The row of this tenant that holds the key; the tenant does not count where there are none.
    async fn by_key(&self, key: &str, tenant: &TenantId) -> Result<Option<E>> {
        let mut values = vec![key.into()];
        values.extend(self.shared.by_tenant.then(|| tenant.as_str().into()));
        Ok(self.holders(&self.shared.statements.by_key, key, values).await?.pop())
    }

    async fn holders(&self, statement: &Statement, key: &str, values: Vec<Value>) -> Result<Vec<E>> {
        refuse_nul("dedupe key", key)?;
        let found = self.fetch(statement, values, self.shared.kinds.clone()).await?;
        found.into_iter().map(|row| codec::decode(row, self.shared.by_tenant)).collect()
    }
}

impl<E: OutboxEntity> Rows<E, Root> {
    /// The row that holds this dedupe key among root's own rows (all rows, for an ownership entity).
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_by_dedupe_key(&self, key: &str) -> Result<Option<E>> {
        self.by_key(key, &TenantId::ROOT).await
    }

    /// The rows that hold this dedupe key, in all tenants, by id.
    ///
    /// The unique index begins with the tenant, so this looks at every entry of it: it is for
    /// people and their searches, not for each notification.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_all_by_dedupe_key(&self, key: &str) -> Result<Vec<E>> {
        self.holders(&self.shared.statements.any_by_key, key, vec![key.into()]).await
    }

    /// How many rows wait, per status. It looks at every row that is not final.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn count_waiting(&self, now: Timestamp) -> Result<Vec<DueCount>> {
        let kinds = vec![Kind::Text, Kind::Int, Kind::Int];
        let found = self.fetch(&self.shared.statements.counts, vec![now.into()], kinds).await?;
        found
            .into_iter()
            .map(|row| {
                let [status, rows, due]: [Value; 3] =
                    row.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a count has other columns"))?;
                Ok(DueCount {
                    status: String::try_from(status)?.parse()?,
                    rows: rows.try_into()?,
                    due: due.try_into()?,
                })
            })
            .collect()
    }
}

impl<E: OutboxEntity<Tenancy = ByTenant>> Rows<E, Tenant> {
    /// The tenant's row that holds this dedupe key.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_by_dedupe_key(&self, key: &str) -> Result<Option<E>> {
        // A scope of a tenant's always has one: null would be no tenant's rows, not all.
        let Some(tenant) = &self.tenant else { return Ok(None) };
        self.by_key(key, tenant).await
    }
}
