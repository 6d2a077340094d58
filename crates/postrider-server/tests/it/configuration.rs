//! The configuration: what is refused, which layer wins, what is shown.

use std::process::Command;

use serde_json::Value as Json;

use crate::support::{Folder, finish};

fn setting(check: &Json, key: &str) -> (Option<String>, String) {
    let settings = check["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["key"] == key).unwrap();
    (found["value"].as_str().map(str::to_owned), found["origin"].as_str().unwrap().to_owned())
}

#[test]
fn a_wrong_value_names_file_line_key_and_what_is_allowed() {
    for (text, said) in [
        (
            "[dispatch]\nconcurrency = 0\n",
            "postrider.toml:2: dispatch.concurrency is 0: a whole number from 1 to 100000",
        ),
        ("[dispatch]\n\ngrace = 5\n", "postrider.toml:3: dispatch.grace is 5: a duration needs its unit"),
        (
            "[dispatch]\nconcurency = 4\n",
            "postrider.toml:2: [dispatch] has no key \"concurency\"; did you mean \"concurrency\"?",
        ),
        ("databse = \"sqlite:x.db\"\n", "postrider.toml:1: there is no key \"databse\"; did you mean \"database\"?"),
        ("database = \"mssql://root:hunter2@h/d\"\n", "postrider.toml:1: database: sqlite:PATH, postgres://"),
        ("node = \n", "postrider.toml:1: "),
        ("[email]\nfrom = \"a@example.com\"\n", "postrider.toml:2: email.from is set, but email.host is not"),
        ("[email]\nhost = \"relay\"\n", "postrider.toml:2: email.host is set, but email.from is not"),
        (
            "[email]\nhost = \"h\"\nfrom = \"a@example.com\"\nusername = \"u\"\n",
            "postrider.toml:4: email.username is set",
        ),
        ("[email]\nhost = \"h\"\nfrom = \"a@example.com\"\nin_doubt = \"rety\"\n", "did you mean \"retry\"?"),
        (
            "[email]\nhost = \"h\"\nfrom = \"a@example.com\"\nretry = [\"1m\", \"soon\"]\n",
            "postrider.toml:4: email.retry",
        ),
    ] {
        let folder = Folder::new();
        folder.write("postrider.toml", text);
        for command in ["serve", "list", "check"] {
            let run = folder.run(&[command]).refused(2, &[said]);
            assert!(!run.stderr.contains("hunter2"), "{run:?}");
        }
        assert!(!folder.path().join("postrider.db").exists());
    }
}

#[test]
fn what_the_channel_refuses_ends_with_2_too() {
    let folder = Folder::new();
    folder.write("postrider.toml", "[email]\nhost = \"relay.example.com\"\nfrom = \"nobody\"\n");
    folder.run(&["serve"]).refused(2, &["the e-mail setting from", "nobody"]);
    let check = folder.run(&["check"]).refused(1, &["1 check failed"]);
    assert!(check.stdout.contains("PROBLEM  e-mail: the e-mail setting from"), "{check:?}");
    let set = "[email]\nhost = \"h\"\nfrom = \"a@example.com\"\nusername = \"u\"\npassword_file = \"no/such\"\n";
    folder.write("postrider.toml", set);
    folder
        .run(&["serve"])
        .refused(2, &["postrider.toml:5: email.password_file: the file", "no/such", "cannot be read"]);
}

#[test]
fn a_short_deadline_shortens_the_limits_that_are_not_set() {
    let folder = Folder::new();
    let text = "[email]\nhost = \"localhost\"\nfrom = \"a@example.com\"\ndeadline = \"20s\"\n";
    folder.write("postrider.toml", text);
    folder.run(&["check", "--offline"]).ok();
    folder.write("postrider.toml", &format!("{text}[email.timeouts]\nmail = \"21s\"\n"));
    let check = folder.run(&["check"]).refused(1, &[]);
    assert!(check.stdout.contains("the e-mail setting timeouts.mail"), "{check:?}");
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file() {
    let folder = Folder::new();
    folder.write("postrider.toml", "node = \"file\"\n[dispatch]\nbatch = 5\ngrace = \"9s\"\n");
    let mut command = folder.command(&["check", "--json", "--set", "dispatch.batch=7"]);
    command.env("POSTRIDER_DISPATCH_BATCH", "6").env("POSTRIDER_DISPATCH_GRACE", "1m30s");
    command.env("POSTRIDER_TEMPLATES", "").env("POSTRIDER_DISPATCH_BACTH", "8");
    let check = finish(command, "").ok().json();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(setting(&check, "dispatch.batch"), (text("7"), "--set".to_owned()));
    assert_eq!(setting(&check, "dispatch.grace"), (text("1m30s"), "POSTRIDER_DISPATCH_GRACE".to_owned()));
    assert_eq!(setting(&check, "node"), (text("file"), "postrider.toml:1".to_owned()));
    assert_eq!(setting(&check, "templates"), (None, "default".to_owned()));
    assert_eq!(setting(&check, "dispatch.poll_max"), (text("5s"), "default".to_owned()));
    assert_eq!(check["ignored_variables"][0], "POSTRIDER_DISPATCH_BACTH (did you mean POSTRIDER_DISPATCH_BATCH?)");
    let mut command = folder.command(&["list"]);
    command.env("POSTRIDER_DISPATCH_BATCH", "many");
    finish(command, "").refused(2, &["POSTRIDER_DISPATCH_BATCH: dispatch.batch is \"many\": a whole number"]);
}

#[test]
fn a_named_file_must_exist_and_its_paths_are_relative_to_it() {
    let folder = Folder::new();
    folder.run(&["list", "--config", "no.toml"]).refused(2, &["no.toml cannot be read"]);
    folder.write("etc/postrider.toml", "database = \"sqlite:rows.db\"\n");
    folder.run(&["migrate", "--config", "etc/postrider.toml"]).ok();
    assert!(folder.path().join("etc/rows.db").exists());
    let mut command = folder.command(&["list"]);
    command.env("POSTRIDER_CONFIG", "etc/postrider.toml");
    finish(command, "").ok();
    folder.run(&["list"]).refused(2, &["there is no database at postrider.db yet"]);
}

#[test]
fn a_secret_is_never_shown() {
    let folder = Folder::new();
    folder.write("url", "postgres://me:hunter2@127.0.0.1:1/db\n");
    folder.write(
        "postrider.toml",
        "[email]\nhost = \"localhost\"\nfrom = \"a@example.com\"\nusername = \"u\"\npassword = \"hunter2\"\n",
    );
    let show = |mut command: Command| {
        command.env("POSTRIDER_LOG", "trace");
        let run = finish(command, "");
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
        run
    };
    let check = show(folder.command(&["check", "--offline"])).ok();
    assert!(check.stdout.contains("***") && check.stdout.contains("relay localhost:587"), "{check:?}");
    show(folder.command(&["check", "--offline", "--json"])).ok();
    let mut command = folder.command(&["check", "--offline"]);
    command.env("POSTRIDER_DATABASE_FILE", "url");
    let run = show(command).refused(1, &["1 check failed"]);
    assert!(run.stdout.contains("postgres://me:***@127.0.0.1:1/db cannot be reached"), "{run:?}");
    show(folder.command(&["check", "--set", "email.password=hunter2"])).refused(2, &["email.password_file"]);
}
