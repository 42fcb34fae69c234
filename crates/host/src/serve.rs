//! Questions and their answers, whatever they came by.

use crate::connection::{Connection, only_looks, tells_later};
use crate::lobby::Lobby;
use crate::lookout::Lookout;
use crate::metrics::Gauges;
use crate::presence::Presence;
use crate::registry::Registry;
use crate::relays::{Devices, Relays};
use crate::session::{Peer, Session, ports_of};
use crate::shares::{self, here};
use crate::tokens::{self, Browsers, Codes, Tokens};
use crate::whence::Confirming;
use holdfast_authority::{Ask, proof};
use holdfast_door::{Path, Speaker};
use holdfast_types::{Actor, ActorClass, Challenge, Right, TimeMs, Who};
use holdfast_wire::graphs::{PortView, PortsParams};
use holdfast_wire::hello::{HelloAnswer, HelloParams};
use holdfast_wire::message::VERSIONS;
use holdfast_wire::params::{DetachAnswer, HostStatus, Life, Nothing, RenameParams, SessionView};
use holdfast_wire::tokens::MeAnswer;
use holdfast_wire::turns::{IdentifyAnswer, IdentifyParams, MetricsAnswer};
use holdfast_wire::{Call, Code, Fault};
use serde::Serialize;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use tracing::Instrument;

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
    pub(crate) tokens: RefCell<Tokens>,
    /// One was revoked, or an actor forgotten.
    pub(crate) fewer_tokens: Notify,
    /// One change at a time is written.
    pub(crate) changing_tokens: tokio::sync::Mutex<()>,
    pub(crate) codes: RefCell<Codes>,
    pub(crate) browsers: Browsers,
    /// Where HTTP listens; or why it does not.
    pub(crate) http: RefCell<Option<Result<String, String>>>,
    /// Keys of runs under which sessions are being made.
    pub(crate) keys: crate::runs::index::Making,
    /// Who is connected, and what they wait for.
    pub(crate) presence: Presence,
    /// Who is being asked to confirm who they are.
    pub(crate) confirming: Confirming,
    pub(crate) next_peer: Cell<u64>,
    /// Where the host waits for clients that come through relays.
    pub(crate) relays: Relays,
    pub(crate) devices: RefCell<Devices>,
    /// One change at a time is written.
    pub(crate) changing_devices: tokio::sync::Mutex<()>,
    /// How many connections each device has.
    pub(crate) device_connections: RefCell<HashMap<String, u32>>,
    /// Connections at the socket that have not said who they are.
    pub(crate) lobby: Lobby,
}

/// An answer and the bytes that belong to it; or why there is none.
pub(crate) type Answer = Result<(Value, Vec<u8>), Fault>;

impl Server {
    /// A server over these sessions.
    pub fn new(registry: Registry) -> Server {
        let tokens = RefCell::new(Tokens::load(&registry.shared.home.state));
        let browsers = Browsers::load(&registry.shared.home.state);
        let devices = RefCell::new(Devices::load(&registry.shared.home.state));
        let relays = Relays::load(&registry.shared.home);
        Server {
            tokens,
            relays,
            devices,
            changing_devices: Default::default(),
            device_connections: RefCell::default(),
            fewer_tokens: Notify::new(),
            changing_tokens: Default::default(),
            codes: RefCell::default(),
            browsers,
            http: RefCell::default(),
            started_ms: crate::now_ms(),
            stop: Notify::new(),
            lookout: Rc::new(Lookout::new(Arc::clone(&registry.shared.own))),
            keys: Default::default(),
            presence: Presence::default(),
            confirming: Confirming::default(),
            next_peer: Cell::new(1),
            lobby: Lobby::default(),
            registry,
        }
    }

