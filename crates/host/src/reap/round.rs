//! The one task: looks at the sessions that are due, and sees to the limits. Between two rounds it sleeps.

use super::clock_ms;
use super::cost::memory_of;
use super::plan::{Idle, Next, next, too_many};
use super::rest::InUse;
use crate::serve::Server;
use crate::session::Session;
use holdfast_types::SessionId;
use holdfast_wire::params::Life;
use holdfast_wire::reaping::ReapWhy;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// How often memory is measured while something runs that may take more of it: it takes milliseconds of another thread.
const MEASURE_MS: u64 = 60 * 1000;

/// What was last measured.
#[derive(Default)]
struct Measured {
    at: u64,
    /// Which sessions lived, and which of them were idle.
    of: Vec<(SessionId, bool)>,
    memory: BTreeMap<SessionId, u64>,
}

/// Reaps for as long as the host runs.
pub(crate) async fn follow(server: Rc<Server>) {
    let reaper = Rc::clone(&server.registry.shared.reaper);
    let mut measured = Measured::default();
    loop {
        let due = if reaper.is_wanted.get() { round(&server, &mut measured).await } else { None };
        match due {
            Some(at) => {
                let left = Duration::from_millis(at.saturating_sub(clock_ms()));
                // Either will do.
                let _ = tokio::time::timeout(left, reaper.stirred.notified()).await;
            }
            None => reaper.stirred.notified().await,
        }
    }
}

/// Looks at every session that is due; when the next one is.
async fn round(server: &Server, measured: &mut Measured) -> Option<u64> {
    let concerned = || server.registry.all().into_iter().filter(|s| s.view_life() == Life::Running && s.is_concerned());
    for session in concerned() {
        if session.watch.look_at.get().is_some_and(|at| at <= clock_ms()) {
            see_to(server, &session, measured).await;
        }
    }
    let measures_at = limits(server, measured).await;
    let looks_at = concerned().filter_map(|session| session.watch.look_at.get()).min();
    looks_at.into_iter().chain(measures_at).min()
}

/// Looks at one session, and does what is due.
async fn see_to(server: &Server, session: &Rc<Session>, measured: &mut Measured) {
    session.watch.look_at.set(None);
    let Some(idle) = seen(session).await else { return };
    let rules = &session.reaper.rules;
    let after_ms = rules.after(session.reap_after()).filter(|_| !session.watch.is_barred.get());
    match next(&idle, after_ms, rules.warn_ms, clock_ms()) {
        Next::Rest(at) => session.watch.look_at.set(at),
        Next::Warn(ends) => {
            session.watch.look_at.set(Some(ends));
            session.warn(idle, ends, ReapWhy::Idle).await;
        }
        Next::End(why) => end(server, session, why, measured).await,
    }
}

/// Whether a session is idle; where it is not, when to look again.
async fn seen(session: &Rc<Session>) -> Option<Idle> {
    let rules = &session.reaper.rules;
    match session.rests().await {
        Ok(print) => {
            session.watch.works.set(0);
            let before = *session.watch.idle.borrow();
            let idle = session.watch.seen_idle(print, clock_ms());
            if before.is_none_or(|before| before.print != print) {
                session.averted(before);
                session.keep_idle(idle);
            }
            Some(idle)
        }
        Err(used) => {
            session.busy();
            let at = match used {
                InUse::UntilTold => None,
                InUse::Kept(until_ms) => Some(clock_ms() + until_ms.saturating_sub(crate::now_ms()) + 1),
                InUse::Works(why) => {
                    tracing::debug!(session = %session.id, "not idle: {why}");
                    let times = session.watch.works.replace(session.watch.works.get().saturating_add(1));
                    Some(clock_ms() + rules.works_ms(session.reap_after(), times))
                }
            };
            if let Some(at) = at {
                session.watch.look_by(at);
            }
            None
        }
    }
}

