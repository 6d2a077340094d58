//! Durations as people write them: `500ms`, `60s`, `5m`, `1h30m`, `2d`.
//!
//! A unit is required, since a bare number would be seconds to one reader and minutes to another.

use std::time::Duration;

/// The units, in milliseconds.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a duration: one or more whole numbers, each with its unit.
///
/// # Errors
/// What is expected, as a fragment that follows the text.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let refused = || "a duration such as 500ms, 60s, 5m, 1h30m or 2d is expected".to_owned();
    let too_long = || "it is too long".to_owned();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(refused());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return Err(refused());
        }
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
        let number: u64 = number.parse().map_err(|_| too_long())?;
        let part = number.checked_mul(*millis).ok_or_else(too_long)?;
        total = total.checked_add(part).ok_or_else(too_long)?;
        rest = after;
    }
    Ok(Duration::from_millis(total))
}

/// Writes a duration so that [`parse`] reads it.
pub(crate) fn display(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, size) in UNITS.iter().rev() {
        if millis >= *size {
            text.push_str(&format!("{}{unit}", millis / size));
            millis %= size;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("60s", 60_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            (" 1s ", 1_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        let huge = format!("{}d", u64::MAX);
        for text in ["", "5", "m", "5 m", "-5m", "1.5h", "5min", "5m3", "1h-30m", "é", &huge] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["1ms", "50ms", "1s500ms", "1m", "1h30m", "2d", "0s"] {
            assert_eq!(display(parse(text).unwrap()), text);
        }
    }
}
