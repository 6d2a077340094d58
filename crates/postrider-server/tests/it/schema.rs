//! `postrider schema`: the statements that make the tables, and what a real table lacks.

use std::path::PathBuf;

use postrider::model::column;
use postrider_testkit::database::TestDatabase;
use serde_json::Value as Json;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::{Daemon, Folder};

/// Runs a script as a person would, with the database's own client.
pub(crate) async fn run_sql(url: &str, script: &str) {
    let script = AssertSqlSafe(script.to_owned());
    match url.split_once(':').unwrap().0 {
        "sqlite" => {
            let mut connection = sqlx::SqliteConnection::connect(url).await.unwrap();
            sqlx::raw_sql(script).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        "postgres" => {
            let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(script).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        _ => {
            let mut connection = sqlx::MySqlConnection::connect(url).await.unwrap();
            sqlx::raw_sql(script).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

/// A database of each kind that there is.
pub(crate) async fn each() -> Vec<TestDatabase> {
    let mut databases = vec![TestDatabase::sqlite()];
    databases.extend(TestDatabase::postgres().await);
    databases.extend(TestDatabase::mariadb().await);
    databases
}

fn dialect(database: &TestDatabase) -> &str {
    database.url().split_once(':').unwrap().0
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that writes snapshots writes these too")]
fn the_files_of_the_documentation_are_what_is_printed() {
    let folder = Folder::new();
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always");
    for dialect in ["sqlite", "postgres", "mysql"] {
        let printed = folder.run(&["schema", "--dialect", dialect]).ok().stdout;
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/sql/{dialect}.sql"));
        if update {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &printed).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(written == printed, "docs/sql/{dialect}.sql is older than the code; INSTA_UPDATE=always writes it");
    }
    assert!(!folder.path().join("postrider.db").exists());
}

/// `docs/INSERT.md` has a line for each column, with the types that the statements give it.
#[test]
fn every_column_stands_in_the_documentation_for_writers() {
    let folder = Folder::new();
    let document = include_str!("../../../../docs/INSERT.md");
    let names = column::ALL.iter().map(|column| column.name).chain(["tenant_id"]);
    for (cell, dialect) in ["postgres", "mysql", "sqlite"].into_iter().enumerate() {
        let schema = folder.json(&["schema", "--dialect", dialect]);
        let made = schema["steps"][0]["statements"][0].as_str().unwrap().replace(['"', '`'], "");
        for name in names.clone() {
            let line = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let line = line.unwrap_or_else(|| panic!("{name} is not in docs/INSERT.md"));
            let typed = line.split(" | ").nth(cell + 1).unwrap();
            assert!(made.contains(&format!("\n    {name} {typed}")), "{name} is no {typed} on {dialect}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_makes_tables_that_lack_nothing_and_are_served() {
    for database in each().await {
        let folder = Folder::new();
        let on = ["--database", database.url()];
        let script = folder.run(&[&["schema"][..], &on].concat()).ok().stdout;
        assert_eq!(script, folder.run(&["schema", "--dialect", dialect(&database)]).ok().stdout);
        run_sql(database.url(), &script).await;
        let verified = folder.run(&[&["schema", "--verify"][..], &on].concat()).ok().stdout;
        assert!(verified.contains("has all that it needs"), "{verified}");
        assert_eq!(folder.json(&[&["schema", "--verify"][..], &on].concat())["findings"], serde_json::json!([]));
        // It is the application's own: nothing is made beside it.
        assert_eq!(folder.json(&[&["migrate"][..], &on].concat())["steps"], 0);
        let daemon = Daemon::start(&folder, &on);
        let id = folder.send(&on);
        folder.wait_for(&id, "SENT", &on);
        assert_eq!(daemon.stop(), Some(0));
        database.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_table_is_made_and_verified_by_its_name() {
    for database in each().await {
        let folder = Folder::new();
        let on = ["--database", database.url()];
        let table = ["--table", "order_mail", "--no-tenant"];
        let script = folder.run(&[&["schema"][..], &table, &on].concat()).ok().stdout;
        assert!(script.contains("order_mail_attempt") && !script.contains("tenant_id"), "{script}");
        run_sql(database.url(), &script).await;
        folder.run(&[&["schema", "--verify"][..], &table, &on].concat()).ok();
        let run = folder.run(&[&["schema", "--verify", "--table", "order_mail"][..], &on].concat());
        let run = run.refused(1, &["1 problem in order_mail"]);
        assert!(run.stdout.contains("there is no column order_mail.tenant_id"), "{run:?}");
        database.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_table_lacks_is_named_with_the_statements_that_mend_it() {
    for database in each().await {
        let folder = Folder::new();
        let on = ["--database", database.url()];
        folder.run(&[&["migrate"][..], &on].concat()).ok();
        run_sql(database.url(), "ALTER TABLE postrider_outbox DROP COLUMN traceparent").await;
        let verify = [&["schema", "--verify"][..], &on].concat();
        let run = folder.run(&verify).refused(1, &["error: 1 problem in postrider_outbox"]);
        let problem = "-- PROBLEM: there is no column postrider_outbox.traceparent";
        assert!(run.stdout.contains(problem) && run.stdout.contains("ADD COLUMN"), "{run:?}");
        let run_json = folder.run(&[&verify[..], &["--json"]].concat()).refused(1, &["check_failed"]);
        let finding = run_json.json()["findings"][0].clone();
        assert_eq!((&finding["problem"], finding["statements"].as_array().unwrap().len()), (&true.into(), 1));
        let check = folder.run(&[&["check", "--json"][..], &on].concat()).refused(1, &[]).json();
        let table = check["checks"].as_array().unwrap().iter().find(|check| check["name"] == "table").unwrap().clone();
        assert_eq!((&table["ok"], &table["findings"][0]), (&Json::Bool(false), &finding), "{table}");
        // What is printed mends it as it stands.
        run_sql(database.url(), &run.stdout).await;
        folder.run(&verify).ok();
        folder.run(&[&["check"][..], &on].concat()).ok();
        database.close().await;
    }
}

/// A type that changes what is written makes a message that is sent again: nobody serves that.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_a_wrong_type_is_not_served() {
    let Some(database) = TestDatabase::postgres().await else { return };
    let folder = Folder::new();
    let on = ["--database", database.url()];
    folder.run(&[&["migrate"][..], &on].concat()).ok();
    run_sql(database.url(), "ALTER TABLE postrider_outbox ALTER COLUMN next_attempt_at TYPE timestamptz(0)").await;
    let said = ["cannot be used as they are", "postrider_outbox.next_attempt_at is timestamp(0)", "schema --verify"];
    folder.run(&[&["serve"][..], &on].concat()).refused(2, &said);
    folder.run(&[&["send", "--to", "a@example.com", "--subject", "x"][..], &on].concat()).refused(2, &said);
    // It can still be looked at.
    folder.run(&[&["list"][..], &on].concat()).ok();
    database.close().await;
}

#[test]
fn the_steps_are_numbered_for_programs_and_begin_after_those_that_were_run() {
    let folder = Folder::new();
    let schema = folder.json(&["schema", "--dialect", "postgres"]);
    assert_eq!((&schema["dialect"], &schema["table"]), (&"postgres".into(), &"postrider_outbox".into()));
    let steps = schema["steps"].as_array().unwrap();
    assert_eq!(steps[0]["version"], 1);
    assert!(steps[0]["statements"][0].as_str().unwrap().starts_with("CREATE TABLE"), "{schema}");
    let later = folder.json(&["schema", "--dialect", "postgres", "--after", "1"]);
    assert_eq!(later["steps"].as_array().unwrap()[..], steps[1..]);
    let script = folder.run(&["schema", "--dialect", "postgres", "--after", "1"]).ok().stdout;
    assert!(!script.contains("CREATE TABLE") && script.contains("-- Step 2"), "{script}");
    assert_eq!(folder.json(&["schema", "--dialect", "mariadb"])["dialect"], "mysql");
}

#[test]
fn bad_input_is_refused() {
    let folder = Folder::new();
    for (arguments, said) in [
        (&["schema", "--dialect", "oracle"][..], "possible values: sqlite, postgres, mysql"),
        (&["schema", "--table", "a;b"], "--table: the table name \"a;b\" must be"),
        (&["schema", "--table", ""], "--table: the table name \"\" must be"),
        (&["schema", "--no-tenant"], "--table <NAME>"),
        (&["schema", "--after", "99"], "--after 99: this version knows"),
        (&["schema", "--after", "-1"], "unexpected argument"),
        (&["schema", "--verify", "--dialect", "mysql"], "cannot be used with"),
        (&["schema", "--verify", "--after", "1"], "cannot be used with"),
        (&["schema", "--verify"], "there is no database at postrider.db yet"),
        (&["schema", "--outbox", "orders"], "the configuration has no [[outbox]]"),
    ] {
        folder.run(arguments).refused(2, &[said]);
    }
    let run = folder.run(&["schema", "--after", "99", "--json"]).refused(2, &[]);
    let error: Json = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "usage");
}
