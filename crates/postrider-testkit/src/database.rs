//! A fresh database for one test, gone at its end.
//!
//! SQLite is a file in a temporary folder; PostgreSQL a new database on the server that
//! `cargo xtask test` names. Nothing is created inside it: schema and rows are the test's.

#![expect(clippy::expect_used, reason = "test support: what cannot go on fails the test, and says why")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::server::{POSTGRES, required};

/// How long creating or dropping a database may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A database of its own for one test.
///
/// Dropping it removes the database, connections to it included; [`TestDatabase::close`] does the
/// same without blocking the thread.
#[derive(Debug)]
pub struct TestDatabase {
    url: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Sqlite { path: PathBuf, _dir: TempDir },
    Postgres { admin: String, name: String },
    Closed,
}

impl TestDatabase {
    /// An empty SQLite file in a temporary folder.
    ///
    /// # Panics
    /// When the folder cannot be made.
    #[must_use]
    pub fn sqlite() -> Self {
        let dir =
            tempfile::Builder::new().prefix("postrider-sqlite-").tempdir().expect("a temporary folder can be made");
        let path = dir.path().join("test.db");
        // An empty file is an empty database; so it opens without a flag that creates it.
        std::fs::write(&path, []).expect("a file can be written into a new folder");
        Self { url: format!("sqlite://{}", path.display()), kind: Kind::Sqlite { path, _dir: dir } }
    }

    /// A new database `postrider_test_<uuid>` on the server of `POSTRIDER_TEST_POSTGRES`.
    ///
    /// `None` when there is no server, after a line that names the skipped test (see
    /// [`required`]).
    ///
    /// # Panics
    /// When there must be a server and is none, or when the database cannot be created.
    pub async fn postgres() -> Option<Self> {
        let admin = required(POSTGRES)?;
        let name = format!("postrider_test_{}", Uuid::new_v4().simple());
        // template0: nobody can be connected to it, which would make this fail.
        let sql = format!("CREATE DATABASE \"{name}\" TEMPLATE template0");
        if let Err(error) = as_admin(&admin, sql).await {
            panic!("cannot create a database at {POSTGRES}: {error}");
        }
        Some(Self { url: with_database(&admin, &name), kind: Kind::Postgres { admin, name } })
    }

    /// The address: `sqlite://<path>` or `postgres://…/<name>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The file of a SQLite database.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Sqlite { path, .. } => Some(path),
            Kind::Postgres { .. } | Kind::Closed => None,
        }
    }

    /// The name of a PostgreSQL database.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Postgres { name, .. } => Some(name),
            Kind::Sqlite { .. } | Kind::Closed => None,
        }
    }

    /// Removes the database now; connections to it are cut.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn close(mut self) {
        if let Kind::Postgres { admin, name } = std::mem::replace(&mut self.kind, Kind::Closed)
            && let Err(error) = as_admin(&admin, drop_statement(&name)).await
        {
            panic!("cannot drop the database {name}: {error}");
        }
    }
}

impl Drop for TestDatabase {
    /// Drops a PostgreSQL database on a thread of its own, since the test's runtime may be ending.
    fn drop(&mut self) {
        let Kind::Postgres { admin, name } = std::mem::replace(&mut self.kind, Kind::Closed) else {
            return;
        };
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let result = runtime
                .map_err(|error| error.to_string())
                .and_then(|runtime| runtime.block_on(as_admin(&admin, drop_statement(&name))));
            if let Err(error) = result {
                eprintln!("the database {name} stays behind: {error}");
            }
        });
        let _ = dropped.join();
    }
}

fn drop_statement(name: &str) -> String {
    format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)")
}

/// Runs one statement on a connection of its own.
#[expect(clippy::disallowed_methods, reason = "a test may not hang on a server that does not answer")]
async fn as_admin(admin: &str, sql: String) -> Result<(), String> {
    let statement = async {
        let mut connection = PgConnection::connect(admin).await?;
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
        connection.close().await
    };
    match tokio::time::timeout(LIMIT, statement).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

/// The same address with another database's name.
fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let after_scheme = address.find("://").map_or(0, |at| at + 3);
    let end = address[after_scheme..].find('/').map_or(address.len(), |at| after_scheme + at);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{name}{query}", &address[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_database_is_replaced_in_the_address() {
        assert_eq!(
            with_database("postgres://u:p@h:1/admin?sslmode=disable", "x"),
            "postgres://u:p@h:1/x?sslmode=disable"
        );
        assert_eq!(with_database("postgres://h", "x"), "postgres://h/x");
        assert_eq!(with_database("postgres:///admin?host=/run", "x"), "postgres:///x?host=/run");
    }

    #[tokio::test]
    async fn a_sqlite_database_opens_at_once_and_is_gone_at_the_end() {
        let database = TestDatabase::sqlite();
        let path = database.path().unwrap().to_path_buf();
        let mut connection = sqlx::SqliteConnection::connect(database.url()).await.unwrap();
        sqlx::raw_sql("CREATE TABLE t (a)").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        drop(database);
        assert!(!path.exists());
    }

    async fn databases(name: &str) -> i64 {
        let mut connection = PgConnection::connect(&required(POSTGRES).unwrap()).await.unwrap();
        let count = sqlx::query_scalar("SELECT count(*) FROM pg_database WHERE datname = $1");
        count.bind(name).fetch_one(&mut connection).await.unwrap()
    }

    #[tokio::test]
    async fn a_postgres_database_is_gone_after_close_although_somebody_is_connected() {
        let Some(database) = TestDatabase::postgres().await else {
            return;
        };
        let name = database.name().unwrap().to_owned();
        let mut connection = PgConnection::connect(database.url()).await.unwrap();
        let current: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&mut connection).await.unwrap();
        assert_eq!(current, name);
        assert_eq!(databases(&name).await, 1);
        database.close().await;
        assert_eq!(databases(&name).await, 0);
    }

    #[tokio::test]
    async fn a_dropped_postgres_database_is_gone() {
        let Some(database) = TestDatabase::postgres().await else {
            return;
        };
        let name = database.name().unwrap().to_owned();
        drop(database);
        assert_eq!(databases(&name).await, 0);
    }
}
