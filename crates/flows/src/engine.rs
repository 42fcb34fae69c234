//! The engine: one thread that takes inputs, decides, writes, and only then answers and acts.
//!
//! Everything that arrives while the disk is busy is decided together and committed once. If a commit fails, nothing of it was
//! answered or done: the flows are read again from disk, and their effects derived again a moment later.
//!
//! Between inputs nothing runs: there is no tick.

mod changes;
mod children;
mod forgetting;
mod hosting;
mod input;
mod requests;
mod rest;
#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test's failure is its message
mod tests;
mod views;
mod workers;

use self::changes::Changes;
use self::hosting::Hosting;
pub use self::hosting::Tickets;
pub use self::input::{Input, Reply, Standing};
use self::rest::Resting;
use self::views::{in_json, refused, unrecorded};
use crate::Keeping;
use crate::clock::{Clock, now_ms};
use crate::job::{Job, Whose};
use crate::link::{self, Link, Place};
use crate::protocol::Trouble;
use crate::store::{Row, Store, StoreError};
use holdfast_flow::yaml::{self, Definition};
use holdfast_flow::{Command, Decided, Due, Effect, Event, Fires, Flow, Recorded, Refusal};
use holdfast_types::Handle;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};

/// Inputs that are decided together: enough to make a sync cheap, few enough that nobody waits long.
const BATCH_MAX: usize = 512;
/// Pause after the disk refused a commit.
const TROUBLE_MS: u64 = 1_000;
/// How long a worker may think about a flow before another one is asked: a turn takes milliseconds.
const LEASE_MS: u64 = 60_000;
/// Flows that are listed at once.
const LISTED_MAX: usize = 1_000;
/// Flows that are open at once: ten times what one machine's people and agents start.
const OPEN_FLOWS_MAX: usize = 100_000;
/// Longest input of a flow, as JSON.
const INPUT_BYTES_MAX: usize = holdfast_flow::VALUE_BYTES_MAX;
/// Connections to the host in one actor's name: as many runs of it at once as one machine bears.
const LINKS_MAX: usize = 16;
/// Longest file of flows: more than anybody writes by hand.
const CODE_BYTES_MAX: usize = 1024 * 1024;
/// How long the service stays when no flow is open and nobody is connected.
const IDLE_MS: u64 = 60_000;

/// What a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Flow(String, u32, u32, Fires),
    Resume(String),
    Waiter(u64),
    Worker(String, String),
    Lease(String, u64),
    Idle(u64),
}

/// A flow that has not ended.
struct Live {
    flow: Flow,
    /// The file that has its definition.
    definition: Option<Rc<Definition>>,
    /// What is known of open runs: the session, or why it does not start.
    runs: BTreeMap<u32, (Option<String>, Option<String>)>,
    /// The worker that thinks about it, and the lease's number.
    leased: Option<(u64, u64)>,
    /// It waits in line for a worker.
    is_queued: bool,
    /// The connection that has its history, up to where.
    seen: Option<(u64, u64)>,
    /// Where its history was when its row was told that it is at rest.
    laid: Option<u64>,
}

impl Live {
    fn new(flow: Flow, definition: Option<Rc<Definition>>) -> Live {
        Live { flow, definition, runs: BTreeMap::new(), leased: None, is_queued: false, seen: None, laid: None }
    }
}

/// A client that waits for something.
struct Waiter {
    connection: u64,
    id: u64,
    reply: Reply,
    what: Awaited,
}

enum Awaited {
    History {
        flow: String,
        generation: u32,
        after: u64,
    },
    Task {
        by: String,
        names: Vec<String>,
        max: usize,
        /// The digest of the worker's file.
        code: String,
        /// The service started it.
        hosted: bool,
    },
    /// A change of any flow; of one actor's alone where it sees no others.
    Change {
        all: bool,
        after: u64,
        only: Option<String>,
    },
}

/// An answer that is given once everything before it is on disk.
type Later = (Reply, u64, Result<Value, Trouble>);

