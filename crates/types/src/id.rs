//! Session identity: `ses_` and 26 characters, 128 random bits, never reused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Digits of the text form: base 32 without the letters people misread.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const PREFIX: &str = "ses_";
const DIGIT_COUNT: usize = 26;

/// A session's identity for all time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(extend("pattern" = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
pub struct SessionId(u128);

/// Why a text is not a session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid session id {0:?}; expected `ses_` and {DIGIT_COUNT} characters")]
pub struct IdError(pub String);

impl SessionId {
    /// An id from 128 bits that the caller drew from a good source.
    #[must_use]
    pub fn from_random_bits(bits: u128) -> SessionId {
        SessionId(bits)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"ses_00000000000000000000000000";
        let mut rest = self.0;
        for place in text[PREFIX.len()..].iter_mut().rev() {
            *place = DIGITS[(rest & 31) as usize];
            rest >>= 5;
        }
        f.pad(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<SessionId, IdError> {
        let wrong = || IdError(text.chars().take(64).collect());
        let digits = text.strip_prefix(PREFIX).filter(|d| d.len() == DIGIT_COUNT).ok_or_else(wrong)?;
        let mut bits: u128 = 0;
        for byte in digits.bytes() {
            let digit = DIGITS.iter().position(|d| *d == byte).ok_or_else(wrong)?;
            // 26 digits are 130 bits: the first may only use three of its five.
            if bits >> 123 != 0 {
                return Err(wrong());
            }
            bits = bits << 5 | digit as u128;
        }
        Ok(SessionId(bits))
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for SessionId {
    type Error = IdError;

    fn try_from(text: String) -> Result<SessionId, IdError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_reads_back_as_the_same_id() {
        for bits in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            let id = SessionId::from_random_bits(bits);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.to_string().len(), 30);
        }
    }

    #[test]
    fn texts_that_are_no_ids_are_refused() {
        for text in ["", "ses_", "ses_u0000000000000000000000000", "ses_zzzzzzzzzzzzzzzzzzzzzzzzzz", "abc"] {
            assert!(text.parse::<SessionId>().is_err(), "{text}");
        }
    }
}
