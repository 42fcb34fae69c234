//! What the host does for clients, as in the host's `session/looks` and `session/acts`.

use super::{Crashed, Host};
use crate::ctx::Ctx;
use holdfast_abi::protocol::{RIGHT_WRITE, ToKeeper, Token, refused};
use holdfast_abi::ring::Copied;
use holdfast_host::parts::Client;
use holdfast_types::Size;
use holdfast_wire::params::{Answers, Form, Gap, Painted, Resume};
use holdfast_wire::{Body, Message};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const RESIZE_WAIT_MS: u64 = 300;
const ROOM_WAIT_MS: u64 = 5;
const READ_BYTES_MAX: usize = 64 * 1024;

/// What a client asks.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Attach { size: Size, read_only: bool, resume: Option<Resume> },
    Paint { size: Size, history: bool },
    Update { client: u32, connection: u32, size: Option<Size>, answers: Option<Answers> },
    Read { from: u64 },
    Send { stream: u64, seq: u64, bytes: Vec<u8> },
}

/// What it is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    Attached(Box<Attached>),
    Resumed { client: u32 },
    Painted { painted: Painted, bytes: Vec<u8> },
    Updated { size: Size },
    Read { gap: Option<Gap>, from: u64, bytes: Vec<u8> },
    Sent,
    Refused,
}

/// The answer to an attach.
#[derive(Debug)]
pub(crate) struct Attached {
    pub client: u32,
    pub painted: Painted,
    pub bytes: Vec<u8>,
    pub token: Token,
    pub fence: u64,
    pub answers: bool,
    pub has_history: bool,
}

/// A client's connection to a host; answers and events come in one order.
pub(crate) struct Line {
    requests: VecDeque<(u64, Request)>,
    next_id: u64,
    events: UnboundedSender<Message>,
    heard: UnboundedReceiver<Message>,
    answers: BTreeMap<u64, Answer>,
    pub host_closed: bool,
    pub client_closed: bool,
}

/// What a line has to say.
pub(crate) enum Incoming {
    Answer(u64, Answer),
    Event(String, serde_json::Value),
    Nothing,
    Closed,
}

impl Line {
    pub fn new() -> Line {
        let (events, heard) = unbounded_channel();
        Line {
            requests: VecDeque::new(),
            next_id: 0,
            events,
            heard,
            answers: BTreeMap::new(),
            host_closed: false,
            client_closed: false,
        }
    }

    pub fn ask(&mut self, request: Request) -> u64 {
        self.next_id += 1;
        self.requests.push_back((self.next_id, request));
        self.next_id
    }

    pub fn hear(&mut self) -> Incoming {
        let Ok(message) = self.heard.try_recv() else {
            return if self.host_closed { Incoming::Closed } else { Incoming::Nothing };
        };
        match message.body {
            Body::Event { method, params } => Incoming::Event(method, params),
            Body::Answer { id, .. } => self.answers.remove(&id).map_or(Incoming::Nothing, |a| Incoming::Answer(id, a)),
            Body::Request { .. } => Incoming::Nothing,
        }
    }

    fn answer(&mut self, id: u64, answer: Answer) {
        self.answers.insert(id, answer);
        let body = Body::Answer { id, result: Ok(serde_json::Value::Null) };
        let _ = self.events.send(Message::plain(body));
    }
}

/// Something that waits for the session's size.
pub(super) struct Task {
    line: usize,
    id: u64,
    size: Size,
    until_ms: u64,
    /// The client that attaches, with its token; otherwise an update.
    attaches: Option<(u32, Token)>,
}

/// Input on its way for somebody.
pub(super) struct Sending {
    line: usize,
    id: u64,
    bytes: Vec<u8>,
    retry_ms: Option<u64>,
}

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sent {
    Written,
    Refused(u8),
}

