//! The journal's codec: records as hash-chained lines.
//!
//! A line is one JSON object. Its last member is `hash`: BLAKE3 over the bytes of the line before `,"hash":`, behind a
//! domain. Among those bytes are `seq` and `prev`, the hash of the line before, so no line can be altered, removed,
//! inserted or moved without breaking the chain. A segment begins with a header, which carries where the one before ended
//! and the state there: older segments can go, and the chain goes on.
//!
//! What a chain cannot show by itself: that its end was cut off, or that all of it was written anew by who holds the file.
//! Against the first helps a [`Link`] kept elsewhere; against the second the actors' signatures.

mod kept;
mod read;
mod verify;

pub use kept::{Kept, is_kept, is_of_human};
pub use read::{Broken, End, Reading, What, at, entry, read};
pub use verify::{Checker, Summary, verify};

use crate::act::{Act, By, Change, Gate, Outcome, Record};
use holdfast_types::Hash;
use holdfast_types::Proof;
use holdfast_types::{Fence, Offset, TimeMs};
use serde::{Deserialize, Serialize};

/// The domain of the hash; another version is another domain.
const DOMAIN: &[u8] = b"holdfast journal v1\0";
/// Before and behind the hash in its line.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const BEHIND_HASH: &[u8] = b"\"}";
/// Bytes of a line from `,"hash":` on.
const TAIL_BYTES: usize = BEFORE_HASH.len() + 64 + BEHIND_HASH.len();
/// What the very first record names as the hash before it.
pub const NO_HASH: Hash = Hash([0; 32]);

/// The end of a chain: number and hash of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

/// A record in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the session, from 1, over all segments.
    pub seq: u64,
    /// What happened.
    pub record: Record,
    /// The hash of the one before.
    pub prev: Hash,
    /// Its own hash.
    pub hash: Hash,
}

impl Entry {
    /// Its end of the chain.
    #[must_use]
    pub fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.hash }
    }
}

#[derive(Serialize)]
struct LineOut<'a> {
    seq: u64,
    #[serde(flatten)]
    record: &'a Record,
    prev: Hash,
}

/// The same, read: spelled out, because serde cannot read maps with numbers for keys through `flatten`.
#[derive(Deserialize)]
struct LineIn {
    seq: u64,
    time_ms: TimeMs,
    at: Offset,
    by: By,
    act: Act,
    fence: Fence,
    incarnation: u32,
    outcome: Outcome,
    #[serde(default)]
    changes: Vec<Change>,
    #[serde(default)]
    proof: Option<Proof>,
    #[serde(default)]
    gate: Option<Gate>,
    prev: Hash,
}

impl LineIn {
    fn entry(self, hash: Hash) -> Entry {
        let LineIn { seq, time_ms, at, by, act, fence, incarnation, outcome, changes, proof, gate, prev } = self;
        let record = Record { time_ms, at, by, act, fence, incarnation, outcome, changes, proof, gate };
        Entry { seq, record, prev, hash }
    }
}

fn hash(body: &[u8]) -> Hash {
    Hash(*blake3::Hasher::new().update(DOMAIN).update(body).finalize().as_bytes())
}

/// Where a journal ends, and so where it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    last: Option<Link>,
}

impl Chain {
    /// Goes on behind a record; none: a new journal.
    #[must_use]
    pub fn after(last: Option<Link>) -> Chain {
        Chain { last }
    }

    /// The last record.
    #[must_use]
    pub fn last(&self) -> Option<Link> {
        self.last
    }

    /// The record's line with its line feed, to be appended to the journal.
    pub fn append(&mut self, record: &Record) -> Vec<u8> {
        let seq = self.last.map_or(1, |last| last.seq + 1);
        let prev = self.last.map_or(NO_HASH, |last| last.hash);
        let mut line = serde_json::to_vec(&LineOut { seq, record, prev }).expect("records always serialise");
        line.pop();
        let hash = hash(&line);
        line.extend_from_slice(BEFORE_HASH);
        line.extend_from_slice(hash.to_string().as_bytes());
        line.extend_from_slice(BEHIND_HASH);
        line.push(b'\n');
        self.last = Some(Link { seq, hash });
        line
    }
}
