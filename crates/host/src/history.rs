//! Lines that scrolled off the screen, on disk: blocks in two segments that take turns.
//!
//! Lines come encoded by the `screen` crate. A segment that has the configured number of lines is closed and the one before
//! it removed, so that between one and two times that many lines exist, and dropping old ones costs nothing. A block is
//! u32 stored length, u32 raw length, u32 lines, u64 checksum of the stored bytes, then the bytes. While output
//! flows blocks are written as they are; when it rests the kept lines are rewritten compressed.
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
/// In the field of the raw length: the bytes are stored compressed.
const COMPRESSED: u32 = 1 << 31;
/// A rewriting leaves a number out, so that the segment before it is none of its past.
const REWRITTEN: u32 = 2;
/// Fewer bytes than this are left as they are when output rests.
const COMPACT_BYTES_MIN: u64 = 64 * 1024;

/// The history of one session.
#[derive(Debug)]
pub struct History {
    dir: PathBuf,
    lines_max: u32,
    mark: HistoryMark,
    pending: Vec<u8>,
    /// Bytes stored since the last rewriting.
    loose_bytes: u64,
    /// The segment being written to, open while lines keep coming.
    open: Option<(u32, File)>,
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
        let history =
            History { dir: dir.to_owned(), lines_max: lines_max.max(1), mark, pending, loose_bytes: 0, open: None };
        let path = history.segment_path(mark.segment);
        if let Ok(file) = OpenOptions::new().write(true).open(&path)
            && file.metadata().is_ok_and(|m| m.len() > mark.bytes)
        {
            let _ = file.set_len(mark.bytes);
        }
        // Begun after the mark, or left behind by a rewriting before it.
        for begun in 1..=REWRITTEN {
            let _ = std::fs::remove_file(history.segment_path(mark.segment + begun));
        }
        history.forget_old();
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
        if self.mark.lines >= self.lines_max || self.mark.bytes >= SEGMENT_BYTES_MAX {
            if let Some(old) = self.mark.segment.checked_sub(1) {
                let _ = std::fs::remove_file(self.segment_path(old));
            }
            self.mark = HistoryMark { segment: self.mark.segment + 1, lines: 0, bytes: 0 };
        }
        let lines = count_lines(&self.pending);
        let pending = std::mem::take(&mut self.pending);
        let written = self.append(&pending, pending.len() as u32, lines);
        self.pending = pending;
        self.loose_bytes += written?;
        self.pending.clear();
        Ok(())
    }

    /// Appends a block to the segment and gives its length there.
    fn append(&mut self, stored: &[u8], raw: u32, lines: u32) -> io::Result<u64> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        header[..4].copy_from_slice(&(stored.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&raw.to_le_bytes());
        header[8..12].copy_from_slice(&lines.to_le_bytes());
        header[12..].copy_from_slice(&checksum(stored).to_le_bytes());
        let mut file = match self.open.take() {
            Some((segment, file)) if segment == self.mark.segment => file,
            Some(_) | None => {
                let path = self.segment_path(self.mark.segment);
                OpenOptions::new().create(true).append(true).mode(0o600).open(path)?
            }
        };
        // A short write (full disk) leaves a torn block: cut it off again, or everything behind it would be unreadable.
        if let Err(error) = file.write_all(&header).and_then(|()| file.write_all(stored)) {
            let _ = file.set_len(self.mark.bytes);
            return Err(error);
        }
        self.open = Some((self.mark.segment, file));
        let written = (header.len() + stored.len()) as u64;
        self.mark.bytes += written;
        self.mark.lines += lines;
        Ok(written)
    }

    /// Rewrites the kept lines compressed, in a segment of their own, and says whether it did. The old ones stay until
    /// [`History::forget_old`]: the keyframe on disk still means them.
    pub fn compact(&mut self) -> io::Result<bool> {
        if self.loose_bytes < COMPACT_BYTES_MIN {
            return Ok(false);
        }
        let kept = std::mem::take(&mut self.pending);
        let lines = self.tail(self.lines_max);
        let before = self.mark;
        self.mark = HistoryMark { segment: self.mark.segment + REWRITTEN, lines: 0, bytes: 0 };
        let mut rest = lines.encoded.as_slice();
        while !rest.is_empty() {
            let cut = rest.get(BLOCK_BYTES * 2..).and_then(|r| r.iter().position(|b| *b == b'\n'));
            let (block, after) = rest.split_at(cut.map_or(rest.len(), |at| BLOCK_BYTES * 2 + at + 1));
            let lines = count_lines(block);
            let stored = lz4_flex::compress(block);
            if let Err(error) = self.append(&stored, block.len() as u32 | COMPRESSED, lines) {
                let _ = std::fs::remove_file(self.segment_path(self.mark.segment));
                (self.mark, self.pending) = (before, kept);
                return Err(error);
            }
            rest = after;
        }
        self.pending = kept;
        self.loose_bytes = 0;
        Ok(true)
    }

    /// Removes what a rewriting left behind; the keyframe on disk must mean the new segment by now.
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
            let cut = memchr::memchr_iter(b'\n', &lines.encoded).nth(drop - 1).map_or(0, |at| at + 1);
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
            let (stored, raw) = (field(0), field(4) & !(COMPRESSED as usize));
            let compressed = field(4) & COMPRESSED as usize != 0;
            let sum = u64::from_le_bytes(rest[12..20].try_into().expect("eight bytes"));
            let Some(block) = rest[BLOCK_HEADER_BYTES..].get(..stored) else { break };
            let sound = checksum(block) == sum && raw <= PENDING_BYTES_MAX + BLOCK_BYTES * 64;
            match sound.then(|| if compressed { lz4_flex::decompress(block, raw) } else { Ok(block.to_vec()) }) {
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
    fn rewriting_keeps_every_line_and_takes_less_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::resume(dir.path(), 1000, HistoryMark::default(), vec![]);
        fill(&mut history, 0..3500);
        let before = history.tail(1000).encoded;
        history.compact().unwrap();
        assert_eq!(history.tail(1000).encoded, before, "before the old ones are forgotten");
        let resumed = History::resume(dir.path(), 1000, history.mark, history.pending.clone());
        assert_eq!(resumed.tail(1000).encoded, before, "after a crash in between");
        history.forget_old();
        assert_eq!(history.tail(1000).encoded, before);
        let bytes: u64 = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes < 30_000, "{bytes} bytes for 100,000 of repeated text");
        fill(&mut history, 3500..3600);
        assert_eq!(first_word(&history.tail(1000)), "2600");
    }

    #[test]
    fn rewriting_a_short_history_doubles_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::resume(dir.path(), 5000, HistoryMark::default(), vec![]);
        fill(&mut history, 0..900);
        let before = history.tail(5000).encoded;
        assert!(history.compact().unwrap());
        assert_eq!(history.tail(5000).encoded, before);
        assert!(!history.compact().unwrap(), "nothing new to rewrite");
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
