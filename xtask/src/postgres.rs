//! A private PostgreSQL for one run of the tests: own data, own port, gone at the end.
//!
//! It never touches a server of the machine. PostgreSQL refuses to run as root; when we are
//! root, its programs run as an ordinary user. It is stopped and removed on success, on failure
//! and on a signal, and a guard process does it even if we are killed hard.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use tempfile::TempDir;

use crate::system;

/// Users that may run the server when we are root, in order of preference.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// A longer path to a socket does not fit into the kernel's address.
const SOCKET_PATH_LIMIT: usize = 107;

/// The folder with `initdb`, `pg_ctl` and `postgres`: the path's, else Debian's newest.
pub(crate) fn find() -> Option<PathBuf> {
    let in_path = system::program("initdb").and_then(|file| fs::canonicalize(file).ok());
    let in_path = in_path.and_then(|file| file.parent().map(Path::to_path_buf));
    in_path.into_iter().chain(debian_folders(Path::new("/usr/lib/postgresql"))).find(|dir| is_complete(dir))
}

fn is_complete(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres"].iter().all(|name| dir.join(name).is_file())
}

/// `<root>/<version>/bin`, the highest version first.
fn debian_folders(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<u32> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.iter().map(|version| root.join(version.to_string()).join("bin")).collect()
}

/// A running server. Dropping it stops the server and removes its data.
#[derive(Debug)]
pub(crate) struct Server {
    guard: Child,
    port: u16,
    /// Removed last, after the guard has stopped the server.
    _dir: TempDir,
}

impl Server {
    /// Starts a server with the programs in `bin`.
    pub(crate) fn start(bin: &Path) -> Result<Self> {
        let user = if system::is_root() { Some(ordinary_user()?) } else { None };
        let dir = folder(user)?;
        let tools = Tools { bin: bin.to_path_buf(), dir: dir.path().to_path_buf(), user };
        let version = tools.version()?;
        println!("making the data of a private {version} in {} …", tools.dir.display());
        tools.run(
            "initdb",
            &["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "-D", "data"],
        )?;

        // From here on whatever is started is also stopped.
        let mut server = Self { guard: tools.guard()?, port: 0, _dir: dir };
        // Somebody may take the port between the look and the start.
        let mut attempts = 0;
        loop {
            attempts += 1;
            server.port = system::free_port()?;
            println!("starting a private {version} on port {} …", server.port);
            tools.configure(server.port)?;
            match tools.run("pg_ctl", &["start", "-w", "-t", "60", "-D", "data", "-l", "log"]) {
                Ok(()) => return Ok(server),
                Err(error) if attempts == 3 => return Err(error.context(tools.log())),
                Err(_) => {}
            }
        }
    }

    /// The address of an administrator who may create databases.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        println!("stopping the private PostgreSQL …");
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// An ordinary user for the server and the means to become it.
fn ordinary_user() -> Result<&'static str> {
    if system::program("runuser").is_none() {
        bail!("PostgreSQL does not run as root, and `runuser` (Debian package util-linux) is not here");
    }
    USERS
        .into_iter()
        .find(|name| system::user(name).is_some())
        .ok_or_else(|| anyhow!("PostgreSQL does not run as root, and none of the users {USERS:?} is here"))
}

/// A new folder that `user` owns and can reach.
fn folder(user: Option<&str>) -> Result<TempDir> {
    let mut parents = vec![std::env::temp_dir()];
    if parents[0] != Path::new("/tmp") {
        parents.push(PathBuf::from("/tmp"));
    }
    for parent in &parents {
        let dir = tempfile::Builder::new().prefix("postrider-postgres-").tempdir_in(parent)?;
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

/// The server's programs, run in its folder and as its user.
struct Tools {
    bin: PathBuf,
    dir: PathBuf,
    user: Option<&'static str>,
}

impl Tools {
    /// `program` with `arguments`, in the server's folder; nothing of our own PG* settings.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let program = self.bin.join(program);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        for name in ["PGDATA", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGTZ", "TZ"] {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let output = self.command(program, arguments).output().with_context(|| format!("cannot start {program}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            bail!("{program} failed ({}): {}", output.status, text.trim());
        }
        Ok(())
    }

    /// "PostgreSQL 15.3"
    fn version(&self) -> Result<String> {
        let output = self.command("postgres", &["--version"]).output().context("cannot start postgres")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        Ok(format!("PostgreSQL {}", number.unwrap_or("of an unknown version")))
    }

    /// Writes what differs from PostgreSQL's defaults. `fsync` and `synchronous_commit` do not:
    /// durability is what is tested. The session's zone must not matter, so it is a strange one.
    fn configure(&self, port: u16) -> Result<()> {
        let socket = self.dir.join(format!(".s.PGSQL.{port}"));
        let sockets =
            if socket.as_os_str().len() < SOCKET_PATH_LIMIT { self.dir.display().to_string() } else { String::new() };
        let mut text = String::new();
        for (name, value) in [
            ("listen_addresses", "127.0.0.1"),
            ("port", &port.to_string()),
            ("unix_socket_directories", &sockets),
            ("max_connections", "200"),
            ("fsync", "on"),
            ("timezone", "Asia/Tokyo"),
            ("log_timezone", "UTC"),
        ] {
            let _ = writeln!(text, "{name} = '{value}'");
        }
        let data = self.dir.join("data");
        fs::write(data.join("postrider.conf"), text)?;
        let main = data.join("postgresql.conf");
        let mut whole = fs::read_to_string(&main)?;
        if !whole.contains("postrider.conf") {
            whole.push_str("\ninclude 'postrider.conf'\n");
            // Written in place: the file stays the server user's.
            fs::write(&main, whole)?;
        }
        Ok(())
    }

    /// The end of the server's log, for an error message.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("the log of PostgreSQL ends with:\n{}\n", lines[lines.len().saturating_sub(20)..].join("\n"))
    }

    /// A process that waits until we close its input or die, then stops the server and removes
    /// its folder. Its own process group keeps Ctrl-C away from it.
    fn guard(&self) -> Result<Child> {
        let stop = self.command("pg_ctl", &["stop", "-m", "immediate", "-w", "-t", "30", "-D", "data"]);
        Command::new("sh")
            .args(["-c", "cat >/dev/null; cd \"$1\" || exit; dir=$1; shift; \"$@\"; cd /; rm -rf \"$dir\"", "guard"])
            .arg(&self.dir)
            .arg(stop.get_program())
            .args(stop.get_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start the process that stops PostgreSQL at the end")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9", "15", "17", "common"] {
            fs::create_dir_all(root.path().join(name).join("bin")).unwrap();
        }
        let found = debian_folders(root.path());
        let expected: Vec<PathBuf> = ["17", "15", "9"].iter().map(|v| root.path().join(v).join("bin")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn no_postgresql_folder_is_no_error() {
        assert!(debian_folders(Path::new("/nonexistent")).is_empty());
    }
}
