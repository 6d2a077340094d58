//! A private MariaDB for one run of the tests: own data, own port, gone at the end.
//!
//! Finds the programs, and says what they are called with; folder, user and end are those of every
//! private server (see [`crate::server`]). Where there is MySQL instead, it stands in, and its name
//! is said.

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::server::{self, Home, Server};
use crate::system;

/// Users that may run the server when we are root, in order of preference.
const USERS: [&str; 2] = ["mysql", "nobody"];

/// How long the server may take until it answers.
const LIMIT: Duration = Duration::from_secs(60);

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// How long between two looks whether it answers.
const PAUSE: Duration = Duration::from_millis(20);

/// Holds the process group to end, before the server writes anything itself.
const GROUP: &str = "group";

/// The server writes it when it listens, so the port is ours then.
const LISTENS: &str = "listens.pid";

/// The server's programs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    server: PathBuf,
    /// What makes the data; MySQL's server does so itself.
    install: Option<PathBuf>,
    /// "MariaDB 10.11.6" or "MySQL 8.0.36"
    name: String,
}

/// The programs of MariaDB, else of MySQL. The server is seldom in an ordinary user's path.
pub(crate) fn find() -> Option<Programs> {
    let install = system::program("mariadb-install-db").or_else(|| system::program("mysql_install_db"));
    ["mariadbd", "mysqld"].iter().find_map(|name| {
        let usual = ["/usr/sbin", "/usr/libexec"].map(|dir| Path::new(dir).join(name));
        system::program(name).into_iter().chain(usual).filter(|file| file.is_file()).find_map(|server| {
            let printed = system::output(Command::new(&server).arg("--version"))?;
            recognised(server, install.clone(), &printed)
        })
    })
}

/// Which server it is that printed its version, unless it is incomplete.
fn recognised(server: PathBuf, install: Option<PathBuf>, printed: &str) -> Option<Programs> {
    let version = server::version(printed)?;
    // "10.11.6-MariaDB-0+deb12u1"
    let number = version.split('-').next().unwrap_or(version);
    if printed.contains("MariaDB") {
        let install = Some(install?);
        Some(Programs { server, install, name: format!("MariaDB {number}") })
    } else {
        Some(Programs { server, install: None, name: format!("MySQL {number}") })
    }
}

/// Starts a server with these programs.
pub(crate) fn start(programs: &Programs) -> Result<Server> {
    if programs.install.is_none() {
        println!("there is no MariaDB here: {} ({}) stands in", programs.name, programs.server.display());
    }
    let home = Home::new(programs.name.clone(), &USERS)?;
    make_data(programs, &home)?;
    Server::start(home, &stop(), |home, port| {
        let mut child = launch(programs, home, port)?;
        match wait_for_answer(&mut child, home.path(), port) {
            Ok(()) => Ok(Some(child)),
            Err(error) => {
                // The next attempt needs the data.
                system::succeeds(stop().current_dir(home.path()));
                let _ = child.wait();
                Err(error)
            }
        }
    })
}

/// The address of an administrator who may create databases.
pub(crate) fn url(server: &Server) -> String {
    format!("mysql://root@127.0.0.1:{}/mysql", server.port())
}

/// Makes the data, where root has no password and nobody else may enter.
fn make_data(programs: &Programs, home: &Home) -> Result<()> {
    match &programs.install {
        Some(install) => {
            let mut command = command(home, install);
            command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
            server::run("mariadb-install-db", &mut command)
        }
        None => server::run("mysqld", command(home, &programs.server).arg("--initialize-insecure")),
    }
}

/// Starts the server in a process group of its own, and notes the group for [`stop`].
fn launch(programs: &Programs, home: &Home, port: u16) -> Result<Child> {
    let dir = home.path();
    let _ = fs::remove_file(dir.join(LISTENS));
    let log = fs::OpenOptions::new().create(true).append(true).open(dir.join(server::LOG))?;
    let mut command = command(home, &programs.server);
    command.args(settings(port)).arg(format!("--pid-file={}", dir.join(LISTENS).display()));
    // MySQL knows root at the name localhost only, and has a second protocol with a port.
    command.arg(if programs.install.is_some() { "--skip-name-resolve" } else { "--mysqlx=OFF" });
    let child = command.stdout(log.try_clone()?).stderr(log).process_group(0).spawn()?;
    fs::write(dir.join(GROUP), format!("{}\n", child.id()))?;
    Ok(child)
}