    /// Answers one question. Who asks is checked here for what only looks, and by the session's authority for every act.
    pub(crate) async fn answer(&self, call: Call, bytes: Vec<u8>, connection: &Connection) -> Answer {
        match (call, connection.speaker()) {
            (Call::Hello(params), _) => {
                self.presence.said(connection.number, &params.program);
                let answer = hello(&params, connection.challenge)?;
                // Whoever came with a token has an actor already.
                let inside = match connection.speaker() {
                    _ if connection.arrived.is_some() => None,
                    Ok(speaker) if speaker.path.is_remote() => None,
                    Ok(_) | Err(_) => self.inside(&Box::pin(self.come_from(connection)).await),
                };
                plain(HelloAnswer { inside, direct: self.direct_for(connection), ..answer })
            }
            (Call::Identify(_), Ok(speaker)) if speaker.path.is_remote() => {
                Err(Fault::new(Code::BadRequest, "this connection already has an actor: that of its token"))
            }
            (Call::InviteAccept(params), _) => plain(Box::pin(self.invite_accept(&params, connection)).await?),
            (Call::Identify(params), _) if connection.arrived.is_some() => {
                plain(self.identify_device(&params, connection)?)
            }
            (Call::Identify(params), _) => plain(Box::pin(self.identify(&params, connection)).await?),
            (Call::Status(_), Err(_)) if connection.arrived.is_none() => plain(self.status()),
            (call @ (Call::Follow(_) | Call::Credit(_) | Call::Unfollow(_)), speaker) => {
                let speaker = self.admitted(&speaker?, &call)?;
                self.answer_follow(&call, speaker.actor, connection)?;
                plain(Nothing {})
            }
            (call, speaker) => {
                self.answer_speaker(&speaker?, self.behind_wall(call, connection)?, bytes, Some(connection.peer()))
                    .await
            }
        }
    }

    /// A speaker as it is now, if its path lets it ask this.
    fn admitted(&self, by: &Speaker, call: &Call) -> Result<Speaker, Fault> {
        let speaker = self.judge(by)?;
        speaker.path.cap().map_or(Ok(()), |cap| tokens::allows(cap.can, call))?;
        Ok(speaker)
    }

    /// Answers one question. What caps the speaker's path is judged anew each time, and again before it is told what was to be seen.
    pub(crate) async fn answer_speaker(&self, by: &Speaker, call: Call, bytes: Vec<u8>, peer: Option<Peer>) -> Answer {
        let speaker = self.admitted(by, &call)?;
        let is_told = only_looks(&call) || tells_later(&call);
        let call = speaker.path.narrow(call);
        let answer = self.answer_known(call, bytes, peer, speaker).await;
        if is_told {
            self.judge(by)?;
        }
        answer
    }

    /// Answers somebody who is known, within a span of the log.
    async fn answer_known(&self, call: Call, bytes: Vec<u8>, peer: Option<Peer>, speaker: Speaker) -> Answer {
        let span = crate::log::span_of(&call, &speaker.actor);
        let is_human = self.registry.shared.policy_is_human(&speaker.actor);
        let by = speaker.actor.clone();
        let answer = self.answer_any(call, bytes, peer, speaker).instrument(span.clone());
        let answer = shares::by(&by, is_human, answer).await;
        crate::log::answered(&span, &answer);
        answer
    }

