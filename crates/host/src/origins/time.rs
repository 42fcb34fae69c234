//! Whose a change is by its time: the one actor whose run was on, or the one that typed right before it.

use crate::journal::writing_acts;
use holdfast_graph::{RECORD_LAG_MS, TICK_MS, WritingAct};
use holdfast_session::Run;
use holdfast_types::{Actor, SessionId, TimeMs};
use holdfast_wire::runs::RunId;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs that are remembered for all sessions.
const SPANS_MAX: usize = 2048;
/// What changes this much behind keys of an actor may be their doing; later it may be anybody's.
const TYPED_MS: TimeMs = 2_000 + RECORD_LAG_MS;

/// When a run was on.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub run: RunId,
    pub session: SessionId,
    pub actor: Actor,
    pub act: Option<u64>,
    pub from_ms: TimeMs,
    /// None: it still is.
    pub to_ms: Option<TimeMs>,
}

impl Span {
    fn has(&self, at_ms: TimeMs) -> bool {
        self.from_ms <= at_ms + TICK_MS && self.to_ms.is_none_or(|to| at_ms <= to + TICK_MS)
    }
}

/// Runs of all sessions, the oldest first. Whoever looks at them on another thread has them as they were.
#[derive(Debug, Default)]
pub(crate) struct Spans(Arc<VecDeque<Span>>);

impl Spans {
    /// What became of a run.
    pub fn ran(&mut self, session: SessionId, run: &Run) {
        let (actor, act) = (run.actor.clone(), run.act);
        let span = Span { run: run.id, session, actor, act, from_ms: run.started_ms, to_ms: run.ended_ms };
        let all = Arc::make_mut(&mut self.0);
        match all.iter_mut().rev().find(|known| known.run == run.id) {
            Some(known) => *known = span,
            None => all.push_back(span),
        }
        if all.len() > SPANS_MAX {
            all.pop_front();
        }
    }

    pub fn all(&self) -> Arc<VecDeque<Span>> {
        Arc::clone(&self.0)
    }
}

/// Who may have changed something at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guess {
    /// None: several, or none that is known.
    pub actor: Option<Actor>,
    pub act: Option<u64>,
    pub known: &'static str,
}

/// Runs, and what was typed in one session.
#[derive(Debug)]
pub(crate) struct Times<'a> {
    session: SessionId,
    spans: &'a VecDeque<Span>,
    acts: Vec<WritingAct>,
}

impl<'a> Times<'a> {
    /// With what the journal has since a moment. Blocks.
    pub fn read(session: SessionId, spans: &'a VecDeque<Span>, journal: &[PathBuf], since_ms: TimeMs) -> Times<'a> {
        Times { session, spans, acts: writing_acts(journal, since_ms, &[]) }
    }

    /// Whose a change at this moment is.
    pub fn of(&self, at_ms: TimeMs) -> Guess {
        let unknown = Guess { actor: None, act: None, known: "unknown" };
        let mut on = self.spans.iter().filter(|span| span.has(at_ms));
        if let Some(first) = on.next() {
            if on.any(|other| other.actor.id != first.actor.id) {
                return unknown;
            }
            let act = first.act.filter(|_| first.session == self.session);
            return Guess { actor: Some(first.actor.clone()), act, known: "run" };
        }
        let before = self.acts.iter().filter(|act| !act.is_start && act.from_ms <= at_ms + TICK_MS);
        match before.max_by_key(|act| act.seq).filter(|act| at_ms <= act.at_ms + TYPED_MS) {
            Some(act) if act.actor.is_some() => Guess { actor: act.actor.clone(), act: Some(act.seq), known: "time" },
            Some(_) | None => unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{ActorId, Fence};

    fn actor(number: u8) -> Actor {
        Actor { id: ActorId([number; 32]), handle: format!("agent:a{number}").parse().unwrap() }
    }

    #[test]
    fn a_change_is_the_one_runs_that_was_on_or_the_typists_right_before_it() {
        let session = SessionId::from_random_bits(1);
        let span = |number: u8, from_ms, to_ms| Span {
            run: RunId::from_random_bits(u128::from(number)),
            session,
            actor: actor(number),
            act: Some(u64::from(number)),
            from_ms,
            to_ms,
        };
        let typed = |seq, at_ms| WritingAct {
            seq,
            actor: Some(actor(9)),
            from_ms: at_ms,
            at_ms,
            is_start: false,
            fence: Fence(1),
        };
        let spans = VecDeque::from([span(1, 1_000, Some(2_000)), span(2, 1_500, Some(3_000))]);
        let open = VecDeque::from([span(2, 1_600, None)]);
        let times = Times { session, spans: &spans, acts: vec![typed(5, 10_000)] };
        let who = |at_ms| times.of(at_ms).actor.map(|actor| actor.handle.to_string());
        assert_eq!(who(1_200).as_deref(), Some("agent:a1"));
        assert_eq!(who(1_700), None, "two were on");
        assert_eq!(who(2_500).as_deref(), Some("agent:a2"));
        assert_eq!(who(5_000), None, "nobody was");
        assert_eq!(who(10_500).as_deref(), Some("agent:a9"));
        assert_eq!(who(60_000), None, "too long behind the keys");
        let on = Times { session: SessionId::from_random_bits(2), spans: &open, acts: vec![] };
        assert_eq!((on.of(90_000).actor, on.of(90_000).act), (Some(actor(2)), None), "another session's act");
    }
}
