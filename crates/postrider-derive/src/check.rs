//! Holds the names to the rules of `TableDef`, before the program runs.
//!
//! The order is that of the expansion: the table, its schema, the renames one after another, the
//! tenant, the own columns. What passes here, the library accepts.

use syn::{Error, LitStr};

use crate::columns::COLUMNS;
use crate::entity::Entity;

/// PostgreSQL cuts names there.
const LONGEST: usize = 63;
/// Companion tables and indexes add up to 16 bytes to a table's name.
const LONGEST_TABLE: usize = 47;
/// How the names inside the statements begin.
const RESERVED: &str = "pr_";

/// Adds what is wrong with the entity's names.
pub(crate) fn names(entity: &Entity<'_>, errors: &mut Vec<Error>) {
    identifier("table", &entity.table, LONGEST_TABLE, errors);
    if let Some(schema) = &entity.schema {
        identifier("schema", schema, LONGEST, errors);
    }
    if let Some(attempts) = &entity.attempts {
        let plain = identifier("attempt table", attempts, LONGEST_TABLE, errors);
        if plain && attempts.value().eq_ignore_ascii_case(&entity.table.value()) {
            errors.push(Error::new(attempts.span(), "the attempt table has the name of the table itself"));
        }
    }
    let mut taken =
        Taken { ours: COLUMNS.iter().map(|name| ((*name).to_owned(), false)).collect(), others: Vec::new() };
    for (column, name) in &entity.renames {
        let Some(at) = COLUMNS.iter().position(|ours| column == ours) else {
            let why = format!("the outbox row has no column `{column}`; it has {}", COLUMNS.join(", "));
            errors.push(Error::new(column.span(), why));
            continue;
        };
        if taken.ours[at].1 {
            errors.push(Error::new(column.span(), format!("the column `{column}` is renamed twice")));
        }
        if identifier("column", name, LONGEST, errors) {
            taken.ours[at] = (String::new(), true);
            taken.refuse(name, errors);
            taken.ours[at].0 = name.value();
        }
    }
    for member in entity.tenant.iter().chain(&entity.own) {
        if identifier("column", &member.column, LONGEST, errors) {
            taken.refuse(&member.column, errors);
            taken.others.push(member.column.value());
        }
    }
}

/// The names that columns have so far.
struct Taken {
    /// In the order of [`COLUMNS`]: the present name, and whether it was given by a rename.
    ours: Vec<(String, bool)>,
    others: Vec<String>,
}

impl Taken {
    /// SQLite tells no upper from lower case.
    fn refuse(&self, name: &LitStr, errors: &mut Vec<Error>) {
        let value = name.value();
        let same = |other: &str| other.eq_ignore_ascii_case(&value);
        let why = if self.others.iter().any(|other| same(other)) {
            format!("two columns have the name `{value}`")
        } else if self.ours.iter().any(|(ours, _)| same(ours)) {
            format!("`{value}` is the name of one of the outbox row's columns; choose another, or `rename(…)` that one")
        } else {
            return;
        };
        errors.push(Error::new(name.span(), why));
    }
}

fn identifier(what: &str, name: &LitStr, longest: usize, errors: &mut Vec<Error>) -> bool {
    let value = name.value();
    let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let why = if value.is_empty() {
        format!("the name of a {what} cannot be empty")
    } else if !plain || value.as_bytes()[0].is_ascii_digit() {
        format!("the {what} name {value:?} must be ASCII letters, digits or `_`, and not begin with a digit")
    } else if value.len() > longest {
        format!("the {what} name `{value}` is {} bytes long; at most {longest} are allowed", value.len())
    } else if value.get(..RESERVED.len()).is_some_and(|start| start.eq_ignore_ascii_case(RESERVED)) {
        format!(
            "the {what} name `{value}` begins with `{RESERVED}`, which the library's statements keep for themselves"
        )
    } else {
        return true;
    };
    errors.push(Error::new(name.span(), why));
    false
}
