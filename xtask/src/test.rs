//! `cargo xtask test`: what the tests need, then the tests.
//!
//! What the tests are told stands in environment variables, read by the testkit alone:
//! `POSTRIDER_TEST_POSTGRES` and `POSTRIDER_TEST_MARIADB` (an administrator's address),
//! `POSTRIDER_TEST_AIOSMTPD` (a Python that has it), `POSTRIDER_TEST_PYTHON` (one that has drivers
//! of databases), `POSTRIDER_TEST_POSTFIX` (the `postfix` command), `POSTRIDER_TEST_ONLY` (what was asked for), `POSTRIDER_TEST_REQUIRE` (`all`: nothing
//! may be skipped). What is left out is always said; in CI nothing is.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::install::{self, Missing, Need};
use crate::run::Runner;
use crate::server::Server;
use crate::{mail, mariadb, mutants, postgres, python, system};

const POSTGRES: &str = "POSTRIDER_TEST_POSTGRES";
const MARIADB: &str = "POSTRIDER_TEST_MARIADB";
const AIOSMTPD: &str = "POSTRIDER_TEST_AIOSMTPD";
const PYTHON: &str = "POSTRIDER_TEST_PYTHON";
const POSTFIX: &str = "POSTRIDER_TEST_POSTFIX";

/// What to run, and on what.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Leave out the tests that need other servers (they are named).
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Install what is missing with apt-get (needs root). CI=true means the same.
    #[arg(long)]
    install: bool,
    /// Handed on to `cargo test`, for instance `-- -p postrider claim`.
    #[arg(last = true)]
    cargo: Vec<OsString>,
}

/// A part of the tests, by the servers that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// No server at all.
    Sqlite,
    /// PostgreSQL (and SQLite), no mail servers.
    Postgres,
    /// MariaDB (and SQLite), no mail servers.
    Mariadb,
}

/// The servers that the tests use, held while they run.
#[derive(Debug, Default)]
struct Servers {
    variables: Vec<(&'static str, OsString)>,
    running: Vec<Server>,
}

/// Prepares, runs the tests, cleans up; returns the tests' own exit code.
pub(crate) async fn test(runner: &mut Runner, options: &Options) -> Result<ExitCode> {
    let plan = Plan::new(options)?;
    let mut missing = plan.missing();
    if !missing.is_empty() && (options.install || system::in_ci()) {
        install::install(runner, &missing).await?;
        missing = plan.missing();
    }
    Missing::unless_empty(missing)?;

    let servers = plan.start(runner).await?;
    let mut cargo = cargo_test(&options.cargo);
    for name in [POSTGRES, MARIADB, AIOSMTPD, PYTHON, POSTFIX, "POSTRIDER_TEST_ONLY", "POSTRIDER_TEST_REQUIRE"] {
        cargo.env_remove(name);
    }
    for (name, value) in &servers.variables {
        println!("{name}={}", shown(name, &value.to_string_lossy()));
        cargo.env(name, value);
    }
    let status = runner.run(&mut cargo).await?;
    drop(servers.running);
    Ok(exit_code(status))
}

/// Tries deliberate faults, with the databases that the tests need.
pub(crate) async fn mutants(runner: &mut Runner, options: &mutants::Options) -> Result<ExitCode> {
    let plan = Plan { only: None, postgres: true, mariadb: true, aiosmtpd: false, postfix: false, python: false };
    Missing::unless_empty(plan.missing())?;
    let servers = plan.start(runner).await?;
    mutants::run(options, &servers.variables)?;
    Ok(ExitCode::SUCCESS)
}

/// What is needed and not yet given by the environment.
#[derive(Debug)]
struct Plan {
    only: Option<Only>,
    postgres: bool,
    mariadb: bool,
    aiosmtpd: bool,
    python: bool,
    postfix: bool,
}

impl Plan {
    /// Decides what the tests get, and says what is left out.
    fn new(options: &Options) -> Result<Self> {
        let mut plan = Self {
            only: options.only,
            postgres: matches!(options.only, None | Some(Only::Postgres)),
            mariadb: matches!(options.only, None | Some(Only::Mariadb)),
            aiosmtpd: options.only.is_none(),
            python: options.only.is_none(),
            postfix: options.only.is_none(),
        };
        if !plan.postgres {
            println!("left out (--only): the tests on PostgreSQL");
        }
        if !plan.mariadb {
            println!("left out (--only): the tests on MariaDB");
        }
        if !plan.aiosmtpd {
            println!("left out (--only): the tests against the mail servers aiosmtpd and Postfix");
        }
        if !plan.python {
            println!("left out (--only): the tests of programs in Python that write rows");
        }
        if plan.postfix && !system::is_root() {
            if system::in_ci() {
                bail!("the tests against Postfix need root, and with CI=true nothing may be left out");
            }
            println!("left out (not root): the tests against the mail server Postfix");
            plan.postfix = false;
        }
        Ok(plan)
    }

    /// What must be installed first.
    fn missing(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        if self.postgres && system::env(POSTGRES).is_none() && postgres::find().is_none() {
            needs.push(Need { what: "PostgreSQL's server programs", package: "postgresql" });
        }
        if self.mariadb && system::env(MARIADB).is_none() && mariadb::find().is_none() {
            needs.push(Need { what: "MariaDB's server programs", package: "mariadb-server" });
        }
        if self.postfix && system::env(POSTFIX).is_none() && mail::postfix().is_none() {
            needs.push(Need { what: "the mail server Postfix", package: "postfix" });
        }
        let wants_python =
            (self.aiosmtpd && system::env(AIOSMTPD).is_none()) || (self.python && system::env(PYTHON).is_none());
        if wants_python && python::find().is_none() {
            needs.push(Need { what: "Python 3 with its venv module", package: "python3-venv" });
        }
        needs
    }

