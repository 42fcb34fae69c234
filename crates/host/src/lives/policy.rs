//! Lives that begin by themselves: what a killed host left open, `recover = "auto"`, `--restart on-failure`.
//!
//! Sessions are named here once, when one is lost or its command failed; a task of the host then looks at each. While there is
//! none nothing runs.

use super::begin::{How, begin};
use crate::serve::Server;
use crate::session::Session;
use crate::store::Spec;
use holdfast_authority::{Deed, DeedId, Ending};
use holdfast_types::{Exit, SessionId, TimeMs};
use holdfast_wire::lives::Recovery;
use holdfast_wire::params::Life;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// Lives of one session that begin by themselves within [`WINDOW_MS`], where nothing else was said: what fails more often fails again.
const LIVES_MAX: u32 = 5;
/// In which they are counted.
pub(crate) const WINDOW_MS: u64 = 10 * 60 * 1000;
/// Before the second; doubled each time. The first begins at once.
const PAUSE_MS: u64 = 1000;
/// The longest pause.
const PAUSE_MS_MAX: u64 = 60_000;
/// Lives that begin at once: after a restart of the machine all of them are due.
const AT_ONCE: usize = 4;

/// Sessions whose life is over, to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    over: RefCell<VecDeque<SessionId>>,
    stirred: Notify,
}

impl Lives {
    /// A session's life is over, however.
    pub fn over(&self, session: SessionId) {
        self.over.borrow_mut().push_back(session);
        self.stirred.notify_one();
    }
}

/// What happens to a session whose life is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing by itself.
    Rests,
    /// It was to have another life, and its host was killed.
    Asked { deed: DeedId, run: bool },
    /// It gets one in so many milliseconds.
    Due { in_ms: u64, run: bool },
    /// It had as many as it may.
    GivenUp { lives: u32 },
}

/// What a session is to have by itself.
fn fate(spec: &Spec, life: Life, by_default: Recovery, now: TimeMs) -> Fate {
    if spec.portable.as_ref().is_some_and(|portable| portable.stopped_for.is_some() || portable.moved.is_some()) {
        // It lives elsewhere, or waits for a restore: a life without its processes is not what its checkpoint was made for.
        return Fate::Rests;
    }
    let fails = match (life, spec.exit) {
        (Life::Lost, _) => true,
        (Life::Ended, Some(Exit::Code(code))) => code != 0,
        (Life::Ended, Some(Exit::Signal(_))) => true,
        _ => false,
    };
    let restarts = spec.restart_on_failure.filter(|_| fails && !spec.end_asked);
    let recovers = life == Life::Lost && spec.recover.unwrap_or(by_default) == Recovery::Auto;
    if restarts.is_none() && !recovers {
        return Fate::Rests;
    }
    let lives = spec.tries.iter().filter(|at| at.saturating_add(WINDOW_MS) > now).count() as u32;
    if lives >= restarts.unwrap_or(LIVES_MAX) {
        return Fate::GivenUp { lives };
    }
    let pause_ms = match lives {
        0 if life == Life::Lost => 0,
        lives => PAUSE_MS.saturating_mul(1 << lives.min(16)).min(PAUSE_MS_MAX) / 2,
    };
    Fate::Due { in_ms: pause_ms.max(u64::from(life != Life::Lost) * PAUSE_MS), run: restarts.is_some() }
}

/// Looks at each session whose life is over.
pub(crate) async fn follow(server: Rc<Server>) {
    let lives = Rc::clone(&server.registry.shared.lives);
    let slots = Rc::new(Semaphore::new(AT_ONCE));
    loop {
        let next = lives.over.borrow_mut().pop_front();
        let Some(id) = next else {
            lives.stirred.notified().await;
            continue;
        };
        let Ok(session) = server.registry.find(&id.to_string()) else { continue };
        let (server, slots) = (Rc::clone(&server), Rc::clone(&slots));
        tokio::task::spawn_local(async move { consider(&server, session, &slots).await });
    }
}

/// While this is there, who asks something of the session waits a moment for its next life.
struct Returning(Rc<Session>);

impl Drop for Returning {
    fn drop(&mut self) {
        self.0.returning.set(false);
        self.0.changed.notify_waiters();
    }
}

