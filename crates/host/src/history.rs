//! Lines that scrolled off the screen: the newest in memory, the rest on disk in two segments that take turns.
//!
//! Lines come encoded by the `screen` crate. While output flows they gather in memory, where most lines of a flood are
//! dropped again for newer ones without ever being written; when it rests they are appended to a segment, in compressed
//! blocks. A segment that has the configured number of lines is closed and the one before it removed, so that between one
//! and two times that many lines exist, and dropping old ones costs nothing. A block is u32 stored length, u32 raw length,
//! u32 lines, u64 checksum of the stored bytes, then the bytes.
//!
//! A damaged block is skipped and counted, never fatal. Lines that were only in memory when a host was killed are missed by
//! number, and a line says so.

use crate::store::{HistoryMark, checksum};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Fewer bytes than this are not worth a block: a keyframe carries them.
const BLOCK_BYTES: usize = 32 * 1024;
/// A segment also closes here, however few its lines: a bound for lines of any length.
const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Lines in memory take at most this much, however long they are.
const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;
const BLOCK_HEADER_BYTES: usize = 20;
/// A segment that replaces all others leaves a number out, so that the one before it is none of its past.
const REPLACING: u32 = 2;

/// The history of one session.
#[derive(Debug)]
pub struct History {
    dir: PathBuf,
    lines_max: u32,
    mark: HistoryMark,
    pending: Vec<u8>,
    pending_lines: u32,
    /// Bytes of `pending` whose lines are counted.
    counted: usize,
}

/// What a keyframe remembers of a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remembered {
    /// Where the files stood.
    pub mark: HistoryMark,
    /// Lines that are in no file yet.
    pub pending: Vec<u8>,
    /// Lines that were too many to remember.
    pub unsaved_lines: u32,
}

/// Lines read back.
#[derive(Debug, Default)]
pub struct Lines {
    /// Encoded lines, oldest first.
    pub encoded: Vec<u8>,
    /// Blocks that could not be read.
    pub damaged_blocks: u32,
}

impl History {
    /// A history that goes on from what a keyframe remembers; what was written after it is taken back, the output that
    /// led to it will come again.
    pub fn resume(dir: &Path, lines_max: u32, remembered: Remembered) -> History {
        let Remembered { mark, pending, unsaved_lines } = remembered;
        let lines_max = lines_max.max(1);
        let mut history = History { dir: dir.to_owned(), lines_max, mark, pending, pending_lines: 0, counted: 0 };
        if let Ok(file) = OpenOptions::new().write(true).open(history.segment_path(mark.segment))
            && file.metadata().is_ok_and(|m| m.len() > mark.bytes)
        {
            let _ = file.set_len(mark.bytes);
        }
        for begun in 1..=REPLACING {
            let _ = std::fs::remove_file(history.segment_path(mark.segment + begun));
        }
        history.forget_old();
        if unsaved_lines > 0 {
            let text = format!("[holdfast: {unsaved_lines} lines were lost here when the host was killed]\n");
            history.pending.extend_from_slice(text.as_bytes());
        }
        history.settle();
        history
    }

    /// Where new lines are appended; after it, [`History::settle`].
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// What a keyframe needs to remember.
    #[must_use]
    pub fn remember(&self) -> Remembered {
        let few = self.pending.len() < 2 * BLOCK_BYTES;
        Remembered {
            mark: self.mark,
            pending: if few { self.pending.clone() } else { Vec::new() },
            unsaved_lines: if few { 0 } else { self.pending_lines },
        }
    }

    /// Counts what was appended, and drops what newer lines have replaced.
    pub fn settle(&mut self) {
        self.pending_lines += count_lines(&self.pending[self.counted..]);
        self.counted = self.pending.len();
        if self.pending_lines >= 2 * self.lines_max {
            self.drop_oldest(self.pending_lines - self.lines_max);
        }
        while self.pending.len() > PENDING_BYTES_MAX && self.pending_lines > 1 {
            self.drop_oldest(self.pending_lines / 2);
        }
    }

    fn drop_oldest(&mut self, lines: u32) {
        let cut = memchr::memchr_iter(b'\n', &self.pending).nth(lines as usize - 1).map_or(0, |at| at + 1);
        self.pending.drain(..cut);
        self.pending_lines -= lines;
        self.counted = self.pending.len();
    }

