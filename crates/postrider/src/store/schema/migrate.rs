//! Runs the numbered steps of the DDL that a database lacks.
//!
//! Many nodes may start at once: one runs the steps, the others wait for it.

use std::sync::Arc;

use super::catalogue::Catalogue;
use super::ddl::Ddl;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Clock, Kind, OutboxEntity, TableDef, Timestamp, Value};
use crate::store::database::{Extent, write};
use crate::store::{Connection, Database};

/// Runs the steps that the database lacks; any number of nodes may call it at once: one runs
/// them, the others wait. On PostgreSQL and SQLite all steps run in one transaction, so a killed
/// node leaves nothing. On MariaDB and MySQL each statement commits by itself: what a killed node
/// left undone, the next one does.
///
/// A table that somebody dropped is made again, empty.
///
/// Returns how many steps were run; 1 if only a dropped table was made again.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the tables were made by a later version of the library;
/// [`ErrorKind::Transient`] if another node is at it for too long.
pub async fn migrate<E: OutboxEntity>(
    database: &Arc<dyn Database>,
    clock: &Arc<dyn Clock>,
    table: &TableDef,
) -> Result<usize> {
    let ddl = Arc::new(Ddl::new(database.dialect(), table, E::own_columns()));
    let now = clock.now();
    write(database, clock, Extent::Transaction, move |connection| {
        let ddl = Arc::clone(&ddl);
        Box::pin(async move {
            if let Some(lock) = ddl.lock() {
                let held = connection.fetch(lock, &[ddl.lock_key()], &[Kind::Int]).await?;
                if i64::try_from(held.into_iter().flatten().next().unwrap_or(Value::Int(None)))? != 1 {
                    return Err(Error::new(ErrorKind::Transient, "another node is making the tables; try again"));
                }
            }
            let answer = run(connection, &ddl, now).await;
            if let Some(unlock) = ddl.unlock() {
                // The session goes back to its pool, whatever the answer is.
                let unlocked = connection.execute(unlock, &[ddl.lock_key()]).await;
                return answer.and_then(|steps| unlocked.map(|_| steps));
            }
            answer
        })
    })
    .await
    .map_err(|error| match error.is_commit_unknown() {
        // The steps that were run are known by their version: to ask again is all there is to do.
        true => Error::new(ErrorKind::Transient, error.to_string()).caused_by(error),
        false => error,
    })
}

async fn run(connection: &mut dyn Connection, ddl: &Ddl, now: Timestamp) -> Result<usize> {
    connection.execute(&ddl.create_version_table(), &[]).await?;
    let at = ddl.version(connection).await?;
    let steps = ddl.steps();
    if at > steps.len() {
        let (known, kind) = (steps.len(), ErrorKind::Configuration);
        let message = format!("the tables have schema version {at}; this program knows only {known}: use a later one");
        return Err(Error::new(kind, message));
    }
    let (again, anew) = again(connection, ddl, at).await?;
    for statement in &again {
        connection.execute(statement, &[]).await?;
    }
    for (index, step) in steps.iter().enumerate().skip(at) {
        // A table that is made again is made as it is now, and has had all steps.
        for statement in step.iter().filter(|_| !anew) {
            connection.execute(statement, &[]).await?;
        }
        let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
        connection.execute(&ddl.write_version(), &[version.into(), now.into()]).await?;
    }
    Ok((steps.len() - at).max(usize::from(!again.is_empty())))
}

/// What makes those tables again that were there at version `at` and are gone, and whether the
/// outbox's own is one of them.
async fn again(connection: &mut dyn Connection, ddl: &Ddl, at: usize) -> Result<(Vec<String>, bool)> {
    let mut statements = Vec::new();
    if at == 0 {
        return Ok((statements, false));
    }
    let outbox = Catalogue::look(connection, &ddl.table, ddl.table.name()).await?;
    let attempts = Catalogue::look(connection, &ddl.table, &ddl.table.attempt_name()).await?;
    if outbox.is_none() {
        statements.extend(ddl.outbox_statements());
    }
    if attempts.is_none() {
        statements.extend(ddl.attempt_statements());
    }
    if outbox.is_none() {
        statements.extend(ddl.enqueue_statements());
    }
    Ok((statements, outbox.is_none()))
}
