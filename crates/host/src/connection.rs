//! Clients' connections: requests in, answers and events out, over the unix socket or a WebSocket.
//!
//! A connection has a task of its own, and each request one too, so that a question that waits holds nobody up. What a client
//! has not read is bounded: no further question is taken while too much waits for it, and one to whom too many events wait is
//! let go.

use crate::follow::Follows;
use crate::lines::Lines;
use crate::relays::Arrived;
use crate::serve::Server;
use crate::whence::Whence;
use holdfast_door::Speaker;
use holdfast_graph::ProcessId;
use holdfast_observe::ancestry::Peer;
use holdfast_relay::Arrival;
use holdfast_types::{Challenge, Terms, Thread, Trace};
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
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
use tokio::sync::{Notify, OnceCell, Semaphore};

/// Questions a connection may have open: enough to end a thousand sessions at once without waiting in line for long.
const OPEN_REQUESTS_MAX: usize = 64;
/// Read at once: a whole request in most cases.
const RECEIVE_BYTES: usize = 4096;
/// A frame of somebody who has not said who it is: a greeting and a proof.
const STRANGERS_BYTES_MAX: usize = 64 * 1024;
/// JSON that is read and written on the host's thread: a millisecond's work.
const HERE_BYTES_MAX: usize = 64 * 1024;
/// Answers that wait to be read: behind that no further question is taken. A repaint with all its history is less.
const UNREAD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Messages that wait to be read: who is told of events and reads none of so many is not there.
const UNREAD_MAX: usize = 4096;
/// How often that is looked at while a client reads nothing.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Those who came through relays count as one process while they have not said who they are.
const THROUGH_RELAYS: i32 = -1;
/// How long a guest may take to accept its invite.
const ACCEPT: Duration = Duration::from_secs(60);

/// A connection of a device, as long as it lasts.
struct Counted<'a>(&'a Server, String);

impl Counted<'_> {
    fn one<'a>(server: &'a Server, device: &str) -> Counted<'a> {
        *server.device_connections.borrow_mut().entry(device.to_owned()).or_default() += 1;
        Counted(server, device.to_owned())
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut all = self.0.device_connections.borrow_mut();
        if let Some(count) = all.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.1);
            }
        }
    }
}

/// One connection: where events for it go, and who speaks there.
#[derive(Debug)]
pub(crate) struct Connection {
    pub number: u64,
    out: UnboundedSender<Box<Message>>,
    pub challenge: Challenge,
    /// The process at the other end, where it is of this machine and there.
    pub process: Option<Arc<Peer>>,
    /// How it came, where that was through a relay.
    pub arrived: Option<Arrived>,
    /// Where it comes from, once that was looked at.
    pub whence: OnceCell<Whence>,
    /// The session's own shell, where that process is a command of it and alone there.
    pub shell: OnceCell<Option<ProcessId>>,
    /// Who speaks; or why that is not known.
    speaker: RefCell<Result<Speaker, Fault>>,
    unread: Rc<Unread>,
    pub follows: Follows,
    lines: Lines,
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

    /// It has left.
    pub fn has_left(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until it has left: there is never anything else to be had.
    async fn left(&self) {
        let _ = self.0.acquire().await;
    }
}

tokio::task_local! {
    /// Who waits for what this task answers.
    pub(crate) static ASKER: Rc<Asker>;
    /// Under which terms.
    pub(crate) static ASKED: Terms;
    /// The process that asks, where it is of this machine and there.
    pub(crate) static PROCESS: Option<Arc<Peer>>;
}

/// What an operation does on another thread is in its terms.
pub(crate) fn must_say_other() {
    let _ = ASKED.try_with(|terms| debug_assert_eq!(terms.thread, Thread::Other, "{}", terms.name));
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
pub(crate) struct Unread {
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
        self.less.notify_waiters();
    }

    /// Something is on its way.
    pub fn sent(&self, message: &Message) {
        self.bytes.set(self.bytes.get() + weight(message));
    }

    fn fewer(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.less.notify_waiters();
    }

    /// Waits until no more than this waits to be read, or nobody reads any more.
    pub async fn until_at_most(&self, bytes: usize) {
        loop {
            let less = self.less.notified();
            tokio::pin!(less);
            // Registered before the look, so that what comes between the two is not missed.
            less.as_mut().enable();
            if self.bytes.get() <= bytes || self.over.0.is_closed() {
                return;
            }
            less.await;
        }
    }
}

impl Connection {
    pub fn speaker(&self) -> Result<Speaker, Fault> {
        self.speaker.borrow().clone()
    }

