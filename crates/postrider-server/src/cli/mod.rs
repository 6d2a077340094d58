//! The command line: flags, commands, and how each ends.
//!
//! ```text
//! arguments ──► run: Context (configuration, output) ──► a command's file ──► exit code
//! ```
//! Each command stands in a file of its own, with its flags and its examples; `output` writes for
//! people and programs, `words` says what a row's state means, `failure` knows the exit codes.

mod arguments;
mod check;
mod expedite;
mod failure;
mod given;
mod list;
mod logging;
mod migrate;
mod output;
mod requeue;
mod run;
mod schema;
mod send;
mod serve;
mod show;
mod wake;
mod words;

pub(crate) use run::main;
