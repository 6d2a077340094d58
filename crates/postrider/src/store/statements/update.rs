//! A change of rows, before it is put into a database's words.
//!
//! PostgreSQL and SQLite change and return rows in one statement. MariaDB and MySQL lock them
//! first, by a SELECT in the order of their ids, then change and read just those.

use super::statement::Change;
use super::template::Template;
use crate::error::Result;
use crate::store::Dialect;

/// A conditional UPDATE of the table, which it calls `o`.
pub(super) struct Update<'a> {
    /// Which rows it is about.
    pub(super) rows: Rows<'a>,
    /// What is written; a column that another expression reads is assigned last.
    pub(super) set: &'a str,
    /// The columns that are returned.
    pub(super) returning: &'a str,
}

/// Which rows a change is about.
pub(super) enum Rows<'a> {
    /// Those of a batch `v` for which the condition holds.
    Batch {
        /// The batch's token.
        batch: &'a str,
        /// What must hold of `o` and `v`.
        condition: &'a str,
        /// Whether rows that somebody holds locked are passed over, where the database can.
        skip_locked: bool,
    },
    /// As [`Self::Batch`], where what is written comes out of the batch, the value `?1`; rows that
    /// somebody holds locked are passed over.
    Written {
        /// The batch's token.
        batch: &'a str,
        /// What must hold of `o` and `v`.
        condition: &'a str,
    },
    /// The first of those for which the condition holds; locked ones are passed over.
    First {
        /// What must hold of `o`.
        condition: &'a str,
        /// In which order, and how many.
        order: &'a str,
    },
    /// All for which the condition holds.
    All {
        /// What must hold of `o`.
        condition: &'a str,
    },
}

impl Update<'_> {
    pub(super) fn in_words_of(&self, template: &Template<'_>) -> Result<Change> {
        match template.dialect() {
            Dialect::Postgres => Ok(Change::Returning(template.fill(&self.postgres())?)),
            Dialect::Sqlite => Ok(Change::Returning(template.fill(&self.sqlite())?)),
            Dialect::Mysql => self.mysql(template),
        }
    }

    fn postgres(&self) -> String {
        let Self { rows, set, returning } = self;
        // Without MATERIALIZED, PostgreSQL may merge the pick and lock more rows than its LIMIT.
        let picked = |pick: &str| {
            format!(
                "WITH due AS MATERIALIZED ({pick} SKIP LOCKED)
                 UPDATE {{table}} AS o SET {set} FROM due WHERE o.{{id}} = due.pr_due_id RETURNING {returning}"
            )
        };
        match rows {
            Rows::Batch { batch, condition, skip_locked: true } => picked(&format!(
                "SELECT o.{{id}} AS pr_due_id FROM {{table}} AS o JOIN {batch} ON o.{{id}} = {{v.row_id}}
                 WHERE {condition} ORDER BY o.{{id}} FOR UPDATE OF o"
            )),
            // Whoever only refers to a row, by a foreign key, does not hold it up.
            Rows::Written { batch, condition } => format!(
                "WITH due AS MATERIALIZED (SELECT v.* FROM {{table}} AS o JOIN {batch} ON o.{{id}} = {{v.row_id}}
                     WHERE {condition} ORDER BY o.{{id}} FOR NO KEY UPDATE OF o SKIP LOCKED)
                 UPDATE {{table}} AS o SET {set} FROM due AS v WHERE o.{{id}} = {{v.row_id}} RETURNING {returning}"
            ),
            Rows::First { condition, order } => picked(&format!(
                "SELECT o.{{id}} AS pr_due_id FROM {{table}} AS o WHERE {condition} {order} FOR UPDATE"
            )),
            Rows::Batch { .. } | Rows::All { .. } => self.sqlite(),
        }
    }

    fn sqlite(&self) -> String {
        let Self { rows, set, returning } = self;
        match rows {
            Rows::Batch { batch, condition, .. } | Rows::Written { batch, condition } => format!(
                "UPDATE {{table}} AS o SET {set} FROM {batch}
                 WHERE o.{{id}} = {{v.row_id}} AND {condition} RETURNING {returning}"
            ),
            Rows::First { condition, order } => format!(
                "UPDATE {{table}} AS o SET {set} WHERE o.{{id}} IN
                     (SELECT o.{{id}} FROM {{table}} AS o WHERE {condition} {order}) RETURNING {returning}"
            ),
            Rows::All { condition } => {
                format!("UPDATE {{table}} AS o SET {set} WHERE {condition} RETURNING {returning}")
            }
        }
    }

    fn mysql(&self, template: &Template<'_>) -> Result<Change> {
        let Self { rows, set, returning } = self;
        let of_batch = |batch: &str, condition: &str, skip: &str| {
            format!(
                "SELECT {{id_text}} FROM {batch} STRAIGHT_JOIN {{table}} AS o ON o.{{id}} = {{v.row_id}}
                 WHERE {condition} ORDER BY o.{{id}} FOR UPDATE{skip}"
            )
        };
        let pick = match rows {
            Rows::Batch { batch, condition, skip_locked: false } => of_batch(batch, condition, ""),
            Rows::Batch { batch, condition, .. } | Rows::Written { batch, condition } => {
                of_batch(batch, condition, " SKIP LOCKED")
            }
            Rows::First { condition, order } => {
                format!("SELECT {{id_text}} FROM {{table}} AS o WHERE {condition} {order} FOR UPDATE SKIP LOCKED")
            }
            Rows::All { condition } => {
                format!("SELECT {{id_text}} FROM {{table}} AS o WHERE {condition} ORDER BY o.{{id}} FOR UPDATE")
            }
        };
        // The rows are locked: only a batch has values of its own still to be joined.
        let update = match rows {
            Rows::Batch { batch, condition, skip_locked: false } | Rows::Written { batch, condition } => format!(
                "UPDATE {batch} STRAIGHT_JOIN {{table}} AS o ON o.{{id}} = {{v.row_id}} SET {set} WHERE {condition}"
            ),
            _ => format!("UPDATE {{ids_batch(0)}} STRAIGHT_JOIN {{table}} AS o ON o.{{id}} = {{v.row_id}} SET {set}"),
        };
        let read =
            format!("SELECT {returning} FROM {{ids_batch(0)}} STRAIGHT_JOIN {{table}} AS o ON o.{{id}} = {{v.row_id}}");
        Ok(Change::Steps {
            pick: template.fill(&pick)?,
            update: template.fill(&update)?,
            read: template.fill(&read)?,
            batches: template.batches(),
            narrows: matches!(rows, Rows::Written { .. }),
        })
    }
}