    /// It was tried to prove who speaks.
    pub fn proved(&self, speaker: Result<Speaker, Fault>) {
        *self.speaker.borrow_mut() = speaker;
    }

    pub fn peer(&self) -> crate::session::Peer {
        (self.number, self.out.clone())
    }

    /// Where messages for it go, and what waits there.
    pub fn way(&self) -> (UnboundedSender<Box<Message>>, Rc<Unread>) {
        (self.out.clone(), Rc::clone(&self.unread))
    }
}

impl Server {
    /// Serves a connection at the unix socket until its end.
    pub async fn serve(self: Rc<Self>, stream: UnixStream) {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid()).unwrap_or_default();
        // At once: its pid may be another's once it is gone.
        let process = Peer::of(&stream).map(Arc::new);
        let (mut reader, writer) = stream.into_split();
        let nobody = Fault::new(Code::Unidentified, "this connection has not identified its actor")
            .hint("send `identify` first, with a key the host knows");
        let (connection, answers) = self.connection(Err(nobody), process, None);
        let mut writing = tokio::task::spawn_local(write_all(writer, answers, Rc::clone(&connection.unread)));
        let told_to_go = self.lobby.come(connection.number, pid);
        let read = tokio::select! {
            read = self.clone().read_all(&mut reader, &connection) => read,
            () = told_to_go => {
                // Nobody is there that answers were for.
                writing.abort();
                Ok(())
            }
        };
        if let Err(error) = read
            && error.kind() == io::ErrorKind::InvalidData
        {
            // What it sent is not quoted: it may have been meant for a session.
            tracing::warn!(connection = connection.number, "closed: it does not speak the protocol");
        }
        self.lobby.leave(connection.number);
        self.over(connection, has_hung_up(&reader));
        let _ = (&mut writing).await;
    }

