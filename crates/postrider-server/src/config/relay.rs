//! The SMTP relay: what `[email]` must say together, and the channel's settings made from it.
//!
//! Files of secrets and certificates are read only when the channel is made, so that a command
//! that sends nothing needs no right to read them. What the channel itself refuses (a name that is
//! no domain, clear text to another machine) is left to it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use postrider::Result;
use postrider::model::InDoubtPolicy;
use postrider::policy::RetryPolicy;
use postrider_channels::{Credentials, EmailConfig, Timeouts, TlsMode};

use super::error::wrong;
use super::layers::{Origin, Values};
use super::secret;
use super::setting::{self, Setting};

/// The SMTP relay, with its secret not read yet.
#[derive(Debug)]
pub(crate) struct Relay {
    /// The host, for people.
    pub(crate) host: String,
    /// The port, for people.
    pub(crate) port: u16,
    settings: EmailConfig,
    login: Option<(String, Secret)>,
    ca_file: Option<(PathBuf, Origin)>,
}

enum Secret {
    Given(String),
    File(PathBuf, Origin),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The relay that the settings name, if any.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the place.
pub(super) fn relay(values: &Values) -> Result<Option<Relay>> {
    let Some(host) = values.text(&setting::HOST) else {
        let mut email = setting::ALL.into_iter().filter(|setting| setting.key.starts_with("email."));
        return match email.find(|setting| values.origin(setting) != Origin::Default) {
            None => Ok(None),
            Some(set) => Err(wrong(format!(
                "{}: {} is set, but email.host is not; name the relay, or leave all of [email] out to use the sandbox",
                values.origin(set),
                set.key
            ))),
        };
    };
    let from = values.text(&setting::FROM).ok_or_else(|| {
        wrong(format!(
            "{}: email.host is set, but email.from is not; name the sender, such as \"Shop <shop@example.com>\"",
            values.origin(&setting::HOST)
        ))
    })?;
    let (tls, default_port) = match values.text(&setting::TLS) {
        Some("implicit") => (TlsMode::Implicit, 465),
        Some("opportunistic") => (TlsMode::Opportunistic, 25),
        Some("none") => (TlsMode::None, 25),
        _ => (TlsMode::StartTls, 587),
    };
    let port = values.number(&setting::PORT).and_then(|port| u16::try_from(port).ok());
    let port = port.unwrap_or(default_port);
    Ok(Some(Relay {
        host: host.to_owned(),
        port,
        settings: email(values, EmailConfig::new(host, port, from).tls(tls))?,
        login: login(values)?,
        ca_file: values.path(&setting::CA_FILE).map(|path| (path.to_owned(), values.origin(&setting::CA_FILE))),
    }))
}

fn email(values: &Values, mut config: EmailConfig) -> Result<EmailConfig> {
    if values.switch(&setting::ALLOW_CLEARTEXT) {
        config = config.allow_cleartext();
    }
    if let Some(domain) = values.text(&setting::MESSAGE_ID_DOMAIN) {
        config = config.message_id_domain(domain);
    }
    if let Some(name) = values.text(&setting::EHLO_NAME) {
        config = config.ehlo_name(name);
    }
    if let Some(size) = values.number(&setting::POOL_SIZE) {
        config = config.pool_size(usize::try_from(size).unwrap_or(usize::MAX));
    }
    if let Some(deadline) = values.duration(&setting::DEADLINE) {
        config = config.deadline(deadline);
    }
    if let Some(delays) = values.durations(&setting::RETRY) {
        let policy = RetryPolicy::new(delays.to_vec(), 0.2);
        let place = values.origin(&setting::RETRY);
        config = config.retry_policy(policy.map_err(|error| error.context(format!("{place}: email.retry")))?);
    }
    if values.text(&setting::IN_DOUBT) == Some("hold") {
        config = config.in_doubt_policy(InDoubtPolicy::Hold);
    }
    Ok(config.timeouts(timeouts(values)))
}

/// The limits; a default one never exceeds the deadline, which would refuse a short deadline alone.
fn timeouts(values: &Values) -> Timeouts {
    let mut limits = Timeouts::default();
    let deadline = values.duration(&setting::DEADLINE).unwrap_or(Duration::MAX);
    let set = |setting: &Setting, limit: &mut Duration| {
        *limit = match values.origin(setting) {
            Origin::Default => deadline.min(*limit),
            Origin::File(..) | Origin::Variable(_) | Origin::Flag(_) => values.duration(setting).unwrap_or(*limit),
        };
    };
    set(&setting::TIMEOUT_SLOT, &mut limits.slot);
    set(&setting::TIMEOUT_CONNECT, &mut limits.connect);
    set(&setting::TIMEOUT_GREETING, &mut limits.greeting);
    set(&setting::TIMEOUT_COMMAND, &mut limits.command);
    set(&setting::TIMEOUT_MAIL, &mut limits.mail);
    set(&setting::TIMEOUT_RECIPIENT, &mut limits.recipient);
    set(&setting::TIMEOUT_DATA_START, &mut limits.data_start);
    set(&setting::TIMEOUT_DATA_BLOCK, &mut limits.data_block);
    set(&setting::TIMEOUT_DATA_END, &mut limits.data_end);
    limits
}

fn login(values: &Values) -> Result<Option<(String, Secret)>> {
    let username = values.text(&setting::USERNAME);
    let given = values.text(&setting::PASSWORD);
    let file = values.path(&setting::PASSWORD_FILE);
    let place = |setting| values.origin(setting);
    let secret = match (given, file) {
        (Some(_), Some(_)) => {
            return Err(wrong(format!(
                "email.password ({}) and email.password_file ({}) are both set; keep one",
                place(&setting::PASSWORD),
                place(&setting::PASSWORD_FILE)
            )));
        }
        (Some(given), None) => Some((&setting::PASSWORD, Secret::Given(given.to_owned()))),
        (None, Some(path)) => {
            let secret = Secret::File(path.to_owned(), place(&setting::PASSWORD_FILE));
            Some((&setting::PASSWORD_FILE, secret))
        }
        (None, None) => None,
    };
    match (username, secret) {
        (None, None) => Ok(None),
        (Some(username), Some((_, secret))) => Ok(Some((username.to_owned(), secret))),
        (Some(_), None) => Err(wrong(format!(
            "{}: email.username is set, but neither email.password nor email.password_file",
            place(&setting::USERNAME)
        ))),
        (None, Some((setting, _))) => {
            Err(wrong(format!("{}: {} is set, but email.username is not", place(setting), setting.key)))
        }
    }
}

impl Relay {
    /// The channel's settings; reads the files of secrets and certificates.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration) if a file cannot be read.
    pub(crate) fn settings(&self) -> Result<EmailConfig> {
        let mut config = self.settings.clone();
        if let Some((username, password)) = &self.login {
            let password = match password {
                Secret::Given(password) => password.clone(),
                Secret::File(path, origin) => secret::read(path, "email.password_file", origin)?,
            };
            config = config.credentials(Credentials::new(username, password));
        }
        if let Some((path, origin)) = &self.ca_file {
            config = config.extra_roots_pem(secret::contents(path, "email.ca_file", origin)?);
        }
        Ok(config)
    }
}
