//! The database's file and its tables: what cannot be used, what is missing, what is the application's own.

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
fn missing_tables_are_named_with_the_command_that_makes_them() {
    let folder = Folder::new();
    // An empty file is an empty database.
    folder.write("postrider.db", "");
    let said = ["has no table postrider_outbox", "`postrider migrate` makes what is missing"];
    folder.run(&["list"]).refused(2, &said);
    folder.run(&["serve", "--no-migrate"]).refused(2, &said);
    let check = folder.run(&["check"]).refused(1, &[]);
    assert!(check.stdout.contains("PROBLEM  table: "), "{check:?}");
    assert_eq!(folder.json(&["migrate"])["steps"], 3);
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

#[cfg(target_os = "linux")]
#[test]
fn check_tells_of_a_folder_in_which_no_file_can_be_made() {
    let folder = Folder::new();
    let check = folder.run(&["check", "--database", "sqlite:/proc/postrider.db"]).refused(1, &["1 check failed"]);
    assert!(check.stdout.contains("cannot be made"), "{check:?}");
    folder.run(&["check"]).ok();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
