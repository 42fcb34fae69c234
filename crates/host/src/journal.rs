//! One session's journal on disk: `journal.<n>`, segments of hash-chained lines, each beginning with a header.
//!
//! A header carries the state, so the newest segment alone brings a session back, and old ones are dropped. Lines are
//! written at a remembered place, behind the last whole one: whatever a crash or a full disk leaves half written is cut when
//! the journal is opened, or overwritten before. What could not be written waits in memory, in order and bounded.
//!
//! Keeps no file open but those that are not synced yet. Never syncs by itself: that can take long, and this thread serves
//! every session.

mod acts;

pub use acts::{Wrote, writing_acts, wrote_before};

use holdfast_authority::journal::{Broken, Chain, End, Link, Reading, What, read};
use holdfast_authority::{Act, Authority, Policy, Record};
use holdfast_types::SessionId;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A segment is full with this much behind its header: some thousand records, which a host that starts reads back in
/// milliseconds.
const SEGMENT_BYTES_MAX: u64 = 256 * 1024;
/// Segments kept: weeks of a busy session, and a disk has room for those of a thousand sessions.
const SEGMENTS_MAX: usize = 64;
/// Damaged files kept for people, the newest: who has not looked by then will not.
const BROKEN_MAX: usize = 16;
/// While this much waits for the disk nothing more is taken: a disk that is full for longer stops what must be recorded, and
/// a thousand sessions must not move their journals into memory.
const PENDING_BYTES_MAX: usize = 1024 * 1024;
/// No segment grows to this, whatever the state in its header; a longer file is none of ours and is not read into memory.
const FILE_BYTES_MAX: u64 = 16 * SEGMENT_BYTES_MAX;
/// How each line begins; its number follows.
const LINE_START: &[u8] = b"{\"seq\":";
/// Enough of a line to have its number.
const LINE_START_BYTES_MAX: u64 = 32;

/// One file of a journal.
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
        // The header does not count: a large state must not make every record begin a segment.
        self.written.unwrap_or(0) + self.pending.len() as u64 >= SEGMENT_BYTES_MAX + self.header_bytes
    }
}

/// One session's journal.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    session: SessionId,
    /// Its end, with what is pending.
    chain: Chain,
    /// Oldest first.
    segments: VecDeque<Segment>,
    next_number: u64,
    /// Records can follow in the newest segment. Otherwise a header must come first, which carries the state.
    is_begun: bool,
    /// Files, and the directory that has their names, with something in them that may not survive a power cut. Paths, not
    /// open files: a host has thousands of sessions and few descriptors.
    unsynced: VecDeque<PathBuf>,
    /// Tests: so many bytes fit on the disk.
    #[cfg(test)]
    room: Option<usize>,
}

/// A journal that was read back.
#[derive(Debug)]
pub struct Opened {
    /// To be gone on with.
    pub journal: Journal,
    /// The authority that wrote its records.
    pub authority: Authority,
    /// What was wrong with it, for people; one sentence.
    pub note: Option<String>,
}

/// Whole lines of a journal, as they lie on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// Number of the first record given; none given: the next to come.
    pub from: u64,
    /// Read behind this one next.
    pub to: u64,
    /// There is more now.
    pub more: bool,
    /// The lines, each with its line feed.
    pub bytes: Vec<u8>,
}

impl Journal {
    /// A new session's journal; nothing is on disk until its first header.
    #[must_use]
    pub fn new(dir: &Path, session: SessionId) -> Journal {
        Journal {
            dir: dir.to_owned(),
            session,
            chain: Chain::default(),
            segments: VecDeque::new(),
            next_number: 1,
            is_begun: false,
            unsynced: VecDeque::new(),
            #[cfg(test)]
            room: None,
        }
    }

    /// Reads back what is there, and makes it fit to be gone on with: a torn last record is cut, damage is set aside. Never
    /// fails: what cannot be read costs the records behind it, and the note says so.
    #[must_use]
    pub fn open(dir: &Path, session: SessionId, policy: Policy) -> Opened {
        let mut journal = Journal::new(dir, session);
        let (numbers, broken) = (list(dir, "journal."), list(dir, "journal.broken-"));
        journal.next_number = numbers.iter().chain(&broken).max().map_or(1, |newest| newest + 1);
        journal.segments = numbers.into_iter().map(Segment::closed).collect();
        let mut damage: Vec<(Broken, String)> = Vec::new();
        let mut authority = Authority::new(policy);
        while let Some(number) = journal.segments.back().map(|segment| segment.number) {
            let (bytes, reading) = journal.load(number);
            let sound = reading.sound_bytes;
            if let End::Broken(broken) = reading.end {
                damage.push((broken, journal.set_aside(number, &bytes[sound..], sound)));
            } else if sound == 0 {
                // A crash while the segment began: the one before it has the same state.
                let _ = std::fs::remove_file(journal.path(number));
            } else if sound < bytes.len() {
                let _ = OpenOptions::new()
                    .write(true)
                    .open(journal.path(number))
                    .and_then(|file| file.set_len(sound as u64));
            }
            if let (Some(last), Some(newest)) = (reading.entries.last(), journal.segments.back_mut()) {
                journal.chain = Chain::after(Some(last.link()));
                journal.is_begun = damage.is_empty();
                newest.written = Some(sound as u64);
                newest.header_bytes = memchr::memchr(b'\n', &bytes).map_or(0, |at| at as u64 + 1);
                authority.replay_more(reading.entries.iter().map(|entry| &entry.record));
                break;
            }
            journal.segments.pop_back();
        }
        let note = note(&damage, journal.last());
        if note.is_some() {
            journal.forget_broken();
        }
        Opened { journal, authority, note }
    }

