//! The architecture test: rules about the sources that the compiler does not check.
//!
//! Layers (who may import whom), the length of files, where SQL may stand, that every file opens
//! with a module doc, and that the tests that the documents name exist. Each rule is a function from text to violations, so that it is itself
//! tested on small wrong inputs; the tests here run the rules over the workspace.

mod cases;
mod layers;
mod source;
mod text;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use self::source::Source;

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    line: usize,
    message: String,
}

impl Violation {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// Every Rust file below `dir`, as paths relative to it with their text, in order.
fn rust_files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![dir.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace can be read") {
            let path = entry.expect("a folder of the workspace can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file can be read");
                let short = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push((short, text));
            }
        }
    }
    found.sort();
    found
}

/// Runs `rule` over the files below `dir` (relative to the workspace); fails with all violations.
fn check(dir: &str, rule: impl Fn(&str, &str) -> Vec<Violation>) {
    let root = crate::system::workspace().join(dir);
    let files = rust_files(&root);
    assert!(!files.is_empty(), "no Rust file below {}", root.display());
    let mut report = String::new();
    for (path, text) in &files {
        for Violation { line, message } in rule(path, text) {
            let _ = writeln!(report, "{}:{line}: {message}", Path::new(dir).join(path).display());
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

const LIBRARY: &str = "crates/postrider/src";

#[test]
fn the_library_imports_only_downwards() {
    check(LIBRARY, |path, text| layers::violations(path, &Source::new(text)));
}

#[test]
fn sql_stands_only_in_the_statements_and_the_schema() {
    check(LIBRARY, |path, text| text::misplaced_sql(path, &Source::new(text)));
}

#[test]
fn no_file_is_longer_than_the_limit() {
    check("", |_, text| text::too_long(text));
}

#[test]
fn every_file_opens_with_a_module_doc() {
    check("", |_, text| text::no_module_doc(text));
}

#[test]
fn the_tests_that_the_cases_name_exist() {
    let root = crate::system::workspace();
    let document = fs::read_to_string(root.join("docs/CASES.md")).expect("the cases can be read");
    let broken = cases::violations(&document, |path| fs::read_to_string(root.join(path)).ok());
    assert_eq!(broken, []);
}
