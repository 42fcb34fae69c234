//! Files of numbered lines that grow and take turns: `<name>.<n>`.
//!
//! A segment begins with a line that carries the state, so that the newest alone is enough and old ones can go. Lines are written at a
//! remembered place, behind the last whole one: whatever a crash or a full disk leaves half written is cut when the files are opened,
//! or overwritten before. What could not be written waits in memory, in order and bounded.
//!
//! Keeps no file open. Never syncs by itself: that can take long, and the thread that writes serves every session. Knows how a line
//! begins (`{"seq":1,`) and what version it says it is of (`"version":2`; none: 1), and nothing else of it: whether lines are sound is
//! for whoever knows their chain.

mod reader;

pub use reader::Reader;

use serde::Deserialize;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A segment is full with this much behind its first line: some thousand records, which a host that starts reads back in
/// milliseconds.
pub const SEGMENT_BYTES_MAX: u64 = 256 * 1024;
/// Segments kept: weeks of a busy session, and a disk has room for those of a thousand sessions.
pub const SEGMENTS_MAX: usize = 64;
/// Damaged files kept for people, the newest: who has not looked by then will not.
pub const BROKEN_MAX: usize = 16;
/// While this much waits for the disk nothing more is taken: a disk that is full for longer stops what must be recorded, and
/// a thousand sessions must not move their journals into memory.
pub const PENDING_BYTES_MAX: usize = 1024 * 1024;
/// No segment grows to this, whatever the state in its first line; a longer file is none of ours and is not read into memory.
const FILE_BYTES_MAX: u64 = 16 * SEGMENT_BYTES_MAX;
/// The newest version of a line that is known.
const VERSION: u32 = 1;
/// How each line begins; its number follows.
const LINE_START: &[u8] = b"{\"seq\":";
/// Enough of a line to have its number.
const LINE_START_BYTES_MAX: u64 = 32;

/// One file.
#[derive(Debug)]
struct Segment {
    number: u64,
    /// Bytes of whole lines in the file; none: it is from before, and closed.
    written: Option<u64>,
    /// Whole lines that are not in the file yet.
    pending: Vec<u8>,
    /// Bytes of its first line.
    header_bytes: u64,
}

impl Segment {
    fn closed(number: u64) -> Segment {
        Segment { number, written: None, pending: Vec::new(), header_bytes: 0 }
    }

    fn is_full(&self) -> bool {
        // The first line does not count: a large state must not make every record begin a segment.
        self.written.unwrap_or(0) + self.pending.len() as u64 >= SEGMENT_BYTES_MAX + self.header_bytes
    }
}

/// The segments of one name in a directory.
#[derive(Debug)]
pub struct Segments {
    dir: PathBuf,
    name: &'static str,
    /// Oldest first.
    segments: VecDeque<Segment>,
    next_number: u64,
    /// Lines can follow in the newest segment. Otherwise one must be begun.
    is_begun: bool,
    /// A later version's: nothing is written.
    newer: Option<u32>,
    /// Files, and the directory that has their names, with something in them that may not survive a power cut. Paths, not
    /// open files: a host has thousands of sessions and few descriptors.
    unsynced: VecDeque<PathBuf>,
    /// Tests: so many bytes fit on the disk.
    room: Option<usize>,
}

/// What a segment's file has.
#[derive(Debug)]
pub enum Loaded {
    /// Bytes, of which nobody says yet that they are sound.
    Bytes(Vec<u8>),
    /// It cannot be read, or is longer than any of ours.
    Unreadable,
    /// Its first line is of a later version.
    Newer,
}

/// Whole lines, as they lie on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// Number of the first line given; none given: the next to come.
    pub from: u64,
    /// Read behind this one next.
    pub to: u64,
    /// There is more now.
    pub more: bool,
    /// The lines, each with its line feed.
    pub bytes: Vec<u8>,
}

impl Segments {
    /// None yet; nothing is on disk until the first is begun.
    #[must_use]
    pub fn new(dir: &Path, name: &'static str) -> Segments {
        Segments {
            dir: dir.to_owned(),
            name,
            segments: VecDeque::new(),
            next_number: 1,
            is_begun: false,
            newer: None,
            unsynced: VecDeque::new(),
            room: None,
        }
    }

    /// Those that are there. The newest is to be [loaded](Segments::load), and then kept, dropped or set aside.
    #[must_use]
    pub fn find(dir: &Path, name: &'static str) -> Segments {
        let mut segments = Segments::new(dir, name);
        let (numbers, broken) = (list(dir, &format!("{name}.")), list(dir, &format!("{name}.broken-")));
        segments.next_number = numbers.iter().chain(&broken).max().map_or(1, |newest| newest + 1);
        segments.segments = numbers.into_iter().map(Segment::closed).collect();
        segments
    }

