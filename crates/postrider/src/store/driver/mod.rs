//! sqlx's connections behind the seam. The only files that know the driver.

#[cfg(feature = "postgres")]
mod connect;
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
        sqlx::Error::Database(database) => match (database.code().as_deref(), sqlite_code(&**database)) {
            (_, Some(5 | 6)) => return busy(error),
            (code, sqlite) => kind_of(code.unwrap_or_default(), sqlite),
        },
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Protocol(_) => ErrorKind::Transient,
        sqlx::Error::Encode(_) => ErrorKind::Refused,
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => ErrorKind::Decode,
        sqlx::Error::Configuration(_) => ErrorKind::Configuration,
        _ => ErrorKind::Database,
    };
    let message = match kind {
        ErrorKind::Decode => "a stored value cannot be read",
        ErrorKind::Refused => "the database refused a value",
        ErrorKind::Locked => "somebody else holds a lock",
        ErrorKind::Configuration => "the database address is wrong",
        _ => "the database failed",
    };
    Error::new(kind, format!("{message}: {error}")).caused_by(error)
}

/// By SQLSTATE (PostgreSQL) or primary result code (SQLite).
fn kind_of(state: &str, sqlite: Option<u32>) -> ErrorKind {
    match sqlite {
        // TOOBIG, CONSTRAINT, MISMATCH.
        Some(18..=20) => return ErrorKind::Refused,
        // NOMEM, IOERR, FULL, CANTOPEN.
        Some(7 | 10 | 13 | 14) => return ErrorKind::Transient,
        Some(_) => return ErrorKind::Database,
        None => {}
    }
    match (state, state.get(..2).unwrap_or_default()) {
        // The transaction was undone: serialization failure, deadlock.
        ("40001" | "40P01", _) => ErrorKind::TransactionGone,
        ("55P03", _) => ErrorKind::Locked,
        // Read only: the server is a standby, or becomes one. Prerequisite: connections are not allowed now.
        // Connection, resources (disk, memory, connections), operator (shut down, cancelled), system (I/O).
        ("25006" | "55000", _) | (_, "08" | "53" | "57" | "58") => ErrorKind::Transient,
        // Data exception, integrity constraint.
        (_, "22" | "23") => ErrorKind::Refused,
        _ => ErrorKind::Database,
    }
}

/// SQLite's primary result code, which stands in the low byte of the extended one. SQLSTATEs of
/// other databases have five characters.
fn sqlite_code(error: &dyn sqlx::error::DatabaseError) -> Option<u32> {
    let code = error.code().filter(|code| code.len() < 5)?;
    Some(code.parse::<u32>().ok()? & 0xff)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_are_blamed_on_the_row() {
        for state in ["22001", "22P05", "23505", "23514"] {
            assert_eq!(kind_of(state, None), ErrorKind::Refused, "{state}");
        }
        for state in ["57P01", "57P05", "53300", "58030", "08006", "25006", "55000", "57014"] {
            assert_eq!(kind_of(state, None), ErrorKind::Transient, "{state}");
        }
        for state in ["28P01", "28000", "3D000", "42501", "42P01", ""] {
            assert_eq!(kind_of(state, None), ErrorKind::Database, "{state}");
        }
        assert_eq!((kind_of("55P03", None), kind_of("40001", None)), (ErrorKind::Locked, ErrorKind::TransactionGone));
        assert_eq!((kind_of("", Some(19)), kind_of("", Some(13))), (ErrorKind::Refused, ErrorKind::Transient));
        assert_eq!(kind_of("", Some(8)), ErrorKind::Database);
    }
}
