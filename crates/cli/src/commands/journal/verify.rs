//! `holdfast journal --verify`: every hash and signature, checked here.

use super::source::{Line, Source};
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{fields, print, print_json, visible};
use holdfast_authority::journal::{Broken, Checker, Entry, Link, Summary, What};
use holdfast_authority::{Act, By, Restored};
use holdfast_client::PublicKey;
use holdfast_types::Actor;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Checks a journal and says what it holds.
pub fn verify(here: &Here, source: &mut Source<'_>, kept: Option<Link>) -> Result<u8, Failure> {
    let mut lines = Vec::new();
    while let Some(batch) = source.next(false)? {
        lines.extend(batch);
    }
    let known = known_there(here, known_actors(&here.home.actors()));
    let mut checked = check(&lines, kept, &known).map_err(Failure::from)?;
    checked.summary.torn_bytes = source.torn_bytes();
    if let Some(newest) = source.newest() {
        ends_with(&checked.summary, newest).map_err(|fault| Failure::from(Damage { place: None, fault }))?;
    }
    if here.json {
        print_json(&checked.json())?;
    } else {
        print(checked.text())?;
    }
    Ok(0)
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    place: Option<(PathBuf, usize)>,
    fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A record is not as it was written.
    Broken(Broken),
    /// There is no journal.
    Empty,
    /// Another record has the number of the one that was kept.
    Replaced { seq: u64 },
    /// The end was cut off.
    CutOff { kept: u64, last: u64 },
    /// Nothing can be said about a record that is no longer kept.
    TooOld { kept: u64, first: u64 },
    /// Segments that should be kept are gone.
    Missing { from: u64, to: u64 },
    /// Not all that the host kept of older records is there.
    Kept { told: u64, there: u64 },
    /// The host found it damaged, and says so in a record.
    Found { seq: u64, what: String },
    /// A key under a handle that is another key's here, or the other way round.
    OtherKey { seq: u64, actor: Box<Actor>, known: Box<Actor> },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Broken(broken) => broken.fmt(f),
            Fault::Empty => write!(f, "no records"),
            Fault::Replaced { seq } => write!(f, "record {seq} has another hash than the one you gave"),
            Fault::CutOff { kept, last } => {
                write!(f, "the end was cut off: record {kept} is missing, the last record is {last}")
            }
            Fault::TooOld { kept, first } => {
                write!(f, "cannot check record {kept}: the first record still kept is {first}")
            }
            Fault::Missing { from, to } => write!(f, "records {from} to {to} are missing: they should still be kept"),
            Fault::Kept { told, there } => {
                write!(f, "of older records {told} acts should be kept, and {there} are there, or others than those")
            }
            Fault::Found { seq, what } => write!(f, "record {seq}: {what}"),
            Fault::OtherKey { seq, actor, known } => write!(
                f,
                "record {seq}: forged: it names {actor} with key {}, but {known} has key {}",
                actor.id, known.id
            ),
        }
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Failure {
        let place = damage.place.map_or(String::new(), |(path, line)| format!("{} line {line}: ", path.display()));
        let hint = match damage.fault {
            Fault::Broken(Broken { what: What::Header, seq: 1 }) => "a journal's first line is its header",
            Fault::Broken(_) => "all records before it are unchanged",
            Fault::Replaced { .. } | Fault::CutOff { .. } => {
                "the records are consistent, but they are not the original ones"
            }
            Fault::OtherKey { .. } => "unless the actor was removed and created again: see `holdfast actor ls`",
            Fault::Missing { .. } => "somebody removed files of the journal; the records that are there are unchanged",
            Fault::Kept { .. } => "of copied files, give that of the kept acts too: journal-kept-*",
            Fault::Found { .. } => {
                "all records that are there are unchanged; only humans act in the session since, and whom they grant something"
            }
            Fault::Empty | Fault::TooOld { .. } => "",
        };
        Failure::new("journal_damaged", format!("{place}{}", damage.fault)).hint(hint)
    }
}