    /// The newest segment's number.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.segments.back().map(|segment| segment.number)
    }

    /// Another segment must be begun before lines are taken.
    pub fn end_newest(&mut self) {
        self.is_begun = false;
    }

    /// Number of the first line of the oldest segment that is left once another is begun; none: nothing goes, or it cannot be read.
    #[must_use]
    pub fn oldest_behind_next(&self) -> Option<u64> {
        let goes = (self.segments.len() + 1).checked_sub(SEGMENTS_MAX).filter(|goes| *goes > 0)?;
        first(&self.path(self.segments.get(goes)?.number))
    }

    /// The first and the last whole line of each segment, the oldest first; none where a file has none.
    pub fn edges(&self) -> impl Iterator<Item = Option<(Vec<u8>, Vec<u8>)>> {
        self.segments.iter().map(|segment| edges(&self.path(segment.number)).ok().flatten())
    }

    /// The place of a file beside the segments: `<name>-<word>`, which nobody takes for a segment.
    #[must_use]
    pub fn beside(&self, word: &str) -> PathBuf {
        self.dir.join(format!("{}-{word}", self.name))
    }

    /// A segment's file. Where it is a later version's, nothing is written from now on.
    pub fn load(&mut self, number: u64) -> Loaded {
        let Some(bytes) = read_file(&self.path(number)) else { return Loaded::Unreadable };
        match version_of(&bytes) {
            found if found > VERSION => {
                self.newer = Some(found);
                Loaded::Newer
            }
            _ => Loaded::Bytes(bytes),
        }
    }

    /// The newest goes on behind its first `sound` bytes of `bytes`; with `begun` lines can follow in it.
    pub fn keep(&mut self, bytes: &[u8], sound: usize, begun: bool) {
        let Some(newest) = self.segments.back_mut() else { return };
        newest.written = Some(sound as u64);
        newest.header_bytes = memchr::memchr(b'\n', bytes).map_or(0, |at| at as u64 + 1);
        self.is_begun = begun;
        let path = self.dir.join(format!("{}.{}", self.name, newest.number));
        if sound < bytes.len() {
            // A torn last line.
            let _ = cut(&path, sound as u64);
        }
    }

    /// The newest is none: there is nothing of it to go on from. What a crash left of its beginning is removed.
    pub fn drop_newest(&mut self, remove: bool) {
        if let Some(newest) = self.segments.pop_back()
            && remove
        {
            let _ = std::fs::remove_file(self.path(newest.number));
        }
    }

    /// Moves what is behind the sound bytes of a segment to a file for people, whose name is given back.
    pub fn set_aside(&self, number: u64, rest: &[u8], sound: usize) -> String {
        let name = format!("{}.broken-{number}", self.name);
        let path = self.path(number);
        let moved = if sound == 0 {
            std::fs::rename(&path, self.dir.join(&name))
        } else {
            let copied =
                OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(self.dir.join(&name));
            let copied = copied.and_then(|mut file| file.write_all(rest).and_then(|()| file.sync_all()));
            copied.and_then(|()| cut(&path, sound as u64))
        };
        match moved {
            Ok(()) => name,
            // It stays where it is: nothing is written behind it, and nothing of it is read.
            Err(_) => format!("{}.{number}", self.name),
        }
    }

    /// Removes old files that were set aside.
    pub fn forget_broken(&self) {
        let prefix = format!("{}.broken-", self.name);
        for number in list(&self.dir, &prefix).iter().rev().skip(BROKEN_MAX) {
            let _ = std::fs::remove_file(self.dir.join(format!("{prefix}{number}")));
        }
    }

    /// Takes lines to be written behind the newest. False: they were not taken, and a segment must be begun first.
    pub fn take(&mut self, lines: &[u8]) -> bool {
        // What waits goes first, so that there may be room.
        let _ = self.make_room();
        let has_room = !self.has_no_room();
        match self.segments.back_mut().filter(|_| self.is_begun && has_room) {
            Some(segment) => segment.pending.extend_from_slice(lines),
            None => self.is_begun = false,
        }
        self.is_begun
    }

    /// Writes what waits where there is no room for more: an error where that cannot be done.
    pub fn make_room(&mut self) -> io::Result<()> {
        self.must_be_ours()?;
        if self.has_no_room() { self.retry() } else { Ok(()) }
    }

    /// Begins a segment with its first line, which waits as any.
    pub fn begin(&mut self, line: Vec<u8>) {
        let (number, header_bytes) = (self.next_number, line.len() as u64);
        self.segments.push_back(Segment { number, written: Some(0), pending: line, header_bytes });
        (self.next_number, self.is_begun) = (number + 1, true);
    }

    /// Drops the oldest where there are too many; once what stands in their place is written.
    pub fn drop_oldest(&mut self) {
        while self.segments.len() > SEGMENTS_MAX {
            if let Some(oldest) = self.segments.pop_front() {
                let _ = std::fs::remove_file(self.path(oldest.number));
            }
        }
    }

    /// Files that go once another segment is begun, the oldest first.
    #[must_use]
    pub fn goes_next(&self) -> Vec<PathBuf> {
        let goes = (self.segments.len() + 1).saturating_sub(SEGMENTS_MAX);
        self.segments.iter().take(goes).map(|segment| self.path(segment.number)).collect()
    }

    /// Something was written to a file beside the segments.
    pub fn wrote_beside(&mut self, path: PathBuf) {
        if !self.unsynced.contains(&path) {
            self.unsynced.push_back(path);
        }
    }

    /// A segment must be begun before lines are taken: there is none yet, it is full, or it is damaged.
    #[must_use]
    pub fn wants_segment(&self) -> bool {
        !self.is_begun || self.segments.back().is_some_and(Segment::is_full)
    }

    /// Tries again what waits: an error while anything does.
    pub fn retry(&mut self) -> io::Result<()> {
        self.must_be_ours()?;
        while let Some(at) = self.segments.iter().position(|segment| !segment.pending.is_empty()) {
            self.write(at)?;
        }
        Ok(())
    }

    /// Lines that wait.
    #[must_use]
    pub fn waiting_lines(&self) -> u64 {
        self.segments.iter().map(|segment| memchr::memchr_iter(b'\n', &segment.pending).count() as u64).sum()
    }

    /// Bytes that wait.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.pending.len()).sum()
    }

    /// Something was written and is not synced.
    #[must_use]
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// A file to be synced, off this thread; to be called until there is none. What is written later makes it unsynced again.
    pub fn unsynced(&mut self) -> Option<PathBuf> {
        self.unsynced.pop_front()
    }

    /// Its files, the oldest first.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.segments.iter().map(|segment| self.path(segment.number)).collect()
    }

    /// What reads lines up to number `newest`, on any thread: there may be many.
    #[must_use]
    pub fn reader(&self, newest: u64) -> Reader {
        let file = |segment: &Segment| (self.path(segment.number), segment.written.unwrap_or(FILE_BYTES_MAX));
        Reader { newest, older: None, files: self.segments.iter().map(file).collect() }
    }

    /// Tests: so many bytes fit on the disk from now on.
    #[doc(hidden)]
    pub fn set_room_for_tests(&mut self, room: Option<usize>) {
        self.room = room;
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{}.{number}", self.name))
    }

    fn has_no_room(&self) -> bool {
        self.waiting_bytes() >= PENDING_BYTES_MAX
    }

    fn must_be_ours(&self) -> io::Result<()> {
        match self.newer {
            None => Ok(()),
            Some(found) => Err(crate::Unreadable::Newer { kind: self.name, found, known: VERSION }.into()),
        }
    }

    /// Writes what waits for one segment, as far as it goes.
    fn write(&mut self, at: usize) -> io::Result<()> {
        let (number, start) = (self.segments[at].number, self.segments[at].written.unwrap_or(0));
        let file = match self.open_to_write(number, start) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && start > 0 => {
                // Somebody removed or cut the file: another is begun.
                self.is_begun &= at + 1 < self.segments.len();
                self.segments.remove(at);
                return Err(error);
            }
            other => other?,
        };
        let pending = std::mem::take(&mut self.segments[at].pending);
        let (mut done, mut result) = (0, Ok(()));
        while done < pending.len() && result.is_ok() {
            result = match self.write_at(&file, &pending[done..], start + done as u64) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    done += count;
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                Err(error) => Err(error),
            };
        }
        let whole = memchr::memrchr(b'\n', &pending[..done]).map_or(0, |at| at + 1);
        if whole < done {
            // Half a line would be taken for a torn end; should this fail, the next write goes over it.
            let _ = file.set_len(start + whole as u64);
        }
        let segment = &mut self.segments[at];
        segment.written = Some(start + whole as u64);
        segment.pending = pending[whole..].to_vec();
        if whole > 0 {
            self.note_unsynced(number, start);
        }
        result
    }

    /// The segment's file: a new one where nothing is written yet.
    fn open_to_write(&self, number: u64, start: u64) -> io::Result<File> {
        let is_new = start == 0;
        let file =
            OpenOptions::new().write(true).create(is_new).truncate(is_new).mode(0o600).open(self.path(number))?;
        if !is_new && file.metadata()?.len() < start {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("the {}'s file was cut", self.name)));
        }
        Ok(file)
    }

    fn note_unsynced(&mut self, number: u64, start: u64) {
        let path = self.path(number);
        let mut add = |path: PathBuf| {
            if !self.unsynced.contains(&path) {
                self.unsynced.push_back(path);
            }
        };
        add(path);
        // A new file survives a power cut only with its name.
        if start == 0 {
            add(self.dir.clone());
        }
    }

    fn write_at(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        let Some(room) = &mut self.room else { return file.write_at(bytes, at) };
        if *room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = file.write_at(&bytes[..bytes.len().min(*room)], at)?;
        *room -= count;
        Ok(count)
    }
}

