//! The command line: flags, commands, and how each ends.
//!
//! ```text
//! arguments ──► Command ──► Context (configuration, output) ──► a command's file ──► exit code
//! ```
//! Each command stands in a file of its own, with its flags and its examples; `output` writes for
//! people and programs, `words` says what a row's state means, `failure` knows the exit codes.

mod check;
mod failure;
mod list;
mod logging;
mod migrate;
mod output;
mod requeue;
mod send;
mod serve;
mod show;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{Config, Sources, Values, environment};
use failure::Failure;
use logging::LogFormat;
use output::{ColorChoice, Output};

const ABOUT_ALL: &str = "\
A transactional notification outbox: rows are written in your own database transaction, and \
delivered whatever crashes. Nothing needs to be configured for a first try: rows are in the file \
postrider.db of the working folder, and e-mail goes to a sandbox that delivers nowhere.";

const AFTER_HELP: &str = "\
Examples:
  postrider serve
  postrider send --to alice@example.com --subject Hello --body 'Hi there'
  postrider list

Configuration: postrider.toml < POSTRIDER_… < flags. `postrider check` shows every setting, its
value and where it comes from. A setting `email.host` is the key `host` in the section [email], or
the variable POSTRIDER_EMAIL_HOST, or --set email.host=…; POSTRIDER_LOG filters the logs.

Exit codes: 0 done; 1 failed; 2 wrong usage, input or configuration; 3 no such row; 4 the row does
not allow it now; 5 the database cannot be reached or is busy; 130 stopped by a second signal.";

/// The arguments.
#[derive(Debug, Parser)]
#[command(
    name = "postrider",
    version,
    about = "A transactional notification outbox",
    long_about = ABOUT_ALL,
    after_help = AFTER_HELP
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// The configuration file [default: ./postrider.toml, if there is one].
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The database: sqlite:PATH or postgres://user@host/name [default: sqlite:postrider.db].
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Sets any other setting, such as dispatch.concurrency=8.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Writes JSON: the answer on stdout, an error on stderr.
    #[arg(long, global = true)]
    json: bool,
    /// Colours; NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", hide_possible_values = false)]
    color: ColorChoice,
    /// More logs: -v, -vv.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How logs are written to stderr [default: human, or json with --json].
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Send(Box<send::Send>),
    List(list::List),
    Show(show::Show),
    Requeue(requeue::Requeue),
    Migrate(migrate::Migrate),
    Check(check::Check),
}

/// What every command gets.
#[derive(Debug)]
struct Context {
    output: Output,
    values: Values,
    config: Config,
    /// Flags that another call needs to find the same database.
    same: String,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let arguments = environment::arguments();
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if wants_json && error.use_stderr() => {
            let message = error.render().to_string();
            return Failure::usage(message.trim()).report(true);
        }
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let json = cli.global.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { global, command } = cli;
    let daemon = matches!(command, Command::Serve(_));
    let format = global.log_format.unwrap_or(if global.json { LogFormat::Json } else { LogFormat::Human });
    logging::start(global.verbose, daemon, format, global.color)?;
    let same = same_database(&global);
    let sources = Sources { file: global.config, database: global.database, set: global.set };
    let values = Values::gather(sources)?;
    let config = Config::new(&values)?;
    let output = Output::new(global.json, global.color);
    let context = Context { output, values, config, same };
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
