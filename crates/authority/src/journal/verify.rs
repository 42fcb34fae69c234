//! Finding what is wrong with a journal: chain, signatures, fences.

use super::read::{Headers, Reader};
use super::{Broken, Entry, Kept, Link, What, entry, is_kept};
use crate::act::{Act, Record};
use crate::proof;
use holdfast_types::{ActorId, Nonce, SessionId};
use std::collections::BTreeSet;

/// What a sound journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Whose it is.
    pub session: SessionId,
    /// Records.
    pub records: u64,
    /// Number of the first: above 1 where older segments have gone.
    pub first: u64,
    /// Discrete acts with a signature that fits.
    pub signed: u64,
    /// Discrete acts without one.
    pub unsigned: u64,
    /// The last record: keep it elsewhere to notice a cut end.
    pub last: Link,
    /// Bytes of a torn last record, to be cut.
    pub torn_bytes: usize,
    /// The oldest record that the host keeps, as the last header says. Records between this and the first are missing.
    pub oldest: Option<u64>,
    /// Where the host found records missing or altered, and what it said.
    pub damaged: Vec<(u64, String)>,
    /// Records of older segments that came before the first.
    pub kept: Kept,
    /// What the last header says of them.
    pub kept_told: Option<Kept>,
}

impl Summary {
    /// Whether the records of older segments are all that the host kept.
    #[must_use]
    pub fn has_all_kept(&self) -> bool {
        let told = self.kept_told.unwrap_or_default();
        (self.kept.records, self.kept.hash) == (told.records, told.hash)
    }

    /// Records that should be kept and are not there: the first and the last of them.
    #[must_use]
    pub fn missing(&self) -> Option<(u64, u64)> {
        self.oldest.filter(|oldest| *oldest < self.first).map(|oldest| (oldest, self.first - 1))
    }
}

/// Checks a journal line by line. What was taken so far is sound; after a fault it goes no further.
#[derive(Debug, Clone)]
pub struct Checker {
    reader: Reader,
    /// A signed act counts once in the whole journal, not once in each segment.
    nonces: BTreeSet<(ActorId, Nonce)>,
    summary: Option<Summary>,
    /// Records of older segments, before the first header.
    kept: Kept,
    /// Those whose signatures wait for the header, which says whose journal it is.
    unchecked: Vec<Entry>,
}

impl Default for Checker {
    fn default() -> Checker {
        Checker::new()
    }
}

impl Checker {
    /// For segment behind segment, from the oldest kept on.
    #[must_use]
    pub fn new() -> Checker {
        Checker::of(Reader::new(None, Headers::Between))
    }

    fn of(reader: Reader) -> Checker {
        Checker { reader, nonces: BTreeSet::new(), summary: None, kept: Kept::default(), unchecked: Vec::new() }
    }

    /// The next line, without its line feed.
    pub fn line(&mut self, line: &[u8]) -> Result<Entry, Broken> {
        if self.summary.is_none() && self.reader.is_between() {
            let next = self.kept.last + 1;
            let entry = entry(line).map_err(|what| Broken { seq: next, what })?;
            if !matches!(entry.record.act, Act::Header { .. }) {
                self.keep(&entry, line.len() + 1).map_err(|what| Broken { seq: entry.seq, what })?;
                return Ok(entry);
            }
        }
        let entry = self.reader.line(line).map_err(|what| Broken { seq: self.reader.expected(), what })?;
        self.count(&entry).map_err(|what| Broken { seq: entry.seq, what })?;
        for older in std::mem::take(&mut self.unchecked) {
            self.count_kept(&older).map_err(|what| Broken { seq: older.seq, what })?;
        }
        Ok(entry)
    }

    fn count_kept(&mut self, older: &Entry) -> Result<(), What> {
        let Some(session) = self.summary.as_ref().map(|summary| summary.session) else { return Ok(()) };
        let is_signed = self.is_signed(older, session)?;
        if let Some(summary) = &mut self.summary {
            summary.kept = self.kept;
            summary.signed += u64::from(is_signed == Some(true));
            summary.unsigned += u64::from(is_signed == Some(false));
        }
        Ok(())
    }

    /// A record of an older segment: its hash is its own, its neighbours are gone.
    fn keep(&mut self, entry: &Entry, bytes: usize) -> Result<(), What> {
        if entry.seq <= self.kept.last {
            return Err(What::OutOfOrder { found: entry.seq });
        }
        if !is_kept(entry) {
            return Err(What::Header);
        }
        self.kept.add(entry, bytes);
        self.unchecked.push(entry.clone());
        Ok(())
    }

    /// What was sound so far; none before the first record.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The number the next record should have.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.reader.expected()
    }

    fn count(&mut self, entry: &Entry) -> Result<(), What> {
        let session = match (&self.summary, &entry.record.act) {
            (None, Act::Header { session, .. }) => *session,
            (None, _) => return Err(What::Header),
            (Some(summary), Act::Header { session, .. }) if summary.session != *session => {
                return Err(What::OtherChain);
            }
            (Some(summary), _) => summary.session,
        };
        let is_signed = self.is_signed(entry, session)?;
        let summary = self.summary.get_or_insert(Summary {
            session,
            records: 0,
            first: entry.seq,
            signed: 0,
            unsigned: 0,
            last: entry.link(),
            torn_bytes: 0,
            oldest: None,
            damaged: Vec::new(),
            kept: Kept::default(),
            kept_told: None,
        });
        match &entry.record.act {
            Act::Header { oldest, kept, .. } => (summary.oldest, summary.kept_told) = (*oldest, *kept),
            Act::Damaged { what } => summary.damaged.push((entry.seq, what.clone())),
            _ => {}
        }
        summary.records += 1;
        summary.last = entry.link();
        match is_signed {
            Some(true) => summary.signed += 1,
            Some(false) => summary.unsigned += 1,
            None => {}
        }
        Ok(())
    }

    /// None where there is nothing to sign.
    fn is_signed(&mut self, entry: &Entry, session: SessionId) -> Result<Option<bool>, What> {
        let Record { act: Act::Asked(ask), by, proof, .. } = &entry.record else { return Ok(None) };
        let (Some(actor), Some(proof)) = (by.actor(), proof) else { return Ok(Some(false)) };
        proof::verify_act(actor.id, session, ask, proof).map_err(|_| What::Forged)?;
        if self.nonces.insert((actor.id, proof.nonce)) { Ok(Some(true)) } else { Err(What::Copied) }
    }
}

/// Checks one segment, without what is kept of those before it; `after` is the end of the segment before, where that is known. A torn last record is no fault; it is
/// counted.
pub fn verify(bytes: &[u8], after: Option<Link>) -> Result<Summary, Broken> {
    let mut checker = Checker::of(Reader::new(after, Headers::First));
    let mut rest = bytes;
    while let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
        checker.line(&rest[..length])?;
        rest = &rest[length + 1..];
    }
    let expected = checker.expected();
    let summary = checker.summary.ok_or(Broken { seq: expected, what: What::Header })?;
    Ok(Summary { torn_bytes: rest.len(), ..summary })
}
