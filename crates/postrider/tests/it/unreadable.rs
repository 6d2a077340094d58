//! Case C29: a row that cannot be read or sent stops no other.

use std::sync::Arc;

use postrider::model::OutboxStatus;
use postrider::store::Query;
use postrider::testing::RecordingChannel;

use super::support::{World, drop_document_checks, eventually, node, on_each, seconds};

on_each! {
    /// Contract C4.7, case C29: the good rows go out; the bad ones are recorded and end DEAD.
    async fn bad_rows_are_recorded_and_good_rows_go_out(world: World) {
        drop_document_checks(&world).await;
        let mut ids = Vec::new();
        for _ in 0..10 {
            let mut draft = world.draft();
            draft.row.max_attempts = 2;
            ids.push(draft.row.id);
            world.insert(vec![draft]).await;
        }
        // As another program would leave them; a text in the place of an id shows the row.
        let id = |n: usize| match world.database.dialect() {
            postrider::store::Dialect::Postgres => format!("'{}'", ids[n]),
            _ => format!("x'{}'", ids[n].as_uuid().simple()),
        };
        world.sql(&format!("UPDATE postrider_outbox SET cc_addresses = '{{not json' WHERE id = {}", id(0))).await;
        world.sql(&format!("UPDATE postrider_outbox SET channel = 'PIGEON' WHERE id = {}", id(1))).await;
        world.sql(&format!("UPDATE postrider_outbox SET payload = '[1' WHERE id = {}", id(2))).await;
        world.sql(&format!("UPDATE postrider_outbox SET recipients = '{{}}' WHERE id = {}", id(3))).await;

        let channel = Arc::new(RecordingChannel::new("email"));
        let outbox = world.outbox().channel(channel.clone()).build().unwrap();
        let mut config = node("n1");
        config.batch = 3;
        config.concurrency = 3;
        let dispatcher = outbox.start(config).unwrap();
        channel.wait_for(6).await;
        for bad in &ids[..4] {
            eventually("the bad row is recorded", async || {
                status(&world, *bad).await == "FAILED"
            })
            .await;
        }
        world.clock.advance(seconds(120));
        for bad in &ids[..4] {
            eventually("the bad row ends DEAD", async || {
                world.clock.advance(seconds(1));
                status(&world, *bad).await == "DEAD"
            })
            .await;
        }
        assert_eq!(channel.deliveries().len(), 6);
        for good in &ids[4..] {
            assert_eq!(world.state(*good).await.status, OutboxStatus::Sent);
        }
        // People see them too.
        let page = world.rows().page(&Query::new().limit(100)).await.unwrap();
        assert_eq!((page.rows.len(), page.unreadable.len()), (7, 3));
        // One line of history per attempt, not one per poll.
        assert_eq!(world.rows().history(ids[1]).await.unwrap().len(), 2);
        dispatcher.shutdown().await;
    }
}

/// Reads the status alone, since the row cannot be read as a whole.
async fn status(world: &World, id: postrider::model::OutboxId) -> String {
    let mut reader = world.database.reader().await.unwrap();
    let place = match world.database.dialect() {
        postrider::store::Dialect::Postgres => "$1",
        postrider::store::Dialect::Mysql => "?",
        _ => "?1",
    };
    let sql = format!("SELECT status FROM postrider_outbox WHERE id = {place}");
    let found = reader.fetch(&sql, &[id.as_uuid().into()], &[postrider::model::Kind::Text]).await.unwrap();
    found.into_iter().flatten().next().unwrap().try_into().unwrap()
}
