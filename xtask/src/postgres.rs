//! A private PostgreSQL for one run of the tests: own data, own port, gone at the end.
//!
//! Finds the programs, and says what they are called with; folder, user and end are those of every
//! private server (see [`crate::server`]).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::server::{self, Home, Server};
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

/// Starts a server with the programs in `bin`.
pub(crate) fn start(bin: &Path) -> Result<Server> {
    let home = Home::new(name(bin)?, &USERS)?;
    let initdb = ["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "-D", "data"];
    server::run("initdb", &mut command(&home, bin, "initdb", &initdb))?;
    let stop = command(&home, bin, "pg_ctl", &["stop", "-m", "immediate", "-w", "-t", "30", "-D", "data"]);
    Server::start(home, &stop, |home, port| {
        configure(home.path(), port)?;
        let start = ["start", "-w", "-t", "60", "-D", "data", "-l", server::LOG];
        server::run("pg_ctl", &mut command(home, bin, "pg_ctl", &start))?;
        Ok(None)
    })
}

/// The address of an administrator who may create databases.
pub(crate) fn url(server: &Server) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres", server.port())
}

/// "PostgreSQL 15.3"
fn name(bin: &Path) -> Result<String> {
    let printed = system::output(Command::new(bin.join("postgres")).arg("--version")).context("cannot ask postgres")?;
    Ok(format!("PostgreSQL {}", server::version(&printed).unwrap_or("of an unknown version")))
}

/// `program` with `arguments`; nothing of our own PG* settings.
fn command(home: &Home, bin: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = home.command(&bin.join(program));
    for name in ["PGDATA", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGTZ", "TZ"] {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// Writes what differs from PostgreSQL's defaults. `fsync` and `synchronous_commit` do not:
/// durability is what is tested. The session's zone must not matter, so it is a strange one.
fn configure(dir: &Path, port: u16) -> Result<()> {
    let socket = dir.join(format!(".s.PGSQL.{port}"));
    let sockets = if socket.as_os_str().len() < SOCKET_PATH_LIMIT { dir.display().to_string() } else { String::new() };
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
    let data = dir.join("data");
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
