//! Lines that scrolled off the screen, on disk: compressed blocks in two segments that take turns.
//!
//! Lines come encoded by the `screen` crate. A segment that has the configured number of lines is closed and the one before
//! it removed, so that between one and two times that many lines exist, and dropping old ones costs nothing. A block is
//! u32 stored length, u32 raw length, u32 lines, u64 checksum of the stored bytes, then the bytes.
//!
//! A damaged block is skipped and counted, never fatal. A full disk keeps what is pending in memory, up to a bound.

use crate::store::{HistoryMark, checksum};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Pending lines are written once they reach this: blocks large enough to compress well.
const BLOCK_BYTES: usize = 32 * 1024;
/// A segment also closes here, however few its lines: a bound for lines of any length.
const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// While the disk takes nothing, this much is kept in memory; then the oldest go.
const PENDING_BYTES_MAX: usize = 1024 * 1024;
const BLOCK_HEADER_BYTES: usize = 20;

/// The history of one session.
#[derive(Debug)]
pub struct History {
    dir: PathBuf,
    lines_max: u32,
    mark: HistoryMark,
    pending: Vec<u8>,
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
    /// A history that goes on from a keyframe's mark; what was written after it is taken back, the output that
    /// led to it will come again.
    pub fn resume(dir: &Path, lines_max: u32, mark: HistoryMark, pending: Vec<u8>) -> History {
        let history = History { dir: dir.to_owned(), lines_max: lines_max.max(1), mark, pending };
        let path = history.segment_path(mark.segment);
        if let Ok(file) = OpenOptions::new().write(true).open(&path)
            && file.metadata().is_ok_and(|m| m.len() > mark.bytes)
        {
            let _ = file.set_len(mark.bytes);
        }
        let _ = std::fs::remove_file(history.segment_path(mark.segment + 1));
        history
    }

    /// Where new lines are appended; after it, [`History::settle`].
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// What a keyframe needs to remember.
    #[must_use]
    pub fn mark(&self) -> (HistoryMark, &[u8]) {
        (self.mark, &self.pending)
    }

    /// Writes pending lines out if there are enough of them.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.pending.len() < BLOCK_BYTES {
            return Ok(());
        }
        let written = self.write_block();
        if written.is_err() && self.pending.len() > PENDING_BYTES_MAX {
            let surplus = self.pending.len() - PENDING_BYTES_MAX;
            let cut = self.pending[surplus..].iter().position(|b| *b == b'\n').map_or(surplus, |at| surplus + at + 1);
            self.pending.drain(..cut);
        }
        written
    }

    fn write_block(&mut self) -> io::Result<()> {
        let lines = count_lines(&self.pending);
        let stored = lz4_flex::compress(&self.pending);
        let mut block = Vec::with_capacity(BLOCK_HEADER_BYTES + stored.len());
        block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        block.extend_from_slice(&(self.pending.len() as u32).to_le_bytes());
        block.extend_from_slice(&lines.to_le_bytes());
        block.extend_from_slice(&checksum(&stored).to_le_bytes());
        block.extend_from_slice(&stored);
        if self.mark.lines >= self.lines_max || self.mark.bytes >= SEGMENT_BYTES_MAX {
            if let Some(old) = self.mark.segment.checked_sub(1) {
                let _ = std::fs::remove_file(self.segment_path(old));
            }
            self.mark = HistoryMark { segment: self.mark.segment + 1, lines: 0, bytes: 0 };
        }
        let path = self.segment_path(self.mark.segment);
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        // A short write (full disk) leaves a torn block: cut it off again, or everything behind it would be unreadable.
        if let Err(error) = file.write_all(&block) {
            let _ = file.set_len(self.mark.bytes);
            return Err(error);
        }
        self.mark.bytes += block.len() as u64;
        self.mark.lines += lines;
        self.pending.clear();
        Ok(())
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mark == HistoryMark::default() && self.pending.is_empty()
    }

    /// The newest `count` lines, at most as many as are kept.
    #[must_use]
    pub fn tail(&self, count: u32) -> Lines {
        let count = count.min(self.lines_max) as usize;
        let mut lines = Lines::default();
        if count == 0 {
            return lines;
        }
        if self.mark.lines < self.lines_max
            && let Some(old) = self.mark.segment.checked_sub(1)
        {
            self.read_segment(old, u64::MAX, &mut lines);
        }
        self.read_segment(self.mark.segment, self.mark.bytes, &mut lines);
        lines.encoded.extend_from_slice(&self.pending);
        let surplus = count_lines(&lines.encoded) as usize;
        if let Some(drop) = surplus.checked_sub(count).filter(|d| *d > 0) {
            let cut = lines.encoded.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(drop - 1).map_or(0, |(at, _)| at + 1);
            lines.encoded.drain(..cut);
        }
        lines
    }

    fn read_segment(&self, segment: u32, bytes: u64, lines: &mut Lines) {
        let Ok(content) = File::open(self.segment_path(segment)).and_then(|file| read_up_to(file, bytes)) else { return };
        let mut rest = content.as_slice();
        while rest.len() >= BLOCK_HEADER_BYTES {
            let field = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes")) as usize;
            let (stored, raw) = (field(0), field(4));
            let sum = u64::from_le_bytes(rest[12..20].try_into().expect("eight bytes"));
            let Some(block) = rest[BLOCK_HEADER_BYTES..].get(..stored) else { break };
            let sound = checksum(block) == sum && raw <= PENDING_BYTES_MAX + BLOCK_BYTES * 64;
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
    encoded.iter().filter(|b| **b == b'\n').count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(history: &mut History, range: std::ops::Range<u32>) {
        for n in range {
            history.pending().extend_from_slice(format!("line {n} {}\n", "x".repeat(90)).as_bytes());
            history.settle().unwrap();
        }
    }

    fn first_word(lines: &Lines) -> String {
        String::from_utf8_lossy(&lines.encoded).split(' ').nth(1).unwrap_or("").to_owned()
    }

    #[test]
    fn the_newest_lines_come_back_and_old_ones_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::resume(dir.path(), 1000, HistoryMark::default(), vec![]);
        fill(&mut history, 0..10_000);
        let lines = history.tail(1000);
        assert_eq!(count_lines(&lines.encoded), 1000);
        assert_eq!(first_word(&lines), "9000");
        assert_eq!(first_word(&history.tail(10)), "9990");
        assert!(history.tail(0).encoded.is_empty());
        let files = std::fs::read_dir(dir.path()).unwrap().count();
        assert!(files <= 2, "{files} segments");
    }

    #[test]
    fn what_was_written_after_the_mark_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::resume(dir.path(), 5000, HistoryMark::default(), vec![]);
        fill(&mut history, 0..2000);
        let (mark, pending) = history.mark();
        let (mark, pending) = (mark, pending.to_vec());
        let before = history.tail(5000).encoded;
        fill(&mut history, 2000..4000);
        let resumed = History::resume(dir.path(), 5000, mark, pending);
        assert_eq!(resumed.tail(5000).encoded, before);
    }

    #[test]
    fn a_damaged_block_costs_only_its_own_lines() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::resume(dir.path(), 5000, HistoryMark::default(), vec![]);
        fill(&mut history, 0..4000);
        let path = dir.path().join("history.0");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        let lines = history.tail(5000);
        assert_eq!(lines.damaged_blocks, 1);
        assert!(count_lines(&lines.encoded) > 3000);
    }
}
