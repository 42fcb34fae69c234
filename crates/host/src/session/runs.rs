//! Entering runs into a session's shell, and following them to their end.
//!
//! Whether one may be entered is asked of [`super::prompt`]; what it is must be on disk before its first key is typed.

use super::acts::Begun;
use super::questions::beginning;
use super::{Session, State};
use crate::hooks::Hook;
use crate::notes::About;
use crate::runs::index::{self, Whose};
use crate::runs::kept;
use crate::shells::keys::{READ_RUN_COLUMNS, keys_for};
use crate::shells::{self, Kind};
use crate::store::replace;
use holdfast_abi::protocol::ToKeeper;
use holdfast_abi::ring::{Copied, Ring};
use holdfast_authority::{Ask, recorded};
use holdfast_screen::{Mark, Screen};
use holdfast_session::{COMMAND_SHOWN_BYTES_MAX, LastKey, Place, RUNS_MAX, Run, Sent};
use holdfast_types::{Actor, Exit, Fence, Offset, Right, terms_of};
use holdfast_wire::attention::{Now, What};
use holdfast_wire::params::Life;
use holdfast_wire::runs::{RunCancelParams, RunId, RunStartParams, RunState};
use holdfast_wire::{Code, Fault};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An ended run's directory comes with the next prompt, unless hooks of the user's are slow.
const SETTLE_WAIT: Duration = Duration::from_millis(250);
/// After this long a run that a dead host may never have typed is lost.
const TYPED_WAIT: Duration = Duration::from_secs(3);
/// How often a shell is told that nobody will type the rest of a command.
const TAKE_BACK_EVERY: Duration = Duration::from_millis(50);
const TAKE_BACK_TRIES: u32 = 20;
/// How often, and how many times, a shell that does not say so is looked at before it is taken to want more of a command.
const UNSTARTED_EVERY: Duration = Duration::from_millis(100);
const UNSTARTED_LOOKS: u32 = 10;
/// Read at once when marks are looked for in the ring.
const SCAN_BYTES: usize = 512 * 1024;
/// SIGINT, to the group in the foreground.
const INTERRUPT: u8 = 2;

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
        self.dir.join("shell")
    }

    /// A run begins: on disk before anything of it is done.
    pub(crate) fn record_run(&self, run: Run) -> std::io::Result<()> {
        self.state.borrow_mut().core.runs.begin(run);
        let changed = self.state.borrow_mut().core.runs.take_unsaved();
        kept::append(&self.dir, &changed)
    }

    /// Writes what became of runs, and tells who waits.
    pub(super) fn save_runs(&self) {
        let (changed, over, news, incomplete, written) = {
            let runs = &mut self.state.borrow_mut().core.runs;
            (runs.take_unsaved(), runs.take_over(), runs.take_news(), runs.take_incomplete(), runs.take_written())
        };
        self.shell_wrote(written);
        if incomplete {
            self.take_back();
        }
        if !changed.is_empty() {
            let kept = kept::append(&self.dir, &changed);
            self.state.borrow_mut().notes.wrote(About::Runs, "what became of runs cannot be written", &kept);
            if changed.iter().any(|run| run.state.is_over() && run.from == run.typed_at && !run.own) {
                // Its token is nobody's any more.
                let _ = replace(&self.shell_dir(), "next", b"");
            }
        }
        // Behind the writing: what was told is over for a later host too, and is not told again.
        over.iter().for_each(|run| self.tell_watchers(ended(run)));
        if changed.iter().any(|run| run.state.is_over()) {
            self.hooks.stirred.notify_one();
        }
        self.run_left();
        if news || !changed.is_empty() {
            self.changed.notify_waiters();
        }
    }

    /// What an earlier host left running is looked for in the ring.
    pub(super) fn take_up_runs(&self) {
        let run = {
            let mut state = self.state.borrow_mut();
            if state.spec.shell.is_some() && state.core.runs.place() == Place::Unknown {
                let at = state.core.authority().state().wrote_at();
                if at > 0 {
                    state.core.runs.typed(at, LastKey::Enter);
                }
            }
            state.core.runs.current().cloned()
        };
        let Some(run) = run.filter(|run| !run.own) else { return };
        if run.token.is_empty() {
            // Who watched its output is gone.
            self.state.borrow_mut().core.runs.lose(run.id, true, run.from, crate::now_ms());
            return self.save_runs();
        }
        self.scan_marks(run.typed_at);
        let Some(this) = self.this.upgrade().filter(|_| run.state == RunState::Starting) else { return };
        tokio::task::spawn_local(async move {
            let is_starting = || this.run(run.id).is_some_and(|run| run.state == RunState::Starting);
            this.until(Some(TYPED_WAIT), || (!is_starting()).then_some(())).await;
            let not_typed = is_starting() && this.has_nothing_typed().await;
            if is_starting() {
                let head = this.heads().0;
                this.state.borrow_mut().core.runs.lose(run.id, !not_typed, head, crate::now_ms());
                this.save_runs();
            }
        });
    }

    /// What runs in a session that is over is over too, also where its ring was never made, or where an earlier host did not come
    /// to write it down.
    pub(crate) fn end_runs(&self) {
        let Some(run) = self.run_on() else { return };
        let ring = self.open_ring().ok();
        let head = ring.as_ref().map_or(run.from, Ring::head);
        if !run.own && ring.is_some() {
            self.state.borrow_mut().ring = ring;
            self.scan_marks(run.typed_at);
            self.state.borrow_mut().ring = None;
        }
        let mut state = self.state.borrow_mut();
        let (exit, ended_ms) = (state.spec.exit.unwrap_or(Exit::Lost), state.spec.ended_ms);
        state.core.runs.session_ended(exit, head, ended_ms.unwrap_or_else(crate::now_ms));
        drop(state);
        self.save_runs();
    }

    /// Reads marks from the ring: what the screen saw before this host was there.
    pub(super) fn scan_marks(&self, from: Offset) {
        let mut state = self.state.borrow_mut();
        let Some(ring) = state.ring.take() else { return };
        let (mut at, head) = (from.max(ring.oldest()), ring.head());
        let lapped = at > from;
        let mut screen = Screen::new(state.core.size, at);
        let mut buffer = vec![0; SCAN_BYTES.min(head.saturating_sub(at) as usize)];
        while at < head {
            let wanted = buffer.len().min((head - at) as usize);
            match ring.copy(at, &mut buffer[..wanted]) {
                Copied::Bytes(0) | Copied::Ahead { .. } => break,
                Copied::Bytes(count) => {
                    screen.feed(&buffer[..count]);
                    screen.drain_history(&mut Vec::new());
                    at += count as u64;
                }
                Copied::Lapped { oldest } => {
                    screen = Screen::new(state.core.size, oldest);
                    at = oldest;
                }
            }
            let marks = screen.take_marks();
            state.told(&marks);
        }
        state.core.runs.caught_up(lapped, head, crate::now_ms());
        state.ring = Some(ring);
        state.core.timers.rearm = Some(crate::now().clock_ms);
        drop(state);
        self.save_runs();
        self.nudge.notify_one();
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
    ) -> Result<Entered, Fault> {
        self.running().await?;
        let key = params.key.clone().unwrap_or_default();
        let ask = Ask::Run { key, command: recorded(&params.command).into_owned() };
        let (mut decided, mut deed) = (None, None);
        if self.is_refused(actor) {
            // For the record, and for who has the turn; what the terminal does is nobody's who may not run there.
            let allowed = self.ask(actor, None, ask.clone(), params.proof)?;
            deed = Some(self.begun(&allowed));
            decided = Some(allowed);
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
        let way = match &params.detect {
            None => Way::Told(self.idle_prompt(actor).await?),
            Some(detect) => {
                super::watched::check(detect)?;
                self.takes_a_line().await?;
                Way::Watched
            }
        };
        let entry = self.keys_of(&params.command, way)?;
        let decided = match decided {
            Some(decided) => decided,
            None => self.ask(actor, None, ask, params.proof)?,
        };
        let mut deed = deed.unwrap_or_else(|| self.begun(&decided));
        let fence = decided.fence().unwrap_or_else(|| self.fence());
        let run = Run { act: decided.act, ..self.new_run(params, actor, entry.run.is_some(), way) };
        if let Some(key) = run.key.clone() {
            let (session, run, command) = (self.id, run.id, recorded(&params.command).into_owned());
            let (created_ms, actor, shared) = (crate::now_ms(), Some(actor.clone()), params.shared);
            let entry = index::Entry { key, session, run, command, own: false, created_ms, actor, ended: None, shared };
            if let Some(first) = take_key(state_dir, entry).await? {
                return Ok(Entered::Taken(Box::new(first)));
            }
            holdfast_pause::task_point("run.key_taken").await;
        }
        let id = run.id;
        let hook = params.on_exit.as_ref().map(|on_exit| Hook::of(on_exit, self.id, &run));
        let recorded = match &hook {
            Some(hook) => self.hooks.record(hook).await,
            None => Ok(()),
        };
        let key = run.key.clone();
        let typed = match recorded {
            Ok(()) => self.type_run(run, &entry, (fence, &mut deed), state_dir).await,
            Err(fault) => {
                key.iter().for_each(|key| index::give_back(state_dir, whose, key));
                Err(fault)
            }
        };
        match (typed, hook) {
            (Ok(()), hook) => {
                hook.into_iter().for_each(|hook| self.hooks.arm(hook));
                Ok(Entered::Begun(id))
            }
            (Err(fault), _) => {
                self.hooks.forget(id);
                Err(fault)
            }
        }
    }

    /// A host went away between taking the key and recording the run, which comes before the first key is typed. Only for who
    /// enters runs, or will look again when it does: this host may be between the two.
    pub(crate) fn never_typed(&self, entry: &index::Entry) -> bool {
        let state = self.state.borrow();
        // Of a run that was forgotten for newer ones nothing is known.
        let all = state.core.runs.runs().count() < RUNS_MAX;
        entry.session == self.id
            && !entry.own
            && all
            && state.life == Life::Running
            && state.core.runs.get(entry.run).is_none()
    }

    /// Whether the authority will say no, as far as can be told without asking.
    fn is_refused(&self, actor: &Actor) -> bool {
        let state = self.state.borrow();
        let authority = state.core.authority().state();
        let held = authority.turn().hold().is_some_and(|hold| hold.by.id != actor.id);
        let frozen = authority.frozen().is_some();
        drop(state);
        held || frozen || !self.rights(actor).has(Right::Run)
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

    fn new_run(&self, params: &RunStartParams, actor: &Actor, by_file: bool, way: Way) -> Run {
        let token = match way {
            Way::Told(_) => holdfast_types::hex_text(&crate::random_token()),
            Way::Watched => String::new(),
        };
        let state = self.state.borrow();
        let at = state.ring.as_ref().map_or(0, Ring::head);
        let cwd = state.core.runs.cwd().map(str::to_owned).filter(|_| !token.is_empty());
        Run { cwd_before: cwd, by_file, token, ..begun(params, actor, at) }
    }

    /// Types it: what it is must be on disk before, and whatever is seen of it after counts.
    async fn type_run(
        &self,
        run: Run,
        entry: &shells::keys::Entry,
        (fence, deed): (Fence, &mut Begun<'_>),
        state_dir: &Path,
    ) -> Result<(), Fault> {
        let (id, key, told) = (run.id, run.key.clone(), !run.token.is_empty());
        let whose = Whose::of(&run.actor, run.shared);
        let actor = run.actor.clone();
        let token = run.token.clone();
        // What became of those before.
        self.save_runs();
        let begins = started(&run);
        let recorded = self.record_run(run);
        // From here on the run's own record tells what became of it.
        deed.over(&recorded);
        self.tell_watchers(begins);
        let prepared = recorded.and_then(|()| {
            if let Some(text) = &entry.run {
                replace(&self.shell_dir(), "run", text)?;
            }
            if told { replace(&self.shell_dir(), "next", format!("{token}\n").as_bytes()) } else { Ok(()) }
        });
        self.expect_marks(0);
        holdfast_pause::task_point("run.recorded").await;
        let typed = match prepared {
            Ok(()) => Ok(self.type_decided(&actor, fence, &entry.keys).await),
            Err(error) => Err(unkept(&error)),
        };
        let refusal = match typed {
            // Those that are queued are on their way.
            Ok(Sent::Written { .. } | Sent::Queued { .. }) => {
                if told && self.state.borrow().spec.shell == Some(Kind::Fish) {
                    self.watch_for_start(id);
                }
                return Ok(());
            }
            Ok(Sent::Refused(undecided)) => self.undecided(&undecided),
            Ok(Sent::Full(code)) => {
                Fault::new(Code::Busy, format!("{} is not taking input (code {code})", self.name())).hint("try again")
            }
            // It may have been typed: its marks tell, or have told when it ended the session.
            Ok(Sent::Lost | Sent::Unknown | Sent::EchoOn | Sent::EchoUnknown | Sent::ReservedStream) => return Ok(()),
            Err(fault) => fault,
        };
        self.state.borrow_mut().core.runs.refuse(id, crate::now_ms());
        self.save_runs();
        if let Some(key) = key {
            index::give_back(state_dir, whose, &key);
        }
        Err(refusal)
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
                let wants_more = this.state.borrow().core.runs.place() == Place::More;
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
        if let Some(link) = self.link().filter(|_| self.view_life() == Life::Running) {
            // Where that fails the keeper's connection is taken up anew, and the run goes on until it is interrupted again.
            let _ = link.send(ToKeeper::Signal { fence: self.fence().0, target: 0, number: INTERRUPT });
        }
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

pub(crate) fn unkept(error: &std::io::Error) -> Fault {
    Fault::new(Code::Unrecorded, format!("cannot record the run: {error}"))
        .hint("is the disk full? the host runs nothing that it cannot record")
}