impl Host {
    /// One request of somebody, and what became possible since.
    pub fn serve_turn(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return Ok(());
        }
        self.finish_tasks(ctx)?;
        self.retry_sends(ctx)?;
        let count = ctx.lines.len();
        for n in 0..count {
            let line = (n + ctx.now as usize) % count;
            if ctx.lines[line].host_closed {
                continue;
            }
            if let Some((id, request)) = ctx.lines[line].requests.pop_front() {
                return self.answer(ctx, line, id, request);
            }
            if ctx.lines[line].client_closed {
                ctx.lines[line].host_closed = true;
                self.peer_gone(ctx, line as u64);
                return Ok(());
            }
        }
        Ok(())
    }

    fn answer(&mut self, ctx: &mut Ctx, line: usize, id: u64, request: Request) -> Result<(), Crashed> {
        let answer = match request {
            Request::Attach { size, resume: Some(resume), .. } => self.resume(ctx, line, size, resume)?,
            Request::Attach { size, read_only, resume: None } => return self.attach(ctx, line, id, size, read_only),
            Request::Paint { size, history } => {
                let (painted, bytes) = self.paint(ctx, size, history)?;
                Answer::Painted { painted, bytes }
            }
            Request::Update { client, connection, size, answers } => {
                return self.update(ctx, line, id, client, connection, size, answers);
            }
            Request::Read { from } => self.read(from),
            Request::Send { stream, seq, bytes } => {
                self.say(ctx, ToKeeper::Input { fence: self.fence, stream, seq, bytes: &bytes })?;
                self.typed.insert((stream, seq), Sending { line, id, bytes, retry_ms: None });
                return Ok(());
            }
        };
        self.reach()?;
        ctx.lines[line].answer(id, answer);
        Ok(())
    }

    fn attach(&mut self, ctx: &mut Ctx, line: usize, id: u64, size: Size, read_only: bool) -> Result<(), Crashed> {
        let token: Token = ctx.rng.u128(..).to_le_bytes();
        let peer = Some((line as u64, ctx.lines[line].events.clone()));
        let client = self.clients.add(|id| Client {
            id,
            pid: 0,
            tty: String::new(),
            size: Some(size),
            read_only,
            since_ms: 0,
            token,
            connection: None,
            peer,
        });
        ctx.counts.attaches += 1;
        ctx.note(format_args!("host: client {client} attaches by line {line}, {size}, read only {read_only}"));
        self.say(ctx, ToKeeper::Admit { token, rights: if read_only { 0 } else { RIGHT_WRITE } })?;
        let resizes = self.clients.is_only_writer(client);
        let until_ms = if resizes { self.resize(ctx, size)? } else { ctx.now };
        self.tasks.push(Task { line, id, size, until_ms, attaches: Some((client, token)) });
        self.finish_tasks(ctx)
    }

    /// As `Session::resize`; gives until when it is waited for.
    fn resize(&mut self, ctx: &mut Ctx, size: Size) -> Result<u64, Crashed> {
        if self.size == size {
            return Ok(ctx.now);
        }
        self.say(ctx, ToKeeper::Resize { fence: self.fence, cols: size.cols(), rows: size.rows() })?;
        Ok(ctx.now + RESIZE_WAIT_MS)
    }

    fn finish_tasks(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        while let Some(at) = self.tasks.iter().position(|task| task.size == self.size || task.until_ms <= ctx.now) {
            let task = self.tasks.remove(at);
            let answer = match task.attaches {
                Some((client, token)) => self.first_paint(ctx, client, task.size, token)?,
                None => {
                    self.appoint(ctx);
                    Answer::Updated { size: self.size }
                }
            };
            self.reach()?;
            ctx.lines[task.line].answer(task.id, answer);
        }
        Ok(())
    }

    fn first_paint(&mut self, ctx: &mut Ctx, client: u32, size: Size, token: Token) -> Result<Answer, Crashed> {
        let (painted, bytes) = self.paint(ctx, size, false)?;
        if self.clients.candidate(painted.size).is_some_and(|c| c.id == client) && painted.form == Form::Repaint {
            self.clients.start_answering(client, painted.offset);
        }
        let has_history = self.picture.has_history();
        let (fence, answers) = (self.fence, self.clients.answers(client));
        Ok(Answer::Attached(Box::new(Attached { client, painted, bytes, token, fence, answers, has_history })))
    }

    fn resume(&mut self, ctx: &mut Ctx, line: usize, size: Size, resume: Resume) -> Result<Answer, Crashed> {
        let peer = Some((line as u64, ctx.lines[line].events.clone()));
        let Some(client) = self.clients.by_connection(resume.connection) else { return Ok(Answer::Refused) };
        client.size = Some(size);
        client.peer = peer;
        let id = client.id;
        ctx.counts.resumes += 1;
        ctx.note(format_args!(
            "host: connection {} is back as client {id}, answers {}",
            resume.connection, resume.answers
        ));
        if resume.answers {
            self.clients.start_answering(id, 0);
        }
        let due = self.clients.release();
        self.timers.rearm = Some(ctx.now);
        self.type_replies(ctx, due)?;
        if self.clients.sizes(id) && size != self.size {
            self.say(ctx, ToKeeper::Resize { fence: self.fence, cols: size.cols(), rows: size.rows() })?;
        }
        Ok(Answer::Resumed { client: id })
    }

    /// As `Session::look`: brings the screen up to the head.
    pub fn look(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let mut replies = Vec::new();
        let mut more = true;
        while more {
            replies.extend(self.feed(ctx, u32::MAX, &mut more));
        }
        let due = self.clients.sort(replies);
        self.timers.rest = Some(ctx.now + 150);
        self.type_replies(ctx, due)
    }

    fn paint(&mut self, ctx: &mut Ctx, size: Size, history: bool) -> Result<(Painted, Vec<u8>), Crashed> {
        self.look(ctx)?;
        ctx.counts.paints += 1;
        let history = history.then(|| self.picture.history(u32::MAX).encoded);
        let screen = self.picture.screen();
        let (offset, screen_size) = (screen.offset(), screen.size());
        if screen_size == size {
            let bytes = screen.repaint(history.as_deref());
            return Ok((Painted { offset, size: screen_size, form: Form::Repaint, history_bytes: 0 }, bytes));
        }
        // What a client of another size draws is its own business: nothing in it reaches its terminal as it is.
        Ok((Painted { offset, size: screen_size, form: Form::Keyframe, history_bytes: 0 }, Vec::new()))
    }

    #[allow(clippy::too_many_arguments)] // the parameters of one request
    fn update(
        &mut self,
        ctx: &mut Ctx,
        line: usize,
        id: u64,
        client: u32,
        connection: u32,
        size: Option<Size>,
        answers: Option<Answers>,
    ) -> Result<(), Crashed> {
        let mut due = Vec::new();
        let mut resize = None;
        if answers.is_some_and(|answers| !answers.on) {
            self.look(ctx)?;
        }
        let number = self.clients.number(client, Some(connection));
        let (Some(client), Some(known)) = (number, number.and_then(|number| self.clients.get(number))) else {
            ctx.lines[line].answer(id, Answer::Refused);
            return Ok(());
        };
        known.connection = Some(connection);
        if let Some(size) = size {
            known.size = Some(size);
            resize = self.clients.sizes(client).then_some(size);
        }
        ctx.note(format_args!("host: client {client} says size {size:?}, answers {answers:?}"));
        if let Some(answers) = answers {
            due = self.clients.answering(client, answers);
        }
        self.timers.rearm = Some(ctx.now);
        self.type_replies(ctx, due)?;
        let until_ms = match resize {
            Some(size) => self.resize(ctx, size)?,
            None => ctx.now,
        };
        self.tasks.push(Task { line, id, size: resize.unwrap_or(self.size), until_ms, attaches: None });
        self.finish_tasks(ctx)
    }

    /// As `Session::read_now`.
    fn read(&mut self, asked: u64) -> Answer {
        let mut position = asked;
        loop {
            let mut bytes = vec![0; READ_BYTES_MAX.min(self.ring.head().saturating_sub(position) as usize)];
            match self.ring.copy(position, &mut bytes) {
                Copied::Bytes(count) => {
                    bytes.truncate(count);
                    let gap = (asked < position).then_some(Gap { from: asked, to: position });
                    return Answer::Read { gap, from: position, bytes };
                }
                Copied::Lapped { oldest } => position = oldest,
                Copied::Ahead { .. } => return Answer::Refused,
            }
        }
    }

    pub(super) fn answer_typed(&mut self, ctx: &mut Ctx, stream: u64, seq: u64, sent: Sent) {
        let Some(sending) = self.typed.get_mut(&(stream, seq)) else { return };
        match sent {
            Sent::Written => {
                ctx.lines[sending.line].answer(sending.id, Answer::Sent);
                self.typed.remove(&(stream, seq));
            }
            Sent::Refused(refused::FULL) => sending.retry_ms = Some(ctx.now + ROOM_WAIT_MS),
            Sent::Refused(_) => sending.retry_ms = Some(ctx.now),
        }
    }

    fn retry_sends(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let due: Vec<(u64, u64)> = self
            .typed
            .iter()
            .filter(|(_, s)| s.retry_ms.is_some_and(|at| at <= ctx.now))
            .map(|(key, _)| *key)
            .collect();
        for (stream, seq) in due {
            self.drain_log(ctx)?;
            let Some(sending) = self.typed.get_mut(&(stream, seq)) else { continue };
            sending.retry_ms = None;
            let bytes = sending.bytes.clone();
            self.say(ctx, ToKeeper::Input { fence: self.fence, stream, seq, bytes: &bytes })?;
        }
        Ok(())
    }

    /// As `Session::peer_gone`.
    fn peer_gone(&mut self, ctx: &mut Ctx, peer: u64) {
        let mut never_joined = Vec::new();
        let ids: Vec<u32> =
            self.clients.iter().filter(|c| c.peer.as_ref().is_some_and(|(id, _)| *id == peer)).map(|c| c.id).collect();
        for id in ids {
            if let Some(client) = self.clients.get(id) {
                client.peer = None;
                if client.connection.is_none() {
                    never_joined.push(id);
                }
            }
        }
        for id in &never_joined {
            self.clients.remove(*id, Some(0));
        }
        if !never_joined.is_empty() {
            self.timers.rearm = Some(ctx.now);
            self.appoint(ctx);
        }
    }
}
