//! Acting on a session: typing, renaming, detaching, ending, waiting for its end.

use super::decide::{event, fault};
use super::{Probed, Session, Typed};
use holdfast_abi::protocol::{INPUT_BYTES_MAX, ToKeeper, refused};
use holdfast_authority::{Ask, Burst, Caller, Input, Keys, OperatorId, Refusal, Reply};
use holdfast_types::{Actor, Fence, Proof, Right};
use holdfast_wire::attention::What;
use holdfast_wire::params::{
    DetachParams, DetachedEvent, EndParams, RenameParams, ResizeParams, SendAnswer, SendParams,
};
use holdfast_wire::turns::{LeaveParams, SignalParams};
use holdfast_wire::{Code, Fault};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long typed bytes may wait for a program that does not read before we say so.
const WRITTEN_WAIT: Duration = Duration::from_secs(5);
/// How long a full queue is waited for.
const ROOM_WAIT: Duration = Duration::from_secs(5);
/// A client that was told to detach and did not is cut off after this long.
const DETACH_WAIT: Duration = Duration::from_millis(1000);
/// What a keeper needs beyond the grace to see the whole tree dead.
const END_WAIT: Duration = Duration::from_secs(10);
/// Streams remembered as typing through this host; beyond it, one more question to the keeper is the price.
const STREAMS_MAX: usize = 1024;
/// Linux's `ICANON` and `ECHO` among a terminal's local flags: lines are edited by the terminal, and shown.
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;

/// Bytes that one number of a stream stands for.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    stream: u64,
    seq: u64,
    bytes: &'a [u8],
    /// Recorded as a length.
    secret: bool,
    /// Whether it will be shown or not.
    force: bool,
}

/// Whether the terminal takes a line and does not show it.
fn hides(probed: Probed) -> bool {
    probed.lflag & ECHO == 0 && probed.lflag & ICANON != 0
}

impl Session {
    /// Types bytes into the session, exactly once per stream and seq.
    pub async fn send(&self, params: &SendParams, bytes: &[u8], actor: &Actor) -> Result<SendAnswer, Fault> {
        self.running().await?;
        if params.secret && bytes.len() > INPUT_BYTES_MAX {
            return Err(Fault::new(Code::BadRequest, format!("a secret may have at most {INPUT_BYTES_MAX} bytes")));
        }
        let by = self.caller(actor, params.client);
        let mut answer = SendAnswer { at: 0, written: true, fence: self.fence() };
        let mut fence = params.fence;
        for (n, chunk) in bytes.chunks(INPUT_BYTES_MAX).enumerate() {
            let (stream, seq) = (params.stream, params.seq + n as u64);
            let piece = Piece { stream, seq, bytes: chunk, secret: params.secret, force: params.force };
            answer = self.send_piece(&by, fence, piece).await?;
            // All of it in one turn: what somebody wrote in between must not stand in the middle.
            fence = Some(answer.fence);
        }
        Ok(answer)
    }

