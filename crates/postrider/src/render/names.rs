//! The names of templates: which are allowed, and which was perhaps meant.
//!
//! Used by the catalogue when a template is added and when one is asked for. Nothing here may know
//! what a template holds.

use crate::error::{Error, ErrorKind, Result};

/// Most bytes of a template's name.
const MAX_BYTES: usize = 64;

/// Most names that an error about an unknown template lists.
const MAX_LISTED: usize = 10;

/// Refuses what is no template name.
///
/// # Errors
/// [`ErrorKind::Template`], showing the start of the name.
pub(super) fn check(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    Err(Error::new(
        ErrorKind::Template,
        format!("{shown:?} is no template name: it must be 1 to 64 ASCII letters, digits, '_' or '-'"),
    ))
}

/// True if `name` is 1 to 64 ASCII letters, digits, `_` and `-`.
fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !name.is_empty() && name.len() <= MAX_BYTES && name.bytes().all(good)
}

/// Lists the known names, those most like `name` first.
pub(super) fn nearest(name: &str, mut known: Vec<&str>) -> String {
    if known.is_empty() {
        return "the catalogue has none".to_owned();
    }
    known.sort_by_cached_key(|other| (distance(name, other), (*other).to_owned()));
    let more = known.len().saturating_sub(MAX_LISTED);
    known.truncate(MAX_LISTED);
    let listed = known.join(", ");
    if more == 0 { format!("known are: {listed}") } else { format!("known are: {listed} and {more} more") }
}

/// How many letters must be changed, added or left out to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_letters_digits_underscores_and_hyphens() {
        for good in ["welcome", "Order_2-b", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a/b", "..", "a.b", "ä", "a b", "@a", "a\0", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn the_names_most_alike_come_first_and_at_most_ten_are_listed() {
        assert_eq!(nearest("ab", vec!["xyz", "abc", "b"]), "known are: abc, b, xyz");
        assert_eq!(nearest("a", vec![]), "the catalogue has none");
        let many: Vec<String> = (10..22).map(|n| format!("n{n}")).collect();
        let listed = nearest("n21", many.iter().map(String::as_str).collect());
        assert!(listed.starts_with("known are: n21, ") && listed.ends_with(" and 2 more"), "{listed}");
    }

    #[test]
    fn the_distance_counts_letters_changed_added_and_left_out() {
        for (a, b, expected) in [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
