//! A host asked over its socket, by ssh or through a relay, many questions at once, in the name of one agent.
//!
//! A connection that breaks is made anew, and the host is started where it is not there, as every command does it. What was asked
//! is then asked again, but for what would happen twice by that.

use crate::args::NewArgs;
use crate::commands::new;
use crate::config::Config;
use crate::failure::Failure;
use crate::here::Here;
use crate::hosts::{self, Elsewhere};
use holdfast_authority::Ask;
use holdfast_client::{Identity, Route};
use holdfast_mcp::{Claim, Client, Host, Wanted};
use holdfast_types::{ActorClass, Handle, Home, SessionId, Size};
use holdfast_wire::frame::{FRAME_BYTES_MAX, Frame};
use holdfast_wire::{Body, Code, Fault, Message};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// Hosts that break one after the other without an answer in between before we give up, as for every command.
const BREAKS_MAX: u64 = 10;
/// Pause after a break, times the breaks so far.
const BREAK_PAUSE_MS: u64 = 20;
/// Read at once.
const RECEIVE_BYTES: usize = 64 * 1024;
/// A client that does not say what it is.
const UNNAMED: &str = "mcp";
/// Columns and rows of sessions that agents start: lines wrap less than at 80 columns, and a person's window still shows it.
const SIZE: (u16, u16) = (120, 40);

/// An answer and its bytes.
type Answer = Result<(Value, Vec<u8>), Fault>;

/// The host, for one agent.
#[derive(Clone)]
pub struct HostLink(Arc<Inner>, Start);

/// What is done where no host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// One is started.
    Yes,
    /// Nothing: somebody may have stopped it on purpose.
    No,
}

struct Inner {
    home: Home,
    program: PathBuf,
    said: Option<Identity>,
    /// The host, where it is another machine's.
    elsewhere: Option<Elsewhere>,
    client: OnceLock<Client>,
    live: tokio::sync::Mutex<Option<Arc<Live>>>,
}

/// One connection.
struct Live {
    out: UnboundedSender<Vec<u8>>,
    who: Identity,
    next_id: AtomicU64,
    /// Who waits for which answer; none where the connection is broken.
    open: Open,
}

/// Who waits for which answer.
type Open = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>>;

/// The connection broke before there was an answer.
struct Broken;

impl HostLink {
    /// A link that connects when something is asked.
    pub fn new(here: &Here, said: Option<Identity>) -> Result<HostLink, Failure> {
        // A host that cannot read its configuration would only end up as a line in a log.
        here.config()?;
        Ok(HostLink(
            Arc::new(Inner {
                home: here.home.clone(),
                program: here.program.clone(),
                said,
                elsewhere: here.elsewhere().cloned(),
                client: OnceLock::new(),
                live: tokio::sync::Mutex::new(None),
            }),
            Start::Yes,
        ))
    }

    fn client(&self) -> Client {
        let unnamed = || Client { name: UNNAMED.into(), version: String::new() };
        self.0.client.get().cloned().unwrap_or_else(unnamed)
    }

    fn handle(&self) -> Handle {
        match &self.0.said {
            Some(identity) => identity.actor().handle.clone(),
            None => Handle::near(ActorClass::Agent, trimmed(&self.client().name)),
        }
    }

