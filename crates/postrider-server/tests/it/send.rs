//! `postrider send`: what it writes, and what it refuses without writing anything.

use crate::support::{Daemon, Folder, finish};

const BASE: [&str; 5] = ["send", "--to", "alice@example.com", "--subject", "Hello"];

/// A time that lies ahead, but not by 100 days.
fn soon() -> String {
    let now = postrider::model::Clock::now(&postrider::model::SystemClock::new());
    now.plus(std::time::Duration::from_secs(3_600)).to_string()
}

fn with(more: &[&str]) -> Vec<String> {
    BASE.iter().chain(more).map(|text| (*text).to_owned()).collect()
}

#[test]
fn every_flag_reaches_the_row() {
    let folder = Folder::new();
    let mut command = folder.command(&[
        "send",
        "--to",
        "Alice <alice@example.com>",
        "--to",
        "bob@example.com",
        "--recipient",
        "user-1",
        "--recipient",
        "user-2",
        "--cc",
        "carol@example.com",
        "--subject",
        "News",
        "--body",
        "-",
        "--html",
        "<p>Hi</p>",
        "--tenant",
        "acme",
        "--dedupe-prefix",
        "news-1",
        "--in",
        "1h",
        "--expires-at",
        "2999-01-01T00:00:00Z",
        "--max-attempts",
        "3",
        "--priority",
        "-2",
        "--category",
        "news",
        "--locale",
        "de",
        "--metadata",
        "{\"order\": 17}",
        "--json",
    ]);
    command.env("POSTRIDER_LOG", "warn");
    let answers = finish(command, "From stdin\n").ok().json();
    assert_eq!(answers.as_array().unwrap().len(), 2);
    let row = folder.json(&["show", answers[0]["id"].as_str().unwrap()])["row"].clone();
    for (key, value) in [
        ("tenant", "acme"),
        ("recipient", "user-1"),
        ("recipient_address", "alice@example.com"),
        ("subject", "News"),
        ("body", "From stdin\n"),
        ("dedupe_key", "news-1:email:user-1"),
        ("expires_at", "2999-01-01T00:00:00.000000Z"),
        ("category", "news"),
        ("locale", "de"),
        ("status", "PENDING"),
    ] {
        assert_eq!(row[key], value, "{key}");
    }
    assert_eq!((&row["max_attempts"], &row["priority"]), (&3.into(), &(-2).into()));
    assert_eq!(row["cc_addresses"], serde_json::json!(["carol@example.com"]));
    assert_eq!(row["payload"], serde_json::json!({ "html": "<p>Hi</p>", "to_name": "Alice" }));
    assert_eq!(row["metadata"]["order"], 17);
    assert!(row["next_attempt_at"].as_str() > row["created_at"].as_str());
    let shown = folder.run(&["show", row["id"].as_str().unwrap()]).ok();
    assert!(
        shown.stdout.contains("(in 59 min), then it is delivered") || shown.stdout.contains("(in 1 h)"),
        "{shown:?}"
    );
}

