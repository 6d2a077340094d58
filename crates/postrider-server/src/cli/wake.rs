//! `postrider wake`: tells the running nodes that another program wrote rows.

use clap::Args;
use serde::Serialize;

use super::failure::Failure;
use super::run::Context;
use crate::config::{DatabaseAddress, display_duration};
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider wake
  psql -c \"INSERT INTO postrider_outbox …\" && postrider wake

On PostgreSQL it is the same as `NOTIFY postrider`, which the writer can run itself after its commit.
On the other databases nothing has to be told: each node looks for rows by itself, at the latest
after `dispatch.poll_max`.";

/// Tells running nodes to look for rows that another program wrote.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Wake {}

#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    outbox: Option<String>,
    database: String,
    /// Whether the nodes were told.
    notified: bool,
    /// When they look by themselves at the latest.
    found_within: String,
}

impl Wake {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let poll_max = display_duration(context.config.dispatch.poll_max);
        let mut answers: Vec<Answer> = Vec::new();
        for outbox in context.outboxes()? {
            let notified = matches!(outbox.database, DatabaseAddress::Postgres(_));
            let store = Store::open(outbox, Purpose::Read, PATIENCE).await?;
            store.require_table().await?;
            store.database.notify_others().await?;
            store.close().await;
            let database = outbox.database.to_string();
            let found_within = poll_max.clone();
            answers.push(Answer { outbox: outbox.name.clone(), database, notified, found_within });
        }
        if context.output.is_json() {
            return context.output.json(&answers);
        }
        answers.iter().try_for_each(|Answer { outbox, database, notified, found_within }| {
            let whose = outbox.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            context.output.line(&if *notified {
                format!("{whose}the nodes on {database} were told to look for rows")
            } else {
                format!(
                    "{whose}{database} has no notifications: running nodes find the rows by themselves, within \
                     {found_within} (dispatch.poll_max)"
                )
            })
        })
    }
}
