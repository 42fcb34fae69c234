//! A run's command as it is signed and recorded: whole where it is short; else its beginning, its length and its hash.

use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Longest command that is recorded whole: what a person still reads. A journal of larger ones would be their copy.
pub const RECORDED_BYTES_MAX: usize = 4096;

/// The command as an [`crate::Ask::Run`] has it. No two commands are recorded alike: what is cut is longer than any whole one.
#[must_use]
pub fn recorded(command: &str) -> Cow<'_, str> {
    if command.len() <= RECORDED_BYTES_MAX {
        return Cow::Borrowed(command);
    }
    let beginning = &command[..command.floor_char_boundary(RECORDED_BYTES_MAX)];
    let hash = holdfast_types::hex_text(&Sha256::digest(command.as_bytes()));
    Cow::Owned(format!("{beginning} […] ({} bytes, sha256 {hash})", command.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_recorded_by_its_beginning_and_its_hash() {
        let (short, long) = ("x".repeat(RECORDED_BYTES_MAX), "ä".repeat(RECORDED_BYTES_MAX));
        assert_eq!(recorded(&short), short);
        let shown = recorded(&long);
        assert!(shown.starts_with(&"ä".repeat(RECORDED_BYTES_MAX / 2)) && shown.len() < RECORDED_BYTES_MAX + 200);
        assert!(shown.len() > RECORDED_BYTES_MAX, "it cannot be taken for a short one");
        let other = format!("{}!", &long[..long.len() - 2]);
        assert_ne!(recorded(&other), shown);
    }

    #[test]
    fn its_hash_is_that_of_sha256sum() {
        let text = recorded(&"a".repeat(5000)).into_owned();
        assert!(
            text.ends_with("(5000 bytes, sha256 c526c6222044dab5674de9c4ac7f4566ebb5e4d8bf9d8ea34c9cc8a7cc3c869c)"),
            "{text}"
        );
    }
}
