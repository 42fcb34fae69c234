//! Workers that the service starts by itself: for flows that were started from a file of code.
//!
//! A worker is a run in a session of its own, in the starter's name. Inside a session nobody is a human; so it gets a ticket: by
//! that it decides about the flows of one actor and one file, and does nothing else. The first process that shows a ticket keeps it.

use super::{Awaited, Engine, Input, Timer};
use crate::clock::now_ms;
use crate::job::{Job, Whose};
use crate::protocol::{Request, Trouble};
use holdfast_flow::{Due, Hosted, Outcome, Run, quoted};
use holdfast_observe::ancestry::Peer;
use holdfast_types::{Actor, Handle, Home};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A worker that lived this long was no failure to start.
const LIVED_MS: u64 = 10_000;
/// The pause before a worker is started anew that failed to start; it doubles with each.
const PAUSE_MS: u64 = 250;
/// Failures to start in a row after which somebody has to look.
const FAILURES_MAX: u32 = 3;
/// Characters of a worker's last words that a blocked flow shows.
const SAID_CHARS_MAX: usize = 500;
/// What begins the name under which the runs of workers are known here: no flow's id does.
const MARK: &str = "@worker ";

/// What a worker of ours shows.
#[derive(Debug, Clone)]
struct Ticket {
    actor: Actor,
    code: String,
    /// Pid and start of the process that showed it first.
    process: Option<(u32, u64)>,
}

/// All tickets; the door asks for them.
#[derive(Debug, Clone, Default)]
pub struct Tickets(Arc<Mutex<HashMap<String, Ticket>>>);

impl Tickets {
    /// Whose a ticket is, and for which file, if this process may show it.
    pub fn show(&self, ticket: &str, peer: Option<&Peer>) -> Option<(Actor, String)> {
        let peer = peer?;
        let process = (peer.id().pid, peer.id().start);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.get_mut(ticket)?;
        let is_its = *found.process.get_or_insert(process) == process && peer.is_there();
        is_its.then(|| (found.actor.clone(), found.code.clone()))
    }