    /// The connection there is, or a new one.
    async fn live(&self) -> Result<Arc<Live>, Fault> {
        let mut live = self.0.live.lock().await;
        if let Some(live) = live.as_ref().filter(|live| live.is_whole()) {
            return Ok(Arc::clone(live));
        }
        let fresh = Arc::new(self.connect().await?);
        *live = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    async fn connect(&self) -> Result<Live, Fault> {
        let (inner, start, handle, client) = (Arc::clone(&self.0), self.1, self.handle(), self.client());
        // Connecting may start a host, and waits for it as every command does.
        let connecting = tokio::task::spawn_blocking(move || {
            let who = match &inner.said {
                Some(who) => who.clone(),
                None => Identity::load_or_make(&inner.home, &handle)?,
            };
            let said = format!("mcp {} {}", client.name, client.version);
            let (route, who) = inner.route(who)?;
            let connection = match start {
                Start::Yes => route.connect_as(&who, said.trim_end())?,
                Start::No => route.connect_if_running(&who, said.trim_end())?,
            };
            Ok::<_, Failure>((connection.into_parts(), who))
        });
        let connected = connecting.await.map_err(|error| Fault::new(Code::Internal, error.to_string()))?;
        let ((stream, received, next_id), who) = connected.map_err(|failure| fault(&failure))?;
        Live::start(stream, received, next_id, who)
            .map_err(|error| Fault::new(Code::Internal, format!("the host's socket: {error}")))
    }

    /// Asks until there is an answer; `params` are made anew each time.
    async fn until_answered(
        &self,
        method: &str,
        params: impl Fn(&Identity) -> Value,
        bytes: &[u8],
        once: bool,
    ) -> Answer {
        for breaks in 0..BREAKS_MAX {
            if breaks > 0 {
                // Only then: the shortest sleep is a millisecond, and every question would have it.
                tokio::time::sleep(Duration::from_millis(BREAK_PAUSE_MS * breaks)).await;
            }
            let live = self.live().await?;
            match live.ask(method, params(&live.who), bytes).await {
                Ok(answer) => return answer,
                Err(Broken) if once => {
                    let message = format!("the host stopped before it answered {method}, which may have been done");
                    return Err(Fault::new(Code::Internal, message).hint("check before you try again"));
                }
                Err(Broken) => {}
            }
        }
        Err(Fault::new(Code::Internal, "the host stops every time it gets this request")
            .hint("see `holdfast host status`"))
    }
}

impl Inner {
    /// The way to the host, and the actor as it is known there. Nobody is there who could type a password.
    fn route(&self, who: Identity) -> Result<(Route, Identity), Failure> {
        let Some(known) = &self.elsewhere else {
            return Ok((Route::Here { home: self.home.clone(), program: self.program.clone() }, who));
        };
        let mut host = known.clone();
        let who = host.known_unattended(&self.home, &who)?;
        if host != *known {
            hosts::keep(&self.home, &host)?;
        }
        Ok((host.route(&self.home)?.unattended(), who))
    }

    /// What keeps other servers of this machine from a session.
    fn lock_of(&self, session: SessionId) -> io::Result<File> {
        if self.elsewhere.is_none() {
            // The session's directory lies there as long as the session.
            return File::open(self.home.session(session));
        }
        let file = self.home.run.join(format!("mcp-{session}.lock"));
        OpenOptions::new().create(true).append(true).mode(0o600).open(file)
    }
}

impl Host for HostLink {
    async fn call(&self, method: &str, params: Value, bytes: Vec<u8>) -> Answer {
        // A second session, flow or signal would be one too many; everything else has an id of its own, or only looks.
        let once = matches!(method, "session.new" | "flow.start" | "flow.signal");
        self.until_answered(method, |_| params.clone(), &bytes, once).await
    }

    async fn act(&self, session: SessionId, ask: Ask, method: &str, params: Value) -> Result<Value, Fault> {
        // Signed anew each time: a copied signature is found out.
        let signed = |who: &Identity| {
            let mut params = params.clone();
            params["proof"] = json!(who.prove(session, &ask));
            params
        };
        Ok(self.until_answered(method, signed, &[], false).await?.0)
    }

    async fn settle(&self, wanted: Wanted) -> Result<Value, Fault> {
        let config = Config::load(&self.0.home.config_file(), |key| std::env::var_os(key));
        let args = NewArgs {
            name: wanted.name,
            detach: true,
            cwd: wanted.cwd.map(PathBuf::from),
            env: wanted.env_add,
            size: Some(Size::clamped(SIZE.0, SIZE.1)),
            command: wanted.command,
            ..NewArgs::default()
        };
        let params = match self.0.elsewhere {
            Some(_) => Ok(new::params_elsewhere(&args)),
            None => config.and_then(|config| new::params_by(config, &args)),
        };
        let params = params.map_err(|failure| fault(&failure))?;
        serde_json::to_value(params).map_err(|error| Fault::new(Code::Internal, error.to_string()))
    }

