//! Requests to the host and its answers, between the wire and what decides.

use super::run::{Driver, Source};
use super::terminal::Terminal;
use super::{AttachError, AttachOptions, failed};
use crate::connection::{Connection, Incoming};
use holdfast_attach::{Answer, Event, Input, Paint, Picture, Request, Tag};
use holdfast_authority::Ask;
use holdfast_screen::Screen;
use holdfast_types::Size;
use holdfast_wire::operations::{Operation, op};
use holdfast_wire::params::{
    AttachAnswer, AttachParams, FOLLOWED, Form, ListParams, Nothing, PaintParams, Painted, Resume, SendAnswer,
    SendParams, SessionParams, UpdateAnswer, UpdateParams,
};
use holdfast_wire::questions::{QuestionAnswerParams, QuestionListParams};
use holdfast_wire::turns::{GiveParams, LeaveAnswer, LeaveParams, SeizeParams, TurnAnswer, TurnParams};
use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};

/// How long a host may take to let us go: what a person does not notice.
const LEAVE: Duration = Duration::from_millis(200);

/// Makes an answer of what came over the wire.
type Reader = fn(Value, Vec<u8>) -> Result<Answer, AttachError>;

/// A request that was sent.
pub struct Asked {
    id: u64,
    tag: Tag,
    read: Reader,
}

