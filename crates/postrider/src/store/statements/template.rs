//! Fills a statement's template for one table and dialect.

use std::sync::Arc;

use super::fragment::batch;
use super::settle::SETTLE_BATCH;
use super::write::{ATTEMPT_BATCH, IDS_BATCH};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{OwnColumn, TableDef, column};
use crate::store::Dialect;

/// One table in one dialect, ready to fill templates.
pub(crate) struct Template<'a> {
    dialect: Dialect,
    table: &'a TableDef,
    own: &'a [OwnColumn],
}

impl<'a> Template<'a> {
    pub(crate) fn new(dialect: Dialect, table: &'a TableDef, own: &'a [OwnColumn]) -> Self {
        Self { dialect, table, own }
    }

    /// All columns in reading and writing order, quoted: ours, the tenant, the application's own.
    pub(crate) fn columns(&self) -> Vec<String> {
        let ours = column::ALL.iter().map(|c| self.table.column(*c));
        let own = self.own.iter().map(|c| c.name);
        ours.chain(self.table.tenant()).chain(own).map(|name| self.dialect.quoted(name)).collect()
    }

    /// The text with every `{…}` and `?n` replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Database`] if a template names something unknown.
    pub(crate) fn fill(&self, template: &str) -> Result<Arc<str>> {
        // `{claimable}` and its like stand for templates of their own: filled first.
        let template = template.replace("{claimable}", super::CLAIMABLE);
        let mut out = String::with_capacity(template.len() + 200);
        let mut rest = template.as_str();
        while let Some(at) = rest.find(['{', '?']) {
            out.push_str(&rest[..at]);
            if rest.as_bytes()[at] == b'?' {
                let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
                let end = at + 1 + digits;
                let n = rest[at + 1..end].parse().map_err(|_| broken(&rest[at..]))?;
                out.push_str(&self.dialect.placeholder(n));
                rest = &rest[end..];
            } else {
                let end = rest[at..].find('}').map(|length| at + length).ok_or_else(|| broken(&rest[at..]))?;
                out.push_str(&self.named(&rest[at + 1..end])?);
                rest = &rest[end + 1..];
            }
        }
        out.push_str(rest);
        // The templates are laid out for people; the database gets one line.
        Ok(out.split_whitespace().collect::<Vec<_>>().join(" ").into())
    }

    fn named(&self, name: &str) -> Result<String> {
        Ok(match name {
            "table" => self.qualified(self.table.name()),
            "attempt" => self.qualified(&self.table.attempt_name()),
            "columns" => self.columns().join(", "),
            "settle_batch" => batch(self.dialect, 1, SETTLE_BATCH),
            "attempt_batch" => batch(self.dialect, 1, ATTEMPT_BATCH),
            "ids_batch" => batch(self.dialect, 1, IDS_BATCH),
            "ids_batch(4)" => batch(self.dialect, 4, IDS_BATCH),
            "bare_table" => self.dialect.quoted(self.table.name()),
            "tenant" => self.dialect.quoted(self.table.tenant().ok_or_else(|| broken(name))?),
            // True for root (the value is null); otherwise the row must be the tenant's.
            "in_scope(?2)" => self.in_scope(2),
            "in_scope(?3)" => self.in_scope(3),
            _ => {
                let column = column::named(name).ok_or_else(|| broken(name))?;
                self.dialect.quoted(self.table.column(column))
            }
        })
    }

    fn in_scope(&self, n: usize) -> String {
        let place = self.dialect.placeholder(n);
        match self.table.tenant() {
            Some(tenant) => format!("(CAST({place} AS TEXT) IS NULL OR {} = {place})", self.dialect.quoted(tenant)),
            None => format!("CAST({place} AS TEXT) IS NULL"),
        }
    }

    fn qualified(&self, name: &str) -> String {
        match self.table.schema() {
            Some(schema) => format!("{}.{}", self.dialect.quoted(schema), self.dialect.quoted(name)),
            None => self.dialect.quoted(name),
        }
    }
}

fn broken(at: &str) -> Error {
    Error::new(ErrorKind::Database, format!("a statement's template is broken at {at:?}"))
}
