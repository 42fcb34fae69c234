//! Clients' connections: requests in, answers and events out.
//!
//! A connection has a task of its own, and each request one too, so that a question that waits holds nobody up. What a
//! client has not read is bounded by how many questions it may have open.

use crate::registry::Registry;
use holdfast_types::TimeMs;
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
use holdfast_wire::message::VERSIONS;
use holdfast_wire::params::{DetachAnswer, HelloAnswer, HelloParams, HostStatus, Life, Nothing};
use holdfast_wire::{Body, Call, Code, Fault, Message};
use serde::Serialize;
use serde_json::Value;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore};

/// Questions a connection may have open: enough to end a thousand sessions at once without waiting in line for long.
const OPEN_REQUESTS_MAX: usize = 64;

/// Read at once: a whole request in most cases.
const RECEIVE_BYTES: usize = 4096;

/// What connections share.
#[derive(Debug)]
pub struct Server {
    /// The sessions.
    pub registry: Registry,
    /// When this host began.
    pub started_ms: TimeMs,
    /// Somebody asked the host to stop.
    pub stop: Notify,
    next_peer: Cell<u64>,
}

impl Server {
    /// A server over these sessions.
    pub fn new(registry: Registry) -> Server {
        Server { registry, started_ms: crate::now_ms(), stop: Notify::new(), next_peer: Cell::new(1) }
    }

    /// Serves one connection until its end.
    pub async fn serve(self: Rc<Self>, stream: UnixStream) {
        let peer = self.next_peer.get();
        self.next_peer.set(peer + 1);
        let (reader, writer) = stream.into_split();
        let (out, answers) = unbounded_channel();
        let writing = tokio::task::spawn_local(write_all(writer, answers));
        if let Err(error) = self.clone().read_all(reader, peer, &out).await
            && error.kind() == io::ErrorKind::InvalidData
        {
            eprintln!("holdfast host: connection {peer}: {error}");
        }
        for session in self.registry.all() {
            session.peer_gone(peer);
        }
        drop(out);
        let _ = writing.await;
    }

    async fn read_all(
        self: Rc<Self>,
        mut reader: tokio::net::unix::OwnedReadHalf,
        peer: u64,
        out: &UnboundedSender<Message>,
    ) -> io::Result<()> {
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
            let Body::Request { id, method, params } = message.body else { continue };
            let permit = Arc::clone(&open).acquire_owned().await.map_err(io::Error::other)?;
            let (server, out) = (Rc::clone(&self), out.clone());
            tokio::task::spawn_local(async move {
                let answered = match Call::decode(&method, params) {
                    Ok(call) => server.answer(call, message.bytes, (peer, out.clone())).await,
                    Err(fault) => Err(fault),
                };
                let (result, bytes) = match answered {
                    Ok((value, bytes)) => (Ok(value), bytes),
                    Err(fault) => (Err(fault), Vec::new()),
                };
                let _ = out.send(Message { body: Body::Answer { id, result }, bytes });
                drop(permit);
            });
        }
    }

    async fn answer(&self, call: Call, bytes: Vec<u8>, peer: crate::session::Peer) -> Result<(Value, Vec<u8>), Fault> {
        let registry = &self.registry;
        match call {
            Call::Hello(params) => hello(&params).and_then(plain),
            Call::New(params) => plain(registry.start(params).await?),
            Call::List(params) => {
                let shown = registry.all().into_iter().filter(|s| params.all || !matches!(s.view_life(), Life::Ended));
                plain(shown.map(|s| s.view()).collect::<Vec<_>>())
            }
            Call::Get(params) => plain(registry.find(&params.session)?.view_with_title()),
            Call::Attach(params) => {
                let (answer, bytes) = registry.find(&params.session)?.attach(&params, peer).await?;
                Ok((json(answer), bytes))
            }
            Call::Paint(params) => {
                let session = registry.find(&params.session)?;
                let (painted, bytes) = session.paint(&params);
                Ok((json(painted), bytes))
            }
            Call::Update(params) => plain(registry.find(&params.session)?.update(&params).await?),
            Call::Screen(params) => plain(registry.find(&params.session)?.screen(&params)),
            Call::Read(params) => {
                let (answer, bytes) = registry.find(&params.session)?.read(&params).await?;
                Ok((json(answer), bytes))
            }
            Call::Send(params) => plain(registry.find(&params.session)?.send(&params, &bytes).await?),
            Call::Wait(params) => plain(registry.find(&params.session)?.wait(&params).await),
            Call::Resize(params) => {
                registry.find(&params.session)?.resize(params.size).await?;
                plain(Nothing {})
            }
            Call::Rename(params) => {
                let session = registry.find(&params.session)?;
                if session.name() != params.name.as_str() && registry.is_taken(&params.name) {
                    return Err(Fault::new(
                        Code::NameTaken,
                        format!("a session named {} is already running", params.name),
                    )
                    .hint("choose another name"));
                }
                session.rename(params.name)?;
                plain(session.view())
            }
            Call::Detach(params) => plain(DetachAnswer { clients: registry.find(&params.session)?.detach(&params)? }),
            Call::End(params) => {
                let session = registry.find(&params.session)?;
                session.end(&params).await?;
                plain(session.view())
            }
            Call::Status(_) => plain(self.status()),
            Call::Stop(_) => {
                self.stop.notify_one();
                plain(Nothing {})
            }
        }
    }

    fn status(&self) -> HostStatus {
        let all = self.registry.all();
        let running = all.iter().filter(|s| s.is_live()).count() as u32;
        HostStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            started_ms: self.started_ms,
            state: self.registry.home.state.to_string_lossy().into_owned(),
            socket: self.registry.home.host_socket().to_string_lossy().into_owned(),
            running,
            ended: all.len() as u32 - running,
            clients: all.iter().map(|s| s.client_count()).sum(),
        }
    }
}

fn json(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).expect("answers are texts, numbers and lists")
}

fn plain(answer: impl Serialize) -> Result<(Value, Vec<u8>), Fault> {
    Ok((json(answer), Vec::new()))
}

fn hello(params: &HelloParams) -> Result<HelloAnswer, Fault> {
    let version = VERSIONS.iter().copied().find(|ours| params.versions.contains(ours)).ok_or_else(|| {
        Fault::new(Code::Version, format!("this host speaks protocol versions {VERSIONS:?}, not {:?}", params.versions))
            .hint("host and client are of different versions: `holdfast host restart` starts the installed one; sessions go on")
    })?;
    Ok(HelloAnswer { version, program: concat!("holdfast ", env!("CARGO_PKG_VERSION")).into() })
}

async fn write_all(mut writer: tokio::net::unix::OwnedWriteHalf, mut answers: UnboundedReceiver<Message>) {
    let mut out = Vec::new();
    while let Some(message) = answers.recv().await {
        out.clear();
        message.encode(&mut out);
        if writer.write_all(&out).await.is_err() {
            return;
        }
        if out.capacity() > 64 * 1024 {
            out = Vec::new();
        }
    }
}
