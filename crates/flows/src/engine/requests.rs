//! What clients ask for.

use super::views::{in_json, unrecorded};
use super::{Awaited, Engine, INPUT_BYTES_MAX, Live, OPEN_FLOWS_MAX, Reply, Waiter};
use crate::clock::now_ms;
use crate::protocol::{Request, StartAnswer, Status, Trouble};
use crate::store::Row;
use holdfast_flow::yaml;
use holdfast_flow::{Event, Flow, Recorded, Verdict};
use holdfast_types::{Actor, ActorClass};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

impl Engine {
    pub(super) fn asked(
        &mut self,
        connection: u64,
        by: &Actor,
        id: u64,
        request: Request,
        reply: &Reply,
    ) -> Result<Option<Value>, Trouble> {
        let who = by.handle.to_string();
        match request {
            Request::Start { flow, definition, name, input, cwd, skip_timers } => self
                .start(flow, (definition, name), input, (cwd, skip_timers), &who)
                .and_then(|answer| in_json(&answer))
                .map(Some),
            Request::List { all } => self.list(all).and_then(|list| in_json(&list)).map(Some),
            Request::Get { flow, after, wait_ms } => {
                let answer = self.get(&flow, after)?;
                if wait_ms == 0 || !answer.history.is_empty() || answer.flow.state.is_over() {
                    return in_json(&answer).map(Some);
                }
                let what = Awaited::History { flow, after };
                self.wait(Waiter { connection, id, reply: reply.clone(), what }, wait_ms);
                Ok(None)
            }
            Request::Signal { flow, name, value, signal } => {
                self.must_steer(&flow, by)?;
                self.try_change(&flow, |flow| flow.signal(&name, value, &signal, &who, now_ms()))?;
                self.view_of(&flow).and_then(|view| in_json(&view)).map(Some)
            }
            Request::Answer { flow, n, text } => {
                must_be_human(by, "answer")?;
                self.try_change(&flow, |flow| flow.answer(n, &text, &who, now_ms()))?;
                self.view_of(&flow).and_then(|view| in_json(&view)).map(Some)
            }
            Request::Cancel { flow, reason } => {
                self.must_steer(&flow, by)?;
                self.try_change(&flow, |flow| flow.cancel(&reason, &who, now_ms()))?;
                self.view_of(&flow).and_then(|view| in_json(&view)).map(Some)
            }
            Request::Retry { flow, verdict, value } => {
                self.retry(&flow, &verdict, value, by)?;
                self.view_of(&flow).and_then(|view| in_json(&view)).map(Some)
            }
            Request::Tasks { names, max, wait_ms } => {
                let what = Awaited::Task { by: who, names, max: max.clamp(1, 64) };
                let waiter = Waiter { connection, id, reply: reply.clone(), what };
                if !self.hand_out(&waiter) {
                    self.wait(waiter, wait_ms);
                }
                Ok(None)
            }
            Request::Turn { flow, at, commands, blocked } => {
                self.turn(connection, &flow, &who, at, commands, blocked)?;
                Ok(Some(json!({})))
            }
            Request::Status {} => in_json(&Status {
                pid: std::process::id(),
                version: env!("CARGO_PKG_VERSION").into(),
                open: self.live.len(),
                timers: self.clock.len(),
                database: self.store.path().display().to_string(),
            })
            .map(Some),
            Request::Stop {} => {
                self.is_stopping = true;
                Ok(Some(json!({"pid": std::process::id()})))
            }
        }
    }

