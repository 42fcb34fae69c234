//! Lines that scrolled off the screen: the newest in memory, the rest on disk in two segments that take turns.
//!
//! Lines come encoded by the `screen` crate. While output flows they gather in memory, where most lines of a flood are
//! dropped again for newer ones without ever being written; when it rests they are appended to a segment, in compressed
//! blocks. A segment that has the configured number of lines is closed and the one before it removed, so that between one
//! and two times that many lines exist, and dropping old ones costs nothing.
//!
//! A segment begins with the [first line](mod@crate::envelope) of all files. A block is `HFB2`, u32 stored length, u32 raw length, u32
//! lines, u64 checksum of those numbers and the stored bytes, then the bytes. Version 1 had neither the line nor `HFB2`, and a checksum
//! of the bytes alone; a segment that began so is gone on with in blocks of today.
//!
//! A damaged block is skipped and counted, never fatal. Lines that were only in memory when a host was killed are missed by
//! number, and a line says so.

use crate::HISTORY;
use crate::envelope::{Content, Unreadable};
use crate::keyframe::{HistoryMark, Remembered};
use crate::sum::{checksum, checksum_of};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Fewer bytes than this are not worth a block: a keyframe carries them.
const BLOCK_BYTES: usize = 32 * 1024;
/// A segment also closes here, however few its lines: a bound for lines of any length.
const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Lines in memory take at most this much, however long they are.
const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How a block begins; as a length of version 1 it would be more than any block has.
const BLOCK_MAGIC: &[u8; 4] = b"HFB2";
/// Lengths and lines, and the checksum.
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
    /// The files are a later version's: they are left alone, and nothing is written.
    in_memory: bool,
    /// It was thrown away, and its files are still there.
    cleared: bool,
}

