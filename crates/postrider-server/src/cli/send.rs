//! `postrider send`: writes a notification into the outbox, in one transaction.
//!
//! No daemon needs to run: the rows are written here and delivered by whoever serves the database.
//! What is wrong is refused by the library before anything is written. The notification is put
//! together in `content`, waiting for its end stands in `wait`.

mod content;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use postrider::accept::{Enqueued, Notification};
use postrider::model::{OutboxId, TenantId, Timestamp};
use postrider::render::TemplateCatalogue;
use postrider::store::Inserted;
use postrider::{ErrorKind, Outbox};
use serde::Serialize;

use super::failure::Failure;
use super::run::Context;
use super::{given, list, words};
use crate::entity::Entity;
use crate::served_by;
use crate::start::{self, PATIENCE, Purpose, Store};

const EXAMPLES: &str = "\
Examples:
  postrider send --channel email --to alice@example.com --subject Hello --body 'Hi there'
  postrider send --to 'Alice <alice@example.com>' --to bob@example.com \\
      --subject News --body - < news.txt
  postrider send --to alice@example.com --template welcome --var name=Alice --locale de
  postrider send --to alice@example.com --subject Due --body 'Pay now' \\
      --in 10m --dedupe-key invoice-17
  postrider send --to alice@example.com --subject Hello --body Hi --wait 60

Templates: each is a folder inside the one that the setting `templates` names. One part is enough.
  welcome/subject.txt          one line, such as: Hello {{ name }}
  welcome/body.txt             the text
  welcome/body.html            the HTML; variables are escaped here
  welcome/body.de.txt          German, for --locale de (and de-AT, unless there is body.de-AT.txt)
  welcome/sms/body.txt         for --channel sms
  @acme/welcome/body.txt       for --tenant acme
The language is that of Jinja; a variable that was not given is an error.";

/// Writes a notification; a running `postrider serve` delivers it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Send {
    /// The channel.
    #[arg(long, default_value = "email")]
    channel: String,
    /// Where it goes: an address, for e-mail also 'Name <address>'. Repeat it for several
    /// recipients: each gets a message of its own.
    #[arg(long, required = true, value_name = "ADDRESS")]
    to: Vec<String>,
    /// A copy of each e-mail.
    #[arg(long, value_name = "ADDRESS")]
    cc: Vec<String>,
    /// Who it is for, such as a user id; once for each --to [default: the address].
    #[arg(long, value_name = "NAME")]
    recipient: Vec<String>,
    /// The subject or title; one line.
    #[arg(long)]
    subject: Option<String>,
    /// The text; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// The HTML part; `-` reads it from stdin.
    #[arg(long, value_name = "HTML")]
    html: Option<String>,
    /// Renders a template of the configured folder instead of --subject, --body and --html.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["subject", "body", "html"])]
    template: Option<String>,
    /// A variable of the template, as text.
    #[arg(long, value_name = "NAME=TEXT")]
    var: Vec<String>,
    /// The variables of the template, as a JSON object; --var goes on top.
    #[arg(long, value_name = "JSON")]
    vars: Option<String>,
    /// The tenant whose notification it is.
    #[arg(long, value_parser = list::tenant)]
    tenant: Option<TenantId>,
    /// Writes nothing if a row with this key exists; for one recipient.
    #[arg(long, value_name = "KEY", conflicts_with = "dedupe_prefix")]
    dedupe_key: Option<String>,
    /// As --dedupe-key, with the key PREFIX:channel:recipient for each recipient.
    #[arg(long, value_name = "PREFIX")]
    dedupe_prefix: Option<String>,
    /// Not before this time (RFC 3339, such as 2026-03-01T10:00:00Z).
    #[arg(long, value_name = "TIME", value_parser = given::instant, conflicts_with = "after")]
    at: Option<Timestamp>,
    /// Not before so long from now, such as 10m or 1h30m.
    #[arg(id = "after", long = "in", value_name = "DURATION", value_parser = given::ahead, allow_hyphen_values = true)]
    after: Option<Duration>,
    /// Not after this time (RFC 3339, such as 2026-03-01T10:00:00Z).
    #[arg(long, value_name = "TIME", value_parser = given::instant, conflicts_with = "expires_in")]
    expires_at: Option<Timestamp>,
    /// Not after so long from now, such as 2d.
    #[arg(long, value_name = "DURATION", value_parser = given::ahead, allow_hyphen_values = true)]
    expires_in: Option<Duration>,
    /// At most so many attempts, 1 to 1000 [default: the channel's].
    #[arg(long, value_name = "N")]
    max_attempts: Option<i32>,
    /// Higher goes first among rows due at once.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// The kind of notification.
    #[arg(long)]
    category: Option<String>,
    /// The language, such as de-AT; a template is rendered in it.
    #[arg(long)]
    locale: Option<String>,
    /// Your own notes, kept with each row.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Waits until the rows are final, at most so long [default: 30 seconds]; exit code 1 unless
    /// all are SENT.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "30")]
    wait: Option<u32>,
}

