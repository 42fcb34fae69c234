//! Clients' connections: requests in, answers and events out.
//!
//! A connection has a task of its own, and each request one too, so that a question that waits holds nobody up. What a
//! client has not read is bounded by how many questions it may have open.

use crate::lookout::Lookout;
use crate::metrics::Gauges;
use crate::registry::Registry;
use crate::session::{Session, ports_of};
use holdfast_authority::{Ask, proof};
use holdfast_types::{Actor, Challenge, Right, TimeMs};
use holdfast_wire::frame::{Frame, REQUEST_BYTES_MAX};
use holdfast_wire::graphs::{PortView, PortsParams};
use holdfast_wire::message::VERSIONS;
use holdfast_wire::params::{
    DetachAnswer, HelloAnswer, HelloParams, HostStatus, Life, Nothing, RenameParams, SessionView,
};
use holdfast_wire::turns::{ActorParams, ActorView, IdentifyAnswer, IdentifyParams, MetricsAnswer};
use holdfast_wire::{Body, Call, Code, Fault, Message};
use serde::Serialize;
use serde_json::Value;
use std::cell::{Cell, RefCell};
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
    /// Who watches sessions' processes.
    lookout: Rc<Lookout>,
    next_peer: Cell<u64>,
}

/// One connection: where events for it go, and who speaks there.
#[derive(Debug)]
struct Speaker {
    number: u64,
    out: UnboundedSender<Message>,
    challenge: Challenge,
    /// Proven; or why it was not.
    actor: RefCell<Result<Actor, Fault>>,
}

impl Speaker {
    fn actor(&self) -> Result<Actor, Fault> {
        self.actor.borrow().clone()
    }

    fn peer(&self) -> crate::session::Peer {
        (self.number, self.out.clone())
    }
}

impl Server {
    /// A server over these sessions.
    pub fn new(registry: Registry) -> Server {
        Server {
            registry,
            started_ms: crate::now_ms(),
            stop: Notify::new(),
            lookout: Rc::default(),
            next_peer: Cell::new(1),
        }
    }

    /// Serves one connection until its end.
    pub async fn serve(self: Rc<Self>, stream: UnixStream) {
        let number = self.next_peer.get();
        self.next_peer.set(number + 1);
        let (reader, writer) = stream.into_split();
        let (out, answers) = unbounded_channel();
        let writing = tokio::task::spawn_local(write_all(writer, answers));
        let mut challenge = [0; 32];
        getrandom::fill(&mut challenge).expect("the kernel gives random bytes");
        let nobody = Fault::new(Code::Unidentified, "this connection has not said who speaks")
            .hint("prove it with `identify` first, by a key the host knows");
        let speaker = Rc::new(Speaker {
            number,
            out: out.clone(),
            challenge: Challenge(challenge),
            actor: RefCell::new(Err(nobody)),
        });
        if let Err(error) = self.clone().read_all(reader, &speaker).await
            && error.kind() == io::ErrorKind::InvalidData
        {
            crate::report!("holdfast host: connection {number}: {error}");
        }
        for session in self.registry.all() {
            session.peer_gone(number);
        }
        drop((out, speaker));
        let _ = writing.await;
    }

