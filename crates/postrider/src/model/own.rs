//! The application's own columns: which there are, and which Rust types stand in them.
//!
//! The derive macro goes through [`ColumnValue`] for every field that is not the outbox row. A
//! value that a database could not give back as it was given is refused before it is written, on
//! every database alike. Source: contract C1.6.

use serde_json::Value as Json;
use uuid::Uuid;

use super::{Kind, TenantId, Timestamp, Value};
use crate::error::{Error, ErrorKind, Result};

/// Deepest nesting of a JSON document in an own column; readers of JSON stop at 128.
const MAX_DEPTH: usize = 127;

/// A column of the application's own, beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnColumn {
    /// Its name in the table.
    pub name: &'static str,
    /// How its values cross the seam.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
}

impl OwnColumn {
    /// The column of that name that holds values of `T`.
    #[must_use]
    pub const fn of<T: ColumnValue>(name: &'static str) -> Self {
        Self { name, kind: T::KIND, nullable: T::NULLABLE }
    }

    /// Refuses what the column could not give back as it was given.
    pub(crate) fn check(&self, value: &Value) -> Result<()> {
        let why = match value {
            Value::Unreadable(why) => why.clone(),
            Value::Float(Some(number)) if !number.is_finite() => {
                format!("{number} is no value that every database can store")
            }
            _ if value.kind() != Some(self.kind) => {
                format!("declared as {:?}, given {:?}", self.kind, value.kind())
            }
            _ if value.is_null() && !self.nullable => "null, where none may stand".to_owned(),
            _ => return Ok(()),
        };
        Err(Error::invalid(format!("{}: {why}", self.name)))
    }
}

/// A Rust type whose values stand in one column of the application's own.
///
/// Ready for `bool`, `i16`, `i32`, `i64`, `u8`, `u16`, `u32`, `f64`, [`String`], [`Uuid`],
/// [`Timestamp`], [`jiff::Timestamp`], `Vec<u8>`, [`serde_json::Value`] (as JSON text), [`TenantId`],
/// and an [`Option`] of each, which is null where it is `None`. A type of your own:
///
/// ```
/// use postrider::model::{ColumnValue, Kind, Value};
/// use postrider::{Error, ErrorKind, Result};
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Urgency {
///     Low,
///     High,
/// }
///
/// impl ColumnValue for Urgency {
///     const KIND: Kind = Kind::Text;
///
///     fn to_value(&self) -> Value {
///         match self {
///             Self::Low => "low".into(),
///             Self::High => "high".into(),
///         }
///     }
///
///     fn from_value(value: Value) -> Result<Self> {
///         match String::from_value(value)?.as_str() {
///             "low" => Ok(Self::Low),
///             "high" => Ok(Self::High),
///             other => Err(Error::new(ErrorKind::Decode, format!("{other:?} is no urgency"))),
///         }
///     }
/// }
///
/// assert_eq!(Urgency::from_value(Urgency::High.to_value())?, Urgency::High);
/// assert_eq!(Option::<Urgency>::from_value(Value::null(Kind::Text))?, None);
/// # Ok::<(), Error>(())
/// ```
///
/// A newtype hands both calls on: `self.0.to_value()`, and `i64::from_value(value).map(Self)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in a column",
    label = "`ColumnValue` is not implemented for this type",
    note = "use a type that implements it (integers that fit into an `i64`, `String`, `Uuid`, `Timestamp`, `Vec<u8>`, \
            `serde_json::Value` and others), or implement `postrider::model::ColumnValue` for `{Self}`"
)]
pub trait ColumnValue: Sized {
    /// How the values cross the seam, and with it the column's type in the DDL.
    const KIND: Kind;

    /// Whether the column may be null; only [`Option`] says so.
    const NULLABLE: bool = false;

    /// The value as it is stored, of [`Self::KIND`].
    ///
    /// What must not be stored is given as [`Value::Unreadable`] with the reason: the row is then
    /// refused with [`ErrorKind::Invalid`], and nothing is written.
    fn to_value(&self) -> Value;

    /// The value that a column holds.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] if it is none of this type's. The row alone fails, and the error
    /// names the column.
    fn from_value(value: Value) -> Result<Self>;
}

