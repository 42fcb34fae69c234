//! Attaching to a session and resizing it: a terminal's first paint, the screen, the output, waiting for a change.

use super::{Session, State};
use crate::shares::{aside, here};
use holdfast_abi::ring::Copied;
use holdfast_session::{Arrival, Resumption, Updated};
use holdfast_store::history::Past;
use holdfast_types::{Actor, Offset, Size};
use holdfast_wire::params::{
    AttachAnswer, AttachParams, Form, Gap, Life, PaintParams, Painted, ReadAnswer, ReadParams, ScreenAnswer,
    ScreenParams, UpdateAnswer, UpdateParams,
};
use holdfast_wire::{Code, Fault, Message};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// Most bytes in one answer.
const READ_BYTES_MAX: u32 = 1024 * 1024;
/// How long a first paint waits for the terminal to take the client's size.
const RESIZE_WAIT: Duration = Duration::from_millis(300);

/// How long a client that outlived the last host may be ahead of its keeper's word that it is there.
const JOINED_WAIT: Duration = Duration::from_secs(2);

/// What is said to somebody who names a client that is not its own.
pub(super) fn not_attached(client: u32) -> Fault {
    Fault::new(Code::NotAttached, format!("no client {client} is attached by this connection")).hint("attach again")
}

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
        let ended_ring = if self.state.borrow().ring.is_none() { self.open_ring().ok() } else { None };
        if let Some(ring) = &ended_ring {
            let mut buffer = Vec::new();
            while self.state.borrow_mut().picture.step(ring, &mut buffer).more {}
        }
        self.with_core(|core, held, now| core.look(held, now));
        self.nudge.notify_one();
    }

    /// Reads the keyframe off this thread where a look needs it.
    pub(super) async fn warm(&self) {
        let cold = self.state.borrow().picture.cold();
        if let Some(cold) = cold
            && let Ok(brought) = aside(move || Ok(cold.read())).await
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
        here(|| self.look()).await;
        let wanted = self.state.borrow_mut().picture.past(lines)?;
        aside(move || Ok(wanted.read())).await.ok()
    }

    /// Get the screen as text.
    pub async fn screen(&self, params: &ScreenParams) -> ScreenAnswer {
        let past = self.past(params.history).await;
        here(|| self.screen_behind(params, past.as_ref())).await
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
    pub async fn paint_for(&self, params: &PaintParams, actor: &Actor, peer: u64) -> (Painted, Vec<u8>) {
        let wanted = || self.state.borrow_mut().picture.lines_behind(params.behind).0;
        let past = self.past(if params.history { wanted() } else { 0 }).await;
        // One that has not reported back yet is painted all the same; it says from where it answers.
        let answers = params.answers.filter(|client| self.own_client(*client, actor, peer).is_ok());
        here(|| self.paint(&PaintParams { answers, ..params.clone() }, past.as_ref())).await
    }

    fn paint(&self, params: &PaintParams, past: Option<&Past>) -> (Painted, Vec<u8>) {
        self.look();
        let mut state = self.state.borrow_mut();
        let (drained, undrained) = state.picture.lines_behind(params.behind);
        let history = params.history.then(|| state.picture.history(drained, past).encoded);
        let writer = state.writer();
        let screen = state.picture.screen();
        let size = screen.size();
        let offset = screen.offset();
        if !params.draws && (size == params.size || params.remote) {
            let bytes = screen.repaint_behind(history.as_deref(), undrained);
            if let Some(client) = params.answers.filter(|client| writer == Some(*client)) {
                // In the same step: between the two the host would answer what the terminal answers too.
                state.core.clients.start_answering(client, offset);
            }
            return (Painted { offset, size, form: Form::Repaint, history_bytes: 0 }, bytes);
        }
        let mut bytes = Vec::new();
        if let Some(mut history) = history {
            history.extend_from_slice(screen.newest_open_history(undrained));
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
        self.running().await?;
        self.warm().await;
        if let Some(resume) = params.resume {
            let known = || self.state.borrow().core.joined_as(resume.token);
            self.until(Some(JOINED_WAIT), known).await;
            return self.resume(params, resume, actor, peer).map(|answer| (answer, Vec::new()));
        }
        let token = crate::random_token();
        let arrival = Arrival {
            actor: actor.clone(),
            pid: params.pid,
            tty: params.tty.clone(),
            size: params.size,
            read_only: params.read_only,
            remote: params.remote,
            draws: params.draws,
            sizes: params.sizes || !params.remote,
            peer: peer.0,
            token,
        };
        let arrived = self.with_core(|core, held, now| {
            held.peers.insert(peer.0, peer.1);
            core.arrive(held, now, arrival)
        });
        let (id, takes) = arrived.map_err(|undecided| self.undecided(&undecided))?;
        self.metrics.attached(id > 1);
        self.follow_environment(params, actor);
        if let Some(size) = takes {
            self.until_sized(size).await;
        }
        let wanted =
            PaintParams { size: params.size, remote: params.remote, draws: params.draws, ..PaintParams::default() };
        // In one step: what is asked of its terminal behind the paint it answers.
        let (painted, bytes) = here(|| {
            let (painted, bytes) = self.paint(&wanted, None);
            let whole = painted.form == Form::Repaint;
            self.with_core(|core, held, _| core.first_painted(held, id, painted.offset, painted.size, whole));
            (painted, bytes)
        })
        .await;
        let mut answer = self.attach_answer(id, painted, token);
        if params.remote {
            // Of no use there: ring and keeper are this machine's.
            (answer.ring, answer.keeper, answer.token) = Default::default();
        }
        Ok((answer, bytes))
    }

    fn attach_answer(&self, client: u32, painted: Painted, token: [u8; 16]) -> AttachAnswer {
        let session = self.view();
        let writes = self.with_core(|core, held, _| core.told_writes(held, client));
        let mut state = self.state.borrow_mut();
        let has_history = state.picture.has_history();
        let fence = state.core.fence();
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
            answers: state.core.clients.answers(client),
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
        let back = Resumption {
            was: resume,
            actor: actor.clone(),
            pid: params.pid,
            tty: params.tty.clone(),
            size: params.size,
            draws: params.draws,
            peer: peer.0,
        };
        let (resumed, head) = self.with_core(|core, held, now| {
            held.peers.insert(peer.0, peer.1);
            (core.resume(held, now, back), held.head())
        });
        let Some(id) = resumed.map_err(|undecided| self.undecided(&undecided))? else {
            return Err(Fault::new(Code::NotFound, "no client with that token is attached").hint("attach anew"));
        };
        if id != resume.client {
            self.metrics.attached(true);
        }
        let (token, size) = {
            let mut state = self.state.borrow_mut();
            let size = state.core.size;
            (state.core.clients.get(id).map_or([0; 16], |client| client.token), size)
        };
        let painted = Painted { offset: head, size, form: Form::Repaint, history_bytes: 0 };
        Ok(self.attach_answer(id, painted, token))
    }

    /// What changed at an attached terminal.
    pub async fn update(&self, params: &UpdateParams, actor: &Actor, peer: u64) -> Result<UpdateAnswer, Fault> {
        self.running().await?;
        let client = (params.client, peer);
        let updated =
            self.with_core(|core, held, now| core.update(held, now, actor, client, params.size, params.answers));
        self.nudge.notify_one();
        match updated {
            Updated::Done(Some(size)) => self.until_sized(size).await,
            Updated::Done(None) => {}
            Updated::NotAttached => return Err(not_attached(params.client)),
            Updated::MayNotType => {
                return Err(Fault::new(
                    Code::Denied,
                    format!("client {} may not type, so its terminal answers no queries", params.client),
                )
                .hint("the host answers them"));
            }
        }
        Ok(UpdateAnswer { size: self.state.borrow().core.size })
    }

    /// Waits until the terminal has the size it was asked for.
    pub(super) async fn until_sized(&self, size: Size) {
        let is_sized = || self.state.borrow().core.size == size || !self.is_live();
        self.until(Some(RESIZE_WAIT), || is_sized().then_some(())).await;
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
        let size = self.state.borrow().core.size;
        self.until_output(from, size, Some(Duration::from_millis(params.wait_ms))).await;
        let (mut answer, bytes) = self.read_now(Some(from), wanted)?;
        answer.gap = first.gap.or(answer.gap);
        Ok((answer, bytes))
    }

    /// Waits until there is output behind an offset, the session has ended, or its size is another.
    pub(crate) async fn until_output(&self, from: Offset, size: Size, limit: Option<Duration>) {
        let has_news = || {
            let state = self.state.borrow();
            // Without a ring it has ended; or it is so new that its keeper has not answered yet.
            let grown = match &state.ring {
                Some(ring) => ring.head() > from,
                None => state.life != Life::Running,
            };
            grown || state.core.size != size
        };
        if !has_news() {
            let _watcher = self.await_output();
            self.until(limit, || has_news().then_some(())).await;
        }
    }

    /// Until this is dropped output that comes is told to who waits for a change.
    pub(super) fn await_output(&self) -> Watcher<'_> {
        let watcher = Watcher::of(self);
        self.state.borrow_mut().core.timers.rearm = Some(crate::now().clock_ms);
        self.nudge.notify_one();
        watcher
    }

    pub(crate) fn read_now(&self, from: Option<u64>, wanted: usize) -> Result<(ReadAnswer, Vec<u8>), Fault> {
        let mut state = self.state.borrow_mut();
        let State { core, held: state } = &mut *state;
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
                    state.sizes.take(ring, core.size);
                    let (mut size, next) = state.sizes.at(position);
                    let to = next.map_or(position + count as u64, |next| next.min(position + count as u64));
                    bytes.truncate((to - position) as usize);
                    let head = ring.head();
                    if bytes.is_empty() {
                        size = core.size;
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
}
