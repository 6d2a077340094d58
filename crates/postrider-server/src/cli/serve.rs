//! `postrider serve`: the daemon. Opens the database, delivers, stops in an orderly way.
//!
//! ```text
//! channels ──► database (waited for) ──► tables ──► banner ──► dispatcher … signal ──► shutdown
//! ```
//! A wrong configuration ends it at once; a database that cannot be reached does not.

use std::convert::Infallible;
use std::time::Duration;

use clap::Args;
use postrider::ErrorKind;
use postrider::model::Clock;
use postrider::observe::{Counters, Snapshot};
use serde_json::json;
use tracing::{info, warn};

use super::failure::Failure;
use super::run::Context;
use super::words::{self, grouped};
use crate::config::{DatabaseAddress, environment};
use crate::signals::Signals;
use crate::start::{self, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider serve
  postrider serve --database postgres://shop@db.example.com/shop --set dispatch.concurrency=64
  POSTRIDER_EMAIL_HOST=smtp.example.com POSTRIDER_EMAIL_FROM=shop@example.com postrider serve

SIGTERM or Ctrl-C stops it: nothing more is claimed, and deliveries under way may finish within
`dispatch.grace`. A second signal ends it at once, with exit code 130.";

/// How long one try to reach the database may take.
const TRY: Duration = Duration::from_secs(5);
/// The longest time between two tries.
const BACK_OFF: Duration = Duration::from_secs(15);
/// How often it is said what was settled.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// The exit code after a second signal.
const INTERRUPTED: i32 = 130;

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
        let templates = start::templates(&context.config)?;
        let store = tokio::select! {
            store = self.open(&context) => store?,
            signal = signals.next() => {
                info!("{signal}: stopped while waiting for the database");
                return Ok(());
            }
        };
        let outbox = store.outbox(channels, templates)?;
        let dispatcher = outbox.start(context.config.dispatch.clone())?;
        banner(&context)?;
        info!(node = context.config.dispatch.node, "delivering");
        let signal = tokio::select! {
            signal = signals.next() => signal,
            never = store.follow_clock() => match never {},
            never = report(dispatcher.counters(), &*store.clock) => match never {},
        };
        info!(
            "{signal}: stopping; deliveries under way have {} s, a second signal ends them at once",
            context.config.dispatch.grace.as_secs()
        );
        let stop = async {
            dispatcher.shutdown().await;
            store.close().await;
        };
        tokio::select! {
            () = stop => info!("stopped"),
            signal = signals.next() => {
                warn!("{signal}: ended at once; rows under way are taken over when their claims run out");
                std::process::exit(INTERRUPTED);
            }
        }
        Ok(())
    }

    /// The database, as soon as it can be reached, with tables that can be used.
    async fn open(&self, context: &Context) -> Result<Store, Failure> {
        let mut wait = Duration::from_secs(1);
        let mut said = false;
        let clock = postrider::model::SystemClock::new();
        loop {
            match self.try_open(context).await {
                Err(error) if error.kind() == ErrorKind::Transient || error.is_transaction_gone() => {
                    if !said {
                        warn!("{error}; tried again until it answers");
                        said = true;
                    }
                }
                Err(error) => return Err(error.into()),
                Ok(store) => {
                    if said {
                        info!("the database {} is reached", context.config.database);
                    }
                    return Ok(store);
                }
            }
            clock.sleep(wait).await;
            wait = (wait * 2).min(BACK_OFF);
        }
    }

    async fn try_open(&self, context: &Context) -> postrider::Result<Store> {
        let store = Store::open(&context.config, Purpose::Write, TRY).await?;
        if self.no_migrate {
            store.require_table().await?;
        } else {
            let steps = store.migrate().await?;
            if steps > 0 {
                info!(steps, "the tables were made or updated");
            }
            store.require_table().await?;
        }
        Ok(store)
    }
}

/// Says every few seconds what was settled in them, if anything was.
async fn report(counters: &Counters, clock: &dyn Clock) -> Infallible {
    let mut before = counters.snapshot();
    loop {
        clock.sleep(REPORT_EVERY).await;
        let now = counters.snapshot();
        if let Some(words) = settled_since(&before, &now) {
            info!("{words} in the last {} s", REPORT_EVERY.as_secs());
        }
        before = now;
    }
}

/// Such as `delivered 1,234, failed 5`; nothing where nothing was settled.
fn settled_since(before: &Snapshot, now: &Snapshot) -> Option<String> {
    let counts = [
        ("delivered", now.sent - before.sent),
        ("failed", now.failed - before.failed),
        ("put off", now.deferred - before.deferred),
        ("given up", now.dead - before.dead),
        ("suppressed", now.suppressed - before.suppressed),
    ];
    let words = counts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = words.map(|(what, count)| format!("{what} {}", grouped(count))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// What runs here, where messages go, and what to try next.
fn banner(context: &Context) -> Result<(), Failure> {
    let (config, output) = (&context.config, context.output);
    let version = env!("CARGO_PKG_VERSION");
    let relay = config.relay.as_ref().map(|relay| format!("{}:{}", relay.host, relay.port));
    if output.is_json() {
        return output.json(&json!({
            "event": "ready",
            "version": version,
            "node": config.dispatch.node,
            "database": config.database.to_string(),
            "email": relay.as_deref().unwrap_or("sandbox"),
        }));
    }
    if context.json_logs {
        info!(database = %config.database, email = relay.as_deref().unwrap_or("sandbox"), "ready");
        return Ok(());
    }
    let folder = environment::folder();
    let database = match &config.database {
        DatabaseAddress::Sqlite(path) => format!("the SQLite file {}", folder.join(path).display()),
        DatabaseAddress::Postgres(_) | DatabaseAddress::Mysql(_) => config.database.to_string(),
    };
    let email = match &relay {
        Some(relay) => format!("to the relay {relay}"),
        None => "to the sandbox: nothing leaves this machine. To send it for real, name a relay in\n            \
                 postrider.toml and start again:\n              \
                 [email]\n              \
                 host = \"smtp.example.com\"            # port 587 with STARTTLS\n              \
                 from = \"Shop <shop@example.com>\"\n              \
                 username = \"shop\"\n              \
                 password_file = \"/run/secrets/smtp\""
            .to_owned(),
    };
    // With a relay the message is really sent: not to somebody else's address.
    let (to, note) = match relay {
        Some(_) => ("YOUR-OWN-ADDRESS", " (a real message)"),
        None => ("alice@example.com", ""),
    };
    output.note(&format!(
        "postrider {version} delivers\n  \
           database  {database}  ({})\n  \
           e-mail    {email}\n\
         \n\
         Try it in another terminal, in the folder {}{note}:\n  \
           {program} send{same} --channel email --to {to} --subject Hello --body 'Hi there'\n  \
           {program} list{same}\n\
         Ctrl-C stops it.",
        config.database_origin,
        words::quoted(&folder.display().to_string()),
        program = words::quoted(&context.program),
        same = context.same,
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_said() {
        let before = Snapshot::default();
        let mut now = before;
        assert_eq!(settled_since(&before, &now), None);
        (now.sent, now.failed, now.claimed) = (1_234, 5, 2_000);
        assert_eq!(settled_since(&before, &now).as_deref(), Some("delivered 1,234, failed 5"));
        assert_eq!(settled_since(&now, &now), None);
    }
}