    async fn send_piece(&self, by: &Caller, believed: Option<Fence>, piece: Piece<'_>) -> Result<SendAnswer, Fault> {
        let room_until = Instant::now() + ROOM_WAIT;
        if let Some(at) = self.written_before(piece).await? {
            return Ok(SendAnswer { at, written: true, fence: self.fence() });
        }
        if piece.secret && !piece.force {
            self.must_take_secret(&by.actor).await?;
        }
        let mut fence = self.allow_typing(by, believed, piece).await?;
        holdfast_pause::task_point("typing.recorded").await;
        loop {
            match self.type_once(fence, piece).await? {
                Some(Typed::Written(at)) => return Ok(SendAnswer { at, written: true, fence }),
                Some(Typed::Refused(refused::FULL)) if Instant::now() < room_until => {
                    // The log or the queue has no room: make some, then try the same seq again.
                    self.drain_log(self.link().as_deref(), true).map_err(|e| self.keeper_failed(&e))?;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                // The turn changed on the way. It is still this actor's at another terminal, or the bytes die here: they must
                // not stand behind what somebody else wrote meanwhile.
                Some(Typed::Refused(refused::STALE)) if Instant::now() < room_until && self.holds(&by.actor) => {
                    fence = self.allow_typing(by, believed, piece).await?;
                }
                Some(Typed::Refused(refused::STALE)) => {
                    return Err(fault(&Refusal::FenceStale { newest: self.fence() }));
                }
                Some(Typed::Refused(code)) => {
                    return Err(Fault::new(Code::Busy, format!("{} is not taking input (code {code})", self.name()))
                        .hint("its program is not reading; try again, or interrupt it: holdfast send NAME --key C-c"));
                }
                None => {
                    let at = self.state.borrow().ring.as_ref().map_or(0, holdfast_abi::ring::Ring::head);
                    return Ok(SendAnswer { at, written: false, fence });
                }
            }
        }
    }

    /// A secret goes to who reads a line without showing it, and to nobody else unless that is what was asked for.
    async fn must_take_secret(&self, actor: &Actor) -> Result<(), Fault> {
        // Who may not type is refused by the authority, and learns nothing of the terminal.
        if !self.rights(actor).has(Right::Type) {
            return Ok(());
        }
        match self.probe().await? {
            Some(probed) if hides(probed) => Ok(()),
            Some(_) => Err(Fault::new(
                Code::EchoOn,
                format!("the terminal of {} would show the secret: its echo is on", self.name()),
            )
            .hint("wait until it asks for a password (`holdfast wait NAME --for waiting`), or use --force")),
            None => Err(Fault::new(
                Code::Busy,
                format!("the keeper of {} does not report whether echo is off", self.name()),
            )
            .hint("try again")),
        }
    }

    /// Asks the authority, and records what will be typed; its length only, where the terminal does not show it.
    async fn allow_typing(&self, by: &Caller, fence: Option<Fence>, piece: Piece<'_>) -> Result<Fence, Fault> {
        let bytes = piece.bytes;
        let hidden = piece.secret || self.probe().await?.is_none_or(hides);
        // Nothing comes between the decision and the bytes.
        let _in_order = self.placed_for(&by.actor).await;
        let at = self.state.borrow().ring.as_ref().map_or(0, holdfast_abi::ring::Ring::head);
        let keys = (!hidden).then(|| Keys(bytes.to_vec()));
        let burst = Burst { from: at, to: at, len: bytes.len() as u64, keys };
        match self.decide(Input::Typed { by: by.clone(), fence, burst })?.reply {
            Reply::Turn { fence } => Ok(fence),
            Reply::Done | Reply::Waiting { .. } | Reply::Granted(_) | Reply::Revoked(_) => Ok(self.fence()),
        }
    }

    /// Types what was decided about, under that decision's fence and in one piece.
    pub(super) async fn type_decided(&self, fence: Fence, bytes: &[u8]) -> Result<Option<Typed>, Fault> {
        let piece = Piece { stream: crate::random(), seq: 1, bytes, secret: false, force: false };
        drop(self.placed(fence).await);
        self.type_once(fence, piece).await
    }

    /// Hands bytes to the keeper; nothing while the program does not read.
    async fn type_once(&self, fence: Fence, piece: Piece<'_>) -> Result<Option<Typed>, Fault> {
        let Piece { stream, seq, bytes, .. } = piece;
        let link = self.running().await?;
        let (done, typed) = oneshot::channel();
        self.state.borrow_mut().typed.insert((stream, seq), done);
        link.send(ToKeeper::Input { fence: fence.0, stream, seq, bytes }).map_err(|e| self.keeper_failed(&e))?;
        match tokio::time::timeout(WRITTEN_WAIT, typed).await {
            Ok(Ok(typed)) => {
                self.stirred();
                Ok(Some(typed))
            }
            Ok(Err(_)) => {
                self.running().await?;
                Err(Fault::new(Code::Busy, "the keeper went away while typing").hint("send the same seq again"))
            }
            Err(_) => {
                self.state.borrow_mut().typed.remove(&(stream, seq));
                Ok(None)
            }
        }
    }

    /// Whether this was typed, and so recorded, before: it is sent again, or went through the last host.
    async fn written_before(&self, piece: Piece<'_>) -> Result<Option<u64>, Fault> {
        {
            let mut state = self.state.borrow_mut();
            if state.streams.len() >= STREAMS_MAX {
                state.streams.clear();
            }
            let last = state.streams.get(&piece.stream).copied();
            let is_new = last.is_none_or(|last| piece.seq > last);
            state.streams.insert(piece.stream, piece.seq.max(last.unwrap_or(0)));
            // A number that is new here may have been typed through the last host, if there was one.
            if is_new && (last.is_some() || state.authority.state().restarts() == 0) {
                return Ok(None);
            }
        }
        // Under a fence that never was nothing is written; what was written is told whatever the fence.
        match self.type_once(Fence(u64::MAX), Piece { bytes: b"", ..piece }).await? {
            Some(Typed::Written(at)) => Ok(Some(at)),
            Some(Typed::Refused(_)) => Ok(None),
            // It waits for a program that does not read: that is all that is known.
            None => {
                self.state.borrow_mut().streams.remove(&piece.stream);
                Err(Fault::new(Code::Busy, format!("{} is not reading its earlier input", self.name()))
                    .hint("send the same seq again"))
            }
        }
    }

    /// Gives it another name; the caller has checked that the name is free.
    pub fn rename(&self, params: &RenameParams, actor: &Actor) -> Result<(), Fault> {
        self.ask(actor, None, Ask::Rename { name: params.name.clone() }, params.proof)?;
        let mut state = self.state.borrow_mut();
        let mut spec = state.spec.clone();
        spec.name = params.name.clone();
        spec.save(&self.dir)
            .map_err(|error| Fault::new(Code::Internal, format!("cannot save the new name: {error}")))?;
        let from = std::mem::replace(&mut state.spec, spec).name;
        drop(state);
        self.tell_watchers(What::Renamed { by: actor.handle.clone(), from });
        Ok(())
    }

    /// Gives the terminal another size.
    pub async fn resize_asked(&self, params: &ResizeParams, actor: &Actor) -> Result<(), Fault> {
        self.running().await?;
        self.ask(actor, None, Ask::Resize { size: params.size }, params.proof)?;
        self.resize(params.size).await
    }

    /// Sends a signal.
    pub async fn signal(&self, params: &SignalParams, actor: &Actor) -> Result<(), Fault> {
        let link = self.running().await?;
        if !(1..=64).contains(&params.number) || params.target > 2 {
            return Err(Fault::new(Code::BadRequest, "invalid signal or target; signals are 1 to 64, targets 0 to 2"));
        }
        let SignalParams { number, target, proof, .. } = *params;
        self.ask(actor, None, Ask::Signal { number, target }, proof)?;
        let fence = self.fence().0;
        link.send(ToKeeper::Signal { fence, target, number }).map_err(|e| self.keeper_failed(&e))
    }

    /// Tells clients to let go of their terminals; gives their numbers.
    pub fn detach(self: &Rc<Self>, params: &DetachParams, actor: &Actor) -> Result<Vec<u32>, Fault> {
        let known: Vec<u32> = self.state.borrow().clients.iter().map(|client| client.id).collect();
        if let Some(stranger) = params.clients.iter().find(|id| !known.contains(id)) {
            return Err(Fault::new(Code::NotFound, format!("no client {stranger} is attached to {}", self.name()))
                .hint(format!("list clients: holdfast info {}", self.name())));
        }
        let operators = params.clients.iter().map(|id| OperatorId(*id)).collect();
        self.ask(actor, None, Ask::Detach { operators }, params.proof)?;
        let mut connections = Vec::new();
        for client in self.state.borrow().clients.iter().filter(|client| params.clients.contains(&client.id)) {
            connections.extend(client.connection);
            if let Some((_, events)) = &client.peer {
                let _ = events.send(event(&DetachedEvent { client: client.id }));
            }
        }
        self.forget_remote(&params.clients);
        let session = Rc::clone(self);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(DETACH_WAIT).await;
            if let Some(link) = session.link() {
                for connection in connections {
                    let _ = link.send(ToKeeper::Expel { connection });
                }
            }
        });
        Ok(params.clients.clone())
    }

    /// An operator lets go by itself: what it held is free.
    pub fn leave(&self, params: &LeaveParams, actor: &Actor) -> Result<(), Fault> {
        self.own_client(params.client, actor)?;
        self.decide(Input::Left { operator: OperatorId(params.client) })?;
        self.metrics.detached();
        self.forget_remote(&[params.client]);
        Ok(())
    }

    /// Of those who have no connection to the keeper nobody else will say that they are gone.
    fn forget_remote(&self, clients: &[u32]) {
        let mut state = self.state.borrow_mut();
        let gone: Vec<u32> =
            state.clients.iter().filter(|c| c.remote && clients.contains(&c.id)).map(|c| c.id).collect();
        for id in gone {
            state.clients.remove(id, None);
            state.timers.rearm = Some(Instant::now());
        }
    }

    /// Ends the whole tree and waits until it is gone.
    pub async fn end(&self, params: &EndParams, actor: &Actor) -> Result<(), Fault> {
        let link = self.running().await?;
        self.ask(actor, None, Ask::End { grace_ms: params.grace_ms }, params.proof)?;
        // What stands still hears no HUP, and must not go on for it.
        let frozen = self.state.borrow().authority.state().frozen().is_some();
        let grace_ms = if frozen { 0 } else { params.grace_ms };
        link.send(ToKeeper::End { grace_ms }).map_err(|e| self.keeper_failed(&e))?;
        let limit = Duration::from_millis(u64::from(grace_ms)) + END_WAIT;
        self.until(Some(limit), || (!self.is_live()).then_some(())).await.ok_or_else(|| {
            Fault::new(Code::Busy, format!("some processes of {} do not end", self.name()))
                .hint("they may belong to another user, or be stuck in the kernel: check with `ps`")
        })
    }

    /// Decides about something an actor asks for; its signature must fit it.
    pub(super) fn ask(
        &self,
        actor: &Actor,
        client: Option<u32>,
        ask: Ask,
        proof: Option<Proof>,
    ) -> Result<super::decide::Decided, Fault> {
        if let Some(proof) = &proof {
            holdfast_authority::proof::verify_act(actor.id, self.id, &ask, proof)
                .map_err(|error| Fault::new(Code::BadProof, format!("{}: {error}", ask.word())))?;
            let taken = self.proofs.borrow_mut().take(proof.nonce, crate::now_ms());
            taken.map_err(|stale| Fault::new(Code::BadProof, format!("{}: {stale}", ask.word())))?;
        }
        self.decide(Input::Asked { by: self.caller(actor, client), ask, proof })
    }

    fn holds(&self, actor: &Actor) -> bool {
        self.state.borrow().authority.state().turn().hold().is_some_and(|hold| hold.by.id == actor.id)
    }

    pub(super) fn caller(&self, actor: &Actor, client: Option<u32>) -> Caller {
        Caller { actor: actor.clone(), operator: client.map(OperatorId) }
    }

    /// A client speaks for its own actor only.
    pub(super) fn own_client(&self, client: u32, actor: &Actor) -> Result<(), Fault> {
        let own = self.state.borrow().clients.iter().any(|c| c.id == client && c.actor.as_ref() == Some(actor));
        if own {
            Ok(())
        } else {
            Err(Fault::new(Code::NotAttached, format!("no client {client} of yours is attached")))
        }
    }

    /// A client's connection to the host is gone; it may still follow its keeper and come back.
    pub fn peer_gone(&self, peer: u64) {
        let mut never_joined = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            let ids: Vec<u32> = state
                .clients
                .iter()
                .filter(|c| c.peer.as_ref().is_some_and(|(id, _)| *id == peer))
                .map(|c| c.id)
                .collect();
            for id in ids {
                if let Some(client) = state.clients.get(id) {
                    client.peer = None;
                    if client.connection.is_none() {
                        never_joined.push(id);
                    }
                }
            }
            for id in &never_joined {
                state.clients.remove(*id, Some(0));
            }
            if !never_joined.is_empty() {
                state.timers.rearm = Some(Instant::now());
            }
        }
        for id in never_joined {
            // Those who said that they leave are gone already.
            let _ = self.decide(Input::CutOff { operator: OperatorId(id) });
        }
    }
}