    fn with<T>(&self, what: impl FnOnce(&mut HashMap<String, Ticket>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A worker of ours, or what became of the last one.
#[derive(Debug, Default)]
pub(super) struct Hosting {
    is_on: bool,
    ticket: String,
    since_ms: u64,
    failures: u32,
}

/// Whose worker, with which file.
type Key = (String, String);

impl Engine {
    /// A flow wants to be decided about, and nobody waits for such a task.
    pub(super) fn host_worker(&mut self, id: &str) {
        let Some(live) = self.live.get(id) else { return };
        let Some(hosted) = live.flow.hosted.clone() else { return };
        let (key, cwd) = ((live.flow.by.clone(), live.flow.coded.clone()), live.flow.cwd.clone());
        let hosting = self.hosting.entry(key.clone()).or_default();
        if hosting.is_on || hosting.failures > 0 {
            // It runs and is busy, or the pause before the next one is on.
            return;
        }
        self.start_worker(key, &hosted, cwd);
    }

    fn start_worker(&mut self, key: Key, hosted: &Hosted, cwd: Option<String>) {
        let (by, code) = key.clone();
        let Some(actor) = known(&self.place.home, &by) else { return };
        let Ok(ticket) =
            super::requests::nonce().and_then(|one| Ok(one + &super::requests::nonce()? + &super::requests::nonce()?))
        else {
            return;
        };
        self.tickets.with(|all| all.insert(ticket.clone(), Ticket { actor, code: code.clone(), process: None }));
        let env = vec![
            format!("HOLDFAST_FLOW_TICKET={ticket}"),
            format!("HOLDFAST_FLOW_ACTOR={by}"),
            format!("HOLDFAST_PYTHON={}", hosted.program),
            format!("HOLDFAST_NODE={}", hosted.program),
        ];
        let program = quoted(&self.place.program.display().to_string());
        let command = format!("exec {program} flow worker --kept {code} {}", quoted(&hosted.file));
        let run = Run { name: "worker".into(), command, ..Run::default() };
        let whose = Whose { flow: format!("{MARK}{by} {code}"), generation: 0, n: 0, attempt: 0 };
        let job = Job::start(whose, format!("flow-worker/{}", &ticket[..24]), run, None, cwd, self.tell.clone())
            .with_env(env);
        let hosting = self.hosting.entry(key).or_default();
        (hosting.is_on, hosting.ticket, hosting.since_ms) = (true, ticket, now_ms());
        self.host(&by, job);
    }

    /// What is said about the run of a worker of ours; none: it is about a flow.
    pub(super) fn of_worker(&mut self, input: Input) -> Option<Input> {
        let of = |flow: &str| -> Option<Key> {
            let (by, code) = flow.strip_prefix(MARK)?.split_once(' ')?;
            Some((by.to_owned(), code.to_owned()))
        };
        match input {
            Input::Over { whose, outcome } => match of(&whose.flow) {
                Some(key) => self.worker_over(key, &outcome),
                None => return Some(Input::Over { whose, outcome }),
            },
            Input::Denied { flow, why } => match of(&flow) {
                Some(key) => self.worker_fails(&key, &why),
                None => return Some(Input::Denied { flow, why }),
            },
            other => return Some(other),
        }
        None
    }

    fn worker_over(&mut self, key: Key, outcome: &Outcome) {
        let Some(hosting) = self.hosting.get_mut(&key) else { return };
        hosting.is_on = false;
        let lived = now_ms().saturating_sub(hosting.since_ms) >= LIVED_MS;
        // One that has nothing to do waits longer than that before it ends.
        hosting.failures = if lived { 0 } else { hosting.failures + 1 };
        let (ticket, failures) = (std::mem::take(&mut hosting.ticket), hosting.failures);
        self.tickets.with(|all| all.remove(&ticket));
        if failures >= FAILURES_MAX {
            let said: Vec<char> = outcome.output.trim().chars().collect();
            let said: String = said[said.len().saturating_sub(SAID_CHARS_MAX)..].iter().collect();
            return self.worker_fails(&key, &format!("its worker fails: {}; {said}", outcome.words()));
        }
        let pause_ms = if failures == 0 { 0 } else { PAUSE_MS << failures };
        self.clock.set(Due::After { since_ms: now_ms(), ms: pause_ms }, Timer::Worker(key.0, key.1));
    }

    /// The pause is over: another one, if it is still wanted.
    pub(super) fn worker_again(&mut self, key: Key) {
        if self.hosting.get(&key).is_none_or(|hosting| hosting.is_on) {
            return;
        }
        let wanted = self.waiting_for(&key).into_iter().next().and_then(|id| {
            let live = self.live.get(&id)?;
            Some((live.flow.hosted.clone()?, live.flow.cwd.clone()))
        });
        match wanted {
            Some((hosted, cwd)) => self.start_worker(key, &hosted, cwd),
            None => drop(self.hosting.remove(&key)),
        }
    }

    /// A worker of ours has decided: it works, whatever becomes of it.
    pub(super) fn worker_works(&mut self, by: &str, code: &str) {
        if let Some(hosting) = self.hosting.get_mut(&(by.to_owned(), code.to_owned())) {
            hosting.failures = 0;
        }
    }

    /// Nobody can decide about these flows: they are blocked until somebody says `retry`.
    fn worker_fails(&mut self, key: &Key, why: &str) {
        self.hosting.remove(key);
        for id in self.waiting_for(key) {
            self.change(&id, |flow| Ok(flow.block(why, now_ms())));
        }
    }

    /// Flows that such a worker is to decide about.
    fn waiting_for(&self, (by, code): &Key) -> Vec<String> {
        let waits = |live: &super::Live| {
            live.flow.hosted.is_some()
                && live.flow.wants
                && live.leased.is_none()
                && live.flow.by == *by
                && live.flow.coded == *code
        };
        self.live.iter().filter(|(_, live)| waits(live)).map(|(id, _)| id.clone()).collect()
    }

    /// What a worker of ours may ask for: to decide about the flows of its actor and file.
    pub(super) fn may_ask_hosted(&self, by: &Actor, code: &str, request: &Request) -> Result<(), Trouble> {
        let is_its = |flow: &str| {
            let known = self.live.get(flow).map(|live| &live.flow);
            known.is_some_and(|flow| flow.hosted.is_some() && flow.coded == code && flow.by == by.handle.to_string())
        };
        let may = match request {
            Request::Tasks { code: asked, .. } | Request::Code { code: asked } => asked == code,
            Request::Turn { code: asked, flow, .. } => asked == code && is_its(flow),
            Request::Get { flow, .. } => is_its(flow),
            _ => false,
        };
        if may {
            Ok(())
        } else {
            Err(Trouble::new("denied", "a worker decides about its own flows, and asks for nothing else".to_owned()))
        }
    }

    /// Whether a worker that waits can be given a flow.
    pub(super) fn takes(&self, what: &Awaited, id: &str) -> bool {
        let Awaited::Task { by, names, code, hosted, .. } = what else { return false };
        let Some(live) = self.live.get(id) else { return true };
        let flow = &live.flow;
        let is_its = *by == flow.by && names.contains(&flow.name);
        is_its && if *hosted { flow.hosted.is_some() && flow.coded == *code } else { self.suits(code, &flow.coded) }
    }
}

fn known(home: &Home, handle: &str) -> Option<Actor> {
    let handle: Handle = handle.parse().ok()?;
    holdfast_client::Identity::load(home, &handle).ok().map(|who| who.actor().clone())
}
