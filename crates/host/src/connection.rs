//! Clients' connections: requests in, answers and events out, over the unix socket or a WebSocket.
//!
//! A connection has a task of its own, and each request one too, so that a question that waits holds nobody up. What a client
//! has not read is bounded: no further question is taken while too much waits for it, and one to whom too many events wait is
//! let go.

use crate::serve::Server;
use holdfast_types::{Actor, Challenge};
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
use holdfast_wire::operations::Route;
use holdfast_wire::{Body, Call, Code, Fault, Message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore};

/// Questions a connection may have open: enough to end a thousand sessions at once without waiting in line for long.
const OPEN_REQUESTS_MAX: usize = 64;
/// Read at once: a whole request in most cases.
const RECEIVE_BYTES: usize = 4096;
/// Answers that wait to be read: behind that no further question is taken. A repaint with all its history is less.
const UNREAD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Messages that wait to be read: who is told of events and reads none of so many is not there.
const UNREAD_MAX: usize = 4096;
/// How often that is looked at while a client reads nothing.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// One connection: where events for it go, and who speaks there.
#[derive(Debug)]
pub(crate) struct Speaker {
    pub number: u64,
    out: UnboundedSender<Box<Message>>,
    pub challenge: Challenge,
    /// Proven; or why it was not.
    pub actor: RefCell<Result<Actor, Fault>>,
    /// The token that says who speaks, in place of a proof.
    pub token: Option<String>,
    unread: Rc<Unread>,
}

/// Whoever waits for an answer, as long as it does.
#[derive(Debug)]
pub(crate) struct Asker(Semaphore);

impl Default for Asker {
    fn default() -> Asker {
        Asker(Semaphore::new(0))
    }
}

impl Asker {
    /// Nobody is there any more.
    pub fn leave(&self) {
        self.0.close();
    }

    /// Waits until it has left: there is never anything else to be had.
    async fn left(&self) {
        let _ = self.0.acquire().await;
    }
}

tokio::task_local! {
    /// Who waits for what this task answers.
    pub(crate) static ASKER: Rc<Asker>;
}

/// Waits as long as somebody waits for the answer: what was begun goes on, and is asked for again by its key or number.
pub(crate) async fn while_asked(wait: impl Future<Output = ()>) {
    match ASKER.try_with(Rc::clone) {
        Err(_) => wait.await,
        Ok(asker) => tokio::select! {
            () = wait => {}
            () = asker.left() => {}
        },
    }
}

/// What the host said and the client has not read.
#[derive(Debug)]
struct Unread {
    bytes: Cell<usize>,
    less: Notify,
    over: Rc<Asker>,
}

impl Unread {
    fn new() -> Unread {
        Unread { bytes: Cell::default(), less: Notify::new(), over: Rc::default() }
    }

    /// Nobody reads any more.
    fn nobody(&self) {
        self.over.leave();
        self.less.notify_one();
    }

    fn more(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn fewer(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.less.notify_one();
    }

    async fn until_little(&self) {
        while self.bytes.get() > UNREAD_BYTES_MAX && !self.over.0.is_closed() {
            self.less.notified().await;
        }
    }
}

impl Speaker {
    pub fn actor(&self) -> Result<Actor, Fault> {
        self.actor.borrow().clone()
    }

    pub fn peer(&self) -> crate::session::Peer {
        (self.number, self.out.clone())
    }
}

impl Server {
    /// Serves a connection at the unix socket until its end.
    pub async fn serve(self: Rc<Self>, stream: UnixStream) {
        let (mut reader, writer) = stream.into_split();
        let (speaker, answers) = self.speaker(None);
        let writing = tokio::task::spawn_local(write_all(writer, answers, Rc::clone(&speaker.unread)));
        if let Err(error) = self.clone().read_all(&mut reader, &speaker).await
            && error.kind() == io::ErrorKind::InvalidData
        {
            // What it sent is not quoted: it may have been meant for a session.
            tracing::warn!(connection = speaker.number, "closed: it does not speak the protocol");
        }
        self.over(speaker, has_hung_up(&reader));
        let _ = writing.await;
    }

