//! Acts that wait for a human, as data: the file `approvals` of the state directory, a [line](holdfast_store::lines) for each change
//! of one; the last line of an approval is what holds. They outlive the host and the actor that asked.

use crate::seam::ExecAct;
use holdfast_store::{APPROVALS, lines};
use holdfast_types::{Actor, ActorId, Hash, SessionId, SessionName, Shaper, TimeMs};
use holdfast_wire::forks::{ForkDiscardParams, ForkParams};
use holdfast_wire::gate::{ApprovalId, ApprovalState, ApprovalView, EXPIRES_MS};
use holdfast_wire::lives::RecoverParams;
use holdfast_wire::params::{EndParams, NewParams};
use holdfast_wire::portable::{CheckpointParams, RestoreParams};
use holdfast_wire::runs::{RunId, RunStartParams};
use holdfast_wire::turns::SignalParams;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "approvals";
/// Approvals that are over and still remembered: an agent that was away for long finds its answer.
const CLOSED_MAX: usize = 256;
/// Length up to which nobody looks how much is the past.
const FILE_BYTES_FREE: u64 = 1024 * 1024;
/// A longer file is none of ours.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// An act with everything that is needed to do it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// A run, in a session or with one of its own. It has an id: it happens once.
    Run(Box<RunStartParams>),
    /// A new session, under this id.
    Start(SessionId, Box<NewParams>),
    /// A signal.
    Signal(SignalParams),
    /// An end.
    End(EndParams),
    /// Another life of a lost session.
    Recover(RecoverParams),
    /// A program: its process waits.
    Exec(ExecAct),
    /// A checkpoint that stops its session.
    Checkpoint(CheckpointParams),
    /// Another life from a checkpoint.
    Restore(RestoreParams),
    /// A file of a session is written. The bytes are kept beside the session's writes, under their hash.
    Write(crate::files::HeldWrite),
    /// Branches of a session.
    Fork(ForkParams),
    /// The end of a branch, with its files.
    Discard(ForkDiscardParams),
}

impl Act {
    /// For a run, its id.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Act::Run(params) => params.run,
            Act::Start(..)
            | Act::Signal(_)
            | Act::End(_)
            | Act::Recover(_)
            | Act::Exec(_)
            | Act::Checkpoint(_)
            | Act::Restore(_)
            | Act::Write(_)
            | Act::Fork(_)
            | Act::Discard(_) => None,
        }
    }
}

/// One held act.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Holding {
    pub id: ApprovalId,
    pub session: Option<SessionId>,
    pub name: Option<SessionName>,
    pub by: Actor,
    pub act: Act,
    pub kind: String,
    pub command: String,
    pub cwd: String,
    #[serde(default)]
    pub intent: Option<String>,
    pub rule: String,
    pub why: String,
    pub risks: Vec<String>,
    pub writes: Vec<String>,
    pub deletes: Vec<String>,
    /// Who else shaped it, and by what.
    #[serde(default)]
    pub shapers: Vec<Shaper>,
    /// What the command is and what it is about to touch, as that was when it was judged.
    pub hash: Hash,
    pub again: bool,
    pub asked_ms: TimeMs,
    pub expires_at_ms: TimeMs,
    pub state: ApprovalState,
    #[serde(default)]
    pub answered_by: Option<Actor>,
    #[serde(default)]
    pub answered_ms: Option<TimeMs>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub until_ms: Option<TimeMs>,
    #[serde(default)]
    pub run: Option<RunId>,
    #[serde(default)]
    pub error: Option<String>,
}

impl Holding {
    /// As clients see it.
    pub fn view(&self) -> ApprovalView {
        let Holding {
            id,
            session,
            name,
            by,
            command,
            cwd,
            rule,
            why,
            risks,
            writes,
            deletes,
            shapers,
            hash,
            again,
            ..
        } = self.clone();
        ApprovalView {
            id,
            session,
            name,
            by,
            act: self.kind.clone(),
            command,
            cwd,
            rule,
            why,
            risks,
            writes,
            deletes,
            shapers,
            hash,
            again,
            asked_ms: self.asked_ms,
            expires_at_ms: self.expires_at_ms,
            state: self.state,
            answered_by: self.answered_by.clone(),
            answered_ms: self.answered_ms,
            reason: self.reason.clone(),
            until_ms: self.until_ms,
            run: self.run,
            error: self.error.clone(),
        }
    }

    /// Why it does not happen, for the actor that asked.
    pub fn denial(&self) -> String {
        let by = self.answered_by.as_ref().map_or_else(|| "nobody".to_owned(), |by| by.handle.to_string());
        match (self.state, &self.reason) {
            (ApprovalState::Expired, _) => "nobody approved it in time".into(),
            (_, Some(reason)) => format!("{by} denied it: {reason}"),
            (_, None) => format!("{by} denied it"),
        }
    }