    fn start(
        &mut self,
        id: Option<String>,
        (definition, name): (Option<String>, Option<String>),
        input: Value,
        (cwd, skip_timers): (Option<String>, bool),
        by: &str,
    ) -> Result<StartAnswer, Trouble> {
        let bad = |message: String| Trouble::new("bad_request", message);
        if input.to_string().len() > INPUT_BYTES_MAX {
            return Err(bad(format!("the input is longer than {INPUT_BYTES_MAX} bytes"))
                .hint("write it to a file and pass its path"));
        }
        let (name, code) = match (definition, name) {
            (Some(text), None) => {
                let read = yaml::parse(&text).map_err(|problem| {
                    Trouble::new("invalid_definition", format!("line {}: {}", problem.line, problem.message))
                        .hint(problem.hint)
                })?;
                (read.name, Some(text))
            }
            (None, Some(name)) if holdfast_flow::is_id(&name) && name.len() <= 48 => (name, None),
            (None, Some(name)) => return Err(bad(format!("invalid flow name {name:?}"))),
            (Some(_), Some(_)) | (None, None) => return Err(bad("a flow has either a definition or a name".into())),
        };
        let id = match id {
            Some(id) if holdfast_flow::is_id(&id) => id,
            Some(id) => {
                return Err(
                    bad(format!("invalid flow id {id:?}")).hint("use letters, digits, `-`, `_` and `.`, 64 at most")
                );
            }
            None => self.store.next_number(&name).map(|n| format!("{name}-{n}")).map_err(|e| unrecorded(&e))?,
        };
        let digest =
            code.as_ref().map_or(String::new(), |text| holdfast_types::hex_text(&Sha256::digest(text.as_bytes())));
        if self.store.row(&id).map_err(|error| unrecorded(&error))?.is_some() {
            return self.started_before(&id, &name, &digest, &input, by);
        }
        if self.live.len() >= OPEN_FLOWS_MAX {
            return Err(Trouble::new("too_many", format!("{OPEN_FLOWS_MAX} flows are open")));
        }
        if let Some(text) = &code {
            self.store.keep_code(&digest, text).map_err(|error| unrecorded(&error))?;
        }
        let mut nonce = [0; 6];
        getrandom::fill(&mut nonce).map_err(|e| Trouble::new("internal", format!("cannot get random bytes: {e}")))?;
        let nonce = holdfast_types::hex_text(&nonce);
        let mut flow = Flow::new(&id);
        let (code, by) = (digest, by.to_owned());
        let started = Event::Started { name, input, code: code.clone(), by, nonce, cwd, skip_timers };
        let decided = flow.start(started, now_ms());
        let definition = self.definition(&code).map_err(|error| unrecorded(&error))?;
        let live = Live { flow, definition, runs: BTreeMap::new(), leased: None, is_queued: false, seen: None };
        self.live.insert(id.clone(), live);
        self.note(&id, 0, decided)?;
        self.decide(&id)?;
        Ok(StartAnswer { flow: self.view_of(&id)?, existing: false })
    }

    /// The same start again finds its flow; another one under the same id is refused.
    fn started_before(
        &mut self,
        id: &str,
        name: &str,
        code: &str,
        input: &Value,
        by: &str,
    ) -> Result<StartAnswer, Trouble> {
        let history = self.store.history(id, 0).map_err(|error| unrecorded(&error))?;
        let same = matches!(history.first(), Some(Recorded { event: Event::Started { name: n, code: c, input: i, by: b, .. }, .. })
            if (n.as_str(), c.as_str(), i, b.as_str()) == (name, code, input, by));
        if same {
            return Ok(StartAnswer { flow: self.view_of(id)?, existing: true });
        }
        Err(Trouble::new("id_taken", format!("{id} is another flow: its definition, input or starter differs"))
            .hint("choose another --id"))
    }

    pub(super) fn must_steer(&self, id: &str, by: &Actor) -> Result<(), Trouble> {
        let Some(live) = self.live.get(id) else { return Err(self.not_open(id)) };
        if by.handle.class() == ActorClass::Human || live.flow.by == by.handle.to_string() {
            return Ok(());
        }
        Err(Trouble::new("denied", format!("{} may not steer {id}, which {} started", by.handle, live.flow.by)))
    }

    /// Lets a blocked flow go on; what is stuck is a human's to decide.
    pub(super) fn retry(&mut self, id: &str, verdict: &str, value: Value, by: &Actor) -> Result<(), Trouble> {
        self.must_steer(id, by)?;
        let verdict = match verdict {
            "again" => Verdict::Again,
            "failed" => Verdict::Failed,
            "done" => Verdict::Done(value),
            other => {
                let trouble = Trouble::new("bad_request", format!("invalid verdict {other:?}"));
                return Err(trouble.hint("use again, failed or done"));
            }
        };
        if self.live.get(id).is_some_and(|live| live.flow.waits().iter().any(|one| one.stuck.is_some())) {
            must_be_human(by, "decide about a stuck step")?;
        }
        self.try_change(id, |flow| flow.retry(&verdict, &by.handle.to_string(), now_ms()))
    }

    pub(super) fn not_open(&self, id: &str) -> Trouble {
        match self.store.row(id) {
            Ok(Some(Row { ended_ms: Some(_), .. })) => Trouble::new("ended", format!("{id} has ended")),
            Ok(Some(_)) => Trouble::new("damaged", format!("the history of {id} cannot be read")),
            Ok(None) => Trouble::new("no_such_flow", format!("no flow {id}")).hint("list them: holdfast flow ls --all"),
            Err(error) => unrecorded(&error),
        }
    }
}

fn must_be_human(by: &Actor, what: &str) -> Result<(), Trouble> {
    match by.handle.class() {
        ActorClass::Human => Ok(()),
        ActorClass::Agent | ActorClass::Service | ActorClass::Device => {
            Err(Trouble::new("denied", format!("{} may not {what}; only humans may", by.handle)))
        }
    }
}
