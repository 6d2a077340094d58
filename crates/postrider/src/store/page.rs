//! Pages of rows, each from the place where the one before ended.
//!
//! A place is made of values, not of a number of rows to pass over: rows that come and go
//! meanwhile make no page repeat a row, or skip one that was there throughout.

use super::query::{Cursor, Plan, Query};
use super::statements::{Condition, Test};
use super::{Fetched, Rows, codec};
use crate::error::{Error, Result};
use crate::model::{Kind, OutboxEntity, OutboxId, Value, column};

/// Rows of a page whose query sets no limit.
const DEFAULT_ROWS: usize = 100;

/// Some rows of a query's, and where the next ones begin.
#[derive(Debug)]
#[non_exhaustive]
pub struct Page<E> {
    /// The rows that can be read, in order.
    pub rows: Vec<E>,
    /// The rows of this page that cannot be read, and why (the nil id, where not even that can).
    pub unreadable: Vec<(OutboxId, Error)>,
    /// Where the next page begins ([`Query::after`]); `None` if there was no further row.
    pub next: Option<Cursor>,
}

/// The rows of a query as they were read, readable or not, and the place of the last.
pub(super) struct Stretch<E> {
    /// Each row, or its id and why it cannot be read.
    pub(super) rows: Vec<Result<E, (OutboxId, Error)>>,
    /// The last row's id and place, if there are rows.
    pub(super) last: Option<(Option<OutboxId>, Vec<Value>)>,
    /// Whether there was a further row.
    pub(super) more: bool,
    /// About how many bytes the rows hold.
    pub(super) bytes: usize,
}

impl<E: OutboxEntity, S> Rows<E, S> {
    /// The query's rows, at most its limit (100 without one), and where the next page begins.
    ///
    /// The total is asked for apart, with [`Self::count_by`], since it looks at every row.
    ///
    /// ```no_run
    /// # use postrider::model::OutboxEntity;
    /// # use postrider::store::{Query, Root, Rows};
    /// # async fn all<E: OutboxEntity>(rows: &Rows<E, Root>) -> postrider::Result<()> {
    /// let mut query = Query::new().eq("channel", "email").limit(50);
    /// loop {
    ///     let page = rows.page(&query).await?;
    ///     for row in &page.rows { /* … */ }
    ///     let Some(next) = page.next else { break };
    ///     query = query.after(next);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the query does not fit the entity, or
    /// its cursor is of another order; [`ErrorKind::Decode`](crate::ErrorKind::Decode) if the last
    /// row cannot be sorted by, so that nothing can go on from it.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn page(&self, query: &Query) -> Result<Page<E>> {
        let plan = self.plan(query)?;
        let stretch = self.stretch(&plan, plan.selection.limit.unwrap_or(DEFAULT_ROWS)).await?;
        let next = match stretch.last {
            Some((row, place)) if stretch.more => Some(plan.cursor(&place, row)?),
            _ => None,
        };
        let mut page = Page { rows: Vec::with_capacity(stretch.rows.len()), unreadable: Vec::new(), next };
        for row in stretch.rows {
            match row {
                Ok(row) => page.rows.push(row),
                Err(unreadable) => page.unreadable.push(unreadable),
            }
        }
        Ok(page)
    }

    /// The place of a row in the query's order, whether or not it meets the conditions; `None` if
    /// this scope sees no such row. With [`Query::after`], what stands behind it is shown.
    ///
    /// # Errors
    /// As [`Self::page`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn cursor_at(&self, query: &Query, id: OutboxId) -> Result<Option<Cursor>> {
        let mut plan = self.plan(query)?;
        let columns = self.columns();
        let scope = self.tenant.as_ref().map(|tenant| columns.scope(tenant)).transpose()?;
        let this =
            Condition { column: columns.named(column::ID.name)?, test: Test::Equal, values: vec![self.id_value(id)] };
        plan.selection.conditions = scope.into_iter().chain([this]).collect();
        plan.selection.after = None;
        let (statement, values) = plan.selection.places(&self.template())?;
        let place = self.fetch(&statement, values, plan.kinds()).await?.pop();
        place.map(|place| plan.cursor(&place, Some(id))).transpose()
    }

    /// At most `limit` rows from the plan's place on.
    pub(super) async fn stretch(&self, plan: &Plan, limit: usize) -> Result<Stretch<E>> {
        let mut selection = plan.selection.clone();
        // One more tells whether there is a next page.
        selection.limit = Some(limit.saturating_add(1));
        let (statement, values) = selection.rows(&self.template())?;
        let kinds: Vec<Kind> = self.shared.kinds.iter().copied().chain(plan.kinds()).collect();
        let mut found = self.fetch(&statement, values, kinds).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let bytes = found.iter().flatten().map(Value::size).sum();
        let mut last = None;
        let mut rows = Vec::with_capacity(found.len());
        for values in found {
            let (id, place, row) = self.taken_apart(values);
            last = Some((id, place));
            rows.push(row.map_err(|error| (id.unwrap_or_else(|| uuid::Uuid::nil().into()), error)));
        }
        Ok(Stretch { rows, last, more, bytes })
    }

    /// A fetched row's id, its place in the order, and the row itself.
    fn taken_apart(&self, mut values: Fetched) -> (Option<OutboxId>, Vec<Value>, Result<E>) {
        let place = values.split_off(self.shared.kinds.len().min(values.len()));
        let id = codec::identity(&values).ok().map(|(id, _)| id);
        (id, place, codec::decode(values, self.shared.by_tenant))
    }
}
