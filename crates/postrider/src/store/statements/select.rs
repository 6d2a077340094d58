//! Reading the rows that a query selects: its conditions, its order, and the place to go on from.
//!
//! The only texts that are made anew for each call, since they depend on what is asked. Every
//! value is bound; a scope is a condition like any other, and stands first.

use super::operand::{Bytes, Operand};
use super::statement::Statement;
use super::template::Template;
use crate::error::Result;
use crate::model::{Timestamp, Value};
use crate::store::Dialect;
use crate::store::query::Direction;

/// What a condition asks of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    /// Equal to the value.
    Equal,
    /// Equal to the value, which is no reason to leave the order of the rows for an index: most
    /// rows, or all, are passed anyway.
    EqualInPassing,
    /// Another than the value.
    NotEqual,
    /// Before the value.
    Less,
    /// The value, or before it.
    LessOrEqual,
    /// After the value.
    Greater,
    /// The value, or after it.
    GreaterOrEqual,
    /// One of the values.
    In,
    /// Null.
    Null,
    /// Not null.
    NotNull,
}

/// One condition on one column.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub(crate) column: Operand,
    pub(crate) test: Test,
    /// One value; any number for [`Test::In`], none for the tests for null. Never a null.
    pub(crate) values: Vec<Value>,
}

/// Which rows, in which order, from where on, and how many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) conditions: Vec<Condition>,
    /// Ends with a column that is unique and never null.
    pub(crate) order: Vec<(Operand, Direction)>,
    /// Only rows behind this place: a value for each column of the order.
    pub(crate) after: Option<Vec<Value>>,
    pub(crate) limit: Option<usize>,
}

/// A text and what is bound in it.
pub(crate) type Bound = (Statement, Vec<Value>);

impl Selection {
    /// The rows with all their columns, each followed by its place in the order.
    pub(crate) fn rows(&self, template: &Template<'_>) -> Result<Bound> {
        let places = self.order.iter().map(|(column, _)| column.place(template.dialect()));
        let what: Vec<_> = template.columns().into_iter().chain(places).collect();
        self.read(template, &what.join(", "))
    }

    /// These columns of the rows.
    pub(crate) fn columns(&self, template: &Template<'_>, columns: &[Operand]) -> Result<Bound> {
        let what: Vec<_> = columns.iter().map(|column| column.column(template.dialect())).collect();
        self.read(template, &what.join(", "))
    }

    /// The id of each row as it is stored, and its place in the order.
    pub(crate) fn ids_and_places(&self, template: &Template<'_>) -> Result<Bound> {
        let places = self.order.iter().map(|(column, _)| column.place(template.dialect()));
        let what: Vec<_> = ["{id}".to_owned()].into_iter().chain(places).collect();
        self.read(template, &what.join(", "))
    }

    /// Only the place of each row in the order.
    pub(crate) fn places(&self, template: &Template<'_>) -> Result<Bound> {
        let what: Vec<_> = self.order.iter().map(|(column, _)| column.place(template.dialect())).collect();
        self.read(template, &what.join(", "))
    }

    /// How many rows there are; order, place and limit do not count.
    pub(crate) fn count(&self, template: &Template<'_>) -> Result<Bound> {
        let mut writer = Writer::new(template.dialect());
        let condition = writer.all(&self.conditions);
        writer.finish(template, &format!("SELECT COUNT(*) FROM {{table}} {}", where_clause(&condition)))
    }

    /// Whether there is a row; order, place and limit do not count.
    pub(crate) fn exists(&self, template: &Template<'_>) -> Result<Bound> {
        let mut writer = Writer::new(template.dialect());
        let condition = writer.all(&self.conditions);
        writer.finish(template, &format!("SELECT {{id}} FROM {{table}} {} LIMIT 1", where_clause(&condition)))
    }

    fn read(&self, template: &Template<'_>, what: &str) -> Result<Bound> {
        let dialect = template.dialect();
        let mut writer = Writer::new(dialect);
        let mut condition = writer.all(&self.conditions);
        if let Some(place) = &self.after {
            condition.push(writer.behind(&self.order, place));
        }
        let order: Vec<_> = self.order.iter().map(|(column, direction)| ordered(dialect, column, *direction)).collect();
        let mut text = format!("SELECT {what} FROM {{table}} {}", where_clause(&condition));
        if !order.is_empty() {
            text = format!("{text} ORDER BY {}", order.join(", "));
        }
        if let Some(limit) = self.limit {
            let n = writer.bind(i64::try_from(limit).unwrap_or(i64::MAX).into());
            text = format!("{text} LIMIT ?{n}");
        }
        writer.finish(template, &text)
    }
}

fn where_clause(conditions: &[String]) -> String {
    if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) }
}

