//! `holdfast journal`: who did what in a session, and whether the record of it is as it was written.
//!
//! The host gives the lines as they lie on disk; everything said about them is found out here.

mod lines;
mod source;
mod verify;

pub use source::{Line, Source};

use crate::failure::Failure;
use crate::here::Here;
use crate::journal_args::JournalArgs;
use crate::show::{fields, now_ms, print, print_json, say};
use crate::tell::{Teller, who};
use holdfast_authority::journal::{self, Broken, Checker, Entry};
use holdfast_authority::{Act, By, Ending};
use holdfast_types::{Offset, TimeMs};
use jiff::tz::TimeZone;
use lines::Lines;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// `holdfast journal`.
pub fn journal(here: &Here, args: &JournalArgs) -> Result<u8, Failure> {
    let mut source = Source::open(here, args)?;
    match args.at {
        _ if args.verify => verify::verify(here, &mut source, args.last),
        Some(offset) => at(here, &mut source, offset),
        None => list(here, &mut source, args),
    }
}

/// Records as they are read: the first fault in the chain is kept, and reading goes on behind it.
#[derive(Debug, Default)]
pub struct Records {
    checker: Checker,
    fault: Option<Broken>,
}

impl Records {
    /// The next line's record; none where it can no longer be read.
    pub fn take(&mut self, line: &Line) -> Option<Entry> {
        if self.fault.is_none() {
            match self.checker.line(&line.bytes) {
                Ok(entry) => return Some(entry),
                Err(broken) => self.fault = Some(broken),
            }
        }
        journal::entry(&line.bytes).ok()
    }

    /// Says on standard error what is wrong; gives the status to end with.
    pub fn finish(&self) -> u8 {
        let Some(broken) = &self.fault else { return 0 };
        say(&format!("the journal was changed: {broken}; for details: holdfast journal --verify"));
        1
    }
}

/// Where the journal stands in the keeper's log is its own affair, and what was done as asked needs no second line.
fn is_news(act: &Act) -> bool {
    !matches!(act, Act::Linked | Act::Joined(_) | Act::Did { ending: Ending::Done, .. })
}

fn list(here: &Here, source: &mut Source<'_>, args: &JournalArgs) -> Result<u8, Failure> {
    let since = args.since.map_or(0, |since| since.moment(now_ms()));
    // JSON has every line.
    let is_told = |entry: &Entry| here.json || is_news(&entry.record.act);
    let is_meant = |entry: &Entry| {
        let whose = args.actor.as_ref().is_none_or(|whose| whose.is(&entry.record.by));
        entry.record.time_ms >= since && whose && is_told(entry)
    };
    let mut records = Records::default();
    let mut printer = Printer::new(here.json);
    // Until everything that is there was seen, the last ones wait.
    let mut last: VecDeque<Shown> = VecDeque::new();
    let mut limit = args.lines;
    while let Some(batch) = source.next(args.follow && limit.is_none())? {
        for line in &batch {
            let Some(entry) = records.take(line) else { continue };
            // Reads every record, also those that are not shown: later ones refer to them.
            let shown = printer.tell(line, &entry);
            if is_meant(&entry) {
                last.push_back(shown);
                limit.iter().for_each(|limit| last.drain(..last.len().saturating_sub(*limit)).for_each(drop));
            }
        }
        if source.is_more() && limit.is_some() {
            continue;
        }
        limit = None;
        printer.print(last.drain(..))?;
        if !args.follow && !source.is_more() {
            break;
        }
    }
    printer.print(last.drain(..))?;
    Ok(records.finish())
}

/// A record, ready to be shown.
struct Shown {
    time_ms: TimeMs,
    by: By,
    what: String,
    /// The line as it was written.
    raw: Vec<u8>,
}

/// Where records go.
struct Printer {
    json: bool,
    teller: Teller,
    lines: Lines,
}

impl Printer {
    fn new(json: bool) -> Printer {
        Printer { json, teller: Teller::new(TimeZone::system()), lines: Lines::new() }
    }

    fn tell(&mut self, line: &Line, entry: &Entry) -> Shown {
        let what = self.teller.tell(&entry.record);
        let raw = if self.json { line.bytes.clone() } else { Vec::new() };
        Shown { time_ms: entry.record.time_ms, by: entry.record.by.clone(), what, raw }
    }

