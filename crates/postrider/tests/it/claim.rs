//! Claiming: at most one worker gets a row, and a dead worker's row comes back.

use std::collections::HashSet;
use std::sync::Arc;

use postrider::ErrorKind;
use postrider::model::{Clock, Kind, OutboxId, OutboxStatus, TenantId, Timestamp};
use postrider::store::{Claim, ClaimOrder, Dialect};

use super::support::{World, on_each, seconds, start};

fn order(world: &World, limit: usize) -> ClaimOrder {
    ClaimOrder {
        now: world.now(),
        reclaim_at: world.now().plus(seconds(60)),
        node: "n1".to_owned(),
        floor: None,
        limit,
    }
}

async fn claim(world: &World, id: OutboxId) -> Option<Claim> {
    let reclaim_at = world.now().plus(seconds(60));
    world.rows().claim(id, world.now(), reclaim_at, "n1").await.unwrap().map(|claimed| claimed.claim)
}

/// What stands in the row's `next_attempt_at`, in microseconds, computed by the database.
async fn stored_micros(world: &World, id: OutboxId) -> i64 {
    let (column, place) = match world.database.dialect() {
        Dialect::Postgres => ("(EXTRACT(epoch FROM next_attempt_at) * 1000000)::bigint", "$1"),
        Dialect::Mysql => ("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', next_attempt_at)", "?"),
        _ => ("next_attempt_at", "?1"),
    };
    let sql = format!("SELECT {column} FROM postrider_outbox WHERE id = {place}");
    let mut reader = world.database.reader().await.unwrap();
    let found = reader.fetch(&sql, &[id.as_uuid().into()], &[Kind::Int]).await.unwrap();
    found.into_iter().flatten().next().unwrap().try_into().unwrap()
}

