//! What the sections of outboxes come to, and what is refused.

use std::path::Path;

use super::*;
use crate::config::{Config, Sources};

fn read(text: &str) -> Result<Vec<OutboxConfig>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    std::fs::write(&path, text).unwrap();
    let sources = Sources { file: Some(path), ..Sources::default() };
    Ok(Config::new(&Values::gather(sources)?)?.outboxes)
}

fn refusal(text: &str) -> String {
    let said = read(text).unwrap_err().to_string();
    said.rsplit_once("p.toml:").map_or_else(|| said.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn without_a_section_there_is_the_one_of_the_settings() {
    let outboxes = read("database = \"postgres://h/d\"\n").unwrap();
    assert_eq!(outboxes.len(), 1);
    assert_eq!((&outboxes[0].name, outboxes[0].database.to_string().as_str()), (&None, "postgres://h/d"));
    assert_eq!(outboxes[0].table, NotificationRow::table().unwrap());
}

#[test]
fn a_section_names_database_table_and_columns() {
    let outboxes = read(
        "database = \"postgres://h/d\"\n[[outbox]]\nname = \"a\"\n[[outbox]]\nname = \"b\"\ntable = \"mail\"\n\
         schema = \"shop\"\nid_type = \"text\"\n[outbox.rename]\ncreated_at = \"created_date\"\n\
         [[outbox]]\nname = \"c\"\ndatabase = \"sqlite:c.db\"\ntable = \"mail\"\ntenant = \"org\"\n",
    )
    .unwrap();
    let [a, b, c] = outboxes.try_into().unwrap();
    assert_eq!(a.table, NotificationRow::table().unwrap());
    assert_eq!((b.database.to_string().as_str(), b.table.schema()), ("postgres://h/d", Some("shop")));
    assert_eq!((b.table.tenant(), b.table.id_type()), (None, IdType::Text));
    assert_eq!(b.table.column(postrider::model::column::CREATED_AT), "created_date");
    let DatabaseAddress::Sqlite(path) = &c.database else { panic!("{c:?}") };
    assert!(path.is_absolute() && path.ends_with(Path::new("c.db")), "{c:?}");
    assert_eq!(c.table.tenant(), Some("org"));
}

#[test]
fn what_is_wrong_names_the_line() {
    for (text, said) in [
        ("[[outbox]]\ntable = \"t\"\n", "1: [[outbox]] has no name"),
        ("[[outbox]]\nname = \"a b\"\n", "2: outbox.name is \"a b\": at most 64 ASCII letters"),
        ("[[outbox]]\nname = 5\n", "2: outbox.name is 5: text in quotes is expected"),
        ("[outbox]\nname = \"a\"\n", "1: outbox is a list of sections: write [[outbox]]"),
        ("outbox = 5\n", "1: outbox is a list of sections"),
        ("outbox = [5]\n", "1: outbox is a list of sections"),
        ("[[outbox]]\nname = \"a\"\ntabel = \"x\"\n", "3: [[outbox]] has no key \"tabel\"; did you mean \"table\"?"),
        ("[[outbox]]\nname = \"a\"\nzzzzzz = 1\n", "3: [[outbox]] has no key \"zzzzzz\". Known are: name, database"),
        ("[[outbox]]\nname = \"a\"\ntable = \"1st\"\n", "3: the table name \"1st\" must be"),
        ("[[outbox]]\nname = \"a\"\nschema = \"a.b\"\n", "3: the schema name \"a.b\" must be"),
        ("[[outbox]]\nname = \"a\"\ntenant = \"channel\"\n", "3: the tenant column name \"channel\" is the name"),
        ("[[outbox]]\nname = \"a\"\nid_type = \"uuid\"\n", "3: outbox.id_type is \"uuid\": one of binary, text"),
        ("[[outbox]]\nname = \"a\"\nrename = 5\n", "3: outbox.rename is a section: write [outbox.rename]"),
        (
            "[[outbox]]\nname = \"a\"\n[outbox.rename]\ncreated = \"x\"\n",
            "4: [outbox.rename]: \"created\" is none of the outbox row's columns",
        ),
        ("[[outbox]]\nname = \"a\"\n[outbox.rename]\nid = 5\n", "4: outbox.rename.id: the column's name in quotes"),
        ("[[outbox]]\nname = \"a\"\n[outbox.rename]\nid = \"channel\"\n", "4: the column name \"channel\" is the name"),
        ("[[outbox]]\nname = \"a\"\n[[outbox]]\nname = \"a\"\ntable = \"b\"\n", "3: two outboxes are called \"a\""),
        ("[[outbox]]\nname = \"a\"\n[[outbox]]\nname = \"b\"\n", "3: it is the same table postrider_outbox as that of"),
        (
            "[[outbox]]\nname = \"a\"\ndatabase = \"mssql://root:hunter2@h/d\"\n",
            "3: outbox.database: sqlite:PATH, postgres://",
        ),
        ("[[outbox]]\nname = \"a\"\ndatabase = \"sqlite:a\"\ndatabase_file = \"b\"\n", "4) are both set; keep one"),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with(said), "{text:?}: {refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}

#[test]
fn a_database_flag_that_nobody_uses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    std::fs::write(&path, "[[outbox]]\nname = \"a\"\ndatabase = \"sqlite:a.db\"\n").unwrap();
    let sources = Sources { file: Some(path), database: Some("sqlite:b.db".into()), ..Sources::default() };
    let refused = Config::new(&Values::gather(sources).unwrap()).unwrap_err().to_string();
    assert!(refused.starts_with("--database is set, but each [[outbox]] names"), "{refused}");
}
