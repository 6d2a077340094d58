//! The channels that this process knows, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Channel;
use crate::error::{Error, ErrorKind, Result};

/// The registered channels.
#[derive(Debug, Clone, Default)]
pub struct ChannelRegistry {
    channels: BTreeMap<String, Arc<dyn Channel>>,
}

impl ChannelRegistry {
    /// No channel yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a channel under its own name.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the name is taken, empty, over 64 bytes or not made of
    /// lower-case ASCII letters, digits, `_` and `-`.
    pub fn register(&mut self, channel: Arc<dyn Channel>) -> Result<()> {
        let name = channel.name().to_owned();
        let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(good) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("the channel name {name:?} must be 1 to 64 lower-case letters, digits, '_' or '-'"),
            ));
        }
        if self.channels.contains_key(&name) {
            return Err(Error::new(ErrorKind::Configuration, format!("the channel {name:?} is registered twice")));
        }
        self.channels.insert(name, channel);
        Ok(())
    }

    /// The channel of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Channel>> {
        self.channels.get(name)
    }

    /// The channel of that name, or an error that lists those that exist.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if there is none.
    pub fn require(&self, name: &str) -> Result<&Arc<dyn Channel>> {
        self.get(name).ok_or_else(|| {
            let known = self.names().collect::<Vec<_>>().join(", ");
            Error::invalid(format!("there is no channel {name:?}; known are: {known}"))
        })
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.channels.keys().map(String::as_str)
    }
}
