//! What of a journal outlives its segments.
//!
//! A journal is bounded, and the oldest segment goes for the newest. Much of one is noise that anybody can make: coming and going, an
//! agent's typing, refusals. Acts that were asked for and done, and everything that a human did, are kept as the lines they were. Such
//! a line has its own hash and its actor's signature; that none is missing among them the headers say.

use super::{Entry, NO_HASH};
use crate::act::{Act, Outcome};
use holdfast_types::{ActorClass, Hash};
use serde::{Deserialize, Serialize};

/// The domain of what is hashed over all of them.
const DOMAIN: &[u8] = b"holdfast journal kept v1\0";

/// What is kept of the segments that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kept {
    /// Which file has them: another one after some were dropped.
    pub generation: u64,
    /// How many.
    pub records: u64,
    /// Their bytes, line feeds included.
    pub bytes: u64,
    /// The number of the last.
    pub last: u64,
    /// Over all of their hashes, in order.
    pub hash: Hash,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { generation: 1, records: 0, bytes: 0, last: 0, hash: NO_HASH }
    }
}

impl Kept {
    /// One more, of so many bytes.
    pub fn add(&mut self, entry: &Entry, bytes: usize) {
        let hash = blake3::Hasher::new().update(DOMAIN).update(&self.hash.0).update(&entry.hash.0).finalize();
        *self = Kept {
            generation: self.generation,
            records: self.records + 1,
            bytes: self.bytes + bytes as u64,
            last: entry.seq,
            hash: Hash(*hash.as_bytes()),
        };
    }
}

/// Whether a record outlives its segment.
#[must_use]
pub fn is_kept(entry: &Entry) -> bool {
    match &entry.record.act {
        Act::Started | Act::Began | Act::Ended(_) | Act::Forgotten(_) | Act::Damaged { .. } => true,
        Act::Forked(_) | Act::Restored(_) | Act::Leased(_) => true,
        // The state stands in the next header too.
        Act::Header { .. } | Act::Joined(_) => false,
        Act::Asked(_) if entry.record.outcome == Outcome::Done => true,
        Act::Asked(_) | Act::RefusedMore { .. } | Act::Restarted | Act::Linked | Act::Attached(_) => is_of_human(entry),
        Act::Resumed(_) | Act::Left(_) | Act::CutOff(_) | Act::Took | Act::Typed(_) => is_of_human(entry),
        Act::Did { .. } | Act::Lapsed(_) => is_of_human(entry),
    }
}

/// Whether a human did it.
#[must_use]
pub fn is_of_human(entry: &Entry) -> bool {
    entry.record.by.actor().is_some_and(|actor| actor.handle.class() == ActorClass::Human)
}
