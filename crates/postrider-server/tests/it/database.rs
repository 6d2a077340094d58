//! The database: files that cannot be used, servers that do not answer, tables that are missing.

use std::net::Ipv4Addr;

use postrider_testkit::database::TestDatabase;
use postrider_testkit::server::free_port;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Daemon, Folder};

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_remedy() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    folder.write("text.db", &"this is no database\n".repeat(100));
    for name in ["dir", "no/such/folder/x.db", "text.db"] {
        let url = format!("sqlite:{name}");
        for command in [
            &["serve", "--database", &url][..],
            &["send", "--to", "a@example.com", "--subject", "x", "--database", &url],
            &["migrate", "--database", &url],
        ] {
            folder.run(command).refused(2, &[name, "cannot be", "folder"]);
        }
        folder.run(&["check", "--database", &url]).refused(1, &[]);
    }
    folder.run(&["list", "--database", "sqlite:none.db"]).refused(2, &["there is no database at none.db yet"]);
    assert!(!folder.path().join("none.db").exists());
}

/// SQLite itself opens such a file for reading, and fails only when it writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_only_be_read_is_refused_before_anything_else() {
    let folder = Folder::new();
    folder.run(&["migrate"]).ok();
    let file = folder.path().join("postrider.db");
    let locked = Locked::new(&file);
    if !locked.works() {
        postrider_testkit::server::skip_unless_required("this user writes any file, and chattr is refused");
        return;
    }
    for command in [&["serve"][..], &["send", "--to", "a@example.com", "--subject", "x"]] {
        folder.run(command).refused(2, &["the SQLite file postrider.db cannot be", "written", "folder"]);
    }
    folder.run(&["check"]).refused(1, &[]);
}

/// A file that nobody may write: by mode, and for root by its immutable flag.
struct Locked<'a>(&'a std::path::Path);

impl<'a> Locked<'a> {
    fn new(path: &'a std::path::Path) -> Self {
        let mut mode = std::fs::metadata(path).unwrap().permissions();
        mode.set_readonly(true);
        std::fs::set_permissions(path, mode).unwrap();
        Self::chattr("+i", path);
        Self(path)
    }

    fn works(&self) -> bool {
        std::fs::OpenOptions::new().append(true).open(self.0).is_err()
    }

    fn chattr(flag: &str, path: &std::path::Path) {
        let mut command = std::process::Command::new("chattr");
        let _ = command.arg(flag).arg(path).stderr(std::process::Stdio::null()).status();
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        Self::chattr("-i", self.0);
    }
}

#[test]
fn a_server_that_does_not_answer_ends_a_command_with_5() {
    let folder = Folder::new();
    let url = format!("postgres://me:hunter2@127.0.0.1:{}/db", free_port());
    let run = folder.run(&["list", "--database", &url]).refused(5, &["cannot be reached", "me:***@127.0.0.1", "check"]);
    assert!(!run.stderr.contains("hunter2"), "{run:?}");
    let run = folder.run(&["list", "--json", "--database", &url]).refused(5, &[]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "transient");
}

#[test]
fn the_daemon_waits_for_a_server_that_does_not_answer() {
    let folder = Folder::new();
    let url = format!("postgres://me@127.0.0.1:{}/db", free_port());
    let mut daemon = Daemon::spawn(folder.command(&["serve", "--database", &url]));
    daemon.wait_for_line("tried again until it answers");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn missing_tables_are_named_with_the_command_that_makes_them() {
    let folder = Folder::new();
    // An empty file is an empty database.
    folder.write("postrider.db", "");
    let said = ["has no table postrider_outbox", "`postrider migrate` makes what is missing"];
    folder.run(&["list"]).refused(2, &said);
    folder.run(&["serve", "--no-migrate"]).refused(2, &said);
    let check = folder.run(&["check"]).refused(1, &[]);
    assert!(check.stdout.contains("PROBLEM  table: "), "{check:?}");
    assert_eq!(folder.json(&["migrate"])["steps"], 2);
    assert_eq!(folder.json(&["migrate"])["steps"], 0);
    folder.run(&["check"]).ok();
    let _daemon = Daemon::start(&folder, &["--no-migrate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_table_is_refused_with_the_missing_columns() {
    let folder = Folder::new();
    folder.run(&["migrate"]).ok();
    let url = format!("sqlite://{}", folder.path().join("postrider.db").display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    let older = "ALTER TABLE postrider_outbox DROP COLUMN metadata";
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    for command in [&["list"][..], &["serve"], &["send", "--to", "a@example.com", "--subject", "x"]] {
        folder.run(command).refused(2, &["lacks the columns metadata", "postrider migrate"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_on_postgres() {
    let Some(database) = TestDatabase::postgres().await else { return };
    let folder = Folder::new();
    let on = ["--database", database.url()];
    let run = folder.run(&[&["send", "--to", "a@example.com", "--subject", "x"][..], &on].concat());
    run.refused(2, &["has no table postrider_outbox", "postrider migrate"]);
    assert_eq!(folder.json(&[&["migrate"][..], &on].concat())["steps"], 2);
    let daemon = Daemon::start(&folder, &on);
    let id = folder.send(&on);
    assert_eq!(folder.wait_for(&id, "SENT", &on)["sandbox"], true);
    assert_eq!(folder.json(&[&["requeue", &id][..], &on].concat())[0]["outcome"], "reset");
    folder.wait_for(&id, "SENT", &on);
    folder.run(&[&["check"][..], &on].concat()).ok();
    assert_eq!(daemon.stop(), Some(0));
    let wrong = format!("{}_no", database.url());
    folder.run(&["serve", "--database", &wrong]).refused(2, &["refuses"]);
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_begins_once_the_server_answers_and_says_so_once() {
    let Some(database) = TestDatabase::postgres().await else { return };
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

/// An application that keeps the table by its own migrations has no table of versions.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_the_applications_own_is_served() {
    let folder = Folder::new();
    folder.run(&["migrate"]).ok();
    let url = format!("sqlite://{}", folder.path().join("postrider.db").display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql("DROP TABLE postrider_outbox_schema").execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let _daemon = Daemon::start(&folder, &[]);
    let id = folder.send(&[]);
    folder.wait_for(&id, "SENT", &[]);
}
