//! sqlx's connections behind the seam. The only files that know the driver.

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod connect;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transaction;

use crate::error::{Error, ErrorKind};

#[cfg(feature = "mysql")]
pub use mysql::MysqlDatabase;
#[cfg(feature = "postgres")]
pub use postgres::PostgresDatabase;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteDatabase, Synchronous};

/// Turns sqlx's errors into the library's, by code and never by text.
pub(super) fn failed(error: sqlx::Error) -> Error {
    let kind = match &error {
        sqlx::Error::Database(database) => match Code::of(&**database) {
            Code::Sqlite(code) if matches!(code & 0xff, 5 | 6) => return busy(error),
            code => kind_of(&code),
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

/// What a database calls an error.
#[derive(Debug)]
enum Code {
    /// PostgreSQL: the SQLSTATE.
    State(String),
    /// SQLite: the extended result code; the primary one stands in its low byte.
    Sqlite(u32),
    /// MariaDB and MySQL: the error's number, since many share a SQLSTATE.
    #[cfg(feature = "mysql")]
    Mysql(u16),
}

impl Code {
    fn of(error: &dyn sqlx::error::DatabaseError) -> Self {
        #[cfg(feature = "mysql")]
        if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
            return Self::Mysql(error.number());
        }
        let code = error.code().unwrap_or_default();
        // SQLSTATEs have five characters.
        match code.parse() {
            Ok(number) if code.len() < 5 => Self::Sqlite(number),
            _ => Self::State(code.into_owned()),
        }
    }
}

fn kind_of(code: &Code) -> ErrorKind {
    match code {
        Code::State(state) => kind_of_state(state),
        Code::Sqlite(code) => kind_of_sqlite(*code),
        #[cfg(feature = "mysql")]
        Code::Mysql(number) => mysql::kind_of(*number),
    }
}

fn kind_of_sqlite(code: u32) -> ErrorKind {
    match (code, code & 0xff) {
        // CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE.
        (1555 | 2067, _) => ErrorKind::Duplicate,
        // TOOBIG, CONSTRAINT, MISMATCH.
        (_, 18..=20) => ErrorKind::Refused,
        // NOMEM, IOERR, FULL, CANTOPEN.
        (_, 7 | 10 | 13 | 14) => ErrorKind::Transient,
        _ => ErrorKind::Database,
    }
}

fn kind_of_state(state: &str) -> ErrorKind {
    match (state, state.get(..2).unwrap_or_default()) {
        // The transaction was undone: serialization failure, deadlock.
        ("40001" | "40P01", _) => ErrorKind::TransactionGone,
        ("55P03", _) => ErrorKind::Locked,
        ("23505", _) => ErrorKind::Duplicate,
        // Read only: the server is a standby, or becomes one. Prerequisite: connections are not allowed now.
        // Connection, resources (disk, memory, connections), operator (shut down, cancelled), system (I/O).
        ("25006" | "55000", _) | (_, "08" | "53" | "57" | "58") => ErrorKind::Transient,
        // Data exception, integrity constraint.
        (_, "22" | "23") => ErrorKind::Refused,
        _ => ErrorKind::Database,
    }
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
                    Value::Float(v) => arguments.add(v),
                    Value::Bytes(v) => arguments.add(v),
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
                Connection::execute(&mut **self, sql, values)
            }

            fn fetch<'c>(
                &'c mut self,
                sql: &'c str,
                values: &'c [Value],
                kinds: &'c [Kind],
            ) -> BoxFuture<'c, Result<Vec<Fetched>>> {
                Connection::fetch(&mut **self, sql, values, kinds)
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
        for state in ["22001", "22P05", "23514"] {
            assert_eq!(kind_of_state(state), ErrorKind::Refused, "{state}");
        }
        for state in ["57P01", "57P05", "53300", "58030", "08006", "25006", "55000", "57014"] {
            assert_eq!(kind_of_state(state), ErrorKind::Transient, "{state}");
        }
        for state in ["28P01", "28000", "3D000", "42501", "42P01", ""] {
            assert_eq!(kind_of_state(state), ErrorKind::Database, "{state}");
        }
        assert_eq!(kind_of_state("55P03"), ErrorKind::Locked);
        assert_eq!(kind_of_state("40001"), ErrorKind::TransactionGone);
        assert_eq!(kind_of_state("23505"), ErrorKind::Duplicate);
    }

    #[test]
    fn results_of_sqlite_are_told_apart() {
        for (code, kind) in [
            (19, ErrorKind::Refused),
            (275, ErrorKind::Refused),
            (2067, ErrorKind::Duplicate),
            (13, ErrorKind::Transient),
            (8, ErrorKind::Database),
        ] {
            assert_eq!(kind_of_sqlite(code), kind, "{code}");
        }
    }
}