/// Lines read back.
#[derive(Debug, Clone, Default)]
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
        let mut history = History {
            dir: dir.to_owned(),
            lines_max,
            mark,
            pending,
            pending_lines: 0,
            counted: 0,
            in_memory: false,
            cleared: false,
        };
        if (0..=2 * REPLACING).any(|ahead| history.is_newer(mark.segment.saturating_add(ahead))) {
            return History::in_memory(lines_max);
        }
        if let Ok(file) = OpenOptions::new().write(true).open(history.segment_path(mark.segment))
            && file.metadata().is_ok_and(|m| m.len() > mark.bytes)
        {
            let _ = file.set_len(mark.bytes);
        }
        for begun in 1..=2 * REPLACING {
            let _ = std::fs::remove_file(history.segment_path(mark.segment.saturating_add(begun)));
        }
        history.forget_old();
        if unsaved_lines > 0 {
            let text = format!("[holdfast: {unsaved_lines} lines were lost here when the host was killed]\n");
            history.pending.extend_from_slice(text.as_bytes());
        }
        history.settle();
        history
    }

    /// A history that neither reads nor writes files.
    #[must_use]
    pub fn in_memory(lines_max: u32) -> History {
        History {
            dir: PathBuf::new(),
            lines_max: lines_max.max(1),
            mark: HistoryMark::default(),
            pending: Vec::new(),
            pending_lines: 0,
            counted: 0,
            in_memory: true,
            cleared: false,
        }
    }

    fn is_newer(&self, segment: u32) -> bool {
        let start = File::open(self.segment_path(segment))
            .and_then(|file| read_up_to(file, crate::envelope::LINE_BYTES_MAX as u64));
        start.is_ok_and(|start| matches!(HISTORY.open_growing(&start), Err(Unreadable::Newer { .. })))
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

    /// Throws everything away. The files go with [`History::forget_old`], once a keyframe means others.
    pub fn clear(&mut self) {
        self.pending = Vec::new();
        (self.pending_lines, self.counted) = (0, 0);
        if self.mark.bytes > 0 {
            self.mark = HistoryMark { segment: self.mark.segment.wrapping_add(REPLACING), lines: 0, bytes: 0 };
            self.cleared = true;
        }
    }

    /// Writes the lines in memory out, if they are worth it, and says whether files are to be forgotten. Old segments stay until
    /// [`History::forget_old`]: the keyframe on disk still means them.
    pub fn flush(&mut self) -> io::Result<bool> {
        if self.in_memory || self.pending.len() < BLOCK_BYTES {
            return Ok(std::mem::take(&mut self.cleared));
        }
        let before = self.mark;
        if self.pending_lines >= self.lines_max {
            self.drop_oldest_but(self.lines_max);
            self.mark = HistoryMark { segment: before.segment.wrapping_add(REPLACING), lines: 0, bytes: 0 };
        } else if before.lines >= self.lines_max || before.bytes >= SEGMENT_BYTES_MAX {
            self.mark = HistoryMark { segment: before.segment.wrapping_add(1), lines: 0, bytes: 0 };
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
        self.cleared = false;
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
        if self.mark.bytes == 0 {
            let line = HISTORY.first_line(b"");
            file.write_all(&line)?;
            self.mark.bytes = line.len() as u64;
        }
        let mut rest = self.pending.as_slice();
        while !rest.is_empty() {
            let cut = rest.get(2 * BLOCK_BYTES..).and_then(|r| memchr::memchr(b'\n', r));
            let (raw, after) = rest.split_at(cut.map_or(rest.len(), |at| 2 * BLOCK_BYTES + at + 1));
            let block = encode_block(raw);
            file.write_all(&block)?;
            self.mark.bytes += block.len() as u64;
            self.mark.lines += count_lines(raw);
            rest = after;
        }
        Ok(())
    }

    /// Removes segments that are no longer part of the history; the keyframe on disk must mean the present one by now.
    pub fn forget_old(&self) {
        // One that replaces others may have followed another before a keyframe was written.
        for old in (2..=2 * REPLACING + 1).filter_map(|back| self.mark.segment.checked_sub(back)) {
            let _ = std::fs::remove_file(self.segment_path(old));
        }
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mark.lines == 0 && self.pending.is_empty()
    }

    /// The newest `count` lines, at most as many as are kept. Reads files where it must: [`History::wanted`] says so before.
    #[must_use]
    pub fn tail(&self, count: u32) -> Lines {
        let past = self.wanted(count).map(|wanted| wanted.read());
        self.tail_behind(count, past.as_ref()).expect("it was read just now")
    }

    /// What must be read from files for the newest `count` lines; none where memory has them. To be read on another thread.
    #[must_use]
    pub fn wanted(&self, count: u32) -> Option<Wanted> {
        let count = count.min(self.lines_max);
        if self.in_memory || self.pending_lines >= count || self.mark == HistoryMark::default() {
            return None;
        }
        let mut parts = vec![(self.segment_path(self.mark.segment), self.mark.bytes)];
        if self.mark.lines < self.lines_max
            && let Some(old) = self.mark.segment.checked_sub(1)
        {
            parts.insert(0, (self.segment_path(old), u64::MAX));
        }
        Some(Wanted { mark: self.mark, parts })
    }

    /// The newest `count` lines behind what was read; none where more is wanted by now, or something else.
    #[must_use]
    pub fn tail_behind(&self, count: u32, past: Option<&Past>) -> Option<Lines> {
        let count = count.min(self.lines_max);
        let mut lines = match (self.wanted(count), past) {
            _ if count == 0 => return Some(Lines::default()),
            (None, _) => Lines::default(),
            (Some(wanted), Some(past)) if wanted.mark == past.mark => past.lines.clone(),
            (Some(_), _) => return None,
        };
        lines.encoded.extend_from_slice(&self.pending);
        let surplus = count_lines(&lines.encoded).saturating_sub(count) as usize;
        if surplus > 0 {
            let cut = memchr::memchr_iter(b'\n', &lines.encoded).nth(surplus - 1).map_or(0, |at| at + 1);
            lines.encoded.drain(..cut);
        }
        Some(lines)
    }

    fn segment_path(&self, segment: u32) -> PathBuf {
        self.dir.join(format!("history.{segment}"))
    }
}

/// What must be read from files.
#[derive(Debug)]
pub struct Wanted {
    mark: HistoryMark,
    /// Files and how much of each, the oldest first.
    parts: Vec<(PathBuf, u64)>,
}

/// What was read from files.
#[derive(Debug)]
pub struct Past {
    mark: HistoryMark,
    lines: Lines,
}

impl Wanted {
    /// Reads it: a file that cannot be read costs its lines.
    #[must_use]
    pub fn read(&self) -> Past {
        let mut lines = Lines::default();
        for (path, bytes) in &self.parts {
            if let Ok(file) = File::open(path).and_then(|file| read_up_to(file, *bytes)) {
                decode(&file, &mut lines);
            }
        }
        Past { mark: self.mark, lines }
    }
}

/// Appends the lines of a segment's bytes.
pub fn decode(file: &[u8], lines: &mut Lines) {
    let mut rest = match HISTORY.open_growing(file) {
        Ok(Content::Sealed(blocks) | Content::Old(blocks)) => blocks,
        Err(_) => {
            lines.damaged_blocks += 1;
            return;
        }
    };
    while !rest.is_empty() {
        let block = Block::at(rest);
        if let Some((block, mut text)) = block.as_ref().and_then(|block| Some((block, block.text()?))) {
            lines.encoded.append(&mut text);
            rest = &rest[block.length..];
            continue;
        }
        lines.damaged_blocks += 1;
        rest = match block {
            // Only its length says where the next one is.
            Some(block) if block.is_old => &rest[block.length..],
            Some(_) | None => next_block(rest),
        };
    }
}

/// What begins with the next sound block.
fn next_block(rest: &[u8]) -> &[u8] {
    let starts = memchr::memmem::find_iter(&rest[1..], BLOCK_MAGIC).map(|at| &rest[at + 1..]);
    let mut sound = starts.filter(|rest| Block::at(rest).is_some_and(|block| block.is_sound));
    sound.next().unwrap_or_default()
}

fn encode_block(raw: &[u8]) -> Vec<u8> {
    let stored = lz4_flex::compress(raw);
    let numbers = [stored.len() as u32, raw.len() as u32, count_lines(raw)].map(u32::to_le_bytes).concat();
    let sum = checksum_of(&numbers, &stored).to_le_bytes();
    [BLOCK_MAGIC, &numbers[..], &sum, &stored].concat()
}

/// A block, of either version.
struct Block<'a> {
    is_old: bool,
    is_sound: bool,
    raw_bytes: usize,
    stored: &'a [u8],
    /// With everything.
    length: usize,
}

