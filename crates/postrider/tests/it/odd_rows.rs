//! Rows as other programs may leave them: each is read for what it means, refused, or left alone.

use std::sync::Arc;

use postrider::model::OutboxStatus;
use postrider::store::{ClaimOrder, Dialect};
use postrider::testing::RecordingChannel;

use super::support::{World, eventually, node, on_each, seconds};

/// All columns that hold a document.
const DOCUMENTS: &str = "cc_addresses = 'null', recipients = 'null', payload = 'null', metadata = 'null'";

on_each! {
    /// Contract C1.1: what serializers write where there is nothing is nothing.
    async fn the_document_null_is_none_at_all(world: World) {
        let id = world.pending().await;
        world.sql(&format!("UPDATE postrider_outbox SET {DOCUMENTS}")).await;
        let row = world.find(id).await.row;
        assert!(row.cc_addresses.is_empty(), "{row:?}");
        assert_eq!((row.payload, row.metadata, row.state.recipients), (None, None, None));

        let channel = Arc::new(RecordingChannel::new("email"));
        let dispatcher = world.outbox().channel(channel.clone()).build().unwrap().start(node("n1")).unwrap();
        eventually("it is sent", async || world.state(id).await.status == OutboxStatus::Sent).await;
        dispatcher.shutdown().await;
    }

    /// Contract C4.7: a row whose counters are at their end stops no other.
    async fn a_counter_at_its_end_holds_nobody_up(world: World) {
        for set in ["claim_seq = 1000000000000000", "attempts = 1000000"] {
            let odd = world.pending().await;
            world.sql(&format!("UPDATE postrider_outbox SET {set} WHERE status = 'PENDING'")).await;
            let fine = world.pending().await;
            let order = ClaimOrder {
                now: world.now(),
                reclaim_at: world.now().plus(seconds(60)),
                node: "n1".to_owned(),
                floor: None,
                limit: 10,
            };
            let claimed = world.rows().claim_due(&order).await.unwrap();
            assert_eq!(claimed.iter().map(|claimed| claimed.claim.id).collect::<Vec<_>>(), [fine], "{set}");
            let both = world.rows().claim_ids(&[odd, fine], order.now, order.reclaim_at, "n2").await.unwrap();
            assert!(both.is_empty(), "{set}: {both:?}");
            let next = world.rows().next_due(world.now().minus(seconds(3_600))).await.unwrap();
            assert_eq!(next, Some(order.reclaim_at), "{set}: nobody waits for it");
            world.sql("DELETE FROM postrider_outbox").await;
        }
    }

    /// Contract C4.7: numbers that cannot be counted on are refused where they are written.
    async fn numbers_out_of_their_range_are_refused(world: World) {
        world.pending().await;
        for set in [
            "claim_seq = 9223372036854775807",
            "claim_seq = -1",
            "attempts = 2147483647",
            "attempts = -1",
            "max_attempts = 0",
            "max_attempts = 2147483647",
            "lost_claims = -1",
        ] {
            assert!(world.try_sql(&format!("UPDATE postrider_outbox SET {set}")).await.is_err(), "{set}");
        }
        world.sql("UPDATE postrider_outbox SET attempts = 11, max_attempts = 1000, lost_claims = 3").await;
    }

    /// Contract C1.2: a time that never comes is refused.
    async fn a_time_that_never_comes_is_refused(world: World) {
        if world.database.dialect() != Dialect::Postgres {
            return;
        }
        world.pending().await;
        assert!(world.try_sql("UPDATE postrider_outbox SET next_attempt_at = 'infinity'").await.is_err());
    }
}
