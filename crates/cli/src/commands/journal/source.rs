//! Where a journal's lines come from: a host, or files that were copied from one.

use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::journal_args::JournalArgs;
use holdfast_authority::journal;
use holdfast_store::pin::{self, Pinned};
use holdfast_types::Offset;
use holdfast_wire::operations::op;
use holdfast_wire::turns::JournalParams;
use std::path::{Path, PathBuf};

/// How long a question for more waits at the host before it is asked again.
const FOLLOW_WAIT_MS: u64 = 60_000;

/// A line of a journal, without its line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// As it was written.
    pub bytes: Vec<u8>,
    /// File and line, where it came from one.
    pub place: Option<(PathBuf, usize)>,
}

/// A journal to be read from its beginning.
#[derive(Debug)]
pub struct Source<'a> {
    from: From<'a>,
    /// Behind the last record given there is more.
    more: bool,
    torn_bytes: usize,
    /// The last record by the host's own word.
    newest: Option<journal::Link>,
}

#[derive(Debug)]
enum From<'a> {
    Host { link: Link<'a>, session: String, head: Offset, after: u64, end: bool },
    Files(Vec<Line>),
}

impl<'a> Source<'a> {
    /// What the arguments name.
    pub fn open(here: &'a Here, args: &JournalArgs) -> Result<Source<'a>, Failure> {
        match &args.session {
            Some(session) => Source::of_session(here.link()?, session),
            None => Source::of_files(&args.files),
        }
    }

    /// A session's journal.
    pub fn of_session(mut link: Link<'a>, session: &str) -> Result<Source<'a>, Failure> {
        let view = link.get(session)?;
        // The id: a name may go to another session while we follow.
        let from = From::Host { link, session: view.id.to_string(), head: view.head, after: 0, end: false };
        Ok(Source { from, more: true, torn_bytes: 0, newest: None })
    }

    fn of_files(paths: &[PathBuf]) -> Result<Source<'a>, Failure> {
        let read = |path: &PathBuf| match std::fs::read(path) {
            Ok(bytes) => Ok((path.clone(), bytes)),
            Err(error) => Err(Failure::io(format!("cannot read {}", path.display()), error)),
        };
        let files = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let (lines, torn_bytes) = join(files);
        let newest = paths.first().and_then(|path| last_beside(path));
        Ok(Source { from: From::Files(lines), more: true, torn_bytes, newest })
    }

    /// The next lines. None: that was all, or, where it waits, the session has ended too.
    pub fn next(&mut self, wait: bool) -> Result<Option<Vec<Line>>, Failure> {
        if !self.more && !wait {
            return Ok(None);
        }
        match &mut self.from {
            From::Files(lines) => {
                self.more = false;
                Ok(Some(std::mem::take(lines)).filter(|lines| !lines.is_empty()))
            }
            From::Host { end: true, .. } => Ok(None),
            From::Host { link, session, after, end, .. } => {
                let wait_ms = if self.more || !wait { 0 } else { FOLLOW_WAIT_MS };
                let params = JournalParams { session: session.clone(), after: *after, last: None, wait_ms };
                let (answer, bytes) = link.call_with_bytes::<op::Journal>(&params, &[])?;
                if answer.more && answer.to <= *after {
                    return Err(Failure::new("nonsense", "the host reported more journal records but sent none"));
                }
                self.more = answer.more;
                self.newest = answer.newest.zip(answer.newest_hash).map(|(seq, hash)| journal::Link { seq, hash });
                (*after, *end) = (answer.to.max(*after), answer.end);
                let lines = bytes.split_inclusive(|byte| *byte == b'\n');
                let line = |line: &[u8]| Line { bytes: line.strip_suffix(b"\n").unwrap_or(line).to_vec(), place: None };
                Ok(Some(lines.map(line).collect()))
            }
        }
    }

    /// There is more now.
    pub fn is_more(&self) -> bool {
        self.more
    }

    /// The last record, as the host that wrote it says.
    pub fn newest(&self) -> Option<journal::Link> {
        self.newest
    }

    /// Bytes of a torn last record.
    pub fn torn_bytes(&self) -> usize {
        self.torn_bytes
    }

    /// Where the output ends, where that is known.
    pub fn head(&self) -> Option<Offset> {
        match &self.from {
            From::Host { head, .. } => Some(*head),
            From::Files(_) => None,
        }
    }
}

/// The last record, as the host that wrote these files says beside them; none where that was not copied.
fn last_beside(path: &Path) -> Option<journal::Link> {
    let Pinned::Text(text) = pin::read(&path.with_file_name("journal-last")) else { return None };
    let (seq, hash) = text.split_once(' ')?;
    Some(journal::Link { seq: seq.parse().ok()?, hash: hash.parse().ok()? })
}

/// All lines of some files, the oldest file first, and how many bytes the last one's torn record has.
///
/// Files are put in order by the number of their first record: `journal.10` comes before `journal.2` on a command line.
pub fn join(mut files: Vec<(PathBuf, Vec<u8>)>) -> (Vec<Line>, usize) {
    files.sort_by_key(|(_, bytes)| first_seq(bytes));
    let mut torn_bytes = 0;
    let mut all = Vec::new();
    let count = files.len();
    for (n, (path, bytes)) in files.iter().enumerate() {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        for (i, line) in lines {
            match line.strip_suffix(b"\n") {
                Some(whole) => all.push(placed(whole, path, i)),
                None if n + 1 == count => torn_bytes = line.len(),
                // Behind a torn record another segment goes on: it was cut there.
                None => all.push(placed(line, path, i)),
            }
        }
    }
    (all, torn_bytes)
}

fn placed(line: &[u8], path: &Path, index: usize) -> Line {
    Line { bytes: line.to_vec(), place: Some((path.to_owned(), index + 1)) }
}

/// Unreadable ones come last, in the order they were given.
fn first_seq(bytes: &[u8]) -> u64 {
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let by_itself = || serde_json::from_slice::<serde_json::Value>(first).ok()?["seq"].as_u64();
    journal::entry(first).ok().map(|entry| entry.seq).or_else(by_itself).unwrap_or(u64::MAX)
}
