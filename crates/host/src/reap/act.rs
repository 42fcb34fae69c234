//! What happens to one session: it is used, kept, warned, ended.

use super::kept::{self, KeptIdle};
use super::plan::Idle;
use super::{clock_ms, time_of};
use crate::gate::{Asked, Text};
use crate::lives::boot_id;
use crate::notes::About;
use crate::registry::Registry;
use crate::session::Session;
use holdfast_authority::{Ask, Gate, Input, Said};
use holdfast_gate::{Action, Outcome};
use holdfast_types::{Actor, TimeMs, terms_of};
use holdfast_wire::attention::What;
use holdfast_wire::reaping::{KeepParams, KeptView, ReapAfter, ReapView, ReapWhy};
use holdfast_wire::{Code, Fault};
use std::rc::Rc;
use std::time::Duration;

/// From SIGHUP to SIGKILL: what `holdfast end` gives too.
const GRACE_MS: u32 = 5_000;
/// What a keeper needs beyond the grace to see its shell dead.
const END_WAIT: Duration = Duration::from_secs(10);

impl Session {
    /// Whether the reaper has anything to do with it.
    pub(super) fn is_concerned(&self) -> bool {
        let state = self.state.borrow();
        state.spec.shell.is_some() && self.reaper.rules.concern(state.spec.reap_after)
    }

    pub(super) fn reap_after(&self) -> Option<ReapAfter> {
        self.state.borrow().spec.reap_after
    }

    /// It was used: whatever was seen of it counts no longer.
    pub(crate) fn used(&self) {
        self.watch.uses.set(self.watch.uses.get() + 1);
        self.watch.is_barred.set(false);
        self.watch.works.set(0);
        self.busy();
        self.look_whether_idle();
    }

    /// It may be idle by now.
    pub(crate) fn look_whether_idle(&self) {
        if self.is_concerned() {
            self.reaper.is_wanted.set(true);
            let settles = self.reaper.rules.settle_ms(self.reap_after());
            if self.watch.look_by(clock_ms() + settles) {
                self.reaper.stirred.notify_one();
            }
        }
    }

    /// Its keeper was taken up. It may have been due before the reaper could find it.
    pub(crate) fn begin_watch(&self) {
        self.watch.look_at.set(None);
        self.look_whether_idle();
        if self.reaper.rules.has_limits() {
            // There is one more, whatever it is.
            self.reaper.stirred.notify_one();
        }
    }

    /// Something was decided of which nobody says what it means: only where nothing is known of it is it looked at.
    pub(crate) fn may_be_idle(&self) {
        if self.reaper.is_wanted.get() && self.watch.idle.borrow().is_none() {
            self.look_whether_idle();
        }
    }

    /// It is not idle.
    pub(crate) fn busy(&self) {
        let was = self.watch.idle.borrow_mut().take();
        if was.is_some() {
            kept::forget(&self.dir);
            self.state.borrow_mut().idle_kept = false;
        }
        self.averted(was);
    }

    /// It was warned, and goes on.
    pub(super) fn averted(&self, was: Option<Idle>) {
        if was.is_some_and(|idle| idle.warned.is_some()) {
            self.metrics.reap_averted();
            self.tell_watchers(What::ReapAverted);
        }
    }

    /// It was warned for a reason that is none any more. It is looked at again after a while.
    pub(super) fn withdraw_warning(&self) {
        let was = *self.watch.idle.borrow();
        let Some(idle) = was else { return };
        self.averted(was);
        self.keep_idle(Idle { warned: None, ..idle });
        self.watch.look_by(clock_ms() + self.reaper.rules.pause_ms(self.reap_after()));
    }

    /// Since when it is idle, for the next host. Where that cannot be written the next one counts from its own first look.
    pub(super) fn keep_idle(&self, idle: Idle) {
        *self.watch.idle.borrow_mut() = Some(idle);
        let kept = KeptIdle { boot: boot_id().to_owned(), idle };
        if kept.save(&self.dir).is_err() {
            kept::forget(&self.dir);
        }
        self.state.borrow_mut().idle_kept = true;
    }

    /// Who keeps it now.
    pub(super) fn kept(&self) -> Option<KeptView> {
        let kept = self.state.borrow().spec.kept.clone();
        kept.filter(|kept| kept.until_ms.is_none_or(|until| until > crate::now_ms()))
    }

