//! The tables: DDL as text, numbered steps, and what a real table lacks.
//!
//! The library owns no table: these texts are for the application's own migration tool, or are
//! run by [`migrate`] for the daemon and a first try.

use std::sync::Arc;

use super::database::{Extent, read, write};
use super::{Database, Dialect};
use crate::error::{Error, ErrorKind, Result};
use crate::model::column::{self, Column};
use crate::model::{Clock, Kind, OutboxEntity, OwnColumn, TableDef, Value};

/// The statements that make an entity's tables, for one's own migration tool.
///
/// # Errors
/// [`ErrorKind::Configuration`] if a name of the entity's is no identifier.
pub fn create_tables<E: OutboxEntity>(dialect: Dialect) -> Result<Vec<String>> {
    Ok(Ddl::new(dialect, &E::table()?, E::own_columns()).steps().concat())
}

/// Runs the steps that the database lacks; any number of nodes may call it at once: one runs
/// them, the others wait. All steps run in one transaction, so a killed node leaves nothing.
///
/// Returns how many steps were run.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the tables were made by a later version of the library.
pub async fn migrate<E: OutboxEntity>(
    database: &Arc<dyn Database>,
    clock: &Arc<dyn Clock>,
    table: &TableDef,
) -> Result<usize> {
    let ddl = Arc::new(Ddl::new(database.dialect(), table, E::own_columns()));
    let now = clock.now();
    write(database, clock, Extent::Transaction, move |connection| {
        let ddl = Arc::clone(&ddl);
        Box::pin(async move {
            if let Some(lock) = ddl.lock() {
                connection.fetch(lock, &[ddl.lock_key()], &[]).await?;
            }
            connection.execute(&ddl.create_version_table(), &[]).await?;
            let found = connection.fetch(&ddl.read_version(), &[], &[Kind::Int]).await?;
            let at: Option<i64> = found.into_iter().flatten().next().map_or(Ok(None), Option::try_from)?;
            let at = usize::try_from(at.unwrap_or(0)).unwrap_or(0);
            let steps = ddl.steps();
            if at > steps.len() {
                return Err(Error::new(
                    ErrorKind::Configuration,
                    format!(
                        "the tables have schema version {at}; this program knows only {}: use a later one",
                        steps.len()
                    ),
                ));
            }
            for (index, step) in steps.iter().enumerate().skip(at) {
                for statement in step {
                    connection.execute(statement, &[]).await?;
                }
                let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
                connection.execute(&ddl.write_version(), &[version.into(), now.into()]).await?;
            }
            Ok(steps.len() - at)
        })
    })
    .await
}

/// The columns that the real table lacks; all of them if there is no such table.
///
/// # Errors
/// What the database says.
pub async fn missing_columns<E: OutboxEntity>(
    database: &Arc<dyn Database>,
    clock: &Arc<dyn Clock>,
    table: &TableDef,
) -> Result<Vec<String>> {
    let ddl = Arc::new(Ddl::new(database.dialect(), table, E::own_columns()));
    let found = read(database, clock, {
        let ddl = Arc::clone(&ddl);
        move |connection| {
            let ddl = Arc::clone(&ddl);
            Box::pin(async move {
                let (text, values) = ddl.list_columns();
                connection.fetch(text, &values, &[Kind::Text]).await
            })
        }
    })
    .await?;
    let found: Vec<String> = found.into_iter().flatten().map(String::try_from).collect::<Result<_>>()?;
    let lacks = |name: &str| !found.iter().any(|have| have == name);
    let ours = column::ALL.iter().map(|column| table.column(*column));
    let own = E::own_columns().iter().map(|column| column.name);
    Ok(ours.chain(table.tenant()).chain(own).filter(|name| lacks(name)).map(str::to_owned).collect())
}

/// A version 7 UUID, as PostgreSQL before 18 can make it: 48 bits of milliseconds over a random one.
const TIME_ORDERED_UUID: &str = "encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) \
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) \
    FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid";

struct Ddl {
    dialect: Dialect,
    table: TableDef,
    own: Vec<OwnColumn>,
}

impl Ddl {
    fn new(dialect: Dialect, table: &TableDef, own: &[OwnColumn]) -> Self {
        Self { dialect, table: table.clone(), own: own.to_vec() }
    }

