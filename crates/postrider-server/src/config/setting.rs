//! Every setting: its key, what it takes, its default.
//!
//! The one list that the file's reader, the environment's reader, `postrider check` and the help
//! are made from. A default that only the running process can tell (the node's name) is none here.

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its key in the file: `email.port` is `port` in `[email]`.
    pub(crate) key: &'static str,
    pub(super) kind: Kind,
    /// The default, written as in the environment.
    pub(super) default: Option<&'static str>,
    /// What it means that there is no value.
    pub(super) unset: &'static str,
    /// Never printed.
    pub(super) secret: bool,
}

/// What a setting takes.
#[derive(Debug)]
pub(super) enum Kind {
    /// Any text but the empty one.
    Text,
    /// A path; in a file, relative to the file's folder.
    Path,
    /// The address of a database.
    Database,
    /// A whole number within these limits.
    Number { least: u64, most: u64 },
    /// A duration within these limits, in milliseconds.
    Duration { least: u64, most: u64 },
    /// A list of durations.
    Durations,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// true or false.
    Switch,
}

impl Setting {
    /// The name of its environment variable.
    pub(crate) fn variable(&self) -> String {
        let name = self.key.replace('.', "_").to_ascii_uppercase();
        format!("{}{name}", super::environment::PREFIX)
    }
}

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const MONTH: u64 = 30 * 24 * HOUR;

const fn setting(key: &'static str, kind: Kind, default: &'static str) -> Setting {
    Setting { key, kind, default: Some(default), unset: "", secret: false }
}

const fn optional(key: &'static str, kind: Kind, unset: &'static str) -> Setting {
    Setting { key, kind, default: None, unset, secret: false }
}

const fn number(key: &'static str, least: u64, most: u64, default: &'static str) -> Setting {
    setting(key, Kind::Number { least, most }, default)
}

const fn duration(key: &'static str, least: u64, default: &'static str) -> Setting {
    setting(key, Kind::Duration { least, most: MONTH }, default)
}

pub(super) static DATABASE: Setting = setting("database", Kind::Database, "sqlite:postrider.db");
pub(super) static DATABASE_FILE: Setting = optional("database_file", Kind::Path, "none");
pub(super) static DATABASE_CONNECTIONS: Setting = number("database_connections", 2, 1_000, "10");
pub(super) static NODE: Setting = optional("node", Kind::Text, "made at each start: host-process-random");
pub(super) static TEMPLATES: Setting = optional("templates", Kind::Path, "none");
pub(super) static CONCURRENCY: Setting = number("dispatch.concurrency", 1, 100_000, "32");
pub(super) static BATCH: Setting = number("dispatch.batch", 1, 10_000, "100");
pub(super) static CLAIM_TIMEOUT: Setting = duration("dispatch.claim_timeout", SECOND, "1m");
pub(super) static GRACE: Setting = duration("dispatch.grace", 0, "30s");
pub(super) static POLL_MIN: Setting = duration("dispatch.poll_min", 1, "50ms");
pub(super) static POLL_MAX: Setting = duration("dispatch.poll_max", 1, "5s");
pub(super) static HOST: Setting = optional("email.host", Kind::Text, "none: e-mail goes to the sandbox");
pub(super) static PORT: Setting =
    optional("email.port", Kind::Number { least: 1, most: 65_535 }, "by email.tls: 587, 465, 25");
pub(super) static FROM: Setting = optional("email.from", Kind::Text, "none");
pub(super) static TLS: Setting =
    setting("email.tls", Kind::Choice(&["starttls", "implicit", "opportunistic", "none"]), "starttls");
pub(super) static ALLOW_CLEARTEXT: Setting = setting("email.allow_cleartext", Kind::Switch, "false");
pub(super) static CA_FILE: Setting = optional("email.ca_file", Kind::Path, "the public authorities");
pub(super) static USERNAME: Setting = optional("email.username", Kind::Text, "none: no login");
pub(super) static PASSWORD: Setting = Setting { secret: true, ..optional("email.password", Kind::Text, "none") };
pub(super) static PASSWORD_FILE: Setting = optional("email.password_file", Kind::Path, "none");
pub(super) static MESSAGE_ID_DOMAIN: Setting =
    optional("email.message_id_domain", Kind::Text, "the domain of email.from");
