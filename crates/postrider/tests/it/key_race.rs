//! Case C31: many callers with one key, while the first of them is still undecided.
//!
//! At every isolation level of the servers, and whether the first commits or rolls back, there is one
//! row in the end, and every caller is told what became of its own.

use std::sync::Arc;

use postrider::model::NotificationRow;
use postrider::store::{Connection, Inserted};
use postrider::{ErrorKind, Result};
use sqlx::{Connection as _, Executor};

use super::support::World;

const CALLERS: usize = 50;
const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

fn keyed(world: &World, key: &str) -> NotificationRow {
    let mut draft = world.draft();
    key.clone_into(&mut draft.row.dedupe_key);
    draft
}

async fn insert(world: &World, connection: &mut dyn Connection, key: &str) -> Result<Inserted> {
    Ok(world.rows().insert(connection, &[keyed(world, key)]).await?.remove(0))
}

/// Defines the race for one of sqlx's databases: how a transaction of a level begins is its own affair.
macro_rules! race {
    ($name:ident, $connection:ty, $begin:expr) => {
        /// One caller of many: its own transaction, committed if the database still has it.
        async fn $name(world: Arc<World>, level: &'static str, key: String) -> Result<Inserted> {
            let mut connection = <$connection>::connect(world.test.url()).await.unwrap();
            for statement in $begin(level) {
                Executor::execute(&mut connection, sqlx::AssertSqlSafe(statement)).await.unwrap();
            }
            let answer = insert(&world, &mut connection, &key).await;
            if answer.is_ok() {
                // At READ COMMITTED the transaction of a loser goes on.
                Executor::execute(&mut connection, "INSERT INTO business VALUES (1)").await.unwrap();
                let committed = Executor::execute(&mut connection, "COMMIT").await;
                assert!(committed.is_ok() || level == "SERIALIZABLE", "{committed:?}");
                if committed.is_err() {
                    return Err(postrider::Error::new(ErrorKind::TransactionGone, "refused at its commit"));
                }
            }
            connection.close().await.unwrap();
            answer
        }
    };
}

fn postgres_begin(level: &str) -> Vec<String> {
    vec![format!("BEGIN ISOLATION LEVEL {level}")]
}

fn mysql_begin(level: &str) -> Vec<String> {
    // It has read before: at REPEATABLE READ its sight of the rows is older than the winner's commit.
    let read = "SELECT COUNT(*) FROM postrider_outbox_attempt".to_owned();
    vec![format!("SET TRANSACTION ISOLATION LEVEL {level}"), "START TRANSACTION".to_owned(), read]
}

race!(call_postgres, sqlx::PgConnection, postgres_begin);
race!(call_mysql, sqlx::MySqlConnection, mysql_begin);

/// Races the callers behind a first one, which ends while they wait for it.
async fn decide<F>(world: World, call: fn(Arc<World>, &'static str, String) -> F)
where
    F: Future<Output = Result<Inserted>> + Send + 'static,
{
    world.sql("CREATE TABLE business (n INTEGER)").await;
    let world = Arc::new(world);
    for level in LEVELS {
        for commit in [true, false] {
            let key = format!("{level} {commit}");
            let first = keyed(&world, &key);
            let id = first.row.id;
            let mut open = world.database.begin().await.unwrap();
            world.rows().insert(open.connection(), &[first]).await.unwrap();
            let callers: Vec<_> =
                (0..CALLERS).map(|_| tokio::spawn(call(Arc::clone(&world), level, key.clone()))).collect();
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            if commit {
                open.commit().await.unwrap()
            } else {
                open.rollback().await.unwrap()
            }
            let mut created = if commit { vec![id] } else { Vec::new() };
            let (mut told, mut gone) = (Vec::new(), 0);
            for caller in callers {
                match caller.await.unwrap() {
                    Ok(Inserted::Created(id)) => created.push(id),
                    Ok(Inserted::Duplicate { existing }) => told.push(existing),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::TransactionGone, "{key}: {error}");
                        gone += 1;
                    }
                }
            }
            assert_eq!(created.len(), 1, "{key}: one row; {} told, {gone} undone", told.len());
            assert!(told.iter().all(|existing| *existing == created[0]), "{key}: all are told the same row");
            assert_eq!(told.len() + gone + usize::from(!commit), CALLERS);
            assert_eq!(world.rows().find_all_by_dedupe_key(&key).await.unwrap().len(), 1, "{key}");
        }
    }
}

/// Contract C2.2, case C31.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_fifty_callers_writes_at_every_level_on_postgres() {
    let Some(world) = World::postgres().await else { return };
    decide(world, call_postgres).await;
}

/// Contract C2.2, case C31: a deadlock is told as such, and nothing more is sent.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_fifty_callers_writes_at_every_level_on_mariadb() {
    let Some(world) = World::mysql().await else { return };
    decide(world, call_mysql).await;
}
