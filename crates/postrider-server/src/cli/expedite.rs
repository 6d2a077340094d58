//! `postrider expedite`: makes waiting rows due now.

use clap::Args;
use postrider::model::{OutboxEntity, OutboxId};
use serde::Serialize;

use super::failure::Failure;
use super::run::Context;
use crate::lookup::{self, Named};
use crate::served_by;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider expedite 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44
  postrider expedite 0199f5b1-6c2e-7
  postrider list --status pending --limit 1000 --json \\
      | jq -r '.[] | select(.deferrals > 0) | .id' | xargs postrider expedite

For rows that wait: put off while the relay did not work, failed and due later, or written for a
later time. They keep their attempts. A row that is being delivered is left alone: exit code 4. For
a row that is final there is `postrider requeue`.";

/// Makes waiting rows due now, such as those that were put off while the relay was down.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Expedite {
    /// The rows' ids, or the beginnings of them.
    #[arg(required = true)]
    ids: Vec<Named>,
}

#[derive(Serialize)]
struct Answer {
    id: OutboxId,
    outcome: &'static str,
}

impl Expedite {
    /// Goes on with the others after a row that cannot be made due; the first failure ends it.
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = Store::open(context.outbox()?, Purpose::Change, PATIENCE).await?;
        store.require_table().await?;
        served_by!(store, E => self.expedite::<E>(context, &store).await)
    }

    async fn expedite<E: OutboxEntity>(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let rows = store.repository::<E>()?.root();
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for named in &self.ids {
            let done = async {
                let id = lookup::resolve(store, named).await?;
                rows.expedite(id, store.clock.now()).await.map(|()| Answer { id, outcome: "due" })
            };
            match done.await {
                Ok(answer) => answers.push(answer),
                Err(error) => failures.push(Failure::from(error)),
            }
        }
        if !answers.is_empty() {
            // Other nodes also find the rows by themselves.
            let _ = store.database.notify_others().await;
        }
        store.close().await;
        let output = context.output;
        if output.is_json() {
            output.json(&answers)?;
        } else {
            for answer in &answers {
                output.line(&format!("{}  due now", answer.id))?;
            }
        }
        let mut failures = failures.into_iter();
        let first = failures.next();
        for later in failures {
            later.report(output.is_json());
        }
        first.map_or(Ok(()), Err)
    }
}
