//! Looking at a session: its screen, its output, a terminal's first paint.

use super::Session;
use crate::clients::Client;
use crate::disk::at_disk;
use crate::notes::About;
use holdfast_abi::protocol::{RIGHT_WRITE, ToKeeper};
use holdfast_abi::ring::{Copied, Ring};
use holdfast_authority::{Ask, Input, OperatorId};
use holdfast_store::history::Past;
use holdfast_types::{Actor, Size};
use holdfast_wire::params::{
    Answers, AttachAnswer, AttachParams, Form, Gap, Life, PaintParams, Painted, ReadAnswer, ReadParams, ScreenAnswer,
    ScreenParams, UpdateAnswer, UpdateParams,
};
use holdfast_wire::{Code, Fault, Message};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// Most bytes in one answer.
const READ_BYTES_MAX: u32 = 1024 * 1024;
/// How long a first paint waits for the terminal to take the client's size.
const RESIZE_WAIT: Duration = Duration::from_millis(300);

/// How long a client that outlived the last host may be ahead of its keeper's word that it is there.
const JOINED_WAIT: Duration = Duration::from_secs(2);

/// A client's connection to this host: its number, and where events for it go.
pub type Peer = (u64, UnboundedSender<Box<Message>>);

/// Somebody waits for output until this is dropped: also where the question is given up half-way.
pub(super) struct Watcher<'a>(&'a Session);

impl Watcher<'_> {
    fn of(session: &Session) -> Watcher<'_> {
        session.watchers.set(session.watchers.get() + 1);
        Watcher(session)
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.0.watchers.set(self.0.watchers.get() - 1);
    }
}

impl Session {
    /// Brings the screen up to the head.
    pub(super) fn look(&self) {
        let mut state = self.state.borrow_mut();
        let ended_ring = if state.ring.is_none() { self.open_ring().ok() } else { None };
        let mut replies = Vec::new();
        if let Some(ring) = &ended_ring {
            let mut buffer = Vec::new();
            while state.picture.step(ring, &mut buffer).more {}
        }
        // Up to where the head is now: a program that writes faster than we draw must not keep everybody waiting.
        let head = state.ring.as_ref().map_or(0, Ring::head);
        let mut more = state.ring.is_some();
        // One step where everything is seen: a size may have come at the head.
        while more && state.picture.seen() <= head {
            replies.extend(state.feed(1, &mut more));
        }
        let due = state.clients.sort(replies);
        state.timers.rest = Some(Instant::now() + Duration::from_millis(150));
        drop(state);
        self.save_runs();
        self.nudge.notify_one();
        if let Some(link) = self.link() {
            let _ = self.type_replies(&link, due);
        }
    }

    /// Reads the keyframe off this thread where a look needs it.
    pub(super) async fn warm(&self) {
        let cold = self.state.borrow().picture.cold();
        if let Some(cold) = cold
            && let Ok(brought) = at_disk(move || Ok(cold.read())).await
        {
            self.state.borrow_mut().picture.bring(brought);
        }
    }

    /// Reads the files for so many lines of history, off this thread.
    async fn past(&self, lines: u32) -> Option<Past> {
        self.warm().await;
        if lines == 0 {
            return None;
        }
        self.look();
        let wanted = self.state.borrow_mut().picture.past(lines)?;
        at_disk(move || Ok(wanted.read())).await.ok()
    }

    /// Get the screen as text.
    pub async fn screen(&self, params: &ScreenParams) -> ScreenAnswer {
        let past = self.past(params.history).await;
        self.screen_behind(params, past.as_ref())
    }

