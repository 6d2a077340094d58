//! The statements that mend what [`verify`](super::verify) finds, per dialect.
//!
//! They are text for people and migration tools; the library runs none of them.

use super::catalogue::{Catalogue, Found};
use super::ddl::Ddl;
use super::types::Wanted;
use crate::model::Kind;
use crate::model::column::Column;
use crate::store::Dialect;

/// A column's name while SQLite moves its values; no declared column begins so.
const ASIDE: &str = "pr_aside";

impl Ddl {
    pub(super) fn add_column(&self, table: &str, wanted: &Wanted) -> Vec<String> {
        vec![format!("ALTER TABLE {} ADD COLUMN {}", self.qualified(table), self.late_definition(wanted))]
    }

    pub(super) fn change_type(&self, table: &str, seen: &Catalogue, found: &Found, wanted: &Wanted) -> Vec<String> {
        let (name, to) = (self.quoted(&wanted.name), &wanted.typed);
        match self.dialect {
            Dialect::Sqlite => {
                let value = sqlite_value(wanted.kind);
                self.move_column(table, seen, &wanted.name, &self.late_definition(wanted), &value)
            }
            Dialect::Mysql => vec![self.modify(table, &self.late_definition(wanted))],
            Dialect::Postgres => {
                let value = postgres_value(wanted.kind, &found.declared, &name);
                let mut actions = vec![format!("ALTER COLUMN {name} TYPE {to} USING {value}")];
                // A default of the old type seldom is one of the new.
                if found.filled {
                    actions.insert(0, format!("ALTER COLUMN {name} DROP DEFAULT"));
                    actions
                        .extend(wanted.default.iter().map(|value| format!("ALTER COLUMN {name} SET DEFAULT {value}")));
                }
                vec![format!("ALTER TABLE {} {}", self.qualified(table), actions.join(", "))]
            }
        }
    }

    /// `definition` is the column's whole new one, which SQLite, MariaDB and MySQL ask for.
    pub(super) fn change_null(
        &self,
        table: &str,
        seen: &Catalogue,
        column: &str,
        nullable: bool,
        definition: &str,
    ) -> Vec<String> {
        match self.dialect {
            Dialect::Sqlite => self.move_column(table, seen, column, definition, &format!("\"{ASIDE}\"")),
            Dialect::Mysql => vec![self.modify(table, definition)],
            Dialect::Postgres => {
                let verb = if nullable { "DROP" } else { "SET" };
                vec![format!(
                    "ALTER TABLE {} ALTER COLUMN {} {verb} NOT NULL",
                    self.qualified(table),
                    self.quoted(column)
                )]
            }
        }
    }

    pub(super) fn add_unique(&self, table: &str, end: &str, columns: &[&str]) -> Vec<String> {
        let columns: Vec<_> = columns.iter().map(|column| self.quoted(column)).collect();
        let index = self.quoted(&format!("{table}_{end}"));
        vec![format!("CREATE UNIQUE INDEX {index} ON {} ({})", self.qualified(table), columns.join(", "))]
    }

    /// As a column can be added to rows that are there: SQLite takes only constants then.
    pub(super) fn late_definition(&self, wanted: &Wanted) -> String {
        let mut default = wanted.default.as_deref();
        if self.dialect == Dialect::Sqlite && !wanted.nullable && default.is_none_or(|value| value.starts_with('(')) {
            default = Some(match wanted.kind {
                Kind::Text => "''",
                Kind::Uuid | Kind::Bytes => "x''",
                Kind::Bool | Kind::Int | Kind::Time | Kind::Float => "0",
            });
        }
        let null = if wanted.nullable { "" } else { " NOT NULL" };
        let default = default.map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
        format!("{} {}{null}{default}", self.quoted(&wanted.name), wanted.typed)
    }

    /// A column that MariaDB or MySQL makes out of others.
    pub(super) fn add_generated(&self, table: &str, column: Column) -> Vec<String> {
        vec![format!("ALTER TABLE {} ADD COLUMN {}", self.qualified(table), self.generated(column))]
    }

    fn modify(&self, table: &str, definition: &str) -> String {
        format!("ALTER TABLE {} MODIFY COLUMN {definition}", self.qualified(table))
    }

    /// SQLite's way to change a column: a new one takes the values over.
    fn move_column(&self, table: &str, seen: &Catalogue, column: &str, definition: &str, value: &str) -> Vec<String> {
        if seen.is_indexed(column) {
            return vec![format!(
                "-- SQLite cannot change {column}, which an index or a constraint uses: make the table {table} anew \
                 (https://www.sqlite.org/lang_altertable.html#otheralter) with {definition}"
            )];
        }
        let (table, column) = (self.qualified(table), self.quoted(column));
        vec![
            format!("ALTER TABLE {table} RENAME COLUMN {column} TO \"{ASIDE}\""),
            format!("ALTER TABLE {table} ADD COLUMN {definition}"),
            format!("UPDATE {table} SET {column} = {value} WHERE \"{ASIDE}\" IS NOT NULL"),
            format!("ALTER TABLE {table} DROP COLUMN \"{ASIDE}\""),
        ]
    }
}

/// What an old value becomes on SQLite.
fn sqlite_value(kind: Kind) -> String {
    match kind {
        Kind::Bool | Kind::Int => format!("CAST(\"{ASIDE}\" AS INTEGER)"),
        Kind::Time => format!(
            "CASE WHEN \"{ASIDE}\" GLOB '*-*-*' THEN CAST(strftime('%s', \"{ASIDE}\") AS INTEGER) * 1000000 \
             ELSE CAST(\"{ASIDE}\" AS INTEGER) END"
        ),
        Kind::Float => format!("CAST(\"{ASIDE}\" AS REAL)"),
        Kind::Bytes => format!("CAST(\"{ASIDE}\" AS BLOB)"),
        Kind::Text => format!("CAST(\"{ASIDE}\" AS TEXT)"),
        Kind::Uuid => format!(
            "CASE typeof(\"{ASIDE}\") WHEN 'blob' THEN \"{ASIDE}\" ELSE unhex(replace(\"{ASIDE}\", '-', '')) END"
        ),
    }
}

/// What an old value becomes on PostgreSQL.
fn postgres_value(kind: Kind, declared: &str, name: &str) -> String {
    let whole = matches!(declared, "bigint" | "integer" | "smallint") || declared.starts_with("numeric");
    match kind {
        Kind::Time if declared.ends_with("without time zone") => format!("{name} AT TIME ZONE 'UTC'"),
        Kind::Time if declared == "date" => format!("{name}::timestamp AT TIME ZONE 'UTC'"),
        Kind::Time if whole => {
            format!(
                "timestamptz 'epoch' + {name} * interval '1 microsecond' /* if it counts microseconds since 1970 */"
            )
        }
        Kind::Time => format!("{name}::timestamptz"),
        Kind::Bool if whole => format!("{name} <> 0"),
        Kind::Bool => format!("{name}::boolean"),
        Kind::Int if declared == "boolean" => format!("{name}::int::bigint"),
        Kind::Int => format!("{name}::bigint"),
        Kind::Uuid if declared == "bytea" => format!("encode({name}, 'hex')::uuid"),
        Kind::Uuid => format!("{name}::text::uuid"),
        Kind::Float => format!("{name}::double precision"),
        Kind::Bytes => format!("convert_to({name}::text, 'UTF8') /* if it is text */"),
        Kind::Text => format!("{name}::text"),
    }
}
