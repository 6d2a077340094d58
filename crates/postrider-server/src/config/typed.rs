//! The configuration as the program uses it, and what must hold between settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postrider::Result;
use postrider::dispatch::DispatchConfig;

use super::error::wrong;
use super::layers::Values;
use super::outbox::{self, OutboxConfig};
use super::relay::{self, Relay};
use super::{node, setting};

/// What the program was told.
#[derive(Debug)]
pub(crate) struct Config {
    /// The outboxes, at least one.
    pub(crate) outboxes: Vec<OutboxConfig>,
    /// The folder of templates.
    pub(crate) templates: Option<PathBuf>,
    /// The dispatcher's settings.
    pub(crate) dispatch: DispatchConfig,
    /// The relay that takes e-mail; none means the sandbox.
    pub(crate) relay: Option<Relay>,
}

impl Config {
    /// Puts the settings together.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the place.
    pub(crate) fn new(values: &Values) -> Result<Self> {
        Ok(Self {
            outboxes: outbox::outboxes(values)?,
            templates: values.path(&setting::TEMPLATES).map(Path::to_owned),
            dispatch: dispatch(values)?,
            relay: relay::relay(values)?,
        })
    }
}

fn dispatch(values: &Values) -> Result<DispatchConfig> {
    let node = values.text(&setting::NODE).map_or_else(node::default_name, str::to_owned);
    if node.len() > 255 || node.contains('\0') {
        let origin = values.origin(&setting::NODE);
        return Err(wrong(format!("{origin}: node: at most 255 bytes without NUL are expected")));
    }
    let mut config = DispatchConfig::new(node);
    let number = |setting, target: &mut usize| {
        let found = values.number(setting).and_then(|number| usize::try_from(number).ok());
        *target = found.unwrap_or(*target);
    };
    let duration = |setting, target: &mut Duration| {
        *target = values.duration(setting).unwrap_or(*target);
    };
    number(&setting::CONCURRENCY, &mut config.concurrency);
    number(&setting::BATCH, &mut config.batch);
    duration(&setting::CLAIM_TIMEOUT, &mut config.claim_timeout);
    duration(&setting::GRACE, &mut config.grace);
    duration(&setting::POLL_MIN, &mut config.poll_min);
    duration(&setting::POLL_MAX, &mut config.poll_max);
    if config.poll_max < config.poll_min {
        return Err(wrong(format!(
            "dispatch.poll_max ({}) is less than dispatch.poll_min ({})",
            values.origin(&setting::POLL_MAX),
            values.origin(&setting::POLL_MIN)
        )));
    }
    Ok(config)
}
