//! `postrider migrate`: makes the tables, or updates them.

use clap::Args;
use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::run::Context;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider migrate
  postrider migrate --database postgres://shop@db.example.com/shop

May be run by any number of nodes at once, and again at any time. A table that your own migrations
made is left alone: `postrider schema` prints the statements for them.";

/// Makes the tables of all outboxes in their databases, or updates them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Migrate {}

impl Migrate {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut answers: Vec<Json> = Vec::new();
        for outbox in context.outboxes()? {
            let store = Store::open(outbox, Purpose::Write, PATIENCE).await?;
            let steps = store.migrate().await?;
            store.require_table().await?;
            store.close().await;
            let database = outbox.database.to_string();
            let whose = outbox.name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            if !context.output.is_json() {
                context.output.line(&match steps {
                    0 => format!("{whose}the tables in {database} are up to date"),
                    1 => format!("{whose}1 step was run: the tables in {database} are up to date"),
                    steps => format!("{whose}{steps} steps were run: the tables in {database} are up to date"),
                })?;
            }
            answers.push(match &outbox.name {
                None => json!({ "database": database, "steps": steps }),
                Some(name) => json!({ "outbox": name, "database": database, "steps": steps }),
            });
        }
        match answers.as_slice() {
            _ if !context.output.is_json() => Ok(()),
            // The only one there is, and not one of a list.
            [one] if one.get("outbox").is_none() => context.output.json(one),
            several => context.output.json(&several),
        }
    }
}
