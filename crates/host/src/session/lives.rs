//! One life after another in the same session: what a lost one leaves, and how the next is taken in.

use super::{Session, State};
use crate::gate::Act;
use crate::lives::begin::{How, begin};
use crate::lives::{self, Known};
use crate::notes::About;
use crate::store::Spec;
use holdfast_abi::ring::Base;
use holdfast_abi::start::Started;
use holdfast_authority::{Ask, Ending};
use holdfast_session::{Core, Decided, Origin, Run, ShellState, Tracker};
use holdfast_types::{Actor, Exit, Size, TimeMs};
use holdfast_wire::forks::{ForkDiscardParams, ForkParams};
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::lives::{Cause, RecoverParams};
use holdfast_wire::params::Life;
use holdfast_wire::portable::{CheckpointParams, RestoreParams};
use holdfast_wire::runs::RunId;
use holdfast_wire::{Code, Fault};
use std::process::Child;
use std::rc::Rc;
use std::time::Duration;

/// How long a killed keeper may take from letting go of its sockets to being gone.
const DYING: Duration = Duration::from_millis(300);
/// How often it is looked at meanwhile.
const DYING_LOOK: Duration = Duration::from_millis(2);

impl Session {
    /// Which life this is.
    pub(crate) fn incarnation(&self) -> u32 {
        self.state.borrow().core.authority().state().incarnation()
    }

    /// Waits a moment until the kernel says how a keeper ended that this host started.
    pub(super) async fn await_keeper(&self) {
        let deadline = tokio::time::Instant::now() + DYING;
        while tokio::time::Instant::now() < deadline {
            let is_over = match &mut self.state.borrow_mut().child {
                Some(child) => !matches!(child.try_wait(), Ok(None)),
                None => true,
            };
            if is_over {
                return;
            }
            tokio::time::sleep(DYING_LOOK).await;
        }
    }

    /// How a life is over whose keeper is gone without a word: lost, unless it was made for one run.
    pub(super) fn lose(&self, exit: Exit, runs: Vec<RunId>, at_ms: TimeMs) -> Life {
        use std::os::unix::process::ExitStatusExt;
        let mut state = self.state.borrow_mut();
        if exit != Exit::Lost || state.spec.passing || state.spec.end_asked {
            return Life::Ended;
        }
        let status = state.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        let known = Known { at_ms, signal: status.and_then(|status| status.signal()), runs };
        let mut lost = lives::why(&self.dir, known);
        if let Some(portable) = &state.spec.portable {
            let name = state.spec.name.clone();
            // They end with their keeper, some just after it.
            lost.processes.iter_mut().for_each(|process| process.survives = false);
            lost.checkpoint = crate::portable::kept::newest(&self.dir, self.id, &name);
            if let Some(moved) = &portable.moved {
                lost.cause = Cause::Checkpoint;
                lost.why = format!("it was moved to {}", moved.host);
                lost.checkpoint = None;
                lost.processes.clear();
            } else if let Some(checkpoint) = &portable.stopped_for {
                lost.cause = Cause::Checkpoint;
                lost.why = format!("it was stopped when checkpoint {checkpoint} was made");
            }
        }
        state.spec.lost = Some(Box::new(lost));
        Life::Lost
    }

    /// Where its command was last.
    pub(crate) fn last_cwd(&self) -> Option<String> {
        self.state.borrow().spec.lost.as_ref().and_then(|lost| lost.cwd.clone())
    }

    /// How its screen stands.
    pub(crate) fn stood(&self) -> (bool, u16) {
        let mut state = self.state.borrow_mut();
        let screen = state.picture.screen();
        (screen.alternate(), screen.cursor().0)
    }

    /// Where the next life counts from, once the screen has everything of the last one.
    pub(crate) fn base_behind(&self, before: Base, rebooted: bool) -> Base {
        self.look();
        lives::next_base(before, self.state.borrow().picture.seen(), rebooted)
    }