on_each! {
    /// Contract C4.1, case C25.
    async fn of_32_concurrent_claims_one_wins(world: World) {
        let id = world.pending().await;
        let world = Arc::new(world);
        let tasks: Vec<_> = (0..32)
            .map(|_| {
                let world = Arc::clone(&world);
                tokio::spawn(async move { claim(&world, id).await })
            })
            .collect();
        let mut won = Vec::new();
        for task in tasks {
            won.extend(task.await.unwrap());
        }
        assert_eq!(won, [Claim { id, seq: 1 }]);
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts, state.claim_seq), (OutboxStatus::Sending, 0, 1));
        assert_eq!(state.next_attempt_at, world.now().plus(seconds(60)));
    }

    /// Contract C4.1: batch claims of many workers never share a row and leave none out.
    async fn concurrent_batch_claims_share_no_row(world: World) {
        let drafts: Vec<_> = (0..300).map(|_| world.draft()).collect();
        let all: HashSet<_> = drafts.iter().map(|draft| draft.row.id).collect();
        world.insert(drafts).await;
        let world = Arc::new(world);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let world = Arc::clone(&world);
                tokio::spawn(async move {
                    let mut mine = Vec::new();
                    loop {
                        let claimed = world.rows().claim_due(&order(&world, 7)).await.unwrap();
                        if claimed.is_empty() {
                            return mine;
                        }
                        assert!(claimed.len() <= 7);
                        mine.extend(claimed.into_iter().map(|claimed| claimed.claim.id));
                    }
                })
            })
            .collect();
        let mut claimed = Vec::new();
        for task in tasks {
            claimed.extend(task.await.unwrap());
        }
        assert_eq!(claimed.len(), 300);
        assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), all);
    }

    /// Contract C4.2: while the claim lasts nobody else gets the row; after that the same claim works.
    async fn a_stuck_sending_row_can_be_claimed_again(world: World) {
        let id = world.pending().await;
        assert_eq!(claim(&world, id).await, Some(Claim { id, seq: 1 }));
        world.clock.advance(seconds(59));
        assert_eq!(claim(&world, id).await, None);
        world.clock.advance(seconds(1));
        assert_eq!(claim(&world, id).await, Some(Claim { id, seq: 2 }));
        let state = world.state(id).await;
        assert_eq!((state.lost_claims, state.attempts), (1, 0));
    }

    /// Contract C4.4: what a slow worker says does not overwrite the newer claim.
    async fn a_stale_worker_cannot_settle(world: World) {
        let id = world.pending().await;
        let stale = claim(&world, id).await.unwrap();
        world.clock.advance(seconds(60));
        let fresh = claim(&world, id).await.unwrap();
        let before = world.state(id).await;
        let error = world.rows().mark_sent(stale, world.now()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ClaimLost);
        let renewed = world.rows().renew(&[stale, fresh], world.now(), world.now().plus(seconds(9))).await.unwrap();
        assert_eq!((renewed.kept.as_slice(), renewed.lost.as_slice()), (&[fresh][..], &[stale][..]));
        assert_eq!(world.state(id).await.status, before.status);
        world.rows().mark_sent(fresh, world.now()).await.unwrap();
        let error = world.rows().mark_sent(fresh, world.now()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongStatus);
    }

    /// Contract C4.4: a late success counts while nobody has taken the row over.
    async fn a_late_success_counts_while_nobody_reclaimed(world: World) {
        let id = world.pending().await;
        let slow = claim(&world, id).await.unwrap();
        world.clock.advance(seconds(500));
        world.rows().mark_sent(slow, world.now()).await.unwrap();
        assert_eq!(world.state(id).await.status, OutboxStatus::Sent);
    }

    /// Contract C4.6: after three losses the row is tried alone once more, then it ends DEAD.
    async fn a_row_that_kills_its_workers_ends_dead(world: World) {
        let id = world.pending().await;
        for seq in 1..=3 {
            assert_eq!(claim(&world, id).await, Some(Claim { id, seq }), "claim {seq}");
            world.clock.advance(seconds(60));
        }
        // Lost three times: no ordinary claim takes it any more.
        assert_eq!(claim(&world, id).await, None);
        assert!(world.rows().claim_due(&order(&world, 10)).await.unwrap().is_empty());
        assert_eq!(world.rows().bury_lost(world.now()).await.unwrap(), 0);
        let reclaim_at = world.now().plus(seconds(60));
        let alone = world.rows().claim_suspect(world.now(), reclaim_at, "n1").await.unwrap().unwrap();
        assert_eq!(alone.claim, Claim { id, seq: 4 });
        assert_eq!(world.rows().bury_lost(world.now()).await.unwrap(), 0);
        world.clock.advance(seconds(60));
        assert!(world.rows().claim_suspect(world.now(), reclaim_at, "n1").await.unwrap().is_none());
        assert_eq!(world.rows().bury_lost(world.now()).await.unwrap(), 1);
        let state = world.state(id).await;
        assert_eq!((state.status, state.attempts), (OutboxStatus::Dead, 0));
        assert!(state.last_error.unwrap().contains("worker was lost"));
    }

    /// Contract C4.6: any settling in between begins the count anew.
    async fn losses_count_in_a_row_only(world: World) {
        let id = world.pending().await;
        for _ in 0..2 {
            claim(&world, id).await.unwrap();
            world.clock.advance(seconds(60));
        }
        let third = claim(&world, id).await.unwrap();
        assert_eq!(world.state(id).await.lost_claims, 2);
        world.rows().record_failure(third, world.now(), "no", world.now()).await.unwrap();
        assert_eq!(world.state(id).await.lost_claims, 0);
    }

    /// Contract C1.2, C26: a row is due at its own instant, however many digits the clock has.
    async fn a_row_is_due_at_its_own_instant(world: World) {
        for text in
            ["2026-03-01T10:00:00.123456789Z", "2026-03-01T10:00:00.123456500Z", "2026-03-01T10:00:59.999999999Z"]
        {
            world.clock.set(Timestamp::parse(text).unwrap());
            let now = world.now();
            let id = world.pending().await;
            // The column itself, not what it reads back as: cut, never later than the given instant.
            let given: i128 = text.parse::<jiff::Timestamp>().unwrap().as_nanosecond();
            assert_eq!(i128::from(stored_micros(&world, id).await), given / 1_000, "{text}");
            let found = world.rows().find_due(&[OutboxStatus::Pending], now, 10).await.unwrap();
            assert!(found.iter().any(|entity| entity.row.id == id), "{text}");
            let claimed = world.rows().claim(id, now, now, "n1").await.unwrap().unwrap();
            assert_eq!(claimed.entity.unwrap().row.state.next_attempt_at, now);
            // Reclaim time is now: the same instant may take it over.
            assert!(world.rows().claim(id, now, now.plus(seconds(60)), "n2").await.unwrap().is_some());
        }
    }

    /// Contract C4.3: the given statuses, due, oldest first, at most one batch.
    async fn find_due_finds_the_given_statuses_oldest_first(world: World) {
        let mut ids = Vec::new();
        for back in [30, 10, 20] {
            let mut draft = world.draft();
            draft.row.state.next_attempt_at = start().minus(seconds(back));
            ids.push(draft.row.id);
            world.insert(vec![draft]).await;
        }
        let mut later = world.draft();
        later.row.state.next_attempt_at = start().plus(seconds(1));
        world.insert(vec![later]).await;
        let due = world.rows().find_due(&[OutboxStatus::Pending, OutboxStatus::Failed], start(), 10).await.unwrap();
        let found: Vec<_> = due.iter().map(|entity| entity.row.id).collect();
        assert_eq!(found, [ids[0], ids[2], ids[1]]);
        let two = world.rows().find_due(&[OutboxStatus::Pending], start(), 2).await.unwrap();
        assert_eq!(two.len(), 2);
        let sent = claim(&world, ids[0]).await.unwrap();
        world.rows().mark_sent(sent, start()).await.unwrap();
        let later = start().plus(seconds(60));
        let finals = world.rows().find_due(&[OutboxStatus::Sent], later, 10).await.unwrap();
        assert_eq!(finals.len(), 1);
        assert_eq!(world.rows().next_due(Timestamp::MIN).await.unwrap(), Some(start().minus(seconds(20))));
    }

    /// Contract C4.3, C35: rows of root and of every tenant are claimed, in due order.
    async fn rows_of_all_tenants_are_claimed(world: World) {
        let mut drafts = Vec::new();
        for (back, tenant) in [(4, "a"), (3, ""), (2, "b"), (1, "new")] {
            let mut draft = world.draft();
            draft.row.state.next_attempt_at = start().minus(seconds(back));
            draft.row.created_at = start().minus(seconds(back));
            if !tenant.is_empty() {
                draft.tenant_id = TenantId::new(tenant).unwrap();
            }
            drafts.push(draft);
        }
        let expected: Vec<_> = drafts.iter().map(|draft| draft.row.id).collect();
        world.insert(drafts).await;
        let claimed = world.rows().claim_due(&order(&world, 10)).await.unwrap();
        let found: Vec<_> = claimed.iter().map(|claimed| claimed.claim.id).collect();
        assert_eq!(found, expected);
    }

    /// Contract C5.2, case C35: rows of every kind of due, of root and of tenants, without a scope; also of
    /// a tenant that nobody has heard of before.
    async fn due_rows_of_every_status_are_claimed_for_all_tenants(world: World) {
        let tenants = ["", "a", "b", "c"].map(|name| match name {
            "" => TenantId::ROOT,
            name => TenantId::new(name).unwrap(),
        });
        let mut expected = Vec::new();
        for tenant in &tenants {
            for status in ["pending", "failed", "sending", "requeued"] {
                let mut draft = world.draft();
                draft.tenant_id = tenant.clone();
                draft.row.max_attempts = if status == "requeued" { 1 } else { 5 };
                let id = draft.row.id;
                world.insert(vec![draft]).await;
                if status != "pending" {
                    let token = claim(&world, id).await.unwrap();
                    if status != "sending" {
                        world.rows().record_failure(token, world.now(), "no", world.now()).await.unwrap();
                    }
                    if status == "requeued" {
                        assert_eq!(world.state(id).await.status, OutboxStatus::Dead);
                        world.rows().requeue(id, world.now(), "ops").await.unwrap();
                    }
                }
                expected.push((world.state(id).await.next_attempt_at, id));
                world.clock.advance(seconds(1));
            }
        }
        world.clock.advance(seconds(100));
        expected.sort();
        let mut claimed = Vec::new();
        for _ in 0..expected.len() {
            claimed.extend(world.rows().claim_due(&order(&world, 1)).await.unwrap().into_iter().map(|one| one.claim.id));
        }
        assert_eq!(claimed, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), "in the order of their times");
    }

    /// Higher priority goes first among rows that are claimed together.
    async fn priority_orders_a_claimed_batch(world: World) {
        let mut drafts = Vec::new();
        for priority in [0, 5, -1] {
            let mut draft = world.draft();
            draft.row.priority = priority;
            drafts.push(draft);
        }
        world.insert(drafts).await;
        let claimed = world.rows().claim_due(&order(&world, 10)).await.unwrap();
        let priorities: Vec<_> = claimed.iter().map(|c| c.entity.as_ref().unwrap().row.priority).collect();
        assert_eq!(priorities, [5, 0, -1]);
        assert!(world.clock.now() == start());
    }
}
