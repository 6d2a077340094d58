//! What a template consists of: its parts and variants, and the order of locales.
//!
//! Pure rules that the catalogue and the directory reader share. Nothing here may read a file or
//! know the template language.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::model::TenantId;

/// Most bytes of a channel's name, and of a locale.
const MAX_NAME_BYTES: usize = 64;

/// One of the texts that a template consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The subject or title, one line: `subject.txt`.
    Subject,
    /// The text: `body.txt`.
    Text,
    /// The HTML, the only part whose variables are escaped: `body.html`.
    Html,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Subject, Self::Text, Self::Html];

    /// The name of the file without its extension, and the extension.
    fn file_name(self) -> (&'static str, &'static str) {
        match self {
            Self::Subject => ("subject", "txt"),
            Self::Text => ("body", "txt"),
            Self::Html => ("body", "html"),
        }
    }

    /// What the part is called in an error.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Text => "text part",
            Self::Html => "HTML part",
        }
    }

    /// The part and the locale that a file's name stands for: `body.de.txt` is the German text.
    pub(super) fn of_file(name: &str) -> Option<(Self, Option<&str>)> {
        Self::ALL.into_iter().find_map(|part| {
            let (stem, extension) = part.file_name();
            let middle = name.strip_prefix(stem)?.strip_suffix(extension)?;
            match middle.strip_prefix('.')?.strip_suffix('.') {
                Some(locale) => Some((part, Some(locale))),
                None => (middle == ".").then_some((part, None)),
            }
        })
    }
}

impl fmt::Display for Part {
    /// The part's file name: `subject.txt`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stem, extension) = self.file_name();
        write!(f, "{stem}.{extension}")
    }
}

/// Whom one source of a template is for. `Variant::default()` is for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Variant<'a> {
    /// Only for this channel.
    pub channel: Option<&'a str>,
    /// Only for this language (`de`, `de-AT`); `None` is the default language.
    pub locale: Option<&'a str>,
    /// Only for this tenant; `None` and [`TenantId::ROOT`] mean shared by all.
    pub tenant: Option<&'a TenantId>,
}

impl Variant<'_> {
    /// The path of this variant's source, as the directory layout has it and as errors name it.
    pub(super) fn path(&self, name: &str, part: Part) -> String {
        let (stem, extension) = part.file_name();
        let mut path = String::new();
        if let Some(tenant) = self.tenant.filter(|tenant| !tenant.is_root()) {
            path.push_str(&format!("@{tenant}/"));
        }
        path.push_str(name);
        if let Some(channel) = self.channel {
            path.push_str(&format!("/{channel}"));
        }
        path.push_str(&format!("/{stem}"));
        if let Some(locale) = self.locale {
            path.push_str(&format!(".{locale}"));
        }
        path.push_str(&format!(".{extension}"));
        path
    }

    /// Refuses a channel or locale that no request could ask for.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(channel) = self.channel {
            let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
            if channel.is_empty() || channel.len() > MAX_NAME_BYTES || !channel.bytes().all(good) {
                return Err(Error::new(
                    ErrorKind::Template,
                    format!("the channel {channel:?} must be 1 to 64 lower-case letters, digits, '_' or '-'"),
                ));
            }
        }
        match self.locale {
            Some(locale) if !is_locale(locale) => Err(Error::new(
                ErrorKind::Template,
                format!("the locale {locale:?} must be a language tag such as \"de\" or \"de-AT\""),
            )),
            _ => Ok(()),
        }
    }
}

/// True for subtags of 1 to 8 ASCII letters and digits, joined by `-` or `_` (RFC 5646 §2.1).
fn is_locale(locale: &str) -> bool {
    let subtag = |tag: &str| (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric());
    locale.len() <= MAX_NAME_BYTES && locale.split(['-', '_']).all(subtag)
}

/// A locale as it is compared: `de_AT`, `de-at` and `de-AT` are one.
pub(super) fn fold_locale(locale: &str) -> String {
    locale.replace('_', "-").to_ascii_lowercase()
}

/// The locales to look for, best first and folded: `de-at`, `de`, then none.
///
/// A locale that is no language tag is cut in the same way; it may find nothing but the default.
pub(super) fn locale_chain(locale: Option<&str>) -> Vec<Option<String>> {
    let mut chain = Vec::new();
    let mut next = locale.filter(|locale| locale.len() <= MAX_NAME_BYTES).map(fold_locale);
    while let Some(locale) = next.filter(|locale| !locale.is_empty()) {
        next = locale.rfind('-').map(|at| locale[..at].to_owned());
        chain.push(Some(locale));
    }
    chain.push(None);
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_gives_its_part_and_locale() {
        for (name, expected) in [
            ("subject.txt", Some((Part::Subject, None))),
            ("body.txt", Some((Part::Text, None))),
            ("body.html", Some((Part::Html, None))),
            ("body.de.txt", Some((Part::Text, Some("de")))),
            ("subject.de-AT.txt", Some((Part::Subject, Some("de-AT")))),
            ("body..txt", Some((Part::Text, Some("")))),
            ("subject.html", None),
            ("bodytxt", None),
            ("body.htm", None),
            ("bodyde.txt", None),
            ("Body.txt", None),
            ("body.txt.bak", None),
        ] {
            assert_eq!(Part::of_file(name), expected, "{name}");
        }
    }

    #[test]
    fn a_locale_falls_back_to_its_language_and_then_to_none() {
        let chain = |locale| locale_chain(locale).into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
        assert_eq!(chain(Some("de-AT")), ["de-at", "de", ""]);
        assert_eq!(chain(Some("zh_Hant_TW")), ["zh-hant-tw", "zh-hant", "zh", ""]);
        assert_eq!(chain(Some("")), [""]);
        assert_eq!(chain(None), [""]);
        assert_eq!(chain(Some(&"x-".repeat(10_000))), [""]);
    }

    #[test]
    fn a_variant_is_named_by_its_path() {
        let tenant = TenantId::new("acme").unwrap();
        let variant = Variant { channel: Some("sms"), locale: Some("de"), tenant: Some(&tenant) };
        assert_eq!(variant.path("welcome", Part::Text), "@acme/welcome/sms/body.de.txt");
        assert_eq!(Variant::default().path("welcome", Part::Subject), "welcome/subject.txt");
    }
}