    /// What concerns the host, and what only looks at a session.
    async fn answer_any(&self, call: Call, bytes: Vec<u8>, peer: Option<Peer>, speaker: Speaker) -> Answer {
        let registry = &self.registry;
        let Speaker { actor, path } = speaker;
        let _open = self.presence.opened();
        // A request by itself is no connection: it counts as number 0.
        let number = peer.as_ref().map_or(0, |(number, _)| *number);
        let _waits = self.note_wait(&call, number, &actor);
        let terms = call.row().terms;
        if terms.who == Who::Known {
            self.must_be_known(&actor)?;
        }
        let find = |session: &str| registry.find_for(session, &actor, terms.rights);
        // What takes more than a look is boxed: a thousand who wait for a session's output cost no more than that.
        match call {
            Call::New(params) => plain(Box::pin(self.start(params, &actor, number)).await?),
            Call::List(params) => {
                let all = registry.all().into_iter().filter(|s| s.rights(&actor).has(Right::Observe));
                let shown = all.filter(|s| (params.all || s.holds_its_name()) && !s.has_passed());
                here(|| plain(shown.map(|s| s.view()).collect::<Vec<_>>())).await
            }
            Call::Get(params) => {
                let session = find(&params.session)?;
                here(|| plain(session.view_with_title())).await
            }
            Call::Attach(params) => {
                let peer = peer.ok_or_else(|| {
                    Fault::new(Code::BadRequest, "attach needs a connection: use the WebSocket /v1/connect")
                })?;
                with(Box::pin(find(&params.session)?.attach(&params, &actor, peer)).await?)
            }
            Call::Paint(params) => {
                let paint = async |session: &Session| Ok(session.paint_for(&params, &actor, number).await);
                with(Box::pin(registry.look(&params.session, &actor, paint)).await?)
            }
            Call::Update(params) => plain(Box::pin(find(&params.session)?.update(&params, &actor, number)).await?),
            Call::Leave(params) => plain(find(&params.session)?.leave(&params, &actor, number)?),
            Call::Screen(params) => {
                let screen = async |session: &Session| Ok(session.screen(&params).await);
                plain(Box::pin(registry.look(&params.session, &actor, screen)).await?)
            }
            Call::Read(params) => {
                with(registry.look(&params.session, &actor, async |session| session.read(&params).await).await?)
            }
            Call::Journal(params) => {
                let look = registry.look(&params.session, &actor, async |session| session.journal(&params).await);
                with(Box::pin(look).await?)
            }
            Call::State(params) => plain(Box::pin(find(&params.session)?.doing()).await?),
            Call::Env(params) => Ok((Box::pin(find(&params.session)?.env(&params)).await?, Vec::new())),
            Call::Handover(params) => plain(Box::pin(find(&params.session)?.handover(&actor)).await?),
            Call::Watch(params) => plain(self.watch(&params, &actor).await?),
            Call::Wait(params) => {
                let look = registry.look(&params.session, &actor, async |session| Ok(session.wait(&params).await));
                plain(Box::pin(look).await?)
            }
            Call::Cost(params) => plain(Box::pin(self.cost(&params, &actor)).await?),
            Call::Graph(params) => Ok((Box::pin(find(&params.session)?.graph(&params)).await?, Vec::new())),
            call @ (Call::Move(_) | Call::Arrive(_)) => Box::pin(self.answer_moves(call, bytes, &actor, &path)).await,
            Call::CheckpointCheck(_) | Call::CheckpointList(_) | Call::ForkDiff(_) => self.copies(call, &actor).await,
            Call::Ports(params) => plain(Box::pin(self.ports(&params, &actor)).await?),
            Call::WatchGraph(params) => {
                let look = async |session: &Session| self.lookout.watch(session, &params).await;
                plain(Box::pin(registry.look(&params.session, &actor, look)).await?)
            }
            Call::RunGet(params) => plain(Box::pin(self.run_get(&params, &actor)).await?),
            Call::RunOutput(params) => with(self.run_output(&params, &actor).await?),
            call @ (Call::RunTrace(_) | Call::RunList(_)) => here(|| self.look_at_runs(call, &actor)).await,
            Call::QuestionAsk(params) => plain(Box::pin(self.question_ask(&params, &actor)).await?),
            Call::QuestionGet(params) => plain(Box::pin(self.question_get(&params, &actor)).await?),
            Call::QuestionList(params) => here(|| plain(self.question_list(&params, &actor)?)).await,
            Call::Turn(params) => plain(find(&params.session)?.turn()),
            Call::Grants(params) => plain(find(&params.session)?.grants(&actor)),
            call if is_hosts(&call) => Box::pin(self.answer_host(call, actor, &path)).await,
            act => {
                // What was typed may be a secret.
                let bytes = zeroize::Zeroizing::new(bytes);
                Box::pin(self.answer_act(act, &bytes, &Speaker { actor, path }, number)).await
            }
        }
    }

    /// A run with all that is known of it, or all runs.
    fn look_at_runs(&self, call: Call, actor: &Actor) -> Answer {
        match call {
            Call::RunTrace(params) => plain(self.run_trace(&params, actor)?),
            Call::RunList(params) => plain(self.run_list(&params, actor)?),
            other => Err(Fault::new(Code::Internal, format!("{} is no look at runs", other.row().name))),
        }
    }

    /// What would be in the way of a copy of a session's processes, which there are, and what became of their files.
    async fn copies(&self, call: Call, actor: &Actor) -> Answer {
        let registry = &self.registry;
        match call {
            Call::CheckpointCheck(params) => plain(Box::pin(registry.checkpoint_check(&params.session, actor)).await?),
            Call::CheckpointList(params) => plain(Box::pin(registry.checkpoint_list(&params, actor)).await?),
            Call::ForkDiff(params) => plain(Box::pin(registry.fork_diff(&params, actor)).await?),
            other => Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
        }
    }

