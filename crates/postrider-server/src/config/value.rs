//! One value: from what was written to what the setting takes, or why not.
//!
//! The place that it came from is put in front of the reason by `layers`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::DatabaseAddress;
use super::file::Raw;
use super::setting::{Kind, Setting};
use super::{duration, suggest};

/// A value that its setting takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Path(PathBuf),
    Database(DatabaseAddress),
    Number(u64),
    Duration(Duration),
    Durations(Vec<Duration>),
    Switch(bool),
}

/// The value, and how it is shown. `folder`: what a relative path is relative to.
pub(super) fn read(setting: &Setting, raw: &Raw, folder: Option<&Path>) -> Result<(Value, String), String> {
    let beside = |path: &str| folder.map_or_else(|| PathBuf::from(path), |it| it.join(path));
    match (&setting.kind, raw) {
        (Kind::Text | Kind::Path | Kind::Database, Raw::Text(text)) if text.trim().is_empty() => {
            Err("it is empty".to_owned())
        }
        (Kind::Text, Raw::Text(text)) => Ok((Value::Text(text.clone()), text.clone())),
        (Kind::Path, Raw::Text(text)) => {
            let path = beside(text);
            let shown = path.display().to_string();
            Ok((Value::Path(path), shown))
        }
        (Kind::Database, Raw::Text(text)) => {
            let address = DatabaseAddress::parse(text, folder)?;
            let shown = address.to_string();
            Ok((Value::Database(address), shown))
        }
        (Kind::Number { least, most }, Raw::Text(text) | Raw::Number(text)) => {
            let number = text.replace('_', "").parse().ok().filter(|n| (least..=most).contains(&n));
            let number: u64 = number.ok_or_else(|| format!("a whole number from {least} to {most} is expected"))?;
            Ok((Value::Number(number), number.to_string()))
        }
        (Kind::Duration { least, most }, Raw::Text(text)) => {
            let found = duration::parse(text)?;
            let limits = Duration::from_millis(*least)..=Duration::from_millis(*most);
            if !limits.contains(&found) {
                let (least, most) = (duration::display(*limits.start()), duration::display(*limits.end()));
                return Err(format!("a duration from {least} to {most} is expected"));
            }
            Ok((Value::Duration(found), duration::display(found)))
        }
        (Kind::Duration { .. }, Raw::Number(number)) => {
            Err(format!("a duration needs its unit, in quotes, such as \"{number}s\""))
        }
        (Kind::Durations, Raw::Text(text)) => durations(text.split(',').map(str::trim).filter(|part| !part.is_empty())),
        (Kind::Durations, Raw::List(items)) => durations(items.iter().map(String::as_str)),
        (Kind::Durations, _) => Err("a list of durations such as [\"1m\", \"5m\", \"1h\"] is expected".to_owned()),
        (Kind::Choice(allowed), Raw::Text(text)) if allowed.contains(&text.as_str()) => {
            Ok((Value::Text(text.clone()), text.clone()))
        }
        (Kind::Choice(allowed), _) => {
            let near = match raw {
                Raw::Text(text) => suggest::nearest(text, allowed.iter().copied()),
                _ => None,
            };
            let meant = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            Err(format!("one of {} is expected{meant}", allowed.join(", ")))
        }
        (Kind::Switch, Raw::Switch(on)) => Ok((Value::Switch(*on), on.to_string())),
        (Kind::Switch, Raw::Text(text)) if matches!(text.as_str(), "true" | "false") => {
            Ok((Value::Switch(text == "true"), text.clone()))
        }
        (Kind::Switch, _) => Err("true or false is expected".to_owned()),
        (_, found) => Err(format!("{} is expected, not {}", wanted(&setting.kind), name(found))),
    }
}

fn durations<'a>(items: impl Iterator<Item = &'a str>) -> Result<(Value, String), String> {
    let found: Vec<Duration> =
        items.map(|item| duration::parse(item).map_err(|why| format!("{item:?}: {why}"))).collect::<Result<_, _>>()?;
    let shown: Vec<String> = found.iter().copied().map(duration::display).collect();
    Ok((Value::Durations(found), shown.join(", ")))
}

fn wanted(kind: &Kind) -> &'static str {
    match kind {
        Kind::Number { .. } => "a whole number",
        Kind::Duration { .. } => "a duration in quotes, such as \"60s\",",
        _ => "text in quotes",
    }
}

fn name(raw: &Raw) -> &'static str {
    match raw {
        Raw::Text(_) => "a text",
        Raw::Number(_) => "a number",
        Raw::Switch(_) => "true or false",
        Raw::List(_) => "a list",
        Raw::Other(name) => name,
    }
}