/// One item of an order; nulls stand last in both directions.
fn ordered(dialect: Dialect, column: &Operand, direction: Direction) -> String {
    let sorted = column.sorted(dialect);
    let word = match direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    };
    match dialect {
        _ if !column.nullable => format!("{sorted} {word}"),
        Dialect::Sqlite | Dialect::Postgres => format!("{sorted} {word} NULLS LAST"),
        Dialect::Mysql => format!("{} IS NULL, {sorted} {word}", column.column(dialect)),
    }
}

/// Writes conditions, and numbers the values that they bind.
pub(super) struct Writer {
    dialect: Dialect,
    values: Vec<Value>,
}

impl Writer {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, values: Vec::new() }
    }

    pub(super) fn finish(self, template: &Template<'_>, text: &str) -> Result<Bound> {
        Ok((template.fill_in_place(text)?, self.values))
    }

    /// The number of a value in the text.
    pub(super) fn bind(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }

    pub(super) fn all(&mut self, conditions: &[Condition]) -> Vec<String> {
        conditions.iter().map(|condition| self.one(condition)).collect()
    }

    fn one(&mut self, condition: &Condition) -> String {
        let Condition { column, test, values } = condition;
        let (plain, exact) = (column.column(self.dialect), column.exact(self.dialect));
        let numbers: Vec<_> = values.iter().map(|value| self.bind(value.clone())).collect();
        let of =
            |as_value: &dyn Fn(usize) -> String| numbers.iter().map(|n| as_value(*n)).collect::<Vec<_>>().join(", ");
        let values = of(&|n| column.value(self.dialect, n));
        // The column as it is comes first, for its index; the bytes decide.
        let both = |operator: &str, open: &str, close: &str| {
            let narrow = format!("{plain} {operator} {open}{}{close}", of(&|n| format!("?{n}")));
            match column.bytes {
                Bytes::Plain | Bytes::Key | Bytes::Raw => narrow,
                Bytes::Free => format!("({narrow} AND {exact} {operator} {open}{values}{close})"),
            }
        };
        match test {
            Test::Equal => both("=", "", ""),
            Test::EqualInPassing if self.dialect == Dialect::Postgres => both("=", "", ""),
            Test::EqualInPassing => format!("({}) IS TRUE", both("=", "", "")),
            Test::In if numbers.is_empty() => "1 = 0".to_owned(),
            Test::In => both("IN", "(", ")"),
            Test::NotEqual => format!("{exact} <> {values}"),
            Test::Less => format!("{exact} < {values}"),
            Test::LessOrEqual => format!("{exact} <= {values}"),
            Test::Greater => format!("{exact} > {values}"),
            Test::GreaterOrEqual => format!("{exact} >= {values}"),
            Test::Null => format!("{plain} IS NULL"),
            Test::NotNull => format!("{plain} IS NOT NULL"),
        }
    }

    /// Whether a row stands behind a place of the order.
    fn behind(&mut self, order: &[(Operand, Direction)], place: &[Value]) -> String {
        let ([(column, direction), later @ ..], [value, later_values @ ..]) = (order, place) else {
            return "1 = 0".to_owned();
        };
        let (plain, sorted) = (column.column(self.dialect), column.sorted(self.dialect));
        if *value == Value::null(column.kind) {
            return format!("({plain} IS NULL AND {})", self.behind(later, later_values));
        }
        let n = self.bind(value.clone());
        let value_text = column.value(self.dialect, n);
        let mut beyond = match direction {
            Direction::Ascending => format!("{sorted} > {value_text}"),
            Direction::Descending => format!("{sorted} < {value_text}"),
        };
        let mut level = format!("{sorted} = {value_text}");
        let mut at_an_end = false;
        // PostgreSQL's infinities are read as the first and the last instant.
        for (end, outward, at) in
            [(Timestamp::MIN, Direction::Descending, "<="), (Timestamp::MAX, Direction::Ascending, ">=")]
        {
            if *value == Value::from(end) {
                at_an_end = true;
                level = format!("{sorted} {at} {value_text}");
                if *direction == outward {
                    beyond = "1 = 0".to_owned();
                }
            }
        }
        if later.is_empty() {
            return beyond;
        }
        let later = self.behind(later, later_values);
        if column.nullable {
            return format!("({beyond} OR {plain} IS NULL OR ({level} AND {later}))");
        }
        if at_an_end {
            return format!("({beyond} OR ({level} AND {later}))");
        }
        // The first half says nothing new: it gives an index a place to begin.
        let from = match direction {
            Direction::Ascending => ">=",
            Direction::Descending => "<=",
        };
        format!("({sorted} {from} {value_text} AND ({beyond} OR {later}))")
    }
}
