//! All SQL text that moves rows, made once per table and dialect.
//!
//! Each statement is written once, as a template: `{status}` is one of our columns in quotes and
//! under the name that the table gives it, `{table}` and `{attempt}` are the tables, `?1` is a
//! bound value, `{batch}` a whole batch in one JSON value. Statuses are literals, since a bound one
//! would lose the partial index; in SET, a column that another expression reads is assigned last.

mod claim;
mod fragment;
mod intervene;
mod query;
mod settle;
mod template;
mod write;

use std::sync::Arc;

use super::Dialect;
use crate::error::Result;
use crate::model::{Kind, OwnColumn, TableDef};

#[cfg(feature = "sqlite")]
pub(crate) use fragment::READ_PROBE;
pub(crate) use fragment::batch_row;
#[cfg(feature = "postgres")]
pub(crate) use fragment::{HEARTBEAT, NOTIFY, SERVER_TIME};
pub(crate) use settle::SETTLE_BATCH;
pub(crate) use template::Template;
pub(crate) use write::{ATTEMPT_BATCH, IDS_BATCH};

/// The predicate of the claim index, word for word: another order of the list scans the table.
pub(crate) const CLAIMABLE: &str = "{status} IN ('PENDING', 'FAILED', 'SENDING')";

/// The statements of one table in one dialect.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    pub(crate) claim_due: Arc<str>,
    pub(crate) claim_all_due: Arc<str>,
    pub(crate) claim_ids: Arc<str>,
    pub(crate) claim_suspect: Arc<str>,
    pub(crate) bury_lost: Arc<str>,
    pub(crate) find_due: Arc<str>,
    pub(crate) find_due_any: Arc<str>,
    pub(crate) next_due: Arc<str>,
    pub(crate) has_suspect: Arc<str>,
    pub(crate) mark_sent: Arc<str>,
    pub(crate) record_failure: Arc<str>,
    pub(crate) finish_dead: Arc<str>,
    pub(crate) finish_suppressed: Arc<str>,
    pub(crate) defer: Arc<str>,
    pub(crate) release: Arc<str>,
    pub(crate) renew: Arc<str>,
    pub(crate) insert_attempts: Arc<str>,
    pub(crate) existing_keys: Arc<str>,
    pub(crate) requeue_history: Arc<str>,
    pub(crate) requeue: Arc<str>,
    pub(crate) cancel: Arc<str>,
    pub(crate) expedite: Arc<str>,
    pub(crate) postpone: Arc<str>,
    pub(crate) resume: Arc<str>,
    pub(crate) status_of: Arc<str>,
    pub(crate) by_id: Arc<str>,
    pub(crate) by_key: Arc<str>,
    pub(crate) list: Arc<str>,
    pub(crate) attempts_of: Arc<str>,
    pub(crate) counts: Arc<str>,
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
        let settle = |set: &str| of(&settle::settle(set));
        Ok(Self {
            claim_due: of(&claim::claim_due(dialect, true))?,
            claim_all_due: of(&claim::claim_due(dialect, false))?,
            claim_ids: of(&claim::claim_ids(dialect))?,
            claim_suspect: of(&claim::claim_suspect(dialect))?,
            bury_lost: of(&claim::bury_lost())?,
            find_due: of(&claim::find_due(dialect, true))?,
            find_due_any: of(&claim::find_due(dialect, false))?,
            next_due: of(claim::NEXT_DUE)?,
            has_suspect: of(claim::HAS_SUSPECT)?,
            mark_sent: settle(settle::MARK_SENT)?,
            record_failure: settle(settle::RECORD_FAILURE)?,
            finish_dead: settle(settle::FINISH_DEAD)?,
            finish_suppressed: settle(settle::FINISH_SUPPRESSED)?,
            defer: settle(settle::DEFER)?,
            release: settle(settle::RELEASE)?,
            renew: settle(settle::RENEW)?,
            insert_attempts: of(&write::insert_attempts())?,
            existing_keys: of(&write::existing_keys(dialect, table.tenant().is_some()))?,
            requeue_history: of(intervene::REQUEUE_HISTORY)?,
            requeue: of(intervene::REQUEUE)?,
            cancel: of(intervene::CANCEL)?,
            expedite: of(intervene::EXPEDITE)?,
            postpone: of(&intervene::postpone())?,
            resume: of(&intervene::resume())?,
            status_of: of(query::STATUS_OF)?,
            by_id: of(query::BY_ID)?,
            by_key: of(query::BY_KEY)?,
            list: of(&query::list(dialect))?,
            attempts_of: of(query::ATTEMPTS_OF)?,
            counts: of(query::COUNTS)?,
            insert_head: of(write::INSERT_HEAD)?,
            insert_tail: of(write::insert_tail(table.tenant().is_some()))?,
            columns: template.columns().len(),
            dialect,
        })
    }

    /// The insert of `rows` rows: one statement, all values bound.
    pub(crate) fn insert(&self, rows: usize) -> String {
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
                    Dialect::Sqlite => text.push('?'),
                    Dialect::Postgres => text.push_str(&self.dialect.placeholder(row * self.columns + column + 1)),
                }
            }
            text.push(')');
        }
        text.push(' ');
        text.push_str(&self.insert_tail);
        text
    }

    /// Every text with its name, for the snapshot tests.
    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<(&'static str, String)> {
        let text = |text: &Arc<str>| text.to_string();
        vec![
            ("insert (2 rows)", self.insert(2)),
            ("existing_keys", text(&self.existing_keys)),
            ("claim_due", text(&self.claim_due)),
            ("claim_all_due", text(&self.claim_all_due)),
            ("claim_ids", text(&self.claim_ids)),
            ("claim_suspect", text(&self.claim_suspect)),
            ("bury_lost", text(&self.bury_lost)),
            ("find_due", text(&self.find_due)),
            ("find_due_any", text(&self.find_due_any)),
            ("next_due", text(&self.next_due)),
            ("has_suspect", text(&self.has_suspect)),
            ("mark_sent", text(&self.mark_sent)),
            ("record_failure", text(&self.record_failure)),
            ("finish_dead", text(&self.finish_dead)),
            ("finish_suppressed", text(&self.finish_suppressed)),
            ("defer", text(&self.defer)),
            ("release", text(&self.release)),
            ("renew", text(&self.renew)),
            ("insert_attempts", text(&self.insert_attempts)),
            ("requeue_history", text(&self.requeue_history)),
            ("requeue", text(&self.requeue)),
            ("cancel", text(&self.cancel)),
            ("expedite", text(&self.expedite)),
            ("postpone", text(&self.postpone)),
            ("resume", text(&self.resume)),
            ("status_of", text(&self.status_of)),
            ("by_id", text(&self.by_id)),
            ("by_key", text(&self.by_key)),
            ("list", text(&self.list)),
            ("attempts_of", text(&self.attempts_of)),
            ("counts", text(&self.counts)),
        ]
    }
}

/// A batch's columns: a name and a kind each.
pub(crate) type BatchColumns = &'static [(&'static str, Kind)];

#[cfg(test)]
mod tests;
