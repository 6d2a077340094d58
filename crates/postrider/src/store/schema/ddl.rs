//! The DDL of an entity's tables, as numbered steps.
//!
//! For the application's own migration tool, or for [`migrate`](super::migrate). Databases differ
//! here as little as they can; a step that one of them has no use for is empty there, so that the
//! numbers mean the same everywhere.

use crate::error::Result;
use crate::model::column::{self, Column};
use crate::model::{Kind, OutboxEntity, OwnColumn, TableDef, Value};
use crate::store::Dialect;
use crate::store::statements::ATTEMPT_BATCH;

/// The statements that make an entity's tables, for one's own migration tool.
///
/// # Errors
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a name of the entity's is no
/// identifier.
pub fn create_tables<E: OutboxEntity>(dialect: Dialect) -> Result<Vec<String>> {
    Ok(Ddl::new(dialect, &E::table()?, E::own_columns()).steps().concat())
}

/// A version 7 UUID, as PostgreSQL before 18 can make it: 48 bits of milliseconds over a random one.
const TIME_ORDERED_UUID: &str = "encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) \
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) \
    FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid";

/// Documents that other languages write too, and the ends of their constraints' names.
const DOCUMENTS: [(Column, &str); 4] = [
    (column::CC_ADDRESSES, "cc_json"),
    (column::PAYLOAD, "payload_json"),
    (column::RECIPIENTS, "recipients_json"),
    (column::METADATA, "metadata_json"),
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
    pub(super) fn steps(&self) -> Vec<Vec<String>> {
        let tables = vec![
            self.create_outbox(),
            self.claim_index(),
            self.lost_index(),
            self.create_attempts(),
            self.attempt_index(),
        ];
        vec![tables, self.add_document_checks()]
    }

    /// What makes the outbox's table alone, with its indexes and checks.
    pub(super) fn outbox_statements(&self) -> Vec<String> {
        let mut statements = vec![self.create_outbox(), self.claim_index(), self.lost_index()];
        statements.extend(self.add_document_checks());
        statements
    }

    pub(super) fn create_outbox(&self) -> String {
        let mut lines: Vec<String> = column::ALL.iter().map(|column| self.column(*column)).collect();
        if let Some(tenant) = self.table.tenant() {
            lines.push(format!("{} {} NOT NULL DEFAULT ''", self.quoted(tenant), self.type_of(Kind::Text)));
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
        if self.dialect == Dialect::Sqlite {
            // STRICT lets any blob in; an id of another length could be told from no other.
            lines.push(format!("CHECK (length({}) = 16)", self.named(column::ID)));
            lines.extend(DOCUMENTS.map(|(column, end)| self.document_check(column, end)));
        }
        format!(
            "CREATE TABLE {} (\n    {}\n){}",
            self.qualified(self.table.name()),
            lines.join(",\n    "),
            self.options()
        )
    }

    /// A writer in any language that leaves no JSON is told so at once, and not its row later.
    fn document_check(&self, column: Column, end: &str) -> String {
        let column = self.named(column);
        let holds = match self.dialect {
            Dialect::Sqlite => format!("json_valid({column})"),
            // The cast itself refuses: IS JSON came with PostgreSQL 16. `jsonb` would refuse more.
            Dialect::Postgres => format!("{column}::json IS NOT NULL"),
        };
        let name = self.quoted(&format!("{}_{end}", self.table.name()));
        format!("CONSTRAINT {name} CHECK ({column} IS NULL OR {holds})")
    }

    /// Rows that are there already are not read: a broken one stays to be mended, or to fail alone.
    fn add_document_checks(&self) -> Vec<String> {
        match self.dialect {
            // SQLite adds no constraint to a table that exists: older tables stay without.
            Dialect::Sqlite => Vec::new(),
            Dialect::Postgres => {
                let add = |(column, end): (Column, &str)| format!("ADD {} NOT VALID", self.document_check(column, end));
                let table = self.qualified(self.table.name());
                vec![format!("ALTER TABLE {table}\n    {}", DOCUMENTS.map(add).join(",\n    "))]
            }
        }
    }

    pub(super) fn column(&self, column: Column) -> String {
        let null = if column.nullable { "" } else { " NOT NULL" };
        let default = self.default_of(column).map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
        format!("{} {}{null}{default}", self.named(column), self.type_of(column.kind))
    }

    /// What a row gets whose writer says nothing: an application in any language names only the
    /// channel and the address.
    pub(super) fn default_of(&self, column: Column) -> Option<&'static str> {
        let sqlite = self.dialect == Dialect::Sqlite;
        Some(match column {
            column::ID if sqlite => "(randomblob(16))",
            column::ID => TIME_ORDERED_UUID,
            column::DEDUPE_KEY if sqlite => "(lower(hex(randomblob(16))))",
            column::DEDUPE_KEY => "gen_random_uuid()::text",
            column::CREATED_AT | column::UPDATED_AT | column::NEXT_ATTEMPT_AT if sqlite => {
                "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000)"
            }
            column::CREATED_AT | column::UPDATED_AT | column::NEXT_ATTEMPT_AT => "now()",
            column::STATUS => "'PENDING'",
            column::RECIPIENT => "''",
            column::MAX_ATTEMPTS => "11",
            column::IN_DOUBT if sqlite => "0",
            column::IN_DOUBT => "false",
            Column { kind: Kind::Int, nullable: false, .. } => "0",
            _ => return None,
        })
    }

    /// Only claimable rows, led by time; never the status in front.
    pub(super) fn claim_index(&self) -> String {
        format!(
            "CREATE INDEX {} ON {} ({}, {}) WHERE {} IN ('PENDING', 'FAILED', 'SENDING')",
            self.quoted(&format!("{}_claim", self.table.name())),
            self.qualified(self.table.name()),
            self.named(column::NEXT_ATTEMPT_AT),
            self.named(column::ID),
            self.named(column::STATUS),
        )
    }

    /// The few rows that lost their worker twice.
    pub(super) fn lost_index(&self) -> String {
        format!(
            "CREATE INDEX {} ON {} ({}) WHERE {} = 'SENDING' AND {} >= 2",
            self.quoted(&format!("{}_lost", self.table.name())),
            self.qualified(self.table.name()),
            self.named(column::NEXT_ATTEMPT_AT),
            self.named(column::STATUS),
            self.named(column::LOST_CLAIMS),
        )
    }

    pub(super) fn create_attempts(&self) -> String {
        let lines: Vec<_> = ATTEMPT_BATCH
            .iter()
            .map(|(name, kind)| {
                let required = ATTEMPT_REQUIRED.contains(name);
                format!("\"{name}\" {}{}", self.type_of(*kind), if required { " NOT NULL" } else { "" })
            })
            .chain([String::from("PRIMARY KEY (\"id\")")])
            .collect();
        let name = self.qualified(&self.table.attempt_name());
        let strict = if self.dialect == Dialect::Sqlite { " STRICT" } else { "" };
        format!("CREATE TABLE {name} (\n    {}\n){strict}", lines.join(",\n    "))
    }

    pub(super) fn attempt_index(&self) -> String {
        format!(
            "CREATE INDEX {} ON {} (\"outbox_id\", \"at\")",
            self.quoted(&format!("{}_row", self.table.attempt_name())),
            self.qualified(&self.table.attempt_name()),
        )
    }

    fn options(&self) -> &'static str {
        match self.dialect {
            // STRICT: a column holds what it is declared to hold, or the insert fails.
            Dialect::Sqlite => " STRICT",
            // Finished rows stay; each left two dead versions, which must be cleaned up early.
            Dialect::Postgres => " WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)",
        }
    }

    pub(super) fn create_version_table(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (\"version\" {} PRIMARY KEY, \"applied_at\" {} NOT NULL)",
            self.qualified(&self.table.version_name()),
            self.type_of(Kind::Int),
            self.type_of(Kind::Time),
        )
    }

    pub(super) fn read_version(&self) -> String {
        format!("SELECT MAX(\"version\") FROM {}", self.qualified(&self.table.version_name()))
    }

    pub(super) fn write_version(&self) -> String {
        let (version, at) = (self.dialect.placeholder(1), self.dialect.placeholder(2));
        let table = self.qualified(&self.table.version_name());
        format!("INSERT INTO {table} (\"version\", \"applied_at\") VALUES ({version}, {at})")
    }

    /// Held to the end of the transaction. SQLite has its one write lock already.
    pub(super) fn lock(&self) -> Option<&'static str> {
        match self.dialect {
            Dialect::Postgres => Some("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"),
            Dialect::Sqlite => None,
        }
    }

    pub(super) fn lock_key(&self) -> Value {
        format!("postrider schema of {}", self.qualified(self.table.name())).into()
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
