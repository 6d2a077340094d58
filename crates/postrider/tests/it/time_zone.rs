//! Case C28: neither a session's nor a machine's zone moves an instant.

use postrider::model::Timestamp;
use postrider::store::{OutboxRepository, PostgresDatabase};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use std::str::FromStr;
use std::sync::Arc;

use super::support::{World, on_each, seconds};

on_each! {
    /// Instants around the end of daylight saving time read back equal, one hour apart.
    async fn the_two_half_past_twos_stay_an_hour_apart(world: World) {
        let mut read = Vec::new();
        for text in ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"] {
            let mut draft = world.draft();
            draft.row.state.next_attempt_at = Timestamp::parse(text).unwrap();
            let id = draft.row.id;
            world.insert(vec![draft]).await;
            read.push(world.state(id).await.next_attempt_at);
        }
        assert_eq!(read[1].since(read[0]), seconds(3_600));
        assert_eq!(read[0].to_string(), "2026-10-25T00:30:00.000000Z");
    }
}

/// A row written in one session's zone is due at the same instant in another's.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_zone_does_not_shift_due_times() {
    let Some(world) = World::postgres().await else { return };
    let id = world.pending().await;
    for zone in ["Asia/Tokyo", "America/New_York", "UTC"] {
        let options = PgConnectOptions::from_str(world.test.url()).unwrap();
        let pool = PgPoolOptions::new()
            // The driver asks for UTC when it connects; a session can say otherwise later.
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    let set = format!("SET TIME ZONE '{zone}'");
                    sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(connection).await.map(drop)
                })
            })
            .connect_with(options)
            .await
            .unwrap();
        let (shown,): (String,) = sqlx::query_as("SHOW timezone").fetch_one(&pool).await.unwrap();
        assert_eq!(shown, zone);
        let database = Arc::new(PostgresDatabase::from_pool(pool));
        let rows =
            OutboxRepository::<postrider::model::NotificationRow>::new(database, world.clock.clone()).unwrap().root();
        assert_eq!(rows.find_by_id(id).await.unwrap().unwrap().row.state.next_attempt_at, world.now(), "{zone}");
        let reclaim_at = world.now().plus(seconds(60));
        assert!(rows.claim(id, world.now().minus(seconds(1)), reclaim_at, "n").await.unwrap().is_none(), "{zone}");
        let claimed = rows.claim(id, world.now(), reclaim_at, "n").await.unwrap().unwrap();
        rows.record_failure(claimed.claim, world.now(), "no", world.now()).await.unwrap();
        assert_eq!(world.state(id).await.next_attempt_at, world.now(), "{zone}");
    }
}