/// A sound journal.
#[derive(Debug)]
pub struct Checked {
    summary: Summary,
    actors: BTreeMap<Actor, Acts>,
    /// The last record that was made before the session was moved here, and on which machine.
    elsewhere: Option<(u64, String)>,
}

/// What one actor did.
#[derive(Debug, Default)]
struct Acts {
    records: u64,
    signed: u64,
    /// Its key is known here.
    known: bool,
}

impl Checked {
    fn text(&self) -> String {
        let Summary { session, records, first, signed, unsigned, last, torn_bytes, kept, .. } = &self.summary;
        let mut rows = vec![
            ("session", session.to_string()),
            ("records", format!("{records}, from {first} to {}", last.seq)),
            ("kept", format!("{} acts from before", kept.records)),
            ("signed", signed.to_string()),
            ("unsigned", unsigned.to_string()),
            ("last", format!("{}:{}", last.seq, last.hash)),
        ];
        if kept.records == 0 {
            rows.retain(|(name, _)| *name != "kept");
        }
        if *torn_bytes > 0 {
            rows.push(("torn", format!("{torn_bytes} bytes of an incomplete last record")));
        }
        if let Some((seq, machine)) = &self.elsewhere {
            let machine = visible(machine);
            rows.push(("moved", format!("here from {machine}: names up to record {seq} are those of other hosts")));
        }
        for (actor, acts) in &self.actors {
            let known = if acts.known { "" } else { ", not known here" };
            let row =
                format!("{actor}, records {}, signed {}, key {:.16}…{known}", acts.records, acts.signed, actor.id);
            rows.push(("actor", row));
        }
        format!("{}sound; keep the number and hash of the last record elsewhere, for --last\n", fields(&rows))
    }

    fn json(&self) -> serde_json::Value {
        let Summary { session, records, first, signed, unsigned, last, torn_bytes, kept, .. } = &self.summary;
        let actor = |(actor, acts): (&Actor, &Acts)| {
            let Acts { records, signed, known } = acts;
            json!({"actor": actor, "records": records, "signed": signed, "known": known})
        };
        json!({
            "session": session, "records": records, "first": first, "last": last, "signed": signed,
            "unsigned": unsigned, "torn_bytes": torn_bytes, "kept": kept.records,
            "moved": self.elsewhere.as_ref().map(|(seq, machine)| json!({"until": seq, "from": machine})),
            "actors": self.actors.iter().map(actor).collect::<Vec<_>>(),
        })
    }
}

/// Checks every line; that a link kept earlier is still in the chain; and that the actors' keys are those known here.
pub fn check(lines: &[Line], kept: Option<Link>, known: &[Actor]) -> Result<Checked, Damage> {
    let mut checker = Checker::new();
    let mut actors: BTreeMap<Actor, Acts> = BTreeMap::new();
    let mut keeper = kept.map(Kept::new);
    // Until a session was moved here, its actors had the names of another host, which may be others' here.
    let (mut named, mut elsewhere) = (Vec::new(), None);
    for line in lines {
        let damage = |fault| Damage { place: line.place.clone(), fault };
        let entry = checker.line(&line.bytes).map_err(|broken| damage(Fault::Broken(broken)))?;
        keeper.iter_mut().try_for_each(|kept| kept.see(&entry)).map_err(damage)?;
        if let Act::Restored(Restored { came_from: Some(machine), .. }) = &entry.record.act {
            elsewhere = Some((entry.seq, machine.clone()));
        }
        if let By::Actor(actor) = &entry.record.by {
            let acts = actors.entry(actor.clone()).or_default();
            acts.records += 1;
            acts.signed += u64::from(entry.record.proof.is_some());
            named.push((line, entry.seq, actor.clone()));
        }
    }
    let is_here = |seq: u64| elsewhere.as_ref().is_none_or(|(last, _)| seq > *last);
    for (line, seq, actor) in named.into_iter().filter(|(_, seq, _)| is_here(*seq)) {
        let is_known = must_be_known(&actor, known).map_err(|known| {
            let fault = Fault::OtherKey { seq, actor: actor.clone().into(), known: known.clone().into() };
            Damage { place: line.place.clone(), fault }
        })?;
        actors.entry(actor).or_default().known = is_known;
    }
    let nowhere = |fault| Damage { place: None, fault };
    let summary = checker.summary().cloned().ok_or(nowhere(Fault::Empty))?;
    keeper.iter().try_for_each(|kept| kept.finish(&summary)).map_err(nowhere)?;
    if let Some((from, to)) = summary.missing() {
        return Err(nowhere(Fault::Missing { from, to }));
    }
    if !summary.has_all_kept() {
        let told = summary.kept_told.map_or(0, |told| told.records);
        return Err(nowhere(Fault::Kept { told, there: summary.kept.records }));
    }
    if let Some((seq, what)) = summary.damaged.first().cloned() {
        return Err(nowhere(Fault::Found { seq, what }));
    }
    Ok(Checked { summary, actors, elsewhere })
}

