//! From flags to a notification: recipients, content, variables.
//!
//! Checks only what the library cannot see, such as JSON that is none; the rest is the library's.

use std::io::Read as _;

use postrider::accept::{Content, Dedupe, MAX_CONTENT_BYTES, Notification, Recipient};
use postrider::model::Timestamp;
use serde_json::{Map, Value as Json};

use super::Send;
use crate::cli::failure::Failure;
use crate::cli::{given, words};

/// A notification that is complete but for the time from which `--in` and `--expires-in` count.
pub(super) struct Draft {
    notification: Notification,
    after: Option<std::time::Duration>,
    expires_at: Option<Timestamp>,
    expires_in: Option<std::time::Duration>,
}

impl Draft {
    /// The notification, as seen at `now`; refused if its time is over then.
    pub(super) fn at(self, now: Timestamp) -> Result<Notification, Failure> {
        if let Some(at) = self.expires_at.filter(|at| *at <= now) {
            return Err(Failure::usage(given::is_past("--expires-at", at, now)));
        }
        let mut notification = self.notification;
        if let Some(after) = self.after {
            notification = notification.send_at(now.plus(after));
        }
        if let Some(ahead) = self.expires_in {
            notification = notification.expires_at(now.plus(ahead));
        }
        Ok(notification)
    }
}

impl Send {
    /// What the flags ask for; reads stdin if one of them says so.
    pub(super) fn notification(&self) -> Result<Draft, Failure> {
        let mut notification = Notification::new(self.content()?).over(&self.channel).priority(self.priority);
        for recipient in self.recipients()? {
            notification = notification.to(recipient);
        }
        if let Some(key) = &self.dedupe_key {
            notification = notification.dedupe(Dedupe::Key(key.clone()));
        }
        if let Some(prefix) = &self.dedupe_prefix {
            notification = notification.dedupe(Dedupe::Prefix(prefix.clone()));
        }
        if let Some(at) = self.at {
            notification = notification.send_at(at);
        }
        if let Some(at) = self.expires_at {
            notification = notification.expires_at(at);
        }
        if let Some(attempts) = self.max_attempts {
            notification = notification.max_attempts(attempts);
        }
        if let Some(category) = &self.category {
            notification = notification.category(category);
        }
        if let Some(locale) = &self.locale {
            notification = notification.locale(locale);
        }
        if let Some(text) = &self.metadata {
            notification = notification.metadata(json("--metadata", text)?);
        }
        Ok(Draft { notification, after: self.after, expires_at: self.expires_at, expires_in: self.expires_in })
    }

    fn recipients(&self) -> Result<Vec<Recipient>, Failure> {
        let (given, wanted) = (self.recipient.len(), self.to.len());
        if given != 0 && given != wanted {
            return Err(Failure::usage(format!(
                "--recipient is given {}, and --to {}; give it once for each --to, or not at all",
                words::times(given),
                words::times(wanted)
            )));
        }
        let recipients = self.to.iter().enumerate().map(|(at, to)| {
            let (name, address) = if self.channel == "email" { mailbox(to)? } else { (None, to.clone()) };
            let who = self.recipient.get(at).map_or(address.as_str(), String::as_str);
            let mut recipient = Recipient::new(who).at(&self.channel, address.clone());
            if let Some(name) = name {
                recipient = recipient.display_name(name);
            }
            Ok(self.cc.iter().fold(recipient, |recipient, cc| recipient.cc(cc)))
        });
        recipients.collect()
    }

    fn content(&self) -> Result<Content, Failure> {
        if let Some(name) = &self.template {
            return Ok(Content::Template { name: name.clone(), variables: self.variables()? });
        }
        if !self.var.is_empty() || self.vars.is_some() {
            return Err(Failure::usage("--var and --vars are for --template NAME, which is missing"));
        }
        if self.subject.is_none() && self.body.is_none() && self.html.is_none() {
            return Err(Failure::usage("there is nothing to send: give --subject, --body, --html or --template"));
        }
        if self.body.as_deref() == Some("-") && self.html.as_deref() == Some("-") {
            return Err(Failure::usage("only one of --body and --html can be read from stdin"));
        }
        Ok(Content::Given {
            subject: self.subject.clone(),
            text: given_or_stdin("--body", self.body.as_deref())?,
            html: given_or_stdin("--html", self.html.as_deref())?,
        })
    }

    fn variables(&self) -> Result<Json, Failure> {
        let mut variables = match self.vars.as_deref().map(|text| json("--vars", text)).transpose()? {
            None => Map::new(),
            Some(Json::Object(given)) => given,
            Some(_) => return Err(Failure::usage("--vars: a JSON object such as {\"name\": \"Alice\"} is expected")),
        };
        for pair in &self.var {
            let (name, text) = pair
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| Failure::usage(format!("--var {pair:?}: NAME=TEXT is expected")))?;
            variables.insert(name.to_owned(), text.into());
        }
        Ok(Json::Object(variables))
    }
}

fn json(flag: &str, text: &str) -> Result<Json, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::usage(format!("{flag} is no JSON: {error}")))
}

fn given_or_stdin(flag: &str, given: Option<&str>) -> Result<Option<String>, Failure> {
    let Some("-") = given else {
        return Ok(given.map(str::to_owned));
    };
    let failed = |error| Failure::failed(format!("{flag}: stdin cannot be read: {error}"));
    let mut bytes = Vec::new();
    // One byte more than is allowed, so that the library says what is too long.
    let limit = u64::try_from(MAX_CONTENT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| Failure::usage(format!("{flag}: what stdin holds is not UTF-8")))
}

/// Takes `Name <address>` apart; anything else is an address, for the library to judge.
///
/// A name that holds an address is a list in disguise, of which all but one would be lost.
fn mailbox(text: &str) -> Result<(Option<String>, String), Failure> {
    let Some((name, address)) = text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<')) else {
        return Ok((None, text.to_owned()));
    };
    let name = name.trim();
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    if quoted.is_none() && name.contains(['<', '>', '@']) {
        return Err(Failure::usage(format!("--to {text:?} looks like several recipients; repeat --to for each")));
    }
    let name = quoted.map_or_else(|| name.to_owned(), unescaped);
    Ok((Some(name).filter(|name| !name.is_empty()), address.to_owned()))
}

/// What a quoted name means: a backslash stands before the character that is meant.
fn unescaped(quoted: &str) -> String {
    let mut name = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        name.push(if character == '\\' { characters.next().unwrap_or(character) } else { character });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_a_name_and_an_address() {
        for (text, parts) in [
            ("a@example.com", (None, "a@example.com")),
            ("Alice <a@example.com>", (Some("Alice"), "a@example.com")),
            ("\"Alice, A.\" <a@example.com>", (Some("Alice, A."), "a@example.com")),
            ("<a@example.com>", (None, "a@example.com")),
            ("a@example.com>", (None, "a@example.com>")),
            (r#""Ann \"Q\" O" <a@example.com>"#, (Some(r#"Ann "Q" O"#), "a@example.com")),
        ] {
            let (name, address) = mailbox(text).unwrap_or_else(|_| panic!("{text} is refused"));
            assert_eq!((name.as_deref(), address.as_str()), parts, "{text}");
        }
    }

    #[test]
    fn several_recipients_in_one_flag_are_refused() {
        for text in ["A <a@example.com>, B <b@example.com>", "a@example.com, B <b@example.com>"] {
            assert!(mailbox(text).is_err(), "{text}");
        }
    }
}
