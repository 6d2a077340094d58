//! The one seam to a database: run a statement, read rows, in a small neutral [`Value`].
//!
//! The caller's own transaction comes in as `&mut dyn Connection`; begin, commit and isolation
//! belong to [`Database`](super::Database). A connection never decides, it only carries.

use futures_util::future::BoxFuture;

use super::Dialect;
use crate::error::Result;
use crate::model::{Kind, Value};

/// One fetched row: the values in the order of the kinds asked for.
pub type Fetched = Vec<Value>;

/// An open connection of a supported database, inside a transaction or not.
///
/// Implemented for sqlx's connections; pass the caller's as `&mut *tx`.
pub trait Connection: Send {
    /// Which database speaks here.
    fn dialect(&self) -> Dialect;

    /// Runs a statement; the number of rows that it matched.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`](crate::ErrorKind::Transient) where the same call may succeed
    /// later, [`ErrorKind::TransactionGone`](crate::ErrorKind::TransactionGone) where the database
    /// undid the transaction, [`ErrorKind::Database`](crate::ErrorKind::Database) otherwise.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping it leaves the transaction in an unknown state; roll back.
    fn execute<'c>(&'c mut self, sql: &'c str, values: &'c [Value]) -> BoxFuture<'c, Result<u64>>;

    /// Runs a statement that returns rows; each row's columns are read as `kinds`.
    ///
    /// # Errors
    /// As [`Self::execute`], and [`ErrorKind::Decode`](crate::ErrorKind::Decode) if a column is of
    /// another kind.
    ///
    /// # Cancel safety
    /// As [`Self::execute`].
    fn fetch<'c>(
        &'c mut self,
        sql: &'c str,
        values: &'c [Value],
        kinds: &'c [Kind],
    ) -> BoxFuture<'c, Result<Vec<Fetched>>>;
}