pub(super) static EHLO_NAME: Setting = optional("email.ehlo_name", Kind::Text, "the connection's own address");
pub(super) static POOL_SIZE: Setting = number("email.pool_size", 1, 1_000, "4");
pub(super) static DEADLINE: Setting = duration("email.deadline", 1, "12m");
pub(super) static RETRY: Setting = setting("email.retry", Kind::Durations, "1m,5m,15m,30m,1h,2h,4h,8h,12h,1d");
pub(super) static IN_DOUBT: Setting = setting("email.in_doubt", Kind::Choice(&["retry", "hold"]), "retry");
pub(super) static TIMEOUT_SLOT: Setting = duration("email.timeouts.slot", 1, "2m");
pub(super) static TIMEOUT_CONNECT: Setting = duration("email.timeouts.connect", 1, "30s");
pub(super) static TIMEOUT_GREETING: Setting = duration("email.timeouts.greeting", 1, "5m");
pub(super) static TIMEOUT_COMMAND: Setting = duration("email.timeouts.command", 1, "5m");
pub(super) static TIMEOUT_MAIL: Setting = duration("email.timeouts.mail", 1, "5m");
pub(super) static TIMEOUT_RECIPIENT: Setting = duration("email.timeouts.recipient", 1, "5m");
pub(super) static TIMEOUT_DATA_START: Setting = duration("email.timeouts.data_start", 1, "2m");
pub(super) static TIMEOUT_DATA_BLOCK: Setting = duration("email.timeouts.data_block", 1, "3m");
pub(super) static TIMEOUT_DATA_END: Setting = duration("email.timeouts.data_end", 1, "10m");

pub(super) static OUTBOX_NAME: Setting = optional("outbox.name", Kind::Text, "none");
pub(super) static OUTBOX_DATABASE: Setting = optional("outbox.database", Kind::Database, "database");
pub(super) static OUTBOX_DATABASE_FILE: Setting = optional("outbox.database_file", Kind::Path, "none");
pub(super) static OUTBOX_CONNECTIONS: Setting =
    optional("outbox.database_connections", Kind::Number { least: 2, most: 1_000 }, "database_connections");
pub(super) static OUTBOX_TABLE: Setting = optional("outbox.table", Kind::Text, "postrider_outbox");
pub(super) static OUTBOX_SCHEMA: Setting = optional("outbox.schema", Kind::Text, "the connection's own");
pub(super) static OUTBOX_TENANT: Setting = optional("outbox.tenant", Kind::Text, "none");
pub(super) static OUTBOX_ID_TYPE: Setting = optional("outbox.id_type", Kind::Choice(&["binary", "text"]), "binary");

/// What stands in a section `[[outbox]]` of the file; variables and flags have none of these.
pub(super) static OUTBOX: [&Setting; 8] = [
    &OUTBOX_NAME,
    &OUTBOX_DATABASE,
    &OUTBOX_DATABASE_FILE,
    &OUTBOX_CONNECTIONS,
    &OUTBOX_TABLE,
    &OUTBOX_SCHEMA,
    &OUTBOX_TENANT,
    &OUTBOX_ID_TYPE,
];

/// All settings, in the order in which they are shown.
pub(super) static ALL: [&Setting; 35] = [
    &DATABASE,
    &DATABASE_FILE,
    &DATABASE_CONNECTIONS,
    &NODE,
    &TEMPLATES,
    &CONCURRENCY,
    &BATCH,
    &CLAIM_TIMEOUT,
    &GRACE,
    &POLL_MIN,
    &POLL_MAX,
    &HOST,
    &PORT,
    &FROM,
    &TLS,
    &ALLOW_CLEARTEXT,
    &CA_FILE,
    &USERNAME,
    &PASSWORD,
    &PASSWORD_FILE,
    &MESSAGE_ID_DOMAIN,
    &EHLO_NAME,
    &POOL_SIZE,
    &DEADLINE,
    &RETRY,
    &IN_DOUBT,
    &TIMEOUT_SLOT,
    &TIMEOUT_CONNECT,
    &TIMEOUT_GREETING,
    &TIMEOUT_COMMAND,
    &TIMEOUT_MAIL,
    &TIMEOUT_RECIPIENT,
    &TIMEOUT_DATA_START,
    &TIMEOUT_DATA_BLOCK,
    &TIMEOUT_DATA_END,
];

/// The setting with that key.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    ALL.into_iter().find(|setting| setting.key == key)
}
