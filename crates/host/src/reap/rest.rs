//! Whether a session is idle. Any doubt is an answer: it is not.

use super::plan::Print;
use crate::session::Session;
use holdfast_observe::alone;
use holdfast_wire::attention::Now;
use holdfast_wire::params::Life;

/// Why a session is not idle, as far as it says when to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InUse {
    /// Until something happens of which the host hears.
    UntilTold,
    /// Somebody keeps it until then, by the clock of people.
    Kept(u64),
    /// Something runs, or nothing is known: that ends without a word. In words, for the log.
    Works(&'static str),
}

impl Session {
    /// What it is used for, as far as the host knows by itself.
    pub(super) fn in_use(&self) -> Option<InUse> {
        if self.view_life() != Life::Running || self.returning.get() {
            return Some(InUse::UntilTold);
        }
        if let Some(kept) = self.kept() {
            return Some(kept.until_ms.map_or(InUse::UntilTold, InUse::Kept));
        }
        let state = self.state.borrow();
        let (core, authority) = (&state.core, state.core.authority().state());
        let is_shell = state.spec.shell.is_some() && !state.spec.passing;
        let is_attached = core.clients.count() > 0 || authority.operators().next().is_some();
        let is_held = authority.turn().hold().is_some() || authority.queue().next().is_some();
        let is_still = authority.frozen().is_some() || authority.damaged().is_some();
        let is_asked = state.questions.open() > 0;
        if !is_shell || is_attached || is_held || is_still || is_asked {
            return Some(InUse::UntilTold);
        }
        let is_acted = authority.open().next().is_some() || core.runs.current().is_some() || self.is_entering();
        let is_awaited = self.is_awaited() || self.gate.held.borrow().concerns(self.id);
        (is_acted || is_awaited || state.link.is_none() || state.ring.is_none())
            .then_some(InUse::Works("somebody acts or waits"))
    }

    /// Looks whether it is idle, and at what tells it from one that has done something since. Types nothing, and disturbs nobody.
    pub(super) async fn rests(&self) -> Result<Print, InUse> {
        if let Some(used) = self.in_use() {
            return Err(used);
        }
        let uses = self.watch.uses.get();
        let (keeper, shell, spared) = {
            let state = self.state.borrow();
            (state.keeper_pid, state.pid, self.own.spared())
        };
        // What stands around the shell of a portable session does nothing.
        let around = match self.portable().map(|_| self.portable_tree()) {
            Some(Ok(tree)) => vec![tree.waits, tree.init],
            Some(Err(_)) => return Err(InUse::Works("its processes are not known")),
            None => Vec::new(),
        };
        let heads = self.heads();
        // The processes first: of a session that works nothing else is looked at.
        let looked = crate::off_thread(move || alone(keeper, shell, &around, &spared)).await;
        let Ok(Some(alone)) = looked else { return Err(InUse::Works("something runs beside the shell")) };
        let (head, log) = heads;
        let print = Print { keeper: alone.keeper, shell: alone.shell, switches: alone.switches, head, log };
        // What is as it was when its line was empty has an empty line.
        let is_known = self.watch.idle.borrow().is_some_and(|idle| idle.print == print);
        if !is_known && !self.with_core(|core, held, now| core.is_at_empty_prompt(held, now)) {
            return Err(InUse::Works("its prompt is not empty"));
        }
        let probed = self.probe().await.ok().flatten();
        if !probed.is_some_and(|probed| self.state.borrow().core.reads_keys(&probed)) {
            return Err(InUse::Works("its shell does not read keys"));
        }
        if self.see().await.now != Now::IdlePrompt {
            return Err(InUse::Works("it is not at its prompt"));
        }
        // In the same step in which the caller goes on: whatever came meanwhile is seen here.
        if let Some(used) = self.in_use() {
            return Err(used);
        }
        if self.watch.uses.get() != uses || self.heads() != heads {
            return Err(InUse::Works("something happened meanwhile"));
        }
        Ok(print)
    }
}
