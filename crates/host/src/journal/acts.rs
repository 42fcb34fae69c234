//! The acts of a journal that can start a process or change a shell, read from its files: off the host's thread, since there may be many.

use holdfast_authority::journal::{Entry, entry};
use holdfast_authority::{Act, Ask, Change, Outcome};
use holdfast_graph::{RECORD_LAG_MS, Spot, WritingAct};
use holdfast_store::segments::read_file;
use holdfast_types::{Actor, Fence, Offset, TimeMs};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// What wrote since a moment, in each of these turns and runs, and what started the session, in the journal's order. Files
/// are the oldest first; what is older than needed is left out. Records that cannot be read are an act of nobody: whatever
/// was done then is not known.
pub fn writing_acts(files: &[PathBuf], since_ms: TimeMs, spots: &[Spot]) -> Vec<WritingAct> {
    let is_behind = |entry: &Entry| {
        let is_older = |spot: &Spot| match spot {
            Spot::Turn(fence) => entry.record.fence < *fence,
            Spot::Run(seq) => entry.seq <= *seq,
        };
        entry.record.time_ms <= since_ms && spots.iter().all(is_older)
    };
    let Some((first, later)) = files.split_first() else { return Vec::new() };
    let mut entries: VecDeque<Entry> = VecDeque::new();
    let mut is_reached = false;
    for file in later.iter().rev() {
        for entry in read(file).into_iter().rev() {
            is_reached |= is_behind(&entry) && can_start(&entry);
            entries.push_front(entry);
        }
        if is_reached {
            break;
        }
    }
    let oldest = read(first);
    if !is_reached {
        oldest.into_iter().rev().for_each(|entry| entries.push_front(entry));
        return acts(&entries);
    }
    // It has the session's start, if it is still the first there was.
    let start = acts(&oldest.into_iter().filter(|entry| entry.record.act == Act::Started).collect());
    start.into_iter().chain(acts(&entries)).collect()
}

/// An act that wrote into the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrote {
    /// Its number in the journal.
    pub seq: u64,
    /// Whose; none: the host could not tell, or the record cannot be read.
    pub actor: Option<Actor>,
    /// Where the output stood before its last byte.
    pub at: Offset,
    /// It entered a run.
    pub is_run: bool,
}

/// The last act that wrote before the output stood at `before`. Files are the oldest first, and read from the newest on.
pub fn wrote_before(files: &[PathBuf], before: Offset) -> Option<Wrote> {
    let mut later: Option<u64> = None;
    for entry in files.iter().rev().flat_map(|file| read(file).into_iter().rev()) {
        if later.is_some_and(|later| entry.seq + 1 < later) {
            return Some(Wrote { seq: entry.seq + 1, actor: None, at: entry.record.at, is_run: false });
        }
        let at = match &entry.record.act {
            Act::Typed(burst) => burst.to,
            _ => entry.record.at,
        };
        if at < before && can_start(&entry) {
            let is_run = matches!(entry.record.act, Act::Asked(Ask::Run { .. }));
            return Some(Wrote { seq: entry.seq, actor: entry.record.by.actor().cloned(), at, is_run });
        }
        later = Some(entry.seq);
    }
    None
}

/// What an actor wrote last before others did, and who those are. What it wrote behind them counts for nothing here. Files are the oldest first, and read from the newest on.
pub fn others_since(files: &[PathBuf], me: &Actor) -> (Option<(u64, TimeMs)>, Vec<Actor>) {
    let mut others: Vec<Actor> = Vec::new();
    for entry in files.iter().rev().flat_map(|file| read(file).into_iter().rev()).filter(can_start) {
        match entry.record.by.actor() {
            Some(actor) if actor.id == me.id && others.is_empty() => {}
            Some(actor) if actor.id == me.id => return (Some((entry.seq, entry.record.time_ms)), others),
            Some(actor) if !others.contains(actor) => others.push(actor.clone()),
            Some(_) | None => {}
        }
    }
    (None, others)
}

fn read(file: &Path) -> Vec<Entry> {
    let bytes = read_file(file).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map_while(|line| entry(line).ok()).collect()
}

fn can_start(entry: &Entry) -> bool {
    match &entry.record.act {
        Act::Started | Act::Typed(_) | Act::Asked(Ask::Run { .. }) => entry.record.outcome == Outcome::Done,
        _ => false,
    }
}