    fn print(&mut self, records: impl Iterator<Item = Shown>) -> Result<(), Failure> {
        let records: Vec<Shown> = records.collect();
        let mut out = Vec::new();
        self.lines.make_room(records.iter().map(|record| who(&record.by).len()));
        for record in &records {
            if self.json {
                out.extend_from_slice(&record.raw);
                out.push(b'\n');
            } else {
                let line = self.lines.line(&self.teller.local(record.time_ms), &record.by, &record.what);
                out.extend_from_slice(line.as_bytes());
            }
        }
        if out.is_empty() { Ok(()) } else { print(out) }
    }
}

/// The act before an offset.
fn find(entries: &[Entry], offset: Offset) -> Result<&Entry, Failure> {
    // Before the first segment that is kept there may have been a nearer act.
    if let Some(first) = entries.first().filter(|first| first.seq > 1 && offset < first.record.at) {
        let message = format!("the journal starts at offset {}", first.record.at);
        return Err(Failure::new("not_kept", message));
    }
    let none = || Failure::new("no_act", format!("no act before offset {offset}"));
    journal::at(entries, offset).ok_or_else(none)
}

fn at(here: &Here, source: &mut Source<'_>, offset: Offset) -> Result<u8, Failure> {
    if let Some(head) = source.head().filter(|head| offset > *head) {
        return Err(Failure::new("ahead", format!("the output ends at offset {head}")));
    }
    let mut records = Records::default();
    let mut all: Vec<(Entry, Line)> = Vec::new();
    while let Some(batch) = source.next(false)? {
        all.extend(batch.into_iter().filter_map(|line| records.take(&line).map(|entry| (entry, line))));
    }
    let entries: Vec<Entry> = all.iter().map(|(entry, _)| entry.clone()).collect();
    let found = find(&entries, offset)?;
    let mut teller = Teller::new(TimeZone::system());
    let mut what = String::new();
    entries.iter().take_while(|entry| entry.seq <= found.seq).for_each(|entry| what = teller.tell(&entry.record));
    let holder = teller.holder(&found.record).map(ToString::to_string);
    if here.json {
        let raw = all.iter().find(|(entry, _)| entry.seq == found.seq).map(|(_, line)| line.bytes.as_slice());
        let record: Value = raw.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default();
        print_json(&json!({"offset": offset, "record": record, "holder": holder}))?;
    } else {
        let mut lines = Lines::new();
        lines.make_room([who(&found.record.by).len()].into_iter());
        let line = lines.line(&teller.local(found.record.time_ms), &found.record.by, &what);
        let output = match &found.record.act {
            Act::Typed(burst) if burst.to > burst.from => format!("{} to {}", burst.from, burst.to),
            Act::Typed(burst) => burst.from.to_string(),
            _ => found.record.at.to_string(),
        };
        let rows = [
            ("record", found.seq.to_string()),
            ("offset", output),
            ("turn", holder.unwrap_or_else(|| "free".to_owned())),
        ];
        print(format!("{line}{}", fields(&rows)))?;
    }
    Ok(records.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_authority::journal::NO_HASH;
    use holdfast_authority::{Burst, Outcome, Record};
    use holdfast_types::{Fence, SessionId};

    fn entry(seq: u64, at: Offset, act: Act) -> Entry {
        let (fence, incarnation, outcome) = (Fence(1), 1, Outcome::Done);
        let record = Record {
            time_ms: seq,
            at,
            by: By::Host,
            act,
            fence,
            incarnation,
            outcome,
            changes: vec![],
            proof: None,
            gate: None,
        };
        Entry { seq, record, prev: NO_HASH, hash: NO_HASH }
    }

    #[test]
    fn an_offset_before_what_is_kept_leads_to_nobody() {
        let header = |seq, at| {
            let act = Act::Header {
                session: SessionId::from_random_bits(1),
                previous: None,
                state: None,
                oldest: None,
                kept: None,
            };
            entry(seq, at, act)
        };
        // Recorded late: it was typed before the segment began.
        let typed = |seq, from| entry(seq, 120, Act::Typed(Burst { from, to: from, len: 1, keys: None }));
        let whole = [header(1, 0), typed(2, 90)];
        let later = [header(7, 100), typed(8, 90), typed(9, 110)];
        let found = |entries: &[Entry], offset| {
            find(entries, offset).map(|entry| entry.seq).map_err(|e| e.message().to_owned())
        };
        assert_eq!(found(&whole, 95), Ok(2));
        assert_eq!(found(&whole, 80).unwrap_err(), "no act before offset 80");
        assert_eq!(found(&later, 115), Ok(9));
        assert!(found(&later, 95).unwrap_err().contains("starts at offset 100"));
    }
}
