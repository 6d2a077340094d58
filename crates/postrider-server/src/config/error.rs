//! The error of a wrong configuration.

use postrider::{Error, ErrorKind};

/// An error of the configuration; the message names the place.
pub(super) fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Configuration, message)
}