    /// The screen as text, with what was read of its history.
    pub(super) fn screen_behind(&self, params: &ScreenParams, past: Option<&Past>) -> ScreenAnswer {
        self.look();
        let mut state = self.state.borrow_mut();
        let mut history = Vec::new();
        if params.history > 0 {
            let mut encoded = state.picture.history(params.history, past).encoded;
            encoded.extend_from_slice(&state.picture.screen().open_history());
            let text = if params.ansi {
                String::from_utf8_lossy(&encoded).into_owned()
            } else {
                holdfast_screen::history_text(&encoded)
            };
            history = text.lines().map(str::to_owned).collect();
            history.drain(..history.len().saturating_sub(params.history as usize));
        }
        let gap = state.picture.gap();
        let screen = state.picture.screen();
        let rows = if params.ansi {
            screen.rows_ansi().iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
        } else {
            screen.rows_text()
        };
        ScreenAnswer {
            offset: screen.offset(),
            size: screen.size(),
            rows,
            history,
            cursor: screen.cursor(),
            alternate: screen.alternate(),
            application_cursor: screen.application_cursor(),
            title: screen.title().to_owned(),
            gap,
        }
    }

    /// The screen for a terminal of this size.
    pub async fn paint_for(&self, params: &PaintParams, actor: &Actor) -> (Painted, Vec<u8>) {
        let past = self.past(if params.history { u32::MAX } else { 0 }).await;
        // One that has not reported back yet is painted all the same; it says from where it answers.
        let answers = params.answers.filter(|client| self.own_client(*client, actor).is_ok());
        self.paint(&PaintParams { answers, ..params.clone() }, past.as_ref())
    }

    fn paint(&self, params: &PaintParams, past: Option<&Past>) -> (Painted, Vec<u8>) {
        self.look();
        let mut state = self.state.borrow_mut();
        let history = params.history.then(|| state.picture.history(u32::MAX, past).encoded);
        let writer = state.writer();
        let screen = state.picture.screen();
        let size = screen.size();
        let offset = screen.offset();
        if size == params.size || params.remote {
            let bytes = screen.repaint(history.as_deref());
            if let Some(client) = params.answers.filter(|client| writer == Some(*client)) {
                // In the same step: between the two the host would answer what the terminal answers too.
                state.clients.start_answering(client, offset);
            }
            return (Painted { offset, size, form: Form::Repaint, history_bytes: 0 }, bytes);
        }
        let mut bytes = Vec::new();
        if let Some(mut history) = history {
            history.extend_from_slice(&screen.open_history());
            holdfast_screen::history_ansi(&history, &mut bytes);
        }
        let history_bytes = bytes.len();
        bytes.extend_from_slice(&screen.keyframe());
        (Painted { offset, size, form: Form::Keyframe, history_bytes }, bytes)
    }

    /// Attaches a terminal: admits it to the keeper and paints it.
    pub async fn attach(
        &self,
        params: &AttachParams,
        actor: &Actor,
        peer: Peer,
    ) -> Result<(AttachAnswer, Vec<u8>), Fault> {
        let link = self.running().await?;
        self.warm().await;
        if let Some(resume) = params.resume {
            let known = || self.state.borrow_mut().clients.by_connection(resume.connection).map(|_| ());
            self.until(Some(JOINED_WAIT), known).await;
            return self.resume(params, resume, actor, peer).map(|answer| (answer, Vec::new()));
        }
        let token = crate::random_token();
        let id = self.new_operator(actor)?;
        self.state.borrow_mut().clients.add(Client {
            id,
            actor: Some(actor.clone()),
            told_writes: None,
            pid: params.pid,
            tty: params.tty.clone(),
            size: Some(params.size),
            read_only: params.read_only,
            remote: params.remote,
            since_ms: crate::now_ms(),
            token,
            connection: None,
            peer: Some(peer),
        });
        // It may have come by the turn before it was here.
        self.after_decision();
        self.follow_environment(&params.env);
        if !params.remote {
            let rights = if params.read_only { 0 } else { RIGHT_WRITE };
            link.send(ToKeeper::Admit { token, rights }).map_err(|e| self.keeper_failed(&e))?;
        }
        let fits = self.state.borrow().size == params.size;
        if !fits && self.state.borrow().clients.is_only_writer(id) {
            // Where somebody else has the turn the size is that one's: the terminal shows what fits.
            if self.ask(actor, Some(id), Ask::Resize { size: params.size }, None).is_ok() {
                self.state.borrow_mut().clients.sized(id, params.size);
                self.resize(params.size).await?;
            }
        }
        let (painted, bytes) =
            self.paint(&PaintParams { size: params.size, remote: params.remote, ..PaintParams::default() }, None);
        let mut state = self.state.borrow_mut();
        let writer = state.writer();
        if state.clients.candidate(painted.size, writer).is_some_and(|c| c.id == id) && painted.form == Form::Repaint {
            state.clients.start_answering(id, painted.offset);
        }
        let mut due = Vec::new();
        if state.clients.answers(id) {
            // It may have been asked to before it had a screen: what came until then is the host's.
            let on = painted.form == Form::Repaint;
            due = state.clients.answering(id, Answers { on, left: 0, from: painted.offset });
        }
        drop(state);
        self.type_replies(&link, due).map_err(|e| self.keeper_failed(&e))?;
        let mut answer = self.attach_answer(id, painted, token);
        if params.remote {
            // Of no use there: ring and keeper are this machine's.
            (answer.ring, answer.keeper, answer.token) = Default::default();
        }
        Ok((answer, bytes))
    }

