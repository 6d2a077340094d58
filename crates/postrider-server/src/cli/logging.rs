//! Logs: to stderr, filtered by `POSTRIDER_LOG`, for people or as JSON.
//!
//! They never hold addresses, secrets or bodies: the library logs none, and nor does this program.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use super::failure::Failure;
use super::output::ColorChoice;
use crate::config::environment;

const VARIABLE: &str = "POSTRIDER_LOG";

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Starts logging: `POSTRIDER_LOG`, or else warnings, the daemon's own news, and what `-v` adds.
pub(super) fn start(verbose: u8, daemon: bool, format: LogFormat, color: ColorChoice) -> Result<(), Failure> {
    let default = match (verbose, daemon) {
        (0, false) => "warn",
        (0, true) | (1, false) => "warn,postrider=info",
        (1, true) | (2, _) => "info,postrider=debug",
        _ => "debug,postrider=trace",
    };
    let filter = match environment::variable(VARIABLE)? {
        Some(text) => EnvFilter::try_new(&text).map_err(|error| {
            Failure::usage(format!("{VARIABLE} is {text:?}: {error}; write a level (info, debug) or target=level"))
        })?,
        None => EnvFilter::new(default),
    };
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
    let builder = builder.with_ansi(color.on(io::stderr().is_terminal()));
    let started = match format {
        LogFormat::Human => builder.with_target(verbose > 0).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::failed(format!("logging cannot be started: {error}")))
}
