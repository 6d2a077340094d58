//! Fills a statement's template for one table and dialect.

use super::fragment::Batches;
use super::settle::SETTLE_BATCH;
use super::statement::Statement;
use super::write::{ATTEMPT_BATCH, IDS_BATCH};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{IdType, Kind, OwnColumn, TableDef, column};
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

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn batches(&self) -> Batches {
        Batches { dialect: self.dialect, ids: self.table.id_type() }
    }

    /// All columns in reading and writing order, quoted: ours, the tenant, the application's own.
    pub(crate) fn columns(&self) -> Vec<String> {
        let ours = column::ALL.iter().map(|c| self.table.column(*c));
        let own = self.own.iter().map(|c| c.name);
        ours.chain(self.table.tenant()).chain(own).map(|name| self.dialect.quoted(name)).collect()
    }

    /// The statement with every `{…}` and `?n` replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Database`] if a template names something unknown.
    pub(crate) fn fill(&self, template: &str) -> Result<Statement> {
        self.filled(template, self.dialect == Dialect::Mysql)
    }

    /// As [`Self::fill`], for texts with any number of values: SQLite looks every numbered one up
    /// among all before it.
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub(super) fn fill_in_place(&self, template: &str) -> Result<Statement> {
        self.filled(template, self.dialect != Dialect::Postgres)
    }

    fn filled(&self, template: &str, by_place: bool) -> Result<Statement> {
        // The templates are laid out for people; the database gets one line.
        let named = self.expand(template)?.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = String::with_capacity(named.len());
        let mut places = Vec::new();
        let mut rest = named.as_str();
        while let Some(at) = rest.find('?') {
            text.push_str(&rest[..at]);
            let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest[at + 1..].split_at(digits);
            places.push(number.parse().map_err(|_| broken(&rest[at..]))?);
            match self.dialect {
                _ if by_place => text.push('?'),
                Dialect::Postgres => text.extend(["$", number]),
                Dialect::Sqlite | Dialect::Mysql => text.extend(["?", number]),
            }
            rest = after;
        }
        text.push_str(rest);
        if self.dialect == Dialect::Mysql {
            text = text.replace('"', "`");
        }
        Ok(Statement { text: text.into(), places: by_place.then(|| places.into()) })
    }

    /// The text with every `{…}` replaced, those inside of what it stands for too.
    fn expand(&self, template: &str) -> Result<String> {
        let mut out = String::with_capacity(template.len() + 200);
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            let end = rest[at..].find('}').map(|length| at + length).ok_or_else(|| broken(&rest[at..]))?;
            out.push_str(&self.named(&rest[at + 1..end])?);
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    fn named(&self, name: &str) -> Result<String> {
        let mysql = self.dialect == Dialect::Mysql;
        Ok(match name {
            "table" => self.qualified(self.table.name()),
            "attempt" => self.qualified(&self.table.attempt_name()),
            "columns" => self.columns().join(", "),
            // The claim index's predicate and the time that leads it.
            "claimable" => self.expand(if mysql { "{due_at} IS NOT NULL" } else { super::CLAIMABLE })?,
            "due" => self.expand(if mysql { "{due_at}" } else { "{next_attempt_at}" })?,
            // The same for the few rows that lost their worker twice.
            "lost" => self.expand(if mysql { "{lost_at} IS NOT NULL" } else { super::LOST })?,
            "lost_due" => self.expand(if mysql { "{lost_at}" } else { "{next_attempt_at}" })?,
            "settle_batch" => self.batches().source(1, SETTLE_BATCH),
            "attempt_batch" => self.batches().source(1, ATTEMPT_BATCH),
            "ids_batch(0)" => self.batches().source(super::statement::PICKED, &IDS_BATCH[..1]),
            "ids_batch(1)" => self.batches().source(1, IDS_BATCH),
            "ids_batch(4)" => self.batches().source(4, IDS_BATCH),
            "id_text" => self.id_text()?,
            "tenant" => self.dialect.quoted(self.table.tenant().ok_or_else(|| broken(name))?),
            // True for root (the value is null); otherwise the row must be the tenant's.
            "in_scope(?2)" => self.in_scope(2),
            _ => match name.strip_prefix("v.") {
                Some(of_batch) => self.batches().value(of_batch, kind_of(of_batch)),
                None => {
                    let column = column::named(name).ok_or_else(|| broken(name))?;
                    self.dialect.quoted(self.table.column(column))
                }
            },
        })
    }

    /// A row's id as the text that a batch holds of it.
    fn id_text(&self) -> Result<String> {
        self.expand(match self.table.id_type() {
            IdType::Binary => "HEX(o.{id})",
            IdType::Text => "o.{id}",
        })
    }

    fn in_scope(&self, n: usize) -> String {
        let unset = self.unset(n);
        match self.table.tenant() {
            Some(tenant) => format!("({unset} OR {} = ?{n})", self.dialect.quoted(tenant)),
            None => unset,
        }
    }

    /// Whether a text is null. PostgreSQL must be told the type of a value that it cannot infer.
    fn unset(&self, n: usize) -> String {
        match self.dialect {
            Dialect::Sqlite | Dialect::Postgres => format!("CAST(?{n} AS TEXT) IS NULL"),
            Dialect::Mysql => format!("?{n} IS NULL"),
        }
    }

    fn qualified(&self, name: &str) -> String {
        match self.table.schema() {
            Some(schema) => format!("{}.{}", self.dialect.quoted(schema), self.dialect.quoted(name)),
            None => self.dialect.quoted(name),
        }
    }
}

/// The kind of a batch's column.
fn kind_of(name: &str) -> Kind {
    let all = [IDS_BATCH, ATTEMPT_BATCH, SETTLE_BATCH];
    all.concat().iter().find(|(known, _)| *known == name).map_or(Kind::Text, |(_, kind)| *kind)
}

fn broken(at: &str) -> Error {
    Error::new(ErrorKind::Database, format!("a statement's template is broken at {at:?}"))
}