    /// What only looks at the gate.
    async fn answer_gate(&self, call: Call, actor: &Actor) -> Answer {
        match call {
            Call::ApprovalGet(params) => plain(self.approval_get(&params, actor).await?),
            Call::ApprovalList(params) => here(|| plain(self.approval_list(&params, actor)?)).await,
            Call::PolicyMay(params) => plain(self.policy_may(&params, actor).await?),
            Call::PolicyGet(_) => plain(self.policy_get()),
            other => Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
        }
    }

    /// What concerns the host alone.
    async fn answer_host(&self, call: Call, actor: Actor, path: &Path) -> Answer {
        match call {
            Call::TokenNew(params) => plain(self.token_new(&params, &actor, path).await?),
            Call::TokenRevoke(params) => plain(self.token_revoke(&params.token, &actor).await?),
            Call::RelayAdd(params) => {
                self.registry.must_hold(&actor, Right::Configure, "add a relay")?;
                plain(self.relays.add(&params.url).await?)
            }
            Call::RelayDirect(params) => plain(self.relay_direct(&params, &actor, path).await?),
            Call::RelayRemove(params) => {
                self.registry.must_hold(&actor, Right::Configure, "remove a relay")?;
                plain(self.relays.remove(&params.url).await?)
            }
            Call::InviteNew(params) => plain(self.invite_new(&params, &actor, path).await?),
            Call::InviteRevoke(params) => plain(self.invite_revoke(&params.invite, &actor).await?),
            Call::DeviceRevoke(params) => plain(self.device_revoke(&params.device, &actor).await?),
            call if call.is_about_the_gate() => self.answer_gate(call, &actor).await,
            call if call.is_about_flows() => self.answer_flows(call, &actor).await,
            call => here(|| self.answer_host_here(call, actor, path)).await,
        }
    }

    /// And waits for nothing.
    fn answer_host_here(&self, call: Call, actor: Actor, path: &Path) -> Answer {
        match call {
            Call::LoginNew(_) => plain(self.login_new(&actor, path)?),
            Call::Me(_) => plain(self.me(actor, path)),
            Call::Status(_) if self.is_guest(path) => plain(self.status().for_guests()),
            Call::Status(_) => plain(self.status()),
            Call::TokenList(_) => plain(self.token_list(&actor)),
            Call::RelayList(_) => plain(self.relays.list()?),
            Call::PageGet(params) => self.relays.page(&params),
            Call::InviteList(_) => plain(self.invite_list(&actor)),
            Call::DeviceList(_) => plain(self.device_list(&actor)),
            Call::Actors(_) => plain(self.actors(&actor)),
            Call::ActorRecord(params) => plain(self.actor_record(&params, &actor)?),
            Call::ActorRemove(params) => {
                self.remove_actor(&params, &actor)?;
                plain(Nothing {})
            }
            Call::Metrics(_) => plain(MetricsAnswer { text: self.metrics() }),
            Call::Stop(_) => {
                // Whoever came by the socket could end the process as well.
                if path.is_remote() {
                    self.registry.must_hold(&actor, Right::Configure, "stop the host")?;
                }
                self.stop.notify_one();
                plain(Nothing {})
            }
            other => Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
        }
    }

    fn me(&self, actor: Actor, path: &Path) -> MeAnswer {
        let known = self.registry.shared.policy().vouches(&actor);
        let token = path.cap().and_then(|cap| self.tokens.borrow().view(&cap.token).ok());
        MeAnswer { actor, known, token }
    }

