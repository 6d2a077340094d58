//! Reads `#[outbox(…)]`, on the struct and on its fields.
//!
//! Knows the keys and the form of their values, and nothing of what they mean together.

use syn::meta::ParseNestedMeta;
use syn::token::Paren;
use syn::{Attribute, Error, Ident, LitStr, Result};

/// What is said on the struct.
#[derive(Default)]
pub(crate) struct OnStruct {
    pub(crate) table: Option<LitStr>,
    pub(crate) schema: Option<LitStr>,
    pub(crate) tenant: Option<LitStr>,
    /// How the ids are stored.
    pub(crate) id: Option<LitStr>,
    /// The companion table of attempts.
    pub(crate) attempts: Option<LitStr>,
    /// A column of the outbox row, and its other name.
    pub(crate) renames: Vec<(Ident, LitStr)>,
}

/// What is said on a field; a mark is the word that makes it.
#[derive(Default)]
pub(crate) struct OnField {
    pub(crate) row: Option<Ident>,
    pub(crate) tenant: Option<Ident>,
    pub(crate) column: Option<LitStr>,
}

impl OnStruct {
    pub(crate) fn read(attributes: &[Attribute], errors: &mut Vec<Error>) -> Self {
        let mut found = Self::default();
        each_key(attributes, errors, |key, meta| match key {
            "table" => text(meta, &mut found.table),
            "schema" => text(meta, &mut found.schema),
            "tenant" => text(meta, &mut found.tenant),
            "id" => text(meta, &mut found.id),
            "attempts" => text(meta, &mut found.attempts),
            "rename" => renames(meta, &mut found.renames),
            _ => Err(unknown(meta, "the struct", "`table`, `schema`, `tenant`, `id`, `attempts` and `rename(…)`")),
        });
        found
    }
}

impl OnField {
    pub(crate) fn read(attributes: &[Attribute], errors: &mut Vec<Error>) -> Self {
        let mut found = Self::default();
        each_key(attributes, errors, |key, meta| match key {
            "row" => mark(meta, &mut found.row),
            "tenant" => mark(meta, &mut found.tenant),
            "column" => text(meta, &mut found.column),
            _ => Err(unknown(meta, "a field", "`row`, `tenant` and `column`")),
        });
        found
    }
}

/// Hands out each key of the `outbox` attributes; the rest of an attribute with an error is left out.
fn each_key(
    attributes: &[Attribute],
    errors: &mut Vec<Error>,
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> Result<()>,
) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("outbox")) {
        let read = attribute.parse_nested_meta(|meta| {
            let key = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            take(&key, &meta)
        });
        errors.extend(read.err());
    }
}

fn renames(meta: &ParseNestedMeta<'_>, found: &mut Vec<(Ident, LitStr)>) -> Result<()> {
    if !meta.input.peek(Paren) {
        return Err(meta.error("columns and their names stand in parentheses: `rename(created_at = \"…\")`"));
    }
    meta.parse_nested_meta(|inner| {
        found.push((inner.path.require_ident()?.clone(), inner.value()?.parse()?));
        Ok(())
    })
}

fn text(meta: &ParseNestedMeta<'_>, place: &mut Option<LitStr>) -> Result<()> {
    let given = meta.value()?.parse()?;
    once(meta, place.replace(given).is_some())
}

fn mark(meta: &ParseNestedMeta<'_>, place: &mut Option<Ident>) -> Result<()> {
    let given = meta.path.require_ident()?.clone();
    once(meta, place.replace(given).is_some())
}

fn once(meta: &ParseNestedMeta<'_>, before: bool) -> Result<()> {
    if before { Err(meta.error(format!("{} is said twice", key(meta)))) } else { Ok(()) }
}

fn unknown(meta: &ParseNestedMeta<'_>, place: &str, known: &str) -> Error {
    meta.error(format!("{} is no key of `outbox` on {place}; there are {known}", key(meta)))
}

fn key(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map_or_else(|| "a path".to_owned(), |key| format!("`{key}`"))
}
