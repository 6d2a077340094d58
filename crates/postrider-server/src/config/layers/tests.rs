//! The rules of the layers, without the environment of the process.

use super::*;
use crate::config::DatabaseAddress;
use crate::config::setting::Setting;
use crate::config::value;

fn put(setting: &'static Setting, raw: &Raw) -> Result<Values> {
    let mut values = Values::default();
    values.given.put(setting, raw, Origin::File("a/p.toml".into(), 7))?;
    Ok(values)
}

fn refusal(setting: &'static Setting, raw: &Raw) -> String {
    put(setting, raw).unwrap_err().to_string()
}

fn text(text: &str) -> Raw {
    Raw::Text(text.to_owned())
}

#[test]
fn a_wrong_value_names_its_place_its_key_and_what_is_allowed() {
    for (setting, raw, message) in [
        (
            &setting::BATCH,
            Raw::Number("0".into()),
            "a/p.toml:7: dispatch.batch is 0: a whole number from 1 to 10000 is expected",
        ),
        (
            &setting::GRACE,
            Raw::Number("60".into()),
            "a/p.toml:7: dispatch.grace is 60: a duration needs its unit, in quotes, such as \"60s\"",
        ),
        (
            &setting::CLAIM_TIMEOUT,
            text("1ms"),
            "a/p.toml:7: dispatch.claim_timeout is \"1ms\": a duration from 1s to 30d is expected",
        ),
        (
            &setting::TLS,
            text("start-tls"),
            "a/p.toml:7: email.tls is \"start-tls\": one of starttls, implicit, opportunistic, none \
             is expected; did you mean \"starttls\"?",
        ),
        (
            &setting::RETRY,
            Raw::List(vec!["1m".into(), "x".into()]),
            "a/p.toml:7: email.retry: \"x\": a duration such as 500ms, 60s, 5m, 1h30m or 2d is expected",
        ),
        (&setting::HOST, text(" "), "a/p.toml:7: email.host is \" \": it is empty"),
        (
            &setting::PASSWORD,
            Raw::Number("12345".into()),
            "a/p.toml:7: email.password: text in quotes is expected, not a number",
        ),
    ] {
        assert_eq!(refusal(setting, &raw), message);
    }
}

#[test]
fn a_secret_is_never_shown() {
    let values = put(&setting::PASSWORD, &text("hunter2")).unwrap();
    assert_eq!(values.text(&setting::PASSWORD), Some("hunter2"));
    let shown = values.shown().find(|shown| shown.key == "email.password").unwrap();
    assert_eq!((shown.value.as_deref(), shown.origin.as_str()), (Some("***"), "a/p.toml:7"));
    let refused = refusal(&setting::DATABASE, &text("mssql://root:hunter2@host/db"));
    assert!(!refused.contains("hunter2"), "{refused}");
    let values = put(&setting::DATABASE, &text("postgres://me:hunt@er2@host:1/db?password=x")).unwrap();
    let shown = values.shown().find(|shown| shown.key == "database").unwrap();
    assert_eq!(shown.value.as_deref(), Some("postgres://me:***@host:1/db"));
}

#[test]
fn the_later_layer_wins_and_the_origin_is_kept() {
    let mut values = put(&setting::BATCH, &Raw::Number("5".into())).unwrap();
    values.flags(None, &["dispatch.batch=7".to_owned()]).unwrap();
    assert_eq!(values.number(&setting::BATCH), Some(7));
    assert_eq!(values.origin(&setting::BATCH), Origin::Flag("--set"));
    let refused = |set: &str| {
        let mut values = put(&setting::BATCH, &Raw::Number("5".into())).unwrap();
        values.flags(None, &[set.to_owned()]).unwrap_err().to_string()
    };
    assert!(refused("dispatch.bacth=1").contains("did you mean \"dispatch.batch\"?"));
    assert!(refused("dispatch.batch").contains("KEY=VALUE is expected"));
    let secret = refused("email.password=hunter2");
    assert!(secret.contains("email.password_file") && !secret.contains("hunter2"), "{secret}");
}

#[test]
fn a_path_in_a_file_is_relative_to_that_file() {
    let values = put(&setting::TEMPLATES, &text("mails")).unwrap();
    assert_eq!(values.path(&setting::TEMPLATES), Some(Path::new("a/mails")));
    let values = put(&setting::DATABASE, &text("sqlite:x.db")).unwrap();
    let sqlite = DatabaseAddress::Sqlite("a/x.db".into());
    assert_eq!(values.database(&setting::DATABASE), Some(&sqlite));
}

#[test]
fn every_default_is_allowed_and_every_setting_has_a_name_of_its_own() {
    let mut names = std::collections::BTreeSet::new();
    for setting in setting::ALL {
        assert!(names.insert(setting.variable()), "{}", setting.key);
        if let Some(default) = setting.default {
            value::read(setting, &text(default), None).unwrap();
        }
    }
}
