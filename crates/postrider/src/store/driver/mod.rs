//! sqlx's connections behind the seam. The only files that know the driver.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transaction;

use crate::error::{Error, ErrorKind};

#[cfg(feature = "postgres")]
pub use postgres::PostgresDatabase;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteDatabase, Synchronous};

/// Turns sqlx's errors into the library's, by code and never by text.
pub(super) fn failed(error: sqlx::Error) -> Error {
    let kind = match &error {
        sqlx::Error::Database(database) => match database.code().as_deref() {
            // PostgreSQL undid the transaction: serialization failure, deadlock.
            Some("40001" | "40P01") => ErrorKind::TransactionGone,
            // PostgreSQL: lock not available, too many connections, shutting down, starting up,
            // disk full, out of memory; connection exceptions.
            Some("55P03" | "53300" | "57P01" | "57P02" | "57P03" | "53100" | "53200" | "57014" | "25006") => {
                ErrorKind::Transient
            }
            Some(code) if code.len() == 5 && code.starts_with("08") => ErrorKind::Transient,
            _ if is_sqlite_busy(&**database) => return busy(error),
            // SQLite: the disk is full.
            _ if sqlite_code(&**database) == Some(13) => ErrorKind::Transient,
            _ => ErrorKind::Database,
        },
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => {
            ErrorKind::Transient
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => ErrorKind::Decode,
        sqlx::Error::Configuration(_) => ErrorKind::Configuration,
        _ => ErrorKind::Database,
    };
    let message = match kind {
        ErrorKind::Decode => "a stored value cannot be read",
        ErrorKind::Configuration => "the database address is wrong",
        _ => "the database failed",
    };
    Error::new(kind, format!("{message}: {error}")).caused_by(error)
}

/// SQLite's primary result code, which stands in the low byte of the extended one. SQLSTATEs of
/// other databases have five characters.
fn sqlite_code(error: &dyn sqlx::error::DatabaseError) -> Option<u32> {
    let code = error.code().filter(|code| code.len() < 5)?;
    Some(code.parse::<u32>().ok()? & 0xff)
}

fn is_sqlite_busy(error: &dyn sqlx::error::DatabaseError) -> bool {
    // 5 BUSY, 6 LOCKED.
    sqlite_code(error).is_some_and(|code| matches!(code, 5 | 6))
}

fn busy(error: sqlx::Error) -> Error {
    Error::new(
        ErrorKind::Transient,
        "the SQLite database is locked by another writer; begin transactions that will write with \
         BEGIN IMMEDIATE, since one that has already read cannot wait for the lock",
    )
    .caused_by(error)
}

/// Implements the seam for one of sqlx's connections, and for what holds one: a pooled connection
/// and the caller's open transaction. `$time` is how an instant is bound, `$read` reads a column.
macro_rules! connection {
    ($database:ty, $connection:ty, $dialect:expr, $time:path, $read:path) => {
        fn bind(values: &[Value]) -> Result<<$database as sqlx::Database>::Arguments> {
            let mut arguments = <$database as sqlx::Database>::Arguments::default();
            for value in values {
                match value.clone() {
                    Value::Bool(v) => arguments.add(v),
                    Value::Int(v) => arguments.add(v),
                    Value::Text(v) => arguments.add(v),
                    Value::Uuid(v) => arguments.add(v),
                    Value::Time(v) => arguments.add(v.map($time)),
                    Value::Unreadable(why) => return Err(Error::new(ErrorKind::Decode, why)),
                }
                .map_err(|cause| failed(sqlx::Error::Encode(cause)))?;
            }
            Ok(arguments)
        }

        impl Connection for $connection {
            fn dialect(&self) -> Dialect {
                $dialect
            }

            fn execute<'c>(&'c mut self, sql: &'c str, values: &'c [Value]) -> BoxFuture<'c, Result<u64>> {
                Box::pin(async move {
                    let query = sqlx::query_with(AssertSqlSafe(sql), bind(values)?);
                    Ok(query.execute(self).await.map_err(failed)?.rows_affected())
                })
            }

            fn fetch<'c>(
                &'c mut self,
                sql: &'c str,
                values: &'c [Value],
                kinds: &'c [Kind],
            ) -> BoxFuture<'c, Result<Vec<Fetched>>> {
                Box::pin(async move {
                    let query = sqlx::query_with(AssertSqlSafe(sql), bind(values)?);
                    let rows = query.fetch_all(self).await.map_err(failed)?;
                    let read = |row| kinds.iter().enumerate().map(|(at, kind)| $read(row, at, *kind)).collect();
                    Ok(rows.iter().map(read).collect())
                })
            }
        }

        delegate!(sqlx::Transaction<'_, $database>, $dialect);
        delegate!(PoolConnection<$database>, $dialect);
    };
}

/// Implements the seam for a smart pointer to a connection.
macro_rules! delegate {
    ($holder:ty, $dialect:expr) => {
        impl Connection for $holder {
            fn dialect(&self) -> Dialect {
                $dialect
            }

            fn execute<'c>(&'c mut self, sql: &'c str, values: &'c [Value]) -> BoxFuture<'c, Result<u64>> {
                (**self).execute(sql, values)
            }

            fn fetch<'c>(
                &'c mut self,
                sql: &'c str,
                values: &'c [Value],
                kinds: &'c [Kind],
            ) -> BoxFuture<'c, Result<Vec<Fetched>>> {
                (**self).fetch(sql, values, kinds)
            }
        }
    };
}

use {connection, delegate};
