//! Values as people write them on the command line: `512k`, `1MiB`, `5s`, `1d`, `120x40`; rights: `observe,run`, `all`, `none`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use holdfast_types::{RING_BYTES_MAX, RING_BYTES_MIN, Rights, Size};
use holdfast_wire::lives::Recovery;
use holdfast_wire::reaping::ReapAfter;
use holdfast_wire::seam::Seam;
use std::fmt;
use std::str::FromStr;

/// The shortest time after which an idle session may go: less is a slip of the finger.
const REAP_MS_MIN: u64 = 1_000;

/// Bytes of a ring, within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// A span of time; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds {
    /// In milliseconds.
    pub ms: u64,
}

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueError {
    NotBytes,
    BytesOutside,
    NotTime,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::NotBytes => write!(f, "expected a number of bytes, for example 512k or 4MiB"),
            ValueError::BytesOutside => {
                write!(f, "expected {} KiB to {} MiB", RING_BYTES_MIN >> 10, RING_BYTES_MAX >> 20)
            }
            ValueError::NotTime => write!(f, "expected seconds, or a time like 500ms, 5s, 10m, 2h or 1d"),
        }
    }
}

impl std::error::Error for ValueError {}

/// A number of bytes; none: more than there can be.
pub fn bytes(text: &str) -> Result<Option<u64>, ValueError> {
    let (number, unit) = split(text);
    let number: u64 = number.parse().map_err(|_| ValueError::NotBytes)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(ValueError::NotBytes),
    };
    Ok(number.checked_mul(1 << shift))
}

/// How long a session may be idle: a time, or `never`.
pub fn reap_after(text: &str) -> Result<ReapAfter, String> {
    let wrong = || format!("expected never, or a time of at least {} s like 30m, 12h or 7d", REAP_MS_MIN / 1000);
    if text == "never" {
        return Ok(ReapAfter::Never);
    }
    let Seconds { ms } = text.parse().map_err(|_| wrong())?;
    if ms < REAP_MS_MIN { Err(wrong()) } else { Ok(ReapAfter::Idle(ms)) }
}

impl FromStr for Bytes {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Bytes, ValueError> {
        let bytes = bytes(text)?.ok_or(ValueError::BytesOutside)?;
        match bytes {
            RING_BYTES_MIN..=RING_BYTES_MAX => Ok(Bytes(bytes)),
            _ => Err(ValueError::BytesOutside),
        }
    }
}

impl FromStr for Seconds {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Seconds, ValueError> {
        let (number, unit) = split(text);
        let number: f64 = number.parse().map_err(|_| ValueError::NotTime)?;
        let unit_ms = match unit {
            "ms" => 1.0,
            "" | "s" => 1_000.0,
            "m" | "min" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return Err(ValueError::NotTime),
        };
        // The cast saturates: a number beyond u64 is as good as for ever.
        Ok(Seconds { ms: (number * unit_ms).round() as u64 })
    }
}

/// Rights by their words.
pub fn rights(text: &str) -> Result<Rights, String> {
    match text.trim() {
        "all" => Ok(Rights::ALL),
        "none" => Ok(Rights::NONE),
        words => words.parse().map_err(|e: holdfast_types::RightsError| e.to_string()),
    }
}

/// Rights as [`rights`] reads them.
pub fn rights_text(rights: Rights) -> String {
    match rights {
        Rights::ALL => "all".into(),
        Rights::NONE => "none".into(),
        some => some.to_string(),
    }
}

/// Digits (with a point) and what follows them.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// A size as it was asked for; one that no terminal can have is refused, not replaced.
pub fn size(text: &str) -> Result<Size, String> {
    let size: Size = text.parse().map_err(|error: holdfast_types::SizeError| error.to_string())?;
    let asked: Vec<u32> = text.split(['x', 'X']).filter_map(|number| number.parse().ok()).collect();
    if asked == [u32::from(size.cols()), u32::from(size.rows())] {
        return Ok(size);
    }
    Err(format!("no terminal can have this size; the nearest is {size}"))
}

/// Times a failing command is run again within ten minutes, where none is said.
const RESTARTS: u32 = 5;

pub fn seam() -> impl TypedValueParser<Value = Seam> {
    PossibleValuesParser::new([Seam::Exec.word()]).map(|_| Seam::Exec)
}

pub fn recovery() -> impl TypedValueParser<Value = Recovery> {
    PossibleValuesParser::new(["auto", "manual"])
        .map(|word| if word == "auto" { Recovery::Auto } else { Recovery::Manual })
}

/// `on-failure`, `on-failure:3`.
pub fn restart(text: &str) -> Result<u32, String> {
    let wrong = || "expected on-failure or on-failure:N".to_owned();
    match text.strip_prefix("on-failure").ok_or_else(wrong)? {
        "" => Ok(RESTARTS),
        rest => {
            rest.strip_prefix(':').and_then(|times| times.parse().ok()).filter(|times| *times > 0).ok_or_else(wrong)
        }
    }
}

/// `K=V` as it is, where K can name a variable.
pub fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.is_empty() => Ok(text.to_owned()),
        Some(_) | None => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_with_and_without_units() {
        for (text, bytes) in
            [("262144", 262_144), ("512k", 512 << 10), ("1MiB", 1 << 20), ("2 m", 2 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "k", "1.5m", "1x", "-1", "é"] {
            assert_eq!(text.parse::<Bytes>(), Err(ValueError::NotBytes), "{text}");
        }
        for text in ["1", "255k", "2g", "99999999999999999g"] {
            assert_eq!(text.parse::<Bytes>(), Err(ValueError::BytesOutside), "{text}");
        }
    }

    #[test]
    fn rights_read_as_they_are_shown() {
        for text in ["all", "none", "observe,run"] {
            assert_eq!(rights(text).map(rights_text).as_deref(), Ok(text));
        }
        assert!(rights("observe,fly").unwrap_err().contains("unknown right \"fly\""));
    }

    #[test]
    fn times_read_in_seconds_or_with_a_unit() {
        for (text, ms) in [("0", 0), ("5", 5_000), ("0.5", 500), ("250ms", 250), ("5s", 5_000), ("1d", 86_400_000)] {
            assert_eq!(text.parse(), Ok(Seconds { ms }), "{text}");
        }
        for text in ["", "s", "-1", "1w", "1.2.3", "soon"] {
            assert_eq!(text.parse::<Seconds>(), Err(ValueError::NotTime), "{text}");
        }
    }
}