    /// Writes records, which must happen before their effects; one write for all of them. What does not fit on the disk waits
    /// and is tried again first thing at the next call: an error while anything waits. Where too much waits the records are
    /// not taken; then a segment is wanted, whose header carries what they changed.
    pub fn append<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> io::Result<()> {
        let mut chain = self.chain;
        let mut lines = Vec::new();
        records.into_iter().for_each(|record| lines.extend_from_slice(&chain.append(record)));
        if lines.is_empty() {
            return self.retry();
        }
        if self.has_no_room() {
            // What waits goes first, so that there may be room.
            let _ = self.retry();
        }
        let has_room = !self.has_no_room();
        match self.segments.back_mut().filter(|_| self.is_begun && has_room) {
            Some(segment) => {
                segment.pending.extend_from_slice(&lines);
                self.chain = chain;
                self.retry()
            }
            None => {
                self.is_begun = false;
                self.retry()?;
                Err(io::Error::new(io::ErrorKind::StorageFull, "the journal has no segment that takes records"))
            }
        }
    }

    /// Tries again what waits: an error while anything does.
    pub fn retry(&mut self) -> io::Result<()> {
        while let Some(at) = self.segments.iter().position(|segment| !segment.pending.is_empty()) {
            self.write(at)?;
        }
        Ok(())
    }

    /// The next record must be a header: there is no segment yet, it is full, or it is damaged. To be asked when everything
    /// the authority recorded was passed to [`Journal::append`], since the header has the state behind all of it; then
    /// `authority.rotate(session, journal.last(), now)` goes to [`Journal::begin_segment`].
    #[must_use]
    pub fn wants_segment(&self) -> bool {
        !self.is_begun || self.segments.back().is_some_and(Segment::is_full)
    }