    fn claim(&self, session: SessionId, _connected: bool) -> Option<Claim> {
        // The lock is given back when this process is gone, however it ends.
        let Ok(file) = self.0.lock_of(session) else { return Some(Box::new(())) };
        let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        locked.is_ok().then(|| Box::new(file) as Claim)
    }

    fn can_start_ahead(&self) -> bool {
        // Neither a host nor a connection to another machine is made for what may not be wanted.
        self.0.elsewhere.is_none() && self.0.home.host_socket().exists()
    }

    fn own_name(&self) -> String {
        self.handle().name().to_owned()
    }

    fn has_flows(&self) -> bool {
        self.0.elsewhere.is_some() || crate::platform::has_flows(&self.0.home)
    }

    fn machine(&self) -> Option<String> {
        self.0.elsewhere.as_ref().map(|host| host.name.clone())
    }

    fn quietly(&self) -> HostLink {
        HostLink(Arc::clone(&self.0), Start::No)
    }

    fn meet(&self, client: &Client) {
        self.0.client.get_or_init(|| client.clone());
    }
}

/// A client's name without the marks around it: `@cline/core` begins with one.
fn trimmed(name: &str) -> &str {
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { UNNAMED } else { name }
}

/// What this program says of itself as the host would say it.
fn fault(failure: &Failure) -> Fault {
    if failure.is("unreachable") {
        // What to type is for the person who reads the server's log; the agent has no shell here.
        failure.report(false);
        return Fault::new(Code::Internal, failure.message())
            .hint("Nothing was done. Try again in a while; if that does not help, tell the person you work for.");
    }
    Fault::new(Code::Internal, failure.message()).hint(failure.advice())
}

impl Live {
    fn start(
        stream: std::os::unix::net::UnixStream,
        received: Vec<u8>,
        next_id: u64,
        who: Identity,
    ) -> io::Result<Live> {
        stream.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        let (out, queue) = unbounded_channel();
        tokio::spawn(write_all(writer, queue));
        let open: Open = Arc::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(read_all(reader, received, Arc::clone(&open)));
        Ok(Live { out, who, next_id: AtomicU64::new(next_id), open })
    }

    fn is_whole(&self) -> bool {
        lock(&self.open).is_some()
    }

    async fn ask(&self, method: &str, params: Value, bytes: &[u8]) -> Result<Answer, Broken> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        lock(&self.open).as_mut().ok_or(Broken)?.insert(id, tell);
        let body = Body::Request { id, method: method.to_owned(), params };
        let mut frame = Vec::new();
        Message { body, bytes: bytes.to_vec() }.encode(&mut frame);
        self.out.send(frame).map_err(|_| Broken)?;
        answer.await.map_err(|_| Broken)
    }
}

fn lock(open: &Open) -> std::sync::MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<Answer>>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task of its own: who stops waiting in the middle must not leave half a frame behind.
async fn write_all(mut writer: OwnedWriteHalf, mut queue: UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = queue.recv().await {
        if writer.write_all(&frame).await.is_err() {
            return;
        }
    }
}

/// Hands answers to who waits for them, until the connection is over.
async fn read_all(mut reader: OwnedReadHalf, mut received: Vec<u8>, open: Open) {
    loop {
        match Frame::decode(&received, FRAME_BYTES_MAX) {
            Ok(Some((frame, taken))) => {
                let message = Message::decode(frame);
                received.drain(..taken);
                let Ok(Message { body: Body::Answer { id, result }, bytes }) = message else { continue };
                let waiting = lock(&open).as_mut().and_then(|open| open.remove(&id));
                // The caller may have given up on the answer.
                let _ = waiting.map(|waiting| waiting.send(result.map(|value| (value, bytes))));
            }
            Ok(None) => {
                received.reserve(RECEIVE_BYTES);
                if !matches!(reader.read_buf(&mut received).await, Ok(1..)) {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    // Callers that wait learn by this that no answer will come.
    *lock(&open) = None;
}
