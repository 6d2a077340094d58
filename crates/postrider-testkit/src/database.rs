//! A fresh database for one test, gone at its end.
//!
//! SQLite is a file in a temporary folder; PostgreSQL and MariaDB are a new database on the server
//! that `cargo xtask test` names. Nothing is created inside it: schema and rows are the test's.

#![expect(clippy::expect_used, reason = "test support: what cannot go on fails the test, and says why")]

mod admin;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use uuid::Uuid;

use crate::server::{MARIADB, POSTGRES, required};
use admin::Engine;

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
    Server { engine: Engine, admin: String, name: String },
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
        Self::on_server(Engine::Postgres, POSTGRES).await
    }

    /// A new database `postrider_test_<uuid>` on the server of `POSTRIDER_TEST_MARIADB`, with that
    /// server's character set and collation, whichever they are.
    ///
    /// `None` when there is no server, after a line that names the skipped test (see
    /// [`required`]).
    ///
    /// # Panics
    /// When there must be a server and is none, or when the database cannot be created.
    pub async fn mariadb() -> Option<Self> {
        Self::on_server(Engine::MariaDb, MARIADB).await
    }

    async fn on_server(engine: Engine, variable: &str) -> Option<Self> {
        let admin = required(variable)?;
        let name = format!("postrider_test_{}", Uuid::new_v4().simple());
        if let Err(error) = engine.create(&admin, &name).await {
            panic!("cannot create a database at {variable}: {error}");
        }
        Some(Self { url: with_database(&admin, &name), kind: Kind::Server { engine, admin, name } })
    }

    /// The address: `sqlite://<path>`, `postgres://…/<name>` or `mysql://…/<name>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The file of a SQLite database.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Sqlite { path, .. } => Some(path),
            Kind::Server { .. } | Kind::Closed => None,
        }
    }

    /// The name of a database on a server.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Server { name, .. } => Some(name),
            Kind::Sqlite { .. } | Kind::Closed => None,
        }
    }

    /// Removes the database now; connections to it are cut.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn close(mut self) {
        if let Kind::Server { engine, admin, name } = std::mem::replace(&mut self.kind, Kind::Closed)
            && let Err(error) = engine.drop(&admin, &name).await
        {
            panic!("cannot drop the database {name}: {error}");
        }
    }
}

impl Drop for TestDatabase {
    /// Drops a server's database on a thread of its own, since the test's runtime may be ending.
    fn drop(&mut self) {
        let Kind::Server { engine, admin, name } = std::mem::replace(&mut self.kind, Kind::Closed) else {
            return;
        };
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let result = runtime
                .map_err(|error| error.to_string())
                .and_then(|runtime| runtime.block_on(engine.drop(&admin, &name)));
            if let Err(error) = result {
                eprintln!("the database {name} stays behind: {error}");
            }
        });
        let _ = dropped.join();
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
    use sqlx::{Connection as _, MySqlConnection, PgConnection};

    use super::*;

    #[test]
    fn the_name_of_the_database_is_replaced_in_the_address() {
        assert_eq!(
            with_database("postgres://u:p@h:1/admin?sslmode=disable", "x"),
            "postgres://u:p@h:1/x?sslmode=disable"
        );
        assert_eq!(with_database("postgres://h", "x"), "postgres://h/x");
        assert_eq!(with_database("postgres:///admin?host=/run", "x"), "postgres:///x?host=/run");
        assert_eq!(with_database("mysql://root@127.0.0.1:3306/mysql", "x"), "mysql://root@127.0.0.1:3306/x");
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

    async fn postgres_databases(name: &str) -> i64 {
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
        assert_eq!(postgres_databases(&name).await, 1);
        database.close().await;
        assert_eq!(postgres_databases(&name).await, 0);
    }

    #[tokio::test]
    async fn a_dropped_postgres_database_is_gone() {
        let Some(database) = TestDatabase::postgres().await else {
            return;
        };
        let name = database.name().unwrap().to_owned();
        drop(database);
        assert_eq!(postgres_databases(&name).await, 0);
    }

    async fn mariadb_databases(name: &str) -> i64 {
        let mut connection = MySqlConnection::connect(&required(MARIADB).unwrap()).await.unwrap();
        let count = sqlx::query_scalar("SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?");
        count.bind(name).fetch_one(&mut connection).await.unwrap()
    }

    #[tokio::test]
    async fn a_mariadb_database_is_gone_after_close_although_somebody_is_in_a_transaction() {
        let Some(database) = TestDatabase::mariadb().await else {
            return;
        };
        let name = database.name().unwrap().to_owned();
        let mut connection = MySqlConnection::connect(database.url()).await.unwrap();
        let current: String = sqlx::query_scalar("SELECT database()").fetch_one(&mut connection).await.unwrap();
        assert_eq!(current, name);
        assert_eq!(mariadb_databases(&name).await, 1);
        sqlx::raw_sql("CREATE TABLE t (a int)").execute(&mut connection).await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        sqlx::raw_sql("INSERT INTO t VALUES (1)").execute(&mut *transaction).await.unwrap();
        database.close().await;
        assert_eq!(mariadb_databases(&name).await, 0);
        assert!(transaction.commit().await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_mariadb_database_is_gone() {
        let Some(database) = TestDatabase::mariadb().await else {
            return;
        };
        let name = database.name().unwrap().to_owned();
        drop(database);
        assert_eq!(mariadb_databases(&name).await, 0);
    }
}
