//! What was handed over before a shutdown was asked for is delivered first.

use std::sync::Arc;

use postrider::accept::{Notification, Recipient};
use postrider::model::{NotificationRow, OutboxStatus, SystemClock, TenantId};
use postrider::store::Query;
use postrider::testing::RecordingChannel;

use super::hardened_dispatch::{Gate, start};
use super::support::{World, eventually, node, on_each, seconds};

on_each! {
    /// Contract C5.1: a program that hands its rows over and stops at once has delivered them.
    async fn rows_handed_over_before_a_shutdown_are_delivered(world: World) {
        let channel = Arc::new(RecordingChannel::new("email"));
        let (outbox, dispatcher) = start(&world, channel.clone(), node("n1"));
        let hello = Notification::text("Hello", "Hi").over("email").to(Recipient::new("a").at("email", "a@example.com"));
        let mut open = world.database.begin().await.unwrap();
        let root = |row| NotificationRow { row, tenant_id: TenantId::ROOT };
        let enqueued = outbox.service().root().enqueue(open.connection(), &hello, root).await.unwrap();
        open.commit().await.unwrap();
        let id = enqueued.created().next().unwrap();
        dispatcher.dispatch(enqueued);
        dispatcher.shutdown().await;
        let state = world.state(id).await;
        assert_eq!((state.status, state.claim_seq, channel.deliveries().len()), (OutboxStatus::Sent, 1, 1));
    }

    /// Contract C5.1, C5.7: also many more than there are slots, by the machine's clock and compared.
    async fn many_rows_handed_over_before_a_shutdown_are_delivered(world: World) {
        let ids: Vec<_> = {
            let drafts: Vec<_> = (0..100).map(|_| world.draft()).collect();
            let ids = drafts.iter().map(|draft| draft.row.id).collect();
            world.insert(drafts).await;
            ids
        };
        let channel = Arc::new(RecordingChannel::new("email"));
        let outbox = postrider::Outbox::<NotificationRow>::builder(Arc::clone(&world.database), Arc::new(SystemClock::new()))
            .channel(channel.clone())
            .build()
            .unwrap();
        let mut config = postrider::dispatch::DispatchConfig::new("n1");
        config.concurrency = 4;
        let dispatcher = outbox.start(config).unwrap();
        dispatcher.dispatch(ids);
        dispatcher.shutdown().await;
        let rows = world.rows().page(&Query::new().limit(200)).await.unwrap().rows;
        let sent = rows.iter().filter(|entity| entity.row.state.status == OutboxStatus::Sent).count();
        assert_eq!((sent, channel.deliveries().len()), (100, 100));
    }

    /// Contract C5.7: the grace period ends that too; what found no slot in it is left to others.
    async fn rows_handed_over_wait_for_a_slot_no_longer_than_the_grace_period(world: World) {
        let first = world.pending().await;
        let channel = Gate::new(false);
        let mut config = node("n1");
        (config.concurrency, config.grace) = (1, seconds(5));
        let (_outbox, dispatcher) = start(&world, channel.clone(), config);
        channel.wait_for(1).await;
        let (second, began) = (world.pending().await, world.now());
        dispatcher.dispatch([second]);
        let stopping = tokio::spawn(dispatcher.shutdown());
        eventually("the dispatcher stops", async || {
            world.clock.advance(std::time::Duration::from_millis(100));
            stopping.is_finished()
        })
        .await;
        assert!(world.now().since(began) < seconds(20));
        assert_eq!(channel.started(), 1);
        let (first, second) = (world.state(first).await, world.state(second).await);
        assert_eq!((first.status, first.claim_seq), (OutboxStatus::Pending, 1));
        assert_eq!((second.status, second.claim_seq), (OutboxStatus::Pending, 0));
    }
}
