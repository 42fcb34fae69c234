//! Several histories under one id: a flow that goes on with a new one, and one that is taken back to a step. The history
//! before is kept as it was.

use super::{Decided, Flow, Phase, Refusal};
use crate::command::Command;
use crate::effect::Effect;
use crate::event::{Event, Lineage, Outcome, Parent, Recorded, RunState};
use holdfast_types::TimeMs;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Ids of signals that a new history still knows: a sender that sends again does so within its last thousand.
const SEEN_MAX: usize = 1_000;

/// A flow that a step started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its id.
    pub id: String,
    /// What kind of flow it is.
    pub flow: String,
}

/// Where a history is taken back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The step that is asked for anew: its number from 1, or its name.
    pub to: String,
    /// What was done may be done a second time.
    pub again: bool,
    /// Who wants it.
    pub by: String,
}

impl Flow {
    /// The history in which an open step was asked for.
    #[must_use]
    pub fn generation_of(&self, n: u32) -> Option<u32> {
        self.open.get(&n).map(|open| open.generation)
    }

    /// The id of the flow that a step starts: the same step finds it again.
    pub(crate) fn child_id(&self, n: u32, generation: u32) -> String {
        match generation {
            0 | 1 => format!("{}.{}", self.id, n + 1),
            later => format!("{}.{}g{later}", self.id, n + 1),
        }
    }

    /// The flows that its steps started, by the step's number.
    pub fn children(&self) -> impl Iterator<Item = (u32, &Child)> {
        self.children.iter().map(|(n, child)| (*n, child))
    }

    /// What a flow says of itself that a step of it starts.
    #[must_use]
    pub fn as_parent(&self, n: u32) -> Parent {
        Parent { flow: self.id.clone(), n, nonce: self.nonce.clone() }
    }

    /// Whether it does not wait for timers: neither do the flows that it starts.
    #[must_use]
    pub fn skips_timers(&self) -> bool {
        self.skip_timers
    }

    /// A flow whose workers the service starts has no other code than its own.
    fn goes_on_hosted(&self) -> Option<Event> {
        self.hosted.clone().map(|hosted| Event::Coded { code: self.coded.clone(), hosted: Some(hosted) })
    }

    /// Ends this history and begins the next. Signals that no step has taken come along; what was done counts as done, and is not
    /// undone later.
    pub(super) fn go_on(&mut self, out: &mut Decided, input: Value, now_ms: TimeMs) {
        if let Some((n, open)) = self.open.iter().find(|(_, open)| open.is_outside()) {
            let why = format!(
                "step {} ({}) is still open; wait for it before the flow continues as new",
                n + 1,
                open.command.name()
            );
            return self.put(out, Event::Blocked { why }, now_ms);
        }
        self.put(out, Event::Continued { input: input.clone() }, now_ms);
        let mut seen: Vec<(&String, &u64)> =
            self.ids.iter().filter(|(id, _)| !self.mail.iter().any(|mail| mail.id == **id)).collect();
        seen.sort_by_key(|(_, seq)| std::cmp::Reverse(**seq));
        let seen = seen.into_iter().take(SEEN_MAX).map(|(id, _)| id.clone()).collect();
        let lineage = Lineage { parent: self.parent.clone(), before: self.generation, seen };
        let started = Event::Started {
            name: self.name.clone(),
            input,
            code: self.code.clone(),
            by: self.by.clone(),
            nonce: self.nonce.clone(),
            cwd: self.cwd.clone(),
            skip_timers: self.skip_timers,
            lineage,
        };
        let mail = std::mem::take(&mut self.mail).into_iter();
        let signals = mail.map(|mail| Event::Signal { name: mail.name, value: mail.value, id: mail.id, by: mail.by });
        let coded = self.goes_on_hosted();
        let next: Vec<Recorded> = std::iter::once(started)
            .chain(coded)
            .chain(signals)
            .map(|event| Recorded { at_ms: now_ms, event })
            .collect();
        *self = Flow::replay(&self.id, &next);
        out.next = next;
        out.effects.push(Effect::Decide);
    }

