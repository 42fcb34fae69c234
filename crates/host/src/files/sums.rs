//! Hashes of files as the host left them or last saw them, by their etag: a file that was changed since has another one, and is hashed
//! anew. Lost with the host, and bounded: the oldest go first.
//!
//! A large file is hashed in slices, [`learn`], each with a place of its own among those who look: it keeps nobody else waiting. It is known
//! by its BLAKE3, smaller ones by their SHA-256.

use super::copy::read_at;
use super::ground::{moved, refused};
use super::look::{etag, io_refused};
use super::there;
use holdfast_types::Hash;
use holdfast_wire::Fault;
use holdfast_wire::files::{HashKind, SHA256_BYTES_MAX};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sums that are remembered: more uploads at once than anybody has.
const SUMS_MAX: usize = 64;
/// Of a large file at once: half a second of SHA-256, a fifth of BLAKE3.
const SLICE_BYTES: u64 = 512 * 1024 * 1024;
const CHUNK_BYTES: usize = 256 * 1024;

/// A hash that is being made.
#[derive(Debug, Clone)]
pub(super) enum Hasher {
    Sha256(Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    pub fn new(kind: HashKind) -> Hasher {
        match kind {
            HashKind::Sha256 => Hasher::Sha256(Sha256::new()),
            HashKind::Blake3 => Hasher::Blake3(Box::default()),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(sha) => sha.update(bytes),
            Hasher::Blake3(blake) => drop(blake.update(bytes)),
        }
    }

    pub fn hash(self) -> Hash {
        match self {
            Hasher::Sha256(sha) => Hash(sha.finalize().into()),
            Hasher::Blake3(blake) => Hash(*blake.finalize().as_bytes()),
        }
    }

    fn kind(&self) -> HashKind {
        match self {
            Hasher::Sha256(_) => HashKind::Sha256,
            Hasher::Blake3(_) => HashKind::Blake3,
        }
    }
}

/// The sum of so many bytes.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    pub hasher: Hasher,
    pub length: u64,
}

impl Sum {
    /// Of no bytes.
    fn new(kind: HashKind) -> Sum {
        Sum { hasher: Hasher::new(kind), length: 0 }
    }

    /// Adds so much of a file, from where the sum ends; false: the file ends there.
    fn add(&mut self, file: &File, most: u64, shown: &str) -> Result<bool, Fault> {
        let (mut chunk, end) = (vec![0; CHUNK_BYTES], self.length.saturating_add(most));
        while self.length < end {
            match read_at(file, &mut chunk, self.length).map_err(|error| io_refused(&error, shown))? {
                0 => return Ok(false),
                count => {
                    self.hasher.update(&chunk[..count]);
                    self.length += count as u64;
                }
            }
        }
        Ok(true)
    }
}

static KNOWN: Mutex<VecDeque<(String, Sum)>> = Mutex::new(VecDeque::new());

fn known() -> MutexGuard<'static, VecDeque<(String, Sum)>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known_hash(etag: &str, kind: HashKind) -> Option<Hash> {
    let all = known();
    let found = all.iter().find(|(of, sum)| of == etag && sum.hasher.kind() == kind);
    found.map(|(_, sum)| sum.hasher.clone().hash())
}

/// The hash of a file by the kind for its size, and its length. A large one must have been learned; where it was not, it was changed since.
pub(super) fn hash_of_file(file: &File, shown: &str) -> Result<(Hash, u64), Fault> {
    let stat = rustix::fs::fstat(file).map_err(|error| refused(error, shown))?;
    hash_by(file, HashKind::of_size(stat.st_size as u64), shown)
}

/// The same by a kind of one's own.
pub(super) fn hash_by(file: &File, kind: HashKind, shown: &str) -> Result<(Hash, u64), Fault> {
    let stat = rustix::fs::fstat(file).map_err(|error| refused(error, shown))?;
    if let Some(hash) = known_hash(&etag(&stat), kind) {
        return Ok((hash, stat.st_size as u64));
    }
    let mut sum = Sum::new(kind);
    if stat.st_size as u64 > SHA256_BYTES_MAX || sum.add(file, SHA256_BYTES_MAX + 1, shown)? {
        return Err(moved(shown));
    }
    let length = sum.length;
    Ok((sum.hasher.hash(), length))
}

/// Hashes a large file, if that was not done yet.
pub(super) async fn learn(
    shown: String,
    kind: HashKind,
    open: impl FnOnce() -> Result<Option<File>, Fault> + Send + 'static,
) -> Result<(), Fault> {
    let begin = move || {
        let Some(file) = open()? else { return Ok(None) };
        let stat = rustix::fs::fstat(&file).map_err(|error| refused(error, &shown))?;
        let is_due = stat.st_size as u64 > SHA256_BYTES_MAX && known_hash(&etag(&stat), kind).is_none();
        Ok(is_due.then(|| (file, etag(&stat), Sum::new(kind), shown)))
    };
    let Some(mut state) = there(begin).await? else { return Ok(()) };
    loop {
        let (next, is_more) = there(move || {
            let (file, began, mut sum, shown) = state;
            let is_more = sum.add(&file, SLICE_BYTES, &shown)?;
            Ok(((file, began, sum, shown), is_more))
        })
        .await?;
        state = next;
        let is_same = rustix::fs::fstat(&state.0).is_ok_and(|stat| etag(&stat) == state.1);
        if !is_same {
            return Err(moved(&state.3));
        }
        if !is_more {
            remember(&state.0, state.2);
            return Ok(());
        }
    }
}

/// Takes the sum of a file that is about to grow to this size.
pub(super) fn take(file: &File, size: u64) -> Option<Sum> {
    let (now, kind) = (rustix::fs::fstat(file).ok()?, HashKind::of_size(size));
    // The sum of nothing is known.
    if now.st_size == 0 {
        return Some(Sum::new(kind));
    }
    let (now, mut known) = (etag(&now), known());
    let at = known.iter().position(|(of, sum)| *of == now && sum.hasher.kind() == kind)?;
    known.remove(at).map(|(_, sum)| sum)
}

/// Remembers the sum of a file as it is now.
pub(super) fn remember(file: &File, sum: Sum) {
    let Ok(stat) = rustix::fs::fstat(file) else { return };
    if stat.st_size as u64 != sum.length {
        return;
    }
    let mut known = known();
    if known.len() >= SUMS_MAX {
        known.pop_front();
    }
    known.push_back((etag(&stat), sum));
}
