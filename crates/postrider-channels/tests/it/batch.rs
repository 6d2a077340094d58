//! Case C29: rows that cannot be read or sent, in one batch with good ones, on a real database.

use std::sync::Arc;
use std::time::Duration;

use postrider::Outbox;
use postrider::dispatch::DispatchConfig;
use postrider::model::{Clock, Kind, NotificationRow, OutboxId, TenantId};
use postrider::store::database::{Extent, write};
use postrider::store::{Database, SqliteDatabase, Synchronous, schema};
use postrider::testing::ManualClock;
use postrider_testkit::database::TestDatabase;
use postrider_testkit::smtp::Script;

use crate::support::{Post, numbered};

/// Runs plain SQL, as a program in another language would on a table without the checks of documents.
async fn sql(database: &Arc<dyn Database>, clock: &Arc<dyn Clock>, statement: String) {
    write(database, clock, Extent::Transaction, move |connection| {
        let statement = statement.clone();
        Box::pin(async move {
            connection.execute("PRAGMA ignore_check_constraints = ON", &[]).await?;
            connection.execute(&statement, &[]).await?;
            connection.execute("PRAGMA ignore_check_constraints = OFF", &[]).await
        })
    })
    .await
    .unwrap();
}

/// Status, attempts and error, read alone: the row as a whole may be unreadable.
async fn stands(database: &Arc<dyn Database>, id: OutboxId) -> (String, i64, Option<String>) {
    let mut reader = database.reader().await.unwrap();
    let sql = "SELECT status, attempts, last_error FROM postrider_outbox WHERE id = ?1";
    let kinds = [Kind::Text, Kind::Int, Kind::Text];
    let mut found = reader.fetch(sql, &[id.as_uuid().into()], &kinds).await.unwrap();
    let [status, attempts, error] = found.remove(0).try_into().unwrap();
    (status.try_into().unwrap(), attempts.try_into().unwrap(), error.try_into().unwrap())
}

/// The four bad rows are recorded, use up their attempts and end DEAD; the six good ones go out first.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_no_mail_can_be_made_of_stop_no_other() {
    let test = TestDatabase::sqlite();
    let opened = SqliteDatabase::open(test.path().unwrap(), Synchronous::Full).await.unwrap();
    let database: Arc<dyn Database> = Arc::new(opened);
    let manual = Arc::new(ManualClock::new(numbered(1).created_at));
    let clock: Arc<dyn Clock> = manual.clone();
    let Post { relay, channel, .. } = Post::open(Script::new()).await;
    let builder = Outbox::<NotificationRow>::builder(Arc::clone(&database), Arc::clone(&clock));
    let outbox = builder.channel(Arc::new(channel)).build().unwrap();
    schema::migrate::<NotificationRow>(&database, &clock, outbox.repository().table()).await.unwrap();

    let ids: Vec<_> = (1..=10).map(|number| numbered(number).id).collect();
    let rows = outbox.repository().root();
    let mut open = database.begin().await.unwrap();
    let drafts: Vec<_> = (1..=10)
        .map(|number| {
            let mut row = numbered(number);
            row.max_attempts = 2;
            NotificationRow { row, tenant_id: TenantId::ROOT }
        })
        .collect();
    rows.insert(open.connection(), &drafts).await.unwrap();
    open.commit().await.unwrap();
    for (at, bad) in [
        "cc_addresses = '{not json'",
        "channel = 'PIGEON'",
        "recipient_address = 'jane at example'",
        "payload = '{\"v\": 2}'",
    ]
    .iter()
    .enumerate()
    {
        let id = ids[at].as_uuid().simple();
        sql(&database, &clock, format!("UPDATE postrider_outbox SET {bad} WHERE id = x'{id}'")).await;
    }

    let mut config = DispatchConfig::new("n1");
    (config.batch, config.concurrency, config.check_clock) = (3, 3, false);
    let dispatcher = outbox.start(config).unwrap();
    let all = async |ids: &[OutboxId], wanted: &str| {
        for id in ids {
            if stands(&database, *id).await.0 != wanted {
                return false;
            }
        }
        true
    };
    // No time passes until the good ones are out.
    eventually(async || all(&ids[4..], "SENT").await).await;
    assert_eq!(relay.record().messages.len(), 6);
    eventually(async || {
        manual.advance(Duration::from_secs(1));
        all(&ids[..4], "DEAD").await
    })
    .await;
    for (at, (attempts, said)) in
        [(2, "cc_addresses"), (2, "PIGEON"), (1, "jane at example"), (2, "version 2")].into_iter().enumerate()
    {
        let (_, used, error) = stands(&database, ids[at]).await;
        assert_eq!(used, attempts, "{said}");
        assert!(error.is_some_and(|error| error.contains(said)), "{said}");
        // One line of history for each attempt, however often was polled.
        let history = rows.history(ids[at]).await.unwrap();
        assert_eq!(i64::try_from(history.len()), Ok(attempts), "{history:?}");
    }
    assert_eq!(relay.record().messages.len(), 6);
    dispatcher.shutdown().await;
}

/// Waits, in real time and bounded.
#[expect(clippy::disallowed_methods, reason = "the database and the relay answer in real time")]
async fn eventually<F: Future<Output = bool>>(mut done: impl FnMut() -> F) {
    for _ in 0..3_000 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited 30 s in vain");
}
