//! Writing the answer: text for people, JSON for programs, both on stdout.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use super::failure::Failure;
use crate::config::environment;

/// When colours are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorChoice {
    /// Whether to colour what goes to a stream that is a terminal or not.
    pub(super) fn on(self, terminal: bool) -> bool {
        match self {
            Self::Auto => terminal && !environment::no_color(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A colour of the terminal's own palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    Red,
    Green,
    Yellow,
    Magenta,
    Cyan,
    Bold,
}

/// Where the answer goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
    color: bool,
}

impl Output {
    pub(super) fn new(json: bool, color: ColorChoice) -> Self {
        Self { json, color: color.on(io::stdout().is_terminal()) }
    }

    /// True if a program reads the answer.
    pub(super) fn is_json(self) -> bool {
        self.json
    }

    /// Writes one line for people.
    pub(super) fn line(self, line: &str) -> Result<(), Failure> {
        written(writeln!(io::stdout().lock(), "{line}"))
    }

    /// Writes the answer for programs.
    pub(super) fn json(self, answer: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(answer);
        let text = text.map_err(|error| Failure::failed(format!("the answer is no JSON: {error}")))?;
        self.line(&text)
    }

    /// Writes a line to stderr, beside the answer.
    pub(super) fn note(self, line: &str) {
        // Nobody is left to tell if this fails.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// The text in a colour, if colours are on.
    pub(super) fn paint(self, text: &str, color: Color) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match color {
            Color::Red => 31,
            Color::Green => 32,
            Color::Yellow => 33,
            Color::Magenta => 35,
            Color::Cyan => 36,
            Color::Bold => 1,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Writes rows in aligned columns under a heading; the last column is not padded.
    ///
    /// A cell is its text and perhaps its colour.
    pub(super) fn table(self, heading: &[&str], rows: &[Vec<(String, Option<Color>)>]) -> Result<(), Failure> {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count());
            cells.chain(heading.get(column).map(|text| text.len())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heading.len()).map(width).collect();
        let heading = heading.iter().map(|text| ((*text).to_owned(), Some(Color::Bold))).collect();
        for row in std::iter::once(&heading).chain(rows) {
            let mut line = String::new();
            for (at, (text, color)) in row.iter().enumerate() {
                let last = at + 1 == row.len();
                let padding = widths.get(at).map_or(0, |width| width.saturating_sub(text.chars().count()));
                line.push_str(&color.map_or_else(|| text.clone(), |color| self.paint(text, color)));
                if !last {
                    line.push_str(&" ".repeat(padding + 2));
                }
            }
            self.line(line.trim_end())?;
        }
        Ok(())
    }
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::reader_gone(),
        _ => Failure::failed(format!("stdout cannot be written: {error}")),
    })
}
