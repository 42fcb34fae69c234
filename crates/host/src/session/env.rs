//! What a session's shell is made of, and whose act made it so.
//!
//! After each command an integrated shell writes its state into a file, and its prompt's mark says so. Here the file is
//! taken, off this thread and one at a time, what is new in it is bound to an act, and kept. The act is the run that has
//! just ended, or else the last that wrote before the command started: that is known by time, not by proof.

use super::Session;
use crate::journal::{self, wrote_before};
use crate::notes::About;
use crate::off_thread;
use crate::shells::kept::{self, Told};
use holdfast_abi::ring::Ring;
use holdfast_session::{Run, ShellState, Written};
use holdfast_types::{Actor, TimeMs};
use holdfast_wire::env::{Changed, EnvAnswer, EnvEntry, EnvParams, Known};
use holdfast_wire::params::Life;
use holdfast_wire::{Code, Fault};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A command that somebody typed at a terminal is looked for to be over after these pauses: most take no time.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// And from then on: what its shell wrote lies there no longer.
const SLOW: Duration = Duration::from_secs(10);
/// How long an answer waits for what was told to be kept.
const KEPT_WAIT: Duration = Duration::from_secs(2);
/// A file that a host died over, and what the shell wrote since.
const STATES_MAX: u32 = 2;

/// States that were told and not read yet.
#[derive(Debug, Default)]
pub(super) struct Unread {
    waiting: RefCell<VecDeque<Written>>,
    /// Somebody is at it.
    busy: Cell<bool>,
    /// The next of [`PAUSES`].
    step: Cell<usize>,
    /// What is not as it was, as far as it was asked for since it changed last.
    changes: RefCell<Option<Arc<Vec<EnvEntry>>>>,
}

impl Session {
    /// The shell wrote its state.
    pub(super) fn shell_wrote(&self, written: Vec<Written>) {
        if written.is_empty() {
            return;
        }
        {
            let mut waiting = self.unread.waiting.borrow_mut();
            // What was told before of the same one was written over.
            waiting.retain(|old| written.iter().all(|new| new.file != old.file));
            waiting.extend(written);
        }
        self.keep_states();
    }

    /// What an earlier host did not get to is told again.
    pub(super) fn take_up_shell(&self) {
        if self.state.borrow().spec.shell.is_some() && kept::is_left(&self.dir) {
            self.with_core(|core, held, now| core.scan_marks(held, now, 0));
        }
    }

    /// Somebody typed at a terminal, or did a while ago: where that answers for itself nobody else looks for prompts.
    pub(super) fn see_shell(&self, now: Instant, typed: bool) {
        let unseen = {
            let mut state = self.state.borrow_mut();
            state.timers.shell = None;
            if state.spec.shell.is_none() {
                return;
            }
            state.picture.seen() < state.ring.as_ref().map_or(0, Ring::head)
        };
        if unseen {
            self.look();
        }
        let step = if typed { 0 } else { self.unread.step.get() };
        let mut state = self.state.borrow_mut();
        let is_over = matches!(state.core.runs.shell(), ShellState::Prompt { .. } | ShellState::More);
        if !is_over && state.core.clients.someone_answers() {
            state.timers.shell = Some(now + PAUSES.get(step).copied().unwrap_or(SLOW));
            self.unread.step.set(step + 1);
        }
    }

    /// The shell is no more: the last of its states are read, and nothing with values is left.
    pub(super) fn shell_ended(&self) {
        if self.state.borrow().spec.shell.is_some() {
            self.keep_states();
        }
    }

    fn keep_states(&self) {
        let Some(this) = self.this.upgrade().filter(|_| !self.unread.busy.replace(true)) else { return };
        tokio::task::spawn_local(async move {
            loop {
                let next = this.unread.waiting.borrow_mut().pop_front();
                let Some(written) = next else { break };
                let kept = this.keep_state(&written).await;
                this.state.borrow_mut().notes.wrote(About::Shell, "what changed in the shell cannot be kept", &kept);
            }
            this.unread.busy.set(false);
            if matches!(this.view_life(), Life::Ended | Life::Lost) {
                let dir = this.dir.clone();
                let _ = tokio::task::spawn_blocking(move || kept::clear(&dir)).await;
            }
            this.changed.notify_waiters();
        });
    }

    /// Reads one of the shell's files, and keeps what is new.
    async fn keep_state(self: &Rc<Session>, written: &Written) -> io::Result<()> {
        for _ in 0..STATES_MAX {
            let (dir, file, cwd) = (self.dir.clone(), written.file, written.cwd.clone());
            let taken = off_thread(move || match kept::take(&dir, file, cwd.as_deref()) {
                Ok(Some(told)) if !told.news.is_empty() => Ok(Some(told)),
                taken => {
                    kept::forget(&dir, file);
                    taken
                }
            });
            let Some(told) = taken.await? else { return Ok(()) };
            // By what the shell was made of before the command.
            self.note_typed_line(&told.ledger, written).await;
            if !told.news.is_empty() {
                self.keep_told(told, written).await?;
            }
        }
        Ok(())
    }

