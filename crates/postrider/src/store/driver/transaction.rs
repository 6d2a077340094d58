//! A transaction on a pooled connection that never goes back to the pool half done.

use std::ops::DerefMut;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::{Database as Driver, Executor};
use tokio::sync::OwnedSemaphorePermit;

use super::failed;
use crate::error::Result;
use crate::store::{Connection, Transaction};

/// An open transaction. Dropped unfinished, at any await, its connection is closed, not pooled:
/// a connection with an open transaction, or with an unread answer, is never handed out again.
pub(super) struct PoolTransaction<DB: Driver> {
    connection: PoolConnection<DB>,
    finished: bool,
    _turn: Option<OwnedSemaphorePermit>,
}

impl<DB: Driver> PoolTransaction<DB>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    /// Runs `begin` on the connection; a writer's `turn` is kept until the end.
    pub(super) async fn begin(
        connection: PoolConnection<DB>,
        begin: &'static str,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Self> {
        let mut open = Self { connection, finished: false, _turn: turn };
        open.run(begin).await?;
        Ok(open)
    }

    async fn run(&mut self, sql: &'static str) -> Result<()> {
        self.connection.deref_mut().execute(sql).await.map_err(failed)?;
        Ok(())
    }

    async fn finish(mut self: Box<Self>, sql: &'static str) -> Result<()> {
        self.run(sql).await?;
        self.finished = true;
        Ok(())
    }
}

impl<DB: Driver> Drop for PoolTransaction<DB> {
    fn drop(&mut self) {
        if !self.finished {
            self.connection.close_on_drop();
        }
    }
}

impl<DB: Driver> Transaction for PoolTransaction<DB>
where
    PoolConnection<DB>: Connection,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.finish("COMMIT"))
    }

    fn rollback(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.finish("ROLLBACK"))
    }

    fn connection(&mut self) -> &mut dyn Connection {
        &mut self.connection
    }
}
