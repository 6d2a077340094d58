//! Values that were given, each with where it comes from, and how they are asked for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use postrider::Result;

use super::address::DatabaseAddress;
use super::error::wrong;
use super::file::Raw;
use super::layers::Origin;
use super::setting::{Kind, Setting};
use super::value::{self, Value};

/// Values by their settings' keys.
#[derive(Debug, Default)]
pub(crate) struct Givens(BTreeMap<&'static str, Given>);

/// One value.
#[derive(Debug)]
pub(super) struct Given {
    value: Value,
    pub(super) shown: String,
    pub(super) origin: Origin,
}

impl Givens {
    /// Checks a value and keeps it instead of an earlier one.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the place.
    pub(super) fn put(&mut self, setting: &'static Setting, raw: &Raw, origin: Origin) -> Result<()> {
        let folder = match &origin {
            Origin::File(path, _) => path.parent(),
            Origin::Default | Origin::Variable(_) | Origin::Flag(_) => None,
        };
        let refused = |why: String| {
            let what = match raw {
                Raw::Text(text) if !setting.secret && !matches!(setting.kind, Kind::Database) => {
                    format!(" is {text:?}")
                }
                Raw::Number(text) if !setting.secret => format!(" is {text}"),
                _ => String::new(),
            };
            wrong(format!("{origin}: {}{what}: {why}", setting.key))
        };
        let (value, shown) = value::read(setting, raw, folder).map_err(refused)?;
        let shown = if setting.secret { "***".to_owned() } else { shown };
        self.0.insert(setting.key, Given { value, shown, origin });
        Ok(())
    }

    pub(super) fn given(&self, setting: &Setting) -> Option<&Given> {
        self.0.get(setting.key)
    }

    pub(super) fn origin(&self, setting: &Setting) -> Origin {
        self.given(setting).map_or(Origin::Default, |given| given.origin.clone())
    }

    pub(super) fn text(&self, setting: &Setting) -> Option<&str> {
        match self.value(setting) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn path(&self, setting: &Setting) -> Option<&Path> {
        match self.value(setting) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub(super) fn database(&self, setting: &Setting) -> Option<&DatabaseAddress> {
        match self.value(setting) {
            Some(Value::Database(address)) => Some(address),
            _ => None,
        }
    }

    pub(super) fn number(&self, setting: &Setting) -> Option<u64> {
        match self.value(setting) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn duration(&self, setting: &Setting) -> Option<Duration> {
        match self.value(setting) {
            Some(Value::Duration(duration)) => Some(*duration),
            _ => None,
        }
    }

    pub(super) fn durations(&self, setting: &Setting) -> Option<&[Duration]> {
        match self.value(setting) {
            Some(Value::Durations(durations)) => Some(durations),
            _ => None,
        }
    }

    pub(super) fn switch(&self, setting: &Setting) -> bool {
        matches!(self.value(setting), Some(Value::Switch(true)))
    }

    fn value(&self, setting: &Setting) -> Option<&Value> {
        self.given(setting).map(|given| &given.value)
    }
}
