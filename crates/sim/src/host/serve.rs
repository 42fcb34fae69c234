//! What the host does for clients, as in the host's `session/looks`, and in what order it hears them.

use super::{Crashed, Host};
use crate::cast::Who;
use crate::ctx::Ctx;
use crate::findings::FIRST_PAINTS_ARE_WHERE_A_HOLDER_BEGINS;
use holdfast_abi::protocol::{RIGHT_WRITE, ToKeeper, Token};
use holdfast_abi::ring::Copied;
use holdfast_authority::{Ask, Caller, Input, OperatorId, Refusal};
use holdfast_host::parts::Client;
use holdfast_types::Size;
use holdfast_wire::params::{Answers, Form, Gap, Painted, Resume};
use holdfast_wire::{Body, Message};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const RESIZE_WAIT_MS: u64 = 300;
const JOINED_WAIT_MS: u64 = 2_000;
const READ_BYTES_MAX: usize = 64 * 1024;

/// What a client asks.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Attach { who: Who, size: Size, read_only: bool, resume: Option<Resume> },
    Paint { who: Who, size: Size, history: bool, answers: Option<u32> },
    Update { who: Who, client: u32, connection: u32, size: Option<Size>, answers: Option<Answers> },
    Leave { who: Who, client: u32 },
    Read { from: u64 },
    Send { who: Who, client: Option<u32>, stream: u64, seq: u64, bytes: Vec<u8> },
    Act { who: Who, client: Option<u32>, ask: Ask },
}

/// What it is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    Attached(Box<Attached>),
    Resumed { client: u32, writes: bool, fence: u64 },
    Painted { painted: Painted, bytes: Vec<u8> },
    Updated { size: Size },
    Read { gap: Option<Gap>, from: u64, bytes: Vec<u8> },
    Sent { fence: u64 },
    Acted,
    Refused { code: &'static str },
}

/// The answer to an attach.
#[derive(Debug)]
pub(crate) struct Attached {
    pub client: u32,
    pub painted: Painted,
    pub bytes: Vec<u8>,
    pub token: Token,
    pub fence: u64,
    pub writes: bool,
    pub answers: bool,
    pub has_history: bool,
}

/// A client's connection to a host; answers and events come in one order.
pub(crate) struct Line {
    requests: VecDeque<(u64, Request)>,
    next_id: u64,
    events: UnboundedSender<Box<Message>>,
    heard: UnboundedReceiver<Box<Message>>,
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

    pub(super) fn answer(&mut self, id: u64, answer: Answer) {
        self.answers.insert(id, answer);
        let body = Body::Answer { id, result: Ok(serde_json::Value::Null) };
        let _ = self.events.send(Box::new(Message::plain(body)));
    }
}

/// Something that waits for the session's size, or for the keeper to tell of a client.
pub(super) struct Task {
    line: usize,
    id: u64,
    until_ms: u64,
    what: Waits,
}

enum Waits {
    /// An attach or an update.
    Size {
        size: Size,
        /// The client that attaches, with its token; otherwise an update.
        attaches: Option<(u32, Token)>,
    },
    Joined {
        who: Who,
        size: Size,
        resume: Resume,
    },
}

