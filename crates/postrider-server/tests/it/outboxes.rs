//! Several outboxes in one daemon: tables and databases of `[[outbox]]` sections.

use postrider_testkit::database::TestDatabase;
use postrider_testkit::server::free_port;
use serde_json::Value as Json;

use crate::schema::run_sql;
use crate::support::{Daemon, Folder};

/// Two tables in one file, the second without tenants and with names of its own, and one in another.
const THREE: &str = "\
database = \"sqlite:shop.db\"

[[outbox]]
name = \"orders\"

[[outbox]]
name = \"invoices\"
table = \"invoice_mail\"
id_type = \"text\"
[outbox.rename]
created_at = \"created_date\"

[[outbox]]
name = \"news\"
database = \"sqlite:news.db\"
";

fn three() -> Folder {
    let folder = Folder::new();
    folder.write("postrider.toml", THREE);
    folder
}

#[test]
fn a_command_about_one_outbox_names_it() {
    let folder = three();
    folder.run(&["migrate"]).ok();
    let id = "0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44";
    for command in [
        &["list"][..],
        &["show", id],
        &["requeue", id],
        &["schema"],
        &["schema", "--verify"],
        &["send", "--to", "a@example.com", "--subject", "x"],
    ] {
        let several = "there are several outboxes: name one with --outbox: orders, invoices, news";
        folder.run(command).refused(2, &[several]);
        let run = folder.run(&[command, &["--outbox", "order", "--json"]].concat()).refused(2, &[]);
        let error: Json = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "usage");
        let said = "there is no outbox \"order\"; known are: orders, invoices, news";
        assert_eq!(error["error"]["message"], said);
    }
    let run = folder.run(&["list", "--outbox", "orders", "--database", "sqlite:other.db"]);
    run.refused(2, &["there is no database at other.db yet"]);
    for command in ["serve", "check", "migrate", "wake"] {
        folder.run(&[command, "--outbox", "x"]).refused(2, &["known are: orders, invoices, news"]);
    }
}

#[test]
fn a_wrong_section_names_file_line_and_key() {
    for (text, said) in [
        ("[[outbox]]\ntable = \"x\"\n", "postrider.toml:1: [[outbox]] has no name"),
        (
            "[[outbox]]\nname = \"a\"\ntabel = \"x\"\n",
            "postrider.toml:3: [[outbox]] has no key \"tabel\"; did you mean",
        ),
        ("[outbox]\nname = \"a\"\n", "postrider.toml:1: outbox is a list of sections: write [[outbox]]"),
    ] {
        let folder = Folder::new();
        folder.write("postrider.toml", text);
        for command in ["serve", "list", "check"] {
            folder.run(&[command]).refused(2, &[said]);
        }
    }
}

#[test]
fn each_table_is_served_by_one_daemon() {
    let folder = three();
    let daemon = Daemon::start(&folder, &[]);
    for name in ["orders", "invoices", "news"] {
        let on = ["--outbox", name];
        let id = folder.send(&on);
        let row = folder.wait_for(&id, "SENT", &on);
        assert_eq!(row["sandbox"], true);
        let listed = folder.json(&[&["list"][..], &on].concat());
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &id.as_str().into()), "{name}");
        assert_eq!(folder.json(&[&["show", &id[..18]][..], &on].concat())["row"]["id"], id.as_str());
        assert_eq!(folder.json(&[&["requeue", &id][..], &on].concat())[0]["outcome"], "reset");
        assert_eq!(folder.wait_for(&id, "SENT", &on)["resends"], 1);
        let banner = daemon.stderr();
        assert!(banner.contains(&format!("delivers {name}\n")), "{banner}");
    }
    assert_eq!(daemon.stop(), Some(0));
    assert!(folder.path().join("news.db").exists());
}

