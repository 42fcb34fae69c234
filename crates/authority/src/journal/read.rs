//! Reading a journal back, and which act an output offset stands behind.

use super::{BEFORE_HASH, BEHIND_HASH, Entry, LineIn, Link, NO_HASH, TAIL_BYTES, hash};
use crate::act::{Act, Outcome, Record};
use holdfast_types::Hash;
use holdfast_types::{Fence, Offset};

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum What {
    /// It is no record of this version.
    #[error("not a record")]
    NotARecord,
    /// Its bytes are not those that were hashed.
    #[error("altered")]
    Altered,
    /// Records are missing before it.
    #[error("records before it are missing, it is number {found}")]
    Removed {
        /// The number found.
        found: u64,
    },
    /// A record that was there already, or one too many.
    #[error("inserted or out of order, it is number {found}")]
    OutOfOrder {
        /// The number found.
        found: u64,
    },
    /// It was not written behind the record before it.
    #[error("it does not follow the record before it")]
    Unchained,
    /// The segment does not begin with a header, or one stands inside it.
    #[error("a segment begins with one header")]
    Header,
    /// The header is another session's, or does not carry on where the segment before ended.
    #[error("the segment does not carry on the one before")]
    OtherChain,
    /// The actor did not sign this.
    #[error("the signature is not from its actor")]
    Forged,
    /// The signed act was recorded before: it was copied.
    #[error("a copy of an act that was signed once")]
    Copied,
    /// Its fence is older than the one before.
    #[error("a fence went back")]
    FenceWentBack,
}

/// A record that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq}: {what}")]
pub struct Broken {
    /// The number it should have.
    pub seq: u64,
    /// What is wrong.
    pub what: What,
}

/// How a journal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Behind a whole record.
    Clean,
    /// In the middle of the last record, as a crash leaves it: these bytes are to be cut.
    Torn {
        /// How many.
        bytes: usize,
    },
    /// Before a record that is not as it was written.
    Broken(Broken),
}

/// What could be read of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Sound records.
    pub entries: Vec<Entry>,
    /// Bytes they take; what is behind is torn or broken.
    pub sound_bytes: usize,
    /// How it ended.
    pub end: End,
}

/// Reads one segment as far as it is sound; `after` is the end of the segment before, where that is known. Never fails: a
/// host goes on with what is sound, and says what was not.
#[must_use]
pub fn read(bytes: &[u8], after: Option<Link>) -> Reading {
    let mut reader = Reader::new(after, Headers::First);
    let mut entries = Vec::new();
    let mut rest = bytes;
    let end = loop {
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            break if rest.is_empty() { End::Clean } else { End::Torn { bytes: rest.len() } };
        };
        match reader.line(&rest[..length]) {
            Ok(entry) => entries.push(entry),
            Err(what) => break End::Broken(Broken { seq: reader.expected(), what }),
        }
        rest = &rest[length + 1..];
    };
    Reading { entries, sound_bytes: bytes.len() - rest.len(), end }
}

/// Which act an output offset stands behind: the last that reached into the session at or before it.
#[must_use]
pub fn at(entries: &[Entry], offset: Offset) -> Option<&Entry> {
    // What a keeper recorded by itself comes late, so offsets do not grow with numbers.
    let reached = |entry: &&Entry| entry.record.act.writes() && entry.record.outcome == Outcome::Done;
    let before = entries.iter().filter(reached).filter(|entry| start(&entry.record) <= offset);
    before.max_by_key(|entry| (start(&entry.record), entry.seq))
}

fn start(record: &Record) -> Offset {
    match &record.act {
        Act::Typed(burst) => burst.from,
        Act::Header { .. } | Act::Started | Act::Began | Act::Restarted | Act::Linked | Act::Damaged { .. } => {
            record.at
        }
        Act::Attached(_) | Act::Resumed(_) | Act::Joined(_) | Act::Left(_) | Act::CutOff(_) => record.at,
        Act::Ended(_) | Act::Forgotten(_) | Act::Asked(_) | Act::Lapsed(_) | Act::Took => record.at,
        Act::RefusedMore { .. } => record.at,
        Act::Did { .. } | Act::Forked(_) | Act::Restored(_) | Act::Leased(_) => record.at,
    }
}

/// Where a header may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Headers {
    /// First, and nowhere else: one segment.
    First,
    /// Wherever it carries on what stands before it: segment behind segment.
    Between,
}

/// Follows the chain line by line.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    last: Option<Link>,
    is_first: bool,
    fence: Fence,
    headers: Headers,
}

impl Reader {
    pub(super) fn new(after: Option<Link>, headers: Headers) -> Reader {
        Reader { last: after, is_first: true, fence: Fence(0), headers }
    }

    /// For segment behind segment.
    pub(super) fn is_between(&self) -> bool {
        self.headers == Headers::Between
    }

    pub(super) fn expected(&self) -> u64 {
        self.last.map_or(1, |last| last.seq + 1)
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<Entry, What> {
        let entry = entry(line)?;
        let header = if let Act::Header { previous, .. } = &entry.record.act { Some(*previous) } else { None };
        let may_stand = match (header, self.headers) {
            (Some(_), Headers::First) => self.is_first,
            (Some(_), Headers::Between) => true,
            (None, Headers::First | Headers::Between) => !self.is_first,
        };
        if !may_stand {
            return Err(What::Header);
        }
        if let Some(previous) = header {
            // Without the segment before, the header's word is taken for where it ended.
            let before = self.last.or(previous);
            if previous != before || entry.prev != before.map_or(NO_HASH, |link| link.hash) {
                return Err(What::OtherChain);
            }
            self.last = before;
        }
        let expected = self.expected();
        if entry.seq > expected {
            return Err(What::Removed { found: entry.seq });
        }
        if entry.seq < expected {
            return Err(What::OutOfOrder { found: entry.seq });
        }
        if self.last.is_some_and(|last| entry.prev != last.hash) {
            return Err(What::Unchained);
        }
        if self.fence > entry.record.fence && !is_late(&entry.record) {
            return Err(What::FenceWentBack);
        }
        self.fence = self.fence.max(entry.record.fence);
        (self.last, self.is_first) = (Some(entry.link()), false);
        Ok(entry)
    }
}

/// Typing that a keeper recorded by itself may belong to a fence before.
fn is_late(record: &Record) -> bool {
    matches!(record.act, Act::Typed(_))
}

/// One line by itself, without its line feed: its hash is its own, whatever stands before it.
pub fn entry(line: &[u8]) -> Result<Entry, What> {
    let (body, tail) = line.len().checked_sub(TAIL_BYTES).map(|at| line.split_at(at)).ok_or(What::NotARecord)?;
    let digits =
        tail.strip_prefix(BEFORE_HASH).and_then(|tail| tail.strip_suffix(BEHIND_HASH)).ok_or(What::NotARecord)?;
    let told: Hash = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(What::NotARecord)?;
    if hash(body) != told {
        return Err(What::Altered);
    }
    let mut whole = body.to_vec();
    whole.push(b'}');
    let line: LineIn = serde_json::from_slice(&whole).map_err(|_| What::NotARecord)?;
    Ok(line.entry(told))
}
