//! The truth: everything that was said, typed, asked and resized, and what follows from it.
//!
//! What is proved, at every step unless it says "in the end":
//!
//! 1. Whoever follows by offset is shown every byte once and in order; what it was not shown is a gap it was told of, or
//!    lies before a repaint.
//! 2. What is typed arrives once and in the order of its source, and in the end all of it, unless its terminal died, the
//!    input was flushed, or it was refused. What was refused never arrives later.
//! 3. A screen at an offset is what the whole output up to there makes; behind a gap, what the output since the gap makes.
//!    Not where more was typed since the last keyframe than the log holds: then sizes that changed in between are lost.
//! 4. Nobody without progress holds the program longer than `STALL_MS`.
//! 5. A query is answered once, in the end, when nothing disturbed it: no crash, departure or gap, nobody left
//!    behind, from a while before it to a while after. And it is answered at most once more for each such disturbance. One
//!    exception: an answer that was lost with the turn, because its terminal could no longer type it or a seizure flushed
//!    it, is not given again. Nor are more than the latest few that a terminal was to give and did not come to see.
//! 6. Nothing is written under another fence than the newest, and the keeper's fence is never lowered.
//! 7. In the end the size is that of the attached terminal that writes, if one does.
//! 8. Whatever reaches the terminal was typed by the actor that held the turn under the fence it was written with; so under
//!    one fence one actor types. The host's own answers to queries are nobody's.
//! 9. After a seizure nothing arrives that was accepted before its flush.
//! 10. What was typed, at the keeper or through a host, is in the journal in the end: those bytes in that order, once, each by
//!     the actor that typed it and under its fence. Nothing typed for an actor passes for the host's own words.
//! 11. A host that starts is where the journal was left: turn, fence, queue, operators and grants.
//! 12. Where the program is a shell: a key never runs twice; a run's first key comes to a prompt at which stands nothing of
//!     anybody else's, and never to a program; a run ended exactly only if the shell ended a command under its token, with that
//!     status; one that is lost without having started never runs.

mod runs;
mod writes;

pub(crate) use writes::Accepted;

use crate::cast::Who;
use crate::ctx::Ctx;
use crate::findings::STOPS_INSIDE_A_QUERY_ANSWER_TWICE;
use crate::program::{Token, replies, tokens};
use crate::terminal::Scan;
use holdfast_screen::Screen;
use holdfast_types::Size;
use std::collections::{BTreeMap, BTreeSet};

/// Sources of input there may be: what fits into a token's first byte.
pub(crate) const SOURCES_MAX: u8 = 63;
/// A query this long after a disturbance is not touched by it: longer than clients take to find a new host and to be
/// appointed, and longer than a stuck one is waited for.
const CALM_BEFORE_MS: u64 = 600;
/// And this long before one.
const CALM_AFTER_MS: u64 = 1500;

/// Bytes of a query: `CSI ? 10000 $ p`.
const QUERY_BYTES: u64 = 10;
/// Answers a host keeps back while a terminal answers, as in the host's `clients`.
const WITHHELD_MAX: usize = 32;

/// One query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    /// The offset behind it.
    pub end: u64,
    pub published_ms: u64,
    pub answers: u32,
}

/// Everything that is so.
#[derive(Default)]
pub struct Oracle {
    pub(crate) output: Vec<u8>,
    pub(crate) first_size: Size,
    pub(crate) resizes: Vec<(u64, Size)>,
    pub(crate) queries: BTreeMap<u16, Query>,
    disturbed_ms: Vec<u64>,
    scan: Scan,
    arrived: BTreeMap<u8, u32>,
    flushed: BTreeSet<Token>,
    refused: BTreeSet<Token>,
    /// Queries whose answer a terminal could no longer type, or a seizure flushed.
    answers_lost: BTreeSet<u16>,
    /// Queries whose answers a host held back for a terminal until it could hold no more.
    held_too_long: BTreeSet<u16>,
    pub(crate) newest_fence: u64,
    writes: writes::Writes,
    pub(crate) runs: runs::Runs,
    /// Who types by each source.
    pub(crate) typists: Vec<Who>,
    /// Whose each client's connection to the keeper is.
    pub(crate) connections: BTreeMap<u32, Who>,
    /// The state behind the last record of the host that died last.
    pub(crate) recorded: Option<holdfast_authority::State>,
    /// Offsets at which terminals stopped answering.
    pub(crate) stops: Vec<u64>,
    /// Messages of which a part was written when the rest was flushed.
    pub(crate) cut: BTreeSet<(u64, u64)>,
    /// More was typed without a host than the log holds: where the sizes changed is not known any more.
    pub(crate) sizes_lost: bool,
    /// The program spoke before any host followed: nothing was held for the first one.
    pub(crate) unwatched: bool,
    reference: Option<Reference>,
}