/// Whether the last record is the one that the host wrote last.
fn ends_with(summary: &Summary, newest: Link) -> Result<(), Fault> {
    match summary.last {
        last if last.seq < newest.seq => Err(Fault::CutOff { kept: newest.seq, last: last.seq }),
        last if last.seq == newest.seq && last.hash != newest.hash => Err(Fault::Replaced { seq: last.seq }),
        _ => Ok(()),
    }
}

/// A link that was kept elsewhere, looked for.
struct Kept {
    link: Link,
    found: bool,
}

impl Kept {
    fn new(link: Link) -> Kept {
        Kept { link, found: false }
    }

    fn see(&mut self, entry: &Entry) -> Result<(), Fault> {
        // The header of the first segment that is kept still says which record was the last before it.
        let before = Link { seq: entry.seq.saturating_sub(1), hash: entry.prev };
        for link in [before, entry.link()].into_iter().filter(|link| link.seq == self.link.seq) {
            if link.hash != self.link.hash {
                return Err(Fault::Replaced { seq: link.seq });
            }
            self.found = true;
        }
        Ok(())
    }

    fn finish(&self, summary: &Summary) -> Result<(), Fault> {
        let kept = self.link.seq;
        match self.found {
            true => Ok(()),
            false if kept < summary.first => Err(Fault::TooOld { kept, first: summary.first }),
            false => Err(Fault::CutOff { kept, last: summary.last.seq }),
        }
    }
}

/// The actors of this home under the names that the host has for them that is asked.
fn known_there(here: &Here, known: Vec<Actor>) -> Vec<Actor> {
    let Some(host) = here.elsewhere() else { return known };
    let there = |actor: Actor| host.actors.get(&actor.handle).map(|handle| Actor { handle: handle.clone(), ..actor });
    known.into_iter().filter_map(there).collect()
}

/// Whether an actor is known here; the known one that it contradicts where it does.
fn must_be_known<'a>(actor: &Actor, known: &'a [Actor]) -> Result<bool, &'a Actor> {
    match known.iter().find(|known| known.id == actor.id || known.handle == actor.handle) {
        None => Ok(false),
        Some(known) if known == actor => Ok(true),
        Some(known) => Err(known),
    }
}

/// The actors whose public keys lie in the home.
fn known_actors(dir: &Path) -> Vec<Actor> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let public = files.filter(|path| path.extension().is_some_and(|extension| extension == "pub"));
    let key = |path: PathBuf| serde_json::from_slice::<PublicKey>(&std::fs::read(path).ok()?).ok();
    let actor = |PublicKey { handle, id, .. }: PublicKey| -> Actor { Actor { id, handle } };
    public.filter_map(key).map(actor).collect()
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
