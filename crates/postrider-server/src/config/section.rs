//! The sections `[[outbox]]` of the file: one for each outbox, and `[outbox.rename]` within.
//!
//! Only the file has them: neither a variable nor a flag can name one of several.

use postrider::Result;
use postrider::model::column;
use toml::de::{DeTable, DeValue};

use super::error::wrong;
use super::file::{Raw, Reader, raw};
use super::givens::Givens;
use super::layers::Origin;
use super::{setting, suggest};

/// The key of the list of sections.
pub(super) const LIST: &str = "outbox";
/// The section of renamed columns.
const RENAME: &str = "rename";

/// One section.
#[derive(Debug)]
pub(crate) struct Section {
    pub(super) given: Givens,
    /// Our columns with the names that they have in this table.
    pub(super) renames: Vec<(&'static str, String, Origin)>,
    /// Where it begins.
    pub(super) origin: Origin,
}

/// All sections of the list.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming file, line and key.
pub(super) fn sections(reader: &Reader<'_>, list: &DeValue<'_>, at: &Origin) -> Result<Vec<Section>> {
    let no_list = || wrong(format!("{at}: outbox is a list of sections: write [[outbox]] above each"));
    let DeValue::Array(items) = list else { return Err(no_list()) };
    let sections = items.iter().map(|item| match item.get_ref() {
        DeValue::Table(table) => section(reader, table, reader.origin(&item.span())),
        _ => Err(no_list()),
    });
    sections.collect()
}

fn section(reader: &Reader<'_>, table: &DeTable<'_>, origin: Origin) -> Result<Section> {
    let mut section = Section { given: Givens::default(), renames: Vec::new(), origin };
    for (name, value) in table {
        let at = reader.origin(&name.span());
        let name = name.get_ref().as_ref();
        match (name, value.get_ref()) {
            (RENAME, DeValue::Table(renames)) => {
                for (ours, theirs) in renames {
                    let at = reader.origin(&ours.span());
                    section.renames.push(rename(ours.get_ref(), theirs.get_ref(), at)?);
                }
            }
            (RENAME, _) => {
                return Err(wrong(format!("{at}: outbox.rename is a section: write [outbox.rename]")));
            }
            (name, value) => {
                let key = format!("{LIST}.{name}");
                let setting = setting::OUTBOX.into_iter().find(|setting| setting.key == key);
                let setting = setting.ok_or_else(|| unknown(name, &at))?;
                section.given.put(setting, &raw(value), at)?;
            }
        }
    }
    Ok(section)
}

fn rename(ours: &str, theirs: &DeValue<'_>, at: Origin) -> Result<(&'static str, String, Origin)> {
    let Some(column) = column::named(ours) else {
        let names = column::ALL.iter().map(|column| column.name);
        let meant = meant(suggest::nearest(ours, names));
        return Err(wrong(format!("{at}: [outbox.rename]: {ours:?} is none of the outbox row's columns{meant}")));
    };
    match raw(theirs) {
        Raw::Text(name) => Ok((column.name, name, at)),
        _ => Err(wrong(format!("{at}: outbox.rename.{ours}: the column's name in quotes is expected"))),
    }
}

fn unknown(name: &str, at: &Origin) -> postrider::Error {
    let known = || setting::OUTBOX.iter().filter_map(|setting| setting.key.split('.').nth(1)).chain([RENAME]);
    let meant = meant(suggest::nearest(name, known()));
    let end = if meant.is_empty() { "." } else { "" };
    let known = known().collect::<Vec<_>>().join(", ");
    wrong(format!("{at}: [[outbox]] has no key {name:?}{meant}{end} Known are: {known}"))
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}
