//! The database: files that cannot be used, servers that do not answer, tables that are missing.

use std::net::Ipv4Addr;

use postrider_testkit::database::TestDatabase;
use postrider_testkit::server::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
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
    folder.run(&["list", "--database", "sqlite:text.db"]).refused(2, &["text.db cannot be read", "is an SQLite file"]);
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

/// A list needs no right to write; but what only a writer can take over is not left out in silence.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_may_only_be_read_can_be_looked_at() {
    let folder = Folder::new();
    let database = folder.write("data/rows.db", "");
    let on = ["--database", "sqlite:data/rows.db"];
    let id = folder.send(&on);
    let url = format!("sqlite://{}", database.display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql("UPDATE postrider_outbox SET subject = 'Later'").execute(&mut connection).await.unwrap();
    // As a crash leaves it: the change is in the file beside it alone.
    std::fs::create_dir(folder.path().join("crashed")).unwrap();
    for name in ["rows.db", "rows.db-wal"] {
        std::fs::copy(folder.path().join("data").join(name), folder.path().join("crashed").join(name)).unwrap();
    }
    sqlx::Connection::close(connection).await.unwrap();
    let data = folder.path().join("data");
    let crashed = folder.path().join("crashed");
    let _locks = (Locked::folder(&data), Locked::folder(&crashed));
    if std::fs::write(data.join("probe"), "").is_ok() {
        postrider_testkit::server::skip_unless_required("this user writes any folder, and chattr is refused");
        return;
    }
    let listed = folder.json(&[&["list"][..], &on].concat());
    assert_eq!((&listed[0]["id"], &listed[0]["subject"]), (&id.as_str().into(), &"Later".into()));
    assert_eq!(folder.json(&[&["show", &id][..], &on].concat())["row"]["status"], "PENDING");
    folder.run(&[&["requeue", &id][..], &on].concat()).refused(2, &["data/rows.db", "cannot be", "folder"]);
    let run = folder.run(&["list", "--database", "sqlite:crashed/rows.db"]);
    run.refused(2, &["crashed/rows.db cannot be read", "-wal file beside it", "let this user write the folder"]);
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

    /// The same for a folder.
    fn folder(path: &'a std::path::Path) -> Self {
        Self::new(path)
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
        // A folder's files are to be removed at the end.
        if let Ok(mut mode) = std::fs::metadata(self.0).map(|found| found.permissions()) {
            std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o700);
            let _ = std::fs::set_permissions(self.0, mode);
        }
    }
}

#[test]
fn a_server_that_does_not_answer_ends_a_command_with_5() {
    let folder = Folder::new();
    let url = format!("postgres://me:hunter2@127.0.0.1:{}/db", free_port());
    let run = folder
        .run(&["list", "--database", &url])
        .refused(5, &["cannot be reached: connection refused", "me:***@127.0.0.1", "check that PostgreSQL runs there"]);
    assert!(!run.stderr.contains("hunter2"), "{run:?}");
    let run = folder.run(&["list", "--json", "--database", &url]).refused(5, &[]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "transient");
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
    for password in ["hunter2#x", "hunter2/x", "1/hunter2"] {
        let url = format!("postgres://me:{password}@127.0.0.1:1/db");
        let run = folder.run(&["list", "--database", &url]);
        assert!(run.stderr.contains("percent-encoded"), "{run:?}");
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
    }
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
    let older = "ALTER TABLE postrider_outbox DROP COLUMN traceparent";
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    for command in [&["list"][..], &["serve"], &["send", "--to", "a@example.com", "--subject", "x"]] {
        folder.run(command).refused(2, &["lacks the columns traceparent", "postrider migrate"]);
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
    folder.run(&["serve", "--database", &wrong]).refused(2, &["refuses: no such database", "create it"]);
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