/// A screen fed with the truth.
struct Reference {
    from: u64,
    screen: Screen,
    resized: usize,
    history: Vec<u8>,
}

impl Oracle {
    /// From here to a while later nobody can promise that a query is answered once.
    pub(crate) fn disturbed(&mut self, now: u64) {
        self.disturbed_ms.push(now);
    }

    /// Disturbances near a query.
    fn disturbances(&self, query: &Query) -> u32 {
        let near = query.published_ms.saturating_sub(CALM_BEFORE_MS)..query.published_ms + CALM_AFTER_MS;
        self.disturbed_ms.iter().filter(|ms| near.contains(*ms)).count() as u32
    }

    /// Whether a terminal stopped answering inside this query.
    fn is_split(&self, query: &Query) -> bool {
        let inside = query.end - (QUERY_BYTES - 1)..query.end;
        STOPS_INSIDE_A_QUERY_ANSWER_TWICE && self.stops.iter().any(|at| inside.contains(at))
    }

    /// Input that was dropped on purpose.
    pub(crate) fn flushed(&mut self, tokens: Vec<Token>, fence: u64) {
        self.writes.flushed(&tokens, fence);
        self.flushed.extend(tokens);
    }

    /// The last token of a source that reached the program.
    pub(crate) fn last_arrived(&self, source: u8) -> u32 {
        self.arrived.get(&source).copied().unwrap_or(0)
    }

    /// Whether every token of a source up to `number` that has not arrived was flushed or refused.
    pub(crate) fn rest_was_dropped(&self, source: u8, number: u32) -> bool {
        let is_dropped = |token| self.flushed.contains(&token) || self.refused.contains(&token);
        (self.last_arrived(source) + 1..=number).all(|number| is_dropped(Token { source, number }))
    }

    fn size_at(&self, offset: u64) -> Size {
        self.resizes.iter().rev().find(|(at, _)| *at <= offset).map_or(self.first_size, |(_, size)| *size)
    }

    /// The screen that the output from `from` to `to` makes, and the lines that left it.
    pub(crate) fn screen(&mut self, from: u64, to: u64) -> (&Screen, &[u8]) {
        let usable = self.reference.as_ref().is_some_and(|r| r.from == from && r.screen.offset() <= to);
        if !usable {
            let screen = Screen::new(self.size_at(from), from);
            let resized = self.resizes.iter().take_while(|(at, _)| *at <= from).count();
            self.reference = Some(Reference { from, screen, resized, history: Vec::new() });
        }
        let reference = self.reference.as_mut().expect("just made");
        loop {
            let position = reference.screen.offset();
            while let Some((_, size)) = self.resizes.get(reference.resized).filter(|(at, _)| *at <= position) {
                reference.screen.resize(*size);
                reference.resized += 1;
            }
            let until = self.resizes.get(reference.resized).map_or(to, |(at, _)| to.min(*at));
            if position >= until {
                break;
            }
            reference.screen.feed(&self.output[position as usize..until as usize]);
            reference.screen.take_replies();
            reference.screen.take_marks();
            reference.screen.drain_history(&mut reference.history);
        }
        (&reference.screen, &reference.history)
    }
}

impl Ctx {
    /// The keeper published output.
    pub fn published(&mut self, bytes: &[u8]) {
        let mut asked = Vec::new();
        self.oracle.scan.feed(bytes, &mut asked);
        for (at, id) in asked {
            let end = (self.oracle.output.len() + at) as u64;
            self.oracle.queries.insert(id, Query { end, published_ms: self.now, answers: 0 });
        }
        self.oracle.output.extend_from_slice(bytes);
        self.counts.output_bytes += bytes.len() as u64;
    }