    async fn read_all(
        self: Rc<Self>,
        mut reader: tokio::net::unix::OwnedReadHalf,
        speaker: &Rc<Speaker>,
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
            let (server, speaker) = (Rc::clone(&self), Rc::clone(speaker));
            tokio::task::spawn_local(async move {
                let asker = Rc::clone(&speaker);
                // A task of its own: whoever runs into a fault of ours is told, instead of waiting for ever.
                let answering = tokio::task::spawn_local(async move {
                    server.answer(Call::decode(&method, params)?, message.bytes, &asker).await
                });
                let (result, bytes) = match answering.await {
                    Ok(Ok((value, bytes))) => (Ok(value), bytes),
                    Ok(Err(fault)) => (Err(fault), Vec::new()),
                    Err(_) => (Err(Fault::new(Code::Internal, "the host ran into a fault of its own")), Vec::new()),
                };
                let _ = speaker.out.send(Message { body: Body::Answer { id, result }, bytes });
                drop(permit);
            });
        }
    }

    /// Answers one question. Who asks is checked here for what only looks, and by the session's authority for every act.
    async fn answer(&self, call: Call, bytes: Vec<u8>, speaker: &Speaker) -> Result<(Value, Vec<u8>), Fault> {
        match call {
            Call::Hello(params) => hello(&params, speaker.challenge).and_then(plain),
            Call::Identify(params) => plain(self.identify(&params, speaker)?),
            Call::Status(_) => plain(self.status()),
            call => self.answer_known(call, bytes, speaker, speaker.actor()?).await,
        }
    }

    /// What concerns the host, and what only looks at a session.
    async fn answer_known(
        &self,
        call: Call,
        bytes: Vec<u8>,
        speaker: &Speaker,
        actor: Actor,
    ) -> Result<(Value, Vec<u8>), Fault> {
        let registry = &self.registry;
        let right = call.row().right;
        let find = |session: &str| registry.find_for(session, &actor, right.unwrap_or(Right::Observe));
        match call {
            Call::New(params) => {
                self.must_be_known(&actor)?;
                plain(registry.start(params, &actor).await?)
            }
            Call::List(params) => {
                let all = registry.all().into_iter().filter(|s| s.rights(&actor).has(Right::Observe));
                let shown = all.filter(|s| params.all || !matches!(s.view_life(), Life::Ended));
                let shown = shown.filter(|s| !s.has_passed());
                plain(shown.map(|s| s.view()).collect::<Vec<_>>())
            }
            Call::Get(params) => plain(find(&params.session)?.view_with_title()),
            Call::Attach(params) => with(find(&params.session)?.attach(&params, &actor, speaker.peer()).await?),
            Call::Paint(params) => with(find(&params.session)?.paint_for(&params, &actor)),
            Call::Update(params) => plain(find(&params.session)?.update(&params, &actor).await?),
            Call::Leave(params) => {
                find(&params.session)?.leave(&params, &actor)?;
                plain(Nothing {})
            }
            Call::Screen(params) => plain(find(&params.session)?.screen(&params)),
            Call::Read(params) => with(find(&params.session)?.read(&params).await?),
            Call::Journal(params) => with(find(&params.session)?.journal(&params).await?),
            Call::State(params) => plain(find(&params.session)?.doing().await?),
            Call::Env(params) => Ok((find(&params.session)?.env(&params).await?, Vec::new())),
            Call::Watch(params) => plain(self.watch(&params, &actor).await?),
            Call::Wait(params) => plain(find(&params.session)?.wait(&params).await),
            Call::Graph(params) => Ok((find(&params.session)?.graph(&params).await?, Vec::new())),
            Call::Ports(params) => plain(self.ports(&params, &actor).await?),
            Call::WatchGraph(params) => plain(self.lookout.watch(&*find(&params.session)?, &params).await?),
            Call::RunGet(params) => plain(self.run_get(&params, &actor).await?),
            Call::RunOutput(params) => with(self.run_output(&params, &actor)?),
            Call::RunList(params) => plain(self.run_list(&params, &actor)?),
            Call::QuestionAsk(params) => plain(self.question_ask(&params, &actor).await?),
            Call::QuestionGet(params) => plain(self.question_get(&params, &actor).await?),
            Call::QuestionList(params) => plain(self.question_list(&params, &actor)?),
            Call::Turn(params) => plain(find(&params.session)?.turn()),
            Call::Withdraw(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Withdraw, &actor).await?),
            Call::Grants(params) => plain(find(&params.session)?.grants(&actor)),
            Call::Actors(_) => {
                self.must_be_known(&actor)?;
                plain(self.actors())
            }
            Call::ActorRemove(params) => {
                self.remove_actor(&params, &actor)?;
                plain(Nothing {})
            }
            Call::Metrics(_) => {
                self.must_be_known(&actor)?;
                plain(MetricsAnswer { text: self.metrics() })
            }
            Call::Stop(_) => {
                self.must_be_known(&actor)?;
                self.stop.notify_one();
                plain(Nothing {})
            }
            act => {
                // What was typed may be a secret.
                let bytes = zeroize::Zeroizing::new(bytes);
                self.answer_act(act, &bytes, &actor).await
            }
        }
    }

    /// What acts on a session: whether it may is the session's authority's to say.
    async fn answer_act(&self, call: Call, bytes: &[u8], actor: &Actor) -> Result<(Value, Vec<u8>), Fault> {
        let find = |session: &str| self.registry.find_acting(session, actor);
        match call {
            Call::Send(params) => plain(find(&params.session)?.send(&params, bytes, actor).await?),
            Call::Resize(params) => {
                find(&params.session)?.resize_asked(&params, actor).await?;
                plain(Nothing {})
            }
            Call::Signal(params) => {
                find(&params.session)?.signal(&params, actor).await?;
                plain(Nothing {})
            }
            Call::Rename(params) => {
                let session = find(&params.session)?;
                plain(self.rename(&session, &params, actor)?)
            }
            Call::Detach(params) => plain(DetachAnswer { clients: find(&params.session)?.detach(&params, actor)? }),
            Call::End(params) => {
                let session = find(&params.session)?;
                session.end(&params, actor).await?;
                plain(session.view())
            }
            Call::RunStart(params) => plain(self.run_start(&params, actor).await?),
            Call::RunCancel(params) => plain(self.run_cancel(&params, actor).await?),
            Call::QuestionAnswer(params) => plain(self.question_answer(&params, actor).await?),
            Call::QuestionWithdraw(params) => plain(self.question_withdraw(&params, actor).await?),
            Call::Take(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Take, actor).await?),
            Call::Request(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Request, actor).await?),
            Call::Release(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Release, actor).await?),
            Call::Thaw(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Thaw, actor).await?),
            Call::Give(params) => {
                self.must_be_itself(&params.to)?;
                plain(find(&params.session)?.give(&params, actor).await?)
            }
            Call::Seize(params) => plain(find(&params.session)?.seize(&params, actor).await?),
            Call::Grant(params) => {
                self.must_be_itself(&params.to)?;
                plain(find(&params.session)?.grant(&params, actor)?)
            }
            Call::Revoke(params) => plain(find(&params.session)?.revoke(&params, actor)?),
            other => Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
        }
    }

    fn rename(&self, session: &Session, params: &RenameParams, actor: &Actor) -> Result<SessionView, Fault> {
        if session.name() != params.name.as_str() && self.registry.is_taken(&params.name) {
            return Err(Fault::new(Code::NameTaken, format!("a session named {} is already running", params.name))
                .hint("choose another name"));
        }
        session.rename(params, actor)?;
        Ok(session.view())
    }

    /// Who listens where: in one session, or in all that an actor may observe.
    async fn ports(&self, params: &PortsParams, actor: &Actor) -> Result<Vec<PortView>, Fault> {
        let mut trees = Vec::new();
        match &params.session {
            Some(session) => trees.push(self.registry.find_for(session, actor, Right::Observe)?.tree().await?),
            None => {
                let all = self.registry.all().into_iter();
                for session in all.filter(|s| s.view_life() == Life::Running && s.rights(actor).has(Right::Observe)) {
                    // One that ends now, or does not answer, has none to tell.
                    trees.extend(session.tree().await.ok());
                }
            }
        }
        ports_of(trees).await
    }

    /// Takes a connection for who it proves to be.
    fn identify(&self, params: &IdentifyParams, speaker: &Speaker) -> Result<IdentifyAnswer, Fault> {
        let proven = self.prove(params, speaker);
        *speaker.actor.borrow_mut() = proven.clone();
        let actor = proven?;
        let known = self.registry.shared.policy().vouches(&actor);
        Ok(IdentifyAnswer { actor, known })
    }

    fn prove(&self, params: &IdentifyParams, speaker: &Speaker) -> Result<Actor, Fault> {
        let bytes = proof::challenge_bytes(&speaker.challenge.0, proof::UNIX_BINDING, &params.actor);
        proof::verify(params.actor.id, &bytes, &params.signature).map_err(|error| {
            Fault::new(Code::Unidentified, format!("{} is not proven: {error}", params.actor.handle))
        })?;
        let shared = &self.registry.shared;
        if shared.actors.borrow_mut().learn(&params.actor) {
            self.registry.actors_changed();
        }
        if !self.is_itself(&params.actor) {
            return Err(Fault::new(Code::Unidentified, format!("the key is not that of {}", params.actor.handle)));
        }
        Ok(params.actor.clone())
    }

    /// A known handle with another key is somebody else, and so is a known key with another handle.
    fn is_itself(&self, actor: &Actor) -> bool {
        let actors = self.registry.shared.actors.borrow();
        let by_handle = actors.by_handle(&actor.handle).is_none_or(|known| known.id == actor.id);
        by_handle && actors.vouched().get(&actor.id).is_none_or(|handle| *handle == actor.handle)
    }

    /// Whoever is given something is given it under its own name.
    fn must_be_itself(&self, actor: &Actor) -> Result<(), Fault> {
        if self.is_itself(actor) {
            return Ok(());
        }
        Err(Fault::new(Code::NoSuchActor, format!("the key is not that of {}", actor.handle)))
    }

    /// Whoever starts sessions or stops the host is known to it.
    pub(crate) fn must_be_known(&self, actor: &Actor) -> Result<(), Fault> {
        if self.registry.shared.policy().vouches(actor) {
            return Ok(());
        }
        Err(Fault::new(Code::Denied, format!("this host does not know {actor}")))
    }

    fn actors(&self) -> Vec<ActorView> {
        let shared = &self.registry.shared;
        if shared.actors.borrow_mut().refresh() {
            self.registry.actors_changed();
        }
        let sessions = self.registry.all();
        let attached = |actor: &Actor| {
            let here = sessions.iter().filter(|s| s.is_live());
            let is_its = |s: &&Rc<Session>| s.view().clients.iter().any(|c| c.actor.as_ref() == Some(actor));
            here.filter(is_its).map(|s| s.name()).collect()
        };
        let all = shared.actors.borrow().all();
        all.into_iter().map(|actor| ActorView { sessions: attached(&actor), actor }).collect()
    }

    /// Forgets an actor. A human forgets anybody, everybody else only themselves.
    fn remove_actor(&self, params: &ActorParams, by: &Actor) -> Result<(), Fault> {
        if params.handle != by.handle && !self.registry.shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, "only a human makes the host forget somebody else"));
        }
        let known = self.registry.shared.actors.borrow().by_handle(&params.handle);
        let removed = self.registry.shared.actors.borrow_mut().remove(&params.handle);
        match removed {
            Ok(true) => {
                self.registry.actors_changed();
                for session in self.registry.all().into_iter().filter(|session| session.is_live()) {
                    known.iter().for_each(|actor| session.forget(actor.id));
                }
                Ok(())
            }
            Ok(false) => Err(Fault::new(Code::NoSuchActor, format!("this host knows no {}", params.handle))
                .hint("see `holdfast actor ls`")),
            Err(error) => Err(Fault::new(Code::Internal, format!("the key cannot be removed: {error}"))),
        }
    }

    /// The counters as text.
    pub fn metrics(&self) -> String {
        let all = self.registry.all();
        let count = |life: Life| all.iter().filter(|s| s.view_life() == life).count() as u64;
        self.registry.shared.metrics.render(&Gauges {
            running: count(Life::Running),
            ended: count(Life::Ended),
            unknown: count(Life::Unknown),
            damaged: count(Life::Damaged),
            clients: all.iter().map(|s| u64::from(s.client_count())).sum(),
        })
    }

    fn status(&self) -> HostStatus {
        let all = self.registry.all();
        let running = all.iter().filter(|s| s.is_live()).count() as u32;
        HostStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            started_ms: self.started_ms,
            state: self.registry.shared.home.state.to_string_lossy().into_owned(),
            socket: self.registry.shared.home.host_socket().to_string_lossy().into_owned(),
            running,
            ended: all.len() as u32 - running,
            clients: all.iter().map(|s| s.client_count()).sum(),
        }
    }
}

fn json(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).expect("answers are texts, numbers and lists")
}

fn with((answer, bytes): (impl Serialize, Vec<u8>)) -> Result<(Value, Vec<u8>), Fault> {
    Ok((json(answer), bytes))
}

fn plain(answer: impl Serialize) -> Result<(Value, Vec<u8>), Fault> {
    Ok((json(answer), Vec::new()))
}

fn hello(params: &HelloParams, challenge: Challenge) -> Result<HelloAnswer, Fault> {
    let version = VERSIONS.iter().copied().find(|ours| params.versions.contains(ours)).ok_or_else(|| {
        Fault::new(Code::Version, format!("this host speaks protocol versions {VERSIONS:?}, not {:?}", params.versions))
            .hint("host and client are of different versions: `holdfast host restart` starts the installed one; sessions go on")
    })?;
    Ok(HelloAnswer { version, program: concat!("holdfast ", env!("CARGO_PKG_VERSION")).into(), challenge })
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