    /// Serves a connection of who shows a token until the end of one or the other.
    pub async fn serve_token(
        self: Rc<Self>,
        token: String,
        mut incoming: mpsc::Receiver<Box<Message>>,
        outgoing: mpsc::Sender<Box<Message>>,
    ) {
        let (speaker, answers) = self.speaker(Some(token.clone()));
        let ended = self.token_ended(&token);
        tokio::pin!(ended);
        let there = outgoing.clone();
        let mut writing = tokio::task::spawn_local(pass_all(outgoing, answers, Rc::clone(&speaker.unread)));
        let open = Arc::new(Semaphore::new(OPEN_REQUESTS_MAX));
        loop {
            // What was said before a client left is done all the same.
            let message = tokio::select! {
                biased;
                message = incoming.recv() => message,
                _ = &mut writing => None,
                () = &mut ended => None,
            };
            let Some(message) = message else { break };
            // A question may wait for room that will never come: whoever does not read, or is gone, makes none.
            tokio::select! {
                biased;
                heard = self.hear(*message, &speaker, &open) => if heard.is_err() { break },
                _ = &mut writing => break,
                () = there.closed() => break,
                () = &mut ended => break,
            }
        }
        writing.abort();
        self.over(speaker, true);
    }

    fn speaker(&self, token: Option<String>) -> (Rc<Speaker>, UnboundedReceiver<Box<Message>>) {
        let number = self.next_peer.get();
        self.next_peer.set(number + 1);
        self.presence.came(number);
        if let Some((actor, _)) = token.as_ref().and_then(|token| self.token_holder(token).ok()) {
            self.presence.is(number, Some(&actor));
        }
        let (out, answers) = unbounded_channel();
        let mut challenge = [0; 32];
        getrandom::fill(&mut challenge).expect("the kernel gives random bytes");
        let nobody = Fault::new(Code::Unidentified, "this connection has not identified its actor")
            .hint("send `identify` first, with a key the host knows");
        let speaker = Speaker {
            number,
            out,
            challenge: Challenge(challenge),
            actor: RefCell::new(Err(nobody)),
            token,
            unread: Rc::new(Unread::new()),
        };
        (Rc::new(speaker), answers)
    }

    /// No more is asked. Where nobody hears the answers either, what only looks is not looked for any longer.
    fn over(&self, speaker: Rc<Speaker>, is_gone: bool) {
        if is_gone {
            speaker.unread.nobody();
        }
        self.presence.left(speaker.number);
        for session in self.registry.all() {
            session.peer_gone(speaker.number);
        }
    }

