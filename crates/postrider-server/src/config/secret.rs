//! Files that hold a secret, as container platforms mount them.

use std::path::Path;

use postrider::{Error, Result};

use super::address::DatabaseAddress;
use super::error::wrong;
use super::layers::Origin;

/// The secret in a file, without the line break at its end.
///
/// # Errors
/// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration), naming setting and file.
pub(super) fn read(path: &Path, key: &str, origin: &Origin) -> Result<String> {
    let text = contents(path, key, origin)?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() {
        return Err(wrong(format!("{origin}: {key}: the file {} is empty", path.display())));
    }
    Ok(secret.to_owned())
}

/// The address of a database in a file.
///
/// # Errors
/// As [`read`]; also if it is no address.
pub(super) fn address(path: &Path, key: &str, origin: &Origin) -> Result<DatabaseAddress> {
    DatabaseAddress::parse(&read(path, key, origin)?, None).map_err(|why| wrong(format!("{}: {why}", path.display())))
}

/// The text of a file that a setting names.
///
/// # Errors
/// As [`read`].
pub(super) fn contents(path: &Path, key: &str, origin: &Origin) -> Result<String> {
    std::fs::read_to_string(path).map_err(|cause| -> Error {
        wrong(format!("{origin}: {key}: the file {} cannot be read: {cause}", path.display())).caused_by(cause)
    })
}
