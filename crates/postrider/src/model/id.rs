//! The id of an outbox row.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::{NoContext, Uuid};

use super::{Clock, Timestamp, Value};
use crate::error::{Error, Result};

/// The id of an outbox row: a UUID, version 7 where the library made it.
///
/// Rows that another language wrote may carry any UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutboxId(Uuid);

impl OutboxId {
    /// A new version 7 UUID whose time is the clock's.
    #[must_use]
    pub fn new(clock: &dyn Clock) -> Self {
        let since_1970 = clock.now().since(Timestamp::from_micros(0));
        Self::at(since_1970)
    }

    fn at(since_1970: Duration) -> Self {
        let time = uuid::Timestamp::from_unix(NoContext, since_1970.as_secs(), since_1970.subsec_nanos());
        Self(Uuid::new_v7(time))
    }

    /// The UUID.
    #[must_use]
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for OutboxId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl From<OutboxId> for Value {
    fn from(id: OutboxId) -> Self {
        Self::Uuid(Some(id.0))
    }
}

impl FromStr for OutboxId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Uuid::parse_str(text.trim())
            .map(Self)
            .map_err(|cause| Error::invalid(format!("{text:?} is not the id of a row (a UUID)")).caused_by(cause))
    }
}

impl fmt::Display for OutboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for OutboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