    /// Writes the lines in memory out, if they are worth it, and says whether it did. Old segments stay until
    /// [`History::forget_old`]: the keyframe on disk still means them.
    pub fn flush(&mut self) -> io::Result<bool> {
        if self.pending.len() < BLOCK_BYTES {
            return Ok(false);
        }
        let before = self.mark;
        if self.pending_lines >= self.lines_max {
            self.drop_oldest_but(self.lines_max);
            self.mark = HistoryMark { segment: before.segment + REPLACING, lines: 0, bytes: 0 };
        } else if before.lines >= self.lines_max || before.bytes >= SEGMENT_BYTES_MAX {
            self.mark = HistoryMark { segment: before.segment + 1, lines: 0, bytes: 0 };
        }
        if let Err(error) = self.append_pending() {
            // A torn block would make everything behind it unreadable.
            let file = OpenOptions::new().write(true).open(self.segment_path(self.mark.segment));
            let start = if self.mark.segment == before.segment { before.bytes } else { 0 };
            let _ = file.and_then(|file| file.set_len(start));
            self.mark = before;
            return Err(error);
        }
        self.pending = Vec::new();
        (self.pending_lines, self.counted) = (0, 0);
        Ok(true)
    }

    fn drop_oldest_but(&mut self, lines: u32) {
        if self.pending_lines > lines {
            self.drop_oldest(self.pending_lines - lines);
        }
    }

    fn append_pending(&mut self) -> io::Result<()> {
        let path = self.segment_path(self.mark.segment);
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let mut rest = self.pending.as_slice();
        while !rest.is_empty() {
            let cut = rest.get(2 * BLOCK_BYTES..).and_then(|r| memchr::memchr(b'\n', r));
            let (block, after) = rest.split_at(cut.map_or(rest.len(), |at| 2 * BLOCK_BYTES + at + 1));
            let (stored, lines) = (lz4_flex::compress(block), count_lines(block));
            let mut header = [0; BLOCK_HEADER_BYTES];
            header[..4].copy_from_slice(&(stored.len() as u32).to_le_bytes());
            header[4..8].copy_from_slice(&(block.len() as u32).to_le_bytes());
            header[8..12].copy_from_slice(&lines.to_le_bytes());
            header[12..].copy_from_slice(&checksum(&stored).to_le_bytes());
            file.write_all(&header)?;
            file.write_all(&stored)?;
            self.mark.bytes += (header.len() + stored.len()) as u64;
            self.mark.lines += lines;
            rest = after;
        }
        Ok(())
    }

    /// Removes segments that are no longer part of the history; the keyframe on disk must mean the present one by now.
    pub fn forget_old(&self) {
        for old in [2, 3].into_iter().filter_map(|back| self.mark.segment.checked_sub(back)) {
            let _ = std::fs::remove_file(self.segment_path(old));
        }
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mark == HistoryMark::default() && self.pending.is_empty()
    }

    /// The newest `count` lines, at most as many as are kept.
    #[must_use]
    pub fn tail(&self, count: u32) -> Lines {
        let count = count.min(self.lines_max);
        let mut lines = Lines::default();
        if count == 0 {
            return lines;
        }
        if self.pending_lines < count {
            if self.mark.lines < self.lines_max
                && let Some(old) = self.mark.segment.checked_sub(1)
            {
                self.read_segment(old, u64::MAX, &mut lines);
            }
            self.read_segment(self.mark.segment, self.mark.bytes, &mut lines);
        }
        lines.encoded.extend_from_slice(&self.pending);
        let surplus = count_lines(&lines.encoded).saturating_sub(count) as usize;
        if surplus > 0 {
            let cut = memchr::memchr_iter(b'\n', &lines.encoded).nth(surplus - 1).map_or(0, |at| at + 1);
            lines.encoded.drain(..cut);
        }
        lines
    }

    fn read_segment(&self, segment: u32, bytes: u64, lines: &mut Lines) {
        let Ok(content) = File::open(self.segment_path(segment)).and_then(|file| read_up_to(file, bytes)) else {
            return;
        };
        let mut rest = content.as_slice();
        while rest.len() >= BLOCK_HEADER_BYTES {
            let field = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes")) as usize;
            let (stored, raw) = (field(0), field(4));
            let sum = u64::from_le_bytes(rest[12..20].try_into().expect("eight bytes"));
            let Some(block) = rest[BLOCK_HEADER_BYTES..].get(..stored) else { break };
            let sound = checksum(block) == sum && raw <= PENDING_BYTES_MAX;
            match sound.then(|| lz4_flex::decompress(block, raw)) {
                Some(Ok(mut text)) => lines.encoded.append(&mut text),
                Some(Err(_)) | None => lines.damaged_blocks += 1,
            }
            rest = &rest[BLOCK_HEADER_BYTES + stored..];
        }
        lines.damaged_blocks += u32::from(!rest.is_empty());
    }