/// `program` with what concerns the data; nothing of the machine's or our own settings.
fn command(home: &Home, program: &Path) -> Command {
    let mut command = home.command(program);
    for name in ["MYSQL_HOME", "MYSQL_GROUP_SUFFIX", "MARIADB_HOME", "MARIADB_GROUP_SUFFIX", "TMPDIR", "TZ"] {
        command.env_remove(name);
    }
    let dir = home.path().display();
    // `--no-defaults` counts as the first argument only.
    command.arg("--no-defaults").arg(format!("--datadir={dir}/data")).arg(format!("--tmpdir={dir}"));
    command.args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"]);
    command
}

/// What differs from the server's defaults. A commit reaches the kernel, which outlives a killed
/// server but not a power cut; nobody cuts the power in a test. The session's zone must not
/// matter, so it is a strange one. Character set and collation are the server's: older ones have
/// latin1, and many databases do.
fn settings(port: u16) -> [String; 7] {
    [
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        // Lies in the data: the whole path may be too long for the kernel.
        "--socket=socket".to_owned(),
        "--max-connections=300".to_owned(),
        "--innodb-flush-log-at-trx-commit=2".to_owned(),
        "--skip-log-bin".to_owned(),
        "--default-time-zone=+09:00".to_owned(),
    ]
}

/// Ends the server at once: its data are needed no more.
fn stop() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("read -r group <{GROUP} && kill -KILL -$group")]);
    command
}

/// Waits until the server greets on its port.
#[expect(clippy::disallowed_methods, reason = "waits for another process, which follows no clock of ours")]
fn wait_for_answer(child: &mut Child, dir: &Path, port: u16) -> Result<()> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            // Its number may soon be another's.
            fs::remove_file(dir.join(GROUP))?;
            bail!("the server ended ({status})");
        }
        if dir.join(LISTENS).is_file() && greets(port) {
            return Ok(());
        }
        if start.elapsed() > LIMIT {
            bail!("the server did not answer within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the first packet is a greeting: length (3 bytes), number, then the protocol's version.
fn greets(port: u16) -> bool {
    let greeting = || {
        let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), ANSWER).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        let mut head = [0; 5];
        stream.read_exact(&mut head).ok()?;
        Some(head[4] == 10)
    };
    greeting().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: &str = "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)";
    const MYSQL: &str = "/usr/sbin/mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))";

    fn name(install: Option<&str>, printed: &str) -> Option<String> {
        recognised("mysqld".into(), install.map(PathBuf::from), printed).map(|programs| programs.name)
    }

    #[test]
    fn which_server_it_is_says_its_version_not_its_name() {
        assert_eq!(name(Some("mariadb-install-db"), MARIADB).unwrap(), "MariaDB 10.11.6");
        assert_eq!(name(Some("mariadb-install-db"), MYSQL).unwrap(), "MySQL 8.0.36");
        assert_eq!(name(Some("mariadb-install-db"), "?"), None);
    }

    #[test]
    fn mysql_makes_its_data_itself_and_mariadb_needs_a_program_for_it() {
        assert!(name(None, MYSQL).is_some());
        assert_eq!(name(None, MARIADB), None);
    }

    #[test]
    fn only_a_greeting_is_an_answer() {
        let server = |answer: &'static [u8]| {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let answering = std::thread::spawn(move || {
                use std::io::Write as _;
                listener.accept().unwrap().0.write_all(answer).unwrap();
            });
            (port, answering)
        };
        for (answer, good) in [(&b"\x5a\0\0\0\x0a10.11.6"[..], true), (b"\x17\0\0\0\xff", false), (b"", false)] {
            let (port, answering) = server(answer);
            assert_eq!(greets(port), good, "{answer:?}");
            answering.join().unwrap();
        }
    }
}
