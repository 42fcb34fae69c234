//! One session's journal on disk: `journal.<n>`, [segments](holdfast_store::segments) of hash-chained lines, each beginning with a header.
//!
//! A header carries the state, so the newest segment alone brings a session back, and old ones are dropped. Here is what the chain says
//! of the lines; how they lie in files is the store's.
//!
//! Never syncs by itself: that can take long, and this thread serves every session.

mod acts;
mod archive;

pub use acts::{Wrote, others_since, writing_acts, wrote_before};
pub use archive::{Ahead, Done};
pub use holdfast_store::segments::Reader;

use holdfast_authority::journal::{Broken, Chain, End, Entry, Kept, Link, Reading, What, entry, read};
use holdfast_authority::{Act, Authority, Policy, Record};
use holdfast_store::pin::{self, Pinned};
use holdfast_store::segments::{Loaded, Segments, is_torn_start};
use holdfast_types::SessionId;
use std::io;
use std::path::{Path, PathBuf};

/// The files' name.
const NAME: &str = "journal";
/// The file beside them that says which record was the last: `<number> <hash>`.
const LAST: &str = "last";

/// One session's journal.
#[derive(Debug)]
pub struct Journal {
    session: SessionId,
    /// Its end, with what is pending.
    chain: Chain,
    files: Segments,
    /// The oldest record that is kept.
    oldest: u64,
    /// The record that the file beside it says was the last.
    pinned: Option<Link>,
    /// What is kept of segments that are gone.
    kept: Option<Kept>,
    archiving: Archiving,
}

/// How far keeping is of what goes with the next segment.
#[derive(Debug, Default)]
enum Archiving {
    /// Not begun: where a segment is begun now, it is done then.
    #[default]
    No,
    /// On another thread: nothing goes before it is done.
    OnItsWay,
    Done(Done),
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
    /// Records are missing: what is to be recorded of it, first of all ([`holdfast_authority::Input::Damaged`]).
    pub damage: Option<String>,
}

impl Journal {
    /// A new session's journal; nothing is on disk until its first header.
    #[must_use]
    pub fn new(dir: &Path, session: SessionId) -> Journal {
        Journal::of(session, Segments::new(dir, NAME))
    }

    fn of(session: SessionId, files: Segments) -> Journal {
        Journal {
            session,
            chain: Chain::default(),
            files,
            oldest: 1,
            pinned: None,
            kept: None,
            archiving: Archiving::No,
        }
    }

    /// Reads back what is there, and makes it fit to be gone on with: a torn last record is cut, damage is set aside. Never
    /// fails: what cannot be read costs the records behind it, and the note says so. A later version's is left as it is, and
    /// takes no records.
    #[must_use]
    pub fn open(dir: &Path, session: SessionId, policy: Policy) -> Opened {
        let mut journal = Journal::of(session, Segments::find(dir, NAME));
        let mut damage: Vec<(Broken, String)> = Vec::new();
        let mut authority = Authority::new(policy);
        let mut newest = Vec::new();
        while let Some(number) = journal.files.newest() {
            let (bytes, reading) = match journal.files.load(number) {
                Loaded::Bytes(bytes) => {
                    let reading = journal.examine(&bytes);
                    (bytes, reading)
                }
                Loaded::Unreadable => (Vec::new(), unreadable(What::NotARecord)),
                Loaded::Newer => {
                    let note = journal.files.retry().err().map(|error| error.to_string());
                    return Opened { journal, authority, note, damage: None };
                }
            };
            let sound = reading.sound_bytes;
            let is_broken = matches!(reading.end, End::Broken(_));
            if let End::Broken(broken) = reading.end {
                damage.push((broken, journal.files.set_aside(number, &bytes[sound..], sound)));
            }
            if let Some(last) = reading.entries.last() {
                journal.chain = Chain::after(Some(last.link()));
                let left = if is_broken { &bytes[..sound] } else { &bytes[..] };
                journal.files.keep(left, sound, damage.is_empty());
                authority.replay_more(reading.entries.iter().map(|entry| &entry.record));
                newest = reading.entries;
                break;
            }
            // A crash while the segment began: the one before it has the same state.
            journal.files.drop_newest(!is_broken);
        }
        let note = note(&damage, journal.last());
        if note.is_some() {
            journal.files.forget_broken();
        }
        let missing = journal.missing(&newest);
        let damage = note.or_else(|| missing.map(|what| format!("the journal was damaged: {what}")));
        if damage.is_some() {
            // What is before is vouched for no more: a segment of its own begins behind it.
            journal.files.end_newest();
            journal.oldest = journal.last().map_or(1, |last| last.seq + 1);
        }
        Opened { journal, authority, note: damage.clone(), damage }
    }

