//! What tests need from outside: servers that `cargo xtask test` provides, and waits with an end.
//!
//! A test whose server is missing is never skipped in silence: the skip is written past the test
//! harness's capture with the test's name, and with `POSTRIDER_TEST_REQUIRE=all` it is a failure.

#![expect(clippy::expect_used, reason = "test support: what cannot go on fails the test, and says why")]

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

/// No wait for another program is longer; after it the test fails.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The administrator's address of a PostgreSQL where databases may be created.
pub const POSTGRES: &str = "POSTRIDER_TEST_POSTGRES";
/// The administrator's address of a MariaDB where databases may be created.
pub const MARIADB: &str = "POSTRIDER_TEST_MARIADB";
/// A Python interpreter that has aiosmtpd.
pub const AIOSMTPD: &str = "POSTRIDER_TEST_AIOSMTPD";
/// A Python interpreter that has drivers of databases: `psycopg` and `PyMySQL`.
pub const PYTHON: &str = "POSTRIDER_TEST_PYTHON";
/// The `postfix` command.
pub const POSTFIX: &str = "POSTRIDER_TEST_POSTFIX";

/// The value of `variable`, or `None` after a line that says which test is skipped and why.
///
/// # Panics
/// When it is missing and nothing may be skipped (`POSTRIDER_TEST_REQUIRE=all`), unless the part
/// it belongs to was left out on purpose (`POSTRIDER_TEST_ONLY=sqlite` leaves out all servers,
/// `postgres` all but PostgreSQL, `mariadb` all but MariaDB).
#[must_use]
pub fn required(variable: &str) -> Option<String> {
    match decide(variable, env) {
        Decision::Use(value) => Some(value),
        Decision::Skip(reason) => {
            skip(&reason);
            None
        }
        Decision::Fail(reason) => panic!("{reason}"),
    }
}

/// Says past the harness's capture that the running test is skipped, and why.
///
/// # Panics
/// With `POSTRIDER_TEST_REQUIRE=all` and without `POSTRIDER_TEST_ONLY`.
pub fn skip_unless_required(reason: &str) {
    assert!(
        env(REQUIRE).is_none_or(|value| value != "all") || env(ONLY).is_some(),
        "{reason}; {REQUIRE}=all forbids a skip"
    );
    skip(reason);
}

/// Asks `done` until it answers, at most [`LIMIT`].
///
/// # Panics
/// With `what` when the limit has passed.
#[expect(clippy::disallowed_methods, reason = "waits for another process, which follows no clock of ours")]
pub fn wait_until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "waited {} s in vain for {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A TCP port on 127.0.0.1 that was free a moment ago.
///
/// # Panics
/// When the machine has none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1 is free");
    listener.local_addr().expect("a listener has an address").port()
}

/// A number that `id` answers, such as a user's (`id -u nobody`).
pub(crate) fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// Says lines to a mail server on 127.0.0.1 and hands back each reply, all its lines.
#[cfg(test)]
pub(crate) fn dialogue(port: u16) -> impl FnMut(&str) -> String {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpStream;

    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a time limit can be set");
    let mut replies = BufReader::new(stream.try_clone().expect("a stream can be shared"));
    move |text| {
        stream.write_all(text.as_bytes()).expect("the server takes a line");
        let mut reply = String::new();
        // "250-" goes on, "250 " ends the reply.
        while reply.lines().last().is_none_or(|line| line.as_bytes().get(3) != Some(&b' ')) {
            let read = replies.read_line(&mut reply).expect("the server answers in time");
            assert!(read > 0, "the connection ended after {reply:?}");
        }
        reply
    }
}

const ONLY: &str = "POSTRIDER_TEST_ONLY";
const REQUIRE: &str = "POSTRIDER_TEST_REQUIRE";

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Use(String),
    Skip(String),
    Fail(String),
}

fn decide(variable: &str, env: impl Fn(&str) -> Option<String>) -> Decision {
    if let Some(value) = env(variable) {
        return Decision::Use(value);
    }
    if let Some(only) = env(ONLY)
        && !matches!((only.as_str(), variable), ("postgres", POSTGRES) | ("mariadb", MARIADB))
    {
        return Decision::Skip(format!("left out by {ONLY}={only}"));
    }
    let reason = format!("{variable} is not set; `cargo xtask test` provides it");
    if env(REQUIRE).is_some_and(|value| value == "all") {
        return Decision::Fail(format!("{reason}, and {REQUIRE}=all forbids a skip"));
    }
    Decision::Skip(reason)
}

#[expect(clippy::disallowed_methods, reason = "tests are told by their environment which servers there are")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn skip(reason: &str) {
    let thread = std::thread::current();
    // Not `eprintln!`: the harness would swallow it when the test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED {}: {reason}", thread.name().unwrap_or("a test"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(variable: &str, set: &[(&str, &str)]) -> Decision {
        decide(variable, |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_given_server_is_used() {
        assert_eq!(decided(POSTGRES, &[(POSTGRES, "x"), (REQUIRE, "all")]), Decision::Use("x".to_owned()));
    }

    #[test]
    fn a_missing_server_fails_where_nothing_may_be_skipped() {
        let Decision::Fail(reason) = decided(POSTGRES, &[(REQUIRE, "all")]) else { panic!("not a failure") };
        assert!(reason.contains(POSTGRES) && reason.contains("cargo xtask test"), "{reason}");
        for (variable, only) in [(POSTGRES, "postgres"), (MARIADB, "mariadb")] {
            assert!(matches!(decided(variable, &[(REQUIRE, "all"), (ONLY, only)]), Decision::Fail(_)));
        }
    }

    #[test]
    fn a_missing_server_is_a_named_skip_otherwise() {
        let Decision::Skip(reason) = decided(AIOSMTPD, &[]) else { panic!("not a skip") };
        assert!(reason.contains(AIOSMTPD) && reason.contains("cargo xtask test"), "{reason}");
    }

    #[test]
    fn what_was_left_out_on_purpose_is_a_skip() {
        for only in ["sqlite", "postgres", "mariadb"] {
            assert!(matches!(decided(POSTFIX, &[(ONLY, only), (REQUIRE, "all")]), Decision::Skip(_)));
        }
        for (variable, only) in
            [(POSTGRES, "sqlite"), (MARIADB, "sqlite"), (POSTGRES, "mariadb"), (MARIADB, "postgres")]
        {
            assert!(matches!(decided(variable, &[(ONLY, only), (REQUIRE, "all")]), Decision::Skip(_)));
        }
    }

    #[test]
    fn a_wait_ends_as_soon_as_there_is_an_answer() {
        let mut asked = 0;
        let answer = wait_until("the third question", || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(answer, 3);
    }
}
