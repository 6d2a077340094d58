//! Case C39: the answer to a commit is lost, so that nobody knows whether it was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use postrider::accept::{Notification, Recipient};
use postrider::channel::{Channel, Delivery};
use postrider::model::{Blame, FailureScope, NotificationRow, OutboxStatus, OutboxView, Outcome, Retry, TenantId};
use postrider::store::{Claim, Database, Ending, OutboxRepository, PostgresDatabase, Query, Root, Rows, Settlement};
use postrider::testing::RecordingChannel;
use postrider::{ErrorKind, Outbox, Result};
use tokio::sync::Semaphore;

use super::support::{World, eventually, node, seconds};
use super::wire::Wire;

/// A world whose nodes reach their server by way of a wire.
struct Lossy {
    world: World,
    wire: Wire,
    database: Arc<dyn Database>,
    rows: Rows<NotificationRow, Root>,
}

impl Lossy {
    async fn open() -> Option<Self> {
        let world = World::postgres().await?;
        let wire = Wire::to(&world).await;
        let database: Arc<dyn Database> = Arc::new(PostgresDatabase::connect_lazy(wire.url(), 5).unwrap());
        let rows = OutboxRepository::new(Arc::clone(&database), world.clock.clone()).unwrap().root();
        Some(Self { world, wire, database, rows })
    }

    fn outbox(&self, channel: &Arc<RecordingChannel>) -> Outbox<NotificationRow> {
        let builder = Outbox::builder(Arc::clone(&self.database), self.world.clock.clone());
        builder.channel(channel.clone()).build().unwrap()
    }
}

/// A channel that answers once it is let go.
#[derive(Debug)]
struct Held {
    inner: RecordingChannel,
    open: Semaphore,
}

impl Channel for Held {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn check(&self, row: OutboxView<'_>) -> Result<()> {
        self.inner.check(row)
    }

    fn deliver<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let outcome = self.inner.deliver(delivery).await;
            self.open.acquire().await.unwrap().forget();
            outcome
        })
    }
}

/// Contract C4.1: a claim whose commit is unknown is none; the row comes back when it lapses.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_claim_is_no_claim() {
    let Some(Lossy { world, wire, rows, .. }) = Lossy::open().await else { return };
    let id = world.pending().await;
    let claim = async || rows.claim(id, world.now(), world.now().plus(seconds(60)), "n1").await;
    wire.lose_answer("UPDATE 1");
    claim().await.unwrap_err();
    assert_eq!(wire.lost(), 1);
    let state = world.state(id).await;
    assert_eq!((state.status, state.claim_seq), (OutboxStatus::Sending, 1));
    assert!(claim().await.unwrap().is_none(), "it lasts until it lapses");
    world.clock.advance(seconds(61));
    assert_eq!(claim().await.unwrap().unwrap().claim.seq, 2);
}

/// Contract C4.1: a node delivers nothing under a claim that it does not know to have.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_delivered_under_an_unknown_claim() {
    let Some(lossy) = Lossy::open().await else { return };
    let (world, wire) = (&lossy.world, &lossy.wire);
    let id = world.pending().await;
    let channel = Arc::new(RecordingChannel::new("email"));
    wire.lose_answer("UPDATE 1");
    let dispatcher = lossy.outbox(&channel).start(node("n1")).unwrap();
    eventually("the claim is lost", async || wire.lost() == 1).await;
    eventually("the node polls on", async || {
        world.clock.advance(seconds(1));
        world.now() >= super::support::start().plus(seconds(50))
    })
    .await;
    let state = world.state(id).await;
    assert_eq!((state.status, state.claim_seq, channel.deliveries().len()), (OutboxStatus::Sending, 1, 0));
    eventually("it comes back when the claim lapses", async || {
        world.clock.advance(seconds(1));
        world.state(id).await.status == OutboxStatus::Sent
    })
    .await;
    let state = world.state(id).await;
    assert_eq!((state.claim_seq, state.attempts, channel.deliveries().len()), (2, 1, 1));
    dispatcher.shutdown().await;
}

/// A settlement that was written and not answered changes nothing when it is written again.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_settlement_can_be_repeated() {
    let Some(Lossy { world, wire, rows, .. }) = Lossy::open().await else { return };
    let failure = Ending::Failure { error: "later".into(), next: world.now(), reason_code: None, in_doubt: false };
    let sent = Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
    // A success alone is one statement; a failure has its history in the same transaction.
    for (ending, tag, status, lines) in
        [(sent, "UPDATE 1", OutboxStatus::Sent, 0), (failure, "COMMIT", OutboxStatus::Failed, 1)]
    {
        let id = world.pending().await;
        let reclaim_at = world.now().plus(seconds(60));
        let claim: Claim = rows.claim(id, world.now(), reclaim_at, "n1").await.unwrap().unwrap().claim;
        let settlement = Settlement::new(claim, world.now(), ending);
        let before = wire.lost();
        wire.lose_answer(tag);
        rows.settle(std::slice::from_ref(&settlement)).await.unwrap_err();
        assert_eq!(wire.lost(), before + 1);
        for _ in 0..2 {
            let again = rows.settle(std::slice::from_ref(&settlement)).await.unwrap().pop().unwrap();
            assert!(matches!(again.now, Ok(None)), "{again:?}");
        }
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts, state.claim_seq), (status, 1, 1));
        assert_eq!(rows.history(id).await.unwrap().len(), lines);
    }
}

