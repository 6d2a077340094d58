//! The DDL of an entity's tables, as numbered steps.
//!
//! For the application's own migration tool, or for [`migrate`](super::migrate). Databases differ
//! here as little as they can; a step that one of them has no use for is empty there, so that the
//! numbers mean the same everywhere.

use crate::error::Result;
use crate::model::column::{self, Column};
use crate::model::{IdType, Kind, OutboxEntity, OwnColumn, TableDef};
use crate::store::Dialect;
use crate::store::statements::ATTEMPT_BATCH;

/// The statements that make an entity's tables, for one's own migration tool.
///
/// # Errors
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a name of the entity's is no
/// identifier.
pub fn create_tables<E: OutboxEntity>(dialect: Dialect) -> Result<Vec<String>> {
    Ok(steps::<E>(dialect, &E::table()?)?.concat())
}

/// The numbered steps that make the tables of an entity in `table`, the first of them version 1; a
/// step that this database has no use for is empty. A released step is never changed: who has run
/// the first `n` runs the rest to have the tables of this version.
///
/// # Errors
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a column of the application's
/// own is no identifier or has the name of another.
pub fn steps<E: OutboxEntity>(dialect: Dialect, table: &TableDef) -> Result<Vec<Vec<String>>> {
    table.check_own(E::own_columns())?;
    Ok(Ddl::new(dialect, table, E::own_columns()).steps())
}

/// Documents that other languages write too, and the ends of their constraints' names.
const DOCUMENTS: [(Column, &str); 4] = [
    (column::CC_ADDRESSES, "cc_json"),
    (column::PAYLOAD, "payload_json"),
    (column::RECIPIENTS, "recipients_json"),
    (column::METADATA, "metadata_json"),
];

/// What counters may hold, and the ends of their constraints' names. A counter that cannot be raised
/// would stop the claim or the settling of every row beside it. The claim leaves rows at the upper
/// limit alone, so that no check can refuse what follows a delivery.
const COUNTERS: [(Column, &str, i64, Option<i64>); 4] = [
    (column::CLAIM_SEQ, "seq_range", 0, Some(1_000_000_000_000_000)),
    (column::ATTEMPTS, "attempts_range", 0, Some(1_000_000)),
    (column::MAX_ATTEMPTS, "budget_range", 1, Some(1_000_000)),
    (column::LOST_CLAIMS, "losses_range", 0, None),
];

/// The columns of the history that hold no null.
pub(super) const ATTEMPT_REQUIRED: [&str; 6] = ["id", "outbox_id", "claim_seq", "event", "at", "status"];

#[derive(Debug)]
pub(super) struct Ddl {
    pub(super) dialect: Dialect,
    pub(super) table: TableDef,
    pub(super) own: Vec<OwnColumn>,
}

impl Ddl {
    pub(super) fn new(dialect: Dialect, table: &TableDef, own: &[OwnColumn]) -> Self {
        Self { dialect, table: table.clone(), own: own.to_vec() }
    }

    /// The numbered steps; a released one is never changed.
    ///
    /// On MariaDB and MySQL each statement commits by itself: each can be run again after a node was
    /// killed between it and the next.
    pub(super) fn steps(&self) -> Vec<Vec<String>> {
        let mut tables = self.create_outbox_with_indexes();
        tables.extend(self.attempt_statements());
        vec![tables, self.add_document_checks(), self.enqueue_statements()]
    }

    /// What makes the outbox's table alone, with its indexes and checks.
    pub(super) fn outbox_statements(&self) -> Vec<String> {
        let mut statements = self.create_outbox_with_indexes();
        statements.extend(self.add_document_checks());
        statements
    }

