//! The application's own entity: its struct, its table, with our row embedded.
//!
//! The library is generic over it and owns no table. Source: contract C1.6, C6.

use std::fmt::Debug;

use super::{OutboxRow, OutboxView, OwnColumn, TableDef, TenantId, Value};
use crate::error::Result;

/// Whether an entity's rows belong to tenants: a property of the entity. Source: contract C6.3.
pub trait Tenancy: Debug + Send + Sync + 'static {
    /// Whether the table has a tenant column.
    const BY_TENANT: bool;
}

/// The entity has a tenant column; a caller must choose one tenant's rows, or root's sight of all.
#[derive(Debug, Clone, Copy)]
pub struct ByTenant;

/// The entity has no tenant column; everything is global.
#[derive(Debug, Clone, Copy)]
pub struct Ownership;

impl Tenancy for ByTenant {
    const BY_TENANT: bool = true;
}

impl Tenancy for Ownership {
    const BY_TENANT: bool = false;
}

/// A struct of the application that embeds an [`OutboxRow`] and knows its table.
///
/// The derive macro of the same name (feature `derive`) writes all of it from the struct.
pub trait OutboxEntity: Clone + Debug + Send + Sync + 'static {
    /// [`ByTenant`] or [`Ownership`].
    type Tenancy: Tenancy;

    /// The default table of this entity; the configuration can give another.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a name is no identifier.
    fn table() -> Result<TableDef>;

    /// The columns of the application's own.
    fn own_columns() -> &'static [OwnColumn];

    /// The embedded row.
    fn row(&self) -> &OutboxRow;

    /// Whose row it is; [`TenantId::root`] for an ownership entity, which need not say so.
    ///
    /// An entity that is [`ByTenant`] and forgets it does not build:
    ///
    /// ```compile_fail,E0080
    /// # use postrider::model::{ByTenant, OutboxEntity, OutboxRow, OwnColumn, TableDef, TenantId, Value};
    /// # use postrider::Result;
    /// # #[derive(Debug, Clone)]
    /// # struct Mail(OutboxRow);
    /// impl OutboxEntity for Mail {
    ///     type Tenancy = ByTenant;
    ///     // … everything but `tenant`
    /// #   fn table() -> Result<TableDef> { TableDef::new("mail")?.with_tenant("tenant_id") }
    /// #   fn own_columns() -> &'static [OwnColumn] { &[] }
    /// #   fn row(&self) -> &OutboxRow { &self.0 }
    /// #   fn own_values(&self) -> Vec<Value> { Vec::new() }
    /// #   fn assemble(row: OutboxRow, _: TenantId, _: Vec<Value>) -> Result<Self> { Ok(Self(row)) }
    /// }
    /// # fn whose(mail: &Mail) -> &TenantId { mail.tenant() }
    /// # fn main() { let _: fn(&Mail) -> &TenantId = whose; }
    /// ```
    fn tenant(&self) -> &TenantId {
        const { assert!(!Self::Tenancy::BY_TENANT, "an entity with a tenant column says whose its rows are: `tenant()`") }
        TenantId::root()
    }

    /// The values of the own columns, in the order of [`Self::own_columns`].
    ///
    /// A value that its column cannot hold (NaN, null where none may stand, another kind, more or
    /// fewer values than columns) is refused with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid)
    /// before anything is written.
    fn own_values(&self) -> Vec<Value>;

    /// Puts a stored row together again; `own` is in the order of [`Self::own_columns`].
    /// [`OwnValues`](super::OwnValues) takes it apart. A panic is caught, and is this row's failure.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`](crate::ErrorKind::Decode) if a value of the own columns is unusable.
    fn assemble(row: OutboxRow, tenant: TenantId, own: Vec<Value>) -> Result<Self>;

    /// The read-only sight of the row.
    fn view(&self) -> OutboxView<'_> {
        OutboxView::new(self.row(), self.tenant())
    }
}

/// The ready-made entity, for the daemon and for a first try: our columns and a tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct NotificationRow {
    /// The embedded row.
    pub row: OutboxRow,
    /// Whose it is.
    pub tenant_id: TenantId,
}

impl OutboxEntity for NotificationRow {
    type Tenancy = ByTenant;

    fn table() -> Result<TableDef> {
        TableDef::new("postrider_outbox")?.with_tenant("tenant_id")
    }

    fn own_columns() -> &'static [OwnColumn] {
        &[]
    }

    fn row(&self) -> &OutboxRow {
        &self.row
    }

    fn tenant(&self) -> &TenantId {
        &self.tenant_id
    }

    fn own_values(&self) -> Vec<Value> {
        Vec::new()
    }

    fn assemble(row: OutboxRow, tenant_id: TenantId, _own: Vec<Value>) -> Result<Self> {
        Ok(Self { row, tenant_id })
    }
}

/// The ready-made entity of a table without tenants: our columns alone.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemRow {
    /// The embedded row.
    pub row: OutboxRow,
}

impl OutboxEntity for SystemRow {
    type Tenancy = Ownership;

    fn table() -> Result<TableDef> {
        TableDef::new("postrider_outbox")
    }

    fn own_columns() -> &'static [OwnColumn] {
        &[]
    }

    fn row(&self) -> &OutboxRow {
        &self.row
    }

    fn own_values(&self) -> Vec<Value> {
        Vec::new()
    }

    fn assemble(row: OutboxRow, _: TenantId, _own: Vec<Value>) -> Result<Self> {
        Ok(Self { row })
    }
}
