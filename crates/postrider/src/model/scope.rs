//! Whose rows a call may see: one tenant's, or root's.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};

/// A tenant's name: 1 to 64 bytes of text without control characters.
///
/// Root's own rows hold the empty text, which no `TenantId` can be ([`TenantId::ROOT`] aside):
/// SQL's UNIQUE does not bind NULLs. Source: contract C6.3.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TenantId(String);

impl TenantId {
    /// Most bytes of a tenant's name.
    pub const MAX_BYTES: usize = 64;

    /// The value that root's own rows hold: `''`.
    pub const ROOT: Self = Self(String::new());

    /// [`Self::ROOT`], where a reference that lasts is asked for.
    #[must_use]
    pub fn root() -> &'static Self {
        static ROOT: TenantId = TenantId::ROOT;
        &ROOT
    }

    /// Checks and keeps a tenant's name.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if it is empty, longer than
    /// [`Self::MAX_BYTES`] or holds a control character.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() {
            return Err(Error::invalid("the tenant is empty; root's rows are reached through root()"));
        }
        if name.len() > Self::MAX_BYTES {
            return Err(Error::invalid(format!(
                "the tenant is {} bytes long; at most {} are allowed",
                name.len(),
                Self::MAX_BYTES
            )));
        }
        if name.chars().any(char::is_control) {
            return Err(Error::invalid("the tenant holds a control character"));
        }
        Ok(Self(name))
    }

    /// What stands in the tenant column of a stored row, root's `''` included.
    pub(crate) fn from_stored(name: String) -> Self {
        Self(name)
    }

    /// The name; empty for root's own rows.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for root's own rows.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantId({:?})", self.0)
    }
}
