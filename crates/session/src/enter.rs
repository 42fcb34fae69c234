//! Entering a run into the shell: the order in which it becomes real.
//!
//! The decision is in the journal; then its key is taken on disk, then the address for its end is kept, then the run itself is
//! recorded, then its token lies where the shell reads it, and only then its keys are typed. So the next host knows what a killed
//! one left: without a record of the run nothing was typed, and its key is free; with one, only the shell's marks tell
//! ([`Core::take_up_runs`]).
//!
//! Whether the prompt is empty is asked before ([`Core::check`]). A slow disk may take longer than a program's turn lasts: where
//! nobody else had the turn meanwhile it is taken again for the same run, and where something was typed the prompt is looked at again.

use crate::core::{Core, Now};
use crate::decide::{Decided, Undecided};
use crate::outside::{Outside, Unwritten};
use crate::prompt::{Check, Look, Seen};
use crate::runs::{LastKey, RUNS_MAX, Run, ShellState};
use crate::sends::Sent;
use holdfast_authority::{Caller, DeedId, Ending, Input, Refusal};
use holdfast_types::{Actor, Fence, Right};
use holdfast_wire::runs::{RunId, RunState};

/// After this long a run that a killed host may never have typed is lost.
const TYPED_WAIT_MS: u64 = 3_000;
/// How often the turn is taken again for one run: a disk or a keeper that outlasts more turns than this is out of order.
const RETAKES_MAX: u32 = 3;

/// A run that was decided about, on its way to the shell. Bring each of its [`Next`] about, and say what came of it. One that is
/// not brought to its end is given up: [`Core::give_up`].
#[derive(Debug)]
pub struct Entering {
    run: Run,
    /// What is typed.
    keys: Vec<u8>,
    /// What the shell reads from a file, where the command is long or has several lines.
    file: Option<Vec<u8>>,
    has_hook: bool,
    fence: Fence,
    /// Where the keeper's log ended when the prompt was empty: what is behind it was typed since.
    log: u64,
    retakes: u32,
    deed: Option<DeedId>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Decided,
    Key,
    Hook,
    Looking,
    Typing,
    Over,
}

/// What entering a run needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Take its key, on a disk that survives the machine's end.
    TakeKey,
    /// Keep the address for its end.
    KeepHook,
    /// See again whether an empty prompt waits: something was typed there meanwhile.
    Look,
    /// Type these bytes under this fence, as decided.
    Type {
        /// The fence of the decision.
        fence: Fence,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// It is in the shell, or may be: its marks tell.
    Entered,
    /// Nothing was typed.
    NotEntered(NotEntered),
}

/// What came of a [`Next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// It begins.
    Decided,
    /// The key is this run's.
    KeyTaken,
    /// The address is kept.
    HookKept,
    /// An empty prompt waits.
    Looked,
    /// The key is another run's, either of the two cannot be written, or no empty prompt waits.
    Failed,
    /// What became of the bytes.
    Sent(Sent),
}

/// Why nothing was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotEntered {
    /// Key, address or prompt: the caller knows.
    Failed,
    /// The run cannot be recorded, or the shell's files cannot be written.
    Unrecorded(Unwritten),
    /// Somebody else has the turn meanwhile.
    Refused(Undecided),
    /// The keeper takes no input. Its code.
    Full(u8),
}

impl Entering {
    /// A run that was decided about. `file` is what the shell reads from its file; `has_hook`: there is an address for its end.
    #[must_use]
    pub fn new(
        core: &Core,
        decided: &Decided,
        run: Run,
        keys: Vec<u8>,
        file: Option<Vec<u8>>,
        has_hook: bool,
    ) -> Entering {
        let (fence, deed) = (decided.fence().unwrap_or_else(|| core.fence()), decided.deed.as_ref().map(|(id, _)| *id));
        let run = Run { act: decided.act, by_file: file.is_some(), ..run };
        let log = core.log_read();
        Entering { run, keys, file, has_hook, fence, log, retakes: 0, deed, stage: Stage::Decided }
    }

    /// The run, as it will be recorded.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    fn keys_to_type(&self) -> Next {
        Next::Type { fence: self.fence, bytes: self.keys.clone() }
    }
}

/// Nothing of it is on disk but its key.
fn unrecorded(out: &mut impl Outside, entering: &Entering, why: NotEntered) -> (Stage, Next) {
    out.free_key(&entering.run);
    (Stage::Over, Next::NotEntered(why))
}

