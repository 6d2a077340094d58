//! Rows as other programs may leave them: each is read for what it means, refused, or left alone.

use std::sync::Arc;

use postrider::model::OutboxStatus;
use postrider::testing::RecordingChannel;

use super::support::{World, eventually, node, on_each};

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
}
