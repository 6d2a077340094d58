//! Who may import whom in the library.
//!
//! The top-level modules lie in layers; a file may name its own layer's and lower ones. The arrows
//! are read from paths: `crate::x`, `crate::{x, y}` and `super::` chains that reach the root.

use super::Violation;
use super::source::Source;

/// The layers, lowest first.
const LAYERS: [&[&str]; 8] = [
    &["error", "model"],
    &["policy", "observe", "signal"],
    &["render", "channel"],
    &["store"],
    &["accept"],
    &["dispatch"],
    &["operate"],
    &["outbox", "testing"],
];

/// Arrows that the order would allow and the design does not.
const FORBIDDEN: [(&str, &str, &str); 4] = [
    ("store", "policy", "the store never decides"),
    ("store", "channel", "the store never decides"),
    ("store", "render", "the store never decides"),
    ("dispatch", "render", "what is sent was rendered before it was stored"),
];

/// Arrows of the file at `path` (relative to the library's `src`) that point the wrong way.
pub(super) fn violations(path: &str, source: &Source) -> Vec<Violation> {
    let modules = modules_of(path);
    // The root knows all; files of tests are no part of the library.
    let Some(from) = modules.first().filter(|_| !is_test_file(path)) else {
        return Vec::new();
    };
    let Some(layer) = layer_of(from) else {
        return vec![Violation::new(1, format!("`{from}` is in no layer: give it one in the architecture test"))];
    };
    let mut found = Vec::new();
    for (at, to) in arrows(source.code(), modules.len()) {
        let message = if to == *from {
            continue;
        } else if let Some((.., why)) = FORBIDDEN.iter().find(|(a, b, _)| a == from && *b == to) {
            format!("`{from}` may not import `{to}`: {why}")
        } else {
            match layer_of(&to) {
                Some(other) if other <= layer => continue,
                Some(_) => format!("`{from}` may not import `{to}`, which lies above it"),
                None if to.starts_with(char::is_uppercase) || to == "*" => {
                    format!("`crate::{to}` hides where it comes from: import it from its module")
                }
                // A function or macro of the root, or a module that its own files complain about.
                None => continue,
            }
        };
        found.push(Violation::new(source.line(at), message));
    }
    found
}

/// Whether the file holds tests only.
pub(super) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The module path of a file: `store/driver/mod.rs` is `[store, driver]`, `lib.rs` is empty.
fn modules_of(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("mod" | "lib"))) {
        parts.pop();
    }
    parts
}

/// The root's items that the code names, with the place of each.
fn arrows(code: &[char], depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let Some((start, word)) = next_word(code, at) else {
            break;
        };
        at = start + word.chars().count();
        let mut supers = 0;
        let mut head = word;
        let mut end = at;
        while head == "super" {
            supers += 1;
            let Some(after) = path_separator(code, end) else {
                break;
            };
            match next_word(code, after) {
                Some((next, word)) if next == after && word == "super" => {
                    end = next + word.chars().count();
                    head = word;
                }
                _ => break,
            }
        }
        at = end;
        if head != "crate" && supers != depth {
            continue;
        }
        if let Some(after) = path_separator(code, end) {
            found.extend(first_segments(code, after));
        }
    }
    found
}

/// The next word at or after `at`.
fn next_word(code: &[char], at: usize) -> Option<(usize, String)> {
    let word = |c: &char| c.is_alphanumeric() || *c == '_';
    let start = at + code[at..].iter().position(word)?;
    Some((start, code[start..].iter().take_while(|c| word(c)).collect()))
}

/// After `::` (blanks around it allowed), if that comes next.
fn path_separator(code: &[char], at: usize) -> Option<usize> {
    let start = skip_blanks(code, at);
    (code.get(start) == Some(&':') && code.get(start + 1) == Some(&':')).then(|| skip_blanks(code, start + 2))
}

fn skip_blanks(code: &[char], at: usize) -> usize {
    at + code[at..].iter().take_while(|c| c.is_whitespace()).count()
}