macro_rules! as_they_are {
    ($($native:ty => $kind:ident),* $(,)?) => {
        $(impl ColumnValue for $native {
            const KIND: Kind = Kind::$kind;

            fn to_value(&self) -> Value {
                Value::$kind(Some(self.clone()))
            }

            fn from_value(value: Value) -> Result<Self> {
                value.try_into()
            }
        })*
    };
}

as_they_are! {
    bool => Bool,
    i64 => Int,
    String => Text,
    Uuid => Uuid,
    Timestamp => Time,
    Vec<u8> => Bytes,
}

/// NaN is refused, since SQLite would store null; −0 is stored as 0, which SQLite would make of it.
impl ColumnValue for f64 {
    const KIND: Kind = Kind::Float;

    fn to_value(&self) -> Value {
        let positive_zero = 0.0;
        (self + positive_zero).into()
    }

    fn from_value(value: Value) -> Result<Self> {
        value.try_into()
    }
}

macro_rules! narrow_integers {
    ($($native:ident),*) => {
        $(impl ColumnValue for $native {
            const KIND: Kind = Kind::Int;

            fn to_value(&self) -> Value {
                Value::Int(Some(i64::from(*self)))
            }

            fn from_value(value: Value) -> Result<Self> {
                let wide = i64::try_from(value)?;
                Self::try_from(wide).map_err(|_| {
                    let narrow = stringify!($native);
                    Error::new(ErrorKind::Decode, format!("the integer {wide} does not fit into {narrow}"))
                })
            }
        })*
    };
}

narrow_integers!(i16, i32, u8, u16, u32);

/// Cut to microseconds, as a [`Timestamp`] is; outside of the years 1 to 9999 it is refused.
impl ColumnValue for jiff::Timestamp {
    const KIND: Kind = Kind::Time;

    fn to_value(&self) -> Value {
        if *self < Timestamp::MIN.to_jiff() || *self > Timestamp::MAX.to_jiff() {
            let (least, most) = (Timestamp::MIN, Timestamp::MAX);
            return Value::Unreadable(format!("the instant {self} is not between {least} and {most}"));
        }
        Timestamp::from(*self).into()
    }

    fn from_value(value: Value) -> Result<Self> {
        Timestamp::from_value(value).map(Timestamp::to_jiff)
    }
}

/// As JSON text; nested deeper than 127 levels, it is refused.
impl ColumnValue for Json {
    const KIND: Kind = Kind::Text;

    fn to_value(&self) -> Value {
        if is_deeper(self, MAX_DEPTH) {
            return Value::Unreadable(format!("the document is nested more than {MAX_DEPTH} levels deep"));
        }
        self.to_string().into()
    }

    fn from_value(value: Value) -> Result<Self> {
        serde_json::from_str(&String::try_from(value)?)
            .map_err(|cause| Error::new(ErrorKind::Decode, format!("no JSON: {cause}")).caused_by(cause))
    }
}