/// A node whose ending was written without an answer counts it as written, and not as a lost claim.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_ending_is_no_lost_claim() {
    for (tag, outcome, status) in
        [("UPDATE 1", None, OutboxStatus::Sent), ("COMMIT", Some("the letter box is full"), OutboxStatus::Failed)]
    {
        let Some(lossy) = Lossy::open().await else { return };
        let (world, wire) = (&lossy.world, &lossy.wire);
        let channel = Arc::new(Held { inner: RecordingChannel::new("email"), open: Semaphore::new(0) });
        if let Some(error) = outcome {
            let (error, scope, blame) = (error.to_owned(), FailureScope::Row, Blame::Recipient);
            channel.inner.answer_next(Outcome::Retry(Retry { error, after: None, scope, blame, ledger: None }));
        }
        let builder = Outbox::<NotificationRow>::builder(Arc::clone(&lossy.database), world.clock.clone());
        let outbox = builder.channel(channel.clone()).build().unwrap();
        let dispatcher = outbox.start(node("n1")).unwrap();
        let id = world.pending().await;
        dispatcher.dispatch([id]);
        channel.inner.wait_for(1).await;
        wire.lose_answer(tag);
        channel.open.add_permits(1);
        let counted = || {
            let counters = dispatcher.counters().snapshot();
            (counters.sent + counters.failed, counters.claims_lost)
        };
        eventually("it is told", async || {
            world.clock.advance(std::time::Duration::from_millis(100));
            counted() != (0, 0)
        })
        .await;
        assert_eq!((counted(), wire.lost()), ((1, 0), 1), "{tag}");
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts, state.claim_seq), (status, 1, 1));
        assert_eq!(channel.inner.deliveries().len(), 1);
        dispatcher.shutdown().await;
    }
}

/// A caller's transaction is not repeated on an unknown commit: its rows would be there twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_commit_of_new_rows_is_told_and_never_repeated() {
    let Some(lossy) = Lossy::open().await else { return };
    let outbox = Arc::new(lossy.outbox(&Arc::new(RecordingChannel::new("email"))));
    for (fault, expected) in [("cut", 1), ("unsent", 1), ("silent", 2)] {
        let ran = Arc::new(AtomicUsize::new(0));
        // The pool must hold a good connection: a lost one would be another fault.
        lossy.rows.page(&Query::new().limit(10)).await.unwrap();
        match fault {
            // Its end too: READ COMMITTED is said with every BEGIN.
            "unsent" => lossy.wire.lose_request("COMMIT\0"),
            "silent" => {
                lossy.wire.stall();
                lossy.wire.lose_answer("COMMIT");
            }
            _ => lossy.wire.lose_answer("COMMIT"),
        }
        let before = lossy.wire.lost();
        let (writer, counted) = (Arc::clone(&outbox), Arc::clone(&ran));
        let answer = outbox.in_transaction(move |connection| {
            let (writer, counted) = (Arc::clone(&writer), Arc::clone(&counted));
            Box::pin(async move {
                counted.fetch_add(1, Ordering::SeqCst);
                let to = Recipient::new("a").at("email", "a@example.com");
                let hello = Notification::text("Hello", "Hi").over("email").to(to);
                let root = |row| NotificationRow { row, tenant_id: TenantId::ROOT };
                writer.service().root().enqueue(connection, &hello, root).await
            })
        });
        let clock = lossy.world.clock.clone();
        let lost = async || {
            eventually("the answer is lost", async || lossy.wire.lost() > before).await;
            // Past the time limit of a write.
            clock.advance(seconds(31));
        };
        let error = tokio::join!(answer, lost()).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
        assert!(!error.is_transient() && error.is_commit_unknown(), "whoever repeats what is transient must not");
        assert!(error.to_string().starts_with("the commit's result is unknown"), "{error}");
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        // The second's row is not there.
        assert_eq!(lossy.world.rows().page(&Query::new().limit(10)).await.unwrap().rows.len(), expected);
    }
    assert_eq!(lossy.wire.lost(), 3);
}

/// A constraint that is looked at only by the commit undoes it: that is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_the_database_refused_is_no_unknown_one() {
    let Some(world) = World::postgres().await else { return };
    world.sql("CREATE TABLE invoice (no bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)").await;
    let twice = ["INSERT INTO invoice VALUES (1)".to_owned(), "INSERT INTO invoice VALUES (1)".to_owned()];
    let error = world.try_all(&twice).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate, "{error}");
    assert!(!error.to_string().contains("unknown"), "{error}");
}

/// A connection that dies under a read costs one more look on a fresh one, and the caller nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_on_a_connection_that_dies_is_repeated_once() {
    let Some(Lossy { world, wire, rows, .. }) = Lossy::open().await else { return };
    let id = world.pending().await;
    // The pool's own look at an idle connection finds nothing wrong: it dies only with the query.
    rows.find_by_id(id).await.unwrap();
    wire.lose_answer("SELECT 1");
    assert_eq!(rows.find_by_id(id).await.unwrap().unwrap().row.id, id);
    assert_eq!(wire.lost(), 1);
}
