//! Four processes race for the same rows: each row is delivered once.

use postrider_testkit::database::TestDatabase;

use crate::scene::{Scene, Verdict};

/// Contract C4.1, C5.1, C5.2, case C25: two fast-path nodes and two pollers, 10,000 rows, a fifth
/// process as the peer; 0 missing, 0 double.
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_deliver_ten_thousand_rows_once_each() {
    let Some(database) = TestDatabase::postgres().await else { return };
    let scene = Scene::new(database, 0);
    scene.migrate().await;
    let pollers = [scene.node("poll-1", &[]), scene.node("poll-2", &[])];
    let mut fast = [scene.node("fast-1", &["--enqueue", "5000"]), scene.node("fast-2", &["--enqueue", "5000"])];
    for node in &mut fast {
        assert_eq!(node.line(), "enqueued");
    }
    scene.wait_until_final(10_000).await;
    for node in pollers.into_iter().chain(fast) {
        node.stop();
    }
    let expected = Verdict { sent: 10_000, unfinished: 0, missing: 0, doubles: 0, strange: 0 };
    assert_eq!(scene.verdict().await, expected);
    scene.close().await;
}
