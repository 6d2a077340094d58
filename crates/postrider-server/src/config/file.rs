//! Reading `postrider.toml`: keys, values, and the line of each.
//!
//! Refuses what it does not know, with file, line and the nearest known key. Whether a value is
//! allowed is for `layers`, which knows the line from here.

use std::ops::Range;
use std::path::{Path, PathBuf};

use postrider::Result;
use toml::de::{DeTable, DeValue};

use super::error::wrong;
use super::layers::Origin;
use super::section::{self, Section};
use super::setting::{self, Setting};
use super::suggest;

/// One value of the file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) setting: &'static Setting,
    pub(super) value: Raw,
    pub(super) line: usize,
}

/// A value as it was written.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    Text(String),
    Number(String),
    Switch(bool),
    List(Vec<String>),
    /// A kind of value that no setting takes.
    Other(&'static str),
}

/// The file that was read.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
    pub(super) sections: Vec<Section>,
}

impl File {
    /// Reads the file.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming file and line.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|cause| wrong(format!("{shown} cannot be read: {cause}")).caused_by(cause))?;
        let (entries, sections) = parse(path, &text)?;
        Ok(Self { path: path.to_owned(), entries, sections })
    }
}

/// All entries of the text, and its sections of outboxes.
fn parse(path: &Path, text: &str) -> Result<(Vec<Entry>, Vec<Section>)> {
    let table = DeTable::parse(text).map_err(|cause| {
        let line = cause.span().map_or(1, |span| line_of(text, span.start));
        wrong(format!("{}:{line}: {}", path.display(), cause.message().replace('\n', ", ")))
    })?;
    let (mut entries, mut sections) = (Vec::new(), Vec::new());
    let reader = Reader { path, text };
    for (name, value) in table.get_ref() {
        if name.get_ref() == section::LIST {
            sections = section::sections(&reader, value.get_ref(), &reader.origin(&name.span()))?;
        }
    }
    reader.table("", table.get_ref(), &mut entries)?;
    Ok((entries, sections))
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

pub(super) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    /// The place of a part of the text.
    pub(super) fn origin(&self, span: &Range<usize>) -> Origin {
        Origin::File(self.path.to_owned(), line_of(self.text, span.start))
    }

    fn table(&self, prefix: &str, table: &DeTable<'_>, entries: &mut Vec<Entry>) -> Result<()> {
        for (name, value) in table {
            let line = line_of(self.text, name.span().start);
            let key = format!("{prefix}{}", name.get_ref());
            if key == section::LIST {
                continue;
            }
            let section = format!("{key}.");
            if let DeValue::Table(inner) = value.get_ref()
                && setting::ALL.iter().any(|setting| setting.key.starts_with(&section))
            {
                self.table(&section, inner, entries)?;
                continue;
            }
            let setting = setting::find(&key).ok_or_else(|| self.unknown(prefix, name.get_ref(), &section, line))?;
            entries.push(Entry { setting, value: raw(value.get_ref()), line });
        }
        Ok(())
    }

    fn unknown(&self, prefix: &str, name: &str, section: &str, line: usize) -> postrider::Error {
        let path = self.path.display();
        if setting::ALL.iter().any(|setting| setting.key.starts_with(section)) {
            return wrong(format!("{path}:{line}: {name:?} is a section: write [{prefix}{name}]"));
        }
        let known = known_in(prefix);
        let place = match prefix.strip_suffix('.') {
            Some(section) => format!("[{section}] has no key {name:?}"),
            None => format!("there is no key {name:?}"),
        };
        let elsewhere = || {
            let named = |setting: &&Setting| setting.key.rsplit('.').next() == Some(name);
            setting::ALL.into_iter().find(named).and_then(|setting| setting.key.rsplit_once('.'))
        };
        let meant = match suggest::nearest(name, known.iter().copied()) {
            Some(near) => format!("; did you mean {near:?}?"),
            None => {
                elsewhere().map(|(section, name)| format!("; {name:?} belongs into [{section}]")).unwrap_or_default()
            }
        };
        let end = if meant.ends_with('?') { "" } else { "." };
        wrong(format!("{path}:{line}: {place}{meant}{end} Known are: {}", known.join(", ")))
    }
}

/// The keys and sections that may stand directly in a section.
fn known_in(prefix: &str) -> Vec<&'static str> {
    let mut known: Vec<&str> = Vec::new();
    if prefix.is_empty() {
        known.push(section::LIST);
    }
    for setting in setting::ALL {
        if let Some(rest) = setting.key.strip_prefix(prefix) {
            let name = rest.split('.').next().unwrap_or(rest);
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
    known
}

pub(super) fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.as_ref().to_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Raw::Number(number.as_str().to_owned()),
        DeValue::Boolean(on) => Raw::Switch(*on),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().map_or(Raw::Other("list of other things"), Raw::List)
        }
        DeValue::Integer(_) => Raw::Other("number that is not decimal"),
        DeValue::Float(_) => Raw::Other("number with a fraction"),
        DeValue::Datetime(_) => Raw::Other("date"),
        DeValue::Table(_) => Raw::Other("table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(Path::new("postrider.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn keys_of_sections_are_found_with_their_lines() {
        let text = "database = \"sqlite:a.db\"\n\n[email]\nhost = \"h\"\n[email.timeouts]\nmail = \"1m\"\n";
        let (entries, _) = parse(Path::new("f"), text).unwrap();
        let found: Vec<_> = entries.iter().map(|entry| (entry.setting.key, entry.line)).collect();
        assert_eq!(found, [("database", 1), ("email.host", 4), ("email.timeouts.mail", 6)]);
        let (dotted, _) = parse(Path::new("f"), "dispatch.batch = 5").unwrap();
        assert_eq!(dotted[0].setting.key, "dispatch.batch");
    }

    #[test]
    fn an_unknown_key_names_the_line_and_the_nearest_known_one() {
        let message = refusal("[dispatch]\n# a comment\nconcurency = 4\n");
        assert!(
            message.starts_with(
                "postrider.toml:3: [dispatch] has no key \"concurency\"; did you mean \"concurrency\"? Known are: concurrency, batch"
            ),
            "{message}"
        );
        let message = refusal("\nhost = \"relay\"\n");
        assert!(
            message.contains("postrider.toml:2: there is no key \"host\"; \"host\" belongs into [email]"),
            "{message}"
        );
        assert!(refusal("zzzzzz = 1").contains("there is no key \"zzzzzz\". Known are: outbox, database, "));
        assert!(refusal("[emial]\nhost = \"x\"").contains("did you mean \"email\"?"));
        assert!(refusal("email = 1").contains("is a section: write [email]"));
    }

    #[test]
    fn what_is_no_toml_names_the_line() {
        let message = refusal("database = \"a\"\nnode = \n");
        assert!(message.starts_with("postrider.toml:2: "), "{message}");
        assert!(refusal("node = \"a\"\nnode = \"b\"\n").starts_with("postrider.toml:2: "));
    }
}
