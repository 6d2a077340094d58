//! A query checked against an entity's columns: every name known, every value of its column's kind.

use std::borrow::Cow;

use super::{Asked, Cursor, Direction, Query};
use crate::error::{Error, Result};
use crate::model::text::refuse_nul;
use crate::model::{IdType, Kind, OutboxId, OutboxStatus, OwnColumn, TableDef, TenantId, Value, column};
use crate::store::Dialect;
use crate::store::dialect::id_value;
use crate::store::statements::{Bytes, Condition, Operand, Selection, Test};

/// The columns that one entity has in one table.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Columns<'a> {
    dialect: Dialect,
    table: &'a TableDef,
    own: &'a [OwnColumn],
}

impl<'a> Columns<'a> {
    pub(in crate::store) fn new(dialect: Dialect, table: &'a TableDef, own: &'a [OwnColumn]) -> Self {
        Self { dialect, table, own }
    }

    /// The column of that name: ours, the tenant's, or the application's.
    pub(in crate::store) fn named(&self, name: &str) -> Result<Operand> {
        if let Some(ours) = column::ALL.iter().find(|ours| ours.name == name) {
            let (kind, bytes) = match *ours {
                column::ID => (self.id_kind(), Bytes::Plain),
                column::DEDUPE_KEY | column::STATUS => (ours.kind, Bytes::Key),
                _ => (ours.kind, by_kind(ours.kind)),
            };
            return Ok(Operand { name: self.table.column(*ours).to_owned(), kind, nullable: ours.nullable, bytes });
        }
        if self.table.tenant() == Some(name) {
            return Ok(Operand { name: name.to_owned(), kind: Kind::Text, nullable: false, bytes: Bytes::Key });
        }
        let own = self.own.iter().find(|own| own.name == name).ok_or_else(|| self.unknown(name))?;
        Ok(Operand { name: name.to_owned(), kind: own.kind, nullable: own.nullable, bytes: by_kind(own.kind) })
    }

    /// The kind in which an id is read and bound.
    pub(in crate::store) fn id_kind(&self) -> Kind {
        match self.table.id_type() {
            IdType::Binary => Kind::Uuid,
            IdType::Text => Kind::Text,
        }
    }

    /// The condition that binds a tenant's scope; an error where the table has no tenant.
    pub(in crate::store) fn scope(&self, tenant: &TenantId) -> Result<Condition> {
        let column = self.table.tenant().ok_or_else(|| Error::invalid("the table has no tenant column"))?;
        Ok(Condition { column: self.named(column)?, test: Test::Equal, values: vec![tenant.as_str().into()] })
    }

    /// A condition on the status.
    pub(in crate::store) fn status(&self, test: Test, status: OutboxStatus) -> Result<Condition> {
        Ok(Condition { column: self.named(column::STATUS.name)?, test, values: vec![status.into()] })
    }

    fn unknown(&self, name: &str) -> Error {
        let ours = column::ALL.iter().map(|column| column.name);
        let known: Vec<_> = ours.chain(self.table.tenant()).chain(self.own.iter().map(|own| own.name)).collect();
        Error::invalid(format!("there is no column {name:?}; the columns are {}", known.join(", ")))
    }

    fn condition(&self, asked: &Asked) -> Result<Condition> {
        let Asked { column: name, test, values } = asked;
        let operand = self.named(name)?;
        // Ids are UUIDs in a query, however they are stored.
        let kind = if name == column::ID.name { Kind::Uuid } else { operand.kind };
        let null = Value::null(kind);
        let test = match (test, values.as_slice()) {
            (Test::Equal, [value]) if *value == null => Test::Null,
            (Test::NotEqual, [value]) if *value == null => Test::NotNull,
            (test, values) if values.contains(&null) => {
                let how = if *test == Test::In { "is one of several" } else { "is less or more" };
                return Err(Error::invalid(format!(
                    "whether the column {name:?} {how} cannot be asked with a null; use is_null or not_null"
                )));
            }
            (test, _) => *test,
        };
        let values = if matches!(test, Test::Null | Test::NotNull) { &[] } else { values.as_slice() };
        let values = values.iter().map(|value| self.checked(name, kind, value)).collect::<Result<_>>()?;
        Ok(Condition { column: operand, test, values })
    }

    /// The value as it is bound.
    fn checked(&self, name: &str, kind: Kind, value: &Value) -> Result<Value> {
        if value.kind() != Some(kind) {
            let given = value.kind().map_or_else(|| "one that cannot be stored".to_owned(), |kind| format!("{kind:?}"));
            return Err(Error::invalid(format!(
                "the column {name:?} is compared with values of the kind {kind:?}, not {given}"
            )));
        }
        if matches!(value, Value::Float(Some(number)) if !number.is_finite()) {
            return Err(Error::invalid(format!("the column {name:?} is compared with a number that no row can store")));
        }
        if let Value::Text(Some(text)) = value {
            refuse_nul(&format!("value for the column {name:?}"), text)?;
            if name == column::STATUS.name && !OutboxStatus::ALL.iter().any(|status| status.as_str() == text) {
                let all = OutboxStatus::ALL.map(OutboxStatus::as_str).join(", ");
                return Err(Error::invalid(format!("{text:?} is no status; there are {all}")));
            }
        }
        Ok(match value {
            Value::Uuid(Some(id)) if name == column::ID.name => id_value(*id, self.table.id_type()),
            value => value.clone(),
        })
    }