    /// Begins a segment, and drops the oldest where there are too many. With an error the header waits like any record, or,
    /// where too much waits already, was not taken: then a segment is still wanted.
    pub fn begin_segment(&mut self, header: &Record) -> io::Result<()> {
        let Act::Header { session, previous, .. } = &header.act else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a segment begins with a header"));
        };
        if (*session, *previous) != (self.session, self.last()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the header does not carry on this journal"));
        }
        if self.has_no_room() {
            self.retry()?;
        }
        let line = self.chain.append(header);
        let (number, header_bytes) = (self.next_number, line.len() as u64);
        self.segments.push_back(Segment { number, written: Some(0), pending: line, header_bytes });
        (self.next_number, self.is_begun) = (number + 1, true);
        while self.segments.len() > SEGMENTS_MAX {
            if let Some(oldest) = self.segments.pop_front() {
                let _ = std::fs::remove_file(self.path(oldest.number));
            }
        }
        self.retry()
    }

    /// The last record, written or waiting.
    #[must_use]
    pub fn last(&self) -> Option<Link> {
        self.chain.last()
    }

    /// Number of the last record on disk; 0: there is none.
    #[must_use]
    pub fn newest(&self) -> u64 {
        let waiting = self.segments.iter().map(|segment| memchr::memchr_iter(b'\n', &segment.pending).count());
        self.last().map_or(0, |last| last.seq).saturating_sub(waiting.sum::<usize>() as u64)
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

    /// Whole lines on disk behind record `after` (0: from the oldest kept), about `max_bytes` of them and at least one.
    pub fn read(&self, after: u64, max_bytes: usize) -> io::Result<Lines> {
        let newest = self.newest();
        let mut lines = Lines { from: newest + 1, to: newest, more: false, bytes: Vec::new() };
        if after >= newest {
            return Ok(lines);
        }
        // The last segment that begins at or before the record asked for; where that is gone, the oldest.
        let begins = |segment: &Segment| self.first(segment.number).is_some_and(|first| first <= after + 1);
        let start = self.segments.iter().rposition(begins).unwrap_or(0);
        for segment in self.segments.range(start..) {
            let bytes = match self.bytes(segment) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                let Some(seq) = seq_of(line).filter(|seq| *seq > after) else { continue };
                let (is_next, fits) = (seq == lines.to + 1, lines.bytes.len() + line.len() <= max_bytes);
                if lines.bytes.is_empty() {
                    lines.from = seq;
                } else if !is_next || !fits {
                    lines.more = true;
                    return Ok(lines);
                }
                lines.to = seq;
                lines.bytes.extend_from_slice(line);
            }
        }
        Ok(lines)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("journal.{number}"))
    }

    fn has_no_room(&self) -> bool {
        self.segments.iter().map(|segment| segment.pending.len()).sum::<usize>() >= PENDING_BYTES_MAX
    }

    /// One segment as far as it is sound. What is no file of this session's is broken from its first line on.
    fn load(&self, number: u64) -> (Vec<u8>, Reading) {
        let path = self.path(number);
        let is_ours = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= FILE_BYTES_MAX);
        let Some(bytes) = is_ours.then(|| std::fs::read(&path).ok()).flatten() else {
            return (Vec::new(), unreadable(What::NotARecord));
        };
        let reading = read(&bytes, None);
        let reading = match (reading.entries.first().map(|entry| &entry.record.act), &reading.end) {
            (Some(Act::Header { session, .. }), _) if *session == self.session => reading,
            (Some(_), _) => unreadable(What::OtherChain),
            (None, End::Torn { .. }) if !is_torn_header(&bytes) => unreadable(What::NotARecord),
            (None, End::Clean | End::Torn { .. } | End::Broken(_)) => reading,
        };
        (bytes, reading)
    }

    /// Moves what is behind the sound bytes of a segment to a file for people, whose name is given back.
    fn set_aside(&self, number: u64, rest: &[u8], sound: usize) -> String {
        let name = format!("journal.broken-{number}");
        let path = self.path(number);
        let moved = if sound == 0 {
            std::fs::rename(&path, self.dir.join(&name))
        } else {
            let copied =
                OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(self.dir.join(&name));
            let copied = copied.and_then(|mut file| file.write_all(rest).and_then(|()| file.sync_all()));
            copied.and_then(|()| OpenOptions::new().write(true).open(&path)?.set_len(sound as u64))
        };
        match moved {
            Ok(()) => name,
            // It stays where it is: nothing is written behind it, and nothing of it is read.
            Err(_) => format!("journal.{number}"),
        }
    }

    fn forget_broken(&self) {
        let broken = list(&self.dir, "journal.broken-");
        for number in broken.iter().rev().skip(BROKEN_MAX) {
            let _ = std::fs::remove_file(self.dir.join(format!("journal.broken-{number}")));
        }
    }

    /// Writes what waits for one segment, as far as it goes.
    fn write(&mut self, at: usize) -> io::Result<()> {
        let (number, start) = (self.segments[at].number, self.segments[at].written.unwrap_or(0));
        let file = match self.open_to_write(number, start) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && start > 0 => {
                // Somebody removed or cut the file: a header begins another.
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
            return Err(io::Error::new(io::ErrorKind::NotFound, "the journal's file was cut"));
        }
        Ok(file)
    }

    fn note_unsynced(&mut self, number: u64, start: u64) {
        let mut add = |path: PathBuf| {
            if !self.unsynced.contains(&path) {
                self.unsynced.push_back(path);
            }
        };
        add(self.dir.join(format!("journal.{number}")));
        // A new file survives a power cut only with its name.
        if start == 0 {
            add(self.dir.clone());
        }
    }

    #[cfg(not(test))]
    fn write_at(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.write_at(bytes, at)
    }

    #[cfg(test)]
    fn write_at(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        let Some(room) = &mut self.room else { return file.write_at(bytes, at) };
        if *room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = file.write_at(&bytes[..bytes.len().min(*room)], at)?;
        *room -= count;
        Ok(count)
    }

    /// The number of a segment's first record.
    fn first(&self, number: u64) -> Option<u64> {
        let mut start = Vec::new();
        File::open(self.path(number)).ok()?.take(LINE_START_BYTES_MAX).read_to_end(&mut start).ok()?;
        seq_of(&start)
    }

    /// The whole lines of a segment's file.
    fn bytes(&self, segment: &Segment) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let length = segment.written.unwrap_or(FILE_BYTES_MAX);
        File::open(self.path(segment.number))?.take(length).read_to_end(&mut bytes)?;
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
        Ok(bytes)
    }
}

/// Numbers of files whose names begin with this, in order.
fn list(dir: &Path, prefix: &str) -> Vec<u64> {
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

/// The number of the record that a line begins with.
fn seq_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(LINE_START)?;
    let digits = &rest[..rest.iter().position(|byte| *byte == b',')?];
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A file of which nothing counts.
fn unreadable(what: What) -> Reading {
    Reading { entries: Vec::new(), sound_bytes: 0, end: End::Broken(Broken { seq: 1, what }) }
}

/// Whether a file without a whole line is what a crash left of its header: the beginning of one, or room that was never
/// filled.
fn is_torn_header(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(LINE_START.len())];
    LINE_START.starts_with(start) || bytes.iter().all(|byte| *byte == 0)
}

fn note(damage: &[(Broken, String)], last: Option<Link>) -> Option<String> {
    let ((broken, _), names) = (damage.first()?, damage.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>());
    let onward = match last {
        Some(last) => format!("it goes on behind record {}", last.seq),
        None => "it begins anew".to_owned(),
    };
    Some(format!("the journal was damaged ({broken}): {onward}, what was there is kept in {}", names.join(" and ")))
}

#[cfg(test)]
mod tests;
