//! Moments as people write them: `17:30`, `2026-07-01T12:00:00Z`.

use holdfast_types::TimeMs;
use jiff::{Timestamp, Zoned, civil};
use std::fmt;
use std::str::FromStr;

/// A moment to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This one.
    At(Timestamp),
    /// When the clock on the wall next shows this.
    Clock(civil::Time),
}

/// A text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhenError;

impl fmt::Display for WhenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a time of day like 17:30, or a moment like 2026-07-01T12:00:00Z")
    }
}

impl std::error::Error for WhenError {}

impl FromStr for When {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<When, WhenError> {
        let clock = || civil::Time::strptime("%H:%M", text).ok().map(When::Clock);
        text.parse().ok().map(When::At).or_else(clock).ok_or(WhenError)
    }
}

impl When {
    /// As the host counts time; none where no clock ever shows it.
    pub fn ms(self, now: &Zoned) -> Option<TimeMs> {
        let at = match self {
            When::At(at) => at,
            When::Clock(time) => {
                let today = now.with().time(time).build().ok()?;
                let next = if today > *now { today } else { now.tomorrow().ok()?.with().time(time).build().ok()? };
                next.timestamp()
            }
        };
        // A moment before 1970 is as long ago as any.
        Some(u64::try_from(at.as_millisecond()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `now` and the answer, both in a zone two hours ahead of UTC.
    fn at(text: &str) -> String {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
        let now = "2026-03-31T17:00:00+02".parse::<Timestamp>().unwrap().to_zoned(zone);
        let ms = text.parse::<When>().unwrap().ms(&now).unwrap();
        Timestamp::from_millisecond(ms.cast_signed()).unwrap().to_string()
    }

    #[test]
    fn a_time_of_day_is_the_next_one_and_a_moment_is_itself() {
        assert_eq!(at("17:30"), "2026-03-31T15:30:00Z");
        assert_eq!(at("17:00"), "2026-04-01T15:00:00Z", "now itself is over");
        assert_eq!(at("8:05"), "2026-04-01T06:05:00Z");
        assert_eq!(at("2026-07-01T12:00:00Z"), "2026-07-01T12:00:00Z");
        assert_eq!(at("2026-07-01T12:00:00+02:00"), "2026-07-01T10:00:00Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "soon", "25:00", "12", "2026-07-01", "2026-07-01T12:00:00"] {
            assert_eq!(text.parse::<When>(), Err(WhenError), "{text}");
        }
    }
}