    /// The numbered steps; a released one is never changed.
    fn steps(&self) -> Vec<Vec<String>> {
        vec![vec![
            self.create_outbox(),
            self.claim_index(),
            self.lost_index(),
            self.create_attempts(),
            self.attempt_index(),
        ]]
    }

    fn create_outbox(&self) -> String {
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
        }
        format!(
            "CREATE TABLE {} (\n    {}\n){}",
            self.qualified(self.table.name()),
            lines.join(",\n    "),
            self.options()
        )
    }

    fn column(&self, column: Column) -> String {
        let null = if column.nullable { "" } else { " NOT NULL" };
        let default = self.default_of(column).map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
        format!("{} {}{null}{default}", self.named(column), self.type_of(column.kind))
    }

    /// What a row gets whose writer says nothing: an application in any language names only the
    /// channel and the address.
    fn default_of(&self, column: Column) -> Option<&'static str> {
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
    fn claim_index(&self) -> String {
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
    fn lost_index(&self) -> String {
        format!(
            "CREATE INDEX {} ON {} ({}) WHERE {} = 'SENDING' AND {} >= 2",
            self.quoted(&format!("{}_lost", self.table.name())),
            self.qualified(self.table.name()),
            self.named(column::NEXT_ATTEMPT_AT),
            self.named(column::STATUS),
            self.named(column::LOST_CLAIMS),
        )
    }

    fn create_attempts(&self) -> String {
        let lines: Vec<_> = super::statements::ATTEMPT_BATCH
            .iter()
            .map(|(name, kind)| {
                let required = matches!(*name, "id" | "outbox_id" | "claim_seq" | "event" | "at" | "status");
                format!("\"{name}\" {}{}", self.type_of(*kind), if required { " NOT NULL" } else { "" })
            })
            .chain([String::from("PRIMARY KEY (\"id\")")])
            .collect();
        let name = self.qualified(&self.table.attempt_name());
        let strict = if self.dialect == Dialect::Sqlite { " STRICT" } else { "" };
        format!("CREATE TABLE {name} (\n    {}\n){strict}", lines.join(",\n    "))
    }

    fn attempt_index(&self) -> String {
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

    fn create_version_table(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (\"version\" {} PRIMARY KEY, \"applied_at\" {} NOT NULL)",
            self.qualified(&self.table.version_name()),
            self.type_of(Kind::Int),
            self.type_of(Kind::Time),
        )
    }

    fn read_version(&self) -> String {
        format!("SELECT MAX(\"version\") FROM {}", self.qualified(&self.table.version_name()))
    }

    fn write_version(&self) -> String {
        let (version, at) = (self.dialect.placeholder(1), self.dialect.placeholder(2));
        let table = self.qualified(&self.table.version_name());
        format!("INSERT INTO {table} (\"version\", \"applied_at\") VALUES ({version}, {at})")
    }

    /// Held to the end of the transaction. SQLite has its one write lock already.
    fn lock(&self) -> Option<&'static str> {
        match self.dialect {
            Dialect::Postgres => Some("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"),
            Dialect::Sqlite => None,
        }
    }

    fn lock_key(&self) -> Value {
        format!("postrider schema of {}", self.qualified(self.table.name())).into()
    }

    fn list_columns(&self) -> (&'static str, Vec<Value>) {
        match self.dialect {
            Dialect::Sqlite => ("SELECT name FROM pragma_table_info(?1)", vec![self.table.name().into()]),
            Dialect::Postgres => (
                "SELECT attname::text FROM pg_attribute
                 WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
                vec![self.qualified(self.table.name()).into()],
            ),
        }
    }

    fn type_of(&self, kind: Kind) -> &'static str {
        self.dialect.type_of(kind)
    }

    fn named(&self, column: Column) -> String {
        self.quoted(self.table.column(column))
    }

    fn quoted(&self, name: &str) -> String {
        self.dialect.quoted(name)
    }

    fn qualified(&self, name: &str) -> String {
        match self.table.schema() {
            Some(schema) => format!("{}.{}", self.quoted(schema), self.quoted(name)),
            None => self.quoted(name),
        }
    }
}
