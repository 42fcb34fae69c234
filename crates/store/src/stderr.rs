//! What a run wrote to its standard error, where that is kept apart from its terminal: its beginning and its end, in one file of
//! bounded size.
//!
//! First the number of bytes that were written in all, then the first `BEGIN_BYTES`, then a ring of the last `END_BYTES`. Who
//! writes has a lock on the file for as long as more may come ([`is_whole`]).

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Its name in a session's directory.
pub const NAME: &str = "stderr";
/// Kept from the beginning: the first error is most often the cause.
const BEGIN_BYTES: u64 = 64 * 1024;
/// Kept from the end.
const END_BYTES: u64 = 192 * 1024;
/// The count before both.
const HEAD_BYTES: u64 = 8;
/// Copied at once.
const PIECE_BYTES: usize = 16 * 1024;

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The beginning; all of it where nothing is left out.
    pub begin: Vec<u8>,
    /// Bytes between the two.
    pub left_out: u64,
    /// The end.
    pub end: Vec<u8>,
}

/// A new file for a run, locked until it and its copies are closed.
pub fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all_at(&0_u64.to_le_bytes(), 0)?;
    Ok(file)
}

/// Copies everything there is to read into such a file.
pub fn copy(mut from: impl Read, file: &File) -> io::Result<()> {
    let mut total = 0_u64;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &piece[..count];
        while !rest.is_empty() {
            let (place, room) = place_of(total);
            let part = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            // A full disk loses this, and not the run that writes it.
            let _ = file.write_all_at(&rest[..part], place);
            total += part as u64;
            rest = &rest[part..];
        }
        let _ = file.write_all_at(&total.to_le_bytes(), 0);
    }
}

/// Where a byte lies, and how many follow it in one piece.
fn place_of(at: u64) -> (u64, u64) {
    match at.checked_sub(BEGIN_BYTES) {
        None => (HEAD_BYTES + at, BEGIN_BYTES - at),
        Some(behind) => (HEAD_BYTES + BEGIN_BYTES + behind % END_BYTES, END_BYTES - behind % END_BYTES),
    }
}

/// Nothing more comes: nobody has the file open to write.
pub fn is_whole(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return true };
    !matches!(flock(&file, FlockOperation::NonBlockingLockShared), Err(rustix::io::Errno::WOULDBLOCK))
}

/// The first and the last bytes of it, at most so many each. None: the run has none of its own.
pub fn read(path: &Path, begin_max: u64, end_max: u64) -> io::Result<Option<Kept>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut total = [0; HEAD_BYTES as usize];
    file.read_exact_at(&mut total, 0)?;
    let total = u64::from_le_bytes(total);
    let (begin_max, end_max) = (begin_max.min(BEGIN_BYTES), end_max.min(END_BYTES));
    if total <= begin_max + end_max && total <= BEGIN_BYTES + END_BYTES {
        return Ok(Some(Kept { begin: bytes(&file, 0, total)?, left_out: 0, end: Vec::new() }));
    }
    let end_at = total - end_max;
    Ok(Some(Kept {
        begin: bytes(&file, 0, begin_max)?,
        left_out: end_at - begin_max,
        end: bytes(&file, end_at, total)?,
    }))
}

/// The bytes between two places, both of which are kept.
fn bytes(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = from;
    while at < to {
        let (place, room) = place_of(at);
        let mut part = vec![0; usize::try_from(room.min(to - at)).unwrap_or(PIECE_BYTES)];
        file.read_exact_at(&mut part, place)?;
        at += part.len() as u64;
        out.extend(part);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(length: usize) -> (Vec<u8>, Kept) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let file = create(&path).unwrap();
        assert!(!is_whole(&path), "somebody writes");
        let all: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        copy(all.as_slice(), &file).unwrap();
        drop(file);
        assert!(is_whole(&path));
        let kept = read(&path, 4096, 12 * 1024).unwrap().unwrap();
        (all, kept)
    }

    #[test]
    fn what_is_short_is_kept_whole_and_of_the_rest_beginning_and_end() {
        for length in [0, 1, 4096, 16 * 1024] {
            let (all, kept) = kept(length);
            assert_eq!((kept.begin, kept.left_out, kept.end), (all, 0, Vec::new()), "{length}");
        }
        for length in [16 * 1024 + 1, 70_000, 300_000, 1_000_003] {
            let (all, kept) = kept(length);
            assert_eq!(kept.begin, all[..4096], "{length}");
            assert_eq!(kept.end, all[length - 12 * 1024..], "{length}");
            assert_eq!(kept.left_out, (length - 16 * 1024) as u64);
        }
    }

    #[test]
    fn a_file_is_made_once_and_takes_bounded_space() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(read(&path, 1, 1).unwrap(), None);
        let file = create(&path).unwrap();
        assert!(create(&path).is_err());
        copy(io::repeat(7).take(10_000_000), &file).unwrap();
        assert_eq!(file.metadata().unwrap().len(), HEAD_BYTES + BEGIN_BYTES + END_BYTES);
    }
}