/// See the module.
pub struct Engine {
    store: Store,
    place: Place,
    clock: Clock<Timer>,
    tell: Sender<Input>,
    /// Those that have something to do, and some at rest.
    live: HashMap<String, Live>,
    resting: Resting,
    links: HashMap<String, Vec<Link>>,
    ready: HashMap<(String, String), VecDeque<String>>,
    waiters: BTreeMap<u64, Waiter>,
    definitions: HashMap<String, Rc<Definition>>,
    answers: Vec<Later>,
    effects: Vec<(String, Effect, bool)>,
    touched: BTreeSet<String>,
    numbers: u64,
    /// The next number of each name of flows.
    next_numbers: HashMap<String, u64>,
    connections: usize,
    changes: Changes,
    /// Grows with each sign of life, so that an old idle timer is known.
    life: u64,
    is_stopping: bool,
    /// A flow has ended.
    has_ended: bool,
    /// When what ended long ago was removed last.
    forgot_ms: u64,
    /// Workers that the service starts.
    hosting: HashMap<(String, String), Hosting>,
    tickets: Tickets,
    /// Why that failed.
    trouble: Option<String>,
    keeping: Keeping,
}

impl Engine {
    /// Takes up everything that is open.
    pub fn new(store: Store, place: Place, keeping: Keeping, tell: Sender<Input>) -> Result<Engine, StoreError> {
        let wake = tell.clone();
        let clock = Clock::new(move || wake.send(Input::Tick).is_ok());
        let clock = clock.map_err(|e| StoreError::Damaged("the clock".into(), e.to_string()))?;
        let mut engine = Engine {
            store,
            place,
            clock,
            tell,
            live: HashMap::new(),
            resting: Resting::default(),
            links: HashMap::new(),
            ready: HashMap::new(),
            waiters: BTreeMap::new(),
            definitions: HashMap::new(),
            answers: Vec::new(),
            effects: Vec::new(),
            touched: BTreeSet::new(),
            numbers: 0,
            next_numbers: HashMap::new(),
            connections: 0,
            changes: Changes::new(now_ms()),
            life: 0,
            is_stopping: false,
            has_ended: false,
            forgot_ms: 0,
            hosting: HashMap::new(),
            tickets: Tickets::default(),
            trouble: None,
            keeping,
        };
        for Row { id, asleep, .. } in engine.store.rows(false, OPEN_FLOWS_MAX)? {
            match asleep {
                Some(wakes) => engine.leave_asleep(id, &wakes),
                // One that does not read is left alone, and said when it is asked for.
                None if engine.load(&id).is_ok() => {
                    engine.resume(&id);
                    engine.touched.insert(id);
                }
                None => {}
            }
        }
        Ok(engine)
    }

    /// What workers show that this service started.
    pub fn tickets(&self) -> Tickets {
        self.tickets.clone()
    }

    /// Serves until it is told to stop, or nothing is left to do.
    pub fn run(mut self, inputs: &Receiver<Input>) {
        self.settle();
        // Not before: what ended may have a parent that has not heard of it.
        self.forget();
        // Before anybody keeps some. What fails here is tried by the next service.
        let _ = self.store.forget_code();
        loop {
            let Ok(first) = inputs.recv() else { return };
            self.take(first);
            for _ in 1..BATCH_MAX {
                match inputs.try_recv() {
                    Ok(input) => self.take(input),
                    Err(_) => break,
                }
            }
            self.settle();
            if self.is_stopping {
                return;
            }
        }
    }

    fn load(&mut self, id: &str) -> Result<(), StoreError> {
        let is_asleep = self.store.row(id)?.is_some_and(|row| row.asleep.is_some());
        let history = self.store.history(id, 0)?;
        let mut flow = Flow::replay(id, &history);
        // A look that asked for nothing leaves no event; that there was one is known by the rest that followed.
        flow.wants &= !is_asleep;
        let definition = self.definition(&flow.code, &flow.name)?;
        let laid = is_asleep.then_some(flow.seq);
        self.live.insert(id.to_owned(), Live { laid, ..Live::new(flow, definition) });
        Ok(())
    }

    /// The file that defines a flow: its own, or that of the flow that started it.
    fn definition(&mut self, digest: &str, name: &str) -> Result<Option<Rc<Definition>>, StoreError> {
        if digest.is_empty() {
            return Ok(None);
        }
        let damaged = |why: String| StoreError::Damaged(digest.to_owned(), why);
        let file = match self.definitions.get(digest) {
            Some(known) => Rc::clone(known),
            None => {
                let text = self.store.code(digest)?.ok_or_else(|| damaged("its definition is missing".into()))?;
                let read = Rc::new(yaml::parse(&text).map_err(|problem| damaged(problem.to_string()))?);
                self.definitions.insert(digest.to_owned(), Rc::clone(&read));
                read
            }
        };
        if file.named(name).is_some() { Ok(Some(file)) } else { Err(damaged(format!("it has no flow {name}"))) }
    }

