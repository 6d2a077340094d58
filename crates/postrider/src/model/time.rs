//! Instants as the outbox stores them: whole microseconds, UTC.
//!
//! Every wall time passes through [`Timestamp`] before it is used, compared or bound, and is
//! **cut** there, never rounded up: a row must be due at its own instant on every database.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

/// An instant in whole microseconds since 1970-01-01T00:00:00Z.
///
/// Between the years 1 and 9999; arithmetic saturates at those ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// 9999-12-30T00:00:00Z, the last instant that every database and formatter here can hold.
    pub const MAX: Self = Self(253_402_128_000_000_000);

    /// An instant from microseconds since 1970, UTC; clamped to [`Self::MIN`] and [`Self::MAX`].
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Microseconds since 1970, UTC.
    #[must_use]
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 with an offset (`2026-03-01T10:00:00.5Z`); digits past the sixth are cut.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if it is no such text.
    pub fn parse(text: &str) -> Result<Self> {
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(|cause| {
            Error::invalid(format!("{text:?} is not a time like 2026-03-01T10:00:00Z")).caused_by(cause)
        })
    }

    /// This instant plus `duration`; parts of a microsecond are cut.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// This instant less `duration`.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_sub(micros))
    }

    /// Time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The same instant for `jiff`.
    #[must_use]
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl From<jiff::Timestamp> for Timestamp {
    /// Cuts to microseconds, towards the past (also before 1970).
    fn from(at: jiff::Timestamp) -> Self {
        let micros = at.as_nanosecond().div_euclid(1_000);
        Self::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.to_jiff())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case C26.
    #[test]
    fn an_instant_is_cut_and_never_rounded_up() {
        for (given, kept) in [
            ("2026-03-01T10:00:00.123456789Z", "2026-03-01T10:00:00.123456Z"),
            ("2026-03-01T10:00:00.123456500Z", "2026-03-01T10:00:00.123456Z"),
            ("2026-03-01T10:00:59.999999999Z", "2026-03-01T10:00:59.999999Z"),
            ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Timestamp::parse(given).unwrap().to_string(), kept);
        }
    }

    #[test]
    fn arithmetic_saturates_and_never_panics() {
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::parse(&Timestamp::MAX.to_string()).unwrap(), Timestamp::MAX);
        assert_eq!(Timestamp::parse(&Timestamp::MIN.to_string()).unwrap(), Timestamp::MIN);
    }
}