    /// Takes the history back to a step, which is then asked for anew: outcomes of steps before it and every signal stay.
    ///
    /// Refuses where a step that is taken back may have had an effect, unless `again` says that it may have it twice.
    pub fn rewind(&mut self, history: &[Recorded], asked: &Rewind, now_ms: TimeMs) -> Result<Decided, Refusal> {
        let lives = lives(history);
        let to = lives.number(&asked.to).ok_or_else(|| Refusal::NoStep(asked.to.clone()))?;
        if let Some((n, life)) = lives.0.range(..to).find(|(_, life)| life.undo.is_some()) {
            return Err(Refusal::Undone(life.name(), n + 1));
        }
        let is_going = !matches!(self.phase, Phase::Ended { .. }) && self.blocked.is_none();
        let goes = |n: &u32| self.open.get(n).is_some_and(|open| open.is_outside() && open.stuck.is_none());
        if let Some((_, life)) = lives.0.range(to..).find(|(n, _)| is_going && goes(n)) {
            return Err(Refusal::StillOn(life.name()));
        }
        let twice: BTreeSet<String> =
            lives.0.range(to..).filter(|(_, life)| life.may_have_acted()).map(|(_, life)| life.name()).collect();
        if !asked.again && !twice.is_empty() {
            return Err(Refusal::Twice(twice.into_iter().collect::<Vec<_>>().join(", ")));
        }
        let mut out = Decided::default();
        // Of a blocked flow nobody knows whether it runs: it must not run beside its second time.
        for (n, open) in self.open.range(to..).filter(|(n, _)| goes(n)) {
            out.effects.push(match &open.command {
                Command::Child { .. } => Effect::StopChild { n: *n, id: self.child_id(*n, open.generation) },
                _ => Effect::Stop { n: *n, key: self.key(*n, open.attempt) },
            });
        }
        let stays = |event: &Event| match event {
            Event::Started { .. } | Event::Signal { .. } | Event::Rewound { .. } => true,
            Event::Asked { n, .. } | Event::Tried { n, .. } | Event::Stuck { n, .. } | Event::Done { n, .. } => *n < to,
            // What is done anew is decided by the newest code.
            Event::Coded { .. } => false,
            Event::Blocked { .. }
            | Event::Unblocked { .. }
            | Event::Continued { .. }
            | Event::Ending { .. }
            | Event::Ended { .. } => false,
        };
        let mut next: Vec<Recorded> = history.iter().filter(|one| stays(&one.event)).cloned().collect();
        let rewound = Event::Rewound { to, by: asked.by.clone(), generation: self.generation.saturating_add(1) };
        next.push(Recorded { at_ms: now_ms, event: rewound });
        next.extend(self.goes_on_hosted().map(|event| Recorded { at_ms: now_ms, event }));
        *self = Flow::replay(&self.id, &next);
        out.next = next;
        out.effects.extend(self.resume());
        Ok(out)
    }
}

/// What a history has of one step.
#[derive(Debug, Default)]
struct Life<'a> {
    command: Option<&'a Command>,
    tried: Vec<&'a Outcome>,
    done: Option<&'a Value>,
    /// The step that undid it, and whether that was done.
    undo: Option<bool>,
}

impl Life<'_> {
    fn name(&self) -> String {
        self.command.map_or("", Command::name).to_owned()
    }

    /// Whether something outside may have changed because of it.
    fn may_have_acted(&self) -> bool {
        let acts = |outcome: &Outcome| outcome.state != RunState::Refused && !outcome.not_started;
        let is_marker = |name: &str| matches!(name, "now" | "random" | "uuid") || name.starts_with("version ");
        match self.command {
            _ if self.undo == Some(true) => false,
            Some(Command::Run(run)) if run.undoes.is_some() => false,
            Some(Command::Run(_)) => {
                let done = self.done.and_then(|value| serde_json::from_value::<Outcome>(value.clone()).ok());
                self.tried.iter().any(|outcome| acts(outcome)) || done.as_ref().is_none_or(acts)
            }
            Some(Command::Child { .. }) => true,
            Some(Command::Step { name, .. }) => !is_marker(name),
            Some(
                Command::Sleep { .. }
                | Command::Until { .. }
                | Command::Ask { .. }
                | Command::Signal { .. }
                | Command::Wait { .. }
                | Command::Undo { .. }
                | Command::Continue { .. }
                | Command::End { .. },
            )
            | None => false,
        }
    }
}

struct Lives<'a>(BTreeMap<u32, Life<'a>>);

impl Lives<'_> {
    /// The step that a person means: a number from 1, or the last of that name.
    fn number(&self, said: &str) -> Option<u32> {
        let is_codes = |life: &Life<'_>| !matches!(life.command, Some(Command::Run(run)) if run.undoes.is_some());
        if let Some(n) = said.parse::<u32>().ok().and_then(|number| number.checked_sub(1)) {
            return self.0.get(&n).filter(|life| is_codes(life)).map(|_| n);
        }
        self.0.iter().rev().find(|(_, life)| is_codes(life) && life.name() == said).map(|(n, _)| *n)
    }
}

fn lives(history: &[Recorded]) -> Lives<'_> {
    let mut lives: BTreeMap<u32, Life<'_>> = BTreeMap::new();
    for Recorded { event, .. } in history {
        match event {
            Event::Asked { n, command } => {
                lives.entry(*n).or_default().command = Some(command);
                if let Command::Run(run) = command
                    && let Some(undone) = run.undoes
                {
                    lives.entry(undone).or_default().undo = Some(false);
                }
            }
            Event::Tried { n, outcome, .. } | Event::Stuck { n, outcome, .. } => {
                lives.entry(*n).or_default().tried.push(outcome);
            }
            Event::Done { n, ok, value } => {
                let life = lives.entry(*n).or_default();
                life.done = Some(value);
                if let Some(Command::Run(run)) = life.command
                    && let Some(undone) = run.undoes
                {
                    lives.entry(undone).or_default().undo = Some(*ok);
                }
            }
            _ => {}
        }
    }
    Lives(lives)
}
