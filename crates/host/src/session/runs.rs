//! Entering runs into a session's shell, and following them to their end.
//!
//! Whether one may be entered is asked of [`super::prompt`]; what it is must be on disk before its first key is typed.

use super::questions::beginning;
use super::{Session, State};
use crate::contracts::Trace;
use crate::contracts::follow::{decision, opened};
use crate::gate::Act;
use crate::hooks::Hook;
use crate::notes::About;
use crate::runs::index::{self, Whose};
use crate::runs::kept;
use crate::shells::keys::{READ_RUN_COLUMNS, keys_for};
use crate::shells::{self, Kind};
use holdfast_abi::ring::Ring;
use holdfast_authority::{Ask, recorded};
use holdfast_screen::Mark;
use holdfast_session::{COMMAND_SHOWN_BYTES_MAX, Came, Entering, Next, NotEntered, Run, Seen, ShellState, TakeUp};
use holdfast_types::{Actor, Exit, Offset, SessionId, terms_of};
use holdfast_wire::attention::{Now, What};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::params::Life;
use holdfast_wire::runs::{RunCancelParams, RunId, RunStartParams, RunState};
use holdfast_wire::{Code, Fault};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An ended run's directory comes with the next prompt, unless hooks of the user's are slow.
const SETTLE_WAIT: Duration = Duration::from_millis(250);
/// How often a shell is told that nobody will type the rest of a command.
const TAKE_BACK_EVERY: Duration = Duration::from_millis(50);
const TAKE_BACK_TRIES: u32 = 20;
/// How often, and how many times, a shell that does not say so is looked at before it is taken to want more of a command.
const UNSTARTED_EVERY: Duration = Duration::from_millis(100);
const UNSTARTED_LOOKS: u32 = 10;

/// What became of a run that was to be entered.
#[derive(Debug)]
pub(crate) enum Entered {
    /// It is on its way.
    Begun(RunId),
    /// It was, when its answer was lost.
    There(RunId),
    /// Its key was used meanwhile.
    Taken(Box<index::Entry>),
}

impl State {
    /// Its shell said something, or somebody who pretends to be one.
    pub(super) fn told(&mut self, marks: &[Mark]) {
        if self.spec.shell.is_some() {
            self.core.runs.told_all(marks, crate::now_ms());
        }
    }
}

impl Session {
    /// What host and shell share.
    pub(crate) fn shell_dir(&self) -> PathBuf {
        self.dir.join(super::held::SHELL_DIR)
    }

    /// The same, as the shell sees it.
    pub(crate) fn seen_shell_dir(&self) -> PathBuf {
        crate::portable::seen_dir(self, &self.state.borrow().spec).join(super::held::SHELL_DIR)
    }

    /// A run begins that has this session for itself: on disk before anything of it is done.
    pub(crate) fn record_run(&self, run: Run) -> std::io::Result<()> {
        self.state.borrow_mut().core.runs.begin(run);
        let changed = self.state.borrow_mut().core.runs.take_unsaved();
        kept::append(&self.dir, &changed)
    }

    /// Writes what became of runs, and tells who waits.
    pub(super) fn save_runs(&self) {
        let (saved, incomplete, written) = self
            .with_core(|core, held, _| (core.save_runs(held), core.runs.take_incomplete(), core.runs.take_written()));
        if let Some(up) = self.state.borrow_mut().core.take_flushed(crate::now()) {
            self.watch_started(up);
        }
        self.shell_wrote(written);
        if incomplete {
            self.take_back();
        }
        if !saved.changed.is_empty() {
            let kept = saved.kept.map_err(|why| why.0);
            self.state.borrow_mut().notes.wrote(About::Runs, "what became of runs cannot be written", &kept);
        }
        saved.changed.iter().for_each(|run| self.gate.spans.borrow_mut().ran(self.id, run));
        saved.over.iter().for_each(|run| self.tell_watchers(ended(run)));
        if saved.changed.iter().any(|run| run.state.is_over()) {
            self.hooks.stirred.notify_one();
        }
        self.run_left();
        if saved.is_news {
            self.changed.notify_waiters();
        }
    }

