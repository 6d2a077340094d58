//! `docs/CASES.md` names a test for each case that is covered: those tests exist.

use super::Violation;

/// The mark of a line that names tests.
const MARK: &str = "- **Test:**";

/// Every `` `path.rs` `test`, `test`; … `` of the document whose file or test does not exist;
/// `read` gives the text of a file of the workspace.
pub(super) fn violations(document: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(document.lines()) {
        let Some(named) = line.strip_prefix(MARK) else { continue };
        let mut file: Option<(&str, Option<String>)> = None;
        for name in named.split('`').skip(1).step_by(2) {
            if name.ends_with(".rs") {
                let text = read(name);
                if text.is_none() {
                    found.push(Violation::new(number, format!("there is no file {name}")));
                }
                file = Some((name, text));
                continue;
            }
            match &file {
                Some((path, Some(text))) if !has_test(text, name) => {
                    found.push(Violation::new(number, format!("{path} has no test {name}")));
                }
                None => found.push(Violation::new(number, format!("{name} stands without its file"))),
                _ => {}
            }
        }
    }
    found
}

/// A test is a function, or a module of one test on several databases.
fn has_test(text: &str, name: &str) -> bool {
    [format!("fn {name}("), format!("fn {name}<"), format!("mod {name} {{")].iter().any(|form| text.contains(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<String> {
        (path == "a.rs").then(|| "fn good() {}\nmod also {\n}".to_owned())
    }

    #[test]
    fn tests_that_exist_may_be_named() {
        let document = "- **Test:** not yet\n- **Test:** `a.rs` `good`, `also`\nprose with `gone`";
        assert_eq!(violations(document, read), []);
    }

    #[test]
    fn a_test_or_file_that_is_gone_is_found() {
        let document = "- **Test:** `a.rs` `goo`; `b.rs` `good`\n- **Test:** `good`";
        let lines: Vec<_> = violations(document, read).into_iter().map(|v| (v.line, v.message)).collect();
        let expected = [(1, "a.rs has no test goo"), (1, "there is no file b.rs"), (2, "good stands without its file")];
        assert_eq!(lines, expected.map(|(line, message)| (line, message.to_owned())));
    }
}
