//! The help teaches.

use crate::support::Folder;

const COMMANDS: [&str; 10] =
    ["serve", "send", "list", "show", "requeue", "expedite", "wake", "migrate", "schema", "check"];

#[test]
fn every_command_has_a_help_with_an_example() {
    let folder = Folder::new();
    for command in COMMANDS {
        let help = folder.run(&[command, "--help"]).ok().stdout;
        assert!(help.contains("Examples:"), "{command}: {help}");
        insta::assert_snapshot!(command, help);
        assert!(help.contains(&format!("postrider {command}")), "{command}: {help}");
        for flag in ["--config", "--database", "--json", "--color", "--log-format"] {
            assert!(help.contains(flag), "{command} {flag}: {help}");
        }
    }
}

#[test]
fn the_help_tells_commands_configuration_and_exit_codes() {
    let help = Folder::new().run(&["--help"]).ok().stdout;
    for text in COMMANDS.into_iter().chain(["Exit codes:", "postrider.toml", "POSTRIDER_", "Examples:"]) {
        assert!(help.contains(text), "{text}: {help}");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_is_json_where_that_was_asked_for() {
    let folder = Folder::new();
    folder.run(&["sned"]).refused(2, &["send"]);
    folder.run(&["show", "17"]).refused(2, &["\"17\" is not the id of a row (a UUID)"]);
    folder.run(&["list", "--status", "gone"]).refused(2, &["there are PENDING, SENDING"]);
    let run = folder.run(&["list", "--limit", "x", "--json"]).refused(2, &[]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "usage");
    assert!(error["error"]["message"].as_str().unwrap().contains("--limit"), "{error}");
}

#[test]
fn every_setting_stands_in_the_readme() {
    let check = Folder::new().json(&["check"]);
    let readme = include_str!("../../README.md");
    for setting in check["settings"].as_array().unwrap() {
        let key = setting["key"].as_str().unwrap();
        assert!(readme.contains(&format!("| `{key}` |")), "{key} is not in README.md");
        let (value, origin) = (setting["value"].as_str(), setting["origin"].as_str());
        let default = value.filter(|_| origin == Some("default"));
        let row = readme.lines().find(|line| line.starts_with(&format!("| `{key}` |"))).unwrap();
        assert!(default.is_none_or(|value| row.contains(value)), "{row}: {default:?}");
    }
}
