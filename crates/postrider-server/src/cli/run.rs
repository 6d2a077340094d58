//! Running a command: arguments, logs, configuration, runtime, exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use super::arguments::{Cli, Command, Global};
use super::failure::Failure;
use super::logging::{self, LogFormat};
use super::output::Output;
use super::words;
use crate::config::{Config, OutboxConfig, Sources, Values, environment};

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
    /// Flags that another call needs to find the same outbox.
    pub(super) same: String,
    /// `--outbox`.
    named: Option<String>,
}

impl Context {
    /// The outbox that the command is about.
    pub(super) fn outbox(&self) -> Result<&OutboxConfig, Failure> {
        match self.outboxes()?.as_slice() {
            [one] => Ok(one),
            _ => Err(Failure::usage(format!("there are several outboxes: name one with --outbox: {}", self.names()))),
        }
    }

    /// The outboxes that the command is about: the one that was named, or all.
    pub(super) fn outboxes(&self) -> Result<Vec<&OutboxConfig>, Failure> {
        let all = &self.config.outboxes;
        let Some(named) = &self.named else { return Ok(all.iter().collect()) };
        if let Some(found) = all.iter().find(|outbox| outbox.name.as_ref() == Some(named)) {
            return Ok(vec![found]);
        }
        let known = self.names();
        Err(Failure::usage(match known.as_str() {
            "" => "--outbox names one of several, and the configuration has no [[outbox]]: leave it out".to_owned(),
            known => format!("there is no outbox {named:?}; known are: {known}"),
        }))
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.config.outboxes.iter().filter_map(|outbox| outbox.name.as_deref()).collect();
        names.join(", ")
    }
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
    let same = same_outbox(&global);
    let sources = Sources { file: global.config, database: global.database, set: global.set };
    let values = Values::gather(sources)?;
    let config = Config::new(&values)?;
    let output = Output::new(global.json, global.color);
    let context =
        Context { output, values, config, json_logs: format == LogFormat::Json, program, same, named: global.outbox };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no threads can be started: {error}")))?;
    let ended = runtime.block_on(async {
        match command {
            Command::Serve(command) => Box::pin(command.run(context)).await,
            Command::Send(command) => Box::pin(command.run(&context)).await,
            Command::List(command) => Box::pin(command.run(&context)).await,
            Command::Show(command) => Box::pin(command.run(&context)).await,
            Command::Requeue(command) => Box::pin(command.run(&context)).await,
            Command::Expedite(command) => Box::pin(command.run(&context)).await,
            Command::Wake(command) => Box::pin(command.run(&context)).await,
            Command::Schema(command) => Box::pin(command.run(&context)).await,
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

/// The flags with which another call finds the same outbox; a server's address may hold a
/// password and is not repeated.
fn same_outbox(global: &Global) -> String {
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
    if let Some(name) = &global.outbox {
        flags.push_str(&format!(" --outbox {}", words::quoted(name)));
    }
    flags
}
