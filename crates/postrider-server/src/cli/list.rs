//! `postrider list`: rows, newest first.

use clap::Args;
use postrider::model::{NotificationRow, OutboxEntity, OutboxId, OutboxStatus, OutboxView, TenantId};
use postrider::store::{Page, Query, Rows};
use postrider::{Error, ErrorKind};
use serde_json::{Map, Value as Json, json};

use super::failure::Failure;
use super::output::Color;
use super::run::Context;
use super::words;
use crate::entity::no_tenants;
use crate::start::{PATIENCE, Purpose, Store};
use crate::{lookup, served_by};

const EXAMPLES: &str = "\
Examples:
  postrider list
  postrider list --status dead --limit 10
  postrider list --before 0199f5b1-6c2e-7d30-8f21-5a0c7e9b1d44     the next page
  postrider list --json | jq -r '.[].id'";

/// Lists rows, newest first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    /// Only rows in this status: PENDING, SENDING, SENT, FAILED, DEAD or SUPPRESSED.
    #[arg(long)]
    status: Option<OutboxStatus>,
    /// Only rows of this channel.
    #[arg(long)]
    channel: Option<String>,
    /// Only rows of this tenant; all tenants without it.
    #[arg(long, value_parser = tenant)]
    tenant: Option<TenantId>,
    /// At most so many rows.
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Only rows older than this one: the last id of the page before.
    #[arg(long, value_name = "ID")]
    before: Option<OutboxId>,
}

/// Reads a tenant's name.
pub(super) fn tenant(text: &str) -> postrider::Result<TenantId> {
    TenantId::new(text)
}

impl List {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let store = Store::open(context.outbox()?, Purpose::Read, PATIENCE).await?;
        store.require_table().await?;
        match &self.tenant {
            Some(_) if !store.has_tenants() => Err(no_tenants().into()),
            Some(tenant) => {
                let rows = store.repository::<NotificationRow>()?.scoped(tenant);
                tell(context, &store, self.page(&rows).await?).await
            }
            None => served_by!(store, E => {
                let rows = store.repository::<E>()?.root();
                tell(context, &store, self.page(&rows).await?).await
            }),
        }
    }

    async fn page<E: OutboxEntity, S>(&self, rows: &Rows<E, S>) -> postrider::Result<Page<E>> {
        let mut query = Query::new().limit(usize::try_from(self.limit).unwrap_or(usize::MAX));
        if let Some(status) = self.status {
            query = query.eq("status", status);
        }
        if let Some(channel) = &self.channel {
            query = query.eq("channel", channel.as_str());
        }
        if let Some(before) = self.before {
            let gone = || Error::new(ErrorKind::NotFound, format!("there is no row {before}"));
            query = query.clone().after(rows.cursor_at(&query, before).await?.ok_or_else(gone)?);
        }
        rows.page(&query).await
    }
}

async fn tell<E: OutboxEntity>(context: &Context, store: &Store, page: Page<E>) -> Result<(), Failure> {
    let mut unreadable = Vec::with_capacity(page.unreadable.len());
    for (id, error) in &page.unreadable {
        unreadable.push(Unreadable::look(store, *id, error).await?);
    }
    store.close().await;
    let output = context.output;
    let rows = page.rows;
    if output.is_json() {
        let views = rows.iter().map(|row| json!(row.view()));
        return output.json(&views.chain(unreadable.iter().map(Unreadable::json)).collect::<Vec<Json>>());
    }
    for row in &unreadable {
        output.note(&format!("the row {} cannot be read: {}", row.id(), words::printable(&row.why)));
    }
    if rows.is_empty() && page.unreadable.is_empty() {
        output.note("no rows");
        return Ok(());
    }
    let tenants = rows.iter().any(|row| !row.tenant().is_root());
    let mut heading = vec!["ID", "STATUS", "CHANNEL", "TO", "ATTEMPTS", "CREATED (UTC)", "SUBJECT"];
    if tenants {
        heading.insert(1, "TENANT");
    }
    let readable = rows.iter().map(|row| cells(row.view(), tenants));
    let cells = readable.chain(unreadable.iter().map(|row| row.cells(tenants))).collect::<Vec<_>>();
    output.table(&heading, &cells)?;
    if let Some(last) = page.next.and_then(|next| next.row()) {
        output.note(&format!("more: postrider list --before {last}{}", store.flag()));
    }
    Ok(())
}

/// A row that cannot be read as a whole. It stands at the end of its page.
struct Unreadable {
    why: String,
    /// What can be read; nothing if not even the id can.
    columns: Map<String, Json>,
}

impl Unreadable {
    async fn look(store: &Store, id: OutboxId, error: &Error) -> postrider::Result<Self> {
        let columns = lookup::readable(store, id).await?.unwrap_or_default();
        Ok(Self { why: error.to_string(), columns })
    }

    fn id(&self) -> &str {
        self.columns.get("id").and_then(Json::as_str).unwrap_or("(id unreadable)")
    }

    fn json(&self) -> Json {
        let mut shown = json!({ "id": null, "unreadable": self.why });
        for (name, value) in &self.columns {
            shown[name] = value.clone();
        }
        shown
    }

    fn cells(&self, tenants: bool) -> Vec<(String, Option<Color>)> {
        let text = |name: &str, limit| {
            let value = self.columns.get(name).filter(|value| !value.is_null());
            let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            (words::short(text.as_deref().unwrap_or("?"), limit), None)
        };
        let status = format!("{} (unreadable)", text("status", 12).0);
        let attempts = format!("{}/{}", text("attempts", 8).0, text("max_attempts", 8).0);
        let created = self.columns.get("created_at").and_then(Json::as_str).unwrap_or("?");
        let created = created.split('.').next().unwrap_or(created).replace('T', " ");
        let mut cells = vec![
            (self.id().to_owned(), None),
            (status, Some(Color::Red)),
            text("channel", 16),
            text("recipient_address", 40),
            (attempts, None),
            (created, None),
            text("subject", 50),
        ];
        if tenants {
            cells.insert(1, text("tenant", 24));
        }
        cells
    }
}

fn cells(view: OutboxView<'_>, tenants: bool) -> Vec<(String, Option<Color>)> {
    let (row, state) = (view.content(), view.state());
    let created = words::seconds(row.created_at);
    let mut cells = vec![
        (row.id.to_string(), None),
        (words::status(view), Some(words::color(state.status))),
        (words::short(&row.channel, 16), None),
        (words::short(&row.recipient_address, 40), None),
        (format!("{}/{}", state.attempts, row.max_attempts), None),
        (created.replace('T', " ").trim_end_matches('Z').to_owned(), None),
        (words::short(row.subject.as_deref().unwrap_or_default(), 50), None),
    ];
    if tenants {
        cells.insert(1, (words::short(view.tenant().as_str(), 24), None));
    }
    cells
}
