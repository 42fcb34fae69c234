//! What clients ask for.

use super::views::{in_json, unrecorded};
use super::{Awaited, Engine, INPUT_BYTES_MAX, LISTED_MAX, OPEN_FLOWS_MAX, Reply, Standing, Waiter};
use crate::clock::now_ms;
use crate::protocol::{Request, StartAnswer, Status, Trouble};
use crate::store::{Row, StoreError};
use holdfast_flow::yaml;
use holdfast_flow::{Event, Hosted, Lineage, Rewind, Verdict};
use holdfast_types::{Actor, ActorClass};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

impl Engine {
    pub(super) fn asked(
        &mut self,
        (connection, standing): (u64, &Standing),
        by: &Actor,
        id: u64,
        request: Request,
        reply: &Reply,
    ) -> Result<Option<Value>, Trouble> {
        let who = by.handle.to_string();
        match request {
            Request::Start { flow, definition, name, input, cwd, skip_timers, code, hosted } => self
                .start(flow, (definition, name), input, (cwd, skip_timers), hosted.map(|how| (code, how)), &who)
                .and_then(|answer| in_json(&answer))
                .map(Some),
            Request::List { all, after, wait_ms } => {
                let only = (*standing == Standing::Vouched && by.handle.class() != ActorClass::Human).then_some(who);
                let what = Awaited::Change { all, after, only };
                self.listed(Waiter { connection, id, reply: reply.clone(), what }, wait_ms)
            }
            Request::Histories { after } => {
                let listed = self.store.histories(after, LISTED_MAX).map_err(|error| unrecorded(&error))?;
                in_json(&listed).map(Some)
            }
            Request::Get { flow, after, wait_ms, generation } => {
                let answer = self.get(&flow, after, generation)?;
                if wait_ms == 0 || !answer.history.is_empty() || answer.flow.state.is_over() {
                    return in_json(&answer).map(Some);
                }
                let what = Awaited::History { flow, generation: answer.flow.generation, after };
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
            Request::Retry { flow, verdict, value, hosted } => {
                self.retry(&flow, &verdict, (value, hosted), by)?;
                self.view_of(&flow).and_then(|view| in_json(&view)).map(Some)
            }
            Request::Rewind { flow, to, again } => {
                let asked = Rewind { to, again, by: who };
                self.rewind(&flow, &asked, by)?;
                self.view_of(&flow).and_then(|view| in_json(&view)).map(Some)
            }
            Request::Tasks { names, max, wait_ms, code } => {
                let hosted = matches!(standing, Standing::Hosted(_));
                let what = Awaited::Task { by: who, names, max: max.clamp(1, 64), code, hosted };
                self.tasks(Waiter { connection, id, reply: reply.clone(), what }, wait_ms);
                Ok(None)
            }
            Request::Turn { flow, at, commands, blocked, code } => {
                self.turn(connection, &flow, &who, at, (commands, blocked), &code)?;
                Ok(Some(json!({})))
            }
            Request::Keep { text, file } => in_json(&self.keep(&text, &file)?).map(Some),
            Request::Code { code } => in_json(&self.kept(code)?).map(Some),
            Request::Status {} => in_json(&self.status()).map(Some),
            Request::Stop {} => {
                self.is_stopping = true;
                Ok(Some(json!({"pid": std::process::id()})))
            }
        }
    }

    fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            open: self.open_flows(),
            in_memory: self.flows_in_memory(),
            timers: self.clock.len(),
            database: self.store.path().display().to_string(),
            trouble: self.trouble.clone(),
        }
    }

    /// Flows, or those that changed; whoever waits for a change is told later.
    fn listed(&mut self, waiter: Waiter, wait_ms: u64) -> Result<Option<Value>, Trouble> {
        let Awaited::Change { all, after, only } = &waiter.what else { return Ok(None) };
        let flows = self.list(*all, *after, only.as_deref())?;
        if wait_ms == 0 || !flows.is_empty() {
            return in_json(&flows).map(Some);
        }
        self.wait(waiter, wait_ms);
        Ok(None)
    }

    fn start(
        &mut self,
        id: Option<String>,
        (definition, name): (Option<String>, Option<String>),
        input: Value,
        (cwd, skip_timers): (Option<String>, bool),
        hosted: Option<(String, Hosted)>,
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
            (None, Some(name)) if holdfast_flow::is_flow_name(&name) => (name, None),
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
            None => self.next_id(&name).map_err(|error| unrecorded(&error))?,
        };
        let digest = code.as_ref().map_or(String::new(), |text| digest(text));
        if self.store.row(&id).map_err(|error| unrecorded(&error))?.is_some() {
            return self.started_before(&id, &name, &digest, &input, by);
        }
        if self.open_flows() >= OPEN_FLOWS_MAX {
            return Err(Trouble::new("too_many", format!("{OPEN_FLOWS_MAX} flows are open")));
        }
        if let Some(text) = &code {
            self.store.keep_code(&digest, text, "").map_err(|error| unrecorded(&error))?;
        }
        let (nonce, by, lineage) = (nonce()?, by.to_owned(), Lineage::default());
        let hosted = hosted.map(|(code, how)| self.hosted(code, how)).transpose()?;
        self.begin(&id, Event::Started { name, input, code: digest, by, nonce, cwd, skip_timers, lineage }, hosted)?;
        Ok(StartAnswer { flow: self.view_of(&id)?, existing: false })
    }

    /// A file that was kept, with which the service is to start workers.
    fn hosted(&self, code: String, how: Hosted) -> Result<(String, Hosted), Trouble> {
        let bad = |what: &str| Err(Trouble::new("bad_request", format!("{what} has to be an absolute path")));
        let is_path = |text: &str| text.starts_with('/') && text.len() <= 4_096 && !text.contains(char::is_control);
        if !is_path(&how.program) || !is_path(&how.file) {
            return bad("the interpreter and the file");
        }
        if how.names.len() > 100 || !how.names.iter().all(|name| holdfast_flow::is_flow_name(name)) {
            return Err(Trouble::new("bad_request", "a file has 1 to 100 flows".to_owned()));
        }
        match self.store.file(&code).map_err(|error| unrecorded(&error))? {
            Some(_) => Ok((code, how)),
            None => Err(Trouble::new("no_such_code", format!("no file with the digest {code}"))),
        }
    }

    /// The next free number of a name: counted here, because a look at every flow of that name costs more with each.
    fn next_id(&mut self, name: &str) -> Result<String, StoreError> {
        let mut number = match self.next_numbers.get(name) {
            Some(number) => *number,
            None => self.store.next_number(name)?,
        };
        while self.store.row(&format!("{name}-{number}"))?.is_some() {
            number = number.saturating_add(1);
        }
        self.next_numbers.insert(name.to_owned(), number.saturating_add(1));
        Ok(format!("{name}-{number}"))
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
        let begun = self.store.beginning(id).map_err(|error| unrecorded(&error))?;
        // Of a flow that has continued as new so often that its first history is gone, the input cannot be compared.
        let same = matches!(begun, Some(Event::Started { name: n, code: c, input: i, by: b, lineage, .. })
            if (n.as_str(), c.as_str(), b.as_str()) == (name, code, by) && (i == *input || lineage.before > 0));
        if same {
            return Ok(StartAnswer { flow: self.view_of(id)?, existing: true });
        }
        Err(Trouble::new("id_taken", format!("{id} is another flow: its definition, input or starter differs"))
            .hint("choose another --id"))
    }

    /// What the host passes on: looks and acts, and no worker's business. Others than humans see their own flows.
    pub(super) fn may_ask_from_afar(&self, by: &Actor, request: &Request) -> Result<(), Trouble> {
        match request {
            Request::Start { .. } | Request::List { .. } | Request::Signal { .. } | Request::Answer { .. } => Ok(()),
            Request::Cancel { .. } | Request::Retry { .. } => Ok(()),
            Request::Get { flow, .. } => {
                let view = self.view_of(flow)?;
                let is_own = by.handle.class() == ActorClass::Human || view.by == by.handle.to_string();
                // As if it were not there.
                if is_own { Ok(()) } else { Err(no_such_flow(flow)) }
            }
            Request::Rewind { .. }
            | Request::Tasks { .. }
            | Request::Turn { .. }
            | Request::Keep { .. }
            | Request::Histories { .. }
            | Request::Code { .. }
            | Request::Status {}
            | Request::Stop {} => Err(Trouble::new("denied", "the host does not pass this on".to_owned())),
        }
    }

    pub(super) fn must_steer(&mut self, id: &str, by: &Actor) -> Result<(), Trouble> {
        self.awaken(id);
        let Some(live) = self.live.get(id) else { return Err(self.not_open(id)) };
        if by.handle.class() == ActorClass::Human || live.flow.by == by.handle.to_string() {
            return Ok(());
        }
        Err(Trouble::new("denied", format!("{} may not steer {id}, which {} started", by.handle, live.flow.by)))
    }

    /// Lets a blocked flow go on; what is stuck is a human's to decide.
    pub(super) fn retry(
        &mut self,
        id: &str,
        verdict: &str,
        (value, hosted): (Value, Option<Hosted>),
        by: &Actor,
    ) -> Result<(), Trouble> {
        self.must_steer(id, by)?;
        let verdict = match verdict {
            "again" => Verdict::Again,
            "failed" => Verdict::Failed,
            "done" => Verdict::Done(value),
            "code" => {
                let code = value.as_str().unwrap_or_default().to_owned();
                let hosted = hosted.map(|how| self.hosted(code, how)).transpose()?;
                if hosted.is_none() && self.live.get(id).is_some_and(|live| live.flow.hosted.is_some()) {
                    let trouble = Trouble::new("bad_request", format!("{id} was started from a file of code"));
                    return Err(trouble.hint("name the newest: --new-code=FILE"));
                }
                return self.try_change(id, |flow| flow.recode(hosted, &by.handle.to_string(), now_ms()));
            }
            other => {
                let trouble = Trouble::new("bad_request", format!("invalid verdict {other:?}"));
                return Err(trouble.hint("use again, failed, done or code"));
            }
        };
        if self.live.get(id).is_some_and(|live| live.flow.waits().iter().any(|one| one.stuck.is_some())) {
            must_be_human(by, "decide about a stuck step")?;
        }
        self.try_change(id, |flow| flow.retry(&verdict, &by.handle.to_string(), now_ms()))
    }

    /// Takes a flow's history back to a step; one that has ended goes on from there.
    fn rewind(&mut self, id: &str, asked: &Rewind, by: &Actor) -> Result<(), Trouble> {
        let row = self.store.row(id).map_err(|error| unrecorded(&error))?;
        if row.is_some_and(|row| row.ended_ms.is_some()) && !self.live.contains_key(id) {
            // Only while it is decided about: it is let go again where this is refused.
            self.load(id).map_err(|error| unrecorded(&error))?;
            self.touched.insert(id.to_owned());
        }
        self.must_steer(id, by)?;
        if asked.again {
            must_be_human(by, "run a step a second time")?;
        }
        let history = self.store.history(id, 0).map_err(|error| unrecorded(&error))?;
        self.try_change(id, |flow| flow.rewind(&history, asked, now_ms()))
    }

    pub(super) fn not_open(&self, id: &str) -> Trouble {
        match self.store.row(id) {
            Ok(Some(Row { ended_ms: Some(_), .. })) => Trouble::new("ended", format!("{id} has ended")),
            Ok(Some(_)) => Trouble::new("damaged", format!("the history of {id} cannot be read")),
            Ok(None) => no_such_flow(id),
            Err(error) => unrecorded(&error),
        }
    }
}

/// The name of a text: its SHA-256.
pub(super) fn digest(text: &str) -> String {
    holdfast_types::hex_text(&Sha256::digest(text.as_bytes()))
}

/// Random: an id that is used again later is another flow, with other keys.
pub(super) fn nonce() -> Result<String, Trouble> {
    let mut nonce = [0; 6];
    getrandom::fill(&mut nonce).map_err(|e| Trouble::new("internal", format!("cannot get random bytes: {e}")))?;
    Ok(holdfast_types::hex_text(&nonce))
}

fn no_such_flow(id: &str) -> Trouble {
    Trouble::new("no_such_flow", format!("no flow {id}")).hint("list them: holdfast flow ls --all")
}

fn must_be_human(by: &Actor, what: &str) -> Result<(), Trouble> {
    match by.handle.class() {
        ActorClass::Human => Ok(()),
        ActorClass::Agent | ActorClass::Service | ActorClass::Device => {
            Err(Trouble::new("denied", format!("{} may not {what}; only humans may", by.handle)))
        }
    }
}