    /// What an earlier host left running is looked for in the ring.
    pub(super) fn take_up_runs(&self) {
        let up = self.with_core(|core, held, now| {
            let tells = held.spec.shell.is_some();
            let up = core.take_up_runs(held, now, tells);
            if held.spec.portable.as_ref().is_some_and(|portable| portable.at_prompt)
                && core.runs.shell() == ShellState::Unknown
            {
                core.scan_marks(held, now, 0);
                if core.runs.shell() == ShellState::Unknown {
                    // Its prompt was shown in the life before, and nothing has been since.
                    let base = held.ring.as_ref().map_or(held.base, |ring| ring.base().output);
                    core.runs.taken_back(base);
                }
            }
            up
        });
        self.save_runs();
        self.nudge.notify_one();
        if let Some(up) = up {
            self.watch_started(up);
        }
    }

    /// Waits for what becomes of a run that may not have been typed.
    fn watch_started(&self, mut up: TakeUp) {
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            let looked = this.look_on(None, |core, held, now, seen| core.take_up(held, now, &mut up, seen)).await;
            if looked.is_err() {
                // The keeper went away meanwhile: it will not answer.
                this.with_core(|core, held, now| core.take_up(held, now, &mut up, Seen::Probed(None)));
            }
            this.save_runs();
        });
    }

    /// What runs in a session that is over is over too, also where its ring was never made, or where an earlier host did not come
    /// to write it down.
    pub(crate) fn end_runs(&self) {
        let Some(run) = self.run_on().filter(|_| !self.keeps_its_run()) else { return };
        let ring = self.open_ring().ok();
        let head = ring.as_ref().map_or(run.from, Ring::head);
        if !run.own && !run.token.is_empty() && ring.is_some() {
            self.state.borrow_mut().ring = ring;
            self.with_core(|core, held, now| core.scan_marks(held, now, run.typed_at));
            self.state.borrow_mut().ring = None;
        }
        let mut state = self.state.borrow_mut();
        let (exit, ended_ms) = (state.spec.exit.unwrap_or(Exit::Lost), state.spec.ended_ms);
        state.core.runs.session_ended(exit, head, ended_ms.unwrap_or_else(crate::now_ms));
        drop(state);
        self.save_runs();
    }

    /// Everything is known of a run that is over, its directory too.
    pub(crate) fn is_settled(&self, id: RunId) -> bool {
        !self.state.borrow().core.runs.is_unsettled(id)
    }

    /// A run as it is now.
    pub(crate) fn run(&self, id: RunId) -> Option<Run> {
        self.state.borrow().core.runs.get(id).cloned()
    }

    /// Whether a run is listed here, or would be if this session's files could be read.
    pub(crate) fn may_have(&self, id: RunId) -> bool {
        self.run(id).is_some() || matches!(self.view_life(), Life::Unknown | Life::Damaged)
    }

    /// Enters a command into the shell.
    pub(crate) async fn enter(
        &self,
        params: &RunStartParams,
        actor: &Actor,
        state_dir: &Path,
        released: Option<ApprovalId>,
    ) -> Result<Entered, Fault> {
        self.enter_as(params, actor, state_dir, released, None).await
    }

    /// The same, as the next attempt of a run that failed.
    pub(crate) async fn enter_as(
        &self,
        params: &RunStartParams,
        actor: &Actor,
        state_dir: &Path,
        released: Option<ApprovalId>,
        failed: Option<&Trace>,
    ) -> Result<Entered, Fault> {
        self.running().await?;
        let key = params.key.clone().unwrap_or_default();
        let ask = Ask::Run { key, command: recorded(&params.command).into_owned() };
        // What was signed is used up where an approval came in between.
        let mut proof = params.proof.filter(|_| released.is_none());
        if self.is_refused(actor) {
            // For the record, and for who has the turn; what the terminal does is nobody's who may not run there.
            let allowed = self.ask(actor, None, ask.clone(), proof.take())?;
            // The gate has not looked at it: it is asked for again below.
            drop(self.begun(&allowed));
        }
        // One at a time: who comes second finds the first one running.
        let _alone = self.entering.lock().await;
        if let Some(there) = params.run.filter(|id| self.run(*id).is_some()) {
            return Ok(Entered::There(there));
        }
        let whose = Whose::of(actor, params.shared);
        if let Some(key) = &params.key
            && let Some(entry) = index::find(state_dir, whose, key).map_err(|e| unkept(&e))?
        {
            if !self.never_typed(&entry) || entry.command != recorded(&params.command) {
                return Ok(Entered::Taken(Box::new(entry)));
            }
            index::give_back(state_dir, whose, key);
        }
        let measuring = match &params.contract {
            Some(contract) => Some(self.measure(contract).await),
            None => None,
        };
        let judging = Instant::now();
        // Files are looked at before the prompt is: between that look and the first key nothing waits.
        let mut considered = self.consider_run(params, actor, &ask).await;
        let judged = judging.elapsed();
        let mut way = self.way_in(params, actor).await?;
        if considered.as_ref().is_some_and(|considered| self.has_moved(considered)) {
            considered = self.consider_run(params, actor, &ask).await;
            way = self.way_in(params, actor).await?;
        }
        let entry = self.keys_of(&params.command, way)?;
        let said = match considered {
            Some(considered) => Some(self.said(considered, Act::Run(Box::new(params.clone())), released)?),
            None => None,
        };
        let decision = measuring.is_some().then(|| decision(said.as_ref(), judged));
        let decided = self.ask_said(actor, ask, proof, said)?;
        let run = self.new_run(params, actor, way);
        let id = run.id;
        let (keys, has_hook) = (entry.keys, params.on_exit.is_some());
        let entering = Entering::new(&self.state.borrow().core, &decided, run, keys, entry.run, has_hook);
        let underway = Underway(self, entering);
        if let (Some(contract), Some(measuring)) = (&params.contract, &measuring) {
            let mut trace = opened(params, contract, (id, actor), measuring, decision);
            if let Some(failed) = failed {
                (trace.first, trace.number) = (failed.first, failed.number + 1);
            }
            // On disk before anything of it is typed.
            self.contracts.keep(trace).map_err(|error| unkept(&error))?;
        }
        let entered = self.bring_in(underway, params, state_dir).await?;
        if let (Entered::Begun(_), Some(measuring)) = (&entered, measuring) {
            self.contracts.follow(id);
            self.follow_contract(id, measuring);
        }
        Ok(entered)
    }

    /// How the end of a run will be known, once it can be entered.
    async fn way_in(&self, params: &RunStartParams, actor: &Actor) -> Result<Way, Fault> {
        match &params.detect {
            None => Ok(Way::Told(self.idle_prompt(actor).await?)),
            Some(detect) => {
                super::detect::check(detect)?;
                self.takes_a_line().await?;
                Ok(Way::Watched)
            }
        }
    }

    /// Brings about what each step of entering a run needs.
    async fn bring_in(
        &self,
        mut underway: Underway<'_>,
        params: &RunStartParams,
        state_dir: &Path,
    ) -> Result<Entered, Fault> {
        let run = underway.1.run().clone();
        let hook = params.on_exit.as_ref().map(|on_exit| Hook::of(on_exit, self.id, &run));
        let (mut came, mut failed) = (Came::Decided, None);
        loop {
            // What became of those before.
            self.save_runs();
            let next = self.with_core(|core, held, now| core.enter(held, now, &mut underway.1, came));
            came = match next {
                Next::TakeKey => match take_key(state_dir, key_of(self.id, &run, params)).await {
                    Ok(None) => {
                        holdfast_pause::task_point("run.key_taken").await;
                        Came::KeyTaken
                    }
                    Ok(Some(first)) => {
                        failed = Some(Ok(Entered::Taken(Box::new(first))));
                        Came::Failed
                    }
                    Err(fault) => {
                        failed = Some(Err(fault));
                        Came::Failed
                    }
                },
                Next::KeepHook => match &hook {
                    Some(hook) => match self.hooks.record(hook).await {
                        Ok(()) => Came::HookKept,
                        Err(fault) => {
                            failed = Some(Err(fault));
                            Came::Failed
                        }
                    },
                    None => Came::HookKept,
                },
                Next::Look => match self.way_in(params, &run.actor).await {
                    Ok(_) => Came::Looked,
                    Err(fault) => {
                        failed = Some(Err(fault));
                        Came::Failed
                    }
                },
                Next::Type { fence, bytes } => {
                    self.tell_watchers(started(&run));
                    self.nudge.notify_one();
                    holdfast_pause::task_point("run.recorded").await;
                    Came::Sent(self.type_decided(&run.actor, fence, &bytes).await)
                }
                Next::Entered => {
                    if !run.token.is_empty() && self.state.borrow().spec.shell == Some(Kind::Fish) {
                        self.watch_for_start(run.id);
                    }
                    hook.into_iter().for_each(|hook| self.hooks.arm(hook));
                    return Ok(Entered::Begun(run.id));
                }
                Next::NotEntered(why) => {
                    self.save_runs();
                    self.hooks.forget(run.id);
                    return failed.unwrap_or_else(|| Err(self.not_entered(&why)));
                }
            }
        }
    }

    fn not_entered(&self, why: &NotEntered) -> Fault {
        match why {
            NotEntered::Unrecorded(why) => unkept(&why.0),
            NotEntered::Refused(undecided) => self.undecided(undecided),
            NotEntered::Full(code) => {
                Fault::new(Code::Busy, format!("{} is not taking input (code {code})", self.name())).hint("try again")
            }
            NotEntered::Failed => Fault::new(Code::Busy, "the run was not entered").hint("try again"),
        }
    }

    /// A key stands for a run in this session that was never typed.
    pub(crate) fn never_typed(&self, entry: &index::Entry) -> bool {
        let state = self.state.borrow();
        let is_here = entry.session == self.id && !entry.own && state.life == Life::Running;
        is_here && state.core.was_never_typed(entry.run)
    }

    /// Whether the authority will say no, as far as can be told without asking.
    fn is_refused(&self, actor: &Actor) -> bool {
        self.state.borrow().core.is_run_refused(crate::now(), actor)
    }

    fn keys_of(&self, command: &str, way: Way) -> Result<shells::keys::Entry, Fault> {
        let bad = |error: String| Fault::new(Code::BadRequest, error);
        let Way::Told(kind) = way else {
            let text = command.trim_end_matches('\n');
            if text.contains('\0') || text.len() + 1 > holdfast_abi::protocol::INPUT_BYTES_MAX {
                return Err(bad("the command contains a NUL byte, or is too long".into()));
            }
            return Ok(shells::keys::Entry { keys: format!("{}\r", text.replace('\n', "\r")).into_bytes(), run: None });
        };
        let mut state = self.state.borrow_mut();
        let cols = state.core.size.cols();
        let screen = state.picture.screen();
        let column = Some(screen.cursor().0 + 1).filter(|column| column + READ_RUN_COLUMNS <= cols);
        keys_for(command, kind, screen.bracketed_paste(), column).map_err(|error| bad(error.to_string()))
    }

    fn new_run(&self, params: &RunStartParams, actor: &Actor, way: Way) -> Run {
        let token = match way {
            Way::Told(_) => holdfast_types::hex_text(&crate::random_token()),
            Way::Watched => String::new(),
        };
        let state = self.state.borrow();
        let at = state.ring.as_ref().map_or(0, Ring::head);
        let cwd = state.core.runs.cwd().map(str::to_owned).filter(|_| !token.is_empty());
        Run { cwd_before: cwd, token, ..begun(params, actor, at) }
    }

    /// Waits until a run is over, and its directory known.
    pub(crate) async fn run_over(&self, id: RunId, wait_ms: u64) {
        let is_over = || self.run(id).is_none_or(|run| run.state.is_over());
        let look = || {
            // What is said of it holds for all output so far, whether a wake told of it or not.
            if !is_over() {
                self.look();
            }
        };
        look();
        if wait_ms > 0 && !is_over() {
            self.until(Some(Duration::from_millis(wait_ms)), || is_over().then_some(())).await;
            look();
        }
        if is_over() {
            let settled = || !self.state.borrow().core.runs.is_unsettled(id);
            self.until(Some(SETTLE_WAIT), || settled().then_some(())).await;
        }
    }

    /// Interrupts a run.
    pub(crate) async fn run_cancel(&self, run: &Run, params: &RunCancelParams, actor: &Actor) -> Result<(), Fault> {
        if run.state.is_over() {
            return Ok(());
        }
        self.running().await?;
        let ask = Ask::other(const { terms_of("run.cancel") }, run.id.to_string());
        let decided = self.ask(actor, None, ask, params.proof)?;
        let mut deed = self.begun(&decided);
        self.state.borrow_mut().core.runs.cancel(run.id);
        self.save_runs();
        self.interrupt();
        deed.over(&Ok::<(), String>(()));
        self.run_over(run.id, params.wait_ms).await;
        Ok(())
    }

    /// Interrupts a shell that wants the rest of what was typed, until it heard: in the middle of a prompt it does not.
    fn take_back(&self) {
        let Some(this) = self.this.upgrade() else { return };
        let id = self.state.borrow().core.runs.current().map(|run| run.id);
        tokio::task::spawn_local(async move {
            for _ in 0..TAKE_BACK_TRIES {
                tokio::time::sleep(TAKE_BACK_EVERY).await;
                // A second interrupt must not reach a shell that has answered the first one, and with it the next run.
                this.look();
                let wants_more = this.state.borrow().core.runs.shell() == ShellState::More;
                if !wants_more || this.state.borrow().core.runs.current().map(|run| run.id) != id {
                    return;
                }
                this.interrupt();
            }
        });
    }

    /// fish says nothing where it wants the rest of a command: it reads on. Where it does that and stays quiet, nothing of the
    /// run will start.
    fn watch_for_start(&self, id: RunId) {
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            let is_starting = || this.is_live() && this.run(id).is_some_and(|run| run.state == RunState::Starting);
            let (mut head, mut quiet) = (this.heads().0, 0);
            while is_starting() && quiet < UNSTARTED_LOOKS {
                this.until(Some(UNSTARTED_EVERY), || (!is_starting()).then_some(())).await;
                let reads = is_starting() && this.see().await.now == Now::IdlePrompt;
                quiet = if reads && this.heads().0 == head { quiet + 1 } else { 0 };
                head = this.heads().0;
            }
            this.look();
            if is_starting() {
                this.state.borrow_mut().core.runs.wants_more();
                this.take_back();
            }
        });
    }

    pub(super) fn interrupt(&self) {
        if self.view_life() == Life::Running {
            self.with_core(|core, held, _| core.interrupt(held));
        }
    }
}

