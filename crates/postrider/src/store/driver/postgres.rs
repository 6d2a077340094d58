//! PostgreSQL: READ COMMITTED transactions, and LISTEN on a connection of its own.

use std::str::FromStr;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions, PgRow};
use sqlx::{
    Arguments, AssertSqlSafe, Column, ConnectOptions as _, Connection as _, PgConnection, Postgres, Row, TypeInfo,
    ValueRef,
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::transaction::PoolTransaction;
use super::{connect, connection, delegate, failed};
use crate::error::{Error, ErrorKind, Result};
use crate::model::clock::within;
use crate::model::{Clock, Kind, Timestamp, Value};
use crate::store::connection::Fetched;
use crate::store::database::{Heard, Listener};
use crate::store::statements::{HEARTBEAT, NOTIFY, POSTGRES_TIME};
use crate::store::{Connection, Database, Dialect, Transaction};

/// The channel of NOTIFY, for other writers too: `NOTIFY postrider` after their commit.
const NOTIFY_CHANNEL: &str = "postrider";
/// How often a quiet listening connection is asked whether it still lives.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// How long it has to answer.
const HEARTBEAT_LIMIT: Duration = Duration::from_secs(5);

/// How long a statement of the library's own waits for a lock of somebody else's.
const LOCK_TIMEOUT: &str = "1s";
/// PostgreSQL counts its instants from 2000-01-01; this is that day in microseconds since 1970.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// A PostgreSQL database, version 13 or later.
#[derive(Debug, Clone)]
pub struct PostgresDatabase {
    pool: PgPool,
}

impl PostgresDatabase {
    /// A pool for `postgres://user@host/database`; it connects when first used.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the address cannot be read. The message never shows it,
    /// since it may hold a password.
    pub fn connect_lazy(url: &str, max_connections: u32) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| connect::unreadable("postgres://user:password@host:5432/database"))?;
        // Statements are never logged, slow or not: one of them may be large.
        let options =
            options.application_name("postrider").options([("lock_timeout", LOCK_TIMEOUT)]).disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(Duration::from_secs(10))
            .connect_lazy_with(options);
        Ok(Self { pool })
    }

    /// Uses a pool of the application's own. Set `lock_timeout` on its connections (1 s, say): a row
    /// that somebody holds locked must not keep the endings of others waiting. Leave sqlx's
    /// `test_before_acquire` on: it is what finds connections that the server closed overnight.
    #[must_use]
    pub fn from_pool(pool: PgPool) -> Self {
        Self { pool }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
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
        let connection =
            self.pool.connect_options().connect().await.map_err(|error| connect::explain("PostgreSQL", error))?;
        // It has answered: whether the farewell arrives does not matter.
        let _ = connection.close().await;
        Ok(())
    }

    async fn listener(&self) -> Result<PgListener, sqlx::Error> {
        let own = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_with(self.pool.connect_options().as_ref().clone())
            .await?;
        let mut listener = PgListener::connect_with(&own).await?;
        listener.eager_reconnect(false);
        listener.listen(NOTIFY_CHANNEL).await?;
        Ok(listener)
    }
}

impl Database for PostgresDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn Transaction>>> {
        Box::pin(async {
            let connection = self.pool.acquire().await.map_err(failed)?;
            let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
            let open = PoolTransaction::<Postgres>::begin(connection, begin, None).await?;
            Ok(Box::new(open) as Box<dyn Transaction>)
        })
    }

    fn reader(&self) -> BoxFuture<'_, Result<Box<dyn Connection>>> {
        Box::pin(async { Ok(Box::new(self.pool.acquire().await.map_err(failed)?) as Box<dyn Connection>) })
    }

    fn now(&self) -> BoxFuture<'_, Result<Option<Timestamp>>> {
        Box::pin(async {
            let row = sqlx::query(POSTGRES_TIME).fetch_one(&self.pool).await.map_err(failed)?;
            Option::try_from(read(&row, 0, Kind::Time))
        })
    }

    fn notify_others(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            sqlx::query(NOTIFY).bind(NOTIFY_CHANNEL).execute(&self.pool).await.map_err(failed)?;
            Ok(())
        })
    }

    fn listen<'a>(&'a self, clock: &'a dyn Clock, told: &'a dyn Listener) -> BoxFuture<'a, Result<Heard>> {
        Box::pin(async move {
            let mut listener = within(clock, HEARTBEAT_LIMIT, self.listener())
                .await
                .ok_or_else(|| Error::new(ErrorKind::Transient, "the database did not answer LISTEN within 5 s"))?
                .map_err(failed)?;
            told.connected();
            loop {
                let heard = match select(Box::pin(listener.try_recv()), clock.sleep(HEARTBEAT_EVERY)).await {
                    Either::Left((heard, _)) => Some(heard.map_err(failed)?),
                    Either::Right(((), _)) => None,
                };
                match heard {
                    Some(Some(_)) => told.notified(),
                    Some(None) => return Ok(Heard::Lost),
                    // A half-open connection looks quiet for ever: only an answer proves that it lives.
                    None => {
                        let beat = sqlx::query(HEARTBEAT).execute(&mut listener);
                        if !matches!(within(clock, HEARTBEAT_LIMIT, beat).await, Some(Ok(_))) {
                            return Ok(Heard::Lost);
                        }
                    }
                }
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pool.close())
    }
}

connection!(Postgres, PgConnection, Dialect::Postgres, to_driver, read);

fn to_driver(at: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Reads one column; what cannot be read is told in its place, so that one bad row stops no batch.
fn read(row: &PgRow, at: usize, kind: Kind) -> Value {
    let Ok(raw) = row.try_get_raw(at) else {
        return Value::Unreadable(format!("column {at} is missing"));
    };
    if raw.is_null() {
        return Value::null(kind);
    }
    let stored = row.column(at).type_info().name();
    let value = match (kind, stored) {
        (Kind::Bool, "BOOL") => row.try_get::<bool, _>(at).map(Value::from),
        (Kind::Int, "INT8") => row.try_get::<i64, _>(at).map(Value::from),
        (Kind::Int, "INT4") => row.try_get::<i32, _>(at).map(Value::from),
        (Kind::Int, "INT2") => row.try_get::<i16, _>(at).map(|v| Value::from(i32::from(v))),
        (Kind::Text, "TEXT" | "VARCHAR" | "CHAR" | "NAME") => row.try_get::<String, _>(at).map(Value::from),
        (Kind::Uuid, "UUID") => row.try_get::<Uuid, _>(at).map(Value::from),
        (Kind::Uuid, "TEXT" | "VARCHAR" | "CHAR") => row
            .try_get::<String, _>(at)
            .and_then(|text| Uuid::parse_str(&text).map_err(|cause| sqlx::Error::Decode(cause.into())))
            .map(Value::from),
        (Kind::Float, "FLOAT8") => row.try_get::<f64, _>(at).map(Value::from),
        (Kind::Float, "FLOAT4") => row.try_get::<f32, _>(at).map(|v| Value::from(f64::from(v))),
        (Kind::Bytes, "BYTEA") => row.try_get::<Vec<u8>, _>(at).map(Value::from),
        // Read as it is sent: the driver's own type has no room for `infinity`, and panics.
        (Kind::Time, "TIMESTAMPTZ") => row
            .try_get_unchecked::<i64, _>(at)
            .map(|v| Value::from(Timestamp::from_micros(v.saturating_add(POSTGRES_EPOCH)))),
        _ => return Value::Unreadable(format!("expected {kind:?}, found {stored}")),
    };
    value.unwrap_or_else(|cause| Value::Unreadable(cause.to_string()))
}
