//! Where the application keeps its rows: the table as a value.
//!
//! The library owns no table and hard-codes no name. Source: contract C1.6.

use std::collections::BTreeMap;

use super::{OwnColumn, column};
use crate::error::{Error, ErrorKind, Result};

/// How the ids of a table's rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IdType {
    /// As 16 bytes: `uuid` on PostgreSQL, `BINARY(16)` on MariaDB and MySQL, a blob on SQLite.
    #[default]
    Binary,
    /// As text of 36 characters, in lower case and with hyphens: `CHAR(36)`.
    Text,
}

/// An application's outbox table: schema, name, tenant column and renamed columns.
///
/// Identifiers are ASCII letters, digits and `_`, begin with no digit, and are at most
/// [`TableDef::MAX_NAME`] bytes long, so that the companion tables' names fit too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDef {
    schema: Option<String>,
    name: String,
    tenant: Option<String>,
    id_type: IdType,
    attempts: Option<String>,
    renames: BTreeMap<&'static str, String>,
}

impl TableDef {
    /// Most bytes of a table's name: PostgreSQL cuts at 63, and indexes add up to 16.
    pub const MAX_NAME: usize = 47;

    /// A table of that name, without a tenant column.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the name is no plain identifier.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        identifier("table", &name)?;
        if name.len() > Self::MAX_NAME {
            return Err(refused("table", &name, "is too long"));
        }
        Ok(Self {
            schema: None,
            name,
            tenant: None,
            id_type: IdType::default(),
            attempts: None,
            renames: BTreeMap::new(),
        })
    }

    /// Puts the table into a schema.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if it is no plain identifier.
    pub fn in_schema(mut self, schema: impl Into<String>) -> Result<Self> {
        let schema = schema.into();
        identifier("schema", &schema)?;
        self.schema = Some(schema);
        Ok(self)
    }

    /// Names the tenant column; without one the entity is an ownership entity.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if it is no plain identifier, or one of our columns.
    pub fn with_tenant(mut self, column: impl Into<String>) -> Result<Self> {
        let column = column.into();
        identifier("tenant column", &column)?;
        if self.takes(&column) {
            return Err(refused("tenant column", &column, "is the name of another column"));
        }
        self.tenant = Some(column);
        Ok(self)
    }

    /// Gives the companion table that keeps the history of attempts another name than the table's own
    /// with `_attempt` behind it.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the name is no plain identifier, is too long, or is the table's.
    pub fn with_attempt_table(mut self, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        identifier("attempt table", &name)?;
        if name.len() > Self::MAX_NAME {
            return Err(refused("attempt table", &name, "is too long"));
        }
        if same(&name, &self.name) {
            return Err(refused("attempt table", &name, "is the name of the table itself"));
        }
        self.attempts = Some(name);
        Ok(self)
    }

    /// Says how the ids are stored, here and in the companion tables.
    #[must_use]
    pub fn with_id_type(mut self, id_type: IdType) -> Self {
        self.id_type = id_type;
        self
    }

    /// Gives one of our columns another name (`created_at` → `created_date`).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if there is no such column, or the new name is taken or no
    /// plain identifier.
    pub fn rename(mut self, column: &str, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let ours = column::named(column).ok_or_else(|| refused("column", column, "is none of the outbox row's"))?;
        identifier("column", &name)?;
        let others = column::ALL.iter().filter(|other| other.name != ours.name).map(|other| self.column(*other));
        if others.chain(self.tenant()).any(|other| same(other, &name)) {
            return Err(refused("column", &name, "is the name of another column"));
        }
        self.renames.insert(ours.name, name);
        Ok(self)
    }

    /// Checks the names of the application's own columns against all others.
    pub(crate) fn check_own(&self, own: &[OwnColumn]) -> Result<()> {
        for (index, column) in own.iter().enumerate() {
            identifier("column", column.name)?;
            if self.takes(column.name) || own[..index].iter().any(|before| same(before.name, column.name)) {
                return Err(refused("column", column.name, "is the name of another column"));
            }
        }
        Ok(())
    }

    fn takes(&self, name: &str) -> bool {
        let ours = column::ALL.iter().chain(column::GENERATED).map(|ours| self.column(*ours));
        ours.chain(self.tenant()).any(|other| same(other, name))
    }

    /// The table's bare name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table's schema, if it has one of its own.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The tenant column, if there is one.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// How the ids are stored.
    #[must_use]
    pub fn id_type(&self) -> IdType {
        self.id_type
    }

    /// The name that one of our columns has in this table.
    #[must_use]
    pub fn column(&self, column: column::Column) -> &str {
        self.renames.get(column.name).map_or(column.name, String::as_str)
    }

    /// The bare name of the companion table that keeps the history of attempts.
    #[must_use]
    pub fn attempt_name(&self) -> String {
        self.attempts.clone().unwrap_or_else(|| format!("{}_attempt", self.name))
    }

    /// The bare name of the function that writes a row, where the database has such functions:
    /// `postrider_enqueue` for the ready-made table `postrider_outbox`, `<table>_enqueue` for any other.
    #[must_use]
    pub fn enqueue_name(&self) -> String {
        let stem = if self.name == "postrider_outbox" { "postrider" } else { &self.name };
        format!("{stem}_enqueue")
    }

    /// The bare name of the companion table that keeps the versions of the schema.
    #[must_use]
    pub fn version_name(&self) -> String {
        format!("{}_schema", self.name)
    }
}

/// How the names inside the statements begin; a column that began so could be taken for one.
pub(crate) const RESERVED: &str = "pr_";

/// Whether two columns cannot stand in one table: SQLite tells no upper from lower case.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn identifier(what: &str, name: &str) -> Result<()> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if name.is_empty() || name.len() > 63 || !plain || name.as_bytes()[0].is_ascii_digit() {
        return Err(refused(what, name, "must be 1 to 63 ASCII letters, digits or '_', not beginning with a digit"));
    }
    if name.get(..RESERVED.len()).is_some_and(|start| same(start, RESERVED)) {
        return Err(refused(what, name, "begins with \"pr_\", which the statements keep for themselves"));
    }
    Ok(())
}

fn refused(what: &str, name: &str, why: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("the {what} name {name:?} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_plain_identifiers_are_refused() {
        for bad in ["", "pr_row_id", "PR_row_id", "1st", "a b", "a\"b", "a;drop", "ä", &"x".repeat(48)] {
            assert_eq!(TableDef::new(bad).unwrap_err().kind(), ErrorKind::Configuration, "{bad:?}");
        }
        assert!(TableDef::new("x".repeat(47)).is_ok());
    }

    #[test]
    fn two_columns_never_share_a_name() {
        let table = TableDef::new("mail").unwrap().with_tenant("org").unwrap();
        assert!(table.clone().rename("created_at", "org").is_err());
        assert!(table.clone().rename("created_at", "updated_at").is_err());
        assert!(table.clone().rename("created_at", "Updated_At").is_err());
        assert!(table.clone().rename("no_such", "x").is_err());
        assert!(table.clone().rename("created_at", "CREATED_AT").is_ok());
        let table = table.rename("created_at", "created_date").unwrap();
        assert_eq!(table.column(column::CREATED_AT), "created_date");
    }
}
