//! The DDL as one text, to be read by people and run by any client of the database.

use super::ddl::steps;
use crate::error::Result;
use crate::model::{OutboxEntity, TableDef};
use crate::store::Dialect;

/// The steps of the DDL after the first `after` as one text: each statement ends with `;`, and a
/// comment stands before each step. The companion tables are among them.
///
/// # Errors
/// As [`steps`].
pub fn script<E: OutboxEntity>(dialect: Dialect, table: &TableDef, after: usize) -> Result<String> {
    let product = match dialect {
        Dialect::Sqlite => "SQLite",
        Dialect::Postgres => "PostgreSQL",
        Dialect::Mysql => "MariaDB and MySQL",
    };
    let place = table.schema().map(|schema| format!(" in the schema {schema}")).unwrap_or_default();
    let mut text = format!("-- The outbox {}{place} on {product}.\n", table.name());
    for (index, step) in steps::<E>(dialect, table)?.iter().enumerate().skip(after) {
        if !step.is_empty() {
            text.push_str(&format!("\n-- Step {}\n", index + 1));
        }
        for (at, statement) in step.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            text.push_str(&format!("{gap}{statement};\n"));
        }
    }
    Ok(text)
}