impl Block<'_> {
    /// What stands at the beginning of these bytes, if all of it is there.
    fn at(bytes: &[u8]) -> Option<Block<'_>> {
        let (is_old, behind) = match bytes.strip_prefix(BLOCK_MAGIC) {
            Some(behind) => (false, behind),
            None => (true, bytes),
        };
        let (header, rest) = behind.split_first_chunk::<BLOCK_HEADER_BYTES>()?;
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (numbers, sum) = header.split_last_chunk::<8>()?;
        let stored = rest.get(..number(0) as usize)?;
        let expected = if is_old { checksum(stored) } else { checksum_of(numbers, stored) };
        Some(Block {
            is_old,
            is_sound: expected == u64::from_le_bytes(*sum),
            raw_bytes: number(4) as usize,
            stored,
            length: bytes.len() - rest.len() + stored.len(),
        })
    }

    fn text(&self) -> Option<Vec<u8>> {
        let is_ours = self.is_sound && self.raw_bytes <= PENDING_BYTES_MAX;
        is_ours.then(|| lz4_flex::decompress(self.stored, self.raw_bytes).ok()).flatten()
    }
}

fn read_up_to(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(bytes).read_to_end(&mut content)?;
    Ok(content)
}

fn count_lines(encoded: &[u8]) -> u32 {
    memchr::memchr_iter(b'\n', encoded).count() as u32
}

#[cfg(test)]
mod tests;