    /// Keeps it, or no longer, because an actor asks for that.
    pub(crate) async fn keep(&self, params: &KeepParams, actor: &Actor) -> Result<(), Fault> {
        self.running().await?;
        if params.off && params.for_ms.is_some() {
            return Err(Fault::new(Code::BadRequest, "`off` and `for_ms` exclude each other"));
        }
        let ask = Ask::other(const { terms_of("session.keep") }, params.detail());
        let decided = self.ask(actor, None, ask, params.proof)?;
        let mut deed = self.begun(&decided);
        let until_ms = params.for_ms.map(|ms| crate::now_ms().saturating_add(ms));
        let kept = (!params.off).then(|| KeptView { by: actor.handle.clone(), until_ms });
        let saved = {
            let mut state = self.state.borrow_mut();
            let spec = crate::store::Spec { kept, ..state.spec.clone() };
            let saved = spec.save(&self.dir);
            if saved.is_ok() {
                state.spec = spec;
            }
            saved
        };
        deed.over(&saved);
        saved.map_err(|error| {
            Fault::new(Code::Unrecorded, format!("cannot record whether {} is kept: {error}", self.name()))
                .hint("is the disk full? check with: holdfast doctor")
        })?;
        self.used();
        self.changed.notify_waiters();
        Ok(())
    }

    /// Warns whoever watches that it ends.
    pub(super) async fn warn(&self, idle: Idle, ends: u64, why: ReapWhy) {
        tracing::info!(session = %self.id, "is reaped soon: {}", why.words());
        self.metrics.reap_warned(word(why));
        self.tell_watchers(What::ReapSoon { ends_ms: time_of(ends), why });
        self.keep_idle(Idle { warned: Some((ends, why)), ..idle });
        self.changed.notify_waiters();
        holdfast_pause::task_point("reap.warned").await;
    }

    /// What the policy says of its end by the reaper. What a rule asks a human about is not held: whoever approves it later would approve it
    /// for another hour.
    pub(super) async fn may_be_reaped(&self) -> Result<Option<Gate>, Said> {
        let asked = Asked {
            by: Actor::reaper(),
            is_human: false,
            action: Action::End,
            text: Text::None,
            place: self.place_of_acts(),
            signal: None,
            intent: None,
            contract: None,
        };
        if self.gate.is_off() {
            return Ok(None);
        }
        let Some(considered) = self.gate.consider(asked).await else { return Ok(None) };
        let verdict = considered.verdict;
        match verdict.outcome {
            Outcome::Allow => Ok(Some(Gate { rule: verdict.rule, approval: None, shaped: Vec::new() })),
            Outcome::Ask | Outcome::Deny => Err(Said::Deny { rule: verdict.rule, why: verdict.why }),
        }
    }

    /// The policy forbids it: on record, and not tried again until the session is used.
    pub(super) fn bar(&self, said: Said) {
        self.watch.is_barred.set(true);
        self.gate.count(&said);
        let _ = self.end_by_reaper(Some(said));
    }

    fn end_by_reaper(&self, said: Option<Said>) -> Result<(), Fault> {
        let (by, ask) = (self.caller(&Actor::reaper(), None), Ask::End { grace_ms: GRACE_MS });
        let input = match said {
            Some(said) => Input::Judged { by, ask, proof: None, said },
            None => Input::Asked { by, ask, proof: None },
        };
        Self::was_done("end", self.decide(input)?)
    }

    /// Ends it. Its caller has just seen that it is idle, and nothing came in between.
    pub(super) async fn reap(&self, idle: Idle, gate: Option<Gate>, why: ReapWhy) {
        // An end that cannot be recorded would happen all the same; this one must not.
        let is_recorded = self.with_core(|_, held, _| holdfast_session::Outside::retry_journal(held).is_ok());
        let ended = if is_recorded { self.end_by_reaper(gate.map(Said::Allow)) } else { Err(unwritten()) };
        if let Err(fault) = ended {
            tracing::warn!(session = %self.id, "cannot be reaped: {fault}");
            // A full disk passes; a refusal stays one.
            self.watch.is_barred.set(fault.code != Code::Unrecorded);
            return self.withdraw_warning();
        }
        self.state.borrow_mut().spec.end_asked = true;
        self.was_reaped(idle, why);
        if let Err(fault) = self.reach_trees().await {
            tracing::warn!(session = %self.id, "its end could not be told to its keeper: {fault}");
        }
        let limit = Duration::from_millis(u64::from(GRACE_MS)) + END_WAIT;
        if self.until(Some(limit), || (!self.is_live()).then_some(())).await.is_none() {
            self.set_note("it was reaped, and some of its processes do not end".into());
        }
    }