impl Core {
    /// The next step of entering a run.
    pub fn enter(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering, came: Came) -> Next {
        let (stage, next) = match (entering.stage, came) {
            (Stage::Decided, _) if entering.run.key.is_some() => (Stage::Key, Next::TakeKey),
            (Stage::Decided, _) | (Stage::Key, Came::KeyTaken) if entering.has_hook => (Stage::Hook, Next::KeepHook),
            (Stage::Decided, _) => self.record_run(out, now, entering),
            (Stage::Key, Came::KeyTaken) | (Stage::Hook, Came::HookKept) => self.behind_a_wait(out, now, entering),
            (Stage::Looking, Came::Looked) => {
                self.drain_log(out, now, true);
                entering.log = self.log_read();
                // What came out since is of what was typed, and none of its marks are this run's.
                (entering.run.typed_at, entering.run.from) = (out.head(), out.head());
                self.behind_a_wait(out, now, entering)
            }
            (Stage::Key, _) => (Stage::Over, Next::NotEntered(NotEntered::Failed)),
            (Stage::Hook | Stage::Looking, _) => unrecorded(out, entering, NotEntered::Failed),
            (Stage::Typing, Came::Sent(sent)) => self.run_sent(out, now, entering, sent),
            (Stage::Typing | Stage::Over, _) => (Stage::Over, Next::Entered),
        };
        entering.stage = stage;
        if stage == Stage::Over {
            self.give_up(out, now, entering);
        }
        next
    }

    /// Its asker went away: what was decided and not done is marked.
    pub fn give_up(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering) {
        self.run_did(out, now, entering, Ending::Failed { why: "it was given up".into() });
    }

    fn run_did(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering, ending: Ending) {
        if let Some(deed) = entering.deed.take() {
            self.did(out, now, deed, ending);
        }
    }

    /// The disk was waited for. Nothing is recorded unless the turn is still the run's and its prompt still empty.
    fn behind_a_wait(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering) -> (Stage, Next) {
        self.drain_log(out, now, true);
        match self.retake(out, now, entering) {
            Err(undecided) => unrecorded(out, entering, NotEntered::Refused(undecided)),
            Ok(()) if self.log_read() != entering.log => (Stage::Looking, Next::Look),
            Ok(()) => self.record_run(out, now, entering),
        }
    }

    /// Takes the turn again for a run whose turn ran out on the way, unless somebody else had it since.
    fn retake(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering) -> Result<(), Undecided> {
        if entering.fence == self.fence() {
            return Ok(());
        }
        let actor = &entering.run.actor;
        if entering.retakes >= RETAKES_MAX || !self.had_nobody_else(actor, entering.fence) {
            return Err(Undecided::Refused(self.why_stale(actor)));
        }
        entering.retakes += 1;
        let by = Caller { actor: actor.clone(), operator: None, token: None };
        let decided = self.decide(out, now, Input::Types { by, fence: None })?;
        entering.fence = decided.fence().unwrap_or_else(|| self.fence());
        Ok(())
    }

    /// The run is on disk before anything of it is typed; whatever is seen of it after counts.
    fn record_run(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering) -> (Stage, Next) {
        self.runs.begin(entering.run.clone());
        let changed = self.runs.take_unsaved();
        let recorded = out.keep_runs(&changed);
        // From here on the run's own record tells what became of it.
        let ending = recorded.as_ref().map_or_else(|why| Ending::Failed { why: why.0.clone() }, |()| Ending::Done);
        self.run_did(out, now, entering, ending);
        let prepared = recorded.and_then(|()| match entering.run.token.as_str() {
            // Its end is taken from what the terminal shows.
            "" => Ok(()),
            token => out.tell_shell(token, entering.file.as_deref()),
        });
        self.timers.rearm = Some(now.clock_ms);
        match prepared {
            Ok(()) => (Stage::Typing, entering.keys_to_type()),
            Err(why) => (Stage::Over, self.not_entered(out, now, entering, NotEntered::Unrecorded(why))),
        }
    }

    fn run_sent(&mut self, out: &mut impl Outside, now: Now, entering: &mut Entering, sent: Sent) -> (Stage, Next) {
        let why = match sent {
            // Those that are queued are on their way.
            Sent::Written { .. } | Sent::Queued { .. } => return (Stage::Over, Next::Entered),
            // The keeper dropped them for their fence. Where nothing else was typed its prompt is as it was.
            Sent::Refused(Undecided::Refused(Refusal::FenceStale { .. })) if self.is_untouched(out, now, entering) => {
                match self.retake(out, now, entering) {
                    Ok(()) => return (Stage::Typing, entering.keys_to_type()),
                    Err(undecided) => NotEntered::Refused(undecided),
                }
            }
            Sent::Refused(undecided) => NotEntered::Refused(undecided),
            Sent::Full(code) => NotEntered::Full(code),
            // It may have been typed: its marks tell, or have told when it ended the session.
            Sent::Lost | Sent::Unknown | Sent::EchoOn | Sent::EchoUnknown | Sent::ReservedStream => {
                return (Stage::Over, Next::Entered);
            }
        };
        (Stage::Over, self.not_entered(out, now, entering, why))
    }

    fn is_untouched(&mut self, out: &mut impl Outside, now: Now, entering: &Entering) -> bool {
        self.drain_log(out, now, true);
        self.log_read() == entering.log
    }