    fn segment_path(&self, segment: u32) -> PathBuf {
        self.dir.join(format!("history.{segment}"))
    }
}

fn read_up_to(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, bytes), &mut content)?;
    Ok(content)
}

fn count_lines(encoded: &[u8]) -> u32 {
    memchr::memchr_iter(b'\n', encoded).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(dir: &tempfile::TempDir, lines_max: u32) -> History {
        History::resume(dir.path(), lines_max, Remembered::default())
    }

    /// Appends numbered lines, flushing every so many as a session that rests now and then does.
    fn fill(history: &mut History, range: std::ops::Range<u32>, rest_every: u32) {
        for n in range {
            history.pending().extend_from_slice(format!("line {n} {}\n", "x".repeat(90)).as_bytes());
            history.settle();
            if n % rest_every == 0 {
                history.flush().unwrap();
                history.forget_old();
            }
        }
    }

    fn first_word(lines: &Lines) -> String {
        String::from_utf8_lossy(&lines.encoded).split(' ').nth(1).unwrap_or("").to_owned()
    }

    #[test]
    fn the_newest_lines_come_back_and_old_ones_make_room() {
        for rest_every in [400, 700, 3000, 1_000_000] {
            let dir = tempfile::tempdir().unwrap();
            let mut history = history(&dir, 1000);
            fill(&mut history, 0..10_000, rest_every);
            let lines = history.tail(1000);
            assert_eq!(count_lines(&lines.encoded), 1000, "rests every {rest_every}");
            assert_eq!(first_word(&lines), "9000", "rests every {rest_every}");
            assert_eq!(first_word(&history.tail(10)), "9990");
            assert!(history.tail(0).encoded.is_empty());
            let files = std::fs::read_dir(dir.path()).unwrap().count();
            assert!(files <= 3, "{files} segments");
            assert!(history.pending.len() < 300_000, "lines that newer ones replaced are dropped");
        }
    }

    #[test]
    fn a_flood_is_not_written_line_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = history(&dir, 1000);
        fill(&mut history, 1..50_000, 1_000_000);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(history.flush().unwrap());
        let bytes: u64 = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes < 30_000, "{bytes} bytes for 100,000 of repeated text");
        assert_eq!(first_word(&history.tail(1000)), "49000");
    }

    #[test]
    fn what_was_written_after_the_keyframe_is_taken_back() {
        for rest_every in [400, 2500] {
            let dir = tempfile::tempdir().unwrap();
            let mut history = history(&dir, 1000);
            fill(&mut history, 0..2600, rest_every);
            history.flush().unwrap();
            let remembered = history.remember();
            history.forget_old();
            let before = history.tail(1000).encoded;
            // Killed in the middle of a flush: nothing is forgotten before the next keyframe.
            fill(&mut history, 2601..4400, 1_000_000);
            history.flush().unwrap();
            let resumed = History::resume(dir.path(), 1000, remembered);
            assert_eq!(
                first_word(&resumed.tail(1000)),
                first_word(&Lines { encoded: before.clone(), damaged_blocks: 0 })
            );
            assert_eq!(resumed.tail(1000).encoded, before, "rests every {rest_every}");
        }
    }

    #[test]
    fn lines_that_were_only_in_memory_are_missed_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = history(&dir, 5000);
        fill(&mut history, 0..10, 1_000_000);
        assert_eq!(history.remember().unsaved_lines, 0, "a few are part of the keyframe");
        fill(&mut history, 10..2000, 1_000_000);
        let resumed = History::resume(dir.path(), 5000, history.remember());
        let text = String::from_utf8(resumed.tail(5000).encoded).unwrap();
        assert!(text.contains("2000 lines were lost here"), "{text}");
    }

    #[test]
    fn a_damaged_block_costs_only_its_own_lines() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = history(&dir, 5000);
        fill(&mut history, 0..4000, 1_000_000);
        history.flush().unwrap();
        let path = dir.path().join("history.0");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        let lines = history.tail(5000);
        assert_eq!(lines.damaged_blocks, 1);
        assert!(count_lines(&lines.encoded) > 3000);
    }
}
