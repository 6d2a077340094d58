//! Database servers: those that do not answer or refuse the login, and the commands on real ones.

use std::net::Ipv4Addr;

use postrider_testkit::database::TestDatabase;
use postrider_testkit::server::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Daemon, Folder};

#[test]
fn a_server_that_does_not_answer_ends_a_command_with_5() {
    let folder = Folder::new();
    for (scheme, product) in [("postgres", "PostgreSQL"), ("mysql", "MariaDB or MySQL"), ("mariadb", "MariaDB")] {
        let url = format!("{scheme}://me:hunter2@127.0.0.1:{}/db", free_port());
        let remedy = format!("check that {product}");
        let said = ["cannot be reached: connection refused", "me:***@127.0.0.1", &remedy];
        let run = folder.run(&["list", "--database", &url]).refused(5, &said);
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
        let run = folder.run(&["list", "--json", "--database", &url]).refused(5, &[]);
        let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "transient");
    }
}

/// A server that answers the login with this error, as PostgreSQL says it.
async fn refusing(state: &'static str, message: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut length = [0; 4];
                while stream.read_exact(&mut length).await.is_ok() {
                    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
                    stream.read_exact(&mut rest).await.unwrap();
                    if rest.starts_with(&80_877_103_u32.to_be_bytes()) {
                        // TLS was asked for.
                        stream.write_all(b"N").await.unwrap();
                        continue;
                    }
                    let fields = format!("SFATAL\0VFATAL\0C{state}\0M{message}\0\0");
                    let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
                    stream.write_all(&[b"E", &length[..], fields.as_bytes()].concat()).await.unwrap();
                    break;
                }
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_refused_is_named_with_the_remedy() {
    let folder = Folder::new();
    for (state, message, said) in [
        ("28P01", "password authentication failed for user \"me\"", ["password refused", "check user and password"]),
        ("28000", "no entry for this host", ["login refused", "pg_hba.conf"]),
        ("3D000", "database \"db\" does not exist", ["no such database (database \"db\" does not exist)", "create it"]),
    ] {
        let url = format!("postgres://me:hunter2@127.0.0.1:{}/db", refusing(state, message).await);
        for command in ["list", "serve"] {
            let run = folder.run(&[command, "--database", &url]).refused(2, &["refuses", said[0], said[1]]);
            assert!(!run.stderr.contains("hunter2"), "{run:?}");
        }
    }
    let starting = refusing("57P03", "the database system is starting up").await;
    let url = format!("postgres://me@127.0.0.1:{starting}/db");
    folder.run(&["list", "--database", &url]).refused(5, &["does not take connections yet"]);
}

#[test]
fn a_password_that_is_not_encoded_is_hinted_at() {
    let folder = Folder::new();
    let passwords = ["hunter2#x", "hunter2/x", "1/hunter2"];
    for (scheme, password) in ["postgres", "mysql"].iter().flat_map(|scheme| passwords.map(|it| (scheme, it))) {
        let url = format!("{scheme}://me:{password}@127.0.0.1:1/db");
        let run = folder.run(&["list", "--database", &url]);
        assert!(run.stderr.contains("percent-encoded"), "{run:?}");
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn the_daemon_waits_for_a_server_that_does_not_answer() {
    let folder = Folder::new();
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://me@127.0.0.1:{}/db", free_port());
        let mut daemon = Daemon::spawn(folder.command(&["serve", "--database", &url]));
        daemon.wait_for_line("tried again until it answers");
        assert_eq!(daemon.stop(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_on_postgres() {
    if let Some(database) = TestDatabase::postgres().await {
        the_commands_work_on(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_on_mariadb() {
    if let Some(database) = TestDatabase::mariadb().await {
        the_commands_work_on(database).await;
    }
}

async fn the_commands_work_on(database: TestDatabase) {
    let folder = Folder::new();
    let on = ["--database", database.url()];
    let run = folder.run(&[&["send", "--to", "a@example.com", "--subject", "x"][..], &on].concat());
    run.refused(2, &["has no table postrider_outbox", "postrider migrate"]);
    assert_eq!(folder.json(&[&["migrate"][..], &on].concat())["steps"], 3);
    let daemon = Daemon::start(&folder, &on);
    let id = folder.send(&on);
    assert_eq!(folder.wait_for(&id, "SENT", &on)["sandbox"], true);
    assert_eq!(folder.json(&[&["requeue", &id][..], &on].concat())[0]["outcome"], "reset");
    folder.wait_for(&id, "SENT", &on);
    assert_eq!(folder.json(&[&["show", &id[..13]][..], &on].concat())["row"]["id"], id.as_str());
    assert_eq!(folder.json(&[&["list", "--limit", "1"][..], &on].concat())[0]["id"], id.as_str());
    folder.run(&[&["check"][..], &on].concat()).ok();
    assert_eq!(daemon.stop(), Some(0));
    let wrong = format!("{}_no", database.url());
    folder.run(&["serve", "--database", &wrong]).refused(2, &["refuses: no such database", "create it"]);
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_begins_once_postgres_answers_and_says_so_once() {
    if let Some(database) = TestDatabase::postgres().await {
        the_daemon_begins_once_the_server_answers(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_begins_once_mariadb_answers_and_says_so_once() {
    if let Some(database) = TestDatabase::mariadb().await {
        the_daemon_begins_once_the_server_answers(database).await;
    }
}

async fn the_daemon_begins_once_the_server_answers(database: TestDatabase) {
    let (login, place) = database.url().rsplit_once('@').unwrap();
    let (server, name) = place.split_once('/').unwrap();
    let port = free_port();
    let url = format!("{login}@127.0.0.1:{port}/{name}");
    let folder = Folder::new();
    let mut daemon = Daemon::spawn(folder.command(&["serve", "--database", &url]));
    daemon.wait_for_line("tried again until it answers");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let server = server.to_owned();
    let proxy = tokio::spawn(async move {
        loop {
            let (mut here, _) = listener.accept().await.unwrap();
            let mut there = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut here, &mut there).await });
        }
    });
    daemon.wait_for_line("delivering");
    let said = daemon.stderr();
    assert_eq!((said.matches("cannot be reached").count(), said.matches("is reached").count()), (1, 1), "{said}");
    let id = folder.send(&["--database", &url]);
    folder.wait_for(&id, "SENT", &["--database", &url]);
    assert_eq!(daemon.stop(), Some(0));
    proxy.abort();
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_mariadb_refuses_is_named_with_the_remedy() {
    let Some(database) = TestDatabase::mariadb().await else { return };
    let folder = Folder::new();
    let (_, place) = database.url().rsplit_once('@').unwrap();
    let url = format!("mariadb://nobody_at_all:hunter2@{place}");
    for command in ["list", "serve"] {
        let run = folder.run(&[command, "--database", &url]).refused(2, &["refuses: login refused", "check user"]);
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
    }
    database.close().await;
}
