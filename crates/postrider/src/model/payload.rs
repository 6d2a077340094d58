//! What an e-mail needs beside subject and text, as JSON in the row's `payload`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// The payload of an e-mail row. Every field may be absent; unknown fields are let through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MailPayload {
    /// The version of this layout; absent means 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub v: u32,
    /// The HTML part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The name shown beside the To address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_name: Option<String>,
    /// The sender, instead of the channel's (`Name <address>`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where answers go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_first(v: &u32) -> bool {
    *v <= 1
}

impl MailPayload {
    /// Reads a row's payload; null is the empty payload.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] if it is no such object, or of a version later than 1: a newer node
    /// may be able to send it.
    pub fn read(payload: Option<&serde_json::Value>) -> Result<Self> {
        let Some(value) = payload.filter(|value| !value.is_null()) else {
            return Ok(Self { v: 1, ..Self::default() });
        };
        if let Some(v) = value.get("v").and_then(serde_json::Value::as_u64).filter(|v| *v > 1) {
            return Err(Error::new(
                ErrorKind::Decode,
                format!("the payload has version {v}; this node reads version 1 only"),
            ));
        }
        Self::deserialize(value).map_err(|cause| {
            Error::new(ErrorKind::Decode, format!("the payload cannot be read: {cause}")).caused_by(cause)
        })
    }
}