/// What became of one recipient's row.
#[derive(Debug, Serialize)]
struct Answer {
    /// The row that was written, or that exists.
    id: OutboxId,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing: Option<OutboxId>,
    #[serde(skip)]
    address: String,
    #[serde(flatten)]
    end: Option<wait::End>,
}

impl Send {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let config = &context.config;
        let notification = self.notification()?;
        let channels = start::channels(config)?;
        // A template that is broken must not stop a message with another, or without one.
        let templates = if self.template.is_some() { start::templates(config)?.0 } else { TemplateCatalogue::new() };
        let store = Store::open(context.outbox()?, Purpose::Write, PATIENCE).await?;
        store.require_writable().await?;
        let notification = notification.at(store.clock.now())?;
        served_by!(store, E => {
            let outbox = store.outbox::<E>(channels, templates)?;
            self.write(context, &store, &outbox, notification).await
        })
    }

    async fn write<E: Entity>(
        &self,
        context: &Context,
        store: &Store,
        outbox: &Outbox<E>,
        notification: Notification,
    ) -> Result<(), Failure> {
        let work = Arc::new((outbox.service().clone(), self.tenant.clone(), notification));
        let enqueued = outbox
            .in_transaction(move |connection| {
                let work = Arc::clone(&work);
                Box::pin(async move {
                    let (service, tenant, notification) = &*work;
                    E::enqueue(connection, service, tenant.as_ref(), notification).await
                })
            })
            .await;
        let enqueued = enqueued.map_err(|error| {
            let bare = error.kind() == ErrorKind::Template && context.config.templates.is_none();
            let failure = Failure::from(error);
            if bare {
                failure.hint("templates are read from the folder that the setting `templates` names")
            } else {
                failure
            }
        })?;
        let mut answers = self.answers(&enqueued);
        if enqueued.created().next().is_some() {
            // Other nodes also find the rows by themselves.
            let _ = store.database.notify_others().await;
        }
        if !context.output.is_json() {
            self.tell(context, &answers)?;
        }
        let failed = match self.wait {
            Some(seconds) => wait::wait::<E>(store, &mut answers, seconds, context.output).await?,
            None => None,
        };
        store.close().await;
        if context.output.is_json() {
            context.output.json(&answers)?;
        }
        failed.map_or(Ok(()), Err)
    }

    fn answers(&self, enqueued: &Enqueued) -> Vec<Answer> {
        let rows = enqueued.rows().iter().zip(&self.to);
        rows.map(|(row, address)| {
            let (id, outcome, existing) = match row.outcome {
                Inserted::Created(id) => (id, "created", None),
                Inserted::Duplicate { existing } => (existing, "duplicate", Some(existing)),
            };
            Answer { id, outcome, existing, address: address.clone(), end: None }
        })
        .collect()
    }

    fn tell(&self, context: &Context, answers: &[Answer]) -> Result<(), Failure> {
        for answer in answers {
            let to = words::printable(&answer.address);
            context.output.line(&match answer.existing {
                None => format!("created    {}  {to}", answer.id),
                Some(existing) => format!("duplicate  of {existing}  {to}: nothing was written"),
            })?;
        }
        let same = &context.same;
        let created = answers.iter().find(|answer| answer.existing.is_none());
        if let (Some(first), None) = (created, self.wait) {
            context.output.note(&format!(
                "A running daemon delivers it; to start one: postrider serve{same}\n\
                 What became of it: postrider show {}{same}",
                first.id
            ));
        }
        Ok(())
    }
}