/// The time of a session that was warned is over: it ends if everything is as it was.
async fn end(server: &Server, session: &Rc<Session>, why: ReapWhy, measured: &mut Measured) {
    holdfast_pause::task_point("reap.due").await;
    let gate = match session.may_be_reaped().await {
        Ok(gate) => gate,
        Err(said) => {
            session.bar(said);
            return session.withdraw_warning();
        }
    };
    if why == ReapWhy::Memory {
        measure(server, measured).await;
    }
    if !is_exceeded(server, why, measured) {
        return session.withdraw_warning();
    }
    // Last, and nothing is awaited from here to the record.
    let Some(idle) = seen(session).await else { return };
    let is_due = idle.warned.is_some_and(|(ends, _)| ends <= clock_ms());
    match is_due {
        true if session.portable().is_some() => session.reap_kept(&server.registry, idle, why).await,
        true => session.reap(idle, gate, why).await,
        false => {}
    }
}

/// Whether the reason of a warning still holds.
fn is_exceeded(server: &Server, why: ReapWhy, measured: &Measured) -> bool {
    let rules = &server.registry.shared.reaper.rules;
    match why {
        ReapWhy::Idle => true,
        ReapWhy::Sessions => rules.sessions_max.is_some_and(|max| living(server).len() as u64 > u64::from(max)),
        ReapWhy::Memory => rules.memory_max.is_some_and(|max| measured.memory.values().sum::<u64>() > max),
    }
}

fn living(server: &Server) -> Vec<Rc<Session>> {
    server.registry.all().into_iter().filter(|session| session.view_life() == Life::Running).collect()
}

/// Whether it may go for a limit, and since when it is idle.
fn candidate(session: &Rc<Session>) -> Option<u64> {
    let idle = *session.watch.idle.borrow();
    let is_free = session.is_concerned() && !session.watch.is_barred.get();
    idle.filter(|idle| is_free && idle.warned.is_none()).map(|idle| idle.since)
}

fn is_warned(session: &Rc<Session>) -> bool {
    session.watch.idle.borrow().is_some_and(|idle| idle.warned.is_some())
}

/// Warns those that go because there are too many, or because they take too much; when to measure again.
async fn limits(server: &Server, measured: &mut Measured) -> Option<u64> {
    let rules = server.registry.shared.reaper.rules.clone();
    if let Some(max) = rules.sessions_max {
        let living = living(server);
        let staying = living.iter().filter(|session| !is_warned(session)).count() as u64;
        let candidates = living.iter().filter_map(|session| Some((candidate(session)?, 1, session.id))).collect();
        warn_all(&living, &too_many(staying, u64::from(max), candidates), ReapWhy::Sessions).await;
    }
    let max = rules.memory_max?;
    let now: Vec<Rc<Session>> = living(server);
    let of: Vec<(SessionId, bool)> = now.iter().map(|session| (session.id, candidate(session).is_some())).collect();
    if !of.iter().any(|(_, is_idle)| *is_idle) {
        return None;
    }
    if measured.of != of || clock_ms() >= measured.at + MEASURE_MS {
        measure(server, measured).await;
        let weight = |session: &Rc<Session>| measured.memory.get(&session.id).copied().unwrap_or(0);
        let staying = now.iter().filter(|session| !is_warned(session)).map(weight).sum();
        let candidates =
            now.iter().filter_map(|session| Some((candidate(session)?, weight(session), session.id))).collect();
        warn_all(&now, &too_many(staying, max, candidates), ReapWhy::Memory).await;
    }
    // Those that are idle take no more than they do.
    now.iter().any(|session| session.watch.idle.borrow().is_none()).then_some(measured.at + MEASURE_MS)
}

async fn warn_all(living: &[Rc<Session>], chosen: &[SessionId], why: ReapWhy) {
    for session in living.iter().filter(|session| chosen.contains(&session.id)) {
        let Some(idle) = seen(session).await else { continue };
        let ends = clock_ms() + session.reaper.rules.warn_ms;
        session.watch.look_at.set(Some(ends));
        session.warn(idle, ends, why).await;
    }
}

async fn measure(server: &Server, measured: &mut Measured) {
    let living = living(server);
    measured.memory = memory_of(&living).await;
    measured.at = clock_ms();
    measured.of = living.iter().map(|session| (session.id, candidate(session).is_some())).collect();
}
