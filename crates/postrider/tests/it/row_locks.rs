//! A row that somebody else holds locked delays only itself. SQLite locks no rows.

use std::time::Duration;

use postrider::model::{OutboxId, OutboxStatus};
use postrider::store::{Claim, Database, Ending, Settlement, Transaction};
use postrider::{ErrorKind, Outbox};

use super::hardened_dispatch::{Gate, settled, start};
use super::support::{World, eventually, node, seconds};

/// Holds these rows locked until it is rolled back.
async fn locked(database: &dyn Database, ids: &[OutboxId]) -> Box<dyn Transaction> {
    let mut open = database.begin().await.unwrap();
    for id in ids {
        let lock = format!("SELECT id FROM postrider_outbox WHERE recipient = '{id}' FOR UPDATE");
        open.connection().execute(&lock, &[]).await.unwrap();
    }
    open
}

async fn pending(world: &World, rows: usize) -> Vec<OutboxId> {
    let mut drafts: Vec<_> = (0..rows).map(|_| world.draft()).collect();
    drafts.iter_mut().for_each(|draft| draft.row.recipient = draft.row.id.to_string());
    // Made in one moment, they are in any order.
    drafts.sort_by_key(|draft| draft.row.id);
    let ids = drafts.iter().map(|draft| draft.row.id).collect();
    world.insert(drafts).await;
    // Another program finds them by an index, or it would lock more than it wants.
    world.sql("CREATE INDEX by_recipient ON postrider_outbox (recipient)").await;
    ids
}

/// Contract C4.7: however many rows are locked, no settling and no renewal waits for one of them,
/// and none of them is taken for lost.
async fn the_store_waits_for_no_locked_row(world: World) {
    let ids = pending(&world, 20).await;
    let (now, reclaim_at) = (world.now(), world.now().plus(seconds(60)));
    let claimed = world.rows().claim_ids(&ids, now, reclaim_at, "n1").await.unwrap();
    let mut claims: Vec<Claim> = claimed.iter().map(|claimed| claimed.claim).collect();
    claims.sort_by_key(|claim| claim.id);
    let stale = Claim { id: claims[19].id, seq: 0 };
    let open = locked(&*world.database, &ids[..10]).await;
    let work = async {
        let renewed = world.rows().renew(&claims, now, reclaim_at.plus(seconds(60))).await.unwrap();
        assert_eq!((renewed.kept.len(), renewed.lost.len()), (10, 0));
        let failure =
            Ending::Failure { error: "450 later".into(), next: reclaim_at, reason_code: None, in_doubt: false };
        let of = |claim: &Claim, ending: &Ending| Settlement::new(*claim, now, ending.clone());
        let sent = Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
        let mut settlements: Vec<_> = claims.iter().map(|claim| of(claim, &sent)).collect();
        settlements[0] = of(&claims[0], &failure);
        settlements[18] = of(&claims[18], &failure);
        settlements[19] = of(&stale, &sent);
        let settled = world.rows().settle(&settlements).await.unwrap();
        assert_eq!(settled.len(), 20);
        for (n, settlement) in settlements.iter().enumerate() {
            let now = &settled.iter().find(|settled| settled.claim == settlement.claim).unwrap().now;
            match (n, now) {
                (0..10, Err(error)) => assert_eq!((error.kind(), error.blames_the_row()), (ErrorKind::Locked, false)),
                (18, now) => assert_eq!(now.as_ref().unwrap(), &Some((OutboxStatus::Failed, 1))),
                (19, now) => assert_eq!(now.as_ref().unwrap(), &None),
                (_, now) => assert_eq!(now.as_ref().unwrap(), &Some((OutboxStatus::Sent, 1)), "{n}"),
            }
        }
    };
    tokio::time::timeout(seconds(3), work).await.expect("nothing waits for a locked row");
    assert!(world.rows().history(ids[0]).await.unwrap().is_empty());
    open.rollback().await.unwrap();
    world.rows().mark_sent(claims[0], now).await.unwrap();
}

/// Contract C4.5, C4.7: the endings and renewals of other rows go on meanwhile, and a locked row's
/// ending is written once it is let go. Nothing is sent twice.
async fn a_node_waits_for_no_locked_row(world: World) {
    let ids = pending(&world, 21).await;
    let channel = Gate::new(true);
    let (outbox, dispatcher): (Outbox<_>, _) = start(&world, channel.clone(), node("n1"));
    channel.wait_for(21).await;
    let open = locked(&*world.database, &ids[..10]).await;
    // One goes on, and which one nobody knows.
    channel.let_go(20);
    let settled_rows = async || {
        let mut sent = Vec::new();
        for id in &ids {
            if world.state(*id).await.status == OutboxStatus::Sent {
                sent.push(*id);
            }
        }
        sent
    };
    let others = eventually("the other endings are written", async || {
        world.clock.advance(Duration::from_millis(2));
        settled_rows().await.len() >= 10 && dispatcher.counters().snapshot().sent >= 10
    });
    tokio::time::timeout(seconds(4), others).await.expect("nobody waits for a locked row");
    // Ten or eleven are free; one of all is under way still.
    let renewed = async |id: OutboxId| world.state(id).await.next_attempt_at > world.now().plus(seconds(45));
    let free_and_open: Vec<_> = {
        let sent = settled_rows().await;
        ids[10..].iter().copied().filter(|id| !sent.contains(id)).collect()
    };
    world.clock.advance(seconds(21));
    for id in free_and_open {
        let kept = eventually("the claim is renewed", async || {
            world.clock.advance(Duration::from_millis(2));
            renewed(id).await
        });
        tokio::time::timeout(seconds(4), kept).await.expect("no renewal waits for a locked row");
    }
    open.rollback().await.unwrap();
    eventually("all that ended is written", async || {
        world.clock.advance(Duration::from_millis(20));
        settled_rows().await.len() >= 20
    })
    .await;
    channel.let_go(1);
    for id in &ids {
        eventually("the last ending is written", async || {
            world.clock.advance(Duration::from_millis(20));
            world.state(*id).await.status == OutboxStatus::Sent
        })
        .await;
        settled(&world, *id, OutboxStatus::Sent).await;
        assert_eq!(world.state(*id).await.claim_seq, 1);
    }
    assert_eq!((channel.started(), dispatcher.counters().snapshot().claims_lost), (21, 0));
    dispatcher.shutdown().await;
    drop(outbox);
}

macro_rules! on_servers {
    ($($name:ident)*) => {
        mod on_postgres {
            use super::World;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(world) = World::postgres().await {
                    super::$name(world).await;
                }
            })*
        }
        mod on_mariadb {
            use super::World;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(world) = World::mysql().await {
                    super::$name(world).await;
                }
            })*
        }
    };
}
on_servers!(the_store_waits_for_no_locked_row a_node_waits_for_no_locked_row);