    /// What should be there and is not, beside what is broken: the end, as the file beside the segments says it; what stands between
    /// two segments; the oldest ones.
    fn missing(&mut self, newest: &[Entry]) -> Option<String> {
        let header = newest.first().map(|entry| &entry.record.act);
        let Some(Act::Header { oldest: told, kept, .. }) = header else {
            let is_empty = self.last().is_none() && pin::read(&self.files.beside(LAST)) == Pinned::None;
            return (!is_empty).then(|| "none of its records is there".to_owned());
        };
        let Some(oldest) = *told else {
            // One of a version that had no such file, and did not say what it keeps.
            let first = self.files.edges().flatten().find_map(|(first, _)| entry(&first).ok());
            self.oldest = first.map_or(1, |first| first.seq);
            return None;
        };
        self.oldest = oldest;
        self.kept = *kept;
        if let Some(kept) = kept
            && !archive::is_there(&self.files, *kept)
        {
            return Some("acts that were kept of older records are missing".to_owned());
        }
        let mut before: Option<Link> = None;
        for edge in self.files.edges() {
            let edge = edge.and_then(|(first, last)| Some((entry(&first).ok()?, entry(&last).ok()?)));
            let Some((first, last)) = edge else {
                return Some("the first or the last record of a segment was altered".to_owned());
            };
            // About to be dropped, or from before an earlier damage.
            if before.is_none() && first.seq < oldest {
                continue;
            }
            let follows = match (&first.record.act, before) {
                (Act::Header { .. }, None) => first.seq == oldest,
                (Act::Header { previous, .. }, Some(before)) => *previous == Some(before),
                _ => false,
            };
            if !follows {
                let from = before.map_or(oldest, |before| before.seq + 1);
                return Some(format!("records {from} to {} are missing", first.seq.saturating_sub(1)));
            }
            before = Some(last.link());
        }
        let pinned = match pin::read(&self.files.beside(LAST)) {
            Pinned::Text(text) => link_of(&text),
            Pinned::None | Pinned::Damaged => None,
        };
        let Some(pinned) = pinned else { return Some(format!("{NAME}-{LAST} is missing or was altered")) };
        self.pinned = Some(pinned);
        let last = self.last().map_or(0, |last| last.seq);
        if last < pinned.seq {
            return Some(format!("records {} to {} are missing", last + 1, pinned.seq));
        }
        let there = newest.iter().find(|entry| entry.seq == pinned.seq);
        there.filter(|entry| entry.link() != pinned).map(|entry| format!("record {} was replaced", entry.seq))
    }

    /// Says beside the segments which record is the last, once it is there.
    fn pin(&mut self) {
        let last = self.last().filter(|last| self.pinned != Some(*last) && self.files.waiting_bytes() == 0);
        if let Some(last) = last {
            // Where that fails, the next host finds it behind, which says nothing, or gone.
            let written = pin::write(&self.files.beside(LAST), &format!("{} {}", last.seq, last.hash));
            self.pinned = written.is_ok().then_some(last);
        }
    }

