//! `postrider`: the daemon that delivers an outbox, and the command line beside it.
//!
//! | module | what |
//! |---|---|
//! | `config` | the settings: file, environment, flags |
//! | `start` | opens the database, builds the outbox |
//! | `signals` | what ends the daemon |
//! | `cli` | the commands |
//!
//! Modules import upwards in this table only. Everything goes through the library's public API.

mod cli;
mod config;
mod signals;
mod start;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
