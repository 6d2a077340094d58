//! `postrider requeue`: sends rows again.

use std::time::Duration;

use clap::Args;
use postrider::model::{OutboxEntity, OutboxId, OutboxStatus, Timestamp};
use postrider::store::{Expiry, Requeue as Done, Root, Rows};
use postrider::{Error, ErrorKind};
use serde::Serialize;

use super::failure::Failure;
use super::given;
use super::run::Context;
use super::words;
use crate::config::environment;
use crate::lookup::{self, Named};
use crate::served_by;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider requeue 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44
  postrider requeue 0199f5b1-6c2e-7 --expires-in 2d
  postrider list --status dead --json | jq -r '.[].id' | xargs postrider requeue

A row that was SENT is sent anew, as a message of its own. A row that is being delivered is left
alone: exit code 4, try again once it is settled. A PENDING row is waiting already and stays as it
is: `postrider expedite` makes it due now. A row whose time is over is sent again only with
another one: --expires-in, --expires-at or --no-expiry.";

/// Sends rows again, with their whole budget of attempts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Requeue {
    /// The rows' ids, or the beginnings of them.
    #[arg(required = true)]
    ids: Vec<Named>,
    /// Not after this time (RFC 3339), whatever was said before.
    #[arg(long, value_name = "TIME", value_parser = given::instant)]
    expires_at: Option<Timestamp>,
    /// Not after so long from now, such as 2d.
    #[arg(long, value_name = "DURATION", value_parser = given::ahead, allow_hyphen_values = true,
        conflicts_with = "expires_at")]
    expires_in: Option<Duration>,
    /// Never too late.
    #[arg(long, conflicts_with_all = ["expires_at", "expires_in"])]
    no_expiry: bool,
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
        let store = Store::open(context.outbox()?, Purpose::Change, PATIENCE).await?;
        store.require_table().await?;
        served_by!(store, E => self.run_on::<E>(context, &store).await)
    }

    async fn run_on<E: OutboxEntity>(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let rows = store.repository::<E>()?.root();
        let expiry = self.expiry(store.clock.now())?;
        let actor = self.actor.or_else(environment::person).unwrap_or_else(|| "command line".to_owned());
        let mut answers = Vec::new();
        let mut failures = Vec::new();
        for named in &self.ids {
            match requeue_one(&rows, named, store, expiry, &actor).await {
                Ok(answer) => answers.push(answer),
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

impl Requeue {
    /// What becomes of the rows' expiry.
    fn expiry(&self, now: Timestamp) -> Result<Expiry, Failure> {
        match (self.expires_at, self.expires_in) {
            (Some(at), _) if at <= now => Err(Failure::usage(given::is_past("--expires-at", at, now))),
            (Some(at), _) => Ok(Expiry::At(at)),
            (None, Some(ahead)) => Ok(Expiry::At(now.plus(ahead))),
            (None, None) if self.no_expiry => Ok(Expiry::Never),
            (None, None) => Ok(Expiry::Keep),
        }
    }
}

async fn requeue_one<E: OutboxEntity>(
    rows: &Rows<E, Root>,
    named: &Named,
    store: &Store,
    expiry: Expiry,
    actor: &str,
) -> postrider::Result<Answer> {
    let id = lookup::resolve(store, named).await?;
    let now = store.clock.now();
    if expiry == Expiry::Keep {
        refuse_expired(rows, id, now).await?;
    }
    let outcome = match rows.requeue_expiring(id, now, expiry, actor).await? {
        Done::Reset => "reset",
        Done::AlreadyPending => "already_pending",
    };
    Ok(Answer { id, outcome })
}

/// A row whose time is over would only be suppressed once more.
async fn refuse_expired<E: OutboxEntity>(rows: &Rows<E, Root>, id: OutboxId, now: Timestamp) -> postrider::Result<()> {
    let found = match rows.find_by_id(id).await {
        // What cannot be read can be requeued all the same.
        Err(error) if error.kind() == ErrorKind::Decode => None,
        found => found?,
    };
    let row = found.map(|entity| entity.row().clone()).filter(|row| row.state.status != OutboxStatus::Pending);
    match row.and_then(|row| row.expires_at).filter(|at| *at <= now) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "the row {id} expired at {} ({}), and would be suppressed again; give it more time with --expires-in 1d \
             or --expires-at TIME, or use --no-expiry",
            words::seconds(at),
            words::distance(now, at)
        ))),
    }
}

fn answer(context: &Context, answers: &[Answer], failures: Vec<Failure>) -> Result<(), Failure> {
    let output = context.output;
    if output.is_json() {
        output.json(&answers)?;
    } else {
        for answer in answers {
            let said = match answer.outcome {
                "reset" => "PENDING again",
                _ => "was waiting already: nothing changed",
            };
            output.line(&format!("{}  {said}", answer.id))?;
            if answer.outcome != "reset" {
                output.note(&format!("`postrider expedite {}{}` makes it due now", answer.id, context.same));
            }
        }
    }
    let mut failures = failures.into_iter();
    let first = failures.next();
    for later in failures {
        later.report(output.is_json());
    }
    first.map_or(Ok(()), Err)
}