/// Whether a document has more than `levels` lists and objects inside each other.
fn is_deeper(document: &Json, levels: usize) -> bool {
    let inner = |item| levels == 0 || is_deeper(item, levels - 1);
    match document {
        Json::Array(items) => levels == 0 || items.iter().any(inner),
        Json::Object(fields) => levels == 0 || fields.values().any(inner),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// As text; [`TenantId::ROOT`] is the empty text.
impl ColumnValue for TenantId {
    const KIND: Kind = Kind::Text;

    fn to_value(&self) -> Value {
        self.as_str().into()
    }

    fn from_value(value: Value) -> Result<Self> {
        let name = String::try_from(value)?;
        if name.is_empty() {
            return Ok(Self::ROOT);
        }
        Self::new(name).map_err(|error| Error::new(ErrorKind::Decode, error.to_string()))
    }
}

/// Null where it is `None`. An `Option` of an `Option` does not build, since a column has one null:
///
/// ```compile_fail,E0080
/// # use postrider::model::OwnColumn;
/// const NOTE: OwnColumn = OwnColumn::of::<Option<Option<String>>>("note");
/// ```
impl<T: ColumnValue> ColumnValue for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = {
        assert!(!T::NULLABLE, "an `Option` of an `Option` cannot stand in a column, which has one null");
        true
    };

    fn to_value(&self) -> Value {
        self.as_ref().map_or_else(|| Value::null(T::KIND), T::to_value)
    }

    fn from_value(value: Value) -> Result<Self> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

/// Hands out the values of the own columns in their order, and names the column that is unusable.
#[derive(Debug)]
pub struct OwnValues {
    columns: std::slice::Iter<'static, OwnColumn>,
    values: std::vec::IntoIter<Value>,
}

impl OwnValues {
    /// What [`assemble`](super::OutboxEntity::assemble) was given, beside the entity's own columns.
    #[must_use]
    pub fn new(columns: &'static [OwnColumn], values: Vec<Value>) -> Self {
        Self { columns: columns.iter(), values: values.into_iter() }
    }

    /// The next column's value.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`], naming the column, if it holds no value of `T`.
    pub fn take<T: ColumnValue>(&mut self) -> Result<T> {
        let (Some(column), Some(value)) = (self.columns.next(), self.values.next()) else {
            return Err(Error::new(ErrorKind::Decode, "more own columns are read than there are"));
        };
        let read = match value {
            Value::Unreadable(why) => Err(Error::new(ErrorKind::Decode, why)),
            value => T::from_value(value),
        };
        read.map_err(|error| match error.kind() {
            ErrorKind::Decode => error.context(column.name),
            // Whatever the application's own type says: what is stored cannot be read.
            _ => Error::new(ErrorKind::Decode, format!("{}: {error}", column.name)).caused_by(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAME: &str = "note";

    fn read<T: ColumnValue>(value: Value) -> Result<T> {
        const COLUMNS: &[OwnColumn] = &[OwnColumn::of::<i64>(NAME)];
        OwnValues::new(COLUMNS, vec![value]).take()
    }

    #[test]
    fn an_integer_that_does_not_fit_names_its_column() {
        let error = read::<u16>(65_536_i64.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert_eq!(error.to_string(), "note: the integer 65536 does not fit into u16");
        assert_eq!(read::<u16>(65_535_i64.into()).unwrap(), u16::MAX);
        assert!(read::<u32>((-1_i64).into()).is_err());
    }

    #[test]
    fn null_is_read_by_options_alone() {
        assert_eq!(read::<Option<u8>>(Value::Int(None)).unwrap(), None);
        assert_eq!(read::<u8>(Value::Int(None)).unwrap_err().to_string(), "note: expected an integer, found null");
    }

    #[test]
    fn what_is_unreadable_or_refused_by_the_type_is_a_decode_error() {
        assert_eq!(read::<Option<bool>>(Value::Unreadable("no".into())).unwrap_err().to_string(), "note: no");
        let error = read::<TenantId>("a\nb".into()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().starts_with("note: ")), (ErrorKind::Decode, true));
        assert_eq!(read::<TenantId>("".into()).unwrap(), TenantId::ROOT);
    }

    #[test]
    fn what_could_not_be_read_back_is_refused_before_it_is_written() {
        let refused = |column: OwnColumn, value: Value| {
            let error = column.check(&value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().starts_with("note: "), "{error}");
        };
        refused(OwnColumn::of::<f64>(NAME), f64::NAN.into());
        refused(OwnColumn::of::<f64>(NAME), Value::Float(None));
        refused(OwnColumn::of::<f64>(NAME), 1_i64.into());
        refused(OwnColumn::of::<jiff::Timestamp>(NAME), jiff::Timestamp::MIN.to_value());
        refused(OwnColumn::of::<jiff::Timestamp>(NAME), jiff::Timestamp::MAX.to_value());
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": [inner] }));
        refused(OwnColumn::of::<Json>(NAME), nested(64).to_value());
        let deepest = nested(63).to_value();
        assert!(OwnColumn::of::<Json>(NAME).check(&deepest).is_ok());
        assert_eq!(read::<Json>(deepest).unwrap(), nested(63));
        assert!(OwnColumn::of::<Option<f64>>(NAME).check(&Value::Float(None)).is_ok());
        refused(OwnColumn::of::<f64>(NAME), f64::INFINITY.into());
    }
}
