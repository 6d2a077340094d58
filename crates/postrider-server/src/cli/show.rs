//! `postrider show`: one row, what happens to it next, and what happened so far.

use clap::Args;
use postrider::model::{OutboxEntity, OutboxId, OutboxView, Timestamp};
use postrider::store::HistoryLine;
use postrider::{Error, ErrorKind};
use serde::Serialize;

use super::failure::Failure;
use super::output::{Color, Output};
use super::run::Context;
use super::words;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider show 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44
  postrider show 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44 --json | jq .row.status";

/// Shows one row: its state, what happens next, and its history.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// The row's id.
    id: OutboxId,
}

#[derive(Serialize)]
struct Answer<'a> {
    row: OutboxView<'a>,
    history: Vec<HistoryLine>,
}

impl Show {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = Store::open(&context.config, Purpose::Read, PATIENCE).await?;
        store.require_table().await?;
        let rows = store.repository()?.root();
        let found = rows.find_by_id(self.id).await?;
        let row = found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no row {}", self.id)))?;
        let history = rows.history(self.id).await?;
        let now = store.clock.now();
        store.close().await;
        let output = context.output;
        if output.is_json() {
            return output.json(&Answer { row: row.view(), history });
        }
        person(output, row.view(), now)?;
        if !history.is_empty() {
            output.line("")?;
            output.line(&output.paint("History", Color::Bold))?;
        }
        history.iter().try_for_each(|line| past(output, line))
    }
}

fn person(output: Output, view: OutboxView<'_>, now: Timestamp) -> Result<(), Failure> {
    let (row, state) = (view.content(), view.state());
    let field = |name: &str, text: &str| output.line(&format!("{name:<12} {}", words::printable(text)));
    let optional = |name: &str, text: Option<&str>| text.map_or(Ok(()), |text| field(name, text));
    let instant = |at: Timestamp| format!("{} ({})", words::seconds(at), words::distance(now, at));
    output.line(&format!("{:<12} {}", "row", row.id))?;
    let status = output.paint(&words::status(view), words::color(state.status));
    output.line(&format!("{:<12} {status}", "status"))?;
    field("next", &words::next(view, now))?;
    optional("error", state.last_error.as_deref())?;
    optional("reason", state.reason_code.as_deref())?;
    if state.in_doubt {
        field("in doubt", "an answer was lost after the peer may have taken it")?;
    }
    field("channel", &row.channel)?;
    field("recipient", &row.recipient)?;
    field("to", &row.recipient_address)?;
    if !view.cc_addresses().is_empty() {
        field("cc", &view.cc_addresses().join(", "))?;
    }
    if !view.tenant().is_root() {
        field("tenant", view.tenant().as_str())?;
    }
    optional("subject", row.subject.as_deref())?;
    optional("template", row.template.as_deref())?;
    field("attempts", &format!("{} of {}", state.attempts, row.max_attempts))?;
    field("created", &instant(row.created_at))?;
    optional("sent", state.sent_at.map(instant).as_deref())?;
    optional("expires", row.expires_at.map(instant).as_deref())?;
    optional("provider", state.provider.as_deref())?;
    optional("provider id", state.provider_message_id.as_deref())?;
    field("dedupe key", &row.dedupe_key)?;
    if state.resends > 0 {
        field("resends", &state.resends.to_string())?;
    }
    let ledger = state.recipients.as_ref().map(postrider::model::Ledger::entries).unwrap_or_default();
    for entry in ledger {
        let reply = entry.reply.as_deref().map(|reply| format!(": {reply}")).unwrap_or_default();
        let state = format!("{:?}", entry.state).to_lowercase();
        field("address", &format!("{} {state}{reply}", entry.address))?;
    }
    if let Some(body) = &row.body {
        output.line("")?;
        for line in body.lines() {
            output.line(&format!("  {}", words::printable(line)))?;
        }
    }
    Ok(())
}

fn past(output: Output, line: &HistoryLine) -> Result<(), Failure> {
    let by = line.actor.as_deref().or(line.node.as_deref());
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let error = line.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    let text = format!("{} (status {}){by}{error}", line.event, line.status);
    output.line(&format!("  {}  {}", words::seconds(line.at), words::printable(&text)))
}
