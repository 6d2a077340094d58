//! `postrider requeue`: sends rows again.

use clap::Args;
use postrider::model::OutboxId;
use postrider::store::{Requeue as Done, Root, Rows};
use serde::Serialize;

use super::failure::Failure;
use super::run::Context;
use crate::config::environment;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider requeue 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44
  postrider list --status dead --json | jq -r '.[].id' | xargs postrider requeue

A row that was SENT is sent anew, as a message of its own. A row that is being delivered is left
alone: exit code 4, try again once it is settled.";

/// Sends rows again, with their whole budget of attempts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Requeue {
    /// The rows' ids.
    #[arg(required = true)]
    ids: Vec<OutboxId>,
    /// Who asks for it, for the row's history [default: this user's name].
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    id: OutboxId,
    outcome: &'static str,
}

impl Requeue {
    /// Goes on with the others after a row that cannot be requeued; the first failure ends it.
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = Store::open(&context.config, Purpose::Change, PATIENCE).await?;
        store.require_table().await?;
        let rows = store.repository()?.root();
        let actor = self.actor.or_else(environment::person).unwrap_or_else(|| "command line".to_owned());
        let mut answers = Vec::new();
        let mut failures = Vec::new();
        for id in self.ids {
            match requeue_one(&rows, id, &store, &actor).await {
                Ok(outcome) => answers.push(Answer { id, outcome }),
                Err(error) => failures.push(Failure::from(error)),
            }
        }
        if answers.iter().any(|answer| answer.outcome == "reset") {
            // Other nodes also find the rows by themselves.
            let _ = store.database.notify_others().await;
        }
        store.close().await;
        answer(context, &answers, failures)
    }
}

async fn requeue_one<E: postrider::model::OutboxEntity>(
    rows: &Rows<E, Root>,
    id: OutboxId,
    store: &Store,
    actor: &str,
) -> postrider::Result<&'static str> {
    Ok(match rows.requeue(id, store.clock.now(), actor).await? {
        Done::Reset => "reset",
        Done::AlreadyPending => "already_pending",
    })
}

fn answer(context: &Context, answers: &[Answer], failures: Vec<Failure>) -> Result<(), Failure> {
    let output = context.output;
    if output.is_json() {
        output.json(&answers)?;
    } else {
        for answer in answers {
            let said = match answer.outcome {
                "reset" => "PENDING again",
                _ => "AlreadyPending: it was waiting, nothing changed",
            };
            output.line(&format!("{}  {said}", answer.id))?;
        }
    }
    let mut failures = failures.into_iter();
    let first = failures.next();
    for later in failures {
        later.report(output.is_json());
    }
    first.map_or(Ok(()), Err)
}