fn acts(entries: &VecDeque<Entry>) -> Vec<WritingAct> {
    let mut before: Option<(u64, TimeMs)> = None;
    let mut fence = Fence(0);
    let mut acts = Vec::new();
    for entry in entries {
        let (seq, at_ms) = (entry.seq, entry.record.time_ms);
        if let Some((last, from_ms)) = before.filter(|(last, _)| last + 1 < seq) {
            acts.push(WritingAct { seq: last + 1, actor: None, from_ms, at_ms: from_ms, is_start: false, fence });
        }
        fence = entry.record.fence;
        if can_start(entry) {
            // Keys come from the keeper's log: they were typed after whatever was recorded before them.
            let is_logged = |change: &Change| matches!(change, Change::Logged(_) | Change::Forwarded(_));
            let is_late = entry.record.changes.iter().any(is_logged);
            let earliest = before.map_or(0, |(_, time_ms)| time_ms).max(at_ms.saturating_sub(RECORD_LAG_MS));
            let from_ms = if is_late { earliest } else { at_ms };
            let is_start = entry.record.act == Act::Started;
            acts.push(WritingAct { seq, actor: entry.record.by.actor().cloned(), from_ms, at_ms, is_start, fence });
        }
        before = Some((seq, at_ms));
    }
    acts
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_authority::journal::Chain;
    use holdfast_authority::{Burst, By, Record};
    use holdfast_types::ActorId;

    fn typed() -> Act {
        Act::Typed(Burst { from: 0, to: 0, len: 1, keys: None })
    }

    /// A journal of three files: ann starts and types, bot types through the host, ann types at her terminal.
    fn files(dir: &Path) -> Vec<PathBuf> {
        let ann = By::Actor(Actor { id: ActorId([1; 32]), handle: "human:ann".parse().unwrap() });
        let bot = By::Actor(Actor { id: ActorId([2; 32]), handle: "agent:bot".parse().unwrap() });
        let record = |time_ms, by: &By, act, changes| Record {
            time_ms,
            at: 0,
            by: by.clone(),
            act,
            fence: Fence(1),
            incarnation: 1,
            outcome: Outcome::Done,
            changes,
            proof: None,
            gate: None,
        };
        let segments = [
            vec![record(1_000, &ann, Act::Started, vec![]), record(2_000, &ann, typed(), vec![])],
            vec![record(5_000, &bot, Act::Linked, vec![]), record(6_000, &bot, typed(), vec![])],
            vec![
                record(8_900, &ann, Act::Asked(Ask::Take), vec![]),
                record(9_000, &ann, typed(), vec![Change::Logged(8)]),
            ],
        ];
        let mut chain = Chain::default();
        let write = |(number, records): (usize, &Vec<Record>)| {
            let path = dir.join(format!("journal.{number}"));
            let lines: Vec<u8> = records.iter().flat_map(|record| chain.append(record)).collect();
            std::fs::write(&path, lines).unwrap();
            path
        };
        segments.iter().enumerate().map(write).collect()
    }

    #[test]
    fn acts_are_read_as_far_back_as_needed_and_the_start_always() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let told = |since_ms| -> Vec<(u64, u64)> {
            writing_acts(&files, since_ms, &[]).iter().map(|act| (act.seq, act.from_ms)).collect()
        };
        let (start, late) = ((1, 1_000), (6, 8_900));
        assert_eq!(told(0), [start, (2, 2_000), (4, 6_000), late]);
        assert_eq!(told(5_500), [start, (2, 2_000), (4, 6_000), late], "nobody wrote between 5,000 and 5,500");
        assert_eq!(told(7_000), [start, (4, 6_000), late]);
        assert_eq!(told(u64::MAX), [start, late]);
        assert_eq!(writing_acts(&files, 0, &[]).len(), 4, "and no gap is seen where there is none");
        assert!(writing_acts(&files, 0, &[])[0].is_start);
        let with = |spot| writing_acts(&files, u64::MAX, &[spot]).iter().map(|act| act.seq).collect::<Vec<_>>();
        assert_eq!(with(Spot::Run(4)), [1, 4, 6], "the run's act is there however old it is");
        assert_eq!(with(Spot::Turn(Fence(1))), [1, 2, 4, 6], "and all acts that a turn may have had");
        assert_eq!(with(Spot::Turn(Fence(2))), [1, 6]);
    }

    #[test]
    fn what_cannot_be_read_was_nobodys_and_is_not_the_one_befores() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        std::fs::write(&files[1], b"{}\n").unwrap();
        let told: Vec<(u64, bool)> =
            writing_acts(&files, 0, &[]).iter().map(|act| (act.seq, act.actor.is_some())).collect();
        assert_eq!(told, [(1, true), (2, true), (3, false), (6, true)]);
        std::fs::remove_file(&files[0]).unwrap();
        assert_eq!(writing_acts(&files, 0, &[]).len(), 1);
        assert_eq!(writing_acts(&[], 0, &[]), []);
    }

    #[test]
    fn the_last_act_before_a_place_in_the_output_is_told_by_its_last_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.1");
        let by = |key, name: &str| By::Actor(Actor { id: ActorId([key; 32]), handle: name.parse().unwrap() });
        let (ann, bot) = (by(1, "human:ann"), by(2, "agent:bot"));
        let record = |at, by: &By, act| Record {
            time_ms: at,
            at,
            by: by.clone(),
            act,
            fence: Fence(1),
            incarnation: 1,
            outcome: Outcome::Done,
            changes: vec![],
            proof: None,
            gate: None,
        };
        let burst = |from, to| Act::Typed(Burst { from, to, len: 1, keys: None });
        let run = Act::Asked(Ask::Run { key: String::new(), command: "make".into() });
        let records = [
            record(0, &ann, Act::Started),
            record(300, &ann, burst(100, 120)),
            record(200, &bot, run),
            record(200, &bot, Act::Asked(Ask::Take)),
            record(900, &ann, burst(250, 290)),
        ];
        let mut chain = Chain::default();
        let lines: Vec<Vec<u8>> = records.iter().map(|record| chain.append(record)).collect();
        std::fs::write(&path, lines.concat()).unwrap();
        let files = [path.clone()];
        let told = |before| wrote_before(&files, before).map(|wrote| (wrote.seq, wrote.is_run));
        assert_eq!(
            [told(0), told(1), told(120), told(121)],
            [None, Some((1, false)), Some((1, false)), Some((2, false))]
        );
        assert_eq!([told(201), told(290), told(291)], [Some((3, true)), Some((3, true)), Some((5, false))]);
        // A record that is missing may have been anybody's.
        std::fs::write(&path, [&lines[..2], &lines[3..]].concat().concat()).unwrap();
        let gap = wrote_before(&files, 250).unwrap();
        assert_eq!((gap.seq, gap.actor), (3, None));
    }
}
