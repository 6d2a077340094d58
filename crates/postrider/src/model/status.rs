//! The six statuses of an outbox row. There is no seventh.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Value;
use crate::error::{Error, Result};

/// Where an outbox row stands. Source: contract C1, C3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum OutboxStatus {
    /// Written, not tried yet (or requeued, or put off before the first answer).
    Pending,
    /// Claimed by a worker until `next_attempt_at`.
    Sending,
    /// The peer accepted it. Final.
    Sent,
    /// Tried at least once; due again at `next_attempt_at`.
    Failed,
    /// Tried, and gave up. Final until a person requeues it.
    Dead,
    /// Policy said no: trying again cannot help. Final until a person requeues it.
    Suppressed,
}

impl OutboxStatus {
    /// All six.
    pub const ALL: [Self; 6] = [Self::Pending, Self::Sending, Self::Sent, Self::Failed, Self::Dead, Self::Suppressed];

    /// The text that stands in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Sending => "SENDING",
            Self::Sent => "SENT",
            Self::Failed => "FAILED",
            Self::Dead => "DEAD",
            Self::Suppressed => "SUPPRESSED",
        }
    }

    /// True for SENT, DEAD and SUPPRESSED.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Sent | Self::Dead | Self::Suppressed)
    }
}

impl fmt::Display for OutboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<OutboxStatus> for Value {
    fn from(status: OutboxStatus) -> Self {
        status.as_str().into()
    }
}

impl FromStr for OutboxStatus {
    type Err = Error;

    /// Reads the text of the database; letter case does not count.
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not a status; there are PENDING, SENDING, SENT, FAILED, DEAD and SUPPRESSED"
            ))
        })
    }
}
