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
        let mut history =
            History { dir: dir.to_owned(), lines_max, mark, pending, pending_lines: 0, counted: 0, in_memory: false };
        if (0..=REPLACING).any(|ahead| history.is_newer(mark.segment.saturating_add(ahead))) {
            return History::in_memory(lines_max);
        }
        if let Ok(file) = OpenOptions::new().write(true).open(history.segment_path(mark.segment))
            && file.metadata().is_ok_and(|m| m.len() > mark.bytes)
        {
            let _ = file.set_len(mark.bytes);
        }
        for begun in 1..=REPLACING {
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

    /// Writes the lines in memory out, if they are worth it, and says whether it did. Old segments stay until
    /// [`History::forget_old`]: the keyframe on disk still means them.
    pub fn flush(&mut self) -> io::Result<bool> {
        if self.in_memory || self.pending.len() < BLOCK_BYTES {
            return Ok(false);
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
        for old in [2, 3].into_iter().filter_map(|back| self.mark.segment.checked_sub(back)) {
            let _ = std::fs::remove_file(self.segment_path(old));
        }
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mark == HistoryMark::default() && self.pending.is_empty()
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
        let sound = std::fs::read(&path).unwrap();
        let length = HISTORY.first_line(b"").len() + BLOCK_MAGIC.len();
        // In its text, in its length, in what it begins with.
        for at in [100, length, length - 1] {
            let mut bytes = sound.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&path, &bytes).unwrap();
            let lines = history.tail(5000);
            assert_eq!(lines.damaged_blocks, 1, "byte {at}");
            assert!(count_lines(&lines.encoded) > 3000, "byte {at}");
        }
    }

    /// Three blocks of a line each, and where each begins.
    fn three() -> (Vec<u8>, Vec<Vec<u8>>) {
        let texts: Vec<Vec<u8>> = (1..4).map(|n| format!("line {n}\n").into_bytes()).collect();
        let blocks: Vec<Vec<u8>> = texts.iter().map(|text| encode_block(text)).collect();
        ([HISTORY.first_line(b""), blocks.concat()].concat(), texts)
    }

    fn read(file: &[u8]) -> Lines {
        let mut lines = Lines::default();
        decode(file, &mut lines);
        lines
    }

    #[test]
    fn a_flipped_bit_or_a_cut_costs_the_blocks_it_is_in_and_never_gives_other_lines() {
        let (file, texts) = three();
        assert_eq!((read(&file).encoded, read(&file).damaged_blocks), (texts.concat(), 0));
        for bit in 0..file.len() * 8 {
            let mut bad = file.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let lines = read(&bad);
            let text = String::from_utf8(lines.encoded).unwrap();
            assert!(text.lines().count() >= 2, "bit {bit}: {text}");
            assert!(text.lines().all(|line| texts.contains(&format!("{line}\n").into_bytes())), "bit {bit}: {text}");
            assert_eq!(lines.damaged_blocks, 1, "bit {bit}");
        }
        for cut in 0..file.len() {
            assert!(texts.concat().starts_with(&read(&file[..cut]).encoded), "cut at {cut}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut rng = fastrand::Rng::with_seed(5);
        let (file, _) = three();
        for _ in 0..20_000 {
            let mut bytes = file.clone();
            for _ in 0..rng.usize(1..8) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            bytes.truncate(rng.usize(..=bytes.len()));
            read(&bytes);
        }
    }

    #[test]
    fn what_was_read_is_not_used_once_the_files_have_moved_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = history(&dir, 5000);
        fill(&mut history, 0..1000, 999);
        let past = history.wanted(5000).unwrap().read();
        fill(&mut history, 1001..1010, 1_000_000);
        let lines = history.tail_behind(5000, Some(&past)).unwrap();
        assert_eq!(lines.encoded, history.tail(5000).encoded, "what is in memory only comes behind it");
        fill(&mut history, 1010..2000, 1_000_000);
        history.flush().unwrap();
        assert!(history.tail_behind(5000, Some(&past)).is_none() && history.tail_behind(5000, None).is_none());
        assert!(history.tail_behind(0, None).unwrap().encoded.is_empty());
        fill(&mut history, 2000..2100, 1_000_000);
        assert!(history.wanted(100).is_none(), "memory has them");
        assert_eq!(first_word(&history.tail_behind(100, None).unwrap()), "2000");
    }

    #[test]
    fn a_later_versions_segments_are_left_as_they_are() {
        for segment in [0, 1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(format!("history.{segment}"));
            let newer = crate::Format { version: 3, ..HISTORY }.first_line(b"");
            std::fs::write(&path, [&newer[..], b"what nobody knows yet"].concat()).unwrap();
            let before = std::fs::read(&path).unwrap();
            let mut history = history(&dir, 1000);
            fill(&mut history, 0..3000, 500);
            assert_eq!(first_word(&history.tail(10)), "2990");
            assert_eq!(std::fs::read(&path).unwrap(), before, "history.{segment}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }
}