/// A segment's bytes; none where they cannot be read, or are more than any of ours has.
#[must_use]
pub fn read_file(path: &Path) -> Option<Vec<u8>> {
    let is_ours = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= FILE_BYTES_MAX);
    is_ours.then(|| std::fs::read(path).ok()).flatten()
}

/// Whether a file without a whole line is what a crash left of its first: the beginning of one, or room that was never filled.
#[must_use]
pub fn is_torn_start(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(LINE_START.len())];
    LINE_START.starts_with(start) || bytes.iter().all(|byte| *byte == 0)
}

/// Numbers of files whose names begin with this, in order.
#[must_use]
pub fn list(dir: &Path, prefix: &str) -> Vec<u64> {
    let names =
        std::fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let number = |name: String| {
        let digits = name.strip_prefix(prefix)?;
        // One spelling for each, so that a number is a name.
        digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
    };
    let mut numbers: Vec<u64> = names.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// What a segment's first line says that it is of.
fn version_of(bytes: &[u8]) -> u32 {
    #[derive(Deserialize)]
    struct Line {
        #[serde(default)]
        version: Option<u32>,
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<Line>(line).ok().and_then(|line| line.version).unwrap_or(VERSION)
}

/// The number of a file's first line.
fn first(path: &Path) -> Option<u64> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(LINE_START_BYTES_MAX).read_to_end(&mut start).ok()?;
    seq_of(&start)
}

/// The number that a line begins with.
fn seq_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(LINE_START)?;
    let digits = &rest[..rest.iter().position(|byte| *byte == b',')?];
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The whole lines in the first bytes of a file.
fn whole_lines(path: &Path, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(length).read_to_end(&mut bytes)?;
    bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
    Ok(bytes)
}

/// The first and the last whole line of a file.
fn edges(path: &Path) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut end = Vec::new();
    // From the end in growing steps, until two line feeds are there: a last line is short, and a header may be long.
    let last = loop {
        let step = (4 * end.len() as u64).max(4096).min(length);
        let at = length - step;
        end.resize(step as usize, 0);
        file.read_exact_at(&mut end, at)?;
        let Some(behind) = memchr::memrchr(b'\n', &end) else {
            if at == 0 {
                return Ok(None);
            }
            continue;
        };
        match memchr::memrchr(b'\n', &end[..behind]) {
            Some(before) => break end[before + 1..behind].to_vec(),
            None if at == 0 => break end[..behind].to_vec(),
            None => {}
        }
    };
    let mut start = Vec::new();
    loop {
        let had = start.len() as u64;
        let wanted = (4 * had).max(4096).min(length);
        start.resize(wanted as usize, 0);
        file.read_exact_at(&mut start, 0)?;
        if let Some(end) = memchr::memchr(b'\n', &start) {
            start.truncate(end);
            return Ok(Some((start, last)));
        }
        if wanted == length {
            return Ok(None);
        }
    }
}

fn cut(path: &Path, length: u64) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_versions_segment_is_told_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let line = b"{\"seq\":1,\"version\":2,\"what\":\"nobody knows yet\"}\n";
        std::fs::write(dir.path().join("log.1"), line).unwrap();
        let mut segments = Segments::find(dir.path(), "log");
        assert!(matches!(segments.load(1), Loaded::Newer));
        assert!(!segments.take(b"{\"seq\":2,}\n"));
        for refused in [segments.retry(), segments.make_room()] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("version 2"), "{error}");
        }
        assert_eq!(std::fs::read(dir.path().join("log.1")).unwrap(), line);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut rng = fastrand::Rng::with_seed(13);
        for _ in 0..20_000 {
            let mut bytes = b"{\"seq\":17,\"version\":1}\n{\"seq\":18}".to_vec();
            for _ in 0..rng.usize(..5) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            bytes.truncate(rng.usize(..=bytes.len()));
            let _ = (version_of(&bytes), seq_of(&bytes), is_torn_start(&bytes));
        }
    }
}