    /// An actor that may observe becomes an operator, with a number of its own.
    fn new_operator(&self, actor: &Actor) -> Result<u32, Fault> {
        let operator = self.state.borrow().authority.next_operator();
        let again = operator.0 > 1;
        self.decide(Input::Attached { by: actor.clone(), operator })?;
        self.metrics.attached(again);
        Ok(operator.0)
    }

    fn attach_answer(&self, client: u32, painted: Painted, token: [u8; 16]) -> AttachAnswer {
        let session = self.view();
        let mut state = self.state.borrow_mut();
        let has_history = state.picture.has_history();
        let fence = state.authority.state().fence();
        let writes = state.writer() == Some(client);
        if let Some(known) = state.clients.get(client) {
            known.told_writes = writes.then_some(fence);
        }
        AttachAnswer {
            has_history,
            session,
            client,
            painted,
            ring: self.dir.join("ring").to_string_lossy().into_owned(),
            keeper: self.socket.to_string_lossy().into_owned(),
            token: holdfast_types::hex_text(&token),
            fence,
            writes,
            answers: state.clients.answers(client),
        }
    }

    /// A client that outlived the last host reports back.
    fn resume(
        &self,
        params: &AttachParams,
        resume: holdfast_wire::params::Resume,
        actor: &Actor,
        peer: Peer,
    ) -> Result<AttachAnswer, Fault> {
        let known = self.state.borrow_mut().clients.by_connection(resume.connection).map(|client| client.id);
        let Some(known) = known else {
            return Err(Fault::new(Code::NotFound, "the keeper does not know that connection").hint("attach anew"));
        };
        // Who was away for too long is an operator like a new one.
        let operator = OperatorId(resume.client);
        let id = match self.decide(Input::Resumed { by: actor.clone(), operator }) {
            Ok(_) => resume.client,
            Err(_) => self.new_operator(actor)?,
        };
        let mut state = self.state.borrow_mut();
        state.clients.rename(known, id);
        let head = state.ring.as_ref().map_or(0, Ring::head);
        let Some(client) = state.clients.get(id) else {
            return Err(Fault::new(Code::NotFound, "the connection has just gone").hint("attach anew"));
        };
        client.actor = Some(actor.clone());
        client.size = Some(params.size);
        client.tty.clone_from(&params.tty);
        client.pid = params.pid;
        client.peer = Some(peer);
        let (id, token) = (client.id, client.token);
        if resume.answers {
            state.clients.start_answering(id, 0);
        }
        let painted = Painted { offset: head, size: state.size, form: Form::Repaint, history_bytes: 0 };
        let due = state.clients.release();
        state.timers.rearm = Some(Instant::now());
        // It may have typed, or changed its size, while nobody was there to see.
        let resize = (state.clients.sizes(id) && params.size != state.size).then_some(params.size);
        drop(state);
        if let Some(link) = self.link() {
            let failed = |e: std::io::Error| self.keeper_failed(&e);
            self.type_replies(&link, due).map_err(failed)?;
            if let Some(size) = resize
                && self.ask(actor, Some(id), Ask::Resize { size }, None).is_ok()
            {
                self.state.borrow_mut().clients.sized(id, size);
                self.say_size(size);
            }
        }
        // It may be the writer: now the keeper can be told by which connection.
        self.say_writer();
        self.after_decision();
        Ok(self.attach_answer(id, painted, token))
    }

