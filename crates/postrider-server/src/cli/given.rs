//! What flags take: instants and durations, refused with the form that is expected.

use std::time::Duration;

use postrider::model::Timestamp;

use super::words;
use crate::config::parse_duration;

/// The longest time ahead: a century. More is a slip of the hand.
const LONGEST_DAYS: u64 = 36_500;

/// Reads an instant, RFC 3339 with a zone.
pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    let Err(error) = Timestamp::parse(text) else { return Timestamp::parse(text).map_err(|error| error.to_string()) };
    let with_zone = [format!("{text}:00Z"), format!("{text}Z"), format!("{text}T00:00:00Z")];
    match with_zone.into_iter().find(|text| Timestamp::parse(text).is_ok()) {
        Some(utc) => {
            let utc = utc.replace(' ', "T");
            let east = utc.replace('Z', "+02:00");
            Err(format!("{text:?} has no time zone: write {utc} for UTC, or the zone's offset, such as {east}"))
        }
        None => Err(format!("{error}, with Z or an offset such as +02:00 at its end")),
    }
}

/// Reads how long from now on something is to be.
pub(super) fn ahead(text: &str) -> Result<Duration, String> {
    if text.trim().starts_with('-') {
        return Err("the past cannot be waited for; a duration such as 10m or 1h30m from now on is expected".to_owned());
    }
    let found = parse_duration(text)?;
    if found > Duration::from_secs(LONGEST_DAYS * 86_400) {
        return Err(format!("it is too long; at most {LONGEST_DAYS}d (100 years) are allowed"));
    }
    Ok(found)
}

/// Why an instant that must lie ahead is refused.
pub(super) fn is_past(flag: &str, at: Timestamp, now: Timestamp) -> String {
    format!("{flag} {} is past ({}): nothing would be sent", words::seconds(at), words::distance(now, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_without_a_zone_is_refused_with_two_that_have_one() {
        assert!(instant("2026-03-01T10:00:00+02:00").is_ok());
        for text in ["2026-03-01T10:00:00", "2026-03-01 10:00:00", "2026-03-01T10:00"] {
            let said = instant(text).unwrap_err();
            assert!(said.contains("has no time zone: write 2026-03-01T10:00:00Z for UTC"), "{said}");
            assert!(said.contains("2026-03-01T10:00:00+02:00"), "{said}");
        }
        let day = instant("2026-03-01").unwrap_err();
        assert!(day.contains("write 2026-03-01T00:00:00Z"), "{day}");
        let said = instant("tomorrow").unwrap_err();
        assert_eq!(
            said,
            "\"tomorrow\" is not a time like 2026-03-01T10:00:00Z, with Z or an offset such as +02:00 at its end"
        );
    }

    #[test]
    fn a_duration_from_now_on_is_neither_negative_nor_endless() {
        assert_eq!(ahead("1h30m"), Ok(Duration::from_secs(5_400)));
        assert!(ahead("-5m").unwrap_err().contains("the past cannot be waited for"));
        for text in ["36501d", "99999999999d", "99999999999999999999999d"] {
            assert!(ahead(text).unwrap_err().contains("too long"), "{text}");
        }
        assert!(ahead("10").unwrap_err().contains("a duration such as"));
    }
}
