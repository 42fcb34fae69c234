//! Durations as people write them: `500ms`, `5s`, `10m`, `2h`, `5d`, `1w`.

/// Longest duration: a flow that sleeps longer than ten years has a slip in its number.
const DURATION_MS_MAX: u64 = 10 * 366 * 86_400_000;

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {0:?}; expected a number and ms, s, m, h, d or w, for example 30s or 5d")]
pub struct BadDuration(String);

const UNITS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 7 * 86_400_000)];

/// The milliseconds that a text means.
pub fn duration_ms(text: &str) -> Result<u64, BadDuration> {
    let bad = || BadDuration(text.chars().take(40).collect());
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
    let (number, unit) = text.split_at(split);
    let (_, unit_ms) = UNITS.iter().find(|(word, _)| *word == unit).ok_or_else(bad)?;
    let ms = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(*unit_ms).ok_or_else(bad)?,
        Err(_) => (number.parse::<f64>().map_err(|_| bad())? * *unit_ms as f64) as u64,
    };
    if ms > DURATION_MS_MAX { Err(bad()) } else { Ok(ms) }
}

/// A duration in its largest unit that says it exactly.
#[must_use]
pub fn show_ms(ms: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, unit_ms)| ms >= *unit_ms && ms.is_multiple_of(*unit_ms));
    let (word, unit_ms) = unit.unwrap_or(&UNITS[0]);
    format!("{}{word}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown() {
        for (text, ms) in
            [("500ms", 500), ("5s", 5_000), ("0.5s", 500), ("10m", 600_000), ("5d", 432_000_000), ("0s", 0)]
        {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "5", "s", "-5s", "5 s", "5y", "1e9s", "99999999w", "99999999999999999999w", "5.5.5s"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
        assert_eq!([500, 5_000, 90_000, 604_800_000, 0].map(show_ms), ["500ms", "5s", "90s", "1w", "0ms"]);
    }
}
