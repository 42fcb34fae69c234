//! Where a session's output and input stood when it was moved: what its ring says where it stays.

use holdfast_abi::ring::Base;
use holdfast_store::{ARRIVAL, Survives, get_json, put_json};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

pub(super) const NAME: &str = "carried";
/// Streams that are believed: as many as a keeper has.
const STREAMS_MAX: usize = 128;

/// It counts on from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub output: u64,
    pub log: u64,
    /// What each input stream had, the least recently used first.
    pub streams: Vec<(u64, u64)>,
    /// The machine it comes from.
    pub machine: String,
}

impl Carried {
    pub fn base(&self) -> Base {
        Base { output: self.output, log: self.log }
    }

    pub(super) fn save(&self, dir: &Path) -> io::Result<()> {
        put_json(&ARRIVAL, dir, NAME, self, Survives::Crash)
    }

    /// Of a session that was moved here and has not lived here yet.
    pub fn load(dir: &Path) -> Option<Carried> {
        let carried: Option<Carried> = get_json(&ARRIVAL, &dir.join(NAME)).ok().flatten();
        carried.filter(|carried| carried.streams.len() <= STREAMS_MAX)
    }

    /// It has.
    pub fn used(dir: &Path) {
        let _ = std::fs::remove_file(dir.join(NAME));
    }
}