impl Driver<'_> {
    /// What the host sent.
    pub(super) fn read_host(&mut self) -> Result<(), AttachError> {
        let Some(host) = &mut self.host else { return Ok(()) };
        let Ok(incoming) = host.receive_ready() else {
            self.host_is_gone();
            return self.feed(Input::HostGone);
        };
        for one in incoming {
            match one {
                Incoming::Event { method, params, bytes } if method == "output" => self.pushed(params, &bytes),
                Incoming::Event { method, params, .. } => {
                    if let Some((client, event)) = Event::read(&method, params) {
                        self.feed(Input::Event { client, event })?;
                    }
                }
                Incoming::Answer { id, result, bytes } => {
                    if let (Source::Far(far), Some(host)) = (&mut self.source, &mut self.host)
                        && far.answered(id, &result, host)
                    {
                        continue;
                    }
                    let Some(at) = self.asked.iter().position(|asked| asked.id == id) else { continue };
                    let Asked { tag, read, .. } = self.asked.swap_remove(at);
                    let answer = match result {
                        Ok(value) => Ok(read(value, bytes)?),
                        Err(fault) => Err(fault),
                    };
                    if let (Ok(Answer::Resumed { client, .. }), Source::Far(far), Some(host)) =
                        (&answer, &mut self.source, &mut self.host)
                    {
                        far.back(*client, host);
                    }
                    self.feed(Input::Answered { tag, answer })?;
                }
            }
        }
        Ok(())
    }

    /// Output of a session elsewhere.
    fn pushed(&mut self, params: Value, bytes: &[u8]) {
        if let (Source::Far(far), Some(host)) = (&mut self.source, &mut self.host)
            && let Ok(event) = serde_json::from_value(params)
        {
            far.pushed(event, bytes, host);
        }
    }

    pub(super) fn host_is_gone(&mut self) {
        if let Source::Far(far) = &mut self.source {
            far.lost();
        }
        self.host = None;
        self.asked.clear();
    }

    /// Sends a request, or says that there is no host to send it to.
    pub(super) fn request(&mut self, tag: Tag, request: Request) -> Result<(), AttachError> {
        if self.send_request(tag, request) {
            return Ok(());
        }
        self.host_is_gone();
        self.feed(Input::NotSent(tag))
    }

    fn send_request(&mut self, tag: Tag, request: Request) -> bool {
        let session = self.session.clone();
        match request {
            Request::Resume { size, resume } => {
                let mut params = attach_params(self.options, &self.terminal, size, Some(resume));
                params.session = session;
                self.ask::<op::Attach>(tag, &params, &[], |value, _| {
                    Ok(answer(value, |a: AttachAnswer| Answer::Resumed {
                        client: a.client,
                        writes: a.writes,
                        fence: a.fence.0,
                        turn: Box::new(a.session.turn),
                    }))
                })
            }
            Request::Paint { size, history, behind, draws, answers } => {
                let params = PaintParams { session, size, history, behind, draws, answers, remote: false };
                self.ask::<op::Paint>(tag, &params, &[], |value, bytes| {
                    let unreadable = |e| io::Error::new(io::ErrorKind::InvalidData, e);
                    let painted = serde_json::from_value(value)
                        .map_err(|e| failed("the host's paint cannot be read")(unreadable(e)))?;
                    Ok(Answer::Painted(Box::new(paint(&painted, bytes)?)))
                })
            }
            Request::Update { client, size, answers } => {
                let params = UpdateParams { session, client, size, answers };
                self.ask::<op::Update>(tag, &params, &[], |value, _| {
                    Ok(answer(value, |a: UpdateAnswer| Answer::Updated(a.size)))
                })
            }
            Request::Send { client, stream, seq, bytes } => {
                let client = Some(client);
                let params = SendParams {
                    session,
                    stream,
                    seq,
                    client,
                    fence: None,
                    secret: false,
                    force: false,
                    in_order: false,
                };
                self.ask::<op::Send>(tag, &params, &bytes, |value, _| {
                    Ok(answer(value, |a: SendAnswer| Answer::Sent(a.fence.0)))
                })
            }
            Request::Act { client, ask } => self.act(tag, client, ask),
            Request::View => {
                self.ask::<op::Get>(tag, &SessionParams { session }, &[], |value, _| Ok(boxed(value, Answer::View)))
            }
            Request::Actors => {
                self.ask::<op::Actors>(tag, &Nothing {}, &[], |value, _| Ok(answer(value, Answer::Actors)))
            }
            Request::Questions => {
                let params = QuestionListParams { session: Some(session), all: false };
                self.ask::<op::QuestionList>(tag, &params, &[], |value, _| Ok(answer(value, Answer::Questions)))
            }
            Request::Sessions => self
                .ask::<op::List>(tag, &ListParams { all: false }, &[], |value, _| Ok(answer(value, Answer::Sessions))),
            Request::State(id) => {
                let params = SessionParams { session: id.to_string() };
                self.ask::<op::State>(tag, &params, &[], |value, _| Ok(boxed(value, Answer::State)))
            }
            Request::Reply { question, seen, text, ask } => {
                let proof = Some(self.options.who.prove(self.session_id, &ask));
                let params = QuestionAnswerParams { question, seen, text: Some(text), option: None, proof };
                self.ask::<op::QuestionAnswer>(tag, &params, &[], |value, _| Ok(boxed(value, Answer::Replied)))
            }
        }
    }

    /// Something about the turn, signed by the actor's key.
    fn act(&mut self, tag: Tag, client: u32, ask: Ask) -> bool {
        let proof = Some(self.options.who.prove(self.session_id, &ask));
        let (session, client) = (self.session.clone(), Some(client));
        match ask {
            Ask::Give { to } => self.ask::<op::Give>(tag, &GiveParams { session, client, to, proof }, &[], turn_answer),
            Ask::Seize { freeze, reason } => {
                let params = SeizeParams { session, client, freeze, reason, proof };
                self.ask::<op::Seize>(tag, &params, &[], |value, _| Ok(boxed(value, Answer::Seized)))
            }
            Ask::Request => self.ask::<op::Request>(tag, &TurnParams { session, client, proof }, &[], turn_answer),
            Ask::Release => self.ask::<op::Release>(tag, &TurnParams { session, client, proof }, &[], turn_answer),
            Ask::Thaw => self.ask::<op::Thaw>(tag, &TurnParams { session, client, proof }, &[], turn_answer),
            Ask::Take => self.ask::<op::Take>(tag, &TurnParams { session, client, proof }, &[], turn_answer),
            other => unreachable!("no chord asks for {other:?}"),
        }
    }

    fn ask<O: Operation>(&mut self, tag: Tag, params: &O::Params, bytes: &[u8], read: Reader) -> bool {
        let sent = self.host.as_mut().and_then(|host| host.ask::<O>(params, bytes).ok());
        self.asked.extend(sent.map(|id| Asked { id, tag, read }));
        sent.is_some()
    }

    /// Tells the host that we go, so that the turn is free at once. Where it cannot be told it hears of the broken
    /// connection: that could be a tunnel, so the turn is kept for a while.
    pub(super) fn leave(&mut self) {
        let shown = self.attached.shown().filter(|_| self.options.history);
        let params = LeaveParams { session: self.session.clone(), client: self.attached.client(), shown };
        let history = self.host.as_mut().and_then(|host| say_goodbye(host, &params)).and_then(|answer| answer.history);
        self.places.remember(self.session_id, history);
    }
}

