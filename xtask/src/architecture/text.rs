//! Rules about a file's text: its length, its first line, and where SQL may stand.

use super::Violation;
use super::layers::is_test_file;
use super::source::Source;

/// No file is longer, tests included.
const LINE_LIMIT: usize = 600;

/// What SQL text is known by.
const SQL: [&str; 5] = ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "CREATE TABLE"];

/// A file over the limit.
pub(super) fn too_long(text: &str) -> Vec<Violation> {
    let lines = text.lines().count();
    if lines <= LINE_LIMIT {
        return Vec::new();
    }
    vec![Violation::new(lines, format!("{lines} lines; {LINE_LIMIT} is the limit: split the file by ideas"))]
}

/// A file that does not open with a sentence about itself.
pub(super) fn no_module_doc(text: &str) -> Vec<Violation> {
    let first = text.lines().next().unwrap_or_default();
    let told = first.strip_prefix("//!").is_some_and(|doc| doc.contains(char::is_alphabetic));
    if told { Vec::new() } else { vec![Violation::new(1, "the file does not open with a module doc (`//! …`)")] }
}

/// SQL in a string literal outside the store's statements and schema.
pub(super) fn misplaced_sql(path: &str, source: &Source) -> Vec<Violation> {
    let home = ["store/statements", "store/schema"];
    let at_home = home.iter().any(|home| path.strip_prefix(home).is_some_and(|rest| rest.starts_with(['/', '.', '_'])));
    if at_home || is_test_file(path) {
        return Vec::new();
    }
    let sql = source.strings().filter_map(|(line, text)| Some((line, SQL.iter().find(|mark| text.contains(*mark))?)));
    sql.map(|(line, mark)| {
        Violation::new(line, format!("SQL (`{}`) stands only in store/statements and store/schema", mark.trim()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(path: &str, text: &str) -> usize {
        misplaced_sql(path, &Source::new(text)).len()
    }

    #[test]
    fn the_first_line_over_the_limit_is_too_much() {
        assert!(too_long(&"x\n".repeat(LINE_LIMIT)).is_empty());
        assert_eq!(too_long(&"x\n".repeat(LINE_LIMIT + 1)).len(), 1);
    }

    #[test]
    fn a_file_without_a_module_doc_is_found() {
        for wrong in ["", "use x;\n//! late", "/// an item's", "//!", "//! ."] {
            assert_eq!(no_module_doc(wrong).len(), 1, "{wrong:?}");
        }
        assert!(no_module_doc("//! What it does.\n").is_empty());
    }

    #[test]
    fn sql_outside_its_files_is_found() {
        for text in
            ["\"SELECT 1\"", "r#\"x INSERT INTO y\"#", "\"UPDATE t\"", "\"DELETE FROM t\"", "\"CREATE TABLE t\""]
        {
            assert_eq!(sql("dispatch/claim.rs", text), 1, "{text}");
            assert_eq!(sql("store/claim.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn sql_in_the_statements_and_the_schema_is_at_home() {
        for path in ["store/statements.rs", "store/statements/claim.rs", "store/schema.rs", "store/schema_steps.rs"] {
            assert_eq!(sql(path, "\"SELECT 1\""), 0, "{path}");
        }
    }

    #[test]
    fn comments_and_tests_may_speak_of_sql() {
        assert_eq!(sql("store/claim.rs", "// \"SELECT 1\"\n#[cfg(test)] mod tests { fn f() { \"SELECT 1\" } }"), 0);
    }
}
