//! `cargo xtask contract`: which tests prove which rule of the contract, on which database.
//!
//! Read off the sources: a test says in its doc comment which rules it proves (`Contract C4.2`), the
//! suite of the library's `testing` feature lists each rule with its number. The rules themselves are
//! those of `docs/CONTRACT.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::system;

/// The databases, in the order of the table's columns.
const DATABASES: [&str; 3] = ["sqlite", "postgres", "mariadb"];

/// A test, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) test: String,
    /// On which of [`DATABASES`]; on none of them: it needs no database.
    pub(crate) on: [bool; 3],
}

/// Every rule, in order, with the tests that prove it.
pub(crate) type Proofs = BTreeMap<String, Vec<Proof>>;

/// Prints the table; with `tests`, the names too.
pub(crate) fn print(tests: bool) -> Result<()> {
    print!("{}", shown(&proofs(&system::workspace())?, tests));
    Ok(())
}

/// Reads rules and tests of the workspace at `root`.
pub(crate) fn proofs(root: &Path) -> Result<Proofs> {
    let document = root.join("docs/CONTRACT.md");
    let text = fs::read_to_string(&document).with_context(|| format!("cannot read {}", document.display()))?;
    let mut proofs: Proofs = rules(&text).into_iter().map(|rule| (rule, Vec::new())).collect();
    let mut open = vec![root.join("crates"), root.join("xtask")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let place = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                for (rule, proof) in read(&place, &fs::read_to_string(&path)?) {
                    if let Some(found) = proofs.get_mut(&rule) {
                        found.push(proof);
                    }
                }
            }
        }
    }
    for found in proofs.values_mut() {
        found.sort_by(|a, b| a.test.cmp(&b.test));
    }
    Ok(proofs)
}

/// The numbers of the rules: those in bold; the state machine, which is a table; and the repository, which is a list.
fn rules(document: &str) -> Vec<String> {
    let bold = document.split("**").skip(1).step_by(2).filter(|text| numbers(text).next() == Some(text));
    let mut all: Vec<_> = bold.map(str::to_owned).chain(["C3".to_owned(), "C7".to_owned()]).collect();
    all.sort();
    all.dedup();
    all
}

/// The numbers of rules in a text: one digit, mostly a point and more; cases have two digits.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.map(|word| word.trim_matches('.')).filter(|word| {
        let Some(number) = word.strip_prefix('C') else { return false };
        let (section, rule) = number.split_once('.').unwrap_or((number, "1"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        section.len() == 1 && digits(section) && digits(rule)
    })
}

/// The rules that a source's tests prove.
fn read(place: &str, text: &str) -> Vec<(String, Proof)> {
    let suite = place.contains("testing/contract/");
    let mut found = Vec::new();
    let mut docs = String::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc);
            continue;
        }
        if let (true, Some((rule, name))) = (suite, listed(line)) {
            found.push((rule.to_owned(), Proof { test: format!("{place} {name}"), on: [true; 3] }));
        }
        if line.is_empty() || line.starts_with("#[") || line.starts_with("//") {
            continue;
        }
        if let (Some(name), Some((_, named))) = (function(line), docs.split_once("Contract ")) {
            for rule in numbers(named) {
                found.push((rule.to_owned(), Proof { test: format!("{place} {name}"), on: databases(name, line) }));
            }
        }
        docs.clear();
    }
    found
}

/// A line of the suite's lists: `"C4.1" of_many_claims_one_wins;`.
fn listed(line: &str) -> Option<(&str, &str)> {
    let (rule, name) = line.strip_prefix('"')?.split_once("\" ")?;
    (numbers(rule).next() == Some(rule)).then(|| (rule, name.trim_end_matches(';')))
}

fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    matches!(before.trim(), "" | "async" | "pub(crate) async").then(|| rest.split('(').next().unwrap_or(rest))
}

/// A test that is handed its world runs on every database; another says in its name on which.
fn databases(name: &str, line: &str) -> [bool; 3] {
    if line.contains(": World)") {
        return [true; 3];
    }
    DATABASES.map(|database| name.contains(database))
}

fn shown(proofs: &Proofs, tests: bool) -> String {
    let mut out = String::from("rule    sqlite  postgres  mariadb  without a database\n");
    for (rule, found) in proofs {
        let on = |at: usize| found.iter().filter(|proof| proof.on[at]).count();
        let without = found.iter().filter(|proof| proof.on == [false; 3]).count();
        let _ = writeln!(out, "{rule:<6} {:>7} {:>9} {:>8} {without:>19}", on(0), on(1), on(2));
        for proof in found.iter().filter(|_| tests) {
            let _ = writeln!(out, "         {}", proof.test);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules that nothing can be shown of yet: what they speak of is not built.
    const NOT_BUILT: [&str; 1] = ["C5.4"];

    #[test]
    fn every_rule_is_proved_on_every_database() {
        let proofs = proofs(&system::workspace()).unwrap();
        assert!(proofs.len() > 30, "{proofs:?}");
        let lacks = |found: &Vec<Proof>| (0..3).any(|at| !found.iter().any(|proof| proof.on[at]));
        let without: Vec<_> = proofs.iter().filter(|(_, found)| lacks(found)).map(|(rule, _)| rule).collect();
        assert_eq!(without, NOT_BUILT, "{}", shown(&proofs, false));
    }

    #[test]
    fn rules_are_told_from_cases() {
        assert_eq!(rules("**C1.1** x **C26** **beyond** **C4.10** C2.2 **C1.1**"), ["C1.1", "C3", "C4.10", "C7"]);
        assert_eq!(numbers("C1.2, C26: a row (C4.6). C3").collect::<Vec<_>>(), ["C1.2", "C4.6", "C3"]);
    }

    #[test]
    fn a_test_says_what_it_proves_and_where() {
        let text = "/// Contract C1.2, C26: due.\n#[test]\nfn due_on_postgres() {\n}\n    /// Contract C2.1.\n    \
                    async fn both(world: World) {\n/// Nothing.\nfn other() {}\n\"C4.1\" one_wins;\n";
        let named = |text| {
            let all = read("crates/a/src/testing/contract/x.rs", text);
            all.into_iter().map(|(rule, proof)| (rule, proof.test, proof.on)).collect::<Vec<_>>()
        };
        let place = |name: &str| format!("crates/a/src/testing/contract/x.rs {name}");
        assert_eq!(
            named(text),
            [
                ("C1.2".to_owned(), place("due_on_postgres"), [false, true, false]),
                ("C2.1".to_owned(), place("both"), [true; 3]),
                ("C4.1".to_owned(), place("one_wins"), [true; 3]),
            ]
        );
    }
}
