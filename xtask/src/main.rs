//! The project's own commands, run as `cargo xtask …`: what people and CI run.
//!
//! `cargo xtask test` finds or starts what the tests need (a private PostgreSQL and MariaDB, two
//! real mail servers), runs them, and takes everything away again. Exit codes: 0 passed, 1 the command
//! itself failed, 2 something must be installed first, 130 interrupted; otherwise cargo's own.

#[cfg(test)]
mod architecture;
mod contract;
mod install;
mod mail;
mod mariadb;
mod mutants;
mod postgres;
mod python;
mod run;
mod server;
mod system;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all tests, with the servers that they need.
    Test(test::Options),
    /// Show which tests prove which rule of the contract, on which database.
    ///
    /// What each rule's tests are worth is tried by `cargo xtask mutants`.
    Contract {
        /// Name the tests too.
        #[arg(long)]
        tests: bool,
    },
    /// Make deliberate faults in a copy of the sources, and see whether the tests find them.
    Mutants(mutants::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from).and_then(
            |runtime| {
                runtime.block_on(async {
                    let mut runner = run::Runner::new()?;
                    match cli.command {
                        Command::Test(options) => test::test(&mut runner, &options).await,
                        Command::Mutants(options) => test::mutants(&mut runner, &options).await,
                        Command::Contract { tests } => contract::print(tests).map(|()| ExitCode::SUCCESS),
                    }
                })
            },
        );
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            if error.is::<run::Interrupted>() {
                ExitCode::from(130)
            } else if error.is::<install::Missing>() {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