    /// Serves a client that came through a relay, until its end or that of its device.
    pub async fn serve_arrival(self: Rc<Self>, arrival: Arrival) {
        let Arrival { stream, binding, key, invite } = arrival;
        let Ok(stream) = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream)) else { return };
        let arrived = Arrived { binding, key, invite };
        // Who it is if it proves it; a guest of an invite is nobody yet, and has nothing to do here but to accept it.
        let device = if invite.is_none() { self.device_of(&arrived).ok() } else { None };
        if invite.is_none() && device.is_none() {
            return;
        }
        let _counted = device.as_ref().and_then(|by| by.path.cap()).map(|cap| Counted::one(&self, &cap.token));
        let (mut reader, writer) = stream.into_split();
        let nobody = Fault::new(Code::Unidentified, "this connection has not identified its actor")
            .hint("send `identify` first");
        let (connection, answers) = self.connection(Err(nobody), None, Some(arrived));
        let mut writing = tokio::task::spawn_local(write_all(writer, answers, Rc::clone(&connection.unread)));
        let told_to_go = self.lobby.come(connection.number, THROUGH_RELAYS);
        let over = async {
            match &device {
                Some(device) => self.cap_ended(device).await,
                None => tokio::time::sleep(ACCEPT).await,
            }
        };
        let served = tokio::select! {
            read = self.clone().read_all(&mut reader, &connection) => read,
            () = told_to_go => Err(io::ErrorKind::TimedOut.into()),
            () = over => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        if served.is_err() {
            writing.abort();
        }
        self.lobby.leave(connection.number);
        self.over(connection, served.is_err() || has_hung_up(&reader));
        let _ = (&mut writing).await;
    }

    /// Serves a connection that another surface made, until its end or that of what caps its speaker.
    pub async fn serve_speaker(
        self: Rc<Self>,
        by: Speaker,
        mut incoming: mpsc::Receiver<Box<Message>>,
        outgoing: mpsc::Sender<Box<Message>>,
    ) {
        let (connection, answers) = self.connection(Ok(by.clone()), None, None);
        let ended = self.cap_ended(&by);
        tokio::pin!(ended);
        let there = outgoing.clone();
        let mut writing = tokio::task::spawn_local(pass_all(outgoing, answers, Rc::clone(&connection.unread)));
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
                heard = self.hear(*message, &connection, &open) => if heard.is_err() { break },
                _ = &mut writing => break,
                () = there.closed() => break,
                () = &mut ended => break,
            }
        }
        writing.abort();
        self.over(connection, true);
    }

    fn connection(
        &self,
        speaker: Result<Speaker, Fault>,
        process: Option<Arc<Peer>>,
        arrived: Option<Arrived>,
    ) -> (Rc<Connection>, UnboundedReceiver<Box<Message>>) {
        let number = self.next_peer.get();
        self.next_peer.set(number + 1);
        self.presence.came(number, process.as_ref().map(|process| process.id()), speaker.is_ok());
        if let Ok(speaker) = &speaker {
            self.presence.is(number, Some(&speaker.actor));
        }
        let (out, answers) = unbounded_channel();
        let mut challenge = [0; 32];
        getrandom::fill(&mut challenge).expect("the kernel gives random bytes");
        let connection = Connection {
            number,
            out,
            challenge: Challenge(challenge),
            process,
            arrived,
            whence: OnceCell::new(),
            shell: OnceCell::new(),
            speaker: RefCell::new(speaker),
            unread: Rc::new(Unread::new()),
            follows: Follows::default(),
            lines: Lines::default(),
        };
        (Rc::new(connection), answers)
    }

    /// No more is asked. Where nobody hears the answers either, what only looks is not looked for any longer.
    fn over(&self, connection: Rc<Connection>, is_gone: bool) {
        if is_gone {
            connection.unread.nobody();
        }
        connection.follows.end();
        self.presence.left(connection.number);
        self.registry.ahead.left(connection.number);
        for session in self.registry.all() {
            session.peer_gone(connection.number);
        }
    }

    async fn read_all(self: Rc<Self>, reader: &mut OwnedReadHalf, connection: &Rc<Connection>) -> io::Result<()> {
        let open = Arc::new(Semaphore::new(OPEN_REQUESTS_MAX));
        let mut received = Vec::with_capacity(RECEIVE_BYTES);
        loop {
            // Whoever has not said who it is has little to say.
            let max = if connection.speaker.borrow().is_ok() { REQUEST_BYTES_MAX } else { STRANGERS_BYTES_MAX };
            let decoded = Frame::decode(&received, max);
            let (message, taken) = match decoded {
                Ok(Some((frame, taken))) if frame.json.len() <= HERE_BYTES_MAX => (Message::decode(frame), taken),
                Ok(Some((_, taken))) => {
                    let rest = received.split_off(taken);
                    let whole = std::mem::replace(&mut received, rest);
                    (elsewhere(move || decode_alone(&whole)).await?, 0)
                }
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
            self.hear(message, connection, &open).await?;
        }
    }

    /// Takes a message and sees to its answer, once there is room for one.
    async fn hear(
        self: &Rc<Self>,
        message: Message,
        connection: &Rc<Connection>,
        open: &Arc<Semaphore>,
    ) -> io::Result<()> {
        let Body::Request { id, method, params } = message.body else { return Ok(()) };
        connection.unread.until_at_most(UNREAD_BYTES_MAX).await;
        let permit = Arc::clone(open).acquire_owned().await.map_err(io::Error::other)?;
        let call = if value_weight(&params) <= HERE_BYTES_MAX {
            Call::decode(&method, params)
        } else {
            elsewhere(move || Call::decode(&method, params)).await?
        };
        let mut place = call.as_ref().ok().and_then(|call| connection.lines.place(call));
        let (server, connection) = (Rc::clone(self), Rc::clone(connection));
        tokio::task::spawn_local(async move {
            let asker = Rc::clone(&connection);
            let only_looks = call.as_ref().is_ok_and(only_looks);
            // A task of its own: whoever runs into a fault of ours is told, instead of waiting for ever.
            let answer = async move {
                let refused = match &mut place {
                    Some(place) => place.reached().await.err(),
                    None => None,
                };
                let answer = match (refused, call) {
                    (Some(fault), _) | (None, Err(fault)) => Err(fault),
                    (None, Ok(call)) => {
                        let answer = ASKED.scope(call.row().terms, server.answer(call, message.bytes, &asker));
                        PROCESS.scope(asker.process.clone(), answer).await
                    }
                };
                place.iter().for_each(|place| place.answered(&answer));
                (answer, place)
            };
            let mut answering = tokio::task::spawn_local(ASKER.scope(Rc::clone(&connection.unread.over), answer));
            let answered = tokio::select! {
                answered = &mut answering => answered,
                () = connection.unread.over.left(), if only_looks => return answering.abort(),
            };
            // What is behind it in line waits until it is answered: answers come in the same order.
            let (answer, _place) = answered.unwrap_or_else(|_| (Err(internal()), None));
            let (result, bytes) =
                answer.map_or_else(|fault| (Err(fault), Vec::new()), |(value, bytes)| (Ok(value), bytes));
            let answer = Box::new(Message { body: Body::Answer { id, result }, bytes });
            connection.unread.sent(&answer);
            let _ = connection.out.send(answer);
            drop(permit);
        });
        Ok(())
    }
}

