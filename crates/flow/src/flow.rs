//! One flow: its state, made from recorded events alone, and what an input adds to them.

mod generations;
mod outside;
mod refusal;
mod rest;

pub use generations::{Child, Rewind};
pub use refusal::{Refusal, Verdict};
pub use rest::Wakes;

use crate::command::{Command, OnLost, Run};
use crate::effect::{Due, Effect, Fires};
use crate::event::{Event, Hosted, Outcome, Parent, Recorded, RunState};
use crate::shell::fill_output;
use crate::{EVENTS_MAX, OPEN_MAX};
use holdfast_types::TimeMs;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// How often an undo is tried before a human has to look: what fails for a minute seldom mends itself.
const UNDO_RETRIES: u32 = 3;
const UNDO_BACKOFF_MS: u64 = 1_000;
/// The longest pause between two attempts: a day has enough of them.
const PAUSE_MS_MAX: u64 = 3_600_000;
/// Characters of a failure that are carried to the end of a flow.
const WHY_CHARS_MAX: usize = 1_000;

/// A command whose outcome is not recorded yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    pub command: Command,
    pub attempt: u32,
    /// The history in which it was asked for: part of its key.
    pub generation: u32,
    /// Failures that count against its retries.
    pub failures: u32,
    /// When this attempt was decided.
    pub since_ms: TimeMs,
    pub pause_ms: u64,
    /// A human has to decide.
    pub stuck: Option<Outcome>,
}

/// A signal that no step has taken yet.
#[derive(Debug, Clone, PartialEq)]
struct Mail {
    name: String,
    value: Value,
    id: String,
    by: String,
}

/// What runs if the flow fails.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Undo {
    n: u32,
    name: String,
    command: String,
    session: Option<String>,
}

/// How far a flow is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Phase {
    #[default]
    Going,
    Ending {
        ok: bool,
        value: Value,
        cancelled: bool,
    },
    Ended {
        ok: bool,
        value: Value,
        cancelled: bool,
    },
    /// It goes on in the next history.
    Continued,
}

/// A flow, as its history has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Its id.
    pub id: String,
    /// What kind of flow it is.
    pub name: String,
    /// The digest of its definition; empty where a worker's code decides.
    pub code: String,
    /// The digest of the worker's file that decides; empty: whatever a worker has.
    pub coded: String,
    /// The service starts workers with that file by itself.
    pub hosted: Option<Hosted>,
    /// Who started it.
    pub by: String,
    /// Where its new sessions start.
    pub cwd: Option<String>,
    /// When it began.
    pub started_ms: TimeMs,
    /// How many events it has.
    pub seq: u64,
    /// Its decider has something new to look at.
    pub wants: bool,
    /// The step that started it.
    pub parent: Option<Parent>,
    /// Which history under this id this is, from 1.
    pub generation: u32,
    nonce: String,
    skip_timers: bool,
    next: u32,
    /// Boxed: the map has room for eleven at once, and most flows have one.
    pub(crate) open: BTreeMap<u32, Box<Open>>,
    mail: VecDeque<Mail>,
    /// Ids of signals, and which event each came with.
    ids: BTreeMap<String, u64>,
    /// Flows that its steps started.
    children: BTreeMap<u32, Child>,
    undos: Vec<Undo>,
    pub(crate) phase: Phase,
    pub(crate) blocked: Option<String>,
}

/// What an input adds, and what is to be done once that is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// To be recorded.
    pub events: Vec<Event>,
    /// To be recorded as the beginning of the next history; the one before is kept.
    pub next: Vec<Recorded>,
    /// To be done then.
    pub effects: Vec<Effect>,
}

impl Open {
    /// It goes on outside the flow and is to be stopped.
    fn is_outside(&self) -> bool {
        matches!(self.command, Command::Run(_) | Command::Child { .. })
    }
}

