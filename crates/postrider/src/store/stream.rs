//! Rows one by one, however many there are: pages in constant memory.
//!
//! Nothing is held between pages, no transaction and no connection: a reader who takes hours
//! keeps no old versions alive, and blocks nobody.

use std::collections::VecDeque;

use futures_util::stream::{self, Stream};

use super::Rows;
use super::query::{Plan, Query};
use crate::error::{Error, Result};
use crate::model::OutboxEntity;

/// Most rows of one page.
const MOST_ROWS: usize = 500;
/// About how many bytes of text a page should hold.
const PAGE_BYTES: usize = 2 * 1024 * 1024;

impl<E: OutboxEntity, S: 'static> Rows<E, S> {
    /// The query's rows one by one, in its order, at most its limit.
    ///
    /// Memory does not grow with the number of rows: they are read in pages of up to 500 rows and
    /// about 2 MB. Nothing is held between pages; a row that is written meanwhile may or may not
    /// come, none comes twice, and every row that is there throughout comes. (Where the order is
    /// by a column that changes meanwhile, a row that moves may come twice or not at all.) The
    /// order without [`Query::order_by`] is the one for long streams: each page is one range of
    /// an index.
    ///
    /// ```no_run
    /// # use postrider::model::OutboxEntity;
    /// # use postrider::store::{Query, Root, Rows};
    /// use futures_util::TryStreamExt as _;
    ///
    /// # async fn all<E: OutboxEntity>(rows: &Rows<E, Root>) -> postrider::Result<()> {
    /// let mut dead = rows.stream(&Query::new().eq("status", "DEAD"));
    /// while let Some(row) = dead.try_next().await? {
    ///     println!("{}", row.row().id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A row that cannot be read is an item of the kind [`ErrorKind::Decode`](crate::ErrorKind)
    /// that names it, and the stream goes on. A query that does not fit the entity, or a failing
    /// database, is the stream's last item.
    ///
    /// # Cancel safety
    /// Safe: an item that was not received comes with the next call. Dropping the stream ends it.
    pub fn stream(&self, query: &Query) -> impl Stream<Item = Result<E>> + Send + Unpin + use<E, S> {
        let plan = query.walk(&self.columns(), self.tenant.as_ref());
        let walk = Walk {
            rows: self.clone(),
            left: query.asked_limit(),
            page: FIRST_PAGE,
            read: VecDeque::new(),
            plan: Some(plan),
        };
        Box::pin(stream::unfold(walk, |mut walk| async move { Some((walk.next().await?, walk)) }))
    }
}

/// Rows of the first page, before it is known how large they are.
const FIRST_PAGE: usize = 100;

/// Where a stream stands.
struct Walk<E, S> {
    rows: Rows<E, S>,
    /// What is still to be read; `None` once the end was seen.
    plan: Option<Result<Plan>>,
    /// How many rows may still come.
    left: Option<usize>,
    /// How many rows the next page asks for.
    page: usize,
    read: VecDeque<Result<E>>,
}

impl<E: OutboxEntity, S> Walk<E, S> {
    async fn next(&mut self) -> Option<Result<E>> {
        loop {
            if let Some(row) = self.read.pop_front() {
                return Some(row);
            }
            let plan = match self.plan.take()? {
                Ok(plan) => plan,
                Err(error) => return Some(Err(error)),
            };
            if let Err(error) = self.read_on(plan).await {
                return Some(Err(error));
            }
        }
    }

    async fn read_on(&mut self, mut plan: Plan) -> Result<()> {
        let limit = self.left.map_or(self.page, |left| left.min(self.page));
        let stretch = self.rows.stretch(&plan, limit).await?;
        let count = stretch.rows.len();
        self.left = self.left.map(|left| left.saturating_sub(count));
        self.page = (PAGE_BYTES / (stretch.bytes / count.max(1)).max(1)).clamp(1, MOST_ROWS);
        let named = |(id, error): (_, Error)| error.context(format_args!("the row {id}"));
        self.read = stretch.rows.into_iter().map(|row| row.map_err(named)).collect();
        if let Some((_, place)) = stretch.last.filter(|_| stretch.more && self.left != Some(0)) {
            plan.selection.after = Some(place);
            self.plan = Some(Ok(plan));
        }
        Ok(())
    }
}
