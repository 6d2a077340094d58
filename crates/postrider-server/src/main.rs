//! `postrider`: the daemon that delivers an outbox, and the command line beside it.
//!
//! | module | what |
//! |---|---|
//! | `config` | the settings: file, environment, flags |
//! | `entity` | tables with tenants and without |
//! | `start` | opens the database, builds the outbox |
//! | `lookup` | rows by the beginning of an id; what is readable of a row that is not |
//! | `signals` | what ends the daemon |
//! | `cli` | the commands |
//!
//! Modules import upwards in this table only. Everything goes through the library's public API.

mod cli;
mod config;
mod entity;
mod lookup;
mod signals;
mod start;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
