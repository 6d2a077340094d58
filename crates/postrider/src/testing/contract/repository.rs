//! Contract C7: the repository over the rows.

use std::collections::HashSet;

use futures_util::TryStreamExt;

use super::{Bench, Rule};
use crate::model::{OutboxEntity, OutboxId, OutboxStatus};
use crate::store::{Deleted, Direction, Query, Saved};

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C7" rows_are_found_by_what_they_hold;
        "C7" pages_and_streams_show_every_row_once;
        "C7" a_saved_row_is_written_or_changed;
        "C7.1" save_writes_nothing_of_the_state_machines;
        "C7.1" a_row_under_way_is_not_deleted;
        "C7.1" deletes_of_many_leave_rows_under_way_alone;
    }
}

/// Rows that no other rule has, by their category.
async fn some<E: OutboxEntity>(bench: &Bench<E>, category: &str, count: i32) -> Vec<OutboxId> {
    let mut ids = Vec::new();
    for priority in 0..count {
        let mut row = bench.draft();
        row.category = Some(category.to_owned());
        row.priority = priority;
        ids.push(bench.write(row).await);
    }
    ids
}

fn mark<E: OutboxEntity>(bench: &Bench<E>) -> String {
    bench.draft().id.to_string()
}

async fn rows_are_found_by_what_they_hold<E: OutboxEntity>(bench: &Bench<E>) {
    let (rows, category) = (bench.rows(), mark(bench));
    let ids = some(bench, &category, 5).await;
    let of_it = || Query::new().eq("category", category.as_str());
    assert_eq!(rows.count_by(&of_it()).await.unwrap(), 5);
    let upward = of_it().ge("priority", 2).order_by("priority", Direction::Ascending).limit(2);
    let found: Vec<_> = rows.find_by(&upward).await.unwrap().iter().map(|entity| entity.row().id).collect();
    assert_eq!(found, [ids[2], ids[3]]);
    let one = rows.find_one(&of_it().eq("priority", 4)).await.unwrap().expect("there is one");
    assert_eq!(one.row().id, ids[4]);
    assert!(rows.find_one(&of_it().eq("priority", 9)).await.unwrap().is_none());
    assert!(rows.find_one(&of_it()).await.is_err(), "five are not one");
    let probe = Query::new().matching(&one, &["category", "priority", "status"]);
    assert_eq!(rows.find_one(&probe).await.unwrap().expect("by example").row().id, ids[4]);
    assert!(rows.exists_by_id(ids[0]).await.unwrap() && !rows.exists_by_id(bench.draft().id).await.unwrap());
    assert_eq!(rows.find_all_by_id(&ids).await.unwrap().len(), 5);
    assert!(rows.count_by(&Query::new().eq("no_such_column", 1)).await.unwrap_err().is_invalid());
}

async fn pages_and_streams_show_every_row_once<E: OutboxEntity>(bench: &Bench<E>) {
    let (rows, category) = (bench.rows(), mark(bench));
    let all: HashSet<_> = some(bench, &category, 7).await.into_iter().collect();
    let of_it = Query::new().eq("category", category.as_str());
    let (mut query, mut seen) = (of_it.clone().limit(3), Vec::new());
    loop {
        let page = rows.page(&query).await.unwrap();
        seen.extend(page.rows.iter().map(|entity| entity.row().id));
        let Some(next) = page.next else { break };
        query = of_it.clone().limit(3).after(next);
    }
    assert_eq!((seen.len(), seen.into_iter().collect::<HashSet<_>>()), (7, all.clone()));
    let streamed: Vec<E> = rows.stream(&of_it).try_collect().await.unwrap();
    assert_eq!(streamed.iter().map(|entity| entity.row().id).collect::<HashSet<_>>(), all);
}

async fn save<E: OutboxEntity>(bench: &Bench<E>, entity: &E) -> Saved {
    let mut open = bench.database.begin().await.unwrap();
    let saved = bench.rows().save(open.connection(), entity).await.unwrap();
    open.commit().await.unwrap();
    saved
}

async fn a_saved_row_is_written_or_changed<E: OutboxEntity>(bench: &Bench<E>) {
    let mut row = bench.draft();
    let id = row.id;
    assert_eq!(save(bench, &bench.entity(row.clone())).await, Saved::Created(id));
    bench.pass(3);
    row.subject = Some("changed".to_owned());
    assert_eq!(save(bench, &bench.entity(row.clone())).await, Saved::Updated(id));
    let found = bench.row(id).await;
    assert_eq!((found.subject.as_deref(), found.state.updated_at), (Some("changed"), bench.now()));
    let mut twin = bench.draft();
    twin.dedupe_key = row.dedupe_key;
    assert_eq!(save(bench, &bench.entity(twin)).await, Saved::Duplicate { existing: id });
}

async fn save_writes_nothing_of_the_state_machines<E: OutboxEntity>(bench: &Bench<E>) {
    let id = bench.pending().await;
    let stale = bench.find(id).await;
    let claim = bench.claim(id).await.expect("it is due");
    let before = bench.state(id).await;
    assert_eq!(save(bench, &stale).await, Saved::Updated(id));
    let mut after = bench.state(id).await;
    after.updated_at = before.updated_at;
    assert_eq!(after, before, "a stale object does not walk round the fence");
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    save(bench, &stale).await;
    assert_eq!(bench.state(id).await.status, OutboxStatus::Sent);
}

async fn a_row_under_way_is_not_deleted<E: OutboxEntity>(bench: &Bench<E>) {
    let rows = bench.rows();
    let claim = bench.claimed().await;
    assert!(rows.delete_by_id(claim.id).await.unwrap_err().is_conflict());
    bench.pass(61);
    let entity = bench.find(claim.id).await;
    assert!(rows.delete(&entity).await.unwrap_err().is_conflict(), "an overdue one neither");
    rows.record_failure(claim, bench.now(), "no", bench.now()).await.unwrap();
    assert!(rows.delete_by_id(claim.id).await.unwrap());
    assert!(!rows.delete_by_id(claim.id).await.unwrap() && !rows.exists_by_id(claim.id).await.unwrap());
    assert!(rows.history(claim.id).await.unwrap_err().is_not_found());
}

async fn deletes_of_many_leave_rows_under_way_alone<E: OutboxEntity>(bench: &Bench<E>) {
    let (rows, category) = (bench.rows(), mark(bench));
    let ids = some(bench, &category, 4).await;
    let under_way = bench.claim(ids[1]).await.expect("it is due");
    let of_it = Query::new().eq("category", category.as_str());
    assert_eq!(rows.delete_by(&of_it).await.unwrap(), Deleted { deleted: 3, sending: 1 });
    assert_eq!(rows.count_by(&of_it).await.unwrap(), 1);
    bench.rows().mark_sent(under_way, bench.now()).await.unwrap();
    assert_eq!(rows.delete_all_by_id(&ids).await.unwrap(), Deleted { deleted: 1, sending: 0 });
}