    /// Another life runs.
    pub(crate) fn reborn(&self, spec: Spec, base: Base, (child, started): (Child, Started), at_prompt: bool) {
        let mut state = self.state.borrow_mut();
        let State { core, held } = &mut *state;
        let runs: Vec<Run> = core.runs.runs().cloned().collect();
        let stream = crate::store::checksum(spec.secret.as_bytes());
        let asks_humans = core.asks_humans;
        *core = Core::new(self.id, core.authority().clone(), spec.size, Origin::New, stream, Tracker::resume(runs));
        core.asks_humans = asks_humans;
        if at_prompt {
            core.runs.taken_back(base.output);
        }
        held.sizes = super::sizes::Sizes::new(spec.size);
        held.picture.begin_at(base);
        held.spec = spec;
        held.life = Life::Running;
        held.base = base.output;
        held.ring = None;
        held.final_bounds = std::cell::OnceCell::new();
        held.timers = super::held::Timers::default();
        held.lease.stopped = None;
        held.place = super::place::Place::default();
        held.next_life_ms = None;
        held.notes.wrote(About::Life, "", &Ok::<(), String>(()));
        held.sent.clear();
        held.probes.clear();
        drop(state);
        self.track.device.set(None);
        self.track.seen.borrow_mut().take();
        self.busy();
        self.started(child, started);
        self.changed.notify_waiters();
    }

    /// Whether an integrated shell that can be asked for its line is at a prompt.
    pub(crate) fn is_at_known_prompt(&self) -> bool {
        if self.state.borrow().spec.shell.is_some() && self.state.borrow().core.runs.shell() == ShellState::Unknown {
            // It showed its prompt to an earlier host.
            self.with_core(|core, held, now| core.scan_marks(held, now, 0));
        }
        let state = self.state.borrow();
        matches!(state.core.runs.shell(), ShellState::Prompt { .. }) && state.core.runs.can_be_asked()
    }

    /// Its run goes on while it stands still for a checkpoint: that is no end.
    pub(crate) fn keeps_its_run(&self) -> bool {
        let state = self.state.borrow();
        let is_stopped = state.spec.portable.as_ref().is_some_and(|portable| portable.stopped_for.is_some());
        is_stopped && !state.spec.end_asked
    }

    /// Of what ran in its last life, this goes on in the next; everything else is lost.
    pub(crate) fn settle_runs(&self, goes_on: Option<RunId>) {
        let on = self.run_on().filter(|run| Some(run.id) != goes_on).map(|run| run.id);
        if let Some(run) = on {
            let mut state = self.state.borrow_mut();
            let head = state.picture.seen();
            state.core.runs.lose(run, true, head, crate::now_ms());
            drop(state);
            self.save_runs();
        }
    }

