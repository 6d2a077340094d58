//! One database of the daemon: waits until it answers, then delivers each of its outboxes.

use std::sync::Arc;
use std::time::Duration;

use postrider::ErrorKind;
use postrider::model::{Clock as _, OutboxEntity, SystemClock};
use postrider::render::TemplateCatalogue;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Daemon;
use super::banner::banner;
use super::report::Report;
use crate::cli::failure::Failure;
use crate::config::OutboxConfig;
use crate::served_by;
use crate::start::{Purpose, Store};

/// How long one try to reach the database may take.
const TRY: Duration = Duration::from_secs(5);
/// The longest time between two tries.
const BACK_OFF: Duration = Duration::from_secs(15);

/// Delivers until it is told to stop, and returns once everything is settled.
pub(super) async fn serve(
    daemon: Arc<Daemon>,
    outboxes: Vec<OutboxConfig>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let stores = tokio::select! {
        stores = open(&daemon, &outboxes) => stores?,
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    };
    let Some(first) = stores.first().cloned() else { return Ok(()) };
    let mut running = JoinSet::new();
    for (store, outbox) in stores.into_iter().zip(outboxes) {
        let (daemon, stop) = (Arc::clone(&daemon), stop.clone());
        running
            .spawn(Box::pin(async move { served_by!(store, E => deliver::<E>(&daemon, &store, &outbox, stop).await) }));
    }
    let ended = async {
        while let Some(ended) = running.join_next().await {
            ended.map_err(|error| Failure::failed(format!("a task ended: {error}")))??;
        }
        Ok(())
    };
    let answer = tokio::select! {
        answer = ended => answer,
        never = first.follow_clock() => match never {},
    };
    first.close().await;
    answer
}

async fn deliver<E: OutboxEntity>(
    daemon: &Daemon,
    store: &Store,
    outbox: &OutboxConfig,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (context, name) = (&daemon.context, store.name());
    let dispatch = context.config.dispatch.clone();
    let node = dispatch.node.clone();
    let dispatcher = store.outbox::<E>(daemon.channels.clone(), TemplateCatalogue::new())?.start(dispatch)?;
    let said = banner(context, outbox);
    if said.is_ok() {
        info!(outbox = name, node, "delivering");
        let mut report = Report::new(name, dispatcher.counters());
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            never = report.follow(dispatcher.counters(), &*store.clock) => match never {},
        }
        report.end(&dispatcher.counters().snapshot());
    }
    dispatcher.shutdown().await;
    said
}

/// The database, as soon as it can be reached, with tables that can be used.
async fn open(daemon: &Daemon, outboxes: &[OutboxConfig]) -> Result<Vec<Store>, Failure> {
    let mut wait = Duration::from_secs(1);
    let mut said = false;
    let clock = SystemClock::new();
    loop {
        match try_open(daemon, outboxes).await {
            Err(error) if error.kind() == ErrorKind::Transient || error.is_transaction_gone() => {
                if !said {
                    warn!("{error}; tried again until it answers");
                    said = true;
                }
            }
            Err(error) => return Err(error.into()),
            Ok(stores) => {
                if let Some(outbox) = outboxes.first().filter(|_| said) {
                    info!("the database {} is reached", outbox.database);
                }
                return Ok(stores);
            }
        }
        clock.sleep(wait).await;
        wait = (wait * 2).min(BACK_OFF);
    }
}

async fn try_open(daemon: &Daemon, outboxes: &[OutboxConfig]) -> postrider::Result<Vec<Store>> {
    let mut stores: Vec<Store> = Vec::with_capacity(outboxes.len());
    for outbox in outboxes {
        let store = match stores.first() {
            Some(first) => first.beside(outbox),
            None => Store::open(outbox, Purpose::Write, TRY).await?,
        };
        if daemon.migrate {
            let steps = store.migrate().await?;
            if steps > 0 {
                info!(outbox = store.name(), steps, "the tables were made or updated");
            }
        }
        store.require_usable().await?;
        stores.push(store);
    }
    Ok(stores)
}
