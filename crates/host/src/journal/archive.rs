//! What is kept of a journal's segments that are gone: acts that were done, and everything a human did, as the lines they were.
//!
//! In a file beside the segments, `journal-kept-<n>`. It grows with each segment that goes; the header of the segment for which that
//! one goes says how far it reaches, so what a crash left behind that is not counted. Where it is too large, another file takes its
//! place: without the oldest acts of others than humans, and without humans' oldest only where nothing else is left.
//!
//! Reading what goes takes long, so it is done ahead, on another thread, while the newest segment fills ([`Ahead`]).

use holdfast_authority::journal::{Entry, Kept, entry, is_kept, is_of_human};
use holdfast_store::segments::{Segments, read_file};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest file: some ten thousand acts, as much as half of the segments.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What is left of it when it was too large: so that this is not done each time.
const BYTES_LEFT: u64 = BYTES_MAX / 4 * 3;
/// What their files' names begin with, behind that of the segments.
const WORD: &str = "kept";

/// Where they lie.
pub fn path(files: &Segments, generation: u64) -> PathBuf {
    numbered(&files.beside(WORD), generation)
}

fn numbered(beside: &Path, generation: u64) -> PathBuf {
    let mut name = OsString::from(beside);
    name.push(format!("-{generation}"));
    name.into()
}

/// Whether as much is there as a header says.
pub fn is_there(files: &Segments, kept: Kept) -> bool {
    kept.bytes == 0 || std::fs::metadata(path(files, kept.generation)).is_ok_and(|file| file.len() >= kept.bytes)
}

/// Keeping what is worth it of the segments that go when the next one is begun. What it writes counts once a header says so.
#[derive(Debug)]
pub struct Ahead {
    beside: PathBuf,
    goes: Vec<PathBuf>,
    before: Option<Kept>,
}

/// It was done: of which segments, and what is kept then.
#[derive(Debug)]
pub struct Done {
    pub goes: Vec<PathBuf>,
    pub kept: Option<Kept>,
}

impl Ahead {
    /// None where nothing goes.
    pub fn of(files: &Segments, before: Option<Kept>) -> Option<Ahead> {
        let goes = files.goes_next();
        (!goes.is_empty()).then(|| Ahead { beside: files.beside(WORD), goes, before })
    }

    /// Does it; on any thread.
    pub fn run(self) -> io::Result<Done> {
        let kept = keep(&self.beside, &self.goes, self.before)?;
        Ok(Done { goes: self.goes, kept })
    }
}

fn keep(beside: &Path, goes: &[PathBuf], before: Option<Kept>) -> io::Result<Option<Kept>> {
    let mut kept = before.unwrap_or_default();
    let mut lines = Vec::new();
    for file in goes {
        let bytes = read_file(file).unwrap_or_default();
        for (line, entry) in entries(&bytes).filter(|(_, entry)| is_kept(entry)) {
            if entry.seq > kept.last {
                kept.add(&entry, line.len());
                lines.extend_from_slice(line);
            }
        }
    }
    if lines.is_empty() {
        return Ok(before);
    }
    let start = before.map_or(0, |before| before.bytes);
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(numbered(beside, kept.generation))?;
    file.write_all_at(&lines, start)?;
    file.set_len(kept.bytes)?;
    if kept.bytes > BYTES_MAX { thin(beside, kept).map(Some) } else { Ok(Some(kept)) }
}

/// Another file with less in it.
fn thin(beside: &Path, kept: Kept) -> io::Result<Kept> {
    let bytes = std::fs::read(numbered(beside, kept.generation))?;
    let all: Vec<(&[u8], bool)> = entries(&bytes).map(|(line, entry)| (line, is_of_human(&entry))).collect();
    let mut left: u64 = all.iter().map(|(line, _)| line.len() as u64).sum();
    let mut goes = vec![false; all.len()];
    for humans in [false, true] {
        for (at, (line, _)) in all.iter().enumerate().filter(|(_, (_, is_human))| *is_human == humans) {
            if left <= BYTES_LEFT {
                break;
            }
            goes[at] = true;
            left -= line.len() as u64;
        }
    }
    let mut thinner = Kept { generation: kept.generation + 1, ..Kept::default() };
    let mut lines = Vec::new();
    for (line, _) in all.iter().zip(&goes).filter(|(_, goes)| !**goes).map(|(line, _)| line) {
        if let Some((line, entry)) = entries(line).next() {
            thinner.add(&entry, line.len());
            lines.extend_from_slice(line);
        }
    }
    // Even if the newest was dropped: what went does not come again.
    thinner.last = kept.last;
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(numbered(beside, thinner.generation))?;
    file.write_all_at(&lines, 0)?;
    Ok(thinner)
}

/// Removes the file before, where another has taken its place.
pub fn forget_other_than(files: &Segments, before: Option<Kept>, now: Option<Kept>) {
    let gone = before.filter(|before| now.is_none_or(|now| now.generation != before.generation));
    // Also where several were made between two headers.
    for generation in gone.map_or(0, |gone| gone.generation)..now.map_or(0, |now| now.generation) {
        let _ = std::fs::remove_file(path(files, generation));
    }
}

/// Whole lines that are records, with their line feeds.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (&[u8], Entry)> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.filter_map(|line| Some((line, entry(&line[..line.len() - 1]).ok()?)))
}