    /// Gives it another life because an actor asks for one: recorded first, and done also where the actor goes away meanwhile.
    pub(crate) async fn recover(
        &self,
        shared: Rc<super::Shared>,
        params: &RecoverParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<(), Fault> {
        let how = How { run: params.run, env: params.env.clone(), restore: None };
        let (ask, held) = (Ask::Recover { run: how.run }, Act::Recover(params.clone()));
        let decided = self.ask_judged(actor, ask, params.proof, held, released).await?;
        self.live_again(shared, how, decided).await
    }

    /// Gives it a life from a checkpoint, likewise.
    pub(crate) async fn restore(
        &self,
        shared: Rc<super::Shared>,
        restore: crate::portable::restore::Restore,
        ask: Ask,
        params: &RestoreParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<(), Fault> {
        let held = Act::Restore(params.clone());
        let decided = self.ask_judged(actor, ask, params.proof, held, released).await?;
        self.live_again(shared, How { restore: Some(Rc::new(restore)), ..How::default() }, decided).await
    }

    /// Decides about a checkpoint that stops the session: judged as an end is.
    pub(crate) async fn ask_checkpoint(
        &self,
        actor: &Actor,
        ask: Ask,
        params: &CheckpointParams,
        released: Option<ApprovalId>,
    ) -> Result<Decided, Fault> {
        self.ask_judged(actor, ask, params.proof, Act::Checkpoint(params.clone()), released).await
    }

    /// Decides about a fork: judged as a start is.
    pub(crate) async fn ask_fork(
        &self,
        actor: &Actor,
        ask: Ask,
        params: &ForkParams,
        released: Option<ApprovalId>,
    ) -> Result<Decided, Fault> {
        self.ask_judged(actor, ask, params.proof, Act::Fork(params.clone()), released).await
    }

    /// Decides about an end with all files of a branch: judged as an end is.
    pub(crate) async fn ask_discard(
        &self,
        actor: &Actor,
        ask: Ask,
        params: &ForkDiscardParams,
        released: Option<ApprovalId>,
    ) -> Result<Decided, Fault> {
        self.ask_judged(actor, ask, params.proof, Act::Discard(params.clone()), released).await
    }

    /// The screen as escape sequences for a cleared terminal of its size, once it has everything that was printed.
    pub(crate) async fn painted(&self) -> (Vec<u8>, Size) {
        self.warm().await;
        self.look();
        let mut state = self.state.borrow_mut();
        let size = state.core.size;
        (state.picture.screen().repaint(None), size)
    }

    async fn live_again(&self, shared: Rc<super::Shared>, how: How, decided: Decided) -> Result<(), Fault> {
        let Some(this) = self.this.upgrade() else { return Ok(()) };
        let deed = decided.deed.map(|(id, _)| id);
        let begun = tokio::task::spawn_local(async move {
            let begun = begin(shared, Rc::clone(&this), how).await;
            let ending = match &begun {
                Ok(()) => Ending::Done,
                Err(fault) => Ending::Failed { why: fault.message.clone() },
            };
            if let Some(deed) = deed {
                this.with_core(|core, held, now| core.did(held, now, deed, ending));
            }
            begun
        });
        begun.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the host failed to begin another life")))
    }

    /// When its next life begins by itself.
    pub(crate) fn next_life(&self, at: Option<TimeMs>) {
        self.state.borrow_mut().next_life_ms = at;
        self.changed.notify_waiters();
    }

    /// A life begins by itself: counted, so that there are not too many.
    pub(crate) fn tried(&self, at: TimeMs) {
        let mut state = self.state.borrow_mut();
        state.spec.tries.retain(|tried| tried.saturating_add(lives::WINDOW_MS) > at);
        state.spec.tries.push(at);
        let saved = state.spec.save(&self.dir);
        state.notes.wrote(About::Spec, "that another life begins could not be recorded", &saved);
    }

    /// Something a person should know of its life.
    pub(crate) fn set_note(&self, note: String) {
        self.state.borrow_mut().notes.add(About::Life, note);
        self.changed.notify_waiters();
    }

    /// Somebody ended it: whatever comes, it gets no other life by itself.
    pub(crate) fn is_to_end(&self) {
        let mut state = self.state.borrow_mut();
        if !std::mem::replace(&mut state.spec.end_asked, true) {
            let saved = state.spec.save(&self.dir);
            state.notes.wrote(About::Spec, "that it was ended could not be recorded", &saved);
        }
    }

    /// A lost session that nobody wants any more is one that has ended.
    pub(crate) fn dismiss(&self) {
        let mut state = self.state.borrow_mut();
        state.spec.end_asked = true;
        state.spec.lost = None;
        state.life = Life::Ended;
        state.next_life_ms = None;
        let saved = state.spec.save(&self.dir);
        state.notes.wrote(About::Spec, "the end of the session could not be recorded", &saved);
        drop(state);
        self.settle_runs(None);
        self.release_lease();
        self.lapse_questions();
        self.changed.notify_waiters();
    }
}
