//! The end of a session's life: what is read from its ring, what is written, who is told.

use super::Session;
use crate::notes::About;
use holdfast_abi::ring::{Ring, STATE_ENDED};
use holdfast_authority::Input;
use holdfast_session::Clients;
use holdfast_types::{Exit, TimeMs};
use holdfast_wire::params::Life;
use std::sync::atomic::Ordering;

impl Session {
    /// The keeper is gone: what is left is the ring, and in its header how the command ended, if the keeper could say.
    pub fn ended(&self, now_ms: TimeMs) {
        self.unlinked();
        self.own.ended(self.id);
        if self.state.borrow().spec.exit.is_some() {
            return;
        }
        let (exit, ended_ms) = self.how_it_ended(now_ms);
        let keeps_run = exit == Exit::Lost && self.keeps_its_run();
        let on: Vec<_> = self.run_on().filter(|_| !keeps_run).map(|run| run.id).into_iter().collect();
        let life = self.lose(exit, on, ended_ms);
        // The last keys, then the end.
        self.with_core(|core, held, now| {
            core.drain_log(held, now, true);
            core.is_running = false;
            let _ = core.handle(held, now, Input::Ended { exit });
        });
        let mut state = self.state.borrow_mut();
        if let Some(ring) = state.ring.take() {
            state.pid = ring.header().child_pid.load(Ordering::Relaxed);
            let mut buffer = Vec::new();
            loop {
                let step = state.picture.step(&ring, &mut buffer);
                state.told(&step.marks);
                if !step.more {
                    break;
                }
            }
            if !keeps_run {
                state.core.runs.session_ended(exit, ring.head(), ended_ms);
            }
            state.picture.save(true);
        }
        state.life = life;
        state.spec.exit = Some(exit);
        state.spec.ended_ms = Some(ended_ms);
        state.core.clients = Clients::default();
        state.peers.clear();
        let saved = state.spec.save(&self.dir);
        state.notes.wrote(About::Spec, "the end of the session could not be recorded", &saved);
        if let Some(child) = state.child.take() {
            crate::spawn::reap(child);
        }
        drop(state);
        self.end_runs();
        self.save_runs();
        self.lapse_questions();
        self.shell_ended();
        self.sync_soon();
        // A keeper that was killed leaves its socket behind.
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.agent_link);
        self.leave_seam();
        self.freezer.forget();
        self.release_lease();
        self.shrink_ring();
        self.tell_watchers(holdfast_wire::attention::What::Exit { exit });
        self.returning.set(true);
        self.lives.over(self.id);
        self.changed.notify_waiters();
    }

    /// It was over before this host came: whether it is to have another life is looked at.
    pub(crate) fn found_over(&self) {
        if self.view_life() == Life::Lost {
            crate::lives::begin::put_back(&self.dir);
        }
        self.returning.set(true);
        self.lives.over(self.id);
    }

    /// From the ring's header, which the keeper filled in if it could.
    fn how_it_ended(&self, now_ms: TimeMs) -> (Exit, TimeMs) {
        let mut state = self.state.borrow_mut();
        if state.ring.is_none() {
            state.ring = self.open_ring().ok();
        }
        let Some(header) = state.ring.as_ref().map(Ring::header) else { return (Exit::Lost, now_ms) };
        match header.state.load(Ordering::Acquire) {
            STATE_ENDED => {
                let status = header.status.load(Ordering::Relaxed) as i32;
                (Exit::from_wait_status(status), header.ended_ms.load(Ordering::Relaxed))
            }
            _ => (Exit::Lost, now_ms),
        }
    }
}
