//! Who waits for something: watchers for a history, workers for a flow to decide about.

use super::requests::digest;
use super::views::{in_json, refused, unrecorded};
use super::{Awaited, CODE_BYTES_MAX, Engine, LEASE_MS, Timer, Waiter};
use crate::clock::now_ms;
use crate::protocol::{Kept, Task, Trouble, WAIT_MS_MAX};
use holdfast_flow::{Command, Due, Refusal};
use serde_json::json;
use std::collections::VecDeque;

impl Engine {
    pub(super) fn wait(&mut self, waiter: Waiter, wait_ms: u64) {
        self.numbers += 1;
        self.waiters.insert(self.numbers, waiter);
        let due = Due::After { since_ms: now_ms(), ms: wait_ms.min(WAIT_MS_MAX) };
        self.clock.set(due, Timer::Waiter(self.numbers));
    }

    /// A client has waited as long as it wanted.
    pub(super) fn late(&mut self, number: u64) {
        let Some(Waiter { id, reply, what, .. }) = self.waiters.remove(&number) else { return };
        let answer = match what {
            Awaited::History { flow, generation, after } => {
                self.get(&flow, after, Some(generation)).and_then(|answer| in_json(&answer))
            }
            Awaited::Task { .. } | Awaited::Change { .. } => Ok(json!([])),
        };
        self.answers.push((reply, id, answer));
    }

    pub(super) fn gone(&mut self, connection: u64) {
        self.connections = self.connections.saturating_sub(1);
        self.waiters.retain(|_, waiter| waiter.connection != connection);
        let leased: Vec<String> = self
            .live
            .iter()
            .filter(|(_, live)| live.leased.is_some_and(|(worker, _)| worker == connection))
            .map(|(id, _)| id.clone())
            .collect();
        for id in leased {
            if let Some(live) = self.live.get_mut(&id) {
                (live.leased, live.seen) = (None, None);
            }
            self.offer(&id);
        }
    }

    pub(super) fn unlease(&mut self, id: &str, lease: u64) {
        if let Some(live) = self.live.get_mut(id)
            && live.leased.is_some_and(|(_, number)| number == lease)
        {
            (live.leased, live.seen) = (None, None);
            self.offer(id);
        }
    }

    /// Puts a flow in line for a worker.
    pub(super) fn offer(&mut self, id: &str) {
        let Some(live) = self.live.get_mut(id) else { return };
        if live.leased.is_some() || !live.flow.wants || live.definition.is_some() {
            return;
        }
        // One that is in line stays where it is; what may have changed is who can take it.
        if !std::mem::replace(&mut live.is_queued, true) {
            let line = (live.flow.by.clone(), live.flow.name.clone());
            self.ready.entry(line).or_default().push_back(id.to_owned());
        }
        let waiting = self.waiters.iter().find(|(_, waiter)| self.takes(&waiter.what, id)).map(|(number, _)| *number);
        if let Some(number) = waiting
            && let Some(waiter) = self.waiters.remove(&number)
        {
            // It waits on where there was nothing for it after all.
            if !self.hand_out(&waiter) {
                self.waiters.insert(number, waiter);
            }
        } else {
            self.host_worker(id);
        }
    }

    /// A worker asks: it gets what there is, or waits.
    pub(super) fn tasks(&mut self, waiter: Waiter, wait_ms: u64) {
        if !self.hand_out(&waiter) {
            self.wait(waiter, wait_ms);
        }
    }

    /// Gives a worker what waits for it; whether there was something.
    pub(super) fn hand_out(&mut self, waiter: &Waiter) -> bool {
        let Awaited::Task { by, names, max, .. } = &waiter.what else { return false };
        let (mut tasks, mut others) = (Vec::new(), Vec::new());
        for name in names {
            while tasks.len() < *max {
                let next = self.ready.get_mut(&(by.clone(), name.clone())).and_then(VecDeque::pop_front);
                let Some(id) = next else { break };
                match self.takes(&waiter.what, &id) {
                    true => tasks.extend(self.lease(&id, waiter.connection)),
                    false => others.push((name, id)),
                }
            }
        }
        for (name, id) in others.into_iter().rev() {
            self.ready.entry((by.clone(), name.clone())).or_default().push_front(id);
        }
        if tasks.is_empty() {
            return false;
        }
        let answer = in_json(&tasks);
        self.answers.push((waiter.reply.clone(), waiter.id, answer));
        true
    }

