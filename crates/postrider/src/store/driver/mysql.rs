//! MariaDB and MySQL: READ COMMITTED transactions in UTC. Nodes find each other's rows by polling.

use std::str::FromStr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlRow};
use sqlx::pool::PoolConnection;
use sqlx::{
    Arguments, AssertSqlSafe, Column, ConnectOptions, Executor, MySql, MySqlConnection, Row, TypeInfo, ValueRef,
};
use time::{OffsetDateTime, PrimitiveDateTime};
use uuid::Uuid;

use super::transaction::PoolTransaction;
use super::{connect, connection, delegate, failed};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Kind, Timestamp, Value};
use crate::store::connection::Fetched;
use crate::store::statements::MYSQL_TIME;
use crate::store::{Connection, Database, Dialect, Transaction};

/// What every connection of the library's own begins with: how long a statement waits for a lock
/// of somebody else's, in seconds.
const SESSION: &str = "SET SESSION innodb_lock_wait_timeout = 1";

/// REPEATABLE READ, the default, would lock the gaps between the rows that a claim looks at.
const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";

/// A MariaDB database, version 10.6 or later, or a MySQL one, version 8.0 or later.
#[derive(Debug, Clone)]
pub struct MysqlDatabase {
    pool: MySqlPool,
}

impl MysqlDatabase {
    /// A pool for `mysql://user@host/database`; it connects when first used.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the address cannot be read. The message never shows it,
    /// since it may hold a password.
    pub fn connect_lazy(url: &str, max_connections: u32) -> Result<Self> {
        let options = MySqlConnectOptions::from_str(url)
            .map_err(|_| connect::unreadable("mysql://user:password@host:3306/database"))?;
        let pool = MySqlPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(Duration::from_secs(10))
            .after_connect(|connection, _| {
                Box::pin(async move {
                    Executor::execute(connection, SESSION).await?;
                    Ok(())
                })
            })
            // Statements are never logged, slow or not: one of them may be large.
            .connect_lazy_with(options.disable_statement_logging());
        Ok(Self { pool })
    }

    /// Uses a pool of the application's own. Its sessions must keep sqlx's default time zone, UTC;
    /// set `innodb_lock_wait_timeout` on them (1 s, say): a row that somebody holds locked must not
    /// keep the endings of others waiting.
    #[must_use]
    pub fn from_pool(pool: MySqlPool) -> Self {
        Self { pool }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    /// Connects once, beside the pool, and closes that connection: tells at once why there is none,
    /// where the pool tries a refused connection until its time is over.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the login is refused or there is no such database,
    /// [`ErrorKind::Transient`] if the server cannot be reached or is busy. The message names the
    /// cause and the remedy, and not the address.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn try_connect(&self) -> Result<()> {
        let tried = self.pool.connect_options().connect().await;
        let connection = tried.map_err(|error| connect::explain("MariaDB or MySQL", error))?;
        // It has answered: whether the farewell arrives does not matter.
        let _ = sqlx::Connection::close(connection).await;
        Ok(())
    }
}

impl Database for MysqlDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn Transaction>>> {
        Box::pin(async {
            let connection = self.pool.acquire().await.map_err(failed)?;
            let open = PoolTransaction::<MySql>::begin(connection, BEGIN, None).await?;
            Ok(Box::new(open) as Box<dyn Transaction>)
        })
    }

    fn reader(&self) -> BoxFuture<'_, Result<Box<dyn Connection>>> {
        Box::pin(async { Ok(Box::new(self.pool.acquire().await.map_err(failed)?) as Box<dyn Connection>) })
    }

    fn now(&self) -> BoxFuture<'_, Result<Option<Timestamp>>> {
        Box::pin(async {
            let row = sqlx::query(MYSQL_TIME).fetch_one(&self.pool).await.map_err(failed)?;
            Option::try_from(read(&row, 0, Kind::Time))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.close())
    }
}

connection!(MySql, MySqlConnection, Dialect::Mysql, to_driver, read);

fn to_driver(at: Timestamp) -> PrimitiveDateTime {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    PrimitiveDateTime::new(at.date(), at.time())
}