/// Whether a call changes nothing: nobody misses it if nobody hears its answer.
pub(crate) fn only_looks(call: &Call) -> bool {
    call.row().terms.trace == Trace::Looks
}

/// Whether a call acts, waits, and then tells what was to be seen meanwhile: output of a run, or a human's answer.
pub(crate) fn tells_later(call: &Call) -> bool {
    matches!(call, Call::RunStart(_) | Call::RunCancel(_) | Call::QuestionAsk(_))
}

/// Whether a peer has closed both ways, not only what it says.
fn has_hung_up(reader: &OwnedReadHalf) -> bool {
    let stream: &UnixStream = reader.as_ref();
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Reads or writes a large message where that holds nobody up; one at a time, since it is work and no waiting.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    static ONE: Semaphore = Semaphore::const_new(1);
    let one = ONE.acquire().await.map_err(io::Error::other)?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(one);
        done
    });
    done.await.map_err(io::Error::other)
}

/// The message of one whole frame.
fn decode_alone(frame: &[u8]) -> Result<Message, Fault> {
    let decoded = Frame::decode(frame, REQUEST_BYTES_MAX).map_err(|e| Fault::new(Code::BadRequest, e.to_string()))?;
    decoded.map_or_else(|| Err(Fault::new(Code::BadRequest, "the frame is cut")), |(frame, _)| Message::decode(frame))
}

/// About how many bytes a value takes.
fn value_weight(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + value_weight(value)).sum(),
    };
    inside + size_of::<Value>()
}

/// About how much an answer or a piece of output takes until it is read. Other events weigh nothing: they are counted.
fn weight(message: &Message) -> usize {
    use value_weight as of;
    message.bytes.len()
        + match &message.body {
            Body::Answer { result: Ok(value), .. } => of(value),
            Body::Answer { result: Err(_), .. } => size_of::<Fault>(),
            Body::Event { params, .. } if !message.bytes.is_empty() => of(params),
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
        let bytes = weight(&message);
        if bytes - message.bytes.len() <= HERE_BYTES_MAX {
            message.encode(&mut out);
        } else {
            let encoded = elsewhere(move || {
                let mut out = Vec::new();
                message.encode(&mut out);
                out
            });
            let Ok(encoded) = encoded.await else { return unread.nobody() };
            out = encoded;
        }
        let written = while_read(async { writer.write_all(&out).await.is_ok() }, || answers.len()).await;
        unread.fewer(bytes);
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