impl Session {
    /// A run is being entered.
    pub(crate) fn is_entering(&self) -> bool {
        self.entering.try_lock().is_err()
    }
}

/// A run on its way into the shell. Where its asker goes away it is given up.
struct Underway<'a>(&'a Session, Entering);

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.with_core(|core, held, now| core.give_up(held, now, &mut self.1));
    }
}

/// What a run's key stands for.
fn key_of(session: SessionId, run: &Run, params: &RunStartParams) -> index::Entry {
    let command = recorded(&params.command).into_owned();
    index::Entry {
        key: run.key.clone().unwrap_or_default(),
        session,
        run: run.id,
        command,
        own: false,
        created_ms: crate::now_ms(),
        actor: Some(run.actor.clone()),
        ended: None,
        shared: run.shared,
    }
}

/// How a run's end will be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The shell tells.
    Told(Kind),
    /// The terminal shows.
    Watched,
}

/// A run that begins where the output stands at `at`.
pub(crate) fn begun(params: &RunStartParams, actor: &Actor, at: Offset) -> Run {
    let mut cut = params.command.len().min(COMMAND_SHOWN_BYTES_MAX);
    while !params.command.is_char_boundary(cut) {
        cut -= 1;
    }
    Run {
        id: params.run.unwrap_or_else(|| RunId::from_random_bits(u128::from_le_bytes(crate::random_token()))),
        key: params.key.clone(),
        command: params.command[..cut].to_owned(),
        actor: actor.clone(),
        act: None,
        token: String::new(),
        state: RunState::Starting,
        exit_code: None,
        end: None,
        started_ms: crate::now_ms(),
        ended_ms: None,
        typed_at: at,
        from: at,
        to: None,
        cwd_before: None,
        cwd_after: None,
        by_file: false,
        own: false,
        cancelled: false,
        shared: params.shared,
    }
}

/// What watchers are told when a run begins.
pub(crate) fn started(run: &Run) -> What {
    What::RunStarted { run: run.id, by: run.actor.handle.clone(), command: beginning(&run.command), act: run.act }
}

/// And when it is over.
fn ended(run: &Run) -> What {
    What::RunEnded {
        run: run.id,
        by: run.actor.handle.clone(),
        command: beginning(&run.command),
        state: run.state,
        exit_code: run.exit_code,
        act: run.act,
    }
}

/// Takes a key, off this thread: it is synced.
pub(crate) async fn take_key(state_dir: &Path, entry: index::Entry) -> Result<Option<index::Entry>, Fault> {
    let dir = state_dir.to_owned();
    crate::disk::at_disk(move || index::take(&dir, &entry)).await.map_err(|e| unkept(&e))
}

pub(crate) fn unkept(error: &impl std::fmt::Display) -> Fault {
    Fault::new(Code::Unrecorded, format!("cannot record the run: {error}"))
        .hint("is the disk full? the host runs nothing that it cannot record")
}
