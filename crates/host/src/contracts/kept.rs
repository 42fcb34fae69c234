//! The contracts of a session's runs on disk: the file `contracts`, a [line](holdfast_store::lines) for each change of one; the last line
//! of a run is what holds.

use holdfast_store::{CONTRACTS, lines};
use holdfast_types::{Actor, TimeMs};
use holdfast_wire::contracts::{Contract, Decision, Effects, Outcome};
use holdfast_wire::runs::{RunId, RunStartParams};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "contracts";
/// Runs under contracts that are remembered: as many as runs are.
const TRACES_MAX: usize = holdfast_session::RUNS_MAX;
/// Length from which it is looked at whether most is the past.
const FILE_BYTES_FREE: u64 = 4 << 20;
/// Longest file that is read: what the runs that are remembered need at most, and what is behind them.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// A run that will be run again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Again {
    /// When.
    pub at_ms: TimeMs,
}

/// What is known of a run under a contract.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Trace {
    /// Which.
    pub run: RunId,
    /// The first attempt; itself, where it is that.
    pub first: RunId,
    /// Which attempt, from 1 on.
    pub number: u32,
    pub actor: Actor,
    /// What it counts as in a record.
    pub action: String,
    pub contract: Contract,
    /// Its patterns of files as they were then: absolute.
    pub patterns: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// It failed and is run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is run again, where it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RunStartParams>>,
}

/// A session's contracts. Read when somebody first wants to know.
#[derive(Debug)]
pub(crate) struct Book {
    dir: PathBuf,
    all: RefCell<Option<Vec<Trace>>>,
    /// Those that are followed to their outcome.
    following: RefCell<HashSet<RunId>>,
}

impl Book {
    pub fn new(dir: &Path) -> Book {
        Book { dir: dir.to_owned(), all: RefCell::default(), following: RefCell::default() }
    }

    /// It is followed from now on; false: it was already.
    pub fn follow(&self, run: RunId) -> bool {
        self.following.borrow_mut().insert(run)
    }

    fn with<T>(&self, look: impl FnOnce(&mut Vec<Trace>) -> T) -> T {
        let mut all = self.all.borrow_mut();
        look(all.get_or_insert_with(|| load(&self.dir)))
    }

    /// One of them.
    pub fn get(&self, run: RunId) -> Option<Trace> {
        self.with(|all| all.iter().find(|trace| trace.run == run).cloned())
    }

    /// The attempts of a run, the first one first, by any of them.
    pub fn attempts(&self, run: RunId) -> Vec<Trace> {
        self.with(|all| {
            let Some(first) = all.iter().find(|trace| trace.run == run).map(|trace| trace.first) else {
                return Vec::new();
            };
            all.iter().filter(|trace| trace.first == first).cloned().collect()
        })
    }

    /// The newest attempt of a run, by any of them; the run itself, where it has no contract.
    pub fn latest(&self, run: RunId) -> RunId {
        self.with(|all| {
            let first = all.iter().find(|trace| trace.run == run).map(|trace| trace.first);
            all.iter().rfind(|trace| Some(trace.first) == first).map_or(run, |trace| trace.run)
        })
    }

    /// Those whose outcome is not known yet, or that are to be run again.
    pub fn open(&self) -> Vec<Trace> {
        // A session without such a file has none: nothing is read into memory for it.
        if self.all.borrow().is_none() && !self.dir.join(NAME).exists() {
            return Vec::new();
        }
        self.with(|all| all.iter().filter(|trace| trace.outcome.is_none() || trace.again.is_some()).cloned().collect())
    }

    /// A new one, or what became of one: on disk, then known.
    pub fn keep(&self, trace: Trace) -> io::Result<()> {
        let length = lines::append(&CONTRACTS, &self.dir.join(NAME), std::slice::from_ref(&trace))?;
        self.with(|all| {
            put(all, trace);
            if length <= FILE_BYTES_FREE {
                return Ok(());
            }
            let text = lines::encode(&CONTRACTS, all.iter())?;
            if length > 2 * text.len() as u64 {
                lines::rewrite(&CONTRACTS, &self.dir, NAME, all.iter())?;
            }
            Ok(())
        })
    }
}

fn put(all: &mut Vec<Trace>, trace: Trace) {
    match all.iter_mut().find(|known| known.run == trace.run) {
        Some(known) => *known = trace,
        None => all.push(trace),
    }
    if all.len() > TRACES_MAX {
        let oldest = all.iter().position(|trace| trace.outcome.is_some() && trace.again.is_none());
        all.remove(oldest.unwrap_or(0));
    }
}

fn load(dir: &Path) -> Vec<Trace> {
    let path = dir.join(NAME);
    let lines = lines::load::<Trace>(&CONTRACTS, &path, FILE_BYTES_MAX).unwrap_or_else(|why| {
        tracing::warn!("{}: {why}", path.display());
        Vec::new()
    });
    let mut all = Vec::new();
    lines.into_iter().for_each(|trace| put(&mut all, trace));
    all
}
