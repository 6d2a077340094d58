//! `postrider check`: every setting with its origin, and whether the parts can be used.
//!
//! Changes nothing, leaves no file and sends no mail; the relay is greeted as for one, and left.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use postrider::model::SystemClock;
use postrider::store::schema::Finding as Verified;
use postrider::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::output::{Color, Output};
use super::run::Context;
use super::{schema, words};
use crate::config::{DatabaseAddress, OutboxConfig, Shown};
use crate::start::{self, PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider check
  postrider check --offline
  postrider check --config /etc/postrider.toml
  POSTRIDER_EMAIL_HOST=smtp.example.com postrider check --json";

/// How long each step of the conversation with the relay may take.
const RELAY_PATIENCE: Duration = Duration::from_secs(10);

/// Shows every setting and its origin, and tries the database, the tables, the mail relay.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Check {
    /// Does not contact the mail relay. Otherwise it is greeted and logged in to; no mail is sent.
    #[arg(long)]
    offline: bool,
}

#[derive(Serialize)]
struct Finding {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outbox: Option<String>,
    ok: bool,
    message: String,
    /// What the tables lack or have otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Json>,
}

impl Finding {
    fn new(name: &'static str, found: postrider::Result<String>) -> Self {
        let (ok, message) = match found {
            Ok(message) => (true, message),
            Err(error) => (false, error.to_string()),
        };
        Self { name, outbox: None, ok, message, findings: Vec::new() }
    }
}

impl Check {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut findings = vec![Finding::new("e-mail", self.email(context).await)];
        findings.extend(templates(context));
        for one in context.outboxes()? {
            findings.extend(outbox(one).await);
        }
        let settings: Vec<Shown> = context.values.shown().collect();
        let output = context.output;
        if output.is_json() {
            output.json(&json!({
                "file": context.values.file(),
                "settings": settings,
                "ignored_variables": context.values.ignored(),
                "checks": findings,
            }))?;
        } else {
            person(output, context, settings, &findings)?;
        }
        match findings.iter().filter(|finding| !finding.ok).count() {
            0 => Ok(()),
            1 => Err(Failure::check_failed("1 check failed")),
            failed => Err(Failure::check_failed(format!("{failed} checks failed"))),
        }
    }

    async fn email(&self, context: &Context) -> postrider::Result<String> {
        let (Some(channel), Some(relay)) = (start::relay(&context.config)?, &context.config.relay) else {
            return Ok("goes to the sandbox: nothing leaves this machine".to_owned());
        };
        if self.offline {
            return Ok(format!("goes to the relay {}:{} (not contacted: --offline)", relay.host, relay.port));
        }
        let found = channel.probe(&SystemClock::new(), RELAY_PATIENCE).await;
        found.map(|found| found.to_string()).map_err(|error| {
            let message = error.to_string();
            if !message.contains("does not offer STARTTLS") {
                return error;
            }
            let plain = "; for a plain relay on this machine or in a network of your own, set `email.tls` to none";
            Error::new(error.kind(), format!("{message}{plain}")).caused_by(error)
        })
    }
}

fn person(output: Output, context: &Context, settings: Vec<Shown>, findings: &[Finding]) -> Result<(), Failure> {
    match context.values.file() {
        Some(path) => output.line(&format!("configuration file: {}", path.display()))?,
        None => output.line("configuration file: none (postrider.toml is read if it exists)")?,
    }
    output.line("")?;
    let cells = settings.into_iter().map(|setting| {
        vec![
            (setting.key.to_owned(), None),
            (setting.value.unwrap_or_else(|| format!("({})", setting.unset)), None),
            (setting.origin, None),
        ]
    });
    output.table(&["SETTING", "VALUE", "ORIGIN"], &cells.collect::<Vec<_>>())?;
    output.line("")?;
    for name in context.values.ignored() {
        output.line(&format!("{}  {name}: no such setting", output.paint("ignored", Color::Yellow)))?;
    }
    for finding in findings {
        let mark = if finding.ok { output.paint("ok     ", Color::Green) } else { output.paint("PROBLEM", Color::Red) };
        let whose = finding.outbox.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
        output.line(&format!("{mark}  {}{whose}: {}", finding.name, words::printable(&finding.message)))?;
    }
    Ok(())
}

/// How many templates there are, or each mistake in them.
fn templates(context: &Context) -> Vec<Finding> {
    let of = |found| Finding::new("templates", found);
    match (start::templates(&context.config), &context.config.templates) {
        (Err(error), _) => vec![of(Err(error))],
        (Ok((all, problems)), Some(folder)) if problems.is_empty() => {
            vec![of(Ok(format!("{} in {}", all.names().count(), folder.display())))]
        }
        (Ok((_, problems)), Some(_)) => problems.into_iter().map(|problem| of(Err(problem))).collect(),
        (Ok(_), None) => vec![of(Ok("none (set `templates` to a folder)".to_owned()))],
    }
}

/// The database of an outbox, and its tables.
async fn outbox(outbox: &OutboxConfig) -> Vec<Finding> {
    let address = &outbox.database;
    let of = |finding: Finding| Finding { outbox: outbox.name.clone(), ..finding };
    if let DatabaseAddress::Sqlite(path) = address
        && !path.exists()
        && path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir())
    {
        let found = can_be_made(path).map_or_else(
            |error| Err(Error::new(ErrorKind::Configuration, format!("{address} cannot be made: {error}"))),
            |()| Ok(format!("{address} does not exist yet; serve, send and migrate make it")),
        );
        return vec![of(Finding::new("database", found))];
    }
    let store = match Store::open(outbox, Purpose::Change, PATIENCE).await {
        Ok(store) => store,
        Err(error) => return vec![of(Finding::new("database", Err(error)))],
    };
    let usable = store.require_usable().await;
    let found = store.verify().await.unwrap_or_default();
    store.close().await;
    let mut table = Finding::new("table", usable.map(|()| so_far(store.table().name(), &found)));
    table.findings = found.iter().map(schema::told).collect();
    vec![of(Finding::new("database", Ok(format!("{address} answers")))), of(table)]
}

/// Whether a file can be made beside the one that does not exist yet; it is removed at once.
fn can_be_made(path: &Path) -> std::io::Result<()> {
    let mut probe = path.as_os_str().to_owned();
    probe.push(format!(".check-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&probe)?;
    std::fs::remove_file(&probe)
}

/// A table that can be used, and what could be better.
fn so_far(table: &str, found: &[Verified]) -> String {
    let advice: String = found.iter().map(|finding| format!("; advice: {finding}")).collect();
    format!("{table} has all that is needed{advice}")
}