#[test]
fn for_programs_each_outbox_is_named() {
    let folder = three();
    let migrated = folder.json(&["migrate"]);
    let names = |answer: &Json| -> Vec<String> {
        let answers = answer.as_array().unwrap();
        answers.iter().filter_map(|one| one["outbox"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(&migrated), ["orders", "invoices", "news"]);
    assert_eq!(names(&folder.json(&["migrate", "--outbox", "news"])), ["news"]);
    assert_eq!(names(&folder.json(&["wake"])), ["orders", "invoices", "news"]);
    let checked = folder.json(&["check"]);
    assert_eq!(names(&checked["checks"]), ["orders", "orders", "invoices", "invoices", "news", "news"]);
    let people = folder.run(&["check", "--outbox", "news"]).ok().stdout;
    assert!(people.contains("table of news: postrider_outbox has all"), "{people}");
    let mut daemon = Daemon::spawn(folder.command(&["serve", "--json", "--outbox", "invoices"]));
    daemon.wait_for_line("\"message\":\"delivering\"");
    let ready: Json = crate::support::wait_until("the line on stdout", || serde_json::from_str(&daemon.stdout()).ok());
    assert_eq!((&ready["outbox"], &ready["table"]), (&"invoices".into(), &"invoice_mail".into()));
    assert!(!daemon.stderr().contains("orders"), "{}", daemon.stderr());
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_table_without_tenants_takes_none() {
    let folder = three();
    folder.run(&["migrate"]).ok();
    let on = ["--outbox", "invoices", "--tenant", "acme"];
    folder.run(&[&["list"][..], &on].concat()).refused(2, &["the table has no tenant column: leave --tenant out"]);
    let send = ["send", "--to", "a@example.com", "--subject", "x"];
    folder.run(&[&send[..], &on].concat()).refused(2, &["the table has no tenant column: leave --tenant out"]);
    assert_eq!(folder.json(&["list", "--outbox", "invoices"]), serde_json::json!([]));
}

/// One database that does not answer, or a wrong table, and what it means for the others.
#[test]
fn a_database_that_does_not_answer_keeps_no_other_waiting() {
    let folder = Folder::new();
    let silent = format!("postgres://me@127.0.0.1:{}/db", free_port());
    let text = format!("[[outbox]]\nname = \"silent\"\ndatabase = \"{silent}\"\n[[outbox]]\nname = \"good\"\n");
    folder.write("postrider.toml", &text);
    let mut daemon = Daemon::start(&folder, &[]);
    daemon.wait_for_line("tried again until it answers");
    let id = folder.send(&["--outbox", "good"]);
    folder.wait_for(&id, "SENT", &["--outbox", "good"]);
    assert_eq!(daemon.stop(), Some(0));
    let check = folder.run(&["check"]).refused(1, &["1 check failed"]);
    assert!(check.stdout.contains("PROBLEM  database of silent: "), "{check:?}");
    folder
        .run(&["serve", "--no-migrate", "--outbox", "good", "--database", "sqlite:new.db"])
        .refused(2, &["has no table postrider_outbox; `postrider migrate --outbox good` makes what is missing"]);
}

/// Its own columns are the application's to write; the daemon delivers what it wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_columns_of_the_applications_own_is_delivered_and_not_written() {
    let mut databases = vec![TestDatabase::sqlite()];
    databases.extend(TestDatabase::postgres().await);
    databases.extend(TestDatabase::mariadb().await);
    for database in databases {
        let folder = Folder::new();
        let text = format!(
            "database = \"{}\"\n[[outbox]]\nname = \"orders\"\ntable = \"order_mail\"\ntenant = \"org\"\nid_type = \"text\"\n\
             [outbox.rename]\nsubject = \"title\"\n",
            database.url()
        );
        folder.write("postrider.toml", &text);
        let script = folder.run(&["schema"]).ok().stdout;
        assert!(script.contains("title") && script.contains("org"), "{script}");
        // SQLite adds no such column to a table that is there.
        let own = script.replacen("PRIMARY KEY", "order_id INTEGER NOT NULL, PRIMARY KEY", 1);
        run_sql(database.url(), &own).await;
        let verified = folder.run(&["schema", "--verify"]).ok().stdout;
        assert!(verified.contains("-- NOTE: the column order_mail.order_id is NOT NULL"), "{verified}");
        assert!(!verified.contains("ALTER"), "{verified}");
        folder.run(&["check"]).ok();
        let daemon = Daemon::start(&folder, &[]);
        let send = folder.run(&["send", "--to", "a@example.com", "--subject", "x"]);
        let said = "rows of the table order_mail can only be written by its own application, which alone fills the \
                    columns order_id; what it writes is delivered";
        send.refused(2, &[said]);
        let insert = "INSERT INTO order_mail (channel, recipient_address, title, org, order_id) \
                      VALUES ('email', 'alice@example.com', 'Your order', 'acme', 7)";
        run_sql(database.url(), insert).await;
        let row = folder.json(&["list"])[0].clone();
        assert_eq!((&row["subject"], &row["tenant"]), (&"Your order".into(), &"acme".into()));
        folder.wait_for(row["id"].as_str().unwrap(), "SENT", &[]);
        assert_eq!(folder.json(&["list", "--tenant", "acme"]).as_array().unwrap().len(), 1);
        assert_eq!(folder.json(&["list", "--tenant", "other"]), serde_json::json!([]));
        assert_eq!(daemon.stop(), Some(0));
        database.close().await;
    }
}
