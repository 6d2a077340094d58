//! What the private servers of one run have in common: a folder, a user, a free port, an end.
//!
//! None of them touches a server of the machine. Database servers refuse to run as root; when we
//! are root, their programs run as an ordinary user. A server is stopped and its folder removed on
//! success, on failure and on a signal, and a guard process does it even if we are killed hard.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use tempfile::TempDir;

use crate::system;

/// How often a port is looked for: somebody may take it between the look and the start.
const ATTEMPTS: usize = 3;

/// The server's log, in its folder.
pub(crate) const LOG: &str = "log";

/// A folder for one server, and the user that runs it there.
#[derive(Debug)]
pub(crate) struct Home {
    name: String,
    dir: TempDir,
    user: Option<&'static str>,
}

impl Home {
    /// A new folder for the server called `name`; when we are root it belongs to the first of
    /// `users` that exists.
    pub(crate) fn new(name: String, users: &[&'static str]) -> Result<Self> {
        let user = if system::is_root() { Some(ordinary_user(&name, users)?) } else { None };
        let dir = folder(&name, user)?;
        println!("making the data of a private {name} in {} …", dir.path().display());
        Ok(Self { name, dir, user })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `program`, run in the folder and as the user, without standard input.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// The end of the server's log, for an error message.
    fn log(&self) -> String {
        let text = fs::read(self.path().join(LOG)).unwrap_or_default();
        format!("the log of {} ends with:\n{}\n", self.name, last_lines(&String::from_utf8_lossy(&text), 20))
    }

    /// A process that waits until we close its input or die, then runs `stop` and removes the
    /// folder. Its own process group keeps Ctrl-C away from it.
    fn guard(&self, stop: &Command) -> Result<Child> {
        Command::new("sh")
            .args(["-c", "cat >/dev/null; cd \"$1\" || exit; dir=$1; shift; \"$@\"; cd /; rm -rf \"$dir\"", "guard"])
            .arg(self.path())
            .arg(stop.get_program())
            .args(stop.get_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start the process that stops {} at the end", self.name))
    }
}

/// A running server. Dropping it stops the server and removes its folder.
#[derive(Debug)]
pub(crate) struct Server {
    guard: Child,
    /// The server itself, where it is a child of ours.
    child: Option<Child>,
    port: u16,
    /// Removed last, after the guard has stopped the server.
    home: Home,
}

impl Server {
    /// Starts a server in `home`: `attempt` does it on the port that it is given and waits until
    /// it answers. From the first attempt on, `stop` ends whatever runs.
    pub(crate) fn start(
        home: Home,
        stop: &Command,
        mut attempt: impl FnMut(&Home, u16) -> Result<Option<Child>>,
    ) -> Result<Self> {
        let mut server = Self { guard: home.guard(stop)?, child: None, port: 0, home };
        let mut attempts = 0;
        loop {
            attempts += 1;
            server.port = system::free_port()?;
            println!("starting a private {} on port {} …", server.home.name, server.port);
            match attempt(&server.home, server.port) {
                Ok(child) => {
                    server.child = child;
                    return Ok(server);
                }
                Err(error) if attempts == ATTEMPTS => return Err(error.context(server.home.log())),
                Err(_) => {}
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        println!("stopping the private {} …", self.home.name);
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

/// Runs the program called `name` to its end; what it says on failure is the error.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, text.trim());
    }
    Ok(())
}

/// An ordinary user for the server and the means to become it.
fn ordinary_user(server: &str, users: &[&'static str]) -> Result<&'static str> {
    if system::program("runuser").is_none() {
        bail!("{server} does not run as root, and `runuser` (Debian package util-linux) is not here");
    }
    users
        .iter()
        .copied()
        .find(|name| system::user(name).is_some())
        .ok_or_else(|| anyhow!("{server} does not run as root, and none of the users {users:?} is here"))
}

/// A new folder that `user` owns and can reach.
fn folder(server: &str, user: Option<&str>) -> Result<TempDir> {
    let mut parents = vec![std::env::temp_dir()];
    if parents[0] != Path::new("/tmp") {
        parents.push(PathBuf::from("/tmp"));
    }
    let kind = server.split_whitespace().next().unwrap_or(server).to_lowercase();
    for parent in &parents {
        let dir = tempfile::Builder::new().prefix(&format!("postrider-{kind}-")).tempdir_in(parent)?;
        let Some((name, (uid, gid))) = user.and_then(|name| Some((name, system::user(name)?))) else {
            return Ok(dir);
        };
        chown(dir.path(), Some(uid), Some(gid))?;
        // A folder below one that only root may enter is of no use to another user.
        if system::succeeds(Command::new("runuser").args(["-u", name, "--", "test", "-w"]).arg(dir.path())) {
            return Ok(dir);
        }
    }
    bail!("no temporary folder that the user {user:?} can reach; tried {parents:?}")
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The version in what `<program> --version` prints: the first word that begins with a digit.
pub(crate) fn version(printed: &str) -> Option<&str> {
    printed.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_a_server_prints() {
        assert_eq!(version("postgres (PostgreSQL) 15.3 (Debian 15.3-0+deb12u1)"), Some("15.3"));
        assert_eq!(version("postgres"), None);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
        assert_eq!(last_lines("", 2), "");
    }

    /// What `stop` names is ended and the folder gone, whichever attempt came how far.
    #[test]
    fn a_server_that_does_not_start_is_stopped_and_its_log_shown() {
        let home = Home::new("Example 1.0".to_owned(), &["nobody"]).unwrap();
        let (path, stopped) = (home.path().to_path_buf(), tempfile::tempdir().unwrap());
        let mut stop = Command::new("touch");
        stop.arg(stopped.path().join("yes"));
        let mut ports = Vec::new();
        let error = Server::start(home, &stop, |home, port| {
            ports.push(port);
            fs::write(home.path().join(LOG), format!("attempt {}", ports.len()))?;
            bail!("the port is taken");
        })
        .unwrap_err();
        assert_eq!(format!("{error:#}"), "the log of Example 1.0 ends with:\nattempt 3\n: the port is taken");
        assert_eq!(ports.len(), ATTEMPTS);
        assert!(stopped.path().join("yes").is_file());
        assert!(!path.exists());
    }
}