    /// Derives a flow's effects again.
    fn resume(&mut self, id: &str) {
        if let Some(live) = self.live.get(id) {
            let effects = live.flow.resume();
            self.effects.extend(effects.into_iter().map(|effect| (id.to_owned(), effect, true)));
        }
    }

    /// Commits, and then answers and acts.
    fn settle(&mut self) {
        loop {
            let committed = self.lay().and_then(|()| self.store.commit());
            let effects = std::mem::take(&mut self.effects);
            let answers = std::mem::take(&mut self.answers);
            let touched = std::mem::take(&mut self.touched);
            match committed {
                Ok(()) => {
                    for (reply, id, answer) in answers {
                        // Who has left wants no answer.
                        let _ = reply.send((id, answer));
                    }
                    for (flow, effect, again) in effects {
                        self.perform(&flow, effect, again);
                    }
                    touched.iter().for_each(|id| self.touched(id));
                    if !touched.is_empty() {
                        self.tell_watchers();
                    }
                }
                Err(error) => self.undone(&error, answers, touched),
            }
            // What was performed may have decided something.
            if self.effects.is_empty() && self.answers.is_empty() && self.touched.is_empty() {
                break;
            }
        }
        self.let_rest();
        self.forget_daily();
        self.idle();
        // Without it timers are late, and the next input makes up for it.
        let _ = self.clock.arm();
    }

    /// The disk refused: nothing of it happened.
    fn undone(&mut self, error: &StoreError, answers: Vec<Later>, touched: BTreeSet<String>) {
        self.store.roll_back();
        let trouble = unrecorded(error);
        for (reply, id, answer) in answers {
            let _ = reply.send((id, answer.and_then(|_| Err(trouble.clone()))));
        }
        for id in touched {
            self.live.remove(&id);
            self.resting.remove(&id);
            if matches!(self.store.row(&id), Ok(Some(Row { ended_ms: None, .. }))) && self.load(&id).is_ok() {
                self.clock.set(Due::After { since_ms: now_ms(), ms: TROUBLE_MS }, Timer::Resume(id));
            }
        }
    }

    /// Ends the service once nothing is left to do.
    fn idle(&mut self) {
        if self.open_flows() == 0 && self.connections == 0 && !self.is_stopping {
            self.life += 1;
            self.clock.set(Due::After { since_ms: now_ms(), ms: IDLE_MS }, Timer::Idle(self.life));
        }
    }

    fn take(&mut self, input: Input) {
        let Some(input) = self.of_worker(input) else { return };
        match input {
            Input::Asked { connection, by, standing, id, request, reply } => {
                let may = match &standing {
                    Standing::Own => Ok(()),
                    Standing::Vouched => self.may_ask_from_afar(&by, &request),
                    Standing::Hosted(code) => self.may_ask_hosted(&by, code, &request),
                };
                let now = may.and_then(|()| self.asked((connection, &standing), &by, id, *request, &reply));
                if let Some(answer) = now.transpose() {
                    self.answers.push((reply, id, answer));
                }
            }
            Input::Came => {
                self.connections += 1;
                self.life += 1;
            }
            Input::Gone(connection) => self.gone(connection),
            Input::Over { whose, outcome } => {
                if let Some(live) = self.meant(&whose) {
                    live.runs.remove(&whose.n);
                    self.change(&whose.flow, |flow| Ok(flow.over(whose.n, whose.attempt, outcome, now_ms())));
                }
            }
            Input::Runs { whose, session } => {
                if let Some(live) = self.meant(&whose) {
                    live.runs.insert(whose.n, (Some(session), None));
                    self.touched.insert(whose.flow);
                }
            }
            Input::HeldUp { whose, why } => {
                if let Some(live) = self.meant(&whose) {
                    live.runs.entry(whose.n).or_default().1 = why;
                    self.touched.insert(whose.flow);
                }
            }
            Input::Watched { whose, came } => {
                if self.meant(&whose).is_some() {
                    self.change(&whose.flow, |flow| Ok(flow.watched(whose.n, came, now_ms())));
                }
            }
            Input::Denied { flow, why } => self.change(&flow, |flow| Ok(flow.block(&why, now_ms()))),
            Input::Tick => self.clock.due().into_iter().for_each(|timer| self.fire(timer)),
        }
    }