impl Host {
    /// One request of somebody, and what became possible since.
    pub fn serve_turn(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        self.worked_ms = ctx.now;
        if !self.greeted {
            return Ok(());
        }
        self.finish_tasks(ctx)?;
        self.go_on_sending(ctx)?;
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
                return self.peer_gone(ctx, line as u64);
            }
        }
        Ok(())
    }

    fn answer(&mut self, ctx: &mut Ctx, line: usize, id: u64, request: Request) -> Result<(), Crashed> {
        let answer = match request {
            Request::Attach { who, size, resume: Some(resume), .. } => {
                let until_ms = ctx.now + JOINED_WAIT_MS;
                self.tasks.push(Task { line, id, until_ms, what: Waits::Joined { who, size, resume } });
                return self.finish_tasks(ctx);
            }
            Request::Attach { who, size, read_only, resume: None } => {
                match self.attach(ctx, line, id, who, size, read_only)? {
                    Ok(()) => return Ok(()),
                    Err(refusal) => Answer::Refused { code: refusal.code() },
                }
            }
            Request::Paint { who, answers: Some(client), .. } if !self.own_client(client, who) => {
                Answer::Refused { code: "not_attached" }
            }
            Request::Paint { size, history, answers, .. } => {
                let (painted, bytes) = self.paint(ctx, size, history, answers)?;
                Answer::Painted { painted, bytes }
            }
            Request::Update { who, client, connection, size, answers } => {
                return self.update(ctx, line, id, who, client, connection, size, answers);
            }
            Request::Leave { who, client } => self.leave(ctx, who, client)?,
            Request::Read { from } => self.read(from),
            Request::Send { who, client, stream, seq, bytes } => {
                return self.send(ctx, line, id, who, client, (stream, seq), bytes);
            }
            Request::Act { who, client, ask } => self.act(ctx, who, client, ask)?,
        };
        self.reach()?;
        ctx.lines[line].answer(id, answer);
        Ok(())
    }

    fn attach(
        &mut self,
        ctx: &mut Ctx,
        line: usize,
        id: u64,
        who: Who,
        size: Size,
        read_only: bool,
    ) -> Result<Result<(), Refusal>, Crashed> {
        let token: Token = ctx.rng.u128(..).to_le_bytes();
        let peer = Some((line as u64, ctx.lines[line].events.clone()));
        let client = match self.new_operator(ctx, who)? {
            Ok(client) => client,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.clients.add(Client {
            id: client,
            actor: Some(who.actor()),
            told_writes: None,
            pid: 0,
            tty: String::new(),
            size: Some(size),
            read_only,
            since_ms: 0,
            token,
            connection: None,
            remote: false,
            peer,
        });
        ctx.counts.attaches += 1;
        ctx.note(format_args!("host: client {client} attaches by line {line}, {size}, read only {read_only}"));
        self.after_decision(ctx)?;
        self.say(ctx, ToKeeper::Admit { token, rights: if read_only { 0 } else { RIGHT_WRITE } })?;
        let mut until_ms = ctx.now;
        if self.size != size && self.clients.is_only_writer(client) && self.ask_resize(ctx, who, client, size)? {
            self.clients.sized(client, size);
            until_ms = self.resize(ctx, size)?;
        }
        let what = Waits::Size { size, attaches: Some((client, token)) };
        self.tasks.push(Task { line, id, until_ms, what });
        self.finish_tasks(ctx).map(Ok)
    }

    /// As `Session::new_operator`.
    fn new_operator(&mut self, ctx: &mut Ctx, who: Who) -> Result<Result<u32, Refusal>, Crashed> {
        let operator = self.authority.next_operator();
        let decided = self.decide(ctx, Input::Attached { by: who.actor(), operator })?;
        Ok(decided.map(|_| operator.0))
    }

    fn ask_resize(&mut self, ctx: &mut Ctx, who: Who, client: u32, size: Size) -> Result<bool, Crashed> {
        let by = Caller { actor: who.actor(), operator: Some(OperatorId(client)) };
        Ok(self.decide(ctx, Input::Asked { by, ask: Ask::Resize { size }, proof: None })?.is_ok())
    }

    /// As `Session::resize`; gives until when it is waited for.
    fn resize(&mut self, ctx: &mut Ctx, size: Size) -> Result<u64, Crashed> {
        self.say_size(ctx, size)?;
        Ok(ctx.now + RESIZE_WAIT_MS)
    }

    fn finish_tasks(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        while let Some(at) = (0..self.tasks.len()).find(|at| self.is_ready(ctx, *at)) {
            let task = self.tasks.remove(at);
            let answer = match task.what {
                Waits::Size { size, attaches: Some((client, token)) } => self.first_paint(ctx, client, size, token)?,
                Waits::Size { attaches: None, .. } => {
                    self.appoint(ctx)?;
                    Answer::Updated { size: self.size }
                }
                Waits::Joined { who, size, resume } => self.resume(ctx, task.line, who, size, resume)?,
            };
            self.reach()?;
            ctx.lines[task.line].answer(task.id, answer);
        }
        Ok(())
    }

    fn is_ready(&mut self, ctx: &Ctx, at: usize) -> bool {
        let task = &self.tasks[at];
        let so = match &task.what {
            Waits::Size { size, .. } => *size == self.size,
            Waits::Joined { resume, .. } => self.clients.by_connection(resume.connection).is_some(),
        };
        so || task.until_ms <= ctx.now
    }

    fn first_paint(&mut self, ctx: &mut Ctx, client: u32, size: Size, token: Token) -> Result<Answer, Crashed> {
        let (painted, bytes) = self.paint(ctx, size, false, None)?;
        let writer = self.writer();
        let candidate = self.clients.candidate(painted.size, writer).is_some_and(|c| c.id == client);
        if candidate && painted.form == Form::Repaint {
            self.clients.start_answering(client, painted.offset);
        }
        if FIRST_PAINTS_ARE_WHERE_A_HOLDER_BEGINS && self.clients.answers(client) {
            let from = painted.offset;
            let due = self.clients.answering(client, Answers { on: true, left: 0, from });
            self.type_replies(ctx, due)?;
        }
        let has_history = self.picture.has_history();
        let (fence, writes, answers) = (self.fence().0, self.told(client), self.clients.answers(client));
        Ok(Answer::Attached(Box::new(Attached { client, painted, bytes, token, fence, writes, answers, has_history })))
    }

    /// Whether this client writes, which it is being told.
    fn told(&mut self, client: u32) -> bool {
        let (fence, writes) = (self.fence(), self.writer() == Some(client));
        if let Some(known) = self.clients.get(client) {
            known.told_writes = writes.then_some(fence);
        }
        writes
    }

    fn resume(&mut self, ctx: &mut Ctx, line: usize, who: Who, size: Size, resume: Resume) -> Result<Answer, Crashed> {
        let not_found = Answer::Refused { code: "not_found" };
        let known = self.clients.by_connection(resume.connection).map(|client| client.id);
        let Some(known) = known else { return Ok(not_found) };
        let operator = OperatorId(resume.client);
        let id = match self.decide(ctx, Input::Resumed { by: who.actor(), operator })? {
            Ok(_) => resume.client,
            Err(_) => match self.new_operator(ctx, who)? {
                Ok(id) => id,
                Err(refusal) => return Ok(Answer::Refused { code: refusal.code() }),
            },
        };
        ctx.counts.resumes_too_late += u64::from(id != resume.client);
        self.clients.rename(known, id);
        let peer = Some((line as u64, ctx.lines[line].events.clone()));
        let Some(client) = self.clients.get(id) else { return Ok(not_found) };
        client.actor = Some(who.actor());
        client.size = Some(size);
        client.peer = peer;
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
        let resize = self.clients.sizes(id) && size != self.size;
        self.type_replies(ctx, due)?;
        if resize && self.ask_resize(ctx, who, id, size)? {
            self.clients.sized(id, size);
            self.say_size(ctx, size)?;
        }
        self.say_writer(ctx)?;
        self.after_decision(ctx)?;
        let (fence, writes) = (self.fence().0, self.told(id));
        Ok(Answer::Resumed { client: id, writes, fence })
    }

    /// As `Session::look`: brings the screen up to the head.
    pub fn look(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        let mut replies = Vec::new();
        let head = self.ring.head();
        let mut more = true;
        // A size that came at the head takes effect by one step more.
        while more && self.picture.seen() <= head {
            replies.extend(self.feed(ctx, 1, &mut more));
        }
        let due = self.clients.sort(replies);
        self.timers.rest = Some(ctx.now + 150);
        self.type_replies(ctx, due)
    }

    fn paint(
        &mut self,
        ctx: &mut Ctx,
        size: Size,
        history: bool,
        answers: Option<u32>,
    ) -> Result<(Painted, Vec<u8>), Crashed> {
        self.look(ctx)?;
        ctx.counts.paints += 1;
        let history = history.then(|| self.picture.history(u32::MAX, None).encoded);
        let writer = self.writer();
        let screen = self.picture.screen();
        let (offset, screen_size) = (screen.offset(), screen.size());
        if screen_size == size {
            let bytes = screen.repaint(history.as_deref());
            if let Some(client) = answers.filter(|client| writer == Some(*client)) {
                self.clients.start_answering(client, offset);
            }
            return Ok((Painted { offset, size: screen_size, form: Form::Repaint, history_bytes: 0 }, bytes));
        }
        let keyframe = screen.keyframe();
        Ok((Painted { offset, size: screen_size, form: Form::Keyframe, history_bytes: 0 }, keyframe))
    }

    #[allow(clippy::too_many_arguments)] // the parameters of one request
    fn update(
        &mut self,
        ctx: &mut Ctx,
        line: usize,
        id: u64,
        who: Who,
        client: u32,
        connection: u32,
        size: Option<Size>,
        answers: Option<Answers>,
    ) -> Result<(), Crashed> {
        let mut due = Vec::new();
        let mut resize = None;
        let number = self.clients.number(client, Some(connection)).filter(|number| self.own_client(*number, who));
        let Some(client) = number else {
            ctx.note(format_args!("host: client {client} of connection {connection} is not known"));
            ctx.lines[line].answer(id, Answer::Refused { code: "not_found" });
            return Ok(());
        };
        if answers.is_some_and(|answers| !answers.on) {
            self.look(ctx)?;
        }
        if let Some(known) = self.clients.get(client) {
            known.connection = Some(connection);
            if let Some(size) = size {
                known.size = Some(size);
                resize = self.clients.sizes(client).then_some(size);
            }
        }
        ctx.note(format_args!("host: client {client} says size {size:?}, answers {answers:?}"));
        if let Some(answers) = answers {
            ctx.withheld(answers.left, self.picture.seen());
            due = self.clients.answering(client, answers);
        }
        self.timers.rearm = Some(ctx.now);
        self.type_replies(ctx, due)?;
        let mut until_ms = ctx.now;
        if let Some(size) = resize
            && self.clients.wants_size(client).is_some()
            && self.ask_resize(ctx, who, client, size)?
        {
            self.clients.sized(client, size);
            until_ms = self.resize(ctx, size)?;
        }
        let what = Waits::Size { size: resize.unwrap_or(self.size), attaches: None };
        self.tasks.push(Task { line, id, until_ms, what });
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
                Copied::Ahead { .. } => return Answer::Refused { code: "ahead" },
            }
        }
    }

    /// As `Session::peer_gone`.
    fn peer_gone(&mut self, ctx: &mut Ctx, peer: u64) -> Result<(), Crashed> {
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
            self.timers.rearm = Some(ctx.now);
        }
        for id in never_joined {
            let _ = self.decide(ctx, Input::CutOff { operator: OperatorId(id) })?;
        }
        Ok(())
    }
}
