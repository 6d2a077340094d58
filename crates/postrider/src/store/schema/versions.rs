//! Which steps of the DDL a database has: its table of versions, and the lock around a migration.
//!
//! A table that the application's own tool keeps has no such table beside it.

use std::sync::Arc;

use super::catalogue::Catalogue;
use super::ddl::Ddl;
use crate::error::Result;
use crate::model::{Clock, Kind, TableDef, Value};
use crate::store::database::read;
use crate::store::{Connection, Database, Dialect};

/// How many steps of the DDL [`migrate`](super::migrate) has run here; `None` where it never ran:
/// there are no tables, or the application's own tool keeps them.
///
/// # Errors
/// What the database says.
///
/// # Cancel safety
/// Safe: it only reads.
pub async fn version(database: &Arc<dyn Database>, clock: &Arc<dyn Clock>, table: &TableDef) -> Result<Option<usize>> {
    let ddl = Arc::new(Ddl::new(database.dialect(), table, &[]));
    read(database, clock, move |connection| {
        let ddl = Arc::clone(&ddl);
        Box::pin(async move {
            match Catalogue::look(connection, &ddl.table, &ddl.table.version_name()).await? {
                Some(_) => ddl.version(connection).await.map(Some),
                None => Ok(None),
            }
        })
    })
    .await
}

impl Ddl {
    /// The latest step that was run; 0 if none was.
    pub(super) async fn version(&self, connection: &mut dyn Connection) -> Result<usize> {
        let found = connection.fetch(&self.read_version(), &[], &[Kind::Int]).await?;
        let at: Option<i64> = found.into_iter().flatten().next().map_or(Ok(None), Option::try_from)?;
        Ok(usize::try_from(at.unwrap_or(0)).unwrap_or(0))
    }

    pub(super) fn create_version_table(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} ({} {} PRIMARY KEY, {} {} NOT NULL)",
            self.qualified(&self.table.version_name()),
            self.quoted("version"),
            self.type_of(Kind::Int),
            self.quoted("applied_at"),
            self.type_of(Kind::Time),
        )
    }

    fn read_version(&self) -> String {
        format!("SELECT MAX({}) FROM {}", self.quoted("version"), self.qualified(&self.table.version_name()))
    }

    pub(super) fn write_version(&self) -> String {
        let places = match self.dialect {
            Dialect::Postgres => "$1, $2",
            Dialect::Sqlite | Dialect::Mysql => "?, ?",
        };
        let (version, at) = (self.quoted("version"), self.quoted("applied_at"));
        format!("INSERT INTO {} ({version}, {at}) VALUES ({places})", self.qualified(&self.table.version_name()))
    }

    /// Keeps other nodes waiting: to the end of the transaction, on MariaDB and MySQL to
    /// [`Self::unlock`]. SQLite has its one write lock already.
    pub(super) fn lock(&self) -> Option<&'static str> {
        match self.dialect {
            Dialect::Postgres => Some("SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) AS held"),
            Dialect::Sqlite => None,
            // Such locks are the whole server's, and their names at most 64 characters long.
            Dialect::Mysql => Some("SELECT COALESCE(GET_LOCK(SHA1(CONCAT(COALESCE(DATABASE(), ''), ?)), 25), 0)"),
        }
    }

    /// Lets the others go on, where the lock belongs to the session.
    pub(super) fn unlock(&self) -> Option<&'static str> {
        match self.dialect {
            Dialect::Postgres | Dialect::Sqlite => None,
            Dialect::Mysql => Some("DO RELEASE_LOCK(SHA1(CONCAT(COALESCE(DATABASE(), ''), ?)))"),
        }
    }

    pub(super) fn lock_key(&self) -> Value {
        format!("postrider schema of {}", self.qualified(self.table.name())).into()
    }
}
