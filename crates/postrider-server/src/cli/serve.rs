//! `postrider serve`: the daemon. Opens the databases, delivers, stops in an orderly way.
//!
//! ```text
//! channels ──► each database (waited for) ──► each table ──► banner ──► dispatcher … signal ──► shutdown
//! ```
//! A wrong configuration ends it at once; a database that cannot be reached does not, and keeps no
//! other one waiting. What happens with one database stands in `database`.

mod banner;
mod database;
mod report;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use postrider::channel::Channel;
use postrider::model::{Clock as _, SystemClock};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::failure::Failure;
use super::run::Context;
use crate::config::OutboxConfig;
use crate::signals::Signals;
use crate::start;

const EXAMPLES: &str = "\
Examples:
  postrider serve
  postrider serve --database postgres://shop@db.example.com/shop --set dispatch.concurrency=64
  POSTRIDER_EMAIL_HOST=smtp.example.com POSTRIDER_EMAIL_FROM=shop@example.com postrider serve

SIGTERM or Ctrl-C stops it: nothing more is claimed, and deliveries under way may finish within
`dispatch.grace`. A second signal, 1 s or more after the first, ends it at once, with exit code 130.";

/// The exit code after a second signal.
const INTERRUPTED: i32 = 130;
/// A signal so soon after the first is the same one: `timeout` and some supervisors tell the program
/// and its group.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Delivers rows until it is told to stop.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// Refuses to start on a database whose tables are missing or older, instead of making them.
    #[arg(long)]
    no_migrate: bool,
}

impl Serve {
    pub(super) async fn run(self, context: Context) -> Result<(), Failure> {
        let mut signals =
            Signals::listen().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
        for name in context.values.ignored().iter().filter(|name| name.contains("did you mean")) {
            warn!("no such setting: {name}");
        }
        let channels = start::channels(&context.config)?;
        // Nothing is rendered here; a mistake in the folder is told all the same.
        for problem in start::templates(&context.config).map_or_else(|error| vec![error], |(_, problems)| problems) {
            warn!("{problem}");
        }
        let by_database = by_database(context.outboxes()?);
        let grace = context.config.dispatch.grace;
        let daemon = Arc::new(Daemon { context, channels, migrate: !self.no_migrate });
        let (stop, stopping) = watch::channel(false);
        let mut running = JoinSet::new();
        for outboxes in by_database {
            running.spawn(Box::pin(database::serve(Arc::clone(&daemon), outboxes, stopping.clone())));
        }
        let mut failure = None;
        let clock = SystemClock::new();
        let mut told_at = None;
        loop {
            tokio::select! {
                ended = running.join_next() => match ended {
                    None => break,
                    Some(Ok(Ok(()))) => {}
                    // A wrong configuration: the others stop in an orderly way.
                    Some(Ok(Err(error))) => {
                        failure.get_or_insert(error);
                        let _ = stop.send(true);
                    }
                    Some(Err(error)) => {
                        failure.get_or_insert_with(|| Failure::failed(format!("a task ended: {error}")));
                        let _ = stop.send(true);
                    }
                },
                signal = signals.next() => {
                    let now = clock.monotonic();
                    let since = now.saturating_sub(*told_at.get_or_insert(now));
                    if stop.send_replace(true) && since >= SAME_SIGNAL {
                        warn!("{signal}: ended at once; rows under way are taken over when their claims run out");
                        std::process::exit(INTERRUPTED);
                    }
                    if !since.is_zero() {
                        continue;
                    }
                    info!(
                        "{signal}: stopping; deliveries under way have {} s, a second signal ends them at once",
                        grace.as_secs()
                    );
                }
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => {
                info!("stopped");
                Ok(())
            }
        }
    }
}

/// What the outboxes of all databases share.
struct Daemon {
    context: Context,
    channels: Vec<Arc<dyn Channel>>,
    migrate: bool,
}

/// The outboxes of each database together: they share its connections and its clock.
fn by_database(outboxes: Vec<&OutboxConfig>) -> Vec<Vec<OutboxConfig>> {
    let mut groups: Vec<Vec<OutboxConfig>> = Vec::new();
    for outbox in outboxes {
        match groups.iter_mut().find(|group| group[0].database == outbox.database) {
            Some(group) => group.push(outbox.clone()),
            None => groups.push(vec![outbox.clone()]),
        }
    }
    groups
}
