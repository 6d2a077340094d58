//! `postrider migrate`: makes the tables, or updates them.

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::run::Context;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider migrate
  postrider migrate --database postgres://shop@db.example.com/shop

May be run by any number of nodes at once, and again at any time.";

/// Makes the tables in the configured database, or updates them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Migrate {}

impl Migrate {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = Store::open(&context.config, Purpose::Write, PATIENCE).await?;
        let steps = store.migrate().await?;
        store.require_table().await?;
        store.close().await;
        let database = context.config.database.to_string();
        if context.output.is_json() {
            return context.output.json(&json!({ "database": database, "steps": steps }));
        }
        context.output.line(&match steps {
            0 => format!("the tables in {database} are up to date"),
            1 => format!("1 step was run: the tables in {database} are up to date"),
            steps => format!("{steps} steps were run: the tables in {database} are up to date"),
        })
    }
}
