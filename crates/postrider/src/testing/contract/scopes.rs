//! Contract C6: whose rows a call may see.

use std::collections::HashSet;
use std::sync::Arc;

use super::delivery::start;
use super::{Bench, Rule};
use crate::model::{ByTenant, OutboxEntity, OutboxId, Ownership, TenantId};
use crate::store::Inserted;
use crate::testing::RecordingChannel;

pub(super) fn tenant_rules<E: OutboxEntity<Tenancy = ByTenant>>() -> Vec<Rule<E>> {
    super::listed! {
        "C2.3" a_key_binds_within_its_tenant;
        "C6.1" a_tenant_sees_its_own_rows_alone;
        "C6.1" a_tenant_writes_its_own_rows_alone;
        "C6.3" roots_own_rows_are_a_tenants_too;
        "C4.3" rows_of_all_tenants_are_claimed;
        "C5.3" a_channel_is_told_whose_row_it_delivers;
    }
}

pub(super) fn ownership_rules<E: OutboxEntity<Tenancy = Ownership>>() -> Vec<Rule<E>> {
    super::listed! {
        "C6.2" everything_is_global;
    }
}

/// Two tenants that no other rule has.
fn two<E: OutboxEntity>(bench: &Bench<E>) -> [TenantId; 2] {
    let tag = bench.draft().id;
    ["a", "b"].map(|name| TenantId::new(format!("{name}-{tag}")).unwrap())
}

async fn write<E: OutboxEntity>(bench: &Bench<E>, tenant: &TenantId, key: &str) -> OutboxId {
    let mut row = bench.draft();
    key.clone_into(&mut row.dedupe_key);
    let id = row.id;
    let written = bench.insert(vec![bench.entity_of(row, tenant.clone())]).await;
    assert_eq!(written, [Inserted::Created(id)], "the key is free in {tenant:?}");
    id
}

async fn a_key_binds_within_its_tenant<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) {
    let [a, b] = two(bench);
    let key = bench.draft().id.to_string();
    for tenant in [&a, &b] {
        let id = write(bench, tenant, &key).await;
        let found = bench.repository.scoped(tenant).find_by_dedupe_key(&key).await.unwrap().expect("it is there");
        assert_eq!((found.row().id, found.tenant()), (id, tenant));
        let mut again = bench.draft();
        again.dedupe_key.clone_from(&key);
        let again = bench.insert(vec![bench.entity_of(again, tenant.clone())]).await;
        assert_eq!(again, [Inserted::Duplicate { existing: id }]);
    }
}

async fn a_tenant_sees_its_own_rows_alone<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) {
    let [a, b] = two(bench);
    let key = bench.draft().id.to_string();
    let id = write(bench, &a, &key).await;
    assert!(bench.repository.scoped(&a).find_by_id(id).await.unwrap().is_some());
    let other = bench.repository.scoped(&b);
    let before = bench.row(id).await;
    assert!(other.find_by_id(id).await.unwrap().is_none());
    assert!(other.find_by_dedupe_key(&key).await.unwrap().is_none());
    for refused in [
        other.requeue(id, bench.now(), "b").await.map(drop).unwrap_err(),
        other.cancel(id, bench.now(), "b").await.map(drop).unwrap_err(),
        other.expedite(id, bench.now()).await.unwrap_err(),
        other.history(id).await.map(drop).unwrap_err(),
    ] {
        assert!(refused.is_not_found(), "as if there were no such row: {refused}");
    }
    assert_eq!(bench.row(id).await, before);
}

async fn a_tenant_writes_its_own_rows_alone<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) {
    let [a, b] = two(bench);
    let foreign = bench.entity_of(bench.draft(), b);
    let mut open = bench.database.begin().await.unwrap();
    let refused = bench.repository.scoped(&a).insert(open.connection(), &[foreign]).await.unwrap_err();
    assert!(refused.is_invalid(), "{refused}");
    open.rollback().await.unwrap();
}

async fn roots_own_rows_are_a_tenants_too<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) {
    let [a, _] = two(bench);
    let key = bench.draft().id.to_string();
    let of_a = write(bench, &a, &key).await;
    assert!(bench.rows().find_by_dedupe_key(&key).await.unwrap().is_none(), "a tenant's key is not root's");
    let own = write(bench, &TenantId::ROOT, &key).await;
    let mut again = bench.draft();
    again.dedupe_key.clone_from(&key);
    let again = bench.insert(vec![bench.entity(again)]).await;
    assert_eq!(again, [Inserted::Duplicate { existing: own }], "uniqueness binds root's rows");
    let found = bench.rows().find_by_dedupe_key(&key).await.unwrap().expect("root's own");
    assert_eq!(found.row().id, own);
    let all = bench.rows().find_all_by_dedupe_key(&key).await.unwrap();
    assert_eq!(all.iter().map(|entity| entity.row().id).collect::<HashSet<_>>(), HashSet::from([of_a, own]));
}

async fn rows_of_all_tenants_are_claimed<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) {
    let [a, b] = two(bench);
    let mut written = Vec::new();
    for tenant in [&a, &TenantId::ROOT, &b] {
        written.push(write(bench, tenant, &bench.draft().id.to_string()).await);
        bench.pass(1);
    }
    let claimed: Vec<_> = bench.claim_due(10).await.into_iter().map(|claimed| claimed.claim.id).collect();
    assert_eq!(claimed, written, "in the order in which they are due");
}

async fn a_channel_is_told_whose_row_it_delivers<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) {
    let [a, b] = two(bench);
    for tenant in [&a, &TenantId::ROOT, &b] {
        write(bench, tenant, &bench.draft().id.to_string()).await;
    }
    let channel = Arc::new(RecordingChannel::new("email"));
    let dispatcher = start(bench, &channel);
    bench.passing(channel.wait_for(3)).await;
    bench.passing(dispatcher.shutdown()).await;
    assert_eq!(channel.tenants().into_iter().collect::<HashSet<_>>(), HashSet::from([a, TenantId::ROOT, b]));
}

async fn everything_is_global<E: OutboxEntity<Tenancy = Ownership>>(bench: &Bench<E>) {
    let key = bench.draft().id.to_string();
    let id = write(bench, &TenantId::ROOT, &key).await;
    assert!(bench.find(id).await.tenant().is_root());
    let found = bench.rows().find_by_dedupe_key(&key).await.unwrap().expect("it is there");
    assert_eq!(found.row().id, id);
    assert_eq!(bench.rows().find_all_by_dedupe_key(&key).await.unwrap().len(), 1);
}
