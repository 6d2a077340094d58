//! The template language: minijinja, made strict, escaping and limited.
//!
//! The catalogue hands in sources at load and variables at render, and gets a text or the line and
//! the reason why there is none. Nothing here may know names, tenants or locales, do I/O, or let a
//! variable's value into a message beyond what the engine itself says of it.

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, ErrorKind, Output, State, UndefinedBehavior, Value, filters};

use super::Part;

/// How much work one part may cost: about one unit for each step of the template and for each 64
/// bytes that it makes. A table of 1,000 rows and eight columns (240 kB) takes about 70,000.
pub const DEFAULT_FUEL: u64 = 500_000;

/// Most bytes of one rendered part: 4 MB.
pub const MAX_OUTPUT_BYTES: usize = 4_000_000;

/// Most characters of an expression that an error shows.
const MAX_SHOWN: usize = 80;

const NULL: &str = "null where text is wanted";

/// Why a source was refused or could not be rendered.
#[derive(Debug)]
pub(super) struct Fault {
    /// The line in the source, from 1, where it is known.
    pub(super) line: Option<usize>,
    /// A lower-case fragment that names the expression.
    pub(super) reason: String,
}

/// A compiled source.
#[derive(Debug, Clone)]
pub(super) struct Compiled(String);

/// All compiled sources, by number.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    environment: Environment<'static>,
    count: usize,
}

impl Engine {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(
            |name| {
                if name.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
            },
        );
        // A text keeps its last newline, as it is written.
        if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
            environment.set_syntax(syntax);
        }
        environment.set_formatter(print);
        environment.set_fuel(Some(DEFAULT_FUEL));
        // The engine then knows which expression was undefined. What else it keeps for debugging
        // (the values of the variables) is dropped with its error, in `fault`.
        environment.set_debug(true);
        // No template reaches another one, nor the state of the engine.
        environment.set_path_join_callback(|_, _| "".into());
        environment.remove_global("debug");
        // What a loop could nest in a namespace without end would overflow the stack when dropped.
        environment.remove_global("namespace");
        refuse_null_in_filters(&mut environment);
        Self { environment, count: 0 }
    }

    pub(super) fn set_fuel(&mut self, fuel: u64) {
        self.environment.set_fuel(Some(fuel));
    }

    /// Compiles `source`; only an HTML part is escaped.
    pub(super) fn compile(&mut self, part: Part, source: &str) -> Result<Compiled, Fault> {
        let extension = if part == Part::Html { "html" } else { "txt" };
        let name = format!("{}.{extension}", self.count);
        self.environment
            .add_template_owned(name.clone(), source.to_owned())
            .map_err(|error| self.fault(&error, source))?;
        self.count += 1;
        Ok(Compiled(name))
    }

    /// Renders a compiled source, within the limits of work and size.
    pub(super) fn render(&self, compiled: &Compiled, variables: &Value) -> Result<String, Fault> {
        let template = self.environment.get_template(&compiled.0).map_err(|error| self.fault(&error, ""))?;
        let mut output = Limited::default();
        let result = template.render_captured_to(variables.clone(), &mut output).map(drop);
        if output.exceeded {
            let reason = format!("its output exceeds the limit of {MAX_OUTPUT_BYTES} bytes");
            return Err(Fault { line: None, reason });
        }
        result.map_err(|error| self.fault(&error, template.source()))?;
        String::from_utf8(output.bytes).map_err(|error| Fault { line: None, reason: error.to_string() })
    }

    /// Takes line, expression and reason out of the engine's error.
    fn fault(&self, error: &minijinja::Error, source: &str) -> Fault {
        let expression = error.range().and_then(|range| source.get(range)).map(shown);
        let expression = expression.as_deref().unwrap_or("an expression");
        let reason = match (error.kind(), error.detail()) {
            (_, Some(NULL)) => format!("`{expression}` is null, which has no text"),
            (ErrorKind::UndefinedError, Some(detail)) => detail.to_owned(),
            (ErrorKind::UndefinedError, None) => format!("`{expression}` is undefined"),
            (ErrorKind::OutOfFuel, _) => {
                let fuel = self.environment.fuel().unwrap_or_default();
                format!("it exceeds the limit of work of {fuel} units of fuel")
            }
            (ErrorKind::TemplateNotFound, _) => "a template cannot include, import or extend another one".to_owned(),
            (ErrorKind::SyntaxError, Some(detail)) => format!("syntax error: {detail}"),
            (kind, Some(detail)) => format!("{kind}: {detail}, in `{expression}`"),
            (kind, None) => format!("{kind}, in `{expression}`"),
        };
        Fault { line: error.line(), reason }
    }
}

/// An expression as an error shows it: one line, cut.
fn shown(expression: &str) -> String {
    let mut line = expression.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(MAX_SHOWN) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Prints one value: null is refused, truth values are written as in JSON, HTML is escaped.
fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    match (value.kind(), value.as_str()) {
        (ValueKind::None, _) => Err(minijinja::Error::new(ErrorKind::InvalidOperation, NULL)),
        (ValueKind::Bool, _) => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        (_, Some(text)) if *state.auto_escape() == AutoEscape::Html && !value.is_safe() => print_html(out, text),
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// Escapes what HTML gives a meaning in text and in quoted attributes. A `/` has none, so that an
/// address of a page stays readable.
fn print_html(out: &mut Output<'_>, text: &str) -> Result<(), minijinja::Error> {
    let mut rest = text;
    while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
        out.write_str(&rest[..at])?;
        out.write_str(match rest.as_bytes()[at] {
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'&' => "&amp;",
            b'"' => "&quot;",
            _ => "&#x27;",
        })?;
        rest = &rest[at + 1..];
    }
    Ok(out.write_str(rest)?)
}

/// Lets the filters that make text refuse null, which they would write as `None`, and lets
/// `default` stand in for null as it does for a missing variable.
fn refuse_null_in_filters(environment: &mut Environment<'static>) {
    let of_text = [
        ("capitalize", Value::from_function(filters::capitalize)),
        ("e", Value::from_function(filters::escape)),
        ("escape", Value::from_function(filters::escape)),
        ("format", Value::from_function(filters::format)),
        ("lines", Value::from_function(filters::lines)),
        ("lower", Value::from_function(filters::lower)),
        ("replace", Value::from_function(filters::replace)),
        ("safe", Value::from_function(filters::safe)),
        ("string", Value::from_function(filters::string)),
        ("title", Value::from_function(filters::title)),
        ("trim", Value::from_function(filters::trim)),
        ("upper", Value::from_function(filters::upper)),
        ("urlencode", Value::from_function(filters::urlencode)),
    ];
    for (name, filter) in of_text {
        environment.add_filter(name, move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
            let arguments = arguments.into_values();
            if arguments.iter().any(Value::is_none) {
                return Err(minijinja::Error::new(ErrorKind::InvalidOperation, NULL));
            }
            filter.call(state, &arguments)
        });
    }
    for name in ["default", "d"] {
        environment.add_filter(name, |state: &State<'_, '_>, value: &Value, arguments: Rest<Value>| {
            filters::default(state, if value.is_none() { &Value::UNDEFINED } else { value }, arguments)
        });
    }
}

/// Takes at most [`MAX_OUTPUT_BYTES`].
#[derive(Debug, Default)]
struct Limited {
    bytes: Vec<u8>,
    exceeded: bool,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_OUTPUT_BYTES - self.bytes.len() {
            self.exceeded = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