    /// Writes records, which must happen before their effects; one write for all of them. What does not fit on the disk waits
    /// and is tried again first thing at the next call: an error while anything waits. Where too much waits the records are
    /// not taken; then a segment is wanted, whose header carries what they changed.
    pub fn append<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> io::Result<()> {
        let mut chain = self.chain;
        let mut lines = Vec::new();
        records.into_iter().for_each(|record| lines.extend_from_slice(&chain.append(record)));
        if lines.is_empty() {
            return self.files.retry();
        }
        let is_taken = self.files.take(&lines);
        if is_taken {
            self.chain = chain;
        }
        self.files.retry()?;
        self.pin();
        if is_taken {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::StorageFull, "the journal has no segment that takes records"))
        }
    }

    /// Tries again what waits: an error while anything does.
    pub fn retry(&mut self) -> io::Result<()> {
        self.files.retry()?;
        self.pin();
        Ok(())
    }

    /// The next record must be a header: there is no segment yet, it is full, or it is damaged. To be asked when everything
    /// the authority recorded was passed to [`Journal::append`], since the header has the state behind all of it; then
    /// `authority.rotate(session, journal.last(), now)` goes to [`Journal::begin_segment`].
    #[must_use]
    pub fn wants_segment(&self) -> bool {
        self.files.wants_segment()
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
        self.files.make_room()?;
        let (kept, goes) = self.kept_behind_next()?;
        if kept != self.kept {
            kept.into_iter().for_each(|kept| self.files.wrote_beside(archive::path(&self.files, kept.generation)));
        }
        let before = std::mem::replace(&mut self.kept, kept);
        if goes {
            self.oldest = self.files.oldest_behind_next().unwrap_or(self.oldest);
        }
        let mut header = header.clone();
        if let Act::Header { oldest, kept, .. } = &mut header.act {
            (*oldest, *kept) = (Some(self.oldest), self.kept);
        }
        self.files.begin(self.chain.append(&header));
        self.retry()?;
        // The header that speaks of them is written.
        if goes {
            self.files.drop_oldest();
        }
        archive::forget_other_than(&self.files, before, self.kept);
        Ok(())
    }

    /// What is kept once the next segment is begun, and whether the oldest ones go.
    fn kept_behind_next(&mut self) -> io::Result<(Option<Kept>, bool)> {
        match std::mem::take(&mut self.archiving) {
            Archiving::OnItsWay => {
                self.archiving = Archiving::OnItsWay;
                Ok((self.kept, false))
            }
            Archiving::Done(done) if done.goes == self.files.goes_next() => Ok((done.kept, true)),
            Archiving::Done(_) | Archiving::No => {
                let done = Ahead::of(&self.files, self.kept).map(Ahead::run).transpose()?;
                Ok((done.map_or(self.kept, |done| done.kept), true))
            }
        }
    }

    /// What is to be done on another thread before the next segment is begun, so that nobody waits for it then; once.
    /// [`Journal::archived`] says how it went.
    pub fn archives(&mut self) -> Option<Ahead> {
        let ahead = matches!(self.archiving, Archiving::No).then(|| Ahead::of(&self.files, self.kept)).flatten()?;
        self.archiving = Archiving::OnItsWay;
        Some(ahead)
    }

    /// It was done; where it failed, it is tried again.
    pub fn archived(&mut self, done: io::Result<Done>) {
        self.archiving = done.map_or(Archiving::No, Archiving::Done);
    }

    /// The last record, written or waiting.
    #[must_use]
    pub fn last(&self) -> Option<Link> {
        self.chain.last()
    }

    /// Number of the last record on disk; 0: there is none.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.last().map_or(0, |last| last.seq).saturating_sub(self.files.waiting_lines())
    }

    /// Something was written and is not synced.
    #[must_use]
    pub fn is_unsynced(&self) -> bool {
        self.files.is_unsynced()
    }

    /// A file to be synced, off this thread; to be called until there is none. What is written later makes it unsynced again.
    pub fn unsynced(&mut self) -> Option<PathBuf> {
        self.files.unsynced()
    }

    /// The last record on disk; none where there is none, or more waits for the disk.
    #[must_use]
    pub fn last_on_disk(&self) -> Option<Link> {
        self.last().filter(|_| self.files.waiting_bytes() == 0)
    }

    /// Its files, the oldest first.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.files()
    }

    /// What reads the lines that are on disk now, off this thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let reader = self.files.reader(self.newest());
        match self.kept {
            Some(kept) => reader.behind(archive::path(&self.files, kept.generation), kept.bytes, kept.last),
            None => reader,
        }
    }

    /// One segment as far as it is sound. What is no file of this session's is broken from its first line on.
    fn examine(&self, bytes: &[u8]) -> Reading {
        let reading = read(bytes, None);
        match (reading.entries.first().map(|entry| &entry.record.act), &reading.end) {
            (Some(Act::Header { session, .. }), _) if *session == self.session => reading,
            (Some(_), _) => unreadable(What::OtherChain),
            (None, End::Torn { .. }) if !is_torn_start(bytes) => unreadable(What::NotARecord),
            (None, End::Clean | End::Torn { .. } | End::Broken(_)) => reading,
        }
    }
}

/// A file of which nothing counts.
fn unreadable(what: What) -> Reading {
    Reading { entries: Vec::new(), sound_bytes: 0, end: End::Broken(Broken { seq: 1, what }) }
}

/// What the file beside the segments says.
fn link_of(text: &str) -> Option<Link> {
    let (seq, hash) = text.split_once(' ')?;
    Some(Link { seq: seq.parse().ok()?, hash: hash.parse().ok()? })
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
