//! Checkpoints that the host makes by itself: as often as a session is set to, before it reaps one, and when the machine goes down.
//!
//! A session whose processes only waited since its last checkpoint is left alone. Of those made here the two newest are kept; those that
//! actors asked for are never removed. One is made at a time.

use super::kept;
use super::make::Purpose;
use crate::notes::About;
use crate::off_thread;
use crate::reap::clock_ms;
use crate::registry::Registry;
use crate::serve::Server;
use crate::session::Session;
use holdfast_authority::Ask;
use holdfast_types::{Actor, terms_of};
use holdfast_wire::params::Life;
use holdfast_wire::portable::{CheckpointParams, CheckpointView};
use holdfast_wire::{Code, Fault};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

/// Checkpoints that the host made of one session by itself.
const AUTOMATIC_MAX: usize = 2;
/// What was stopped for a checkpoint runs a moment when it goes on: after this long it has come to rest if it only waits.
const SETTLE_MS: u64 = 500;

/// What changes when something happens in a session: where its output stands, its threads, and how often they have run.
type Print = (u64, u64, u64);

/// When a session's next checkpoint is made.
#[derive(Debug)]
pub(crate) struct Due {
    alarm: Rc<Notify>,
    /// By the clock since the machine's start; none: not known yet.
    at: Cell<Option<u64>>,
    /// When what goes on after the last one has settled.
    settles: Cell<Option<u64>>,
    /// As it stood then.
    print: Cell<Option<Print>>,
}

impl Due {
    pub fn new(alarm: &Rc<Notify>) -> Due {
        Due { alarm: Rc::clone(alarm), at: Cell::default(), settles: Cell::default(), print: Cell::default() }
    }
}

/// Makes checkpoints that are due for as long as the host runs.
pub(crate) async fn follow(server: Rc<Server>) {
    let alarm = Rc::clone(&server.registry.shared.alarm);
    loop {
        match round(&server.registry).await {
            Some(at) => {
                let left = Duration::from_millis(at.saturating_sub(clock_ms()));
                // Either will do.
                let _ = tokio::time::timeout(left, alarm.notified()).await;
            }
            None => alarm.notified().await,
        }
    }
}

fn living(registry: &Registry) -> Vec<Rc<Session>> {
    let is_concerned = |session: &Rc<Session>| session.view_life() == Life::Running && session.portable().is_some();
    registry.all().into_iter().filter(is_concerned).collect()
}

/// Looks at every session that is due; when the next one is.
async fn round(registry: &Registry) -> Option<u64> {
    let mut next = None;
    for session in living(registry) {
        let Some(every) = session.portable().and_then(|portable| portable.every_ms) else { continue };
        if session.due.settles.get().is_some_and(|at| at <= clock_ms()) {
            session.due.settles.set(None);
            session.due.print.set(session.print().await);
        }
        let at = match session.due.at.get() {
            Some(at) => at,
            None => session.first_due(every).await,
        };
        let at = if at > clock_ms() {
            at
        } else {
            session.checkpoint_due(registry).await;
            clock_ms() + every
        };
        session.due.at.set(Some(at));
        next = [next, Some(at), session.due.settles.get()].into_iter().flatten().min();
    }
    next
}

impl Session {
    /// A life begins, or a host takes it up. Most sessions are not concerned, and cost nothing here.
    pub(crate) fn begin_checkpoints(&self) {
        if self.state.borrow().spec.portable.as_ref().is_some_and(|portable| portable.every_ms.is_some()) {
            self.due.at.set(None);
            self.due.settles.set(None);
            self.due.print.set(None);
            self.due.alarm.notify_one();
        }
    }

    /// When the first checkpoint that this host makes of it is due: an earlier host may have made one a while ago.
    async fn first_due(&self, every: u64) -> u64 {
        let (dir, id, name) = (self.dir.clone(), self.id, self.state.borrow().spec.name.clone());
        let listed = off_thread(move || Ok(kept::list(&dir, id, &name).last().map(|view| view.at_ms))).await;
        let since = listed.ok().flatten().map_or(0, |at| crate::now_ms().saturating_sub(at));
        clock_ms() + every.saturating_sub(since)
    }

    /// What changes when something happens in it; none: nothing is known.
    async fn print(&self) -> Option<Print> {
        let tree = self.portable_tree().ok()?;
        let head = self.state.borrow().ring.as_ref().map_or(0, holdfast_abi::ring::Ring::head);
        let stirs = off_thread(move || holdfast_observe::portable::stirs(tree.init)).await.ok()?;
        Some((head, stirs.0, stirs.1))
    }

    /// Makes the checkpoint that is due, if something happened since the last.
    async fn checkpoint_due(self: &Rc<Session>, registry: &Registry) {
        let print = self.print().await;
        if print.is_some() && print == self.due.print.get() {
            return;
        }
        let made = registry.checkpoint_by_itself(self, &Actor::checkpoints(), false, || true).await;
        self.due.settles.set(Some(clock_ms() + SETTLE_MS));
        match &made {
            // It stands still anyway, or ends.
            Err(fault) if matches!(fault.code, Code::Frozen | Code::Ended) => {}
            Err(fault) => tracing::warn!(session = %self.id, "no checkpoint was made of it: {fault}"),
            Ok(_) => {}
        }
        let made = made.map_err(|fault| fault.message);
        self.state.borrow_mut().notes.wrote(About::Checkpoints, "the last checkpoint that was due was not made", &made);
    }
}

impl Registry {
    /// Makes a checkpoint that no actor asked for if it is still due once it is known what is in the way, and removes the oldest of its
    /// kind.
    pub(crate) async fn checkpoint_by_itself(
        &self,
        session: &Rc<Session>,
        by: &Actor,
        stop: bool,
        is_due: impl Fn() -> bool,
    ) -> Result<CheckpointView, Fault> {
        // Not waited for: one session that takes long must not keep all others from theirs.
        let Ok(_one) = session.reviving.try_lock() else {
            return Err(Fault::new(Code::Busy, "another checkpoint or life of it is being made"));
        };
        let ready = self.ready(session, Purpose::Automatic).await?;
        let params =
            CheckpointParams { session: session.id.to_string(), keep_running: !stop, ..CheckpointParams::default() };
        let ask = Ask::other(const { terms_of("checkpoint.make") }, params.detail());
        if !is_due() {
            return Err(Fault::new(Code::Busy, "it is used again"));
        }
        let decided = session.ask(by, None, ask, None)?;
        let made = session.checkpoint(&decided, ready, stop).await?;
        let (dir, id, name) = (session.dir.clone(), session.id, session.state.borrow().spec.name.clone());
        let pruned = off_thread(move || {
            let all = kept::list(&dir, id, &name);
            let own: Vec<&CheckpointView> = all.iter().filter(|view| view.automatic).collect();
            let old = own.len().saturating_sub(AUTOMATIC_MAX);
            own.iter().take(old).try_for_each(|view| kept::remove(&dir, &view.id))
        });
        if let Err(error) = pruned.await {
            tracing::warn!(session = %session.id, "an old checkpoint cannot be removed: {error}");
        }
        Ok(made)
    }

    /// The machine goes down: keeps every portable session, and stops it. Those that cannot be kept run on as long as the machine does.
    pub(crate) async fn checkpoint_all(&self) {
        for session in living(self) {
            match self.checkpoint_by_itself(&session, &Actor::checkpoints(), true, || true).await {
                Ok(made) => tracing::info!(session = %session.id, "kept as {}, and stopped", made.id),
                Err(fault) => tracing::warn!(session = %session.id, "cannot be kept: {fault}"),
            }
        }
    }
}
