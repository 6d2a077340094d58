//! Delivering: claim, deliver, settle, on every node, with nobody in charge.
//!
//! ```text
//! Signal ──ids──► claimer ──rows──► delivery (one task each) ──endings──► settler ──► store
//! poller, LISTEN ──►  │ bounded by free slots         ▲ cut when lost        │ renews what is in flight
//!                     └─────────────── in flight ─────┴──────────────────────┘
//! ```
//! Only this layer changes the status of a claimed row. It never renders.

mod claimer;
mod config;
mod deliver;
mod ending;
mod flight;
mod listener;
mod notifier;
mod settler;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use config::DispatchConfig;

use crate::channel::ChannelRegistry;
use crate::error::Result;
use crate::model::clock::within;
use crate::model::{Clock, OutboxEntity, OutboxId};
use crate::observe::Counters;
use crate::signal::Signal;
use crate::store::{OutboxRepository, Root, Rows};
use flight::Flights;

/// What every task of a dispatcher shares.
struct Shared<E> {
    rows: Rows<E, Root>,
    repository: OutboxRepository<E>,
    channels: ChannelRegistry,
    clock: Arc<dyn Clock>,
    config: DispatchConfig,
    signal: Arc<Signal>,
    counters: Arc<Counters>,
    flights: Arc<Flights>,
    /// Since the latest renewal that was answered, the database has failed.
    cut_off: AtomicBool,
    /// Nothing more is looked for; what was handed over before is still claimed.
    stopping: CancellationToken,
    /// Nothing is claimed any more, and what is still under way is cut.
    cutting: CancellationToken,
}

/// A running dispatcher: one per process is enough.
///
/// Dropping it stops nothing in an orderly way; call [`Self::shutdown`].
pub struct Dispatcher<E> {
    shared: Arc<Shared<E>>,
    claimer: JoinHandle<()>,
    settler: JoinHandle<()>,
    listener: JoinHandle<()>,
    notifier: JoinHandle<()>,
}

impl<E: OutboxEntity> Dispatcher<E> {
    /// Starts claiming and delivering; must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if a setting is unusable.
    pub fn start(
        repository: OutboxRepository<E>,
        channels: ChannelRegistry,
        signal: Arc<Signal>,
        config: DispatchConfig,
    ) -> Result<Self> {
        config.check()?;
        let shared = Arc::new(Shared {
            rows: repository.root(),
            clock: Arc::clone(repository.clock()),
            repository,
            channels,
            config,
            signal,
            counters: Arc::default(),
            flights: Arc::default(),
            cut_off: AtomicBool::new(false),
            stopping: CancellationToken::new(),
            cutting: CancellationToken::new(),
        });
        let (settler, endings) = settler::start(&shared);
        let claimer = claimer::start(&shared, endings);
        let listener = listener::start(&shared);
        let notifier = notifier::start(&shared);
        Ok(Self { shared, claimer, settler, listener, notifier })
    }

    /// Hands committed rows over, to be delivered at once if there is room; a [`Self::shutdown`]
    /// that follows waits for them, within its grace period. Source: contract C5.1.
    pub fn dispatch(&self, ids: impl IntoIterator<Item = OutboxId>) {
        self.shared.signal.hand_over(ids);
    }

    /// What this node has done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Stops: looks for no more rows, delivers what was handed over before and lets deliveries under
    /// way finish, all within the grace period; settles as in doubt what it had to cut past its point
    /// of no return, gives back the rest.
    ///
    /// Returns once everything is settled, or was tried to be for as long as the claims last.
    ///
    /// Source: contract C5.7.
    ///
    /// # Cancel safety
    /// Dropping it leaves the tasks to end by themselves, without the grace period's end.
    pub async fn shutdown(mut self) {
        self.shared.stopping.cancel();
        let clock = Arc::clone(&self.shared.clock);
        let quiet = async {
            let _ = (&mut self.claimer).await;
            self.shared.flights.all_landed().await;
        };
        if within(&*clock, self.shared.config.grace, quiet).await.is_none() {
            self.shared.cutting.cancel();
        }
        // What was claimed while the grace period ran out is given back: it is not begun any more.
        let tasks = [self.claimer, self.settler, self.listener, self.notifier];
        for task in tasks.into_iter().filter(|task| !task.is_finished()) {
            let _ = task.await;
        }
    }
}

impl<E> fmt::Debug for Dispatcher<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("config", &self.shared.config).finish_non_exhaustive()
    }
}
