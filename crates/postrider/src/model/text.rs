//! Text as the databases can hold it: errors cut to length, NUL kept out.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// Most characters (Unicode scalar values) of a stored error. Source: contract C1.3.
pub const MAX_ERROR_LENGTH: usize = 2_000;

/// An error text as it is stored: at most [`MAX_ERROR_LENGTH`] characters, never cut inside one,
/// NUL shown as U+FFFD. A text of exactly that length is kept whole.
///
/// Source: contract C1.3, cases C23 and C24.
#[must_use]
pub fn storable_error(text: &str) -> String {
    text.chars().take(MAX_ERROR_LENGTH).map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same for bytes that may not be UTF-8 (a peer's reply): what is not text becomes U+FFFD.
#[must_use]
pub fn storable_error_bytes(bytes: &[u8]) -> String {
    // A character takes at most four bytes, so nothing that could be kept is left out here.
    let bytes = &bytes[..bytes.len().min(4 * MAX_ERROR_LENGTH)];
    let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
    storable_error(&text)
}

/// Refuses U+0000, which PostgreSQL cannot store, on every database alike.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), naming `what`.
pub fn refuse_nul(what: &str, text: &str) -> Result<()> {
    match text.find('\0') {
        Some(at) => {
            Err(Error::invalid(format!("the {what} holds a NUL character (byte {at}), which no row can store")))
        }
        None => Ok(()),
    }
}

/// Refuses CR, LF and NUL in what becomes one line of a header.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), naming `what`.
pub fn refuse_line_break(what: &str, text: &str) -> Result<()> {
    refuse_nul(what, text)?;
    match text.find(['\r', '\n']) {
        Some(at) => Err(Error::invalid(format!("the {what} holds a line break (byte {at}); it must be a single line"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Case C23.
    #[test]
    fn an_error_is_cut_between_characters_and_not_when_it_fits() {
        let long = "x".repeat(MAX_ERROR_LENGTH - 1) + "✅ tail";
        let cut = storable_error(&long);
        assert_eq!(cut.chars().count(), MAX_ERROR_LENGTH);
        assert!(long.starts_with(&cut) && cut.ends_with('✅'));
        let exact = "😀".repeat(MAX_ERROR_LENGTH);
        assert_eq!(storable_error(&exact), exact);
        assert_eq!(storable_error_bytes(exact.as_bytes()), exact);
        assert_eq!(storable_error_bytes((exact.clone() + "y").as_bytes()), exact);
    }

    /// Case C24.
    #[test]
    fn nul_in_an_error_is_shown_and_not_lost() {
        assert_eq!(storable_error("a\0b"), "a\u{fffd}b");
        assert_eq!(storable_error_bytes(b"\xff\xfeA\0"), "\u{fffd}\u{fffd}A\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_cut_error_is_a_storable_prefix(text in ".{0,40}", times in 0_usize..200) {
            let text = text.repeat(times);
            let cut = storable_error(&text);
            prop_assert!(cut.chars().count() <= MAX_ERROR_LENGTH);
            let shown = text.replace(char::from(0), "\u{fffd}");
            prop_assert!(shown.starts_with(&cut));
        }
    }
}
