//! The truth: everything that was said, typed, asked and resized, and what follows from it.
//!
//! What is proved, at every step unless it says "in the end":
//!
//! 1. Whoever follows by offset is shown every byte once and in order; what it was not shown is a gap it was told of, or
//!    lies before a repaint.
//! 2. What is typed arrives once and in the order of its source, and in the end all of it, unless its terminal died or the
//!    input was flushed.
//! 3. A screen at an offset is what the whole output up to there makes; behind a gap, what the output since the gap makes.
//!    Not where more was typed since the last keyframe than the log holds: then sizes that changed in between are lost.
//! 4. Nobody without progress holds the program longer than `STALL_MS`.
//! 5. A query is answered once, in the end, when nothing disturbed it: no crash, departure, flush or gap, nobody left
//!    behind, from a while before it to a while after. And it is answered at most once more for each such disturbance.
//! 6. Nothing is written under another fence than the newest.
//! 7. In the end the size is that of the attached terminal that typed last. Not where its window changed after that and a
//!    host crashed after that: who typed is in the log only until it was looked at.

use crate::ctx::Ctx;
use crate::program::Token;
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
    pub(crate) newest_fence: u64,
    /// More was typed without a host than the log holds: where the sizes changed is not known any more.
    pub(crate) sizes_lost: bool,
    /// The program spoke before any host followed: nothing was held for the first one.
    pub(crate) unwatched: bool,
    /// The connection that typed last, and when.
    pub(crate) typist: Option<(u32, u64)>,
    /// When a host crashed last.
    pub(crate) crashed_ms: u64,
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

    /// Input that was dropped on purpose.
    pub(crate) fn flushed(&mut self, tokens: Vec<Token>) {
        self.flushed.extend(tokens);
    }

    /// The last token of a source that reached the program.
    pub(crate) fn last_arrived(&self, source: u8) -> u32 {
        self.arrived.get(&source).copied().unwrap_or(0)
    }

    /// Whether every token of a source up to `number` that has not arrived was flushed.
    pub(crate) fn rest_was_flushed(&self, source: u8, number: u32) -> bool {
        (self.last_arrived(source) + 1..=number).all(|number| self.flushed.contains(&Token { source, number }))
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
        } else if !self.oracle.rest_was_flushed(token.source, token.number - 1) {
            self.fail(format!("{token:?} was written, and nothing between it and {last}"));
        }
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
            let near = self.oracle.disturbances(&query);
            self.note(format_args!("program: query {id} has {} answers, {near} disturbances near it", query.answers));
            if query.answers > 1 + near {
                self.fail(format!("query {id} at {} was answered {} times", query.end, query.answers));
            }
        }
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
            self.counts.unanswered += u64::from(query.answers == 0);
            if near == 0 {
                self.counts.queries_calm += 1;
                if query.answers != 1 {
                    self.fail(format!(
                        "query {id} at {} of {} ms has {} answers, and nothing disturbed it",
                        query.end, query.published_ms, query.answers
                    ));
                }
            }
        }
    }
}
