//! Requeue, cancel, and the story that a row keeps.

use postrider::ErrorKind;
use postrider::model::{OutboxId, OutboxStatus};
use postrider::store::{Cancel, Claim, Expiry, Requeue};

use super::support::{World, on_each, seconds};

async fn claim(world: &World, id: OutboxId) -> Claim {
    let reclaim_at = world.now().plus(seconds(60));
    world.rows().claim(id, world.now(), reclaim_at, "node-1").await.unwrap().expect("due and free").claim
}

on_each! {
    /// Contract C3.5: `expires_at` stays, unless the requeue replaces or removes it.
    async fn a_requeue_keeps_replaces_or_removes_the_expiry(world: World) {
        let rows = world.rows();
        let id = world.pending().await;
        let later = world.now().plus(seconds(3_600));
        rows.requeue_expiring(id, world.now(), Expiry::At(later), "ops").await.unwrap();
        assert_eq!(world.find(id).await.row.expires_at, None, "it was PENDING: nothing changes");
        let mut expected = None;
        for expiry in [Expiry::Keep, Expiry::At(later), Expiry::Keep, Expiry::Never] {
            rows.cancel(id, world.now(), "ops").await.unwrap();
            assert_eq!(rows.requeue_expiring(id, world.now(), expiry, "ops").await.unwrap(), Requeue::Reset);
            match expiry {
                Expiry::Keep => {}
                Expiry::Never => expected = None,
                Expiry::At(at) => expected = Some(at),
            }
            assert_eq!(world.find(id).await.row.expires_at, expected, "{expiry:?}");
        }
    }

    /// Contract C3, case C55: requeue from each status.
    async fn requeue_resets_waiting_and_final_rows_and_conflicts_with_sending(world: World) {
        let id = world.pending().await;
        let before = world.find(id).await;
        assert_eq!(world.rows().requeue(id, world.now().plus(seconds(5)), "ops").await.unwrap(), Requeue::AlreadyPending);
        assert_eq!(world.find(id).await, before);
        let token = claim(&world, id).await;
        let conflict = world.rows().requeue(id, world.now(), "ops").await.unwrap_err();
        assert!(conflict.is_conflict());
        world.clock.advance(seconds(61));
        assert!(world.rows().requeue(id, world.now(), "ops").await.unwrap_err().is_conflict(), "an overdue one too");
        world.rows().mark_sent(token, world.now()).await.unwrap();
        assert_eq!(world.rows().requeue(id, world.now(), "ops").await.unwrap(), Requeue::Reset);
        let row = world.find(id).await.row;
        assert_eq!((row.state.status, row.state.attempts, row.state.resends), (OutboxStatus::Pending, 0, 1));
        assert_eq!((row.state.sent_at, row.state.last_error.clone(), row.state.claim_seq), (None, None, 1));
        assert_eq!(row.dedupe_key, before.row.dedupe_key);
        assert_ne!(row.idempotency_key(), before.row.idempotency_key());
        let history = world.rows().history(id).await.unwrap();
        assert_eq!(history.len(), 1);
        assert_eq!((history[0].event.as_str(), history[0].status.as_str()), ("requeue", "SENT"));
        assert_eq!((history[0].actor.as_deref(), history[0].node.as_deref()), (Some("ops"), Some("node-1")));
        let unknown = OutboxId::new(&*world.clock);
        assert!(world.rows().requeue(unknown, world.now(), "ops").await.unwrap_err().is_not_found());
    }

    /// Contract C3.5: from any status but SENT the idempotency key stays.
    async fn a_requeue_of_a_dead_row_keeps_its_idempotency_key(world: World) {
        let id = world.pending().await;
        let key = world.find(id).await.row.idempotency_key();
        let mut attempts = 0;
        while world.state(id).await.status != OutboxStatus::Dead {
            let token = claim(&world, id).await;
            world.rows().record_failure(token, world.now(), "550 no", world.now()).await.unwrap();
            attempts += 1;
        }
        assert_eq!(attempts, 11);
        assert_eq!(world.rows().history(id).await.unwrap().len(), 11);
        world.rows().requeue(id, world.now(), "ops").await.unwrap();
        let row = world.find(id).await.row;
        assert_eq!((row.state.resends, row.idempotency_key()), (0, key));
        assert_eq!(row.max_attempts, 11);
    }

    /// Contract C3: cancel.
    async fn cancel_stops_a_waiting_row_and_nothing_else(world: World) {
        let id = world.pending().await;
        assert_eq!(world.rows().cancel(id, world.now(), "ops").await.unwrap(), Cancel::Cancelled);
        let state = world.state(id).await;
        assert_eq!((state.status, state.reason_code.as_deref()), (OutboxStatus::Suppressed, Some("cancelled")));
        let again = world.rows().cancel(id, world.now(), "ops").await.unwrap();
        assert_eq!(again, Cancel::AlreadyFinal(OutboxStatus::Suppressed));
        let refused = world.rows().expedite(id, world.now()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WrongStatus);
        let other = world.pending().await;
        claim(&world, other).await;
        assert!(world.rows().cancel(other, world.now(), "ops").await.unwrap_err().is_conflict());
        assert!(world.rows().expedite(other, world.now()).await.unwrap_err().is_conflict());
    }

    /// Contract C1.3, C23, C24: what the peer says is cut and made storable on every database.
    async fn a_peers_words_are_cut_and_stored(world: World) {
        let id = world.pending().await;
        let token = claim(&world, id).await;
        let words = "x".repeat(1_998) + "\0✅ tail";
        world.rows().record_failure(token, world.now(), &words, world.now()).await.unwrap();
        let stored = world.state(id).await.last_error.unwrap();
        assert_eq!(stored, "x".repeat(1_998) + "\u{fffd}✅");
        let token = claim(&world, id).await;
        let exact = "😀".repeat(2_000);
        world.rows().mark_suppressed(token, world.now(), &exact).await.unwrap();
        assert_eq!(world.state(id).await.last_error.unwrap(), exact);
    }

    /// Contract C4.4, C5.6: lost claims before a settle are told in the history.
    async fn lost_claims_are_told(world: World) {
        let id = world.pending().await;
        claim(&world, id).await;
        world.clock.advance(seconds(60));
        let reclaim_at = world.now().plus(seconds(60));
        let claimed = world.rows().claim(id, world.now(), reclaim_at, "node-2").await.unwrap().unwrap();
        let losses = claimed.entity.as_ref().unwrap().row.state.lost_claims;
        let ending = postrider::store::Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
        let mut settlement = postrider::store::Settlement::new(claimed.claim, world.now(), ending);
        settlement.losses = losses;
        world.rows().settle(&[settlement]).await.unwrap();
        let history = world.rows().history(id).await.unwrap();
        assert_eq!(history.iter().map(|line| (line.event.as_str(), line.claim_seq)).collect::<Vec<_>>(), [("lost", 1)]);
    }
}