    /// A token reached the program.
    pub fn arrived(&mut self, token: Token) {
        let last = self.oracle.last_arrived(token.source);
        if token.number <= last {
            self.fail(format!("{token:?} was written twice or late: {last} was there already"));
        } else if self.oracle.refused.contains(&token) {
            self.fail(format!("{token:?} was refused, and now it is written"));
        } else if !self.oracle.rest_was_dropped(token.source, token.number - 1) {
            self.fail(format!("{token:?} was written, and nothing between it and {last}"));
        }
        self.judge_arrival(token);
        self.oracle.arrived.insert(token.source, token.number);
        self.counts.inputs += 1;
    }

    /// An answer reached the program.
    pub fn answered(&mut self, id: u16) {
        let Some(query) = self.oracle.queries.get_mut(&id) else {
            return self.fail(format!("an answer to query {id}, which was never asked"));
        };
        query.answers += 1;
        let query = *query;
        if query.answers > 1 {
            self.counts.answered_twice += 1;
            let near = self.oracle.disturbances(&query) + u32::from(self.oracle.is_split(&query));
            self.note(format_args!("program: query {id} has {} answers, {near} disturbances near it", query.answers));
            if query.answers > 1 + near {
                self.fail(format!("query {id} at {} was answered {} times", query.end, query.answers));
            }
        }
    }

    /// These answers were lost with the turn.
    pub fn answers_dropped(&mut self, ids: &[u16]) {
        for id in ids {
            self.note(format_args!("the answer to query {id} is dropped"));
        }
        self.oracle.answers_lost.extend(ids);
    }

    /// A terminal that was to answer has seen everything before `left`: of what came since, a host keeps the latest answers.
    pub fn withheld(&mut self, left: u64, seen: u64) {
        let since = self.oracle.queries.iter().filter(|(_, query)| left < query.end && query.end <= seen);
        let mut ids: Vec<u16> = since.map(|(id, _)| *id).collect();
        ids.truncate(ids.len().saturating_sub(WITHHELD_MAX));
        self.oracle.held_too_long.extend(ids);
    }

    /// Somebody was told that what it typed was refused.
    pub fn refused(&mut self, bytes: &[u8]) {
        let tokens = tokens(bytes);
        self.counts.tokens_refused += tokens.len() as u64;
        self.oracle.refused.extend(tokens);
        self.answers_dropped(&replies(bytes).1);
    }

    /// Output was read or shown by one who has everything before `position`.
    pub fn followed(&mut self, who: std::fmt::Arguments<'_>, position: u64, at: u64, bytes: &[u8]) {
        let (from, to) = (at as usize, at as usize + bytes.len());
        if position != at {
            self.fail(format!("{who} has everything before {position} and was shown {at}..{to}"));
        } else if self.oracle.output.get(from..to) != Some(bytes) {
            self.fail(format!("{who} was shown wrong bytes at {from}..{to}"));
        }
    }

    /// Bytes are shown on a client's terminal: `raw` is the output they stand for.
    pub fn show(&mut self, terminal: usize, at: u64, raw: &[u8], shown: &[u8]) {
        let position = self.terminals[terminal].at;
        self.followed(format_args!("terminal {terminal}"), position, at, raw);
        self.terminals[terminal].at = at + raw.len() as u64;
        for id in self.terminals[terminal].put(shown) {
            self.counts.answered_by_terminal += 1;
            self.note(format_args!("terminal {terminal}: answers query {id}"));
        }
    }

    /// In the end: how often each query was answered.
    pub fn judge_queries(&mut self) {
        let queries: Vec<(u16, Query)> = self.oracle.queries.iter().map(|(id, query)| (*id, *query)).collect();
        for (id, query) in queries {
            let near = self.oracle.disturbances(&query);
            let lost = query.answers == 0 && self.oracle.answers_lost.contains(&id);
            self.counts.unanswered += u64::from(query.answers == 0);
            self.counts.answers_lost_with_the_turn += u64::from(lost);
            let held = query.answers == 0 && !lost && self.oracle.held_too_long.contains(&id);
            self.counts.answers_held_back_too_long += u64::from(held);
            if near == 0 {
                self.counts.queries_calm += 1;
                if query.answers != 1 && !lost && !held && !self.oracle.is_split(&query) {
                    self.fail(format!(
                        "query {id} at {} of {} ms has {} answers, and nothing disturbed it",
                        query.end, query.published_ms, query.answers
                    ));
                }
            }
        }
    }
}
