//! The human name of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name: fits a table column and a file name anywhere.
pub const NAME_BYTES_MAX: usize = 64;

/// A name of one to 64 letters, digits, dots, underscores and hyphens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(extend("pattern" = "^[A-Za-z0-9._][A-Za-z0-9._-]{0,63}$"))]
pub struct SessionName(String);

/// Why a text cannot name a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("a name cannot be empty")]
    Empty,
    /// Over [`NAME_BYTES_MAX`].
    #[error("name too long: {0} characters, at most {NAME_BYTES_MAX} allowed")]
    TooLong(usize),
    /// A character outside `[A-Za-z0-9._-]`.
    #[error("invalid character {0:?} in the name; allowed are A-Z a-z 0-9 . _ -")]
    Character(char),
    /// It reads as a session id, so a command could not tell which is meant.
    #[error("a name cannot start with `ses_`, because ids do")]
    LooksLikeId,
    /// It reads as an option.
    #[error("a name cannot start with a hyphen, because commands would read it as an option")]
    LooksLikeOption,
}

impl SessionName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<SessionName, NameError> {
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-')) {
            return Err(NameError::Character(odd));
        }
        match text.len() {
            0 => Err(NameError::Empty),
            n if n > NAME_BYTES_MAX => Err(NameError::TooLong(n)),
            _ if text.starts_with("ses_") => Err(NameError::LooksLikeId),
            _ if text.starts_with('-') => Err(NameError::LooksLikeOption),
            _ => Ok(SessionName(text.to_owned())),
        }
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<SessionName> for String {
    fn from(name: SessionName) -> String {
        name.0
    }
}

impl TryFrom<String> for SessionName {
    type Error = NameError;

    fn try_from(text: String) -> Result<SessionName, NameError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_what_a_path_and_a_shell_take_without_quotes() {
        for good in ["main", "a", "build.2", "x_Y-9", &"n".repeat(64)] {
            assert!(good.parse::<SessionName>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "ä", "a/b", "ses_x", "-d", &"n".repeat(65)] {
            assert!(bad.parse::<SessionName>().is_err(), "{bad}");
        }
    }
}