    /// The flow of a step, unless its history was replaced meanwhile: a step of another history has the same number.
    fn meant(&mut self, whose: &Whose) -> Option<&mut Live> {
        self.live.get_mut(&whose.flow).filter(|live| live.flow.generation_of(whose.n) == Some(whose.generation))
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Flow(id, generation, n, fires) => {
                self.awaken(&id);
                if self.live.get(&id).is_some_and(|live| live.flow.generation_of(n) == Some(generation)) {
                    self.change(&id, |flow| Ok(flow.fire(n, fires, now_ms())));
                }
            }
            Timer::Resume(id) => {
                self.awaken(&id);
                self.resume(&id);
            }
            Timer::Waiter(number) => self.late(number),
            Timer::Worker(by, code) => self.worker_again((by, code)),
            Timer::Lease(id, lease) => self.unlease(&id, lease),
            Timer::Idle(life) => {
                self.is_stopping |= life == self.life && self.open_flows() == 0 && self.connections == 0;
            }
        }
    }

    /// Changes a flow and notes what is to be recorded and done; who asked is told by the caller.
    fn change(&mut self, id: &str, with: impl FnOnce(&mut Flow) -> Result<Decided, Refusal>) {
        // There is nobody to tell: what came too late changes nothing.
        let _ = self.try_change(id, with);
    }

    fn try_change(
        &mut self,
        id: &str,
        with: impl FnOnce(&mut Flow) -> Result<Decided, Refusal>,
    ) -> Result<(), Trouble> {
        self.awaken(id);
        let Some(live) = self.live.get_mut(id) else { return Err(self.not_open(id)) };
        let (seq, generation) = (live.flow.seq, live.flow.generation);
        let decided = with(&mut live.flow).map_err(|refusal| refused(&refusal))?;
        self.note(id, (seq, generation), decided)?;
        self.decide(id)
    }

    fn note(&mut self, id: &str, (seq, generation): (u64, u32), decided: Decided) -> Result<(), Trouble> {
        self.touched.insert(id.to_owned());
        // Where it cannot be written now it cannot be committed either: everything is taken back then.
        let mut written = self.store.add(id, seq, now_ms(), &decided.events);
        if !decided.next.is_empty() {
            written = written.and_then(|()| self.store.replace(id, generation, now_ms(), &decided.next));
            if let Some(live) = self.live.get_mut(id) {
                (live.leased, live.seen, live.laid) = (None, None, None);
                live.runs.clear();
            }
        }
        let failed = written.map_err(|error| unrecorded(&error));
        self.effects.extend(decided.effects.into_iter().map(|effect| (id.to_owned(), effect, false)));
        if failed.is_err() {
            self.fail();
        }
        failed
    }

    /// What was written so far is half of something: it is taken back at once.
    fn fail(&mut self) {
        let (answers, touched) = (std::mem::take(&mut self.answers), std::mem::take(&mut self.touched));
        self.effects.clear();
        let error = StoreError::Damaged("the flow database".into(), "it cannot be written".into());
        self.undone(&error, answers, touched);
    }

    /// Lets a definition decide, as part of the same commit.
    fn decide(&mut self, id: &str) -> Result<(), Trouble> {
        while let Some(live) = self.live.get(id) {
            let (Some(definition), true) = (live.definition.clone(), live.flow.wants) else { return Ok(()) };
            let Some(definition) = definition.named(&live.flow.name) else { return Ok(()) };
            let history = self.store.history(id, 0).map_err(|error| unrecorded(&error))?;
            let wanted = yaml::decide(definition, id, &history);
            let Some(live) = self.live.get_mut(id) else { return Ok(()) };
            let (seq, generation) = (live.flow.seq, live.flow.generation);
            let decided = match new_commands(&history, wanted) {
                Ok(new) => live.flow.decide(seq, new, now_ms()).map_err(|refusal| refused(&refusal))?,
                Err(why) => live.flow.block(&why, now_ms()),
            };
            self.note(id, (seq, generation), decided)?;
        }
        Ok(())
    }

    fn perform(&mut self, id: &str, effect: Effect, again: bool) {
        let Some(live) = self.live.get(id) else { return };
        let (cwd, by) = (live.flow.cwd.clone(), live.flow.by.clone());
        let whose = |n: u32, attempt: u32| {
            let generation = live.flow.generation_of(n).unwrap_or_default();
            Whose { flow: id.to_owned(), generation, n, attempt }
        };
        match effect {
            Effect::Start { n, attempt, key, since_ms, run } => {
                let age_ms = again.then(|| now_ms().saturating_sub(since_ms));
                let job = Job::start(whose(n, attempt), key, run, age_ms, cwd, self.tell.clone());
                self.host(&by, job);
            }
            Effect::Watch { n, session, until } => {
                let whose = whose(n, 0);
                self.host(&by, Job::watch(whose, session, until, self.tell.clone()));
            }
            Effect::Stop { n, key } => {
                let attempt = key.rsplit('/').next().and_then(|attempt| attempt.parse().ok()).unwrap_or(0);
                let mut whose = whose(n, attempt);
                // What a history that was replaced left running is nobody's outcome any more.
                if live.flow.key(n, attempt) != key {
                    whose.generation = 0;
                }
                let job = Job::stop(whose, key, self.tell.clone());
                self.host(&by, job);
            }
            Effect::Timer { n, fires, due } => {
                let Whose { flow, generation, .. } = whose(n, 0);
                self.clock.set(due, Timer::Flow(flow, generation, n, fires));
            }
            Effect::Child { n, id: child, flow, input } => self.start_child(id, n, &child, flow, input),
            Effect::StopChild { n, id: child } => self.stop_child(id, n, &child),
            Effect::Decide if live.definition.is_some() => {
                // Only after a restart: otherwise it was decided with what it follows from.
                let _ = self.decide(id);
            }
            Effect::Decide => self.offer(id),
            Effect::Over => self.tell_parent(id),
        }
    }

    fn host(&mut self, by: &str, job: Job) {
        let links = self.links.entry(by.to_owned()).or_default();
        let least = links.iter().min_by_key(|link| link.load());
        if let Some(link) = least.filter(|link| link.load() < link::OPEN_MAX || links.len() >= LINKS_MAX) {
            return link.ask(job);
        }
        let Ok(handle) = by.parse::<Handle>() else { return job.denied(&format!("invalid actor {by}")) };
        match Link::start(self.place.clone(), handle) {
            Ok(link) => {
                link.ask(job);
                links.push(link);
            }
            Err(error) => job.denied(&format!("cannot start a thread: {error}")),
        }
    }

    /// Something of a flow is on disk: whoever waits for it is told.
    fn touched(&mut self, id: &str) {
        self.changes.note(id, now_ms());
        let waiting: Vec<u64> = self
            .waiters
            .iter()
            .filter(|(_, waiter)| matches!(&waiter.what, Awaited::History { flow, .. } if flow == id))
            .map(|(number, _)| *number)
            .collect();
        for number in waiting {
            let Some(waiter) = self.waiters.get(&number) else { continue };
            let Awaited::History { after, generation, .. } = waiter.what else { continue };
            let answer = self.get(id, after, Some(generation));
            let is_new = answer.as_ref().is_ok_and(|answer| !answer.history.is_empty() || answer.flow.state.is_over());
            if is_new && let Some(Waiter { id: asked, reply, .. }) = self.waiters.remove(&number) {
                let _ = reply.send((asked, answer.and_then(|answer| in_json(&answer))));
            }
        }
        if self.live.get(id).is_some_and(|live| live.flow.is_over()) {
            self.live.remove(id);
            self.has_ended = true;
        }
        self.keep_warm(id);
    }
}

/// What is new in a list of all commands; or how it differs from what was asked for before.
fn new_commands(history: &[Recorded], wanted: Vec<Command>) -> Result<Vec<(u32, Command)>, String> {
    let mut next = 0;
    for recorded in history {
        if let Event::Asked { n, command } = &recorded.event {
            match wanted.get(*n as usize) {
                Some(wanted) => {
                    if let Some(why) = command.differs(wanted) {
                        return Err(format!("step {}: {why}", n + 1));
                    }
                }
                None => return Err(format!("the definition ends before step {} of the history", n + 1)),
            }
            next = n + 1;
        }
    }
    Ok((next..).zip(wanted.into_iter().skip(next as usize)).collect())
}