    fn create_outbox_with_indexes(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Mysql => vec![self.create_outbox()],
            Dialect::Postgres | Dialect::Sqlite => vec![self.create_outbox(), self.claim_index(), self.lost_index()],
        }
    }

    /// What makes the history's table, with its index.
    pub(super) fn attempt_statements(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Mysql => vec![self.create_attempts()],
            Dialect::Postgres | Dialect::Sqlite => vec![self.create_attempts(), self.attempt_index()],
        }
    }

    pub(super) fn create_outbox(&self) -> String {
        let mut lines: Vec<String> = column::ALL.iter().map(|column| self.column(*column)).collect();
        if let Some(tenant) = self.table.tenant() {
            lines.push(format!("{} {} NOT NULL DEFAULT ''", self.quoted(tenant), self.tenant_type()));
        }
        for own in &self.own {
            let null = if own.nullable { "" } else { " NOT NULL" };
            lines.push(format!("{} {}{null}", self.quoted(own.name), self.type_of(own.kind)));
        }
        lines.push(format!("PRIMARY KEY ({})", self.named(column::ID)));
        let tenant = self.table.tenant().map(|tenant| format!("{}, ", self.quoted(tenant))).unwrap_or_default();
        lines.push(format!("UNIQUE ({tenant}{})", self.named(column::DEDUPE_KEY)));
        lines.push(format!(
            "CHECK ({} IN ('PENDING', 'SENDING', 'SENT', 'FAILED', 'DEAD', 'SUPPRESSED'))",
            self.named(column::STATUS)
        ));
        lines.extend(COUNTERS.map(|(column, end, least, most)| self.counter_check(column, end, least, most)));
        if self.dialect != Dialect::Postgres {
            lines.extend(DOCUMENTS.map(|(column, end)| self.document_check(column, end)));
        }
        match self.dialect {
            // STRICT lets any blob in; an id of another length could be told from no other.
            Dialect::Sqlite => {
                let bytes = if self.table.id_type() == IdType::Binary { 16 } else { 36 };
                lines.push(format!("CHECK (length({}) = {bytes})", self.named(column::ID)));
            }
            // `-infinity` is due; nothing ever comes to the other one.
            Dialect::Postgres => {
                let name = self.quoted(&format!("{}_next_comes", self.table.name()));
                lines.push(format!("CONSTRAINT {name} CHECK ({} < 'infinity')", self.named(column::NEXT_ATTEMPT_AT)));
            }
            Dialect::Mysql => lines.extend(self.generated_columns()),
        }
        format!(
            "CREATE TABLE {}{} (\n    {}\n){}",
            self.if_not_there(),
            self.qualified(self.table.name()),
            lines.join(",\n    "),
            self.options()
        )
    }

    fn counter_check(&self, column: Column, end: &str, least: i64, most: Option<i64>) -> String {
        let (name, column) = (self.quoted(&format!("{}_{end}", self.table.name())), self.named(column));
        match most {
            Some(most) => format!("CONSTRAINT {name} CHECK ({column} BETWEEN {least} AND {most})"),
            None => format!("CONSTRAINT {name} CHECK ({column} >= {least})"),
        }
    }

    /// A writer in any language that leaves no JSON is told so at once, and not its row later.
    fn document_check(&self, column: Column, end: &str) -> String {
        let column = self.named(column);
        let holds = match self.dialect {
            Dialect::Sqlite | Dialect::Mysql => format!("json_valid({column})"),
            // The cast itself refuses: IS JSON came with PostgreSQL 16. `jsonb` would refuse more.
            Dialect::Postgres => format!("{column}::json IS NOT NULL"),
        };
        let name = self.quoted(&format!("{}_{end}", self.table.name()));
        format!("CONSTRAINT {name} CHECK ({column} IS NULL OR {holds})")
    }

    /// Rows that are there already are not read: a broken one stays to be mended, or to fail alone.
    fn add_document_checks(&self) -> Vec<String> {
        match self.dialect {
            // SQLite adds no constraint to a table that exists: older tables stay without. MariaDB and
            // MySQL had them from the beginning.
            Dialect::Sqlite | Dialect::Mysql => Vec::new(),
            Dialect::Postgres => {
                let add = |(column, end): (Column, &str)| format!("ADD {} NOT VALID", self.document_check(column, end));
                let table = self.qualified(self.table.name());
                vec![format!("ALTER TABLE {table}\n    {}", DOCUMENTS.map(add).join(",\n    "))]
            }
        }
    }

    /// Without partial indexes, what stands for them: two columns that the database makes, and an
    /// index on each.
    fn generated_columns(&self) -> Vec<String> {
        let column = |column| self.generated(column);
        let index = |end: &str, on| {
            let name = self.quoted(&format!("{}_{end}", self.table.name()));
            format!("KEY {name} ({}, {})", self.named(on), self.named(column::ID))
        };
        let (due, lost) = (column::DUE_AT, column::LOST_AT);
        vec![column(due), column(lost), index("claim", due), index("lost", lost)]
    }

    /// A column that MariaDB or MySQL makes out of others.
    pub(super) fn generated(&self, column: Column) -> String {
        let (status, at) = (self.named(column::STATUS), self.named(column::NEXT_ATTEMPT_AT));
        let when = if column == column::DUE_AT {
            format!("{status} IN ('PENDING', 'FAILED', 'SENDING')")
        } else {
            format!("{status} = 'SENDING' AND {} >= 2", self.named(column::LOST_CLAIMS))
        };
        let typed = self.dialect.type_of(column.kind);
        format!("{} {typed} GENERATED ALWAYS AS (CASE WHEN {when} THEN {at} END) VIRTUAL", self.named(column))
    }

    /// Tables of a step that was cut short stay; the step goes on with the next.
    fn if_not_there(&self) -> &'static str {
        if self.dialect == Dialect::Mysql { "IF NOT EXISTS " } else { "" }
    }

    /// Only claimable rows, led by time; never the status in front.
    pub(super) fn claim_index(&self) -> String {
        self.index("claim", column::DUE_AT, "{status} IN ('PENDING', 'FAILED', 'SENDING')")
    }

    /// The few rows that lost their worker twice.
    pub(super) fn lost_index(&self) -> String {
        self.index("lost", column::LOST_AT, "{status} = 'SENDING' AND {lost_claims} >= 2")
    }

    fn index(&self, end: &str, generated: Column, predicate: &str) -> String {
        let predicate = predicate
            .replace("{status}", &self.named(column::STATUS))
            .replace("{lost_claims}", &self.named(column::LOST_CLAIMS));
        let (led_by, only) = match self.dialect {
            Dialect::Mysql => (generated, String::new()),
            Dialect::Postgres | Dialect::Sqlite => (column::NEXT_ATTEMPT_AT, format!(" WHERE {predicate}")),
        };
        format!(
            "CREATE INDEX {} ON {} ({}, {}){only}",
            self.quoted(&format!("{}_{end}", self.table.name())),
            self.qualified(self.table.name()),
            self.named(led_by),
            self.named(column::ID),
        )
    }

    pub(super) fn create_attempts(&self) -> String {
        let line = |(name, kind): &(&str, Kind)| {
            let null = if ATTEMPT_REQUIRED.contains(name) { " NOT NULL" } else { "" };
            format!("{} {}{null}", self.quoted(name), self.type_in_history(*kind))
        };
        let mut lines: Vec<_> = ATTEMPT_BATCH.iter().map(line).collect();
        lines.push(format!("PRIMARY KEY ({})", self.quoted("id")));
        if self.dialect == Dialect::Mysql {
            let index = self.quoted(&format!("{}_row", self.table.attempt_name()));
            lines.push(format!("KEY {index} ({}, {})", self.quoted("outbox_id"), self.quoted("at")));
        }
        let name = self.qualified(&self.table.attempt_name());
        let options = match self.dialect {
            Dialect::Sqlite => " STRICT",
            Dialect::Postgres => "",
            Dialect::Mysql => " ENGINE = InnoDB",
        };
        format!("CREATE TABLE {}{name} (\n    {}\n){options}", self.if_not_there(), lines.join(",\n    "))
    }

    pub(super) fn attempt_index(&self) -> String {
        format!(
            "CREATE INDEX {} ON {} ({}, {})",
            self.quoted(&format!("{}_row", self.table.attempt_name())),
            self.qualified(&self.table.attempt_name()),
            self.quoted("outbox_id"),
            self.quoted("at"),
        )
    }

    fn options(&self) -> &'static str {
        match self.dialect {
            // STRICT: a column holds what it is declared to hold, or the insert fails.
            Dialect::Sqlite => " STRICT",
            Dialect::Mysql => " ENGINE = InnoDB",
            // Finished rows stay; each left two dead versions, which must be cleaned up early.
            Dialect::Postgres => " WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)",
        }
    }

    pub(super) fn type_of(&self, kind: Kind) -> &'static str {
        self.dialect.type_of(kind)
    }

    pub(super) fn named(&self, column: Column) -> String {
        self.quoted(self.table.column(column))
    }

    pub(super) fn quoted(&self, name: &str) -> String {
        self.dialect.quoted(name)
    }

    pub(super) fn qualified(&self, name: &str) -> String {
        match self.table.schema() {
            Some(schema) => format!("{}.{}", self.quoted(schema), self.quoted(name)),
            None => self.quoted(name),
        }
    }
}