    fn is_same(&self, other: &Holding) -> bool {
        self.by.id == other.by.id
            && self.session == other.session
            && self.kind == other.kind
            && self.command == other.command
            && self.cwd == other.cwd
            && self.rule == other.rule
    }
}

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Held {
    all: Vec<Holding>,
    dir: PathBuf,
    look_at: u64,
}

impl Held {
    /// Those an earlier host left.
    pub fn load(dir: &Path) -> Held {
        let path = dir.join(NAME);
        let kept: Vec<Holding> = lines::load(&APPROVALS, &path, FILE_BYTES_MAX).unwrap_or_else(|why| {
            tracing::warn!("{}: {why}", path.display());
            Vec::new()
        });
        let mut held = Held { dir: dir.to_owned(), ..Held::default() };
        kept.into_iter().for_each(|holding| held.put(holding));
        held
    }

    pub fn get(&self, id: ApprovalId) -> Option<&Holding> {
        self.all.iter().find(|holding| holding.id == id)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Holding> {
        self.all.iter()
    }

    /// Who waits.
    pub fn askers(&self) -> Vec<(ActorId, bool)> {
        let open = self.all.iter().filter(|holding| !holding.state.is_over());
        open.map(|holding| (holding.by.id, false)).collect()
    }

    /// Whether an act in this session waits, or is about to be done.
    pub fn concerns(&self, session: SessionId) -> bool {
        self.all.iter().any(|holding| holding.session == Some(session) && !holding.state.is_over())
    }

    /// Until when a human approved what others shaped for this actor in this session: one answer counts for the whole hand-over.
    pub fn shaped_until(&self, by: ActorId, session: Option<SessionId>) -> TimeMs {
        let counts = |known: &&Holding| {
            let is_approved = matches!(known.state, ApprovalState::Approved | ApprovalState::Done);
            is_approved && known.by.id == by && known.session == session && !known.shapers.is_empty()
        };
        self.all.iter().filter(counts).map(|known| known.asked_ms).max().unwrap_or(0)
    }

    /// The same act of the same actor that waits already.
    pub fn same_open(&self, wanted: &Holding) -> Option<&Holding> {
        self.all.iter().find(|known| known.state == ApprovalState::Open && known.is_same(wanted))
    }

    /// An answer that still counts for the same act.
    pub fn pass_for(&self, wanted: &Holding, now: TimeMs) -> Option<&Holding> {
        let counts = |known: &&Holding| {
            matches!(known.state, ApprovalState::Approved | ApprovalState::Done)
                && known.until_ms.is_some_and(|until| until > now)
        };
        self.all.iter().filter(counts).find(|known| known.is_same(wanted))
    }

    /// A human denied the same act a moment ago: nobody is asked again and again.
    pub fn lately_denied(&self, wanted: &Holding, now: TimeMs) -> Option<&Holding> {
        let lately = |known: &&Holding| {
            known.state == ApprovalState::Denied
                && known.answered_ms.is_some_and(|at| at.saturating_add(EXPIRES_MS) > now)
        };
        self.all.iter().filter(lately).find(|known| known.is_same(wanted))
    }

    /// A new one, or what became of one: on disk, then known.
    pub fn keep(&mut self, holding: Holding) -> io::Result<()> {
        lines::append(&APPROVALS, &self.dir.join(NAME), std::slice::from_ref(&holding))?;
        self.put(holding);
        if let Err(error) = self.tidy() {
            tracing::error!("approvals cannot be written anew: {error}");
        }
        Ok(())
    }

    fn put(&mut self, holding: Holding) {
        match self.all.iter_mut().find(|known| known.id == holding.id) {
            Some(known) => *known = holding,
            None => self.all.push(holding),
        }
        let over = self.all.iter().filter(|known| known.state.is_over()).count();
        if over > CLOSED_MAX
            && let Some(oldest) = self.all.iter().position(|known| known.state.is_over())
        {
            self.all.remove(oldest);
        }
    }

    /// Writes the file anew where most of it is the past.
    fn tidy(&mut self) -> io::Result<()> {
        let length = std::fs::metadata(self.dir.join(NAME))?.len();
        if length <= self.look_at.max(FILE_BYTES_FREE) {
            return Ok(());
        }
        let text = lines::encode(&APPROVALS, self.all.iter())?;
        self.look_at = 2 * text.len() as u64;
        if length > self.look_at {
            lines::rewrite(&APPROVALS, &self.dir, NAME, self.all.iter())?;
        }
        Ok(())
    }
}
