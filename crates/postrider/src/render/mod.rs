//! Turns a template and its variables into the texts of a message.
//!
//! First step of the flow: the accepting side renders here, inside the caller's transaction and
//! before anything is written, so that a mistake in a template reaches the caller and never the
//! recipient. What comes out is stored on the row and delivered later as it is.
//!
//! | file | what |
//! |---|---|
//! | `catalogue` | which sources belong to a request, and rendering them |
//! | `template` | what a template consists of: parts, variants, locales |
//! | `names` | which names are allowed, and which was perhaps meant |
//! | `directory` | reading a catalogue from a directory, once, at start-up |
//! | `engine` | the template language: strictness, escaping, limits |
//! | `variables` | what is accepted as variables |
//!
//! Nothing here may do I/O, wait or read a clock while rendering, know a database or a channel,
//! or change a row. Source: contract C2.1.

mod catalogue;
mod directory;
mod engine;
mod names;
mod template;
mod variables;

#[cfg(test)]
mod catalogue_tests;
#[cfg(test)]
mod language_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod test_support;

use std::fmt;

pub use catalogue::TemplateCatalogue;
pub use engine::{DEFAULT_FUEL, MAX_OUTPUT_BYTES};
pub use template::{Part, Variant};

use crate::error::Result;
use crate::model::TenantId;

/// What makes the texts of a message. Implement it to use a template language of your own.
pub trait Renderer: fmt::Debug + Send + Sync {
    /// Renders all parts of one message.
    ///
    /// Called inside the caller's transaction, so it must neither wait nor do I/O. The same
    /// request gives the same texts.
    ///
    /// Source: contract C2.1.
    ///
    /// # Errors
    /// [`ErrorKind::Template`](crate::ErrorKind::Template) if there is no such template or it
    /// cannot be rendered with these variables;
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the variables or the rendered text
    /// can never be accepted (a line break in the subject, a NUL anywhere). Nothing is written.
    fn render(&self, request: &RenderRequest<'_>) -> Result<Rendered>;
}

/// What is to be rendered, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct RenderRequest<'a> {
    /// The template's name.
    pub template: &'a str,
    /// The channel that the message is for: `email`, `sms`, …
    pub channel: &'a str,
    /// The recipient's language tag (`de-AT`); `None` means the default language.
    pub locale: Option<&'a str>,
    /// Whose notification it is; [`TenantId::ROOT`] sees the shared templates only.
    pub tenant: &'a TenantId,
    /// The variables: a JSON object, or null for none.
    pub variables: &'a serde_json::Value,
}

/// The texts of one message. A part that the template lacks is `None`, never an empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The subject or title: one line, verbatim.
    pub subject: Option<String>,
    /// The text, verbatim. A template may have an HTML part alone: then this is `None`, and so is
    /// the row's text.
    pub text: Option<String>,
    /// The HTML, with each variable escaped once.
    pub html: Option<String>,
    /// The template's name, as it is recorded on the row.
    pub template: String,
    /// The language that was found; `None` if it was the default one.
    pub locale: Option<String>,
}
