//! The default name of a node: the host, the process, and a part that no other start has.
//!
//! Unique per process start, since a node that came back is another one to the rows that the
//! first had claimed. The variable HOSTNAME is not asked: shells set it for themselves.

use uuid::Uuid;

/// Most bytes of the host's part.
const MAX_HOST: usize = 60;

/// A name such as `mail1-4711-9f86d0`.
pub(super) fn default_name() -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("{}-{}-{}", host(), std::process::id(), &random[..6])
}

fn host() -> String {
    ["/etc/hostname", "/proc/sys/kernel/hostname"]
        .into_iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| clean(&text))
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "node".to_owned())
}

/// The first line, cut to what may stand in a name.
fn clean(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let good = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    line.unwrap_or_default().chars().filter(good).take(MAX_HOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_starts_have_two_names() {
        assert_ne!(default_name(), default_name());
    }

    #[test]
    fn a_host_name_is_one_clean_line() {
        assert_eq!(clean("# a comment\n mail-1.example \nother\n"), "mail-1.example");
        assert_eq!(clean("\n"), "");
        assert_eq!(clean("a b\u{7}c"), "abc");
    }
}