    /// The order, and what it is called in a cursor.
    fn order(&self, asked: &[(Cow<'static, str>, Direction)]) -> Result<(Vec<(Operand, Direction)>, String)> {
        let id = column::ID.name;
        let mut items: Vec<(&str, Direction)> = asked.iter().map(|(name, way)| (name.as_ref(), *way)).collect();
        if items.is_empty() && self.dialect == Dialect::Sqlite {
            let row = Operand { name: ROW_NUMBER.to_owned(), kind: Kind::Int, nullable: false, bytes: Bytes::Plain };
            return Ok((vec![(row, Direction::Descending)], "newest row".to_owned()));
        }
        // What comes behind the id decides nothing.
        match items.iter().position(|(name, _)| *name == id) {
            Some(at) => items.truncate(at + 1),
            None => items.push((id, items.last().map_or(Direction::Descending, |(_, way)| *way))),
        }
        let signs: Vec<_> = items.iter().map(|(name, way)| format!("{}{name}", sign(*way))).collect();
        let order = items.iter().map(|(name, way)| Ok((self.named(name)?, *way))).collect::<Result<_>>()?;
        Ok((order, signs.join(" ")))
    }
}

/// SQLite's own number of a row, which grows with every one that is written.
const ROW_NUMBER: &str = "rowid";

/// How a column compares of which no more is known than its kind.
fn by_kind(kind: Kind) -> Bytes {
    match kind {
        Kind::Text => Bytes::Free,
        Kind::Bytes => Bytes::Raw,
        Kind::Bool | Kind::Int | Kind::Uuid | Kind::Time | Kind::Float => Bytes::Plain,
    }
}

fn sign(direction: Direction) -> char {
    match direction {
        Direction::Ascending => '+',
        Direction::Descending => '-',
    }
}

/// A query as the statements take it.
#[derive(Debug, Clone)]
pub(in crate::store) struct Plan {
    pub(in crate::store) selection: Selection,
    order: String,
}

impl Plan {
    /// The kinds of a row's place in the order.
    pub(in crate::store) fn kinds(&self) -> Vec<Kind> {
        self.selection.order.iter().map(|(column, _)| column.kind).collect()
    }

    /// The place of a row, by the values that were read of it.
    pub(in crate::store) fn cursor(&self, place: &[Value], row: Option<OutboxId>) -> Result<Cursor> {
        Cursor::at(&self.order, place, row)
    }
}

impl Query {
    /// The query for an entity's columns, within a tenant's scope if there is one.
    pub(in crate::store) fn plan(&self, columns: &Columns<'_>, tenant: Option<&TenantId>) -> Result<Plan> {
        if let Some(fault) = &self.fault {
            return Err(Error::invalid(fault.clone()));
        }
        if self.limit == Some(0) {
            return Err(Error::invalid("the limit is 0 rows; it must be at least 1"));
        }
        let values: usize = self.conditions.iter().map(|asked| asked.values.len()).sum();
        if values > Self::MAX_VALUES {
            return Err(Error::invalid(format!(
                "the query compares with {values} values; at most {} are allowed",
                Self::MAX_VALUES
            )));
        }
        let scope = tenant.map(|tenant| columns.scope(tenant));
        let asked = self.conditions.iter().map(|asked| columns.condition(asked));
        let conditions = scope.into_iter().chain(asked).collect::<Result<_>>()?;
        let (order, name) = columns.order(&self.order)?;
        let after = self.after.as_ref().map(|cursor| cursor.place(&name, &order)).transpose()?;
        Ok(Plan { selection: Selection { conditions, order, after, limit: self.limit }, order: name })
    }

    /// As [`Self::plan`], for what has neither order nor number of rows: it goes through the rows
    /// by an index, a tenant's by its keys and all by their ids.
    pub(in crate::store) fn conditions_alone(&self, columns: &Columns<'_>, tenant: Option<&TenantId>) -> Result<Plan> {
        if self.limit.is_some() || self.after.is_some() || !self.order.is_empty() {
            return Err(Error::invalid("a delete takes conditions only: no order, no limit, no place to go on from"));
        }
        let mut plan = self.plan(columns, tenant)?;
        let by = if tenant.is_some() { column::DEDUPE_KEY } else { column::ID };
        // The index may have any collation: only one that it has itself goes along it.
        let by = Operand { bytes: Bytes::Plain, ..columns.named(by.name)? };
        plan.selection.order = vec![(by, Direction::Ascending)];
        Ok(plan)
    }

    /// As [`Self::plan`], for going through all rows: without an order of its own, along the rows
    /// and not the tenant's index, whose rows would have to be sorted anew for each page.
    pub(in crate::store) fn walk(&self, columns: &Columns<'_>, tenant: Option<&TenantId>) -> Result<Plan> {
        let mut plan = self.plan(columns, tenant)?;
        if let Some(scope) = plan.selection.conditions.first_mut().filter(|_| tenant.is_some() && self.order.is_empty())
        {
            scope.test = Test::EqualInPassing;
        }
        Ok(plan)
    }

    /// How many rows it asks for.
    pub(in crate::store) fn asked_limit(&self) -> Option<usize> {
        self.limit
    }
}