    /// Binds what is new to an act, and keeps it.
    async fn keep_told(self: &Rc<Session>, told: Told, written: &Written) -> io::Result<()> {
        let (journal, run) = if told.news.has_changes() {
            // Who typed directly may not be in the journal yet.
            self.drain_log();
            let state = self.state.borrow();
            (state.journal.files(), run_before(state.core.runs.runs(), written))
        } else {
            (Vec::new(), None)
        };
        let (dir, written) = (self.dir.clone(), written.clone());
        self.unread.changes.replace(None);
        off_thread(move || {
            let act = wrote_before(&journal, started(&written));
            let by = changed_by(&written, run, act, told.at_ms);
            let result = kept::keep(&dir, told, by);
            kept::forget(&dir, written.file);
            result
        })
        .await
    }

    /// Waits until everything that the shell has told is kept.
    pub(super) async fn until_kept(&self) {
        self.look();
        self.until(Some(KEPT_WAIT), || (!self.unread.busy.get()).then_some(())).await;
    }

    /// What of its shell is not as it was, and who changed it.
    pub(super) async fn shell_changes(&self) -> Arc<Vec<EnvEntry>> {
        if self.state.borrow().spec.shell.is_none() {
            return Arc::default();
        }
        self.until_kept().await;
        if let Some(known) = &*self.unread.changes.borrow() {
            return Arc::clone(known);
        }
        let dir = self.dir.clone();
        let read = off_thread(move || Ok(kept::load(&dir)?.entries(false))).await;
        let all = Arc::new(read.unwrap_or_default());
        if !self.unread.busy.get() {
            self.unread.changes.replace(Some(Arc::clone(&all)));
        }
        all
    }

    /// What its shell is made of, and who changed it; as JSON, which may be long.
    pub(crate) async fn env(&self, params: &EnvParams) -> Result<Value, Fault> {
        self.until_kept().await;
        let (name, integration) = {
            let spec = &self.state.borrow().spec;
            (spec.name.clone(), spec.shell.is_some())
        };
        let (session, dir, all) = (self.id, self.dir.clone(), params.all);
        let read = crate::shares::aside(move || {
            let ledger = kept::load(&dir)?;
            let answer = EnvAnswer {
                session,
                name,
                integration,
                since_ms: ledger.since_ms(),
                partial: ledger.is_partial(),
                entries: ledger.entries(all),
            };
            serde_json::to_value(answer).map_err(io::Error::other)
        });
        read.await.map_err(|error| {
            Fault::new(Code::Internal, format!("cannot read what changed in the shell of {}: {error}", self.name()))
        })
    }
}

/// Where the output stood when the command started that the shell tells of; where only its prompt is known, that.
fn started(written: &Written) -> u64 {
    written.started_at.unwrap_or(written.prompt_at)
}

/// The last run that was typed before that command started, or was itself that command.
fn run_before<'a>(runs: impl Iterator<Item = &'a Run>, written: &Written) -> Option<Run> {
    let typed = runs.filter(|run| !run.token.is_empty() && run.typed_at < started(written));
    typed.max_by_key(|run| run.typed_at).cloned()
}

/// Whose change it is: the run's if that was the command, else the last writer's.
fn changed_by(written: &Written, run: Option<Run>, act: Option<journal::Wrote>, at_ms: TimeMs) -> Changed {
    let is_its = |run: &Run| match (written.started_at, &act) {
        (Some(started), _) => run.to.is_none_or(|to| started <= to),
        // Its start was not told: it is the last that wrote.
        (None, Some(act)) => act.is_run && act.at <= run.typed_at && act.actor.as_ref() == Some(&run.actor),
        (None, None) => false,
    };
    let seq = |of: &Actor| act.as_ref().filter(|act| act.is_run && act.actor.as_ref() == Some(of)).map(|act| act.seq);
    match (run.filter(is_its), &act) {
        (Some(run), _) => Changed {
            known: Known::Run,
            act: seq(&run.actor),
            run: Some(run.id),
            key: run.key,
            actor: Some(run.actor),
            at_ms,
        },
        (None, Some(act)) => {
            let known = if act.actor.is_some() { Known::Time } else { Known::Unknown };
            Changed { known, act: Some(act.seq), run: None, key: None, actor: act.actor.clone(), at_ms }
        }
        (None, None) => Changed::unknown(at_ms),
    }
}

#[cfg(test)]
mod tests;
