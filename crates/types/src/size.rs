//! The size of a terminal in cells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Fewest columns: a wide character must fit, or the emulator reflows without end.
pub const COLS_MIN: u16 = 2;
/// Fewest rows.
pub const ROWS_MIN: u16 = 1;
/// Most columns: beyond any display, and still a screen of bounded memory.
pub const COLS_MAX: u16 = 1000;
/// Most rows.
pub const ROWS_MAX: u16 = 1000;

/// Columns by rows, always within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(extend("pattern" = "^[0-9]{1,4}x[0-9]{1,4}$"))]
pub struct Size {
    cols: u16,
    rows: u16,
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid size {0:?}; expected COLUMNSxROWS, for example 120x40")]
pub struct SizeError(pub String);

impl Size {
    /// The nearest size within the limits.
    #[must_use]
    pub fn clamped(cols: u16, rows: u16) -> Size {
        Size { cols: cols.clamp(COLS_MIN, COLS_MAX), rows: rows.clamp(ROWS_MIN, ROWS_MAX) }
    }

    /// Columns.
    #[must_use]
    pub fn cols(self) -> u16 {
        self.cols
    }

    /// Rows.
    #[must_use]
    pub fn rows(self) -> u16 {
        self.rows
    }
}

impl Default for Size {
    /// A terminal's default size.
    fn default() -> Size {
        Size { cols: 80, rows: 24 }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.cols, self.rows)
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let wrong = || SizeError(text.chars().take(32).collect());
        let (cols, rows) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
        let number = |t: &str| t.parse::<u32>().map(|n| n.min(u32::from(u16::MAX)) as u16).map_err(|_| wrong());
        let (cols, rows) = (number(cols)?, number(rows)?);
        if cols == 0 || rows == 0 {
            return Err(wrong());
        }
        Ok(Size::clamped(cols, rows))
    }
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        size.to_string()
    }
}

impl TryFrom<String> for Size {
    type Error = SizeError;

    fn try_from(text: String) -> Result<Size, SizeError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_pair_of_numbers_becomes_a_size_within_the_limits() {
        assert_eq!("120x40".parse(), Ok(Size { cols: 120, rows: 40 }));
        assert_eq!("1x1".parse(), Ok(Size { cols: 2, rows: 1 }));
        assert_eq!("10000x99999999".parse::<Size>().map(|s| s.to_string()), Ok("1000x1000".into()));
        for bad in ["", "80", "x", "0x0", "-1x5", "80x24x1", "80x99999999999"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
