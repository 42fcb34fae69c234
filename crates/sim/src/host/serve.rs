//! What the host does for clients: in what order it hears them, what they wait for, and what they are answered.

use super::{Crashed, Host};
use crate::cast::Who;
use crate::ctx::Ctx;
use holdfast_abi::protocol::Token;
use holdfast_abi::ring::Copied;
use holdfast_authority::{Ask, Caller, OperatorId};
use holdfast_session::{Arrival, Resumption, Send, Sent, Ticket, Undecided, Updated};
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
    Update { who: Who, client: u32, size: Option<Size>, answers: Option<Answers> },
    Leave { who: Who, client: u32 },
    Read { from: u64 },
    Send { who: Who, client: Option<u32>, stream: u64, seq: u64, bytes: Vec<u8> },
    Act { who: Who, client: Option<u32>, ask: Ask },
    Run { who: Who, number: u32 },
}

/// What it is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    Attached(Box<Attached>),
    Resumed {
        client: u32,
        writes: bool,
        fence: u64,
    },
    Painted {
        painted: Painted,
        bytes: Vec<u8>,
    },
    Updated {
        size: Size,
    },
    Read {
        gap: Option<Gap>,
        from: u64,
        bytes: Vec<u8>,
    },
    Sent {
        fence: u64,
    },
    Acted,
    /// A run was entered, or was before.
    Ran,
    Refused {
        code: &'static str,
    },
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

    pub(super) fn tell(&mut self, message: Box<Message>) {
        let _ = self.events.send(message);
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
        self.runs_turn(ctx)?;
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
                return self.core(ctx, |core, out, now| core.peer_gone(out, now, line as u64));
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
                    Err(undecided) => refused(&undecided),
                }
            }
            Request::Paint { who, answers: Some(client), .. } if !self.is_its(line, who, client) => {
                Answer::Refused { code: "not_attached" }
            }
            Request::Paint { size, history, answers, .. } => {
                let (painted, bytes) = self.paint(ctx, size, history, answers)?;
                Answer::Painted { painted, bytes }
            }
            Request::Update { who, client, size, answers } => {
                return self.update(ctx, (line, id), who, client, size, answers);
            }
            Request::Leave { who, client }
            | Request::Send { who, client: Some(client), .. }
            | Request::Act { who, client: Some(client), .. }
                if !self.is_its(line, who, client) =>
            {
                Answer::Refused { code: "not_attached" }
            }
            Request::Leave { client, .. } => self.leave(ctx, client)?,
            Request::Read { from } => self.read(from),
            Request::Send { who, client, stream, seq, bytes } => {
                let by = Caller { actor: who.actor(), operator: client.map(OperatorId), token: None };
                let send = Send { by, fence: None, stream, seq, bytes, secret: false, force: false };
                return self.core(ctx, |core, out, now| core.send(out, now, ticket(line, id), send));
            }
            Request::Act { who, client, ask } => self.act(ctx, who, client, ask)?,
            Request::Run { who, number } => {
                self.run(line, id, who, number);
                return Ok(());
            }
        };
        self.reply(ctx, line, id, answer)
    }

    /// Whether a client is attached by this line.
    fn is_its(&self, line: usize, who: Who, client: u32) -> bool {
        self.core.is_clients(client, &who.actor(), line as u64)
    }

    /// An answer reaches a client, unless the host dies of it.
    pub(super) fn reply(&mut self, ctx: &mut Ctx, line: usize, id: u64, answer: Answer) -> Result<(), Crashed> {
        if !self.files.reach() {
            return Err(Crashed);
        }
        ctx.lines[line].answer(id, answer);
        Ok(())
    }

    /// Tells senders what became of their bytes.
    pub(super) fn answer_sends(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        for (ticket, sent) in std::mem::take(&mut self.files.sent) {
            if Host::is_of_run(ticket) {
                self.jobs.sent = Some(sent);
                continue;
            }
            let answer = match sent {
                Sent::Written { fence, .. } | Sent::Queued { fence } => Answer::Sent { fence: fence.0 },
                Sent::Refused(undecided) => {
                    ctx.counts.keys_refused += 1;
                    refused(&undecided)
                }
                Sent::EchoOn
                | Sent::EchoUnknown
                | Sent::ReservedStream
                | Sent::Full(_)
                | Sent::Unknown
                | Sent::Lost => Answer::Refused { code: "busy" },
            };
            let (line, id) = ((ticket.0 >> 32) as usize, ticket.0 & 0xffff_ffff);
            self.reply(ctx, line, id, answer)?;
        }
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
    ) -> Result<Result<(), Undecided>, Crashed> {
        let token: Token = ctx.rng.u128(..).to_le_bytes();
        let arrival = Arrival {
            actor: who.actor(),
            pid: 0,
            tty: String::new(),
            size,
            read_only,
            remote: false,
            draws: false,
            sizes: true,
            peer: line as u64,
            token,
        };
        let (client, takes) = match self.core(ctx, |core, out, now| core.arrive(out, now, arrival))? {
            Ok(arrived) => arrived,
            Err(undecided) => return Ok(Err(undecided)),
        };
        ctx.counts.attaches += 1;
        ctx.note(format_args!("host: client {client} attaches by line {line}, {size}, read only {read_only}"));
        let until_ms = ctx.now + if takes.is_some() { RESIZE_WAIT_MS } else { 0 };
        let what = Waits::Size { size, attaches: Some((client, token)) };
        self.tasks.push(Task { line, id, until_ms, what });
        self.finish_tasks(ctx).map(Ok)
    }

    fn finish_tasks(&mut self, ctx: &mut Ctx) -> Result<(), Crashed> {
        while let Some(at) = (0..self.tasks.len()).find(|at| self.is_ready(ctx, *at)) {
            let task = self.tasks.remove(at);
            let answer = match task.what {
                Waits::Size { size, attaches: Some((client, token)) } => self.first_paint(ctx, client, size, token)?,
                Waits::Size { attaches: None, .. } => {
                    self.core(ctx, |core, out, now| core.appoint(out, now))?;
                    Answer::Updated { size: self.core.size }
                }
                Waits::Joined { who, size, resume } => self.resume(ctx, task.line, who, size, resume)?,
            };
            self.reply(ctx, task.line, task.id, answer)?;
        }
        Ok(())
    }

    fn is_ready(&mut self, ctx: &Ctx, at: usize) -> bool {
        let task = &self.tasks[at];
        let so = match &task.what {
            Waits::Size { size, .. } => *size == self.core.size,
            Waits::Joined { resume, .. } => self.core.joined_as(resume.token).is_some(),
        };
        so || task.until_ms <= ctx.now
    }

    fn first_paint(&mut self, ctx: &mut Ctx, client: u32, size: Size, token: Token) -> Result<Answer, Crashed> {
        let (painted, bytes) = self.paint(ctx, size, false, None)?;
        let whole = painted.form == Form::Repaint;
        let writes = self.core(ctx, |core, out, _| {
            core.first_painted(out, client, painted.offset, painted.size, whole);
            core.told_writes(out, client)
        })?;
        let has_history = self.files.picture.has_history();
        let (fence, answers) = (self.core.fence().0, self.core.clients.answers(client));
        Ok(Answer::Attached(Box::new(Attached { client, painted, bytes, token, fence, writes, answers, has_history })))
    }

    fn resume(&mut self, ctx: &mut Ctx, line: usize, who: Who, size: Size, was: Resume) -> Result<Answer, Crashed> {
        let (actor, peer) = (who.actor(), line as u64);
        let back = Resumption { was, actor, pid: 0, tty: String::new(), size, draws: false, peer };
        let client = match self.core(ctx, |core, out, now| core.resume(out, now, back))? {
            Ok(Some(client)) => client,
            Ok(None) => return Ok(Answer::Refused { code: "not_found" }),
            Err(undecided) => return Ok(refused(&undecided)),
        };
        ctx.counts.resumes_too_late += u64::from(client != was.client);
        ctx.counts.resumes += 1;
        ctx.note(format_args!("host: {was:?} is back as client {client}"));
        let writes = self.core(ctx, |core, out, _| core.told_writes(out, client))?;
        Ok(Answer::Resumed { client, writes, fence: self.core.fence().0 })
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
        let history = history.then(|| self.files.picture.history(u32::MAX, None).encoded);
        let screen = self.files.picture.screen();
        let (offset, screen_size) = (screen.offset(), screen.size());
        if screen_size == size {
            let bytes = screen.repaint(history.as_deref());
            if let Some(client) = answers.filter(|client| self.core.writes_next() == Some(*client)) {
                self.core.clients.start_answering(client, offset);
            }
            return Ok((Painted { offset, size: screen_size, form: Form::Repaint, history_bytes: 0 }, bytes));
        }
        let keyframe = screen.keyframe();
        Ok((Painted { offset, size: screen_size, form: Form::Keyframe, history_bytes: 0 }, keyframe))
    }

    fn update(
        &mut self,
        ctx: &mut Ctx,
        (line, id): (usize, u64),
        who: Who,
        client: u32,
        size: Option<Size>,
        answers: Option<Answers>,
    ) -> Result<(), Crashed> {
        ctx.note(format_args!("host: client {client} says size {size:?}, answers {answers:?}"));
        let updated =
            self.core(ctx, |core, out, now| core.update(out, now, &who.actor(), (client, line as u64), size, answers))?;
        let Updated::Done(takes) = updated else {
            ctx.note(format_args!("host: client {client} of line {line} is not known"));
            return self.reply(ctx, line, id, Answer::Refused { code: "not_found" });
        };
        if let Some(answers) = answers {
            ctx.withheld(answers.left, self.files.picture.seen());
        }
        let until_ms = ctx.now + if takes.is_some() { RESIZE_WAIT_MS } else { 0 };
        let what = Waits::Size { size: takes.unwrap_or(self.core.size), attaches: None };
        self.tasks.push(Task { line, id, until_ms, what });
        self.finish_tasks(ctx)
    }

    fn leave(&mut self, ctx: &mut Ctx, client: u32) -> Result<Answer, Crashed> {
        Ok(match self.core(ctx, |core, out, now| core.leave(out, now, client))? {
            Ok(()) => Answer::Acted,
            Err(undecided) => refused(&undecided),
        })
    }

    /// Output from an offset on.
    fn read(&mut self, asked: u64) -> Answer {
        let mut position = asked;
        loop {
            let mut bytes = vec![0; READ_BYTES_MAX.min(self.files.ring.head().saturating_sub(position) as usize)];
            match self.files.ring.copy(position, &mut bytes) {
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
}

/// The number by which a send is known, from the line and the request it came by.
fn ticket(line: usize, id: u64) -> Ticket {
    Ticket((line as u64) << 32 | id)
}

/// Why something was not done, as it is answered.
pub(super) fn refused(undecided: &Undecided) -> Answer {
    match undecided {
        Undecided::Refused(refusal) => Answer::Refused { code: refusal.code() },
        Undecided::Unrecorded(_) => Answer::Refused { code: "unrecorded" },
    }
}

/// An event for a client.
pub(super) fn event(method: &str, params: serde_json::Value) -> Box<Message> {
    Box::new(Message::plain(Body::Event { method: method.into(), params }))
}
