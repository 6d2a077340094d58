//! Contract C2: writing in the caller's transaction, once per key.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{Bench, Rule};
use crate::error::ErrorKind;
use crate::model::{Clock, OutboxEntity, OutboxRow};
use crate::store::Inserted;
use crate::store::database::{Extent, write};

pub(super) fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    super::listed! {
        "C2.1" rows_live_and_die_with_the_callers_transaction;
        "C2.2" a_taken_key_writes_nothing_and_names_its_holder;
        "C2.2" a_final_row_still_holds_its_key;
        "C2.2" of_many_callers_with_one_key_one_writes;
        "C2.2" after_a_duplicate_the_transaction_goes_on;
        "C2.4" many_rows_are_written_in_one_call;
    }
}

fn keyed<E: OutboxEntity>(bench: &Bench<E>, key: &str) -> OutboxRow {
    let mut row = bench.draft();
    key.clone_into(&mut row.dedupe_key);
    row
}

async fn rows_live_and_die_with_the_callers_transaction<E: OutboxEntity>(bench: &Bench<E>) {
    for commit in [false, true] {
        let row = bench.draft();
        let id = row.id;
        let mut open = bench.database.begin().await.unwrap();
        bench.rows().insert(open.connection(), &[bench.entity(row)]).await.unwrap();
        if commit {
            open.commit().await.unwrap();
        } else {
            open.rollback().await.unwrap();
        }
        assert_eq!(bench.rows().find_by_id(id).await.unwrap().is_some(), commit, "committed: {commit}");
        assert_eq!(bench.claim(id).await.is_some(), commit, "committed: {commit}");
    }
}

async fn a_taken_key_writes_nothing_and_names_its_holder<E: OutboxEntity>(bench: &Bench<E>) {
    let tag = bench.draft().id;
    let (taken, free) = (format!("{tag}-taken"), format!("{tag}-free"));
    let holder = bench.write(keyed(bench, &taken)).await;
    let first = keyed(bench, &free);
    let id = first.id;
    let rows = [keyed(bench, &taken), first, keyed(bench, &free), keyed(bench, &taken)];
    let refused = rows.each_ref().map(|row| row.id);
    let answers = bench.insert(rows.into_iter().map(|row| bench.entity(row)).collect()).await;
    let existing = |existing| Inserted::Duplicate { existing };
    assert_eq!(answers, [existing(holder), Inserted::Created(id), existing(id), existing(holder)]);
    for unwritten in [refused[0], refused[2], refused[3]] {
        assert!(bench.rows().find_by_id(unwritten).await.unwrap().is_none(), "nothing is written for a duplicate");
    }
}

async fn a_final_row_still_holds_its_key<E: OutboxEntity>(bench: &Bench<E>) {
    let claim = bench.claimed().await;
    let key = bench.row(claim.id).await.dedupe_key;
    bench.rows().mark_sent(claim, bench.now()).await.unwrap();
    let again = bench.insert(vec![bench.entity(keyed(bench, &key))]).await;
    assert_eq!(again, [Inserted::Duplicate { existing: claim.id }]);
    bench.rows().requeue(claim.id, bench.now(), "ops").await.unwrap();
    let again = bench.insert(vec![bench.entity(keyed(bench, &key))]).await;
    assert_eq!(again, [Inserted::Duplicate { existing: claim.id }]);
}

async fn of_many_callers_with_one_key_one_writes<E: OutboxEntity>(bench: &Bench<E>) {
    let key = bench.draft().id.to_string();
    let callers = join_all((0..16).map(|_| bench.insert(vec![bench.entity(keyed(bench, &key))])));
    let answers = bench.passing(callers).await;
    let created = answers.iter().flatten().filter_map(|answer| match answer {
        Inserted::Created(id) => Some(*id),
        Inserted::Duplicate { .. } => None,
    });
    let created: Vec<_> = created.collect();
    assert_eq!(created.len(), 1, "one of them writes");
    let told = |answer: &Inserted| match answer {
        Inserted::Created(id) | Inserted::Duplicate { existing: id } => *id,
    };
    assert!(answers.iter().flatten().all(|answer| told(answer) == created[0]), "all are told the same row");
}

async fn after_a_duplicate_the_transaction_goes_on<E: OutboxEntity>(bench: &Bench<E>) {
    let holder = bench.pending().await;
    let key = bench.row(holder).await.dedupe_key;
    let (duplicate, next) = (bench.entity(keyed(bench, &key)), bench.entity(bench.draft()));
    let id = next.row().id;
    let clock: Arc<dyn Clock> = bench.clock.clone();
    let work = Arc::new((bench.rows(), [duplicate], [next]));
    let written = write(&bench.database, &clock, Extent::Transaction, move |connection| {
        let work = Arc::clone(&work);
        Box::pin(async move {
            let (rows, duplicate, next) = &*work;
            let first = rows.insert(&mut *connection, duplicate).await?;
            Ok((first, rows.insert(connection, next).await?))
        })
    });
    let (first, second) = written.await.unwrap();
    assert_eq!((first, second), (vec![Inserted::Duplicate { existing: holder }], vec![Inserted::Created(id)]));
    assert!(bench.rows().find_by_id(id).await.unwrap().is_some());
    // The id is another unique column: it is no duplicate, but an error, and names no holder.
    let mut twin = bench.draft();
    twin.id = holder;
    let mut open = bench.database.begin().await.unwrap();
    let refused = bench.rows().insert(open.connection(), &[bench.entity(twin)]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Duplicate, "{refused}");
    open.rollback().await.unwrap();
}

async fn many_rows_are_written_in_one_call<E: OutboxEntity>(bench: &Bench<E>) {
    let rows: Vec<_> = (0..600).map(|_| bench.draft()).collect();
    let ids: Vec<_> = rows.iter().map(|row| Inserted::Created(row.id)).collect();
    let answers = bench.insert(rows.into_iter().map(|row| bench.entity(row)).collect()).await;
    assert_eq!(answers, ids, "one answer per row, in their order");
    assert_eq!(bench.insert(Vec::new()).await, []);
}