#[test]
fn a_duplicate_names_the_row_that_exists() {
    let folder = Folder::new();
    let first = folder.send(&["--dedupe-key", "k"]);
    let answer = folder.json(&["send", "--to", "bob@example.com", "--subject", "x", "--dedupe-key", "k"]);
    assert_eq!(answer, serde_json::json!([{ "id": first, "outcome": "duplicate", "existing": first }]));
    let people = folder.run(&["send", "--to", "bob@example.com", "--subject", "x", "--dedupe-key", "k"]).ok();
    assert!(people.stdout.contains(&format!("duplicate  of {first}")), "{people:?}");
    assert_eq!(folder.json(&["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_template_is_rendered_from_the_configured_folder() {
    let folder = Folder::new();
    folder.write("postrider.toml", "templates = \"mails\"\n");
    folder.write("mails/welcome/subject.txt", "Hello {{ name }}");
    folder.write("mails/welcome/body.txt", "You have {{ n }} points.");
    let id = folder.json(&[
        "send",
        "--to",
        "alice@example.com",
        "--template",
        "welcome",
        "--vars",
        "{\"name\": \"x\", \"n\": 7}",
        "--var",
        "name=Alice=A",
    ])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let row = folder.json(&["show", &id])["row"].clone();
    assert_eq!((&row["subject"], &row["body"]), (&"Hello Alice=A".into(), &"You have 7 points.".into()));
    assert_eq!(row["template"], "welcome");
    let template = |more: &[&str]| folder.run(&[&["send", "--to", "a@example.com"], more].concat());
    template(&["--template", "welcom"]).refused(2, &["there is no template \"welcom\"", "welcome"]);
    template(&["--template", "welcome", "--var", "name=A"]).refused(2, &["template \"welcome/body", "n"]);
    assert_eq!(folder.json(&["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    let folder = Folder::new();
    folder.run(&["migrate"]).ok();
    let long = "k".repeat(256);
    let cases: Vec<(Vec<String>, &str)> = vec![
        (vec!["send".into(), "--subject".into(), "x".into()], "--to <ADDRESS>"),
        (vec!["send".into(), "--to".into(), "a@example.com".into()], "there is nothing to send"),
        (with(&["--to", "nobody"]), "\"nobody\" is not a mail address: there is no '@'"),
        (with(&["--cc", "a b@example.com"]), "\"a b@example.com\" is not a mail address"),
        (with(&["--channel", "pigeon"]), "there is no channel \"pigeon\"; known are: email"),
        (with(&["--dedupe-key", &long]), "256 bytes long; at most 255 are allowed"),
        (with(&["--dedupe-key", "k", "--to", "b@example.com"]), "one dedupe key for 2 rows"),
        (with(&["--to", "alice@example.com", "--dedupe-prefix", "k"]), "same dedupe key"),
        (with(&["--max-attempts", "0"]), "max_attempts is 0"),
        (with(&["--recipient", "a", "--recipient", "b"]), "--recipient is given 2 times, and --to once"),
        (with(&["--metadata", "{"]), "--metadata is no JSON"),
        (with(&["--at", "tomorrow"]), "\"tomorrow\" is not a time like"),
        (with(&["--at", "2026-03-01T10:00:00"]), "has no time zone: write 2026-03-01T10:00:00Z for UTC"),
        (with(&["--in", "10"]), "a duration such as"),
        (with(&["--in", "-5m"]), "the past cannot be waited for"),
        (with(&["--in", "99999999d"]), "it is too long; at most 36500d"),
        (with(&["--in", "99999999999999999999d"]), "it is too long"),
        (with(&["--expires-at", "2000-01-01T00:00:00Z"]), "--expires-at 2000-01-01T00:00:00Z is past"),
        (with(&["--in", "1h", "--at", "2026-03-01T10:00:00Z"]), "cannot be used with"),
        (with(&["--in", "100d", "--expires-at", &soon()]), "expires at"),
        (with(&["--tenant", ""]), "the tenant is empty"),
        (with(&["--template", "x"]), "cannot be used with"),
        (with(&["--var", "a=b"]), "--template"),
        (with(&["--body", "-", "--html", "-"]), "only one of"),
    ];
    for (arguments, said) in cases {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        folder.run(&arguments).refused(2, &[said]);
    }
    for subject in ["a\r\nBcc: x@example.com", "a\nb", "a\rb"] {
        folder.run(&["send", "--to", "a@example.com", "--subject", subject]).refused(2, &["subject", "line break"]);
    }
    let run = folder.run(&["send", "--to", "a@example.com", "--template", "x"]);
    run.refused(2, &["there is no template \"x\"", "the setting `templates`"]);
    let run = folder.run(&["send", "--to", "nobody", "--subject", "x", "--json"]).refused(2, &[]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "invalid");
    assert_eq!(folder.json(&["list"]), serde_json::json!([]));
}

#[test]
fn a_broken_template_stops_only_those_who_ask_for_it() {
    let folder = Folder::new();
    folder.write("postrider.toml", "templates = \"mails\"\n");
    folder.write("mails/good/body.txt", "Hi");
    folder.write("mails/good/body.txt~", "{{ half");
    folder.write("mails/half/body.txt", "{{ half");
    folder.write("mails/stray/notes.md", "x");
    let send = |name| folder.run(&["send", "--to", "a@example.com", "--template", name]);
    send("good").ok();
    send("half").refused(2, &["half/body.txt"]);
    let mut daemon = Daemon::start(&folder, &[]);
    daemon.wait_for_line("notes.md is no part of a template");
    assert!(daemon.stderr().contains("half/body.txt"), "{}", daemon.stderr());
    assert_eq!(daemon.stop(), Some(0));
    let check = folder.run(&["check"]).refused(1, &["2 checks failed"]);
    for text in ["half/body.txt", "notes.md is no part"] {
        assert!(check.stdout.contains(text), "{text}: {check:?}");
    }
}

#[test]
fn a_message_expires_so_long_from_now() {
    let folder = Folder::new();
    let id = folder.send(&["--expires-in", "2d"]);
    let row = folder.json(&["show", &id])["row"].clone();
    assert!(row["expires_at"].as_str() > row["created_at"].as_str(), "{row}");
    let both = with(&["--body", "x", "--expires-in", "2d", "--expires-at", "2999-01-01T00:00:00Z"]);
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    folder.run(&both).refused(2, &["cannot be used with"]);
    let past = with(&["--body", "x", "--expires-in", "-2d"]);
    let past: Vec<&str> = past.iter().map(String::as_str).collect();
    folder.run(&past).refused(2, &["the past cannot be waited for"]);
}