    /// What changed at an attached terminal.
    pub async fn update(&self, params: &UpdateParams, actor: &Actor) -> Result<UpdateAnswer, Fault> {
        let gone = || Fault::new(Code::NotFound, format!("no client {} is attached", params.client));
        let number = self.state.borrow().clients.number(params.client, params.connection).ok_or_else(gone)?;
        self.own_client(number, actor)?;
        let mut due = Vec::new();
        let mut resize = None;
        if params.answers.is_some_and(|answers| !answers.on) {
            // What it answered must be behind the screen before the host answers again.
            self.look();
        }
        {
            let mut state = self.state.borrow_mut();
            let id = number;
            let client = state.clients.get(id).ok_or_else(gone)?;
            client.connection = params.connection.or(client.connection);
            if let Some(size) = params.size {
                client.size = Some(size);
                resize = state.clients.sizes(id).then_some(size);
            }
            if let Some(answers) = params.answers {
                due = state.clients.answering(id, answers);
            }
            state.timers.rearm = Some(Instant::now());
        }
        self.nudge.notify_one();
        let link = self.running().await?;
        self.type_replies(&link, due).map_err(|e| self.keeper_failed(&e))?;
        if let Some(size) = resize
            && self.state.borrow().clients.wants_size(number).is_some()
            && self.ask(actor, Some(number), Ask::Resize { size }, None).is_ok()
        {
            self.state.borrow_mut().clients.sized(number, size);
            self.resize(size).await?;
        }
        self.appoint();
        Ok(UpdateAnswer { size: self.state.borrow().size })
    }

    /// Gives the terminal another size and waits until it has it.
    pub async fn resize(&self, size: Size) -> Result<(), Fault> {
        self.running().await?;
        self.say_size(size);
        self.until(Some(RESIZE_WAIT), || (self.state.borrow().size == size || !self.is_live()).then_some(())).await;
        Ok(())
    }