    async fn read_all(self: Rc<Self>, reader: &mut OwnedReadHalf, speaker: &Rc<Speaker>) -> io::Result<()> {
        let open = Arc::new(Semaphore::new(OPEN_REQUESTS_MAX));
        let mut received = Vec::with_capacity(RECEIVE_BYTES);
        loop {
            let decoded = Frame::decode(&received, REQUEST_BYTES_MAX);
            let (message, taken) = match decoded {
                Ok(Some((frame, taken))) => (Message::decode(frame), taken),
                Ok(None) => {
                    received.reserve(RECEIVE_BYTES);
                    if reader.read_buf(&mut received).await? == 0 {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            };
            received.drain(..taken);
            if received.is_empty() {
                // A large request must not keep its buffer for the connection's whole life.
                received = Vec::new();
            }
            let message = message.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
            self.hear(message, speaker, &open).await?;
        }
    }

    /// Takes a message and sees to its answer, once there is room for one.
    async fn hear(self: &Rc<Self>, message: Message, speaker: &Rc<Speaker>, open: &Arc<Semaphore>) -> io::Result<()> {
        let Body::Request { id, method, params } = message.body else { return Ok(()) };
        speaker.unread.until_little().await;
        let permit = Arc::clone(open).acquire_owned().await.map_err(io::Error::other)?;
        let (server, speaker) = (Rc::clone(self), Rc::clone(speaker));
        tokio::task::spawn_local(async move {
            let asker = Rc::clone(&speaker);
            let call = Call::decode(&method, params);
            let only_looks = call.as_ref().is_ok_and(only_looks);
            // A task of its own: whoever runs into a fault of ours is told, instead of waiting for ever.
            let answer = async move { server.answer(call?, message.bytes, &asker).await };
            let mut answering = tokio::task::spawn_local(ASKER.scope(Rc::clone(&speaker.unread.over), answer));
            let answered = tokio::select! {
                answered = &mut answering => answered,
                () = speaker.unread.over.left(), if only_looks => return answering.abort(),
            };
            let (result, bytes) = match answered {
                Ok(Ok((value, bytes))) => (Ok(value), bytes),
                Ok(Err(fault)) => (Err(fault), Vec::new()),
                Err(_) => (Err(internal()), Vec::new()),
            };
            let answer = Box::new(Message { body: Body::Answer { id, result }, bytes });
            speaker.unread.more(weight(&answer));
            let _ = speaker.out.send(answer);
            drop(permit);
        });
        Ok(())
    }
}

/// Whether a call changes nothing: nobody misses it if nobody hears its answer.
pub(crate) fn only_looks(call: &Call) -> bool {
    matches!(call.row().route, Route::Get(_)) || matches!(call, Call::Wait(_))
}

/// Whether a peer has closed both ways, not only what it says.
fn has_hung_up(reader: &OwnedReadHalf) -> bool {
    let stream: &UnixStream = reader.as_ref();
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// About how much an answer takes until it is read. Events weigh nothing: they are counted.
fn weight(message: &Message) -> usize {
    fn of(value: &Value) -> usize {
        let inside = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(of).sum(),
            Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + of(value)).sum(),
        };
        inside + size_of::<Value>()
    }
    message.bytes.len()
        + match &message.body {
            Body::Answer { result: Ok(value), .. } => of(value),
            Body::Answer { result: Err(_), .. } => size_of::<Fault>(),
            Body::Request { .. } | Body::Event { .. } => 0,
        }
}

/// What is said of a panic.
pub(crate) fn internal() -> Fault {
    Fault::new(Code::Internal, "the host ran into a fault of its own")
}

/// Does a write, as long as not too much waits behind it. False: the client is gone, or does not read.
async fn while_read(write: impl Future<Output = bool>, waiting: impl Fn() -> usize) -> bool {
    tokio::pin!(write);
    loop {
        tokio::select! {
            written = &mut write => return written,
            () = tokio::time::sleep(LOOK_EVERY) => if waiting() > UNREAD_MAX { return false },
        }
    }
}

async fn write_all(mut writer: OwnedWriteHalf, mut answers: UnboundedReceiver<Box<Message>>, unread: Rc<Unread>) {
    let mut out = Vec::new();
    while let Some(message) = answers.recv().await {
        out.clear();
        message.encode(&mut out);
        let written = while_read(async { writer.write_all(&out).await.is_ok() }, || answers.len()).await;
        unread.fewer(weight(&message));
        if !written {
            return unread.nobody();
        }
        if out.capacity() > 64 * 1024 {
            out = Vec::new();
        }
    }
}

async fn pass_all(
    outgoing: mpsc::Sender<Box<Message>>,
    mut answers: UnboundedReceiver<Box<Message>>,
    unread: Rc<Unread>,
) {
    while let Some(message) = answers.recv().await {
        let bytes = weight(&message);
        let passed = while_read(async { outgoing.send(message).await.is_ok() }, || answers.len()).await;
        unread.fewer(bytes);
        if !passed {
            return unread.nobody();
        }
    }
}