impl Flow {
    /// One that nothing is recorded of yet.
    #[must_use]
    pub fn new(id: &str) -> Flow {
        Flow { id: id.to_owned(), ..Flow::default() }
    }

    /// From its history.
    #[must_use]
    pub fn replay<'a>(id: &str, history: impl IntoIterator<Item = &'a Recorded>) -> Flow {
        let mut flow = Flow::new(id);
        history.into_iter().for_each(|recorded| flow.apply(recorded.at_ms, &recorded.event));
        flow
    }

    /// The key of an attempt: the same one runs once, whatever dies in between.
    #[must_use]
    pub fn key(&self, n: u32, attempt: u32) -> String {
        let generation = self.generation_of(n).unwrap_or(self.generation);
        match generation {
            0 | 1 => format!("flow/{}/{}/{n}/{attempt}", self.id, self.nonce),
            later => format!("flow/{}/{}.{later}/{n}/{attempt}", self.id, self.nonce),
        }
    }

    /// Takes in one recorded event: while deciding, and again after a restart. The same code, so it cannot differ.
    pub fn apply(&mut self, at_ms: TimeMs, event: &Event) {
        self.seq += 1;
        match event {
            Event::Started { name, code, by, nonce, cwd, skip_timers, lineage, .. } => {
                self.skip_timers = *skip_timers;
                (self.parent, self.generation) = (lineage.parent.clone(), lineage.before.saturating_add(1));
                self.ids.extend(lineage.seen.iter().map(|id| (id.clone(), 0)));
                (self.name, self.code, self.by, self.nonce) = (name.clone(), code.clone(), by.clone(), nonce.clone());
                (self.cwd, self.started_ms, self.wants) = (cwd.clone(), at_ms, true);
            }
            Event::Asked { n, command } => self.applied_asked(*n, command, at_ms),
            Event::Tried { n, attempt, outcome, pause_ms } => {
                if let Some(open) = self.open.get_mut(n) {
                    (open.attempt, open.since_ms, open.pause_ms, open.stuck) = (attempt + 1, at_ms, *pause_ms, None);
                    open.failures += u32::from(!outcome.not_started);
                }
            }
            Event::Stuck { n, outcome, .. } => {
                if let Some(open) = self.open.get_mut(n) {
                    open.stuck = Some(outcome.clone());
                }
            }
            Event::Done { n, ok, value } => self.applied_done(*n, *ok, value),
            Event::Signal { name, value, id, by } => {
                let (name, value, id, by) = (name.clone(), value.clone(), id.clone(), by.clone());
                if !id.is_empty() {
                    self.ids.insert(id.clone(), self.seq);
                }
                self.mail.push_back(Mail { name, value, id, by });
            }
            Event::Blocked { why } => {
                self.blocked = Some(why.clone());
                self.wants = false;
            }
            Event::Unblocked { .. } => {
                self.blocked = None;
                self.wants = self.phase == Phase::Going;
                if self.hosted.is_none() {
                    self.coded.clear();
                }
            }
            Event::Coded { code, hosted } => {
                self.coded.clone_from(code);
                self.hosted.clone_from(hosted);
            }
            Event::Rewound { generation, .. } => {
                self.generation = *generation;
                self.wants = true;
            }
            Event::Continued { .. } => {
                (self.phase, self.wants, self.blocked) = (Phase::Continued, false, None);
                self.open.clear();
            }
            Event::Ending { ok, value, cancelled_by } => {
                self.phase = Phase::Ending { ok: *ok, value: value.clone(), cancelled: cancelled_by.is_some() };
                (self.wants, self.blocked) = (false, None);
                self.mail.clear();
                self.open.retain(|_, open| open.is_outside() && open.stuck.is_none());
            }
            Event::Ended { ok, value } => {
                let cancelled = matches!(self.phase, Phase::Ending { cancelled: true, .. });
                self.phase = Phase::Ended { ok: *ok, value: value.clone(), cancelled };
                (self.wants, self.blocked) = (false, None);
                self.open.clear();
                self.mail.clear();
            }
        }
    }

    fn applied_asked(&mut self, n: u32, command: &Command, at_ms: TimeMs) {
        self.next = n + 1;
        // Whoever asks has looked at everything before.
        self.wants = false;
        match command {
            Command::Step { .. } => {}
            Command::Undo { name, command, session } => {
                let (name, command, session) = (name.clone(), command.clone(), session.clone());
                self.undos.push(Undo { n, name, command, session });
            }
            command => {
                if let Command::Child { flow, .. } = command {
                    let id = self.child_id(n, self.generation);
                    self.children.insert(n, Child { id, flow: flow.clone() });
                }
                if let Command::Run(Run { undoes: Some(undone), .. }) = command {
                    self.undos.retain(|undo| undo.n != *undone);
                }
                let open = Open {
                    command: command.clone(),
                    attempt: 0,
                    generation: self.generation,
                    failures: 0,
                    since_ms: at_ms,
                    pause_ms: 0,
                    stuck: None,
                };
                self.open.insert(n, Box::new(open));
            }
        }
    }

    fn applied_done(&mut self, n: u32, ok: bool, value: &Value) {
        let Some(open) = self.open.remove(&n) else { return };
        // What was on its way when the flow began to end is nobody's to look at; a blocked one is looked at once it is mended.
        self.wants = self.phase == Phase::Going && self.blocked.is_none();
        match open.command {
            Command::Signal { name, .. } if ok => {
                if let Some(at) = self.mail.iter().position(|mail| mail.name == name) {
                    self.mail.remove(at);
                }
            }
            Command::Run(Run { name, undo: Some(undo), session, .. }) if ok => {
                self.undos.push(Undo { n, name, command: fill_output(&undo, value), session });
            }
            _ => {}
        }
    }

    /// Nothing more will happen.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. } | Phase::Continued)
    }

    fn put(&mut self, out: &mut Decided, event: Event, now_ms: TimeMs) {
        self.apply(now_ms, &event);
        out.events.push(event);
    }

    /// What is due for an open command, now or after a restart.
    fn due(&self, n: u32) -> Vec<Effect> {
        let Some(open) = self.open.get(&n).filter(|open| open.stuck.is_none()) else { return Vec::new() };
        let (since_ms, attempt) = (open.since_ms, open.attempt);
        let over = |due| vec![Effect::Timer { n, fires: Fires::Over, due }];
        match &open.command {
            Command::Run(run) if run.undoes.is_none() && self.phase != Phase::Going => {
                vec![Effect::Stop { n, key: self.key(n, attempt) }]
            }
            Command::Run(_) if open.pause_ms > 0 => {
                let due = Due::After { since_ms, ms: open.pause_ms };
                vec![Effect::Timer { n, fires: Fires::Attempt(attempt), due }]
            }
            Command::Run(_) => self.attempt(n, open),
            Command::Sleep { .. } | Command::Until { .. } if self.skip_timers => over(Due::After { since_ms, ms: 0 }),
            Command::Sleep { ms, .. } => over(Due::After { since_ms, ms: *ms }),
            Command::Until { at_ms, .. } => over(Due::At(*at_ms)),
            Command::Ask { expires_ms: Some(ms), .. } | Command::Signal { timeout_ms: Some(ms), .. } => {
                over(Due::After { since_ms, ms: *ms })
            }
            Command::Ask { .. } | Command::Signal { .. } => Vec::new(),
            Command::Wait { session, until, timeout_ms, .. } => {
                let limit = timeout_ms.map(|ms| over(Due::After { since_ms, ms })).unwrap_or_default();
                let watch = Effect::Watch { n, session: session.clone(), until: *until };
                std::iter::once(watch).chain(limit).collect()
            }
            Command::Child { .. } if self.phase != Phase::Going => {
                vec![Effect::StopChild { n, id: self.child_id(n, open.generation) }]
            }
            Command::Child { flow, input, .. } => {
                let id = self.child_id(n, open.generation);
                vec![Effect::Child { n, id, flow: flow.clone(), input: input.clone() }]
            }
            Command::Step { .. } | Command::Undo { .. } | Command::Continue { .. } | Command::End { .. } => Vec::new(),
        }
    }

    /// An attempt of a run, whose pause is over.
    fn attempt(&self, n: u32, open: &Open) -> Vec<Effect> {
        let Command::Run(run) = &open.command else { return Vec::new() };
        let (attempt, since_ms) = (open.attempt, open.since_ms.saturating_add(open.pause_ms));
        let mut effects = vec![Effect::Start { n, attempt, key: self.key(n, attempt), since_ms, run: run.clone() }];
        if let Some(ms) = run.timeout_ms {
            effects.push(Effect::Timer { n, fires: Fires::Timeout(attempt), due: Due::After { since_ms, ms } });
        }
        effects
    }

    /// Everything that is due: after a restart, or once somebody has mended something.
    #[must_use]
    pub fn resume(&self) -> Vec<Effect> {
        if self.blocked.is_some() {
            return Vec::new();
        }
        let mut effects: Vec<Effect> = self.open.keys().flat_map(|n| self.due(*n)).collect();
        if self.wants {
            effects.push(Effect::Decide);
        }
        effects
    }

    /// Begins.
    pub fn start(&mut self, started: Event, now_ms: TimeMs) -> Decided {
        let mut out = Decided::default();
        self.put(&mut out, started, now_ms);
        out.effects.push(Effect::Decide);
        out
    }

    /// Begins, and is decided by this file, with which the service starts workers by itself.
    pub fn start_hosted(&mut self, started: Event, (code, hosted): (String, Hosted), now_ms: TimeMs) -> Decided {
        let mut out = self.start(started, now_ms);
        self.put(&mut out, Event::Coded { code, hosted: Some(hosted) }, now_ms);
        out
    }

    /// Takes a decider's answer to the history of `at` events: its new commands, in order.
    pub fn decide(&mut self, at: u64, commands: Vec<(u32, Command)>, now_ms: TimeMs) -> Result<Decided, Refusal> {
        self.decide_by("", at, commands, now_ms)
    }

    /// The same of a worker whose file has this digest: the flow goes on with that file.
    pub fn decide_by(
        &mut self,
        code: &str,
        at: u64,
        commands: Vec<(u32, Command)>,
        now_ms: TimeMs,
    ) -> Result<Decided, Refusal> {
        if at != self.seq || self.blocked.is_some() {
            return Err(Refusal::Moved);
        }
        if self.phase != Phase::Going {
            return Err(Refusal::Ended);
        }
        let mut out = Decided::default();
        if !code.is_empty() && self.coded.is_empty() {
            self.put(&mut out, Event::Coded { code: code.to_owned(), hosted: None }, now_ms);
        }
        self.wants = false;
        let mut asked = Vec::new();
        for (n, command) in commands {
            if let Some(why) = self.not_askable(n, &command) {
                self.put(&mut out, Event::Blocked { why }, now_ms);
                return Ok(out);
            }
            match command {
                Command::Continue { input } => {
                    self.go_on(&mut out, input, now_ms);
                    return Ok(out);
                }
                Command::End { ok, value } => {
                    self.end(&mut out, ok, value, None, now_ms);
                    return Ok(out);
                }
                Command::Step { name, ok, value } => {
                    let bare = Command::Step { name, ok, value: Value::Null };
                    self.put(&mut out, Event::Asked { n, command: bare }, now_ms);
                    self.put(&mut out, Event::Done { n, ok, value }, now_ms);
                }
                command @ Command::Undo { .. } => {
                    self.put(&mut out, Event::Asked { n, command }, now_ms);
                    self.put(&mut out, Event::Done { n, ok: true, value: Value::Null }, now_ms);
                }
                command => {
                    self.put(&mut out, Event::Asked { n, command }, now_ms);
                    asked.push(n);
                }
            }
        }
        // What came early is there already: nothing is lost. Behind all that is asked, because it wants to be looked at.
        for n in &asked {
            let Some(Command::Signal { name, .. }) = self.open.get(n).map(|open| &open.command) else { continue };
            if let Some(value) = self.first_mail(name) {
                self.put(&mut out, Event::Done { n: *n, ok: true, value }, now_ms);
            }
        }
        out.effects.extend(asked.into_iter().flat_map(|n| self.due(n)));
        if self.wants {
            out.effects.push(Effect::Decide);
        } else if self.open.is_empty() {
            let why = "the code waits for nothing and has not ended".to_owned();
            self.put(&mut out, Event::Blocked { why }, now_ms);
        }
        Ok(out)
    }

    fn not_askable(&self, n: u32, command: &Command) -> Option<String> {
        if n != self.next {
            return Some(format!("the code asks for step {n} ({}) where step {} is next", command.name(), self.next));
        }
        if self.open.len() >= OPEN_MAX {
            return Some(format!("more than {OPEN_MAX} steps are open at once"));
        }
        if self.seq >= EVENTS_MAX {
            return Some(format!(
                "the history has {EVENTS_MAX} events; go on with a new one: return ctx.continue_as_new(INPUT)"
            ));
        }
        if matches!(command, Command::Child { .. }) && !crate::is_id(&self.child_id(n, self.generation)) {
            return Some(format!("the child's id would be too long; start {} with a shorter id", self.id));
        }
        command.check().err().map(|bad| bad.to_string())
    }

    /// The decider cannot go on, or the host refuses what it asked for.
    pub fn block(&mut self, why: &str, now_ms: TimeMs) -> Decided {
        let mut out = Decided::default();
        if self.blocked.is_none() && !self.is_over() {
            self.put(&mut out, Event::Blocked { why: why.chars().take(WHY_CHARS_MAX * 4).collect() }, now_ms);
        }
        out
    }

    fn end(&mut self, out: &mut Decided, ok: bool, value: Value, cancelled_by: Option<String>, now_ms: TimeMs) {
        let is_plain = cancelled_by.is_none() && (ok || self.undos.is_empty());
        let runs = self.open.values().any(|open| open.is_outside());
        if !is_plain || runs {
            self.put(out, Event::Ending { ok, value, cancelled_by }, now_ms);
            let stops: Vec<u32> = self.open.keys().copied().collect();
            out.effects.extend(stops.into_iter().flat_map(|n| self.due(n)));
            self.advance(out, now_ms);
        } else {
            self.put(out, Event::Ended { ok, value }, now_ms);
            out.effects.push(Effect::Over);
        }
    }

    /// While it ends: the next undo, or the end.
    fn advance(&mut self, out: &mut Decided, now_ms: TimeMs) {
        let Phase::Ending { ok, value, .. } = &self.phase else { return };
        if !self.open.is_empty() {
            return;
        }
        match self.undos.last().filter(|_| !ok).cloned() {
            Some(undo) => {
                let n = self.next;
                let run = Run {
                    name: format!("undo {}", undo.name),
                    command: undo.command,
                    session: undo.session,
                    retries: UNDO_RETRIES,
                    backoff_ms: UNDO_BACKOFF_MS,
                    undoes: Some(undo.n),
                    ..Run::default()
                };
                self.put(out, Event::Asked { n, command: Command::Run(run) }, now_ms);
                out.effects.extend(self.due(n));
            }
            None => {
                let (ok, value) = (*ok, value.clone());
                self.put(out, Event::Ended { ok, value }, now_ms);
                out.effects.push(Effect::Over);
            }
        }
    }

    fn done(&mut self, out: &mut Decided, n: u32, ok: bool, value: Value, now_ms: TimeMs) {
        self.put(out, Event::Done { n, ok, value }, now_ms);
        if self.phase == Phase::Going {
            out.effects.push(Effect::Decide);
        } else {
            self.advance(out, now_ms);
        }
    }

    fn again(&mut self, out: &mut Decided, n: u32, attempt: u32, outcome: Outcome, pause_ms: u64, now_ms: TimeMs) {
        self.put(out, Event::Tried { n, attempt, outcome, pause_ms }, now_ms);
        out.effects.extend(self.due(n));
    }

    /// An attempt of a run is over.
    pub fn over(&mut self, n: u32, attempt: u32, outcome: Outcome, now_ms: TimeMs) -> Decided {
        let mut out = Decided::default();
        let Some(open) = self.open.get(&n) else { return out };
        let (Command::Run(run), None) = (&open.command, &open.stuck) else { return out };
        if open.attempt != attempt {
            return out;
        }
        let (failures, is_undo, on_lost) = (open.failures, run.undoes.is_some(), run.on_lost);
        let pause_ms = (run.backoff_ms.saturating_mul(1 << failures.min(20))).min(PAUSE_MS_MAX);
        let is_going = self.phase == Phase::Going || is_undo;
        let may_retry = failures < run.retries && is_going;
        match outcome.state {
            _ if outcome.is_ok() => self.done(&mut out, n, true, value_of(&outcome), now_ms),
            RunState::Lost if !is_going => self.done(&mut out, n, false, value_of(&outcome), now_ms),
            // Nothing of it ran: another attempt is the first one.
            RunState::Lost if outcome.not_started => self.again(&mut out, n, attempt, outcome, 0, now_ms),
            RunState::Lost if on_lost == OnLost::Ask => {
                self.put(&mut out, Event::Stuck { n, attempt, outcome }, now_ms);
            }
            RunState::Lost if on_lost == OnLost::Again && !is_undo => {
                self.again(&mut out, n, attempt, outcome, 0, now_ms);
            }
            RunState::Ended | RunState::Cancelled | RunState::Refused if may_retry => {
                self.again(&mut out, n, attempt, outcome, pause_ms, now_ms);
            }
            // An undo that fails stays, loudly.
            _ if is_undo => self.put(&mut out, Event::Stuck { n, attempt, outcome }, now_ms),
            RunState::Ended | RunState::Cancelled | RunState::Refused | RunState::Lost => {
                self.done(&mut out, n, false, value_of(&outcome), now_ms);
            }
        }
        out
    }

    /// A timer fired.
    pub fn fire(&mut self, n: u32, fires: Fires, now_ms: TimeMs) -> Decided {
        let mut out = Decided::default();
        let Some(open) = self.open.get(&n).filter(|open| open.stuck.is_none()) else { return out };
        match (&open.command, fires) {
            (Command::Sleep { .. } | Command::Until { .. }, Fires::Over) => {
                self.done(&mut out, n, true, Value::Null, now_ms);
            }
            (Command::Ask { .. } | Command::Signal { .. }, Fires::Over) => {
                self.done(&mut out, n, false, json!({"expired": true}), now_ms);
            }
            (Command::Wait { .. }, Fires::Over) => {
                self.done(&mut out, n, false, json!({"expired": true, "why": "it did not come in time"}), now_ms);
            }
            (Command::Run(_), Fires::Attempt(attempt)) if attempt == open.attempt && self.blocked.is_none() => {
                out.effects = self.attempt(n, open);
            }
            (Command::Run(_), Fires::Timeout(attempt)) if attempt == open.attempt => {
                out.effects.push(Effect::Stop { n, key: self.key(n, attempt) });
            }
            _ => {}
        }
        out
    }
}

/// What a step gave.
fn value_of(outcome: &Outcome) -> Value {
    serde_json::to_value(outcome).unwrap_or_default()
}