    /// Whether a worker with this file can decide about a flow that goes on with that one: it gets the older file, and must know its
    /// language. One that names no file decides by what it has.
    pub(super) fn suits(&self, code: &str, coded: &str) -> bool {
        if code.is_empty() || coded.is_empty() || code == coded {
            return true;
        }
        let is_python = |digest| self.store.file(digest).ok().flatten().map(|file| file.ends_with(".py"));
        is_python(code) == is_python(coded)
    }

    /// Keeps a worker's file, so that flows that began with it can go on with it.
    pub(super) fn keep(&mut self, text: &str, file: &str) -> Result<Kept, Trouble> {
        let bad = |message: String| Err(Trouble::new("bad_request", message));
        if text.is_empty() || text.len() > CODE_BYTES_MAX {
            return bad(format!("a file of flows has 1 to {CODE_BYTES_MAX} bytes"));
        }
        if file.is_empty() || file.len() > 255 || file.contains(['/', '\0']) {
            return bad(format!("invalid file name {file:?}"));
        }
        let code = digest(text);
        self.store.keep_code(&code, text, file).map_err(|error| unrecorded(&error))?;
        Ok(Kept { code, text: String::new(), file: String::new() })
    }

    pub(super) fn kept(&self, code: String) -> Result<Kept, Trouble> {
        let text = self.store.code(&code).map_err(|error| unrecorded(&error))?;
        let file = self.store.file(&code).map_err(|error| unrecorded(&error))?.unwrap_or_default();
        let none = || Trouble::new("no_such_code", format!("no file with the digest {code}"));
        Ok(Kept { text: text.ok_or_else(none)?, code, file })
    }

    pub(super) fn lease(&mut self, id: &str, connection: u64) -> Option<Task> {
        self.numbers += 1;
        let lease = self.numbers;
        let live = self.live.get_mut(id)?;
        live.is_queued = false;
        if !live.flow.wants || live.leased.is_some() {
            return None;
        }
        let from = live.seen.filter(|(worker, _)| *worker == connection).map_or(0, |(_, seq)| seq);
        // From what is written, and this batch's own: the answer is sent once it is committed.
        let history = self.store.history(id, from).ok()?;
        live.leased = Some((connection, lease));
        let (name, at, code) = (live.flow.name.clone(), live.flow.seq, live.flow.coded.clone());
        self.clock.set(Due::After { since_ms: now_ms(), ms: LEASE_MS }, Timer::Lease(id.to_owned(), lease));
        Some(Task { flow: id.to_owned(), name, code, at, from, history })
    }

    pub(super) fn turn(
        &mut self,
        connection: u64,
        id: &str,
        by: &str,
        at: u64,
        (commands, blocked): (Vec<(u32, Command)>, Option<String>),
        code: &str,
    ) -> Result<(), Trouble> {
        self.awaken(id);
        let Some(live) = self.live.get_mut(id) else { return Err(self.not_open(id)) };
        if live.flow.by != by || live.definition.is_some() {
            return Err(Trouble::new("denied", format!("{by} may not decide about {id}")));
        }
        if live.leased.is_none_or(|(worker, _)| worker != connection) {
            return Err(refused(&Refusal::Moved));
        }
        if !code.is_empty() && self.store.file(code).map_err(|error| unrecorded(&error))?.is_none() {
            return Err(Trouble::new("no_such_code", format!("no file with the digest {code}")));
        }
        live.leased = None;
        let generation = live.flow.generation;
        let result = self.try_change(id, |flow| match &blocked {
            Some(why) => Ok(flow.block(why, now_ms())),
            None => flow.decide_by(code, at, commands, now_ms()),
        });
        match &result {
            Ok(()) => {
                self.worker_works(by, code);
                // Of a history that has just begun the worker has seen nothing.
                if let Some(live) = self.live.get_mut(id).filter(|live| live.flow.generation == generation) {
                    // A signal that came early was recorded with the question for it: the worker has yet to see that.
                    let seen = if live.flow.wants { at } else { live.flow.seq };
                    live.seen = Some((connection, seen));
                }
            }
            Err(_) => {
                if let Some(live) = self.live.get_mut(id) {
                    live.seen = None;
                }
                self.offer(id);
            }
        }
        result
    }
}
