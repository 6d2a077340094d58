//! What is asked of the rows: conditions, an order, how many, and where to go on.
//!
//! A plain value, which knows no table: names and kinds are checked when it is used, before any
//! SQL is made of it. It never widens a scope: the tenant's is added to whatever it asks.

mod cursor;
mod plan;

use std::borrow::Cow;

pub use cursor::Cursor;
pub(super) use plan::{Columns, Plan};

use super::codec;
use super::statements::Test;
use crate::error::Result;
use crate::model::{OutboxEntity, Value, column};

/// Which way a column sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The least first.
    Ascending,
    /// The greatest first.
    Descending,
}

/// Which rows are meant, in which order; all rows, newest first, to begin with.
///
/// Columns go by name: ours by their default names (`status`, also where the table calls it
/// otherwise), the tenant column and the application's own by the names that the table has. A
/// name that the entity does not have, or a value of another kind than the column's, is refused
/// ([`ErrorKind::Invalid`](crate::ErrorKind::Invalid)) by whatever the query is handed to, before
/// the database sees anything.
///
/// All conditions must hold. They mean the same on every database: text is compared byte by byte
/// (letter case, accents and trailing blanks count), and so are ids; `false` is less than `true`. A
/// row whose column is null meets no condition on it but [`Self::is_null`]. JSON columns are
/// compared as the text that is stored.
///
/// ```
/// use postrider::model::OutboxStatus;
/// use postrider::store::{Direction, Query};
///
/// let query = Query::new()
///     .is_in("status", [OutboxStatus::Dead, OutboxStatus::Failed])
///     .eq("channel", "email")
///     .ge("attempts", 3)
///     .order_by("created_at", Direction::Ascending)
///     .limit(50);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Query {
    conditions: Vec<Asked>,
    order: Vec<(Cow<'static, str>, Direction)>,
    limit: Option<usize>,
    after: Option<Cursor>,
    /// What was wrong with it from the start.
    fault: Option<String>,
}

/// A condition as it was asked for.
#[derive(Debug, Clone)]
struct Asked {
    column: Cow<'static, str>,
    test: Test,
    values: Vec<Value>,
}

impl Query {
    /// Most values in the conditions of one query; [`Self::is_in`] takes each of its own.
    pub const MAX_VALUES: usize = 10_000;

    /// All rows, newest first.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows whose column is this value; a null value asks as [`Self::is_null`] does.
    #[must_use]
    pub fn eq(self, column: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.asked(column, Test::Equal, [value])
    }

    /// Rows whose column is another value, and not null; a null value asks as [`Self::not_null`] does.
    #[must_use]
    pub fn ne(self, column: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.asked(column, Test::NotEqual, [value])
    }

    /// Rows whose column is less than this value, which may not be null.
    #[must_use]
    pub fn lt(self, column: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.asked(column, Test::Less, [value])
    }

    /// Rows whose column is this value or less; it may not be null.
    #[must_use]
    pub fn le(self, column: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.asked(column, Test::LessOrEqual, [value])
    }

    /// Rows whose column is more than this value, which may not be null.
    #[must_use]
    pub fn gt(self, column: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.asked(column, Test::Greater, [value])
    }

    /// Rows whose column is this value or more; it may not be null.
    #[must_use]
    pub fn ge(self, column: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.asked(column, Test::GreaterOrEqual, [value])
    }

    /// Rows whose column is null.
    #[must_use]
    pub fn is_null(self, column: impl Into<Cow<'static, str>>) -> Self {
        self.asked(column, Test::Null, [] as [Value; 0])
    }

    /// Rows whose column is not null.
    #[must_use]
    pub fn not_null(self, column: impl Into<Cow<'static, str>>) -> Self {
        self.asked(column, Test::NotNull, [] as [Value; 0])
    }

    /// Rows whose column is one of these values; of none, no row. Nulls among them are refused.
    #[must_use]
    pub fn is_in<V: Into<Value>>(
        self,
        column: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.asked(column, Test::In, values)
    }

    /// Rows like the probe in these columns, at least one: equal to its value, or null where its
    /// value is null. What the probe holds in other columns does not count.
    ///
    /// The probe's tenant is one of its values, named like the table's tenant column.
    #[must_use]
    pub fn matching<E: OutboxEntity>(mut self, probe: &E, columns: &[&str]) -> Self {
        if columns.is_empty() {
            self.fault = Some("a query by example names no column to compare".to_owned());
        }
        match example(probe, columns) {
            Ok(asked) => self.conditions.extend(asked),
            Err(error) => self.fault = Some(format!("the example cannot be compared with: {error}")),
        }
        self
    }

    /// Newest first, as without any order. On PostgreSQL, MariaDB and MySQL that is the highest id
    /// first: a version 7 id holds the time. On SQLite it is the row that was written last.
    ///
    /// The cheapest order for many rows: each page is one range of an index, from which the rows
    /// that the conditions leave out are dropped.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.order.clear();
        self
    }

    /// By this column, and where earlier ones are equal; in the end by id, in the direction of the
    /// last column, so that every order is total.
    ///
    /// Nulls stand last in both directions. Text sorts byte by byte, by its first 200 characters
    /// (keys and tenants whole); bytes by as many of them. Without an index of the application's own, each page sorts all
    /// rows that meet the conditions.
    #[must_use]
    pub fn order_by(mut self, column: impl Into<Cow<'static, str>>, direction: Direction) -> Self {
        self.order.push((column.into(), direction));
        self
    }

    /// At most so many rows, at least one.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Only rows behind this place, which a page of the same order gave.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    fn asked<V: Into<Value>>(
        mut self,
        column: impl Into<Cow<'static, str>>,
        test: Test,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.conditions.push(Asked { column: column.into(), test, values });
        self
    }
}

/// The conditions of a query by example.
fn example<E: OutboxEntity>(probe: &E, columns: &[&str]) -> Result<Vec<Asked>> {
    let table = E::table()?;
    let values = codec::encode(probe, &table)?;
    let ours = column::ALL.iter().map(|column| column.name);
    // No column of the table's is called so: the tenant's real name may be another than here.
    let tenant = table.tenant().map(|_| "");
    let names: Vec<_> = ours.chain(tenant).chain(E::own_columns().iter().map(|column| column.name)).collect();
    let value = |name: &str| match names.iter().position(|known| *known == name).and_then(|at| values.get(at)) {
        _ if name == column::ID.name => probe.row().id.into(),
        Some(value) => value.clone(),
        None => probe.tenant().as_str().into(),
    };
    let asked = columns.iter().map(|name| Asked {
        column: Cow::Owned((*name).to_owned()),
        test: Test::Equal,
        values: vec![value(name)],
    });
    Ok(asked.collect())
}
