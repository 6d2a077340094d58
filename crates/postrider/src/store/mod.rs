//! The rows in the database: one meaning on every supported one.
//!
//! ```text
//! OutboxRepository<E> ── root() / scoped(&tenant) ──► Rows: insert, find, claim, settle, requeue …
//!        │ statements (all SQL text), codec (values ⇄ rows), schema (DDL)
//!        ▼
//!    Database / Connection (the seam) ──► driver (sqlx)
//! ```
//! The store never decides: it knows no policy, no channel and no template. Every transition is
//! one conditional UPDATE (contract C3.3).

mod claim;
pub mod clock;
mod codec;
mod connection;
pub mod database;
mod delete;
mod dialect;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod driver;
mod find;
mod history;
mod insert;
mod intervene;
mod page;
mod query;
mod save;
pub mod schema;
mod settle;
mod statements;
mod stream;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

pub use claim::{Claim, ClaimOrder, Claimed};
pub use clock::DatabaseClock;
pub use connection::{Connection, Fetched};
pub use database::{Database, Heard, Listener, Transaction};
pub use delete::Deleted;
pub use dialect::Dialect;
#[cfg(feature = "mysql")]
pub use driver::MysqlDatabase;
#[cfg(feature = "postgres")]
pub use driver::PostgresDatabase;
#[cfg(feature = "sqlite")]
pub use driver::{SqliteDatabase, Synchronous};
pub use find::DueCount;
pub use history::{HistoryEvent, HistoryLine};
pub use insert::Inserted;
pub use intervene::{Cancel, Expiry, Requeue};
pub use page::Page;
pub use query::{Cursor, Direction, Query};
pub use save::Saved;
pub use settle::{Ending, Renewed, Run, Settled, Settlement};

use crate::error::{Error, ErrorKind, Result};
use crate::model::{ByTenant, Clock, Kind, OutboxEntity, OutboxId, TableDef, Tenancy, TenantId, Value};
use query::{Columns, Plan};
use statements::{IDS_BATCH, Statements, Template};

/// The rows of one entity in one database.
///
/// It has no row methods of its own: [`Self::root`] and [`Self::scoped`] are the only doors, so
/// that a forgotten scope does not compile and never means all tenants. Source: contract C6.3.
pub struct OutboxRepository<E> {
    shared: Arc<Shared>,
    entity: PhantomData<fn() -> E>,
}

struct Shared {
    table: TableDef,
    statements: Statements,
    by_tenant: bool,
    kinds: Vec<Kind>,
    database: Arc<dyn Database>,
    clock: Arc<dyn Clock>,
}

impl<E: OutboxEntity> OutboxRepository<E> {
    /// The rows in the entity's default table.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a name is no identifier.
    pub fn new(database: Arc<dyn Database>, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::with_table(database, clock, E::table()?)
    }

    /// The rows in another table.
    ///
    /// # Errors
    /// As [`Self::new`]; also if table and entity do not agree about a tenant column, or a column of
    /// the application's own has the name of another.
    pub fn with_table(database: Arc<dyn Database>, clock: Arc<dyn Clock>, table: TableDef) -> Result<Self> {
        let by_tenant = table.tenant().is_some();
        if by_tenant != E::Tenancy::BY_TENANT {
            let (has, wants) = if by_tenant { ("a", "no") } else { ("no", "a") };
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("the table {:?} has {has} tenant column, its entity wants {wants} one", table.name()),
            ));
        }
        table.check_own(E::own_columns())?;
        let shared = Shared {
            statements: Statements::new(database.dialect(), &table, E::own_columns())?,
            kinds: codec::kinds::<E>(by_tenant),
            by_tenant,
            table,
            database,
            clock,
        };
        Ok(Self { shared: Arc::new(shared), entity: PhantomData })
    }

    /// Root's sight: the rows of all tenants. Background work runs so.
    #[must_use]
    pub fn root(&self) -> Rows<E, Root> {
        Rows { shared: Arc::clone(&self.shared), tenant: None, entity: PhantomData }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &TableDef {
        &self.shared.table
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Arc<dyn Database> {
        &self.shared.database
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }
}

impl<E: OutboxEntity<Tenancy = ByTenant>> OutboxRepository<E> {
    /// One tenant's rows, and no others, in every call.
    #[must_use]
    pub fn scoped(&self, tenant: &TenantId) -> Rows<E, Tenant> {
        Rows { shared: Arc::clone(&self.shared), tenant: Some(tenant.clone()), entity: PhantomData }
    }
}

impl<E> Clone for OutboxRepository<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), entity: PhantomData }
    }
}

impl<E> fmt::Debug for OutboxRepository<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxRepository").field("table", &self.shared.table).finish_non_exhaustive()
    }
}

/// Marks root's sight of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Root;

/// Marks one tenant's sight of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Tenant;

/// The rows that a scope may see. `claim…`, `find_due` and settling exist only as [`Root`].
pub struct Rows<E, S> {
    shared: Arc<Shared>,
    tenant: Option<TenantId>,
    entity: PhantomData<fn() -> (E, S)>,
}

impl<E, S> Rows<E, S> {
    /// The tenant as the statements want it: null is root.
    fn tenant_value(&self) -> Value {
        self.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()).into()
    }

    /// An id as the table holds it.
    fn id_value(&self, id: OutboxId) -> Value {
        dialect::id_value(id.as_uuid(), self.shared.table.id_type())
    }

    /// A JSON list of rows for a batch statement.
    fn ids_batch(&self, ids: &[OutboxId]) -> Value {
        let batches = self.shared.statements.batches;
        let history = || OutboxId::new(&*self.shared.clock).as_uuid();
        let row = |id: &OutboxId| batches.row(IDS_BATCH, &[id.as_uuid().into(), history().into()]);
        let rows: Vec<_> = ids.iter().map(row).collect();
        serde_json::Value::from(rows).to_string().into()
    }
}

impl<E: OutboxEntity, S> Rows<E, S> {
    /// The columns that a query may name.
    fn columns(&self) -> Columns<'_> {
        Columns::new(self.shared.database.dialect(), &self.shared.table, E::own_columns())
    }

    /// What fills the texts of queries.
    fn template(&self) -> Template<'_> {
        Template::new(self.shared.database.dialect(), &self.shared.table, E::own_columns())
    }

    /// A query, checked, and within this scope.
    fn plan(&self, query: &Query) -> Result<Plan> {
        query.plan(&self.columns(), self.tenant.as_ref())
    }
}

impl<E, S> Clone for Rows<E, S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), tenant: self.tenant.clone(), entity: PhantomData }
    }
}

impl<E, S> fmt::Debug for Rows<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("table", &self.shared.table).field("tenant", &self.tenant).finish_non_exhaustive()
    }
}
