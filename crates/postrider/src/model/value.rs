//! A small neutral value, in which rows cross the [`Connection`](crate::store::Connection) seam.

use uuid::Uuid;

use super::Timestamp;
use crate::error::{Error, ErrorKind, Result};

/// One value on its way to or from a database. Nulls are typed: PostgreSQL needs them so.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A truth value.
    Bool(Option<bool>),
    /// An integer of any width.
    Int(Option<i64>),
    /// Text. JSON documents are text too.
    Text(Option<String>),
    /// A UUID.
    Uuid(Option<Uuid>),
    /// An instant.
    Time(Option<Timestamp>),
    /// A number with a fraction; neither NaN nor an infinity can be stored.
    Float(Option<f64>),
    /// Bytes.
    Bytes(Option<Vec<u8>>),
    /// A stored value that could not be read as asked, and why: fatal to its row alone. On its way
    /// to the database: a value that cannot be stored, and why; it is refused unwritten.
    Unreadable(String),
}

/// The kind of a [`Value`], by which a fetched column is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Int`].
    Int,
    /// [`Value::Text`].
    Text,
    /// [`Value::Uuid`].
    Uuid,
    /// [`Value::Time`].
    Time,
    /// [`Value::Float`].
    Float,
    /// [`Value::Bytes`].
    Bytes,
}

macro_rules! conversions {
    ($($kind:ident, $native:ty, $name:literal;)*) => {
        $(
            impl From<$native> for Value {
                fn from(value: $native) -> Self {
                    Self::$kind(Some(value))
                }
            }
            impl From<Option<$native>> for Value {
                fn from(value: Option<$native>) -> Self {
                    Self::$kind(value)
                }
            }
            impl TryFrom<Value> for Option<$native> {
                type Error = Error;
                fn try_from(value: Value) -> Result<Self> {
                    match value {
                        Value::$kind(value) => Ok(value),
                        other => Err(decode(concat!("expected ", $name), &other)),
                    }
                }
            }
            impl TryFrom<Value> for $native {
                type Error = Error;
                fn try_from(value: Value) -> Result<Self> {
                    Option::<$native>::try_from(value)?
                        .ok_or_else(|| Error::new(ErrorKind::Decode, concat!("expected ", $name, ", found null")))
                }
            }
        )*
    };
}

conversions! {
    Bool, bool, "a truth value";
    Int, i64, "an integer";
    Text, String, "text";
    Uuid, Uuid, "a UUID";
    Time, Timestamp, "an instant";
    Float, f64, "a floating-point number";
    Bytes, Vec<u8>, "bytes";
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(Some(value.into()))
    }
}

impl TryFrom<Value> for i32 {
    type Error = Error;
    fn try_from(value: Value) -> Result<Self> {
        let wide = i64::try_from(value)?;
        Self::try_from(wide)
            .map_err(|_| Error::new(ErrorKind::Decode, format!("the integer {wide} does not fit in 32 bits")))
    }
}

impl Value {
    /// The null of a kind.
    #[must_use]
    pub fn null(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(None),
            Kind::Int => Self::Int(None),
            Kind::Text => Self::Text(None),
            Kind::Uuid => Self::Uuid(None),
            Kind::Time => Self::Time(None),
            Kind::Float => Self::Float(None),
            Kind::Bytes => Self::Bytes(None),
        }
    }

    /// Its kind; `None` for what is unreadable.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Text(_) => Kind::Text,
            Self::Uuid(_) => Kind::Uuid,
            Self::Time(_) => Kind::Time,
            Self::Float(_) => Kind::Float,
            Self::Bytes(_) => Kind::Bytes,
            Self::Unreadable(_) => return None,
        })
    }

    /// Whether it is the null of a kind.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind().is_some_and(|kind| *self == Self::null(kind))
    }

    /// About how many bytes it takes in a statement.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(Some(text)) => text.len(),
            Self::Bytes(Some(bytes)) => bytes.len(),
            _ => size_of::<i64>(),
        }
    }
}

fn decode(expected: &str, found: &Value) -> Error {
    let found = match found {
        Value::Unreadable(why) => return Error::new(ErrorKind::Decode, why.clone()),
        Value::Bool(_) => "a truth value",
        Value::Int(_) => "an integer",
        Value::Text(_) => "text",
        Value::Uuid(_) => "a UUID",
        Value::Time(_) => "an instant",
        Value::Float(_) => "a floating-point number",
        Value::Bytes(_) => "bytes",
    };
    Error::new(ErrorKind::Decode, format!("{expected}, found {found}"))
}