async fn consider(server: &Server, session: Rc<Session>, slots: &Semaphore) {
    let _returning = Returning(Rc::clone(&session));
    let shared = Rc::clone(&server.registry.shared);
    let incarnation = session.incarnation();
    let fate = {
        let state = session.state.borrow();
        let open = state.core.authority().state().open().find_map(|(id, open)| match open.deed {
            Deed::Recover { run } => Some((id, run)),
            _ => None,
        });
        match open.filter(|_| state.life == Life::Lost) {
            Some((deed, run)) => Fate::Asked { deed, run },
            None => fate(&state.spec, state.life, shared.config.recover, crate::now_ms()),
        }
    };
    let (deed, in_ms, run) = match fate {
        Fate::Rests => return,
        Fate::Asked { deed, run } => (Some(deed), 0, run),
        Fate::Due { in_ms, run } => (None, in_ms, run),
        Fate::GivenUp { lives } => {
            tracing::warn!(session = %session.id, "no other life by itself: it had {lives} in ten minutes");
            let note = format!(
                "it had {lives} lives in ten minutes, and gets no other by itself: holdfast recover {}",
                session.name()
            );
            return session.set_note(note);
        }
    };
    if in_ms > 0 {
        session.next_life(Some(crate::now_ms() + in_ms));
        tokio::time::sleep(Duration::from_millis(in_ms)).await;
        session.next_life(None);
    }
    let _slot = slots.acquire().await;
    let _one = session.reviving.lock().await;
    let is_the_same =
        session.incarnation() == incarnation && !session.is_live() && !session.state.borrow().spec.end_asked;
    if !is_the_same {
        return;
    }
    if deed.is_none() {
        session.tried(crate::now_ms());
    }
    let begun = begin(shared, Rc::clone(&session), How { run, ..How::default() }).await;
    if let Some(deed) = deed {
        let ending =
            begun.as_ref().map_or_else(|fault| Ending::Failed { why: fault.message.clone() }, |()| Ending::Done);
        session.with_core(|core, held, now| core.did(held, now, deed, ending));
    }
    if let Err(fault) = begun {
        tracing::warn!(session = %session.id, "no other life: {fault}");
        session.set_note(format!("it could not begin another life: {fault}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(exit: Exit, restart: Option<u32>, recover: Option<Recovery>, tries: &[TimeMs]) -> Spec {
        Spec {
            exit: Some(exit),
            restart_on_failure: restart,
            recover,
            tries: tries.to_vec(),
            ..crate::store::tests::spec()
        }
    }

    #[test]
    fn a_lost_session_gets_another_life_by_itself_only_where_that_was_said() {
        let lost = |recover, by_default| fate(&spec(Exit::Lost, None, recover, &[]), Life::Lost, by_default, 0);
        assert_eq!(lost(None, Recovery::Manual), Fate::Rests);
        assert_eq!(lost(None, Recovery::Auto), Fate::Due { in_ms: 0, run: false });
        assert_eq!(lost(Some(Recovery::Manual), Recovery::Auto), Fate::Rests);
        assert_eq!(lost(Some(Recovery::Auto), Recovery::Manual), Fate::Due { in_ms: 0, run: false });
    }

    #[test]
    fn a_command_that_fails_is_run_again_later_each_time_and_then_no_more() {
        let failed = |tries: &[TimeMs]| {
            fate(&spec(Exit::Code(1), Some(3), None, tries), Life::Ended, Recovery::Manual, WINDOW_MS + 10)
        };
        let due = |in_ms| Fate::Due { in_ms, run: true };
        assert_eq!(failed(&[]), due(1000));
        assert_eq!(failed(&[WINDOW_MS]), due(1000));
        assert_eq!(failed(&[WINDOW_MS, WINDOW_MS + 1]), due(2000));
        assert_eq!(failed(&[WINDOW_MS, WINDOW_MS + 1, WINDOW_MS + 2]), Fate::GivenUp { lives: 3 });
        assert_eq!(failed(&[1, 2, 3]), due(1000), "long ago");
    }

    #[test]
    fn what_ended_well_or_was_ended_stays_so() {
        let well = spec(Exit::Code(0), Some(3), None, &[]);
        assert_eq!(fate(&well, Life::Ended, Recovery::Auto, 0), Fate::Rests);
        let ended = Spec { end_asked: true, ..spec(Exit::Signal(1), Some(3), None, &[]) };
        assert_eq!(fate(&ended, Life::Ended, Recovery::Auto, 0), Fate::Rests);
    }
}
