//! The channels and the templates that the configuration names.

use std::sync::Arc;

use postrider::channel::Channel;
use postrider::render::TemplateCatalogue;
use postrider::{Error, Result};
use postrider_channels::{EmailChannel, SandboxChannel};

use crate::config::Config;

/// The channels: e-mail over the relay, or in the sandbox if there is none.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming the setting and the remedy.
pub(crate) fn channels(config: &Config) -> Result<Vec<Arc<dyn Channel>>> {
    let email: Arc<dyn Channel> = match relay(config)? {
        Some(relay) => Arc::new(relay),
        None => Arc::new(SandboxChannel::new("email")),
    };
    Ok(vec![email])
}

/// The channel to the relay, if there is one.
///
/// # Errors
/// As [`channels`].
pub(crate) fn relay(config: &Config) -> Result<Option<EmailChannel>> {
    config.relay.as_ref().map(|relay| EmailChannel::new(relay.settings()?)).transpose()
}

/// The templates of the configured folder, and all that is wrong with them; none without one.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration) if the folder cannot be read.
pub(crate) fn templates(config: &Config) -> Result<(TemplateCatalogue, Vec<Error>)> {
    match &config.templates {
        Some(folder) => TemplateCatalogue::read_directory(folder),
        None => Ok((TemplateCatalogue::new(), Vec::new())),
    }
}
