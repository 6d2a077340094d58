//! What a caller asks for: a notification to recipients over channels.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::model::Timestamp;

/// What a caller asks for. Checked as a whole when it is enqueued.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Notification {
    pub(super) channels: Vec<String>,
    pub(super) recipients: Vec<Recipient>,
    pub(super) content: Content,
    pub(super) dedupe: Dedupe,
    pub(super) payload: Option<Json>,
    pub(super) send_at: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) max_attempts: Option<i32>,
    pub(super) priority: i32,
    pub(super) ordering_key: Option<String>,
    pub(super) category: Option<String>,
    pub(super) locale: Option<String>,
    pub(super) traceparent: Option<String>,
    pub(super) metadata: Option<Json>,
}

/// What the message says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Given as it is.
    Given {
        /// The subject or title; one line.
        subject: Option<String>,
        /// The text.
        text: Option<String>,
        /// The HTML part.
        html: Option<String>,
    },
    /// Rendered from a template before anything is written.
    Template {
        /// The template's name.
        name: String,
        /// Its variables: an object, or null for none.
        variables: Json,
    },
}

/// How the rows are kept from being written twice. Source: contract C2.5.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dedupe {
    /// Not at all: each row's key is its own id.
    #[default]
    None,
    /// This key; refused if the notification comes to more than one row.
    Key(String),
    /// `prefix:channel:recipient` per row.
    Prefix(String),
}

/// Who is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Recipient {
    pub(super) name: String,
    pub(super) addresses: BTreeMap<String, String>,
    pub(super) keys: BTreeMap<String, String>,
    pub(super) cc: Vec<String>,
    pub(super) display_name: Option<String>,
    pub(super) locale: Option<String>,
}

impl Recipient {
    /// A recipient by who it is (a user id, a name), not by its address.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            addresses: BTreeMap::new(),
            keys: BTreeMap::new(),
            cc: Vec::new(),
            display_name: None,
            locale: None,
        }
    }

    /// Where it is reached over a channel.
    pub fn at(mut self, channel: impl Into<String>, address: impl Into<String>) -> Self {
        self.addresses.insert(channel.into(), address.into());
        self
    }

    /// A copy of the e-mail to this address.
    pub fn cc(mut self, address: impl Into<String>) -> Self {
        self.cc.push(address.into());
        self
    }

    /// The dedupe key of its row over that channel.
    pub fn dedupe_key(mut self, channel: impl Into<String>, key: impl Into<String>) -> Self {
        self.keys.insert(channel.into(), key.into());
        self
    }

    /// The name shown beside its mail address.
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }

    /// Its language, instead of the notification's.
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }
}

impl Notification {
    /// A notification with this content, to nobody yet.
    pub fn new(content: Content) -> Self {
        Self {
            channels: Vec::new(),
            recipients: Vec::new(),
            content,
            dedupe: Dedupe::None,
            payload: None,
            send_at: None,
            expires_at: None,
            max_attempts: None,
            priority: 0,
            ordering_key: None,
            category: None,
            locale: None,
            traceparent: None,
            metadata: None,
        }
    }

    /// A plain text with a subject.
    pub fn text(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Content::Given { subject: Some(subject.into()), text: Some(text.into()), html: None })
    }

    /// Rendered from a template.
    pub fn template(name: impl Into<String>, variables: Json) -> Self {
        Self::new(Content::Template { name: name.into(), variables })
    }

    /// Over this channel too.
    pub fn over(mut self, channel: impl Into<String>) -> Self {
        self.channels.push(channel.into());
        self
    }

    /// To this recipient too; it needs an address on every channel of the notification.
    pub fn to(mut self, recipient: Recipient) -> Self {
        self.recipients.push(recipient);
        self
    }

    /// Keeps the rows from being written twice.
    pub fn dedupe(mut self, dedupe: Dedupe) -> Self {
        self.dedupe = dedupe;
        self
    }

    /// What else the channel needs, as a JSON object.
    pub fn payload(mut self, payload: Json) -> Self {
        self.payload = Some(payload);
        self
    }

    /// Not before this instant; one in the past means now.
    pub fn send_at(mut self, at: Timestamp) -> Self {
        self.send_at = Some(at);
        self
    }

    /// Not after this instant.
    pub fn expires_at(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// At most so many attempts, 1 to 1,000; the channel's list of delays decides by default.
    pub fn max_attempts(mut self, attempts: i32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Higher goes first among rows claimed together; 0 is normal.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Kept with the row; see [`OutboxRow::ordering_key`](crate::model::OutboxRow::ordering_key).
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// The kind of notification.
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// The language of the recipients that have none of their own.
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The caller's W3C trace context.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// The application's own notes, kept with each row.
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}
