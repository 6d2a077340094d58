//! A node is killed in the middle of deliveries: everything arrives, and little arrives twice.

use std::time::Duration;

use postrider_testkit::database::TestDatabase;

use crate::scene::Scene;

const ROWS: usize = 600;
const CONCURRENCY: usize = 16;
const KILLS: usize = 3;

/// Kills a node three times while it delivers; doubles are at most the sends in flight.
async fn survive_kills(database: TestDatabase) {
    let scene = Scene::new(database, 200);
    scene.migrate().await;
    let rows = ROWS.to_string();
    let concurrency = CONCURRENCY.to_string();
    let common = ["--claim-timeout", "3", "--concurrency", &concurrency];
    // The first node writes the rows, so that all of them are committed before anybody dies.
    let mut node = scene.node("node-0", &[&["--enqueue", &rows], &common[..]].concat());
    assert_eq!(node.line(), "enqueued");
    for kill in 1..=KILLS {
        let before = scene.received();
        let wanted = (before + 40).min(ROWS);
        for _ in 0..3_000 {
            if scene.received() >= wanted {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        node.kill();
        node = scene.node(&format!("node-{kill}"), &common);
    }
    scene.wait_until_final(ROWS).await;
    node.stop();
    let verdict = scene.verdict().await;
    assert_eq!((verdict.sent, verdict.unfinished, verdict.missing, verdict.strange), (ROWS, 0, 0, 0), "{verdict:?}");
    assert!(verdict.doubles <= KILLS * CONCURRENCY, "{verdict:?}");
    println!("killed {KILLS} times: {verdict:?}");
    scene.close().await;
}

/// Contract C4.2, case C30.
#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_though_the_node_is_killed_on_postgres() {
    if let Some(database) = TestDatabase::postgres().await {
        survive_kills(database).await;
    }
}

/// Contract C4.2, case C30.
#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_though_the_node_is_killed_on_sqlite() {
    survive_kills(TestDatabase::sqlite()).await;
}
