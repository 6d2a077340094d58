//! From a notification to rows: recipients × channels, rendered, keyed and checked.
//!
//! No I/O. Whatever is wrong is found here, before the first statement, and names the thing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::request::{Content, Dedupe, Notification, Recipient};
use crate::channel::ChannelRegistry;
use crate::error::{Error, Result};
use crate::model::text::refuse_nul;
use crate::model::{Clock, OutboxId, OutboxRow, OutboxView, RowState, TenantId, Timestamp};
use crate::render::{RenderRequest, Rendered, Renderer};

/// Most bytes of subject, text and HTML of one row together.
pub const MAX_CONTENT_BYTES: usize = 16 * 1024 * 1024;
/// Most bytes of a recipient's name, an address, a category and the like.
const MAX_NAME_BYTES: usize = 2_000;
const MAX_ATTEMPTS: i32 = 1_000;
/// The deepest nesting of a document: the lists and objects in each other, and a value in the last.
/// MariaDB takes none for JSON that is nested deeper.
const MAX_DEPTH: usize = 32;

/// The rows of `notification`, in the order of recipients, then channels.
pub(super) fn rows(
    notification: &Notification,
    channels: &ChannelRegistry,
    renderer: &dyn Renderer,
    tenant: &TenantId,
    clock: &dyn Clock,
) -> Result<Vec<OutboxRow>> {
    check_request(notification)?;
    let now = clock.now();
    let mut rendered = BTreeMap::new();
    let mut keys = BTreeSet::new();
    let mut rows = Vec::with_capacity(notification.recipients.len() * notification.channels.len());
    for recipient in &notification.recipients {
        for channel in &notification.channels {
            let registered = channels.require(channel)?;
            let locale = recipient.locale.as_deref().or(notification.locale.as_deref());
            let content = match rendered.get(&(channel, locale)) {
                Some(content) => content,
                None => {
                    let content = render(notification, renderer, tenant, channel, locale)?;
                    rendered.entry((channel, locale)).or_insert(content)
                }
            };
            let max_attempts = notification.max_attempts.unwrap_or_else(|| registered.retry_policy().max_attempts());
            let mut row = row(notification, recipient, channel, content, OutboxId::new(clock), now)?;
            row.max_attempts = max_attempts;
            check_row(&row)?;
            registered.check(OutboxView::new(&row, tenant)).map_err(|error| error.context(whose(&row)))?;
            if !keys.insert(row.dedupe_key.clone()) {
                return Err(Error::invalid(format!(
                    "two rows of this notification come to the same dedupe key {:?}; give each its own",
                    row.dedupe_key
                )));
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn check_request(notification: &Notification) -> Result<()> {
    let refuse = |why: String| Err(Error::invalid(why));
    if notification.recipients.is_empty() {
        return refuse("the notification has no recipient".into());
    }
    if notification.channels.is_empty() {
        return refuse("the notification has no channel".into());
    }
    for (index, channel) in notification.channels.iter().enumerate() {
        if notification.channels[..index].contains(channel) {
            return refuse(format!("the notification names the channel {channel:?} twice"));
        }
    }
    let rows = notification.recipients.len() * notification.channels.len();
    if rows > 1 && matches!(notification.dedupe, Dedupe::Key(_)) {
        return refuse(format!(
            "one dedupe key for {rows} rows would keep all but one from being written; give a prefix, or a key per recipient"
        ));
    }
    if let Some(attempts) = notification.max_attempts.filter(|n| !(1..=MAX_ATTEMPTS).contains(n)) {
        return refuse(format!("max_attempts is {attempts}; it must be 1 to {MAX_ATTEMPTS}"));
    }
    if let (Some(send), Some(expires)) = (notification.send_at, notification.expires_at)
        && expires <= send
    {
        return refuse(format!("the notification expires at {expires}, before it is to be sent at {send}"));
    }
    Ok(())
}

fn render(
    notification: &Notification,
    renderer: &dyn Renderer,
    tenant: &TenantId,
    channel: &str,
    locale: Option<&str>,
) -> Result<Rendered> {
    match &notification.content {
        Content::Given { subject, text, html } => Ok(Rendered {
            subject: subject.clone(),
            text: text.clone(),
            html: html.clone(),
            template: String::new(),
            locale: locale.map(str::to_owned),
        }),
        Content::Template { name, variables } => {
            renderer.render(&RenderRequest { template: name, channel, locale, tenant, variables })
        }
    }
}

fn row(
    notification: &Notification,
    recipient: &Recipient,
    channel: &str,
    content: &Rendered,
    id: OutboxId,
    now: Timestamp,
) -> Result<OutboxRow> {
    let Some(address) = recipient.addresses.get(channel) else {
        return Err(Error::invalid(format!(
            "the recipient {:?} has no address for the channel {channel:?}",
            recipient.name
        )));
    };
    let mut row = OutboxRow::new(id, channel, recipient.name.clone(), address.clone(), now);
    if let Some(key) = dedupe_key(notification, recipient, channel)? {
        row.dedupe_key = key;
    }
    if channel == "email" {
        row.cc_addresses.clone_from(&recipient.cc);
    } else if !recipient.cc.is_empty() && notification.channels.iter().all(|channel| channel != "email") {
        return Err(Error::invalid(format!(
            "the recipient {:?} has copies, which only e-mail can have",
            recipient.name
        )));
    }
    row.subject.clone_from(&content.subject);
    row.body.clone_from(&content.text);
    row.payload = payload(notification, recipient, channel, content)?;
    row.state = RowState::pending(now, notification.send_at.unwrap_or(now));
    row.expires_at = notification.expires_at;
    row.priority = notification.priority;
    row.ordering_key.clone_from(&notification.ordering_key);
    row.category.clone_from(&notification.category);
    row.locale.clone_from(&content.locale);
    row.template = (!content.template.is_empty()).then(|| content.template.clone());
    row.traceparent.clone_from(&notification.traceparent);
    row.metadata.clone_from(&notification.metadata);
    Ok(row)
}

/// The key asked for; `None` leaves the row its own id.
fn dedupe_key(notification: &Notification, recipient: &Recipient, channel: &str) -> Result<Option<String>> {
    let key = match (recipient.keys.get(channel), &notification.dedupe) {
        (Some(own), _) => own.clone(),
        (None, Dedupe::Key(key)) => key.clone(),
        (None, Dedupe::Prefix(prefix)) if prefix.is_empty() => {
            return Err(Error::invalid("the dedupe prefix is empty"));
        }
        (None, Dedupe::Prefix(prefix)) => format!("{prefix}:{channel}:{}", recipient.name),
        (None, Dedupe::None) => return Ok(None),
    };
    if key.is_empty() {
        return Err(Error::invalid("the dedupe key is empty"));
    }
    if key.len() > OutboxRow::MAX_DEDUPE_KEY_BYTES {
        return Err(Error::invalid(format!(
            "the dedupe key of {:?} over {channel:?} is {} bytes long; at most {} are allowed",
            recipient.name,
            key.len(),
            OutboxRow::MAX_DEDUPE_KEY_BYTES
        )));
    }
    Ok(Some(key))
}

fn payload(
    notification: &Notification,
    recipient: &Recipient,
    channel: &str,
    content: &Rendered,
) -> Result<Option<Json>> {
    let mut payload = match &notification.payload {
        None => Map::new(),
        Some(Json::Object(given)) => given.clone(),
        Some(_) => return Err(Error::invalid("the payload is no JSON object")),
    };
    if let Some(html) = &content.html {
        payload.insert("html".into(), json!(html));
    }
    if let (Some(name), "email") = (&recipient.display_name, channel) {
        payload.insert("to_name".into(), json!(name));
    }
    Ok((!payload.is_empty()).then_some(Json::Object(payload)))
}

/// What every channel's rows have in common: what no database, or not every one, can store.
fn check_row(row: &OutboxRow) -> Result<()> {
    let named = [
        ("recipient", Some(&row.recipient)),
        ("recipient's address", Some(&row.recipient_address)),
        ("dedupe key", Some(&row.dedupe_key)),
        ("ordering key", row.ordering_key.as_ref()),
        ("category", row.category.as_ref()),
        ("locale", row.locale.as_ref()),
        ("template", row.template.as_ref()),
        ("traceparent", row.traceparent.as_ref()),
    ];
    for (what, text) in named.into_iter().chain(row.cc_addresses.iter().map(|cc| ("copy's address", Some(cc)))) {
        let Some(text) = text else { continue };
        refuse_nul(what, text)?;
        if text.len() > MAX_NAME_BYTES {
            return Err(Error::invalid(format!(
                "the {what} is {} bytes long; at most {MAX_NAME_BYTES} are allowed",
                text.len()
            )));
        }
    }
    for (what, text) in [("subject", &row.subject), ("text", &row.body)] {
        refuse_nul(what, text.as_deref().unwrap_or_default())?;
    }
    for (what, document) in [("payload", &row.payload), ("metadata", &row.metadata)] {
        check_document(what, document.as_ref().unwrap_or(&Json::Null), MAX_DEPTH)?;
    }
    if row.recipient_address.is_empty() {
        return Err(Error::invalid(format!("the address of the recipient {:?} is empty", row.recipient)));
    }
    let html = row.payload.as_ref().and_then(|payload| payload.get("html")).and_then(Json::as_str);
    let bytes: usize = [row.subject.as_deref(), row.body.as_deref(), html].into_iter().flatten().map(str::len).sum();
    if bytes > MAX_CONTENT_BYTES {
        return Err(Error::invalid(format!(
            "the content is {bytes} bytes long; at most {MAX_CONTENT_BYTES} are allowed"
        )));
    }
    Ok(())
}

/// What can be stored, and read again: no NUL, and not nested deeper than `depth`.
fn check_document(what: &str, document: &Json, depth: usize) -> Result<()> {
    let Some(deeper) = depth.checked_sub(1) else {
        return Err(Error::invalid(format!("the {what} is nested more than {MAX_DEPTH} levels deep")));
    };
    match document {
        Json::String(text) => refuse_nul(what, text),
        Json::Array(items) => items.iter().try_for_each(|item| check_document(what, item, deeper)),
        Json::Object(fields) => fields.iter().try_for_each(|(name, item)| {
            refuse_nul(what, name)?;
            check_document(what, item, deeper)
        }),
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
    }
}

fn whose(row: &OutboxRow) -> String {
    format!("the {} row for {:?} was refused", row.channel, row.recipient)
}
