//! All SQL text that moves rows, made once per table and dialect.
//!
//! Each statement is written once, as a template: `{status}` is one of our columns in quotes and
//! under the name that the table gives it, `{table}` and `{attempt}` are the tables, `?1` is a
//! bound value, `{ids_batch(1)}` a whole batch in one JSON value. Statuses are literals, since a bound one
//! would lose the partial index; in SET, a column that another expression reads is assigned last.

mod claim;
mod delete;
mod fragment;
mod intervene;
mod operand;
mod query;
mod select;
mod settle;
mod statement;
mod template;
mod update;
mod write;

use std::sync::Arc;

use super::Dialect;
use crate::error::Result;
use crate::model::{Kind, OwnColumn, TableDef};

pub(crate) use fragment::Batches;
#[cfg(feature = "mysql")]
pub(crate) use fragment::MYSQL_TIME;
#[cfg(feature = "sqlite")]
pub(crate) use fragment::READ_PROBE;
#[cfg(feature = "postgres")]
pub(crate) use fragment::{HEARTBEAT, NOTIFY, POSTGRES_TIME};
pub(crate) use operand::{Bytes, Operand};
pub(crate) use select::{Bound, Condition, Selection, Test};
pub(crate) use settle::SETTLE_BATCH;
pub(crate) use statement::{Change, Statement};
pub(crate) use template::Template;
pub(crate) use write::{ATTEMPT_BATCH, IDS_BATCH};

/// The predicate of the claim index, word for word: another order of the list scans the table.
pub(crate) const CLAIMABLE: &str = "{status} IN ('PENDING', 'FAILED', 'SENDING')";

/// The predicate of the index of rows that lost their worker twice, word for word.
pub(crate) const LOST: &str = "{status} = 'SENDING' AND {lost_claims} >= 2";

/// The statements of one table in one dialect.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    pub(crate) batches: Batches,
    pub(crate) claim_due: Change,
    pub(crate) claim_all_due: Change,
    pub(crate) claim_ids: Change,
    pub(crate) claim_suspect: Change,
    pub(crate) bury_lost: Change,
    pub(crate) find_due: Statement,
    pub(crate) find_due_any: Statement,
    pub(crate) next_due: Statement,
    pub(crate) has_suspect: Statement,
    pub(crate) mark_sent: Change,
    pub(crate) record_failure: Change,
    pub(crate) finish_dead: Change,
    pub(crate) finish_suppressed: Change,
    pub(crate) defer: Change,
    pub(crate) release: Change,
    pub(crate) renew: Change,
    pub(crate) claims_of: Statement,
    pub(crate) insert_attempts: Statement,
    pub(crate) existing_keys: Statement,
    pub(crate) requeue_history: Statement,
    pub(crate) requeue: Change,
    pub(crate) cancel: Change,
    pub(crate) expedite: Change,
    pub(crate) postpone: Statement,
    pub(crate) resume: Statement,
    pub(crate) status_of: Statement,
    pub(crate) by_id: Statement,
    pub(crate) by_key: Statement,
    pub(crate) any_by_key: Statement,
    pub(crate) by_ids: Statement,
    pub(crate) known_ids: Statement,
    pub(crate) save: Statement,
    pub(crate) delete_row: Statement,
    pub(crate) delete_history: Statement,
    pub(crate) delete_rows: Statement,
    pub(crate) delete_histories: Statement,
    pub(crate) attempts_of: Statement,
    pub(crate) counts: Statement,
    insert_head: Arc<str>,
    insert_tail: Arc<str>,
    columns: usize,
    dialect: Dialect,
}