fn from_driver(at: PrimitiveDateTime) -> Timestamp {
    let micros = at.assume_utc().unix_timestamp_nanos().div_euclid(1_000);
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// Reads one column; what cannot be read is told in its place, so that one bad row stops no batch.
fn read(row: &MySqlRow, at: usize, kind: Kind) -> Value {
    let Ok(raw) = row.try_get_raw(at) else {
        return Value::Unreadable(format!("column {at} is missing"));
    };
    if raw.is_null() {
        return Value::null(kind);
    }
    let stored = row.column(at).type_info().name();
    let value = match (kind, stored) {
        (Kind::Bool, "BOOLEAN" | "TINYINT" | "BIGINT" | "INT") => {
            row.try_get_unchecked::<i64, _>(at).map(|v| Value::from(v != 0))
        }
        (Kind::Int, "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT") => {
            row.try_get_unchecked::<i64, _>(at).map(Value::from)
        }
        (Kind::Int, "TINYINT UNSIGNED" | "SMALLINT UNSIGNED" | "MEDIUMINT UNSIGNED" | "INT UNSIGNED") => {
            row.try_get_unchecked::<u32, _>(at).map(|v| Value::from(i64::from(v)))
        }
        (Kind::Float, "DOUBLE") => row.try_get_unchecked::<f64, _>(at).map(Value::from),
        (Kind::Float, "FLOAT") => row.try_get_unchecked::<f32, _>(at).map(|v| Value::from(f64::from(v))),
        (Kind::Bytes, "BINARY" | "VARBINARY" | "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB") => {
            bytes(row, at).map(Value::from)
        }
        (Kind::Text, name) if is_text(name) => bytes(row, at).and_then(text).map(Value::from),
        (Kind::Uuid, "BINARY" | "VARBINARY" | "CHAR" | "VARCHAR") => {
            bytes(row, at).and_then(|bytes| uuid(&bytes)).map(Value::from)
        }
        (Kind::Time, "DATETIME" | "TIMESTAMP") => {
            row.try_get_unchecked::<PrimitiveDateTime, _>(at).map(|v| Value::from(from_driver(v)))
        }
        _ => return Value::Unreadable(format!("expected {kind:?}, found {stored}")),
    };
    value.unwrap_or_else(|cause| Value::Unreadable(cause.to_string()))
}

/// Text in a binary column too: keys and tenants are compared byte by byte. And a text whose collation
/// is binary looks to the driver like bytes.
fn is_text(name: &str) -> bool {
    matches!(name, "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY" | "JSON")
        || name.ends_with("TEXT")
        || name.ends_with("BLOB")
}

fn bytes(row: &MySqlRow, at: usize) -> Result<Vec<u8>, sqlx::Error> {
    row.try_get_unchecked(at)
}

/// A UUID of either form: a text whose collation is binary looks to the driver like bytes.
fn uuid(bytes: &[u8]) -> Result<Uuid, sqlx::Error> {
    let parsed = if bytes.len() == 16 { Uuid::from_slice(bytes) } else { Uuid::try_parse_ascii(bytes) };
    parsed.map_err(|cause| sqlx::Error::Decode(cause.into()))
}

fn text(bytes: Vec<u8>) -> Result<String, sqlx::Error> {
    String::from_utf8(bytes).map_err(|cause| sqlx::Error::Decode(cause.into()))
}

/// By the error's number: many of them share a SQLSTATE.
pub(super) fn kind_of(number: u16) -> ErrorKind {
    match number {
        // A key exists; the statement's rows are undone, all of them, the transaction goes on.
        1062 | 1169 | 1586 => ErrorKind::Duplicate,
        // Deadlock (also a refused certification of a cluster's), and a snapshot that is too old.
        1213 | 1614 | 1020 => ErrorKind::TransactionGone,
        // Waited too long for a lock; no wait.
        1205 | 3572 => ErrorKind::Locked,
        // Connections, users' limits, shutdown, a killed or interrupted connection; disk, memory, locks;
        // a server that is read only, as a replica is.
        1040
        | 1043
        | 1047
        | 1053
        | 1077
        | 1129
        | 1152
        | 1158..=1161
        | 1184
        | 1203
        | 1226
        | 1317
        | 1927
        | 1969
        | 3024
        | 4031
        | 1015
        | 1021
        | 1028
        | 1030
        | 1037
        | 1038
        | 1041
        | 1114
        | 1206
        | 1290
        | 1792
        | 1836 => ErrorKind::Transient,
        // Null, foreign keys, range, size, character set, checks, JSON.
        1048 | 1118 | 1153 | 1216 | 1217 | 1264 | 1265 | 1292 | 1364 | 1366 | 1406 | 1411 | 1451 | 1452 | 1690
        | 3140 | 3141 | 3819 | 3903 | 4025 => ErrorKind::Refused,
        _ => ErrorKind::Database,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_by_their_number() {
        for (number, kind) in [
            (1062, ErrorKind::Duplicate),
            (1213, ErrorKind::TransactionGone),
            (1205, ErrorKind::Locked),
            (1053, ErrorKind::Transient),
            (1114, ErrorKind::Transient),
            (1406, ErrorKind::Refused),
            (4025, ErrorKind::Refused),
            (1045, ErrorKind::Database),
            (1146, ErrorKind::Database),
        ] {
            assert_eq!(kind_of(number), kind, "{number}");
        }
    }

    #[test]
    fn instants_go_to_the_driver_and_back() {
        for at in [Timestamp::MIN, Timestamp::from_micros(-1), Timestamp::from_micros(1), Timestamp::MAX] {
            assert_eq!(from_driver(to_driver(at)), at);
        }
    }
}