/// What a path continues with: one word, or the first words of each branch of a group.
fn first_segments(code: &[char], at: usize) -> Vec<(usize, String)> {
    match code.get(at) {
        Some('*') => vec![(at, "*".to_owned())],
        Some('{') => {
            let mut found = Vec::new();
            let mut depth = 0_i32;
            let mut expects = false;
            for (here, c) in code.iter().enumerate().skip(at) {
                match c {
                    '{' => {
                        depth += 1;
                        expects = depth == 1;
                    }
                    '}' => {
                        depth -= 1;
                        if depth == 0 {
                            break;
                        }
                    }
                    ',' => expects = depth == 1,
                    c if c.is_whitespace() => {}
                    _ if expects => {
                        found.extend(first_segments(code, here));
                        expects = false;
                    }
                    _ => {}
                }
            }
            found
        }
        _ => next_word(code, at).filter(|(start, _)| *start == at).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let found = violations(path, &Source::new(text));
        found.into_iter().map(|violation| format!("{}: {}", violation.line, violation.message)).collect()
    }

    #[test]
    fn an_import_from_above_is_found() {
        assert_eq!(
            messages("model/row.rs", "\nuse crate::store::Connection;"),
            ["2: `model` may not import `store`, which lies above it"]
        );
    }

    #[test]
    fn the_same_layer_and_lower_ones_may_be_imported() {
        let text =
            "use crate::error::Error; use crate::model::{a, b}; use crate::signal::Signal; use crate::policy::x;";
        assert!(messages("policy/retry.rs", text).is_empty());
        assert!(messages("accept/mod.rs", "use crate::store::x; use crate::render::y;").is_empty());
        assert!(messages("lib.rs", "use crate::outbox::Outbox;").is_empty());
    }

    #[test]
    fn every_branch_of_a_group_counts() {
        assert_eq!(
            messages(
                "policy/mod.rs",
                "use crate::{error::{Error, Result},\n dispatch::Dispatcher, model, store::{x}};"
            ),
            [
                "2: `policy` may not import `dispatch`, which lies above it",
                "2: `policy` may not import `store`, which lies above it"
            ]
        );
    }

    #[test]
    fn a_path_in_the_code_counts_like_an_import() {
        assert_eq!(messages("channel/mod.rs", "fn f() { crate::accept::g() }").len(), 1);
        assert_eq!(messages("channel/mod.rs", "fn f() { $crate :: accept::g() }").len(), 1);
    }

    #[test]
    fn super_chains_that_reach_the_root_count() {
        assert_eq!(messages("model/mod.rs", "use super::store::x;").len(), 1);
        assert_eq!(messages("model/row.rs", "use super::super::store::x;").len(), 1);
        assert_eq!(messages("store/driver/postgres.rs", "use super::super::super::dispatch;").len(), 1);
        assert_eq!(messages("model/mod.rs", "use super::{error::Error, accept};").len(), 1);
        assert!(messages("model/row.rs", "use super::store::x;").is_empty());
    }

    #[test]
    fn the_store_never_decides() {
        for module in ["policy", "channel", "render"] {
            let found = messages("store/claim.rs", &format!("use crate::{module}::X;"));
            assert_eq!(found, [format!("1: `store` may not import `{module}`: the store never decides")]);
        }
        assert!(messages("store/claim.rs", "use crate::model::Row; use crate::signal::x;").is_empty());
    }

    #[test]
    fn dispatch_never_renders() {
        assert_eq!(messages("dispatch/mod.rs", "use crate::render::Renderer;").len(), 1);
        assert!(messages("dispatch/mod.rs", "use crate::channel::Channel;").is_empty());
    }

    #[test]
    fn a_re_export_of_the_root_does_not_hide_an_arrow() {
        assert_eq!(
            messages("model/row.rs", "use crate::Outbox;"),
            ["1: `crate::Outbox` hides where it comes from: import it from its module"]
        );
        assert_eq!(messages("model/row.rs", "use crate::*;").len(), 1);
    }

    #[test]
    fn a_module_without_a_layer_is_found() {
        assert_eq!(messages("helpers/mod.rs", "").len(), 1);
        assert_eq!(messages("util.rs", "").len(), 1);
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        let text = "//! [`crate::store`]\n/// crate::dispatch::x\nconst A: &str = \"crate::store::x\";\n\
                    #[cfg(test)]\nmod tests { use crate::store::x; }";
        assert!(messages("model/row.rs", text).is_empty());
        assert!(messages("model/row/tests.rs", "use crate::store::x;").is_empty());
    }

    #[test]
    fn visibility_is_no_import() {
        assert!(
            messages("model/row.rs", "pub(crate) fn f() {} pub(super) fn g() {} pub(in crate::model) fn h() {}")
                .is_empty()
        );
    }
}
