//! Runs the numbered steps of the DDL that a database lacks.
//!
//! Many nodes may start at once: one runs the steps, in one transaction; the others wait for it.

use std::sync::Arc;

use super::ddl::Ddl;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Clock, Kind, OutboxEntity, TableDef};
use crate::store::Database;
use crate::store::database::{Extent, write};

/// Runs the steps that the database lacks; any number of nodes may call it at once: one runs
/// them, the others wait. All steps run in one transaction, so a killed node leaves nothing.
///
/// Returns how many steps were run.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the tables were made by a later version of the library.
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
                connection.fetch(lock, &[ddl.lock_key()], &[]).await?;
            }
            connection.execute(&ddl.create_version_table(), &[]).await?;
            let found = connection.fetch(&ddl.read_version(), &[], &[Kind::Int]).await?;
            let at: Option<i64> = found.into_iter().flatten().next().map_or(Ok(None), Option::try_from)?;
            let at = usize::try_from(at.unwrap_or(0)).unwrap_or(0);
            let steps = ddl.steps();
            if at > steps.len() {
                return Err(Error::new(
                    ErrorKind::Configuration,
                    format!(
                        "the tables have schema version {at}; this program knows only {}: use a later one",
                        steps.len()
                    ),
                ));
            }
            for (index, step) in steps.iter().enumerate().skip(at) {
                for statement in step {
                    connection.execute(statement, &[]).await?;
                }
                let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
                connection.execute(&ddl.write_version(), &[version.into(), now.into()]).await?;
            }
            Ok(steps.len() - at)
        })
    })
    .await
    .map_err(|error| match error.is_commit_unknown() {
        // The steps that were run are known by their version: to ask again is all there is to do.
        true => Error::new(ErrorKind::Transient, error.to_string()).caused_by(error),
        false => error,
    })
}
