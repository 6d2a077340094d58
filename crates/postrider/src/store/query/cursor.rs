//! A place in an order, to go on from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Direction;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Kind, OutboxId, Timestamp, Value};
use crate::store::statements::Operand;

/// The place of a row in an order: what the next page begins behind.
///
/// It holds the values that the row was sorted by, not the row: it stays valid when that row
/// changes or is deleted. It fits queries of the same order alone, with whatever conditions.
/// As text ([`fmt::Display`], [`FromStr`], serde) it is made of letters and digits, for addresses
/// and command lines. It opens no scope: whoever changes it moves within the own rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    #[serde(rename = "o")]
    order: String,
    #[serde(rename = "v")]
    values: Vec<Option<String>>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    row: Option<OutboxId>,
}

impl Cursor {
    /// The row that was there, if its id could be read.
    #[must_use]
    pub fn row(&self) -> Option<OutboxId> {
        self.place.row
    }

    /// The place with these values in the order of that name.
    pub(super) fn at(order: &str, place: &[Value], row: Option<OutboxId>) -> Result<Self> {
        let values = place.iter().map(as_text).collect::<Result<_>>()?;
        Ok(Self { place: Place { order: order.to_owned(), values, row } })
    }

    /// The values, if it is a place in that order.
    pub(super) fn place(&self, name: &str, order: &[(Operand, Direction)]) -> Result<Vec<Value>> {
        let Place { order: mine, values, .. } = &self.place;
        if mine != name || values.len() != order.len() {
            return Err(Error::invalid(format!("the cursor is a place in the order {mine:?}, the query has {name:?}")));
        }
        order.iter().zip(values).map(|((column, _), value)| from_text(column.kind, value.as_deref())).collect()
    }
}

fn as_text(value: &Value) -> Result<Option<String>> {
    Ok(match value {
        Value::Bool(v) => v.map(|v| v.to_string()),
        Value::Int(v) => v.map(|v| v.to_string()),
        Value::Text(v) => v.clone(),
        Value::Uuid(v) => v.map(|v| v.to_string()),
        Value::Time(v) => v.map(|v| v.as_micros().to_string()),
        Value::Float(v) => v.map(|v| v.to_string()),
        Value::Bytes(v) => v.as_deref().map(to_hex),
        Value::Unreadable(why) => {
            return Err(Error::new(
                ErrorKind::Decode,
                format!("a value that rows are sorted by cannot be read: {why}"),
            ));
        }
    })
}

fn from_text(kind: Kind, text: Option<&str>) -> Result<Value> {
    let Some(text) = text else { return Ok(Value::null(kind)) };
    let value = match kind {
        Kind::Bool => text.parse().ok().map(|v: bool| v.into()),
        Kind::Int => text.parse().ok().map(|v: i64| v.into()),
        Kind::Text => (!text.contains('\0')).then(|| text.into()),
        Kind::Uuid => text.parse().ok().map(|v: uuid::Uuid| v.into()),
        Kind::Time => text.parse().ok().map(|v| Timestamp::from_micros(v).into()),
        Kind::Float => text.parse().ok().map(|v: f64| v.into()),
        Kind::Bytes => from_hex(text).map(Value::from),
    };
    value.ok_or_else(broken)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

fn broken() -> Error {
    Error::invalid("the cursor is not one that a page gave")
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(&self.place).map_err(|_| fmt::Error)?;
        f.write_str(&to_hex(text.as_bytes()))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    /// Reads what [`fmt::Display`] wrote.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = from_hex(text.trim()).ok_or_else(broken)?;
        let place = serde_json::from_slice(&bytes).map_err(|cause| broken().caused_by(cause))?;
        Ok(Self { place })
    }
}

impl TryFrom<String> for Cursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_to_text_and_back() {
        let place = [Value::Text(Some("ä\"b".to_owned())), Value::Time(None), uuid::Uuid::max().into()];
        let cursor = Cursor::at("+subject -sent_at +id", &place, Some(uuid::Uuid::max().into())).unwrap();
        let text = cursor.to_string();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{text}");
        assert_eq!(text.parse::<Cursor>().unwrap(), cursor);
        assert_eq!(serde_json::from_str::<Cursor>(&serde_json::to_string(&cursor).unwrap()).unwrap(), cursor);
    }

    #[test]
    fn what_no_page_gave_is_refused() {
        for text in ["", "7", "zz", "ää", "7b7d", "00"] {
            assert_eq!(text.parse::<Cursor>().unwrap_err().kind(), ErrorKind::Invalid, "{text:?}");
        }
    }
}