impl Statements {
    /// Makes the texts for `table` with these own columns.
    pub(crate) fn new(dialect: Dialect, table: &TableDef, own: &[OwnColumn]) -> Result<Self> {
        let template = Template::new(dialect, table, own);
        let of = |text: &str| template.fill(text);
        let settle = |set: &str| settle::settle(&template, set);
        let by_tenant = table.tenant().is_some();
        Ok(Self {
            batches: template.batches(),
            claim_due: claim::CLAIM_DUE.in_words_of(&template)?,
            claim_all_due: claim::CLAIM_ALL_DUE.in_words_of(&template)?,
            claim_ids: claim::CLAIM_IDS.in_words_of(&template)?,
            claim_suspect: claim::CLAIM_SUSPECT.in_words_of(&template)?,
            bury_lost: claim::BURY_LOST.in_words_of(&template)?,
            find_due: of(&claim::find_due(dialect, true))?,
            find_due_any: of(&claim::find_due(dialect, false))?,
            next_due: of(claim::NEXT_DUE)?,
            has_suspect: of(&claim::has_suspect())?,
            mark_sent: settle(settle::MARK_SENT)?,
            record_failure: settle(settle::RECORD_FAILURE)?,
            finish_dead: settle(settle::FINISH_DEAD)?,
            finish_suppressed: settle(settle::FINISH_SUPPRESSED)?,
            defer: settle(settle::DEFER)?,
            release: settle(settle::RELEASE)?,
            renew: settle(settle::RENEW)?,
            claims_of: of(&settle::claims_of(dialect))?,
            insert_attempts: of(&write::insert_attempts())?,
            existing_keys: of(&write::existing_keys(dialect, by_tenant))?,
            requeue_history: of(intervene::REQUEUE_HISTORY)?,
            requeue: intervene::REQUEUE.in_words_of(&template)?,
            cancel: intervene::CANCEL.in_words_of(&template)?,
            expedite: intervene::EXPEDITE.in_words_of(&template)?,
            postpone: of(&intervene::postpone(dialect))?,
            resume: of(&intervene::resume(dialect))?,
            status_of: of(query::STATUS_OF)?,
            by_id: of(query::BY_ID)?,
            by_key: of(query::by_key(by_tenant))?,
            any_by_key: of(query::ANY_BY_KEY)?,
            by_ids: of(&query::by_ids(dialect, "{columns}"))?,
            known_ids: of(&query::by_ids(dialect, "{id}"))?,
            save: of(&write::save(dialect, table, own))?,
            delete_row: of(delete::DELETE_ROW)?,
            delete_history: of(delete::DELETE_HISTORY)?,
            delete_rows: of(&delete::delete_rows(dialect))?,
            delete_histories: of(&delete::delete_histories(dialect))?,
            attempts_of: of(query::ATTEMPTS_OF)?,
            counts: of(query::COUNTS)?,
            insert_head: of(write::INSERT_HEAD)?.text,
            insert_tail: of(write::insert_tail(dialect, by_tenant))?.text,
            columns: template.columns().len(),
            dialect,
        })
    }

    /// The insert of `rows` rows: one statement, all values bound.
    pub(crate) fn insert(&self, rows: usize) -> Statement {
        let mut text = String::with_capacity(self.insert_head.len() + rows * self.columns * 6 + 100);
        text.push_str(&self.insert_head);
        for row in 0..rows {
            text.push_str(if row == 0 { " (" } else { ", (" });
            for column in 0..self.columns {
                if column > 0 {
                    text.push_str(", ");
                }
                match self.dialect {
                    // SQLite looks every numbered one up among all before it: forty times slower here.
                    Dialect::Sqlite | Dialect::Mysql => text.push('?'),
                    Dialect::Postgres => text.push_str(&format!("${}", row * self.columns + column + 1)),
                }
            }
            text.push(')');
        }
        if !self.insert_tail.is_empty() {
            text.push(' ');
            text.push_str(&self.insert_tail);
        }
        Statement { text: text.into(), places: None }
    }

    /// Every text with its name, for the snapshot tests.
    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<(&'static str, String)> {
        let text = |statement: &Statement| statement.text.to_string();
        vec![
            ("insert (2 rows)", text(&self.insert(2))),
            ("existing_keys", text(&self.existing_keys)),
            ("claim_due", self.claim_due.shown()),
            ("claim_all_due", self.claim_all_due.shown()),
            ("claim_ids", self.claim_ids.shown()),
            ("claim_suspect", self.claim_suspect.shown()),
            ("bury_lost", self.bury_lost.shown()),
            ("find_due", text(&self.find_due)),
            ("find_due_any", text(&self.find_due_any)),
            ("next_due", text(&self.next_due)),
            ("has_suspect", text(&self.has_suspect)),
            ("mark_sent", self.mark_sent.shown()),
            ("record_failure", self.record_failure.shown()),
            ("finish_dead", self.finish_dead.shown()),
            ("finish_suppressed", self.finish_suppressed.shown()),
            ("defer", self.defer.shown()),
            ("release", self.release.shown()),
            ("renew", self.renew.shown()),
            ("claims_of", text(&self.claims_of)),
            ("insert_attempts", text(&self.insert_attempts)),
            ("requeue_history", text(&self.requeue_history)),
            ("requeue", self.requeue.shown()),
            ("cancel", self.cancel.shown()),
            ("expedite", self.expedite.shown()),
            ("postpone", text(&self.postpone)),
            ("resume", text(&self.resume)),
            ("status_of", text(&self.status_of)),
            ("by_id", text(&self.by_id)),
            ("by_key", text(&self.by_key)),
            ("any_by_key", text(&self.any_by_key)),
            ("by_ids", text(&self.by_ids)),
            ("known_ids", text(&self.known_ids)),
            ("save", text(&self.save)),
            ("delete_row", text(&self.delete_row)),
            ("delete_history", text(&self.delete_history)),
            ("delete_rows", text(&self.delete_rows)),
            ("delete_histories", text(&self.delete_histories)),
            ("attempts_of", text(&self.attempts_of)),
            ("counts", text(&self.counts)),
        ]
    }
}

/// A batch's columns: a name and a kind each.
pub(crate) type BatchColumns = &'static [(&'static str, Kind)];

#[cfg(test)]
mod tests;