    /// Waits until `ready` gives something; `None` after the time is up.
    pub(crate) async fn until<T>(&self, limit: Option<Duration>, ready: impl Fn() -> Option<T>) -> Option<T> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that a change between the two is not missed.
            changed.as_mut().enable();
            if let Some(value) = ready() {
                return Some(value);
            }
            match deadline {
                Some(at) => tokio::time::timeout_at(at, changed).await.ok()?,
                None => changed.await,
            }
        }
    }

    /// Output bytes from an offset on.
    pub async fn read(&self, params: &ReadParams) -> Result<(ReadAnswer, Vec<u8>), Fault> {
        let wanted = params.max.unwrap_or(READ_BYTES_MAX).clamp(1, READ_BYTES_MAX) as usize;
        let (first, bytes) = self.read_now(params.from, wanted)?;
        if !bytes.is_empty() || first.end || params.wait_ms == 0 {
            return Ok((first, bytes));
        }
        let from = first.to;
        let size = self.state.borrow().size;
        let watcher = self.await_output();
        let limit = Duration::from_millis(params.wait_ms);
        self.until(Some(limit), || {
            let state = self.state.borrow();
            // Without a ring it has ended; or it is so new that its keeper has not answered yet.
            let grown = match &state.ring {
                Some(ring) => ring.head() > from,
                None => state.life != Life::Running,
            };
            (grown || state.size != size).then_some(())
        })
        .await;
        drop(watcher);
        let (mut answer, bytes) = self.read_now(Some(from), wanted)?;
        answer.gap = first.gap.or(answer.gap);
        Ok((answer, bytes))
    }

    /// Until this is dropped output that comes is told to who waits for a change.
    pub(super) fn await_output(&self) -> Watcher<'_> {
        let watcher = Watcher::of(self);
        self.state.borrow_mut().timers.rearm = Some(Instant::now());
        self.nudge.notify_one();
        watcher
    }

    fn read_now(&self, from: Option<u64>, wanted: usize) -> Result<(ReadAnswer, Vec<u8>), Fault> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        // Asked before the head is loaded: what an ended session has is final.
        let ended = state.ring.is_none() && state.life != Life::Running;
        let ended_ring = match &state.ring {
            Some(_) => None,
            None => Some(self.open_ring().map_err(|error| Fault::new(Code::Damaged, error.to_string()))?),
        };
        let ring = state.ring.as_ref().or(ended_ring.as_ref()).expect("one of the two");
        let asked = from.unwrap_or_else(|| ring.oldest());
        let mut position = asked;
        loop {
            let mut bytes = vec![0; wanted.min(ring.head().saturating_sub(position) as usize)];
            match ring.copy(position, &mut bytes) {
                Copied::Bytes(count) => {
                    bytes.truncate(count);
                    // Behind the bytes: the log has every size they were written under.
                    state.sizes.take(ring, state.size);
                    let (mut size, next) = state.sizes.at(position);
                    let to = next.map_or(position + count as u64, |next| next.min(position + count as u64));
                    bytes.truncate((to - position) as usize);
                    let head = ring.head();
                    if bytes.is_empty() {
                        size = state.size;
                    }
                    let gap = (asked < position).then_some(Gap { from: asked, to: position });
                    if gap.is_some() {
                        self.metrics.output_gap();
                    }
                    let end = ended && to >= head;
                    return Ok((ReadAnswer { gap, from: position, to, head, end, size }, bytes));
                }
                Copied::Lapped { oldest } => position = oldest,
                Copied::Ahead { newest } => {
                    return Err(Fault::new(
                        Code::Ahead,
                        format!("offset {asked} does not exist yet; the newest is {newest}"),
                    )
                    .hint("continue from the `to` of the last answer"));
                }
            }
        }
    }

    /// Offers the latest client's variables to the session: a file its shell can source, and a stable ssh-agent link.
    fn follow_environment(&self, env: &[String]) {
        let mut text = String::from("# Variables of the client that attached last. Source this file to use them.\n");
        for (key, value) in env.iter().filter_map(|pair| pair.split_once('=')) {
            let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !plain || key.is_empty() {
                continue;
            }
            if key == "SSH_AUTH_SOCK" {
                let link = &self.agent_link;
                if Path::new(value) != link.as_path() {
                    let beside = link.with_extension("agent.new");
                    let _ = std::fs::remove_file(&beside);
                    let moved =
                        std::os::unix::fs::symlink(value, &beside).and_then(|()| std::fs::rename(&beside, link));
                    if moved.is_err() {
                        continue;
                    }
                }
                text.push_str(&format!("export SSH_AUTH_SOCK='{}'\n", link.display()));
                continue;
            }
            text.push_str(&format!("export {key}='{}'\n", value.replace('\'', "'\\''")));
        }
        let offered = crate::store::replace(&self.dir, "env", text.as_bytes());
        self.state.borrow_mut().notes.wrote(About::Variables, "the client's variables could not be offered", &offered);
    }

    pub(crate) fn keeper_failed(&self, error: &std::io::Error) -> Fault {
        Fault::new(Code::Busy, format!("cannot reach the keeper of {}: {error}", self.name())).hint("try again")
    }
}
