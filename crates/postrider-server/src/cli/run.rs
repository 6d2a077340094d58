//! Running a command: arguments, logs, configuration, runtime, exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use super::arguments::{Cli, Command, Global};
use super::failure::Failure;
use super::logging::{self, LogFormat};
use super::output::Output;
use super::words;
use crate::config::{Config, Sources, Values, environment};

/// What every command gets.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) output: Output,
    pub(super) values: Values,
    pub(super) config: Config,
    /// A program reads stderr: logs are JSON, and nothing else is written beside them.
    pub(super) json_logs: bool,
    /// How this program was called, for another call: it may not stand on the PATH.
    pub(super) program: String,
    /// Flags that another call needs to find the same database.
    pub(super) same: String,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let arguments = environment::arguments();
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let program = program(&arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if wants_json && error.use_stderr() => {
            let message = error.render().to_string();
            let message = message.strip_prefix("error: ").unwrap_or(&message);
            return Failure::usage(message.trim()).report(true);
        }
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let json = cli.global.json;
    match run(cli, program) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn run(cli: Cli, program: String) -> Result<(), Failure> {
    let Cli { global, command } = cli;
    let daemon = matches!(command, Command::Serve(_));
    let format = global.log_format.unwrap_or(if global.json { LogFormat::Json } else { LogFormat::Human });
    logging::start(global.verbose, daemon, format, global.color)?;
    let same = same_database(&global);
    let sources = Sources { file: global.config, database: global.database, set: global.set };
    let values = Values::gather(sources)?;
    let config = Config::new(&values)?;
    let output = Output::new(global.json, global.color);
    let context = Context { output, values, config, json_logs: format == LogFormat::Json, program, same };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no threads can be started: {error}")))?;
    let ended = runtime.block_on(async {
        match command {
            Command::Serve(command) => Box::pin(command.run(context)).await,
            Command::Send(command) => Box::pin(command.run(&context)).await,
            Command::List(command) => Box::pin(command.run(&context)).await,
            Command::Show(command) => Box::pin(command.run(&context)).await,
            Command::Requeue(command) => Box::pin(command.run(&context)).await,
            Command::Migrate(command) => Box::pin(command.run(&context)).await,
            Command::Check(command) => Box::pin(command.run(&context)).await,
        }
    });
    // A look-up of a name that still hangs must not keep the program.
    runtime.shutdown_background();
    ended
}

/// The program as it was called by its path; by its name if it was found on the PATH.
fn program(arguments: &[OsString]) -> String {
    let called = arguments.first().map(|name| name.to_string_lossy().into_owned());
    called.filter(|name| name.contains(std::path::MAIN_SEPARATOR)).unwrap_or_else(|| "postrider".to_owned())
}

/// The flags with which another call finds the same database; a server's address may hold a
/// password and is not repeated.
fn same_database(global: &Global) -> String {
    let mut flags = String::new();
    if let Some(path) = &global.config {
        flags.push_str(&format!(" --config {}", words::quoted(&path.display().to_string())));
    }
    match &global.database {
        Some(url) if url.starts_with("sqlite:") => {
            flags.push_str(&format!(" --database {}", words::quoted(url)));
        }
        Some(_) => flags.push_str(" --database …"),
        None => {}
    }
    flags
}
