//! A few words in a file of their own, written over in place: which line of some growing file was the last.
//!
//! Written behind what it speaks of, so that a process that is killed in between leaves it behind and never ahead. Not synced. A
//! reader that finds it ahead, or finds it gone, knows that lines are missing.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::checksum;

/// Longest text.
const TEXT_BYTES_MAX: usize = 160;
/// The checksum in hex, a blank, the text, blanks up to here, a line feed.
const LINE_BYTES: usize = 16 + 1 + TEXT_BYTES_MAX + 1;

/// Writes the words. They fit a line of 160 bytes, and have no line feed.
///
/// # Errors
///
/// The file cannot be made or written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if text.len() > TEXT_BYTES_MAX || text.contains('\n') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Always as long: it is written over, never cut.
    let line = format!("{:016x} {text:<TEXT_BYTES_MAX$}\n", checksum(text.as_bytes()));
    let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)?;
    file.write_all_at(line.as_bytes(), 0)
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinned {
    /// This.
    Text(String),
    /// There is none.
    None,
    /// It cannot be read, or is not as it was written.
    Damaged,
}

/// Reads the words.
#[must_use]
pub fn read(path: &Path) -> Pinned {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Pinned::None,
        Err(_) => return Pinned::Damaged,
        Ok(file) => file,
    };
    let mut line = String::new();
    let is_read = file.take(2 * LINE_BYTES as u64).read_to_string(&mut line).is_ok();
    let parts = line.strip_suffix('\n').and_then(|line| line.split_once(' '));
    let Some((sum, text)) = parts.filter(|_| is_read && line.len() == LINE_BYTES) else { return Pinned::Damaged };
    let text = text.trim_end();
    if u64::from_str_radix(sum, 16) == Ok(checksum(text.as_bytes())) {
        Pinned::Text(text.to_owned())
    } else {
        Pinned::Damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_over_and_every_flipped_bit_and_cut_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pin");
        assert_eq!(read(&path), Pinned::None);
        write(&path, "a long text that comes first").unwrap();
        write(&path, "short").unwrap();
        assert_eq!(read(&path), Pinned::Text("short".into()));
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                std::fs::write(&path, &flipped).unwrap();
                assert!(matches!(read(&path), Pinned::Damaged) || at < 16, "byte {at} bit {bit}");
                assert_ne!(read(&path), Pinned::None);
                if let Pinned::Text(text) = read(&path) {
                    // The case of a digit of the checksum.
                    assert_eq!(text, "short");
                }
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read(&path), Pinned::Damaged, "cut at {at}");
        }
        assert!(write(&path, &"x".repeat(161)).is_err() && write(&path, "a\nb").is_err());
    }
}
