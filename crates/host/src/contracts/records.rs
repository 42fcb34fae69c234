//! How actors' runs under contracts came out: the file `records`, a line for each run.
//!
//! An actor is its key: whoever takes another's handle has another record. Only runs that promised something about their effects
//! count, each once, and only the newest: what an actor did long ago says little of it today.

use holdfast_gate::Standing;
use holdfast_store::{RECORDS, lines};
use holdfast_types::{Actor, ActorId, SessionId, TimeMs};
use holdfast_wire::contracts::{ActionCounts, Counts, LastUnexpected, RecordView, Validity};
use holdfast_wire::runs::RunId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "records";
/// Runs of one actor that count.
const RUNS_MAX: usize = 1_000;
/// Actors whose record is kept; the one that was longest without a run goes first.
const ACTORS_MAX: usize = 256;
/// Longest file that is read, and the length up to which nothing is tidied.
const FILE_BYTES_MAX: u64 = 256 << 20;
const FILE_BYTES_FREE: u64 = 1 << 20;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub actor: Actor,
    pub action: String,
    pub run: RunId,
    pub session: SessionId,
    pub at_ms: TimeMs,
    pub validity: Validity,
    pub success: bool,
    /// The first effect beyond its contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected: Option<String>,
}

/// All records.
#[derive(Debug)]
pub(crate) struct Records {
    dir: PathBuf,
    all: HashMap<ActorId, VecDeque<Entry>>,
}

fn count<'a>(entries: impl Iterator<Item = &'a Entry>) -> Counts {
    let mut counts = Counts::default();
    for entry in entries {
        counts.runs += 1;
        counts.succeeded += u64::from(entry.success);
        match entry.validity {
            Validity::Valid => counts.valid += 1,
            Validity::Invalid => counts.unexpected += 1,
            Validity::Unknown => counts.unknown += 1,
        }
    }
    counts
}

impl Records {
    pub fn load(state: &Path) -> Records {
        let path = state.join(NAME);
        let entries = lines::load::<Entry>(&RECORDS, &path, FILE_BYTES_MAX).unwrap_or_else(|why| {
            tracing::warn!("{}: {why}", path.display());
            Vec::new()
        });
        let mut records = Records { dir: state.to_owned(), all: HashMap::new() };
        for entry in entries {
            records.put(entry);
        }
        records
    }

    /// Counts a run, once.
    pub fn add(&mut self, entry: Entry) -> io::Result<()> {
        if !self.put(entry.clone()) {
            return Ok(());
        }
        let length = lines::append(&RECORDS, &self.dir.join(NAME), std::slice::from_ref(&entry))?;
        if length <= FILE_BYTES_FREE {
            return Ok(());
        }
        let text = lines::encode(&RECORDS, self.all.values().flatten())?;
        if length > 2 * text.len() as u64 {
            lines::rewrite(&RECORDS, &self.dir, NAME, self.all.values().flatten())?;
        }
        Ok(())
    }

    /// False: it is there already.
    fn put(&mut self, entry: Entry) -> bool {
        let id = entry.actor.id;
        if self.all.len() >= ACTORS_MAX && !self.all.contains_key(&id) {
            let quiet = self.all.iter().min_by_key(|(_, entries)| entries.back().map(|entry| entry.at_ms));
            if let Some(quiet) = quiet.map(|(id, _)| *id) {
                self.all.remove(&quiet);
            }
        }
        let entries = self.all.entry(id).or_default();
        if entries.iter().any(|known| known.run == entry.run) {
            return false;
        }
        entries.push_back(entry);
        if entries.len() > RUNS_MAX {
            entries.pop_front();
        }
        true
    }

    /// An actor's counts for policies, of all commands or of one.
    pub fn standing(&self, actor: ActorId, action: Option<&str>) -> Standing {
        let entries = self.all.get(&actor).into_iter().flatten();
        let counts = count(entries.filter(|entry| action.is_none_or(|action| entry.action == action)));
        let Counts { runs, valid, succeeded, unexpected, unknown } = counts;
        Standing { runs, valid, succeeded, unexpected, unknown }
    }

    /// An actor's record, for people.
    pub fn view(&self, actor: &Actor, action: Option<&str>) -> RecordView {
        let entries = self.all.get(&actor.id).into_iter().flatten();
        let entries: Vec<&Entry> = entries.filter(|entry| action.is_none_or(|action| entry.action == action)).collect();
        let mut by_action: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        entries.iter().for_each(|entry| by_action.entry(&entry.action).or_default().push(entry));
        let last = |entries: &[&Entry]| {
            let found = entries.iter().rev().find(|entry| entry.validity == Validity::Invalid)?;
            let what = found.unexpected.clone().unwrap_or_default();
            Some(LastUnexpected { run: found.run, at_ms: found.at_ms, what })
        };
        let actions = by_action.into_iter().map(|(action, entries)| ActionCounts {
            action: action.to_owned(),
            counts: count(entries.iter().copied()),
            last_unexpected: last(&entries),
        });
        RecordView {
            actor: actor.clone(),
            counts: count(entries.iter().copied()),
            since_ms: entries.first().map(|entry| entry.at_ms),
            actions: actions.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u8, run: u128, action: &str, validity: Validity, success: bool) -> Entry {
        Entry {
            actor: Actor { id: ActorId([key; 32]), handle: "agent:bot".parse().unwrap() },
            action: action.into(),
            run: RunId::from_random_bits(run),
            session: SessionId::from_random_bits(1),
            at_ms: run as u64,
            validity,
            success,
            unexpected: (validity == Validity::Invalid).then(|| "changed /etc/x".into()),
        }
    }

    #[test]
    fn a_record_counts_each_run_once_is_one_keys_and_outlives_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::load(dir.path());
        let all = [
            entry(1, 1, "make", Validity::Valid, true),
            entry(1, 1, "make", Validity::Valid, true),
            entry(1, 2, "make", Validity::Invalid, true),
            entry(1, 3, "git", Validity::Unknown, false),
            // Another key under the same handle.
            entry(2, 4, "make", Validity::Valid, true),
        ];
        all.iter().for_each(|one| records.add(one.clone()).unwrap());
        for records in [records, Records::load(dir.path())] {
            let standing = records.standing(ActorId([1; 32]), None);
            assert_eq!(standing, Standing { runs: 3, valid: 1, succeeded: 2, unexpected: 1, unknown: 1 });
            assert_eq!(records.standing(ActorId([1; 32]), Some("git")).runs, 1);
            assert_eq!(records.standing(ActorId([3; 32]), None), Standing::default());
            let view = records.view(&all[0].actor, Some("make"));
            assert_eq!((view.counts.runs, view.actions.len()), (2, 1));
            assert_eq!(view.actions[0].last_unexpected.as_ref().unwrap().what, "changed /etc/x");
        }
    }

    #[test]
    fn only_the_newest_runs_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::load(dir.path());
        records.put(entry(1, 0, "make", Validity::Invalid, false));
        for run in 1..=RUNS_MAX as u128 {
            records.put(entry(1, run, "make", Validity::Valid, true));
        }
        let standing = records.standing(ActorId([1; 32]), None);
        assert_eq!((standing.runs, standing.unexpected), (RUNS_MAX as u64, 0));
    }
}
