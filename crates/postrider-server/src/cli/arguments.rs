//! The arguments: global flags and the commands, with the help that they are explained by.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::logging::LogFormat;
use super::output::ColorChoice;
use super::{check, expedite, list, migrate, requeue, schema, send, serve, show, wake};

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
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The configuration file [default: ./postrider.toml, if there is one].
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) config: Option<PathBuf>,
    /// The database: `sqlite:PATH`, `postgres://user@host/name` or `mysql://user@host/name`
    /// [default: sqlite:postrider.db].
    #[arg(long, global = true, value_name = "URL")]
    pub(super) database: Option<String>,
    /// The outbox, where the configuration has several: the name in its section `[[outbox]]`.
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) outbox: Option<String>,
    /// Sets any other setting, such as dispatch.concurrency=8.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Writes JSON: the answer on stdout, an error on stderr.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Colours; `NO_COLOR` is honoured.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(super) color: ColorChoice,
    /// More logs: -v, -vv.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// How logs are written to stderr [default: human, or json with --json].
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Serve(serve::Serve),
    Send(Box<send::Send>),
    List(list::List),
    Show(show::Show),
    Requeue(requeue::Requeue),
    Expedite(expedite::Expedite),
    Wake(wake::Wake),
    Migrate(migrate::Migrate),
    Schema(schema::Schema),
    Check(check::Check),
}
