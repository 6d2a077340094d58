//! Deleting rows and their history, never a row that is being delivered.
//!
//! A batch is picked without locks, then locked and looked at again: only those rows that still
//! meet the conditions go. Source: contract C7.1.

use super::select::{Bound, Selection, Writer};
use super::template::Template;
use crate::error::Result;
use crate::model::Value;
use crate::store::Dialect;

/// One row, unless it is SENDING. `?1` its id, `?2` the tenant.
pub(super) const DELETE_ROW: &str = "DELETE FROM {table} WHERE {id} = ?1 AND {status} <> 'SENDING' AND {in_scope(?2)}";

/// The history of one row. `?1` its id.
pub(super) const DELETE_HISTORY: &str = "DELETE FROM {attempt} WHERE \"outbox_id\" = ?1";

/// The rows of a batch. `?1` the ids; all of them are locked.
pub(super) fn delete_rows(dialect: Dialect) -> String {
    of_batch(dialect, "{table}", "{id}")
}

/// The history of the rows of a batch. `?1` the ids.
pub(super) fn delete_histories(dialect: Dialect) -> String {
    of_batch(dialect, "{attempt}", "\"outbox_id\"")
}

fn of_batch(dialect: Dialect, table: &str, id: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!("DELETE FROM {table} WHERE {id} IN (SELECT {{v.row_id}} FROM {{ids_batch(1)}})"),
        Dialect::Postgres => format!("DELETE FROM {table} AS o USING {{ids_batch(1)}} WHERE o.{id} = {{v.row_id}}"),
        Dialect::Mysql => {
            format!("DELETE o FROM {{ids_batch(1)}} STRAIGHT_JOIN {table} AS o ON o.{id} = {{v.row_id}}")
        }
    }
}

impl Selection {
    /// Locks those rows of a batch of ids that may be deleted, and tells their ids.
    pub(crate) fn lock(&self, template: &Template<'_>, ids: Value) -> Result<Bound> {
        let lock = match template.dialect() {
            // Its one writer has locked everything.
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE OF o",
            Dialect::Mysql => " FOR UPDATE",
        };
        self.of_batch(template, ids, "o.{id}", "{status} <> 'SENDING'", &format!(" ORDER BY o.{{id}}{lock}"))
    }

    /// How many rows of a batch of ids are being delivered.
    pub(crate) fn sending(&self, template: &Template<'_>, ids: Value) -> Result<Bound> {
        self.of_batch(template, ids, "COUNT(*)", "{status} = 'SENDING'", "")
    }

    fn of_batch(&self, template: &Template<'_>, ids: Value, what: &str, condition: &str, tail: &str) -> Result<Bound> {
        let mut writer = Writer::new(template.dialect());
        // The first value: the batch's text names it so.
        writer.bind(ids);
        let mut conditions = vec![condition.to_owned()];
        conditions.extend(writer.all(&self.conditions));
        let join = if template.dialect() == Dialect::Mysql { "STRAIGHT_JOIN" } else { "JOIN" };
        let text = format!(
            "SELECT {what} FROM {{ids_batch(1)}} {join} {{table}} AS o ON o.{{id}} = {{v.row_id}} WHERE {}{tail}",
            conditions.join(" AND ")
        );
        writer.finish(template, &text)
    }
}