    /// Keeps a checkpoint of a portable session, and stops it. One that cannot be kept goes on: its processes are what it is for.
    pub(super) async fn reap_kept(self: &Rc<Session>, registry: &Registry, idle: Idle, why: ReapWhy) {
        let uses = self.watch.uses.get();
        let is_idle = || self.watch.uses.get() == uses && self.in_use().is_none();
        match registry.checkpoint_by_itself(self, &Actor::reaper(), true, is_idle).await {
            Ok(_) => self.was_reaped(idle, why),
            Err(fault) => {
                tracing::warn!(session = %self.id, "is not reaped: {fault}");
                self.withdraw_warning();
            }
        }
    }

    fn was_reaped(&self, idle: Idle, why: ReapWhy) {
        let idle_ms = clock_ms().saturating_sub(idle.since);
        tracing::info!(session = %self.id, idle_ms, "reaped: {}", why.words());
        {
            let mut state = self.state.borrow_mut();
            state.spec.reaped = Some(why);
            let saved = state.spec.save(&self.dir);
            state.notes.wrote(About::Spec, "that it was reaped could not be recorded", &saved);
        }
        kept::forget(&self.dir);
        self.metrics.reaped(word(why));
        self.tell_watchers(What::Reaped { why });
    }

    /// Ends one that was started ahead, and that nobody wanted.
    pub(crate) async fn end_unwanted(&self) {
        if !self.is_live() {
            return;
        }
        let ended = self.end_by_reaper(None);
        let reached = self.reach_trees().await;
        if let Err(fault) = ended.and(reached) {
            tracing::warn!(session = %self.id, "was started ahead, and does not end: {fault}");
        }
        let limit = Duration::from_millis(u64::from(GRACE_MS)) + END_WAIT;
        self.until(Some(limit), || (!self.is_live()).then_some(())).await;
    }

    /// It lives, though a host recorded that it reaped it: that host was killed before it did.
    pub(crate) fn was_not_reaped(&self) {
        let mut state = self.state.borrow_mut();
        if state.spec.reaped.take().is_some() {
            state.spec.end_asked = false;
            let saved = state.spec.save(&self.dir);
            state.notes.wrote(About::Spec, "that it lives on could not be recorded", &saved);
        }
    }

    /// As clients see it; none: nothing concerns it.
    pub(crate) fn reap_view(&self) -> Option<Box<ReapView>> {
        let (said, reaped) = {
            let spec = &self.state.borrow().spec;
            (spec.reap_after, spec.reaped)
        };
        let is_running = self.view_life() == holdfast_wire::params::Life::Running;
        let is_concerned = is_running && self.is_concerned();
        let kept = self.kept().filter(|_| is_running);
        let never = is_running && said == Some(ReapAfter::Never);
        if !is_concerned && kept.is_none() && !never && reaped.is_none() {
            return None;
        }
        let idle = self.watch.idle.borrow().filter(|_| is_concerned && kept.is_none());
        let after_ms = self.reaper.rules.after(said).filter(|_| is_concerned);
        let ends = idle.and_then(|idle| {
            let by_time = after_ms.map(|after| idle.since.saturating_add(after.max(self.reaper.rules.warn_ms)));
            idle.warned.map(|(ends, _)| ends).or(by_time.filter(|_| !self.watch.is_barred.get()))
        });
        Some(Box::new(ReapView {
            after_ms,
            never,
            idle_since_ms: idle.map(|idle| time_of(idle.since)),
            ends_ms: ends.map(time_of),
            warned: idle.and_then(|idle| idle.warned).map(|(_, why)| why),
            kept,
            reaped,
        }))
    }

    /// Somebody is attached, or no longer.
    pub(crate) fn noted_attached(&self) {
        self.watch.attached_ms.set(Some(crate::now_ms()));
        self.looking.came.set(true);
        self.look_soon();
    }

    /// When somebody was attached last, and when somebody looked.
    pub(crate) fn last_used(&self) -> (Option<TimeMs>, Option<TimeMs>) {
        let is_attached = self.client_count() > 0;
        let attached_ms = if is_attached { Some(crate::now_ms()) } else { self.watch.attached_ms.get() };
        (attached_ms, self.watch.looked_ms.get())
    }
}

fn unwritten() -> Fault {
    Fault::new(Code::Unrecorded, "its journal cannot be written")
}

/// The word under which it is counted.
fn word(why: ReapWhy) -> &'static str {
    match why {
        ReapWhy::Idle => "idle",
        ReapWhy::Sessions => "sessions",
        ReapWhy::Memory => "memory",
    }
}
