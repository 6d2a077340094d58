//! Reading rows for people and programs.

use std::sync::Arc;

use super::database::read;
use super::history::{self, HistoryLine};
use super::statements::Statement;
use super::{Fetched, Root, Rows, Tenant, codec};
use crate::error::{Error, ErrorKind, Result};
use crate::model::text::refuse_nul;
use crate::model::{ByTenant, Kind, OutboxEntity, OutboxId, OutboxStatus, TenantId, Timestamp, Value};

/// Which rows a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only rows in this status.
    pub status: Option<OutboxStatus>,
    /// Only rows of this channel.
    pub channel: Option<String>,
    /// Only rows older than this one: the last of the page before.
    pub before: Option<OutboxId>,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<E> {
    /// The rows that can be read, in order.
    pub rows: Vec<E>,
    /// The rows of this page that cannot be read, and why (the nil id, where not even that can).
    pub unreadable: Vec<(OutboxId, Error)>,
    /// The last row of the page, readable or not: [`Filter::before`] of the next one.
    pub last: Option<OutboxId>,
}

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

    /// A page of rows, newest first, at most `limit`, with those of them that cannot be read.
    ///
    /// On PostgreSQL newest means the highest id: rows whose writer made random ids stand anywhere.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn list(&self, filter: &Filter, limit: usize) -> Result<Page<E>> {
        let before = filter.before.unwrap_or_else(|| uuid::Uuid::max().into());
        let values = vec![
            self.id_value(before),
            filter.status.map(|status| status.as_str().to_owned()).into(),
            self.tenant_value(),
            filter.channel.clone().into(),
            i64::try_from(limit).unwrap_or(i64::MAX).into(),
        ];
        let found = self.fetch(&self.shared.statements.list, values, self.shared.kinds.clone()).await?;
        let mut page = Page { last: None, rows: Vec::with_capacity(found.len()), unreadable: Vec::new() };
        for values in found {
            let id = codec::identity(&values).map_or_else(|_| uuid::Uuid::nil().into(), |(id, _)| id);
            page.last = Some(id);
            match codec::decode(values, self.shared.by_tenant) {
                Ok(row) => page.rows.push(row),
                Err(error) => page.unreadable.push((id, error)),
            }
        }
        Ok(page)
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

    async fn by_key(&self, key: &str, tenant: Value) -> Result<Vec<E>> {
        refuse_nul("dedupe key", key)?;
        let values = vec![key.into(), tenant];
        let found = self.fetch(&self.shared.statements.by_key, values, self.shared.kinds.clone()).await?;
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
        let own = if self.shared.by_tenant { TenantId::ROOT.as_str().into() } else { Value::null(Kind::Text) };
        Ok(self.by_key(key, own).await?.pop())
    }

    /// The rows that hold this dedupe key, in all tenants.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find_all_by_dedupe_key(&self, key: &str) -> Result<Vec<E>> {
        self.by_key(key, Value::null(Kind::Text)).await
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
        Ok(self.by_key(key, self.tenant_value()).await?.pop())
    }
}
