//! Every statement in every dialect, as the database gets it.

use std::fmt::Write as _;

use super::Statements;
use crate::model::column::{self, Owner};
use crate::model::{Kind, NotificationRow, OutboxEntity, OwnColumn, TableDef};
use crate::store::Dialect;

fn shown(dialect: Dialect, table: &TableDef, own: &[OwnColumn]) -> String {
    let mut out = String::new();
    for (name, text) in Statements::new(dialect, table, own).unwrap().all() {
        writeln!(out, "-- {name}\n{text};\n").unwrap();
    }
    out
}

#[test]
fn the_statements_of_the_ready_made_table() {
    let table = NotificationRow::table().unwrap();
    insta::assert_snapshot!("sqlite", shown(Dialect::Sqlite, &table, &[]));
    insta::assert_snapshot!("postgres", shown(Dialect::Postgres, &table, &[]));
    insta::assert_snapshot!("mysql", shown(Dialect::Mysql, &table, &[]));
}

/// A schema, renamed columns and own columns; no tenant.
#[test]
fn the_statements_of_an_ownership_table_with_other_names() {
    let table = TableDef::new("order_mail")
        .unwrap()
        .in_schema("shop")
        .unwrap()
        .rename("created_at", "created_date")
        .unwrap()
        .rename("status", "state")
        .unwrap();
    let own = [OwnColumn { name: "order_id", kind: Kind::Uuid, nullable: false }];
    insta::assert_snapshot!("postgres_renamed", shown(Dialect::Postgres, &table, &own));
    let text = shown(Dialect::Sqlite, &table, &own);
    assert!(!text.contains("\"status\" IN") && !text.contains("created_at"), "an old name is left in a statement");
}

/// Every query for claimable rows carries the index's predicate word for word.
#[test]
fn every_claimable_query_can_use_the_index() {
    let table = NotificationRow::table().unwrap();
    for (dialect, predicate) in [
        (Dialect::Sqlite, "\"status\" IN ('PENDING', 'FAILED', 'SENDING')"),
        (Dialect::Postgres, "\"status\" IN ('PENDING', 'FAILED', 'SENDING')"),
        (Dialect::Mysql, "`due_at` IS NOT NULL AND `due_at`"),
    ] {
        let all = Statements::new(dialect, &table, &[]).unwrap().all();
        for name in ["claim_due", "claim_all_due", "claim_ids", "find_due", "next_due", "postpone"] {
            let (_, text) = all.iter().find(|(known, _)| *known == name).unwrap();
            assert!(text.contains(predicate) || name == "postpone" && text.contains("`due_at` IS NOT NULL"), "{text}");
        }
    }
}

/// A key is looked up in one tenant by the unique index: no choice of scopes hides its columns.
#[test]
fn a_key_is_looked_up_by_the_unique_index() {
    let table = NotificationRow::table().unwrap();
    for (dialect, condition) in [
        (Dialect::Sqlite, "WHERE \"tenant_id\" = ?2 AND \"dedupe_key\" = ?1"),
        (Dialect::Postgres, "WHERE \"tenant_id\" = $2 AND \"dedupe_key\" = $1"),
        (Dialect::Mysql, "WHERE `tenant_id` = ? AND `dedupe_key` = ?"),
    ] {
        let text = Statements::new(dialect, &table, &[]).unwrap().by_key.text;
        assert!(text.ends_with(condition), "{text}");
    }
}

/// Contract C7.1: what `save` writes of a row that exists is no identity, and no state but `updated_at`.
#[test]
fn save_writes_no_column_of_the_state_machines() {
    let table = NotificationRow::table().unwrap();
    let own = [OwnColumn { name: "order_id", kind: Kind::Uuid, nullable: false }];
    let text = Statements::new(Dialect::Sqlite, &table, &own).unwrap().save.text;
    let set = &text[..text.find(" WHERE ").unwrap()];
    for column in column::ALL {
        let written = set.contains(&format!("\"{}\" =", column.name));
        assert_eq!(written, column.owner == Owner::Content || *column == column::UPDATED_AT, "{}", column.name);
    }
    assert!(set.contains("\"order_id\" =") && !set.contains("tenant_id"));
}
