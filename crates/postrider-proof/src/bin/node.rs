//! One node of a proof: polls, or also writes rows and hands them over by the fast path.

use std::time::Duration;

use clap::Parser;
use postrider::accept::{Notification, Recipient};
use postrider::dispatch::DispatchConfig;
use postrider::model::{NotificationRow, TenantId};
use postrider::store::schema;
use postrider_proof::{CHANNEL, open, outbox};

/// Delivers to the peer until it is stopped.
#[derive(Debug, Parser)]
struct Arguments {
    /// `sqlite:PATH` or `postgres://…`.
    #[arg(long)]
    database: String,
    /// The peer's address.
    #[arg(long)]
    peer: String,
    /// The node's name.
    #[arg(long)]
    name: String,
    /// Rows to write, each in a transaction of its own, and to hand over after its commit.
    #[arg(long, default_value_t = 0)]
    enqueue: u32,
    /// How long a claim lasts, in seconds.
    #[arg(long, default_value_t = 60)]
    claim_timeout: u64,
    /// Deliveries at once.
    #[arg(long, default_value_t = 16)]
    concurrency: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let outbox = outbox(open(&arguments.database).await?, &arguments.peer).build()?;
    let repository = outbox.repository();
    schema::migrate::<NotificationRow>(repository.database(), repository.clock(), repository.table()).await?;
    let mut config = DispatchConfig::new(&arguments.name);
    config.claim_timeout = Duration::from_secs(arguments.claim_timeout);
    config.concurrency = arguments.concurrency;
    let dispatcher = outbox.start(config)?;
    println!("started");
    for n in 0..arguments.enqueue {
        let recipient = format!("{}-{n}", arguments.name);
        let notification = Notification::text("Hello", "Hi there")
            .over(CHANNEL)
            .to(Recipient::new(&recipient).at(CHANNEL, &recipient))
            .max_attempts(100);
        let mut open = outbox.repository().database().begin().await?;
        let enqueued = outbox
            .service()
            .root()
            .enqueue(open.connection(), &notification, |row| NotificationRow { row, tenant_id: TenantId::ROOT })
            .await?;
        open.commit().await?;
        dispatcher.dispatch(enqueued);
    }
    println!("enqueued");
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    terminate.recv().await;
    dispatcher.shutdown().await;
    println!("stopped");
    Ok(())
}
