//! Clients' connections: requests in, answers and events out, over the unix socket or a WebSocket.
//!
//! A connection has a task of its own, and each request one too, so that a question that waits holds nobody up. What a client
//! has not read is bounded: no further question is taken while too much waits for it, and one to whom too many events wait is
//! let go.

use crate::serve::Server;
use holdfast_types::{Actor, Challenge};
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
use holdfast_wire::{Body, Call, Code, Fault, Message};
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
    out: UnboundedSender<Message>,
    pub challenge: Challenge,
    /// Proven; or why it was not.
    pub actor: RefCell<Result<Actor, Fault>>,
    /// The token that says who speaks, in place of a proof.
    pub token: Option<String>,
    unread: Rc<Unread>,
}

/// What the host said and the client has not read.
#[derive(Debug, Default)]
struct Unread {
    bytes: Cell<usize>,
    less: Notify,
}

impl Unread {
    fn more(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn fewer(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        self.less.notify_one();
    }

    async fn until_little(&self) {
        while self.bytes.get() > UNREAD_BYTES_MAX {
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
        let (reader, writer) = stream.into_split();
        let (speaker, answers) = self.speaker(None);
        let writing = tokio::task::spawn_local(write_all(writer, answers, Rc::clone(&speaker.unread)));
        if let Err(error) = self.clone().read_all(reader, &speaker).await
            && error.kind() == io::ErrorKind::InvalidData
        {
            crate::report!("holdfast host: connection {}: {error}", speaker.number);
        }
        self.over(speaker);
        let _ = writing.await;
    }

    /// Serves a connection of who shows a token until its end.
    pub async fn serve_token(
        self: Rc<Self>,
        token: String,
        mut incoming: mpsc::Receiver<Message>,
        outgoing: mpsc::Sender<Message>,
    ) {
        let (speaker, answers) = self.speaker(Some(token));
        let writing = tokio::task::spawn_local(pass_all(outgoing, answers, Rc::clone(&speaker.unread)));
        let open = Arc::new(Semaphore::new(OPEN_REQUESTS_MAX));
        while let Some(message) = incoming.recv().await {
            if self.hear(message, &speaker, &open).await.is_err() || writing.is_finished() {
                break;
            }
        }
        self.over(speaker);
        let _ = writing.await;
    }

    fn speaker(&self, token: Option<String>) -> (Rc<Speaker>, UnboundedReceiver<Message>) {
        let number = self.next_peer.get();
        self.next_peer.set(number + 1);
        self.presence.came(number);
        if let Some((actor, _)) = token.as_ref().and_then(|token| self.token_holder(token).ok()) {
            self.presence.is(number, Some(&actor));
        }
        let (out, answers) = unbounded_channel();
        let mut challenge = [0; 32];
        getrandom::fill(&mut challenge).expect("the kernel gives random bytes");
        let nobody = Fault::new(Code::Unidentified, "this connection has not said who speaks")
            .hint("prove it with `identify` first, by a key the host knows");
        let speaker = Speaker {
            number,
            out,
            challenge: Challenge(challenge),
            actor: RefCell::new(Err(nobody)),
            token,
            unread: Rc::default(),
        };
        (Rc::new(speaker), answers)
    }

    fn over(&self, speaker: Rc<Speaker>) {
        self.presence.left(speaker.number);
        for session in self.registry.all() {
            session.peer_gone(speaker.number);
        }
    }

    async fn read_all(self: Rc<Self>, mut reader: OwnedReadHalf, speaker: &Rc<Speaker>) -> io::Result<()> {
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
            // A task of its own: whoever runs into a fault of ours is told, instead of waiting for ever.
            let answering = tokio::task::spawn_local(async move {
                server.answer(Call::decode(&method, params)?, message.bytes, &asker).await
            });
            let (result, bytes) = match answering.await {
                Ok(Ok((value, bytes))) => (Ok(value), bytes),
                Ok(Err(fault)) => (Err(fault), Vec::new()),
                Err(_) => (Err(internal()), Vec::new()),
            };
            speaker.unread.more(bytes.len());
            let _ = speaker.out.send(Message { body: Body::Answer { id, result }, bytes });
            drop(permit);
        });
        Ok(())
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

async fn write_all(mut writer: OwnedWriteHalf, mut answers: UnboundedReceiver<Message>, unread: Rc<Unread>) {
    let mut out = Vec::new();
    while let Some(message) = answers.recv().await {
        out.clear();
        message.encode(&mut out);
        let written = while_read(async { writer.write_all(&out).await.is_ok() }, || answers.len()).await;
        unread.fewer(message.bytes.len());
        if !written {
            return;
        }
        if out.capacity() > 64 * 1024 {
            out = Vec::new();
        }
    }
}

async fn pass_all(outgoing: mpsc::Sender<Message>, mut answers: UnboundedReceiver<Message>, unread: Rc<Unread>) {
    while let Some(message) = answers.recv().await {
        let bytes = message.bytes.len();
        let passed = while_read(async { outgoing.send(message).await.is_ok() }, || answers.len()).await;
        unread.fewer(bytes);
        if !passed {
            return;
        }
    }
}
