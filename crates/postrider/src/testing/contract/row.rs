//! Contract C1: the row.

use super::{Bench, Rule};
use crate::model::{OutboxEntity, OutboxStatus, Timestamp};
use crate::store::Inserted;

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C1.1" a_row_without_copies_has_an_empty_list;
        "C1.2" a_row_is_due_at_the_instant_of_its_creation;
        "C1.3" an_error_is_cut_and_made_storable;
        "C1.4" keys_are_compared_byte_for_byte;
        "C1.4" a_row_without_a_key_has_its_own_id;
        "C1.5" every_change_is_dated_by_the_applications_clock;
        "C1.6" an_entity_comes_back_as_it_was_written;
    }
}

async fn a_row_without_copies_has_an_empty_list<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    assert!(bench.row(id).await.cc_addresses.is_empty());
    let mut other = bench.draft();
    other.channel = "webhook".to_owned();
    let id = bench.write(other).await;
    assert!(bench.row(id).await.cc_addresses.is_empty());
}

async fn a_row_is_due_at_the_instant_of_its_creation<E: OutboxEntity>(bench: &Bench<E>) {
    for micros in [1, 499_999, 500_000, 999_999] {
        bench.clock.set(Timestamp::from_micros(bench.now().as_micros() / 1_000_000 * 1_000_000 + 1_000_000 + micros));
        let id = bench.pending().await;
        assert_eq!(bench.state(id).await.next_attempt_at, bench.now(), "the time is stored as it is");
        let due = bench.rows().find_due(&[OutboxStatus::Pending], bench.now(), 10).await.unwrap();
        assert!(due.iter().any(|entity| entity.row().id == id), "it is due at its own instant");
        let claim = bench.claim(id).await.expect("it can be claimed at its own instant");
        bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    }
}

async fn an_error_is_cut_and_made_storable<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    let said = "x".repeat(1_998) + "\0✅ and more";
    bench.rows().record_failure(claim, bench.now(), &said, bench.now()).await.unwrap();
    assert_eq!(bench.state(claim.id).await.last_error, Some("x".repeat(1_998) + "\u{fffd}✅"));
    let claim = bench.claim(claim.id).await.expect("it is due again");
    let wide = "😀".repeat(2_000);
    bench.rows().mark_suppressed(claim, bench.now(), &wide).await.unwrap();
    assert_eq!(bench.state(claim.id).await.last_error, Some(wide), "2,000 characters, however wide, are kept");
}

async fn keys_are_compared_byte_for_byte<E: OutboxEntity>(bench: &Bench<E>) {
    let tag = bench.draft().id;
    let keys =
        ["Order", "order", "order ", "order\t", "ordér", "orde\u{301}r", " order"].map(|key| format!("{tag}{key}"));
    for key in &keys {
        let mut row = bench.draft();
        row.dedupe_key.clone_from(key);
        bench.write(row).await;
    }
    for key in &keys {
        let found = bench.rows().find_by_dedupe_key(key).await.unwrap().expect("each key finds its row");
        assert_eq!(&found.row().dedupe_key, key, "and no other");
    }
    let mut long = bench.draft();
    long.dedupe_key = format!("{tag}{}", "k".repeat(255 - 36));
    assert_eq!(long.dedupe_key.len(), 255);
    let id = bench.write(long.clone()).await;
    long.id = bench.draft().id;
    assert_eq!(bench.insert(vec![bench.entity(long)]).await, [Inserted::Duplicate { existing: id }]);
}

async fn a_row_without_a_key_has_its_own_id<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    assert_eq!(bench.row(id).await.dedupe_key, id.to_string());
}

async fn every_change_is_dated_by_the_applications_clock<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let id = bench.pending().await;
    let mut seen = bench.now();
    assert_eq!(bench.state(id).await.updated_at, seen);
    let mut dated = async |what: &str| {
        let updated_at = bench.state(id).await.updated_at;
        assert!(updated_at == bench.now() && updated_at > seen, "{what} sets updated_at");
        seen = updated_at;
        bench.pass(1);
    };
    bench.pass(1);
    let claim = bench.claim(id).await.expect("it is due");
    dated("a claim").await;
    rows.renew(&[claim], bench.now(), bench.later(90)).await.unwrap();
    dated("a renewal").await;
    rows.record_failure(claim, bench.now(), "no", bench.later(50)).await.unwrap();
    dated("a failure").await;
    rows.expedite(id, bench.now()).await.unwrap();
    dated("an expedite").await;
    assert_eq!(rows.postpone("email", bench.now(), bench.later(5), "paused", 10).await.unwrap(), 1);
    dated("a postponement").await;
    assert_eq!(rows.resume("email", bench.now(), "paused", 10).await.unwrap(), 1);
    dated("a resumption").await;
    rows.cancel(id, bench.now(), "ops").await.unwrap();
    dated("a cancel").await;
    rows.requeue(id, bench.now(), "ops").await.unwrap();
    dated("a requeue").await;
}

async fn an_entity_comes_back_as_it_was_written<E: OutboxEntity>(bench: &Bench<E>) {
    let mut row = bench.draft();
    row.cc_addresses = vec!["carl@example.com".to_owned(), "dörte@example.com".to_owned()];
    row.subject = Some("Grüße ✅ 'quoted' \"double\" `back`".to_owned());
    row.body = Some("line\r\nline\u{ffff}\t\\n".to_owned());
    row.payload = Some(serde_json::json!({"html": "<b>x</b>", "n": [1, null, true, "é"]}));
    row.max_attempts = 3;
    row.priority = -7;
    row.expires_at = Some(bench.later(3_600));
    row.ordering_key = Some("order-7".to_owned());
    row.category = Some("receipts".to_owned());
    row.locale = Some("de-CH".to_owned());
    row.template = Some("receipt".to_owned());
    row.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    row.metadata = Some(serde_json::json!({"order": 7}));
    let entity = bench.entity(row.clone());
    assert_eq!(entity.row(), &row, "the application's function keeps the row");
    assert_eq!(bench.insert(vec![entity.clone()]).await, [Inserted::Created(row.id)]);
    let found = bench.find(row.id).await;
    assert_eq!(found.row(), &row);
    assert_eq!((found.tenant(), found.own_values()), (entity.tenant(), entity.own_values()));
    let claimed = bench.rows().claim(row.id, bench.now(), bench.later(60), "n").await.unwrap().expect("it is due");
    let claimed = claimed.entity.unwrap();
    assert_eq!(claimed.own_values(), entity.own_values());
    assert_eq!((&claimed.row().subject, &claimed.row().payload), (&row.subject, &row.payload));
}