/// Leaves, and gives what the host says to that if it says so soon.
fn say_goodbye(host: &mut Connection, params: &LeaveParams) -> Option<LeaveAnswer> {
    let left = host.ask::<op::Leave>(params, &[]).ok()?;
    // Waited for: else it may hear from the keeper first that our connection broke.
    let deadline = Instant::now() + LEAVE;
    while let Some(patience) = deadline.checked_duration_since(Instant::now()) {
        let patience = patience.try_into().expect("short times fit");
        match poll(&mut [PollFd::from_borrowed_fd(host.descriptor(), PollFlags::IN)], Some(&patience)) {
            Ok(1..) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => return None,
        }
        for one in host.receive_ready().ok()? {
            if let Incoming::Answer { id, result, .. } = one
                && id == left
            {
                return serde_json::from_value(result.ok()?).ok();
            }
        }
    }
    None
}

fn answer<T: DeserializeOwned>(value: Value, make: impl FnOnce(T) -> Answer) -> Answer {
    serde_json::from_value(value).map_or(Answer::Unreadable, make)
}

fn boxed<T: DeserializeOwned>(value: Value, make: impl FnOnce(Box<T>) -> Answer) -> Answer {
    answer(value, |it: T| make(Box::new(it)))
}

fn turn_answer(value: Value, _: Vec<u8>) -> Result<Answer, AttachError> {
    Ok(boxed::<TurnAnswer>(value, Answer::Turn))
}

/// A paint as it came over the wire.
pub(super) fn paint(painted: &Painted, mut bytes: Vec<u8>) -> Result<Paint, AttachError> {
    let picture = match painted.form {
        Form::Repaint => Picture::Repaint(bytes),
        Form::Keyframe => {
            let keyframe = bytes.split_off(painted.history_bytes.min(bytes.len()));
            let screen = Screen::restore(&keyframe).map_err(|e| {
                failed("the host's keyframe cannot be read")(io::Error::new(io::ErrorKind::InvalidData, e))
            })?;
            Picture::Keyframe { history: bytes, screen: Box::new(screen) }
        }
    };
    Ok(Paint { offset: painted.offset, size: painted.size, picture })
}

/// What this terminal is, for the host.
pub(super) fn attach_params(
    options: &AttachOptions,
    terminal: &Terminal,
    size: Size,
    resume: Option<Resume>,
) -> AttachParams {
    let followed = |key: &&str| std::env::var(key).ok().map(|value| format!("{key}={value}"));
    let far = options.route.is_far();
    let env = if far { Vec::new() } else { FOLLOWED.iter().filter_map(followed).collect() };
    AttachParams {
        session: options.session.clone(),
        size,
        read_only: options.read_only,
        tty: terminal.name(),
        pid: std::process::id(),
        env,
        // Elsewhere the client has nothing left of what it was, and begins anew.
        resume: resume.filter(|_| !far),
        remote: far,
        sizes: far,
        draws: options.status,
    }
}
