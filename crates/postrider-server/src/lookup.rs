//! Finding rows as people name them, and what can be read of a row that cannot be read whole.
//!
//! Where it stands: above the library's repository, for reading alone.
//! A beginning of an id is looked up by the key's index: no table is scanned.

use std::fmt;
use std::str::FromStr;

use postrider::model::{OutboxId, Value, column};
use postrider::store::{Direction, Query};
use postrider::{Error, ErrorKind, Result};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use crate::served_by;
use crate::start::Store;

/// The least digits of an id's beginning.
const MIN_DIGITS: usize = 8;
/// Most rows that an error about an ambiguous beginning lists.
const MAX_LISTED: usize = 8;

/// A row as it was named: by its id, or by the beginning of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    Whole(OutboxId),
    Beginning { text: String, least: Uuid, most: Uuid },
}

impl FromStr for Named {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Whole(id));
        }
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let filled = |with: &str| Uuid::parse_str(&format!("{digits}{}", with.repeat(32 - digits.len()))).ok();
        let found =
            if is_hex && (MIN_DIGITS..32).contains(&digits.len()) { filled("0").zip(filled("f")) } else { None };
        let (least, most) = found.ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not the id of a row (a UUID), nor {MIN_DIGITS} or more characters of its beginning"
            ))
        })?;
        Ok(Self::Beginning { text: text.trim().to_owned(), least, most })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(id) => fmt::Display::fmt(id, f),
            Self::Beginning { text, .. } => f.write_str(text),
        }
    }
}

/// The id of the row that is named.
///
/// # Errors
/// [`ErrorKind::NotFound`] if no id begins so, [`ErrorKind::Invalid`] with the candidates if several do.
pub(crate) async fn resolve(store: &Store, named: &Named) -> Result<OutboxId> {
    let (text, least, most) = match named {
        Named::Whole(id) => return Ok(*id),
        Named::Beginning { text, least, most } => (text, least, most),
    };
    let beginning = Query::new()
        .ge(column::ID.name, OutboxId::from(*least))
        .le(column::ID.name, OutboxId::from(*most))
        .order_by(column::ID.name, Direction::Ascending)
        .limit(MAX_LISTED + 1);
    let found = select(store, &beginning, &[column::ID.name]).await?;
    let ids: Vec<Uuid> = found.into_iter().flatten().filter_map(|value| Uuid::try_from(value).ok()).collect();
    match ids.as_slice() {
        [] => Err(Error::new(ErrorKind::NotFound, format!("there is no row whose id begins with {text}"))),
        [id] => Ok(OutboxId::from(*id)),
        several => {
            let listed: Vec<String> = several.iter().take(MAX_LISTED).map(|id| format!("\n  {id}")).collect();
            let more = if several.len() > MAX_LISTED { "\n  and more" } else { "" };
            Err(Error::invalid(format!(
                "several ids begin with {text}; give more characters of one of them:{}{more}",
                listed.concat()
            )))
        }
    }
}

/// What can be read of a row, by column; what cannot is null, and a document that is no JSON is text.
/// `None` if there is no such row.
///
/// # Errors
/// What the database says.
pub(crate) async fn readable(store: &Store, id: OutboxId) -> Result<Option<Map<String, Json>>> {
    // Under their own names, and the tenant under the one that it has in every table.
    let mut columns: Vec<&str> = column::ALL.iter().map(|column| column.name).collect();
    let mut names = columns.clone();
    if let Some(tenant) = store.table().tenant() {
        columns.insert(1, tenant);
        names.insert(1, "tenant");
    }
    let found = select(store, &Query::new().eq(column::ID.name, id), &columns).await?;
    let row = found.into_iter().next();
    Ok(row
        .map(|values| names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), shown(name, value))).collect()))
}

/// These columns of the rows, whosever they are.
async fn select(store: &Store, query: &Query, columns: &[&str]) -> Result<Vec<Vec<Value>>> {
    served_by!(store, E => store.repository::<E>()?.root().select(query, columns).await)
}

/// A value as JSON.
fn shown(column: &str, value: Value) -> Json {
    const DOCUMENTS: [&str; 4] = ["cc_addresses", "payload", "recipients", "metadata"];
    match value {
        Value::Bool(v) => json!(v),
        Value::Int(v) => json!(v),
        Value::Text(Some(text)) if DOCUMENTS.contains(&column) => {
            serde_json::from_str(&text).unwrap_or(Json::String(text))
        }
        Value::Text(v) => json!(v),
        Value::Uuid(v) => json!(v),
        Value::Time(v) => json!(v),
        Value::Float(v) => json!(v),
        Value::Bytes(_) | Value::Unreadable(_) => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_by_its_id_or_a_long_enough_beginning() {
        let whole = "0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44";
        assert_eq!(whole.parse::<Named>().unwrap(), Named::Whole(whole.parse().unwrap()));
        let Named::Beginning { least, most, .. } = "0199F5b1-6".parse().unwrap() else { panic!("not a beginning") };
        assert_eq!(least.to_string(), "0199f5b1-6000-0000-0000-000000000000");
        assert_eq!(most.to_string(), "0199f5b1-6fff-ffff-ffff-ffffffffffff");
        for text in ["17", "0199f5b", "0199f5bx", "", "--------", &format!("{whole}0")] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }
}
