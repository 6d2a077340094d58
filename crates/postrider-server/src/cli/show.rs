//! `postrider show`: one row, what happens to it next, and what happened so far.

use clap::Args;
use postrider::model::{OutboxEntity, OutboxId, OutboxStatus, OutboxView, Timestamp};
use postrider::store::{Claim, HistoryEvent, HistoryLine};
use postrider::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::failure::Failure;
use super::output::{Color, Output};
use super::run::Context;
use super::words;
use crate::lookup::{self, Named};
use crate::served_by;
use crate::start::{PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider show 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44
  postrider show 0199f5b1-6c2e-7
  postrider show 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44 --json | jq .row.status";

/// Shows one row: its state, what happens next, and its history.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// The row's id, or the beginning of it.
    id: Named,
}

#[derive(Serialize)]
struct Answer<'a> {
    row: OutboxView<'a>,
    history: Vec<Json>,
}

impl Show {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = Store::open(context.outbox()?, Purpose::Read, PATIENCE).await?;
        store.require_table().await?;
        let id = lookup::resolve(&store, &self.id).await?;
        served_by!(store, E => show::<E>(context, &store, id).await)
    }
}

async fn show<E: OutboxEntity>(context: &Context, store: &Store, id: OutboxId) -> Result<(), Failure> {
    let rows = store.repository::<E>()?.root();
    let row = match rows.find_by_id(id).await {
        Ok(found) => found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no row {id}")))?,
        Err(error) if error.kind() == ErrorKind::Decode => {
            return unreadable::<E>(context, store, id, error).await;
        }
        Err(error) => return Err(error.into()),
    };
    let history = with_success(rows.history(id).await?, row.view());
    let now = store.clock.now();
    store.close().await;
    let output = context.output;
    if output.is_json() {
        return output.json(&Answer { row: row.view(), history: history.iter().map(line_json).collect() });
    }
    person(output, row.view(), now)?;
    story(output, &history)
}

/// The history, and the latest success: a plain one stands in the row alone.
fn with_success(mut history: Vec<HistoryLine>, view: OutboxView<'_>) -> Vec<HistoryLine> {
    let state = view.state();
    let told = |line: &HistoryLine| line.event == "sent" && line.claim_seq == state.claim_seq;
    if state.status == OutboxStatus::Sent && !history.iter().any(told) {
        let claim = Claim { id: view.id(), seq: state.claim_seq };
        let at = state.sent_at.unwrap_or(state.updated_at);
        let mut line = HistoryLine::new(claim, HistoryEvent::Sent, at, OutboxStatus::Sent);
        line.node.clone_from(&state.claimed_by);
        line.reason_code.clone_from(&state.reason_code);
        line.provider.clone_from(&state.provider);
        line.provider_message_id.clone_from(&state.provider_message_id);
        line.recipients = state.recipients.as_ref().and_then(|ledger| serde_json::to_string(ledger).ok());
        history.push(line);
        history.sort_by_key(|line| line.at);
    }
    history
}

/// A line for programs: the ledger as JSON, not as text that holds JSON.
fn line_json(line: &HistoryLine) -> Json {
    let mut shown = json!(line);
    if let Some(text) = &line.recipients {
        shown["recipients"] = serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into());
    }
    shown
}

/// A row that cannot be read as a whole: what can be read of it, and why the rest cannot.
async fn unreadable<E: OutboxEntity>(
    context: &Context,
    store: &Store,
    id: OutboxId,
    error: Error,
) -> Result<(), Failure> {
    let row = lookup::readable(store, id).await?;
    let row = row.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no row {id}")))?;
    // Its status may be what cannot be read; then its history is not found either.
    let history = store.repository::<E>()?.root().history(id).await.unwrap_or_default();
    store.close().await;
    let output = context.output;
    if output.is_json() {
        let history: Vec<Json> = history.iter().map(line_json).collect();
        return output.json(&json!({ "row": row, "unreadable": error.to_string(), "history": history }));
    }
    output.line(&format!("{:<20} {id}", "row"))?;
    let why = format!("{:<20} {}", "unreadable", words::printable(&error.to_string()));
    output.line(&output.paint(&why, Color::Red))?;
    output.line(&format!("{:<20} no node can deliver it before that is mended in the table", "next"))?;
    fields(output, &row)?;
    story(output, &history)
}

fn fields(output: Output, row: &Map<String, Json>) -> Result<(), Failure> {
    for (name, value) in row.iter().filter(|(name, value)| *name != "id" && !value.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output.line(&format!("{name:<20} {}", words::short(&text, 200)))?;
    }
    Ok(())
}

fn story(output: Output, history: &[HistoryLine]) -> Result<(), Failure> {
    if !history.is_empty() {
        output.line("")?;
        output.line(&output.paint("History", Color::Bold))?;
    }
    history.iter().try_for_each(|line| past(output, line))
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
