//! `postrider check`: every setting with its origin, and whether the parts can be used.
//!
//! Changes nothing, makes no file and sends no mail; the relay is greeted as for one, and left.

use std::time::Duration;

use clap::Args;
use postrider::model::SystemClock;
use serde::Serialize;
use serde_json::json;

use super::failure::Failure;
use super::output::{Color, Output};
use super::run::Context;
use crate::config::{DatabaseAddress, Shown};
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
    ok: bool,
    message: String,
}

impl Finding {
    fn new(name: &'static str, found: postrider::Result<String>) -> Self {
        match found {
            Ok(message) => Self { name, ok: true, message },
            Err(error) => Self { name, ok: false, message: error.to_string() },
        }
    }
}

impl Check {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut findings =
            vec![Finding::new("e-mail", self.email(context).await), Finding::new("templates", templates(context))];
        findings.extend(database(context).await);
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
        Ok(channel.probe(&SystemClock::new(), RELAY_PATIENCE).await?.to_string())
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
        output.line(&format!("{mark}  {}: {}", finding.name, finding.message))?;
    }
    Ok(())
}

fn templates(context: &Context) -> postrider::Result<String> {
    let count = start::templates(&context.config)?.names().count();
    Ok(match &context.config.templates {
        Some(folder) => format!("{count} in {}", folder.display()),
        None => "none (set `templates` to a folder)".to_owned(),
    })
}

async fn database(context: &Context) -> Vec<Finding> {
    let address = &context.config.database;
    if let DatabaseAddress::Sqlite(path) = address
        && !path.exists()
        && path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir())
    {
        let message = format!("{address} does not exist yet; serve, send and migrate make it");
        return vec![Finding::new("database", Ok(message))];
    }
    let store = match Store::open(&context.config, Purpose::Change, PATIENCE).await {
        Ok(store) => store,
        Err(error) => return vec![Finding::new("database", Err(error))],
    };
    let table = store.require_table().await.map(|()| "has all columns".to_owned());
    store.close().await;
    vec![Finding::new("database", Ok(format!("{address} answers"))), Finding::new("table", table)]
}
