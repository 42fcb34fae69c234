//! Reading a journal back, and finding what is wrong with it.

use super::{BEFORE_HASH, BEHIND_HASH, Entry, LineIn, Link, NO_HASH, TAIL_BYTES, hash};
use crate::act::{Act, Record};
use crate::actor::ActorId;
use crate::hex::{Hash, Nonce};
use crate::proof;
use holdfast_types::{Fence, Offset, SessionId};
use std::collections::BTreeSet;

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
    #[error("the signature is not its actor's")]
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

/// What a sound journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Whose it is.
    pub session: SessionId,
    /// Records.
    pub records: u64,
    /// Discrete acts with a signature that fits.
    pub signed: u64,
    /// Discrete acts without one.
    pub unsigned: u64,
    /// The last record: keep it elsewhere to notice a cut end.
    pub last: Link,
    /// Bytes of a torn last record, to be cut.
    pub torn_bytes: usize,
}

/// Reads one segment as far as it is sound; `after` is the end of the segment before, where that is known. Never fails: a
/// host goes on with what is sound, and says what was not.
#[must_use]
pub fn read(bytes: &[u8], after: Option<Link>) -> Reading {
    let mut reader = Reader::new(after);
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

/// Checks one segment: chain, signatures, fences. A torn last record is no fault; it is counted.
pub fn verify(bytes: &[u8], after: Option<Link>) -> Result<Summary, Broken> {
    let reading = read(bytes, after);
    let torn_bytes = match reading.end {
        End::Clean => 0,
        End::Torn { bytes } => bytes,
        End::Broken(broken) => return Err(broken),
    };
    let broken = |seq, what| Broken { seq, what };
    let first = after.map_or(1, |after| after.seq + 1);
    let (Some(header), Some(last)) = (reading.entries.first(), reading.entries.last()) else {
        return Err(broken(first, What::Header));
    };
    let Act::Header { session, .. } = header.record.act else { return Err(broken(header.seq, What::Header)) };
    let mut summary = Summary {
        session,
        records: reading.entries.len() as u64,
        signed: 0,
        unsigned: 0,
        last: last.link(),
        torn_bytes,
    };
    let mut nonces: BTreeSet<(ActorId, Nonce)> = BTreeSet::new();
    for entry in &reading.entries {
        check(entry, session, &mut nonces, &mut summary).map_err(|what| broken(entry.seq, what))?;
    }
    Ok(summary)
}

fn check(
    entry: &Entry,
    session: SessionId,
    nonces: &mut BTreeSet<(ActorId, Nonce)>,
    summary: &mut Summary,
) -> Result<(), What> {
    let Record { act: Act::Asked(ask), by, proof, .. } = &entry.record else { return Ok(()) };
    let (Some(actor), Some(proof)) = (by.actor(), proof) else {
        summary.unsigned += 1;
        return Ok(());
    };
    proof::verify_act(actor.id, session, ask, proof).map_err(|_| What::Forged)?;
    summary.signed += 1;
    if nonces.insert((actor.id, proof.nonce)) { Ok(()) } else { Err(What::Copied) }
}

/// Which act an output offset stands behind: the last that reached into the session at or before it.
#[must_use]
pub fn at(entries: &[Entry], offset: Offset) -> Option<&Entry> {
    // What a keeper recorded by itself comes late, so offsets do not grow with numbers.
    let before = entries.iter().filter(|entry| entry.record.act.writes() && start(&entry.record) <= offset);
    before.max_by_key(|entry| (start(&entry.record), entry.seq))
}

fn start(record: &Record) -> Offset {
    match &record.act {
        Act::Typed(burst) => burst.from,
        Act::Header { .. } | Act::Started | Act::Began | Act::Restarted => record.at,
        Act::Attached(_) | Act::Resumed(_) | Act::Left(_) | Act::CutOff(_) => record.at,
        Act::Asked(_) | Act::Lapsed(_) => record.at,
    }
}

/// Follows the chain line by line.
struct Reader {
    last: Option<Link>,
    is_first: bool,
    fence: Fence,
}

impl Reader {
    fn new(after: Option<Link>) -> Reader {
        Reader { last: after, is_first: true, fence: Fence(0) }
    }

    fn expected(&self) -> u64 {
        self.last.map_or(1, |last| last.seq + 1)
    }

    fn line(&mut self, line: &[u8]) -> Result<Entry, What> {
        let entry = decode(line)?;
        let header = if let Act::Header { previous, .. } = &entry.record.act { Some(*previous) } else { None };
        if header.is_some() != self.is_first {
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

fn decode(line: &[u8]) -> Result<Entry, What> {
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
