//! A private Postfix for tests: own configuration, queue, port and mailbox, gone at the end.
//!
//! It takes mail for any address at `example.com` and `example.org` and delivers it into one
//! Maildir; it asks no DNS and sends nothing anywhere. `refused@example.com` gets 550,
//! `later@example.com` 450. Needs root, because Postfix changes users between its parts.

#![expect(clippy::expect_used, reason = "test support: what cannot go on fails the test, and says why")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::server::{LIMIT, POSTFIX, free_port, id, required, skip_unless_required, wait_until};

/// A running Postfix. It is stopped when this is dropped, or when the test's process dies.
#[derive(Debug)]
pub struct Postfix {
    guard: Child,
    port: u16,
    dir: TempDir,
}

impl Postfix {
    /// Starts an instance with the `postfix` command of `POSTRIDER_TEST_POSTFIX`.
    ///
    /// `None` when there is none or we are not root, after a line that names the skipped test
    /// (see [`required`]).
    ///
    /// # Panics
    /// When there must be one and is none, or when it does not start within [`LIMIT`].
    #[must_use]
    pub fn start() -> Option<Self> {
        let command = required(POSTFIX)?;
        if id(&["-u"]) != Some(0) {
            skip_unless_required("Postfix needs root");
            return None;
        }
        // Somebody may take the port between the look and the start.
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Self::try_start(&command) {
                Ok(postfix) => return Some(postfix),
                Err(error) => assert!(attempts < 3, "{error}"),
            }
        }
    }

    fn try_start(command: &str) -> Result<Self, String> {
        let port = free_port();
        let dir =
            tempfile::Builder::new().prefix("postrider-postfix-").tempdir().expect("a temporary folder can be made");
        lay_out(dir.path(), port);
        let postfix = Self { guard: guard(command, dir.path()), port, dir };
        let code = wait_until("`postfix start`", || {
            fs::read_to_string(postfix.dir.path().join("code")).ok().filter(|code| code.ends_with('\n'))
        });
        if code.trim() != "0" {
            let said = fs::read_to_string(postfix.dir.path().join("said")).unwrap_or_default();
            return Err(format!("`{command} start` ({POSTFIX}) ended with {}: {said}\n{}", code.trim(), postfix.log()));
        }
        let greeted = || {
            let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.set_read_timeout(Some(LIMIT)).ok()?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).ok()?;
            Some(line)
        };
        let greeting = wait_until(&format!("Postfix on port {port}"), greeted);
        if greeting.starts_with("220 postrider.example.net ") {
            Ok(postfix)
        } else {
            Err(format!("somebody else answers on port {port}: {greeting:?}\n{}", postfix.log()))
        }
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The messages delivered so far, as they lie in the mailbox: one per recipient, with
    /// `Delivered-To:` naming it. Postfix delivers after it has acknowledged a message.
    ///
    /// # Panics
    /// When the mailbox cannot be read.
    #[must_use]
    pub fn delivered(&self) -> Vec<String> {
        let new = self.dir.path().join("mail").join("inbox").join("new");
        if !new.is_dir() {
            return Vec::new();
        }
        let entries = fs::read_dir(new).expect("the mailbox can be read");
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        let read = |file: &PathBuf| fs::read(file).expect("a delivered message can be read");
        files.iter().map(|file| String::from_utf8_lossy(&read(file)).into_owned()).collect()
    }

    /// Waits until there are at least `count` delivered messages.
    ///
    /// # Panics
    /// When [`LIMIT`] has passed; Postfix's log is printed.
    #[must_use]
    pub fn wait_for(&self, count: usize) -> Vec<String> {
        let result = std::panic::catch_unwind(|| {
            wait_until(&format!("{count} messages in Postfix's mailbox"), || {
                Some(self.delivered()).filter(|found| found.len() >= count)
            })
        });
        result.unwrap_or_else(|_| panic!("not delivered in time: {}", self.log()))
    }

    /// What Postfix has logged.
    #[must_use]
    pub fn log(&self) -> String {
        let text = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        format!("the log of Postfix:\n{text}")
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// What the guard does: start, tell how that went, wait for the end of its input, stop.
const GUARD: &str = r#"
"$1" -c "$2/etc" start </dev/null >"$2/said" 2>&1
echo $? >"$2/code"
cat >/dev/null
"$1" -c "$2/etc" stop
rm -rf "$2"
"#;

/// A process that starts Postfix, waits until we close its input or die, then stops it and removes
/// its folder. Its own process group keeps Ctrl-C away from it.
fn guard(command: &str, dir: &Path) -> Child {
    Command::new("sh")
        .args(["-c", GUARD, "guard", command])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh can be started")
}

/// Writes the folders and the configuration of an instance.
fn lay_out(dir: &Path, port: u16) {
    let number =
        |arguments: &[&str]| id(arguments).unwrap_or_else(|| panic!("`id {}` has no answer", arguments.join(" ")));
    // Postfix's parts change to other users; they must get through.
    open_to_all(dir);
    for name in ["etc", "queue", "data", "mail"] {
        fs::create_dir(dir.join(name)).expect("a folder can be made in a new folder");
        open_to_all(&dir.join(name));
    }
    let (mail_user, mail_group) = (number(&["-u", "nobody"]), number(&["-g", "nobody"]));
    chown(dir.join("mail"), Some(mail_user), Some(mail_group)).expect("root can give a folder away");
    chown(dir.join("data"), Some(number(&["-u", "postfix"])), None).expect("root can give a folder away");
    let write = |name: &str, text: String| fs::write(dir.join("etc").join(name), text).expect("a file can be written");
    write("main.cf", main_cf(dir, mail_user, mail_group));
    write("master.cf", master_cf(port));
}

fn open_to_all(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("the mode of an own folder can be set");
}

fn main_cf(dir: &Path, user: u32, group: u32) -> String {
    let dir = dir.display();
    format!(
        "compatibility_level = 3.6
queue_directory = {dir}/queue
data_directory = {dir}/data
maillog_file = {dir}/log
maillog_file_prefixes = {dir}
mail_owner = postfix
myhostname = postrider.example.net
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8

# Any address of these domains goes into one Maildir; there is no other way out.
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
virtual_mailbox_domains = example.com, example.org
virtual_mailbox_base = {dir}/mail
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:{user}
virtual_gid_maps = static:{group}
virtual_mailbox_limit = 0
default_transport = error:nothing leaves this test
relay_transport = error:nothing leaves this test
smtpd_relay_restrictions = reject_unauth_destination
smtpd_recipient_restrictions = check_recipient_access inline:{{
  {{ refused@example.com = 550 5.1.1 no such user }}
  {{ later@example.com = 450 4.2.1 mailbox busy }} }}

# No look-ups in the network, no waiting, no limits that a test would hit.
disable_dns_lookups = yes
smtpd_peername_lookup = no
smtpd_error_sleep_time = 0
smtpd_soft_error_limit = 10000
smtpd_hard_error_limit = 10000
smtpd_junk_command_limit = 10000
smtpd_client_connection_count_limit = 0
smtputf8_enable = yes
biff = no
"
    )
}

/// The services that taking and delivering mail needs; none in a chroot.
fn master_cf(port: u16) -> String {
    let mut text = format!("127.0.0.1:{port} inet n - n - - smtpd\n");
    for (name, kind, private, wakeup, limit, program) in [
        ("pickup", "unix", "n", "60", "1", "pickup"),
        ("cleanup", "unix", "n", "-", "0", "cleanup"),
        ("qmgr", "unix", "n", "300", "1", "qmgr"),
        ("rewrite", "unix", "-", "-", "-", "trivial-rewrite"),
        ("bounce", "unix", "-", "-", "0", "bounce"),
        ("defer", "unix", "-", "-", "0", "bounce"),
        ("trace", "unix", "-", "-", "0", "bounce"),
        ("proxymap", "unix", "-", "-", "-", "proxymap"),
        ("error", "unix", "-", "-", "-", "error"),
        ("retry", "unix", "-", "-", "-", "error"),
        ("virtual", "unix", "-", "-", "-", "virtual"),
        ("anvil", "unix", "-", "-", "1", "anvil"),
        ("postlog", "unix-dgram", "n", "-", "1", "postlogd"),
    ] {
        // virtual(8) delivers as another user and therefore runs privileged.
        let unprivileged = if program == "virtual" { "n" } else { "-" };
        let _ = writeln!(text, "{name} {kind} {private} {unprivileged} n {wakeup} {limit} {program}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::dialogue;

    #[test]
    fn a_message_sent_to_it_is_delivered_once_per_recipient() {
        let Some(postfix) = Postfix::start() else {
            return;
        };
        let dir = postfix.dir.path().to_path_buf();
        let port = postfix.port();
        let mut say = dialogue(port);
        assert!(say("").starts_with("220 "));
        let abilities = say("EHLO test\r\n");
        assert!(["PIPELINING", "8BITMIME", "SMTPUTF8"].iter().all(|name| abilities.contains(name)), "{abilities}");
        assert!(say("MAIL FROM:<sender@example.net>\r\n").starts_with("250"));
        assert!(say("RCPT TO:<refused@example.com>\r\n").starts_with("550 5.1.1"));
        assert!(say("RCPT TO:<later@example.com>\r\n").starts_with("450 4.2.1"));
        assert!(say("RCPT TO:<a@elsewhere.example>\r\n").starts_with("554 5.7.1"));
        assert!(say("RCPT TO:<any.body@example.com>\r\n").starts_with("250"));
        assert!(say("RCPT TO:<b@example.org>\r\n").starts_with("250"));
        assert!(say("DATA\r\n").starts_with("354"));
        assert!(say("Subject: a test\r\n\r\n..dot\r\n.\r\n").starts_with("250"));
        let delivered = postfix.wait_for(2);
        assert_eq!(delivered.len(), 2);
        assert!(
            delivered.iter().all(|mail| mail.contains("Subject: a test") && mail.contains("\n.dot\n")),
            "{delivered:?}"
        );
        for address in ["any.body@example.com", "b@example.org"] {
            let header = format!("Delivered-To: {address}\n");
            assert!(delivered.iter().any(|mail| mail.contains(&header)), "{delivered:?}");
        }
        drop(postfix);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "still listening");
        assert!(!dir.exists(), "the folder stays behind");
    }
}
