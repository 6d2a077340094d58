//! `postrider schema`: prints the DDL of the tables, or compares it with the tables that are there.
//!
//! Both answers are SQL for one's own migration tool: what is found stands in comments between the
//! statements that mend it. Nothing is changed.

use clap::{Args, ValueEnum};
use postrider::model::{NotificationRow, OutboxEntity, TableDef};
use postrider::store::Dialect;
use postrider::store::schema::{self, Finding};
use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::run::Context;
use crate::config::OutboxConfig;
use crate::start::{PATIENCE, Purpose, Store, is_problem};

const EXAMPLES: &str = "\
Examples:
  postrider schema
  postrider schema --dialect postgres > migrations/0007_postrider.sql
  postrider schema --dialect mysql --table order_mail --no-tenant
  postrider schema --after 2
  postrider schema --verify

With --verify the exit code is 1 if the tables cannot be used as they are.";

/// Prints the statements that make the tables, or compares them with those that are there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Schema {
    /// The database to print them for [default: the kind of the configured one].
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "verify")]
    dialect: Option<Name>,
    /// Another table than the configured one, with the default names of columns.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// The other table has no tenant column.
    #[arg(long, requires = "table")]
    no_tenant: bool,
    /// Only the steps after the first N: what is new to somebody who has run those.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "verify")]
    after: usize,
    /// Compares with the tables that are there, and prints what is missing or otherwise with the
    /// statements that mend it.
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    Sqlite,
    Postgres,
    /// MariaDB too.
    #[value(alias = "mariadb")]
    Mysql,
}

impl Schema {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.verify {
            let outbox = context.outbox()?;
            let table = self.table()?.unwrap_or_else(|| outbox.table.clone());
            return verify(context, OutboxConfig { table, ..outbox.clone() }).await;
        }
        let table = match self.table()? {
            Some(table) => table,
            None => context.outbox()?.table.clone(),
        };
        let dialect = match self.dialect {
            Some(Name::Sqlite) => Dialect::Sqlite,
            Some(Name::Postgres) => Dialect::Postgres,
            Some(Name::Mysql) => Dialect::Mysql,
            None => context.outbox()?.database.dialect(),
        };
        // The ready-made entities have no columns of their own: both come to the same statements.
        let steps = schema::steps::<NotificationRow>(dialect, &table)?;
        if self.after > steps.len() {
            let (known, after) = (steps.len(), self.after);
            return Err(Failure::usage(format!("--after {after}: this version knows {known} steps")));
        }
        if context.output.is_json() {
            let steps: Vec<Json> = steps
                .iter()
                .enumerate()
                .skip(self.after)
                .map(|(index, statements)| json!({ "version": index + 1, "statements": statements }))
                .collect();
            let (dialect, table) = (dialect.name(), table.name());
            return context.output.json(&json!({ "dialect": dialect, "table": table, "steps": steps }));
        }
        let script = schema::script::<NotificationRow>(dialect, &table, self.after)?;
        context.output.line(script.trim_end())
    }

    /// The table that the flags name.
    fn table(&self) -> Result<Option<TableDef>, Failure> {
        let Some(name) = &self.table else { return Ok(None) };
        let mut table = TableDef::new(name).map_err(|error| Failure::usage(format!("--table: {error}")))?;
        if !self.no_tenant
            && let Some(tenant) = NotificationRow::table()?.tenant()
        {
            table = table.with_tenant(tenant)?;
        }
        Ok(Some(table))
    }
}

async fn verify(context: &Context, outbox: OutboxConfig) -> Result<(), Failure> {
    let store = Store::open(&outbox, Purpose::Read, PATIENCE).await?;
    let findings = store.verify().await?;
    store.close().await;
    let (table, database, output) = (outbox.table.name(), outbox.database.to_string(), context.output);
    if output.is_json() {
        let findings: Vec<Json> = findings.iter().map(told).collect();
        output.json(&json!({ "database": database, "table": table, "findings": findings }))?;
    } else if findings.is_empty() {
        output.line(&format!("-- {table} in {database} has all that it needs"))?;
    } else {
        output.line(&format!("-- {table} in {database}; read the statements before they are run"))?;
        for finding in &findings {
            output.line(&text(finding))?;
        }
    }
    match findings.iter().filter(|finding| is_problem(finding)).count() {
        0 => Ok(()),
        1 => Err(Failure::check_failed(format!("1 problem in {table}"))),
        problems => Err(Failure::check_failed(format!("{problems} problems in {table}"))),
    }
}

/// A finding for programs.
pub(super) fn told(finding: &Finding) -> Json {
    json!({ "problem": is_problem(finding), "message": finding.to_string(), "statements": finding.statements() })
}

fn text(finding: &Finding) -> String {
    // A name comes from the database; a line of it must not end the comment.
    let message = finding.to_string().replace(char::is_control, " ");
    match finding {
        Finding::Unwritten { .. } => {
            format!("\n-- NOTE: {message}: the application's rows are delivered, `postrider send` can write none")
        }
        finding if is_problem(finding) => format!("\n-- PROBLEM: {message}\n{}", finding.statement()),
        finding => format!("\n-- ADVICE: {message}\n{}", finding.statement()),
    }
}