    fn not_entered(&mut self, out: &mut impl Outside, now: Now, entering: &Entering, why: NotEntered) -> Next {
        self.runs.refuse(entering.run.id, now.time_ms);
        // Its end is on disk before its key is free: the next host must not take it for one that may have been typed. Where that
        // cannot be written, nobody was to know of it, and the key is free all the same.
        let _ = out.keep_runs(&self.runs.unsaved());
        let _ = out.tell_shell("", None);
        out.free_key(&entering.run);
        Next::NotEntered(why)
    }

    /// Writes what became of runs since the last call, and says who is to hear of it.
    pub fn save_runs(&mut self, out: &mut impl Outside) -> SavedRuns {
        let changed = self.runs.take_unsaved();
        let kept = if changed.is_empty() { Ok(()) } else { out.keep_runs(&changed) };
        if changed.iter().any(|run| run.state.is_over() && run.from == run.typed_at && !run.own) {
            // Its token is nobody's any more.
            let _ = out.tell_shell("", None);
        }
        SavedRuns { kept, over: self.runs.take_over(), is_news: self.runs.take_news() || !changed.is_empty(), changed }
    }

    /// Whether the authority will say no to a run, as far as can be told without asking.
    #[must_use]
    pub fn is_run_refused(&self, now: Now, actor: &Actor) -> bool {
        let state = self.authority.state();
        let is_held = state.turn().hold().is_some_and(|hold| hold.by.id != actor.id);
        is_held || state.frozen().is_some() || !self.authority.rights(actor, now.time_ms).has(Right::Run)
    }

    /// A host went away between taking a key and recording its run, which comes before the first key is typed. Only for who enters
    /// runs, or will look again when it does: this host may be between the two.
    #[must_use]
    pub fn was_never_typed(&self, run: RunId) -> bool {
        // Of a run that was forgotten for newer ones nothing is known.
        self.runs.runs().count() < RUNS_MAX && self.runs.get(run).is_none()
    }

    /// What an earlier host left running is looked for in the ring. Gives what is to be watched, where the host was killed before or
    /// while it typed.
    pub fn take_up_runs(&mut self, out: &mut impl Outside, now: Now, tells: bool) -> Option<TakeUp> {
        if tells && self.runs.shell() == ShellState::Unknown {
            let at = self.authority.state().wrote_at();
            if at > 0 {
                self.runs.typed(at, LastKey::Enter);
            }
        }
        let run = self.runs.current().filter(|run| !run.own)?.clone();
        if run.token.is_empty() {
            // Who watched its output is gone.
            self.runs.lose(run.id, true, run.from, now.time_ms);
            return None;
        }
        self.scan_marks(out, now, run.typed_at);
        let until = now.clock_ms + TYPED_WAIT_MS;
        (run.state == RunState::Starting).then_some(TakeUp { run: run.id, until, check: None })
    }

    /// A run whose keys may have been thrown away is watched as one that an earlier host may not have typed.
    pub fn take_flushed(&mut self, now: Now) -> Option<TakeUp> {
        let run = self.flushed_run.take()?;
        Some(TakeUp { run, until: now.clock_ms + TYPED_WAIT_MS, check: None })
    }

    /// The next step of a [`TakeUp`]; none: it is known what became of the run.
    pub fn take_up(&mut self, out: &mut impl Outside, now: Now, up: &mut TakeUp, seen: Seen) -> Option<Look> {
        let is_starting = |core: &Core| core.runs.get(up.run).is_some_and(|run| run.state == RunState::Starting);
        if !is_starting(self) {
            return None;
        }
        if self.is_frozen() {
            // A shell that stands still may have read the keys.
            up.until = up.until.max(now.clock_ms + TYPED_WAIT_MS);
        }
        if now.clock_ms < up.until {
            return Some(Look::Wait { until: up.until });
        }
        let look = self.check(out, now, up.check.get_or_insert_with(Check::untouched), seen);
        let not_typed = match look {
            Look::Wait { .. } | Look::Probe | Look::Ask => return Some(look),
            Look::Empty => true,
            Look::Busy(_) => false,
        };
        if is_starting(self) {
            self.runs.lose(up.run, !not_typed, out.head(), now.time_ms);
        }
        None
    }
}

/// What became of runs.
#[derive(Debug)]
pub struct SavedRuns {
    /// Whether it was written.
    pub kept: Result<(), Unwritten>,
    /// Runs that changed, as they are now.
    pub changed: Vec<Run>,
    /// Those that are over, each once. What is told of them is behind the writing, and so is not told again by a later host.
    pub over: Vec<Run>,
    /// Somebody may have waited for it.
    pub is_news: bool,
}

/// A run of an earlier host that may not have been typed. If the shell does not tell of it in time, it is lost, and whether it can
/// have started is said.
#[derive(Debug)]
pub struct TakeUp {
    run: RunId,
    until: u64,
    check: Option<Check>,
}