    /// What acts on a session: whether it may is the session's authority's to say.
    async fn answer_act(&self, call: Call, bytes: &[u8], by: &Speaker, peer: u64) -> Answer {
        let actor = &by.actor;
        let find = |session: &str| self.registry.find_acting(session, actor);
        if let Some((session, client)) = call.acts_through() {
            find(session)?.own_client(client, actor, peer)?;
        }
        match call {
            Call::Send(params) => plain(find(&params.session)?.send(&params, bytes, actor).await?),
            Call::Resize(params) => {
                find(&params.session)?.resize_asked(&params, actor).await?;
                plain(Nothing {})
            }
            Call::Signal(params) => {
                find(&params.session)?.signal(&params, actor, None).await?;
                plain(Nothing {})
            }
            Call::Rename(params) => {
                let session = find(&params.session)?;
                plain(self.rename(&session, &params, actor)?)
            }
            Call::Keep(params) => {
                let session = find(&params.session)?;
                session.keep(&params, actor).await?;
                plain(session.view())
            }
            Call::Detach(params) => plain(DetachAnswer { clients: find(&params.session)?.detach(&params, actor)? }),
            Call::End(params) => {
                let session = find(&params.session)?;
                session.end(&params, actor, None).await?;
                plain(session.view())
            }
            Call::Recover(params) => plain(self.registry.recover_one(&params, actor, None).await?),
            Call::Restore(params) => plain(self.registry.restore(&params, actor, None).await?),
            Call::CheckpointMake(params) => plain(self.registry.checkpoint_make(&params, actor, None).await?),
            Call::CheckpointRemove(params) => {
                self.registry.checkpoint_remove(&params, actor).await?;
                plain(Nothing {})
            }
            call if call.row().name.starts_with("files.") => self.answer_files(call, bytes, actor).await,
            Call::Fork(params) => plain(self.registry.fork(&params, actor, None).await?),
            Call::ForkKeep(params) => plain(self.registry.fork_keep(&params, actor).await?),
            Call::ForkDiscard(params) => plain(self.registry.fork_discard(&params, actor, None).await?),
            Call::RunStart(params) => plain(self.run_start(&params, actor).await?),
            Call::RunCancel(params) => plain(self.run_cancel(&params, actor).await?),
            Call::QuestionAnswer(params) => plain(self.question_answer(&params, actor).await?),
            Call::ApprovalAnswer(params) => plain(self.approval_answer(&params, actor).await?),
            Call::QuestionWithdraw(params) => plain(self.question_withdraw(&params, actor).await?),
            Call::Take(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Take, actor).await?),
            Call::Request(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Request, actor).await?),
            Call::Withdraw(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Withdraw, actor).await?),
            Call::Release(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Release, actor).await?),
            Call::Thaw(params) => plain(find(&params.session)?.turn_asked(&params, Ask::Thaw, actor).await?),
            Call::Give(params) => {
                self.must_be_itself(&params.to)?;
                plain(find(&params.session)?.give(&params, actor).await?)
            }
            Call::Seize(params) => plain(find(&params.session)?.seize(&params, actor).await?),
            Call::Grant(params) => {
                self.must_be_itself(&params.to)?;
                plain(find(&params.session)?.grant(&params, by)?)
            }
            Call::Revoke(params) => plain(find(&params.session)?.revoke(&params, actor)?),
            other => Err(Fault::new(Code::Internal, format!("{} has no answer", other.row().name))),
        }
    }

    fn rename(&self, session: &Session, params: &RenameParams, actor: &Actor) -> Result<SessionView, Fault> {
        crate::names::must_not_mislead(&params.name)?;
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
    async fn identify(&self, params: &IdentifyParams, connection: &Connection) -> Result<IdentifyAnswer, Fault> {
        let mut proven = self.prove(params, connection);
        if proven.is_ok() {
            // It has said who it is: a person may take time to confirm it.
            self.lobby.proven(connection.number);
        }
        if let Ok(actor) = &proven
            && actor.handle.class() == ActorClass::Human
        {
            // Nobody until it is known.
            connection.proved(Err(Fault::new(Code::Unconfirmed, format!("{} is not confirmed yet", actor.handle))));
            let place = self.must_be_a_place_of(actor, connection, params.confirm).await;
            proven = place.and(proven);
        }
        proven = proven.and_then(|actor| {
            let is_human = |actor: &Actor| self.registry.shared.policy_is_human(actor);
            self.presence.must_fit(connection.number, &actor, is_human)?;
            Ok(actor)
        });
        if proven.is_ok() {
            self.lobby.leave(connection.number);
        }
        self.look_for_walls(connection).await;
        connection.proved(proven.clone().map(|actor| Speaker { actor, path: Path::Local }));
        self.presence.is(connection.number, proven.as_ref().ok());
        let actor = proven?;
        let known = self.registry.shared.policy().vouches(&actor);
        Ok(IdentifyAnswer { actor, known })
    }

    /// Takes a connection through a relay for the device whose key made its channel.
    fn identify_device(&self, params: &IdentifyParams, connection: &Connection) -> Result<IdentifyAnswer, Fault> {
        let nobody = || Fault::new(Code::Unidentified, "this connection did not come through a relay");
        let arrived = connection.arrived.as_ref().ok_or_else(nobody)?;
        let proven = self.prove_device(&params.actor, &params.signature, connection, arrived).and_then(|speaker| {
            let is_human = |actor: &Actor| self.registry.shared.policy_is_human(actor);
            self.presence.must_fit(connection.number, &speaker.actor, is_human)?;
            Ok(speaker)
        });
        if proven.is_ok() {
            self.lobby.leave(connection.number);
        }
        connection.proved(proven.clone());
        self.presence.is(connection.number, proven.as_ref().ok().map(|speaker| &speaker.actor));
        let actor = proven?.actor;
        let known = self.registry.shared.policy().vouches(&actor);
        Ok(IdentifyAnswer { actor, known })
    }

    fn prove(&self, params: &IdentifyParams, connection: &Connection) -> Result<Actor, Fault> {
        let bytes = proof::challenge_bytes(&connection.challenge.0, proof::UNIX_BINDING, &params.actor);
        proof::verify(params.actor.id, &bytes, &params.signature).map_err(|error| {
            Fault::new(Code::Unidentified, format!("{} is not proven: {error}", params.actor.handle))
        })?;
        let shared = &self.registry.shared;
        if shared.actors.borrow_mut().learn(&params.actor) {
            self.registry.actors_changed();
        }
        if !self.is_itself(&params.actor) {
            return Err(Fault::new(Code::Unidentified, format!("the key does not belong to {}", params.actor.handle)));
        }
        Ok(params.actor.clone())
    }

    /// A known handle with another key is somebody else, and so is a known key with another handle.
    fn is_itself(&self, actor: &Actor) -> bool {
        // Nobody is the host itself.
        if actor.is_reserved() {
            return false;
        }
        let actors = self.registry.shared.actors.borrow();
        let by_handle = actors.by_handle(&actor.handle).is_none_or(|known| known.id == actor.id);
        // A guest of a session has its handle by its device.
        let by_device = self.devices.borrow().by_handle(&actor.handle).is_none_or(|known| known.actor.id == actor.id);
        by_handle && by_device && actors.vouched().get(&actor.id).is_none_or(|handle| *handle == actor.handle)
    }

    /// Whoever is given something is given it under its own name.
    fn must_be_itself(&self, actor: &Actor) -> Result<(), Fault> {
        if self.is_itself(actor) {
            return Ok(());
        }
        Err(Fault::new(Code::NoSuchActor, format!("the key does not belong to {}", actor.handle)))
    }

    /// Whoever starts sessions or stops the host is known to it.
    pub(crate) fn must_be_known(&self, actor: &Actor) -> Result<(), Fault> {
        if self.registry.shared.policy().vouches(actor) {
            return Ok(());
        }
        Err(Fault::new(Code::Denied, format!("this host does not know {actor}")))
    }

    /// The counters as text.
    pub fn metrics(&self) -> String {
        let all = self.registry.all();
        let count = |life: Life| all.iter().filter(|s| s.view_life() == life).count() as u64;
        self.registry.shared.metrics.render(&Gauges {
            running: count(Life::Running),
            ended: count(Life::Ended),
            lost: count(Life::Lost),
            unknown: count(Life::Unknown),
            damaged: count(Life::Damaged),
            clients: all.iter().map(|s| u64::from(s.client_count())).sum(),
            requests: self.presence.open(),
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
            http: self.http.borrow().clone().and_then(Result::ok),
            http_error: self.http.borrow().clone().and_then(Result::err),
        }
    }
}

/// It concerns the host, or the gate that all sessions share.
fn is_hosts(call: &Call) -> bool {
    call.is_about_the_gate() || call.row().terms.who.is_hosts()
}

fn json(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).expect("answers are texts, numbers and lists")
}

pub(crate) fn with((answer, bytes): (impl Serialize, Vec<u8>)) -> Answer {
    Ok((json(answer), bytes))
}

pub(crate) fn plain(answer: impl Serialize) -> Answer {
    Ok((json(answer), Vec::new()))
}

fn hello(params: &HelloParams, challenge: Challenge) -> Result<HelloAnswer, Fault> {
    let version = VERSIONS.iter().copied().find(|ours| params.versions.contains(ours)).ok_or_else(|| {
        Fault::new(Code::Version, format!("this host speaks protocol versions {VERSIONS:?}, not {:?}", params.versions))
            .hint("host and client have different versions; to start the installed host: holdfast host restart (sessions keep running)")
    })?;
    Ok(HelloAnswer {
        version,
        program: concat!("holdfast ", env!("CARGO_PKG_VERSION")).into(),
        challenge,
        inside: None,
        direct: Vec::new(),
    })
}
