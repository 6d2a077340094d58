//! Creates and drops databases on a server, each time on a connection of its own.
//!
//! What is dropped is dropped although somebody is connected: a test that failed in the middle of
//! a transaction leaves nothing behind either.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, PgConnection};

/// How long creating or dropping a database may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The server's own limit for the locks of a dropped database, so that it is the one to say so.
const LOCK_LIMIT: Duration = Duration::from_secs(20);

/// A server where databases may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Postgres,
    MariaDb,
}

impl Engine {
    /// A new database called `name`, with the server's defaults.
    pub(super) async fn create(self, admin: &str, name: &str) -> Result<(), String> {
        within(async {
            match self {
                // template0: nobody can be connected to it, which would make this fail.
                Self::Postgres => postgres(admin, format!("CREATE DATABASE \"{name}\" TEMPLATE template0")).await,
                Self::MariaDb => {
                    let mut connection = MySqlConnection::connect(admin).await?;
                    run(&mut connection, format!("CREATE DATABASE `{name}`")).await?;
                    connection.close().await
                }
            }
        })
        .await
    }

    /// Removes the database called `name`; connections to it are cut.
    pub(super) async fn drop(self, admin: &str, name: &str) -> Result<(), String> {
        within(async {
            match self {
                Self::Postgres => postgres(admin, format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)")).await,
                Self::MariaDb => {
                    let mut connection = MySqlConnection::connect(admin).await?;
                    cut(&mut connection, name).await?;
                    run(&mut connection, format!("SET lock_wait_timeout = {}", LOCK_LIMIT.as_secs())).await?;
                    run(&mut connection, format!("DROP DATABASE IF EXISTS `{name}`")).await?;
                    connection.close().await
                }
            }
        })
        .await
    }
}

async fn postgres(admin: &str, sql: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(admin).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// Cuts all connections to a database of MariaDB, whose locks a drop would wait for.
async fn cut(connection: &mut MySqlConnection, name: &str) -> sqlx::Result<()> {
    let sql = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = ?";
    let ids: Vec<i64> = sqlx::query_scalar(sql).bind(name).fetch_all(&mut *connection).await?;
    for id in ids {
        // One that has ended meanwhile is no error.
        let _ = run(connection, format!("KILL {id}")).await;
    }
    Ok(())
}

async fn run(connection: &mut MySqlConnection, sql: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(|_| ())
}

#[expect(clippy::disallowed_methods, reason = "a test may not hang on a server that does not answer")]
async fn within(work: impl Future<Output = sqlx::Result<()>>) -> Result<(), String> {
    match tokio::time::timeout(LIMIT, work).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}