    /// Starts what is not given by the environment.
    async fn start(&self, runner: &mut Runner) -> Result<Servers> {
        let mut servers = Servers::default();
        if self.aiosmtpd {
            match (system::env(AIOSMTPD), python::find()) {
                (Some(given), _) => servers.tell(AIOSMTPD, given),
                (None, Some(python)) => servers.tell(AIOSMTPD, mail::aiosmtpd(runner, &python).await?),
                (None, None) => {}
            }
        }
        if self.python {
            match (system::env(PYTHON), python::find()) {
                (Some(given), _) => servers.tell(PYTHON, given),
                (None, Some(python)) => servers.tell(PYTHON, python::drivers(runner, &python).await?),
                (None, None) => {}
            }
        }
        if self.postfix
            && let Some(postfix) = system::env(POSTFIX).or_else(|| mail::postfix().map(PathBuf::into_os_string))
        {
            servers.tell(POSTFIX, postfix);
        }
        if self.postgres {
            match (system::env(POSTGRES), postgres::find()) {
                (Some(given), _) => servers.tell(POSTGRES, given),
                (None, Some(bin)) => {
                    let server = postgres::start(&bin)?;
                    servers.tell(POSTGRES, postgres::url(&server));
                    servers.running.push(server);
                }
                (None, None) => {}
            }
        }
        if self.mariadb {
            match (system::env(MARIADB), mariadb::find()) {
                (Some(given), _) => servers.tell(MARIADB, given),
                (None, Some(programs)) => {
                    let server = mariadb::start(&programs)?;
                    servers.tell(MARIADB, mariadb::url(&server));
                    servers.running.push(server);
                }
                (None, None) => {}
            }
        }
        match self.only {
            Some(Only::Sqlite) => servers.tell("POSTRIDER_TEST_ONLY", "sqlite"),
            Some(Only::Postgres) => servers.tell("POSTRIDER_TEST_ONLY", "postgres"),
            Some(Only::Mariadb) => servers.tell("POSTRIDER_TEST_ONLY", "mariadb"),
            None => {}
        }
        if system::in_ci() {
            servers.tell("POSTRIDER_TEST_REQUIRE", "all");
        }
        Ok(servers)
    }
}

impl Servers {
    fn tell(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.push((name, value.into()));
    }
}

/// `cargo test` over everything, unless the arguments choose packages themselves.
fn cargo_test(arguments: &[OsString]) -> tokio::process::Command {
    let program = system::env("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = tokio::process::Command::new(program);
    command.arg("test").current_dir(system::workspace());
    if system::in_ci() {
        command.arg("--locked");
    }
    let ours = arguments.iter().take_while(|argument| *argument != "--");
    let chosen = ours.map(|argument| argument.to_string_lossy()).any(|argument| {
        argument.starts_with("--package") || (argument.starts_with("-p") && !argument.starts_with("--"))
    });
    if !chosen {
        command.arg("--workspace");
    }
    command.arg("--all-features").args(arguments);
    command
}

/// An address is shown without the password in it.
fn shown(name: &str, value: &str) -> String {
    let hidden = || {
        let (scheme, rest) = value.split_once("://")?;
        let (user, host) = rest.rsplit_once('@')?;
        let (user, _password) = user.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{host}"))
    };
    if [POSTGRES, MARIADB].contains(&name) { hidden().unwrap_or_else(|| value.to_owned()) } else { value.to_owned() }
}

/// The child's exit code as ours; a child that a signal ended counts as failed.
fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &tokio::process::Command) -> Vec<String> {
        command
            .as_std()
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .filter(|w| w != "--locked")
            .collect()
    }

    #[test]
    fn without_arguments_the_whole_workspace_is_tested() {
        assert_eq!(words(&cargo_test(&[])), ["test", "--workspace", "--all-features"]);
        let for_the_tests: Vec<OsString> = ["--", "-p"].map(Into::into).to_vec();
        assert_eq!(words(&cargo_test(&for_the_tests)), ["test", "--workspace", "--all-features", "--", "-p"]);
    }

    #[test]
    fn a_chosen_package_replaces_the_workspace() {
        let arguments: Vec<OsString> = ["-p", "postrider"].map(Into::into).to_vec();
        assert_eq!(words(&cargo_test(&arguments)), ["test", "--all-features", "-p", "postrider"]);
    }

    #[test]
    fn a_password_is_never_printed() {
        assert_eq!(shown(POSTGRES, "postgres://me:secret@db:5432/x"), "postgres://me:***@db:5432/x");
        assert_eq!(shown(POSTGRES, "postgres://postgres@127.0.0.1:1/x"), "postgres://postgres@127.0.0.1:1/x");
        assert_eq!(shown(MARIADB, "mysql://root:secret@db/mysql"), "mysql://root:***@db/mysql");
    }

    #[test]
    fn only_one_database_leaves_out_the_others_and_the_mail_servers() {
        let parts = |only| {
            let plan = Plan::new(&Options { only, install: false, cargo: Vec::new() }).unwrap();
            (plan.postgres, plan.mariadb, plan.aiosmtpd || plan.python, plan.postfix)
        };
        assert_eq!(parts(Some(Only::Sqlite)), (false, false, false, false));
        assert_eq!(parts(Some(Only::Postgres)), (true, false, false, false));
        assert_eq!(parts(Some(Only::Mariadb)), (false, true, false, false));
    }
}
