//! The truth about writing: who held which fence, what the keeper took under it, and what the journal says.

use crate::cast::Who;
use crate::ctx::Ctx;
use crate::program::{Token, tokens};
use holdfast_authority::journal::{End, Entry, read};
use holdfast_authority::{Act, Refusal, State};
use std::collections::BTreeMap;
use std::path::Path;

/// Input that the keeper took.
#[derive(Debug)]
pub(crate) struct Accepted<'a> {
    pub fence: u64,
    pub connection: u32,
    /// By a client; otherwise by the host, for somebody.
    pub by_client: bool,
    /// By the host, for nobody: an answer to a query.
    pub own: bool,
    /// The journal may know its length only.
    pub hidden: bool,
    pub bytes: &'a [u8],
}

/// Typed bytes, as the journal has them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    fence: u64,
    by: Option<Who>,
    /// None: only how many.
    byte: Option<u8>,
}

/// What was written, and by whom.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Who held each fence; none: nobody.
    holders: BTreeMap<u64, Option<Who>>,
    /// What the keeper took, and under which fence.
    taken: BTreeMap<Token, u64>,
    /// Who typed under each fence, by what arrived.
    arrived: BTreeMap<u64, Who>,
    /// What was typed, at the keeper or through a host, in order.
    typed: Vec<Piece>,
    /// Everything accepted under an older fence was flushed.
    flushed_fence: u64,
}

impl Writes {
    pub fn flushed(&mut self, tokens: &[Token], fence: u64) {
        self.flushed_fence = self.flushed_fence.max(fence);
        for token in tokens {
            self.taken.remove(token);
        }
    }
}

impl Ctx {
    /// The journal says whose the turn is.
    pub fn turn_is(&mut self, holder: Option<(u64, Who)>, fence: u64) {
        let (fence, who) = holder.map_or((fence, None), |(fence, who)| (fence, Some(who)));
        let known = *self.oracle.writes.holders.entry(fence).or_insert(who);
        if known != who {
            self.fail(format!("fence {fence} was {known:?}'s, and now it is {who:?}'s"));
        }
    }

    /// The keeper was told of a fence, and took it.
    pub fn keeper_has_fence(&mut self, fence: u64) {
        let newest = self.oracle.newest_fence;
        if fence < newest {
            self.fail(format!("the keeper had fence {newest}, and now it has {fence}"));
        }
        if fence > 0 && !self.oracle.writes.holders.contains_key(&fence) {
            self.fail(format!("the keeper heard of fence {fence} before the journal"));
        }
        self.oracle.newest_fence = fence;
    }

    /// Something was refused by the authority.
    pub fn refused_by_host(&mut self, refusal: &Refusal) {
        self.counts.acts_refused += 1;
        self.counts.turns_contended += u64::from(matches!(refusal, Refusal::TurnHeld { .. }));
    }

    /// Invariants 8 and 10: the keeper took input.
    pub fn accepted(&mut self, input: Accepted<'_>) {
        let Accepted { fence, connection, by_client, own, hidden, bytes } = input;
        let typed = tokens(bytes);
        let holder = self.oracle.writes.holders.get(&fence).copied().flatten();
        let mut by: Vec<Who> = typed.iter().map(|token| self.oracle.typists[usize::from(token.source)]).collect();
        if by_client {
            by.extend(self.oracle.connections.get(&connection));
        }
        if let Some(other) = by.iter().find(|who| Some(**who) != holder) {
            self.fail(format!(
                "connection {connection} wrote {other:?}'s keys under fence {fence}, which is {holder:?}'s"
            ));
        }
        self.oracle.writes.taken.extend(typed.iter().map(|token| (*token, fence)));
        if own && !typed.is_empty() {
            self.fail(format!("{:?} passed for the host's own words", typed[0]));
        }
        if !own {
            let piece = |byte: &u8| Piece { fence, by: holder, byte: (!hidden).then_some(*byte) };
            self.oracle.writes.typed.extend(bytes.iter().map(piece));
        }
    }

    /// Invariants 8 and 9: a token reached the program.
    pub fn judge_arrival(&mut self, token: Token) {
        let writes = &mut self.oracle.writes;
        let Some(fence) = writes.taken.get(&token).copied() else {
            return self.fail(format!("{token:?} was written, and the keeper had not taken it"));
        };
        let by = self.oracle.typists[usize::from(token.source)];
        let first = *writes.arrived.entry(fence).or_insert(by);
        if fence < writes.flushed_fence {
            let flushed = writes.flushed_fence;
            self.fail(format!("{token:?} of fence {fence} arrives after the flush of fence {flushed}"));
        } else if first != by {
            self.fail(format!("under fence {fence} both {first:?} and {by:?} typed"));
        }
    }

    /// Invariant 11: a host has read the journal back.
    pub fn judge_replayed(&mut self, state: &State) {
        if let Some(left) = &self.oracle.recorded {
            self.counts.replays += 1;
            if left != state {
                let (left, state) = (format!("{left:?}"), format!("{state:?}"));
                self.fail(format!("the journal was left at\n  {left}\nand gives\n  {state}"));
            }
        }
    }

    /// Invariant 10, in the end: the journal as it lies on disk.
    pub fn judge_journal(&mut self, dir: &Path) {
        if self.failure.is_some() {
            return;
        }
        let entries = match entries(dir) {
            Ok(entries) => entries,
            Err(what) => return self.fail(what),
        };
        let mut pieces = Vec::new();
        for entry in &entries {
            let record = &entry.record;
            let Act::Typed(burst) = &record.act else { continue };
            self.counts.records_of_typing += 1;
            self.counts.bytes_recorded += burst.len;
            let (fence, by) = (record.fence.0, record.by.actor().map(Who::of));
            match &burst.keys {
                Some(keys) => pieces.extend(keys.0.iter().map(|byte| Piece { fence, by, byte: Some(*byte) })),
                None => pieces.extend((0..burst.len).map(|_| Piece { fence, by, byte: None })),
            }
        }
        let typed = &self.oracle.writes.typed;
        if pieces != *typed {
            let at = pieces.iter().zip(typed).position(|(is, should)| is != should);
            let at = at.unwrap_or(pieces.len().min(typed.len()));
            let what = format!(
                "the journal has {} typed bytes, {} were typed; at {at} it has {:?} and should have {:?}",
                pieces.len(),
                typed.len(),
                pieces.get(at),
                typed.get(at)
            );
            self.fail(what);
        }
    }
}

/// All records, over all segments.
fn entries(dir: &Path) -> Result<Vec<Entry>, String> {
    let names = std::fs::read_dir(dir).expect("the run's directory is there").flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut numbers: Vec<u64> = names.filter_map(|name| name.strip_prefix("journal.")?.parse().ok()).collect();
    numbers.sort_unstable();
    let mut entries: Vec<Entry> = Vec::new();
    for number in numbers {
        let bytes = std::fs::read(dir.join(format!("journal.{number}"))).expect("it was just listed");
        let reading = read(&bytes, entries.last().map(Entry::link));
        entries.extend(reading.entries);
        if reading.end != End::Clean {
            return Err(format!("segment {number} of the journal ends with {:?}", reading.end));
        }
    }
    Ok(entries)
}
