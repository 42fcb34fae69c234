//! Acting on a session: typing, renaming, detaching, ending, waiting for its end.

use super::Session;
use crate::link::Link;
use holdfast_abi::protocol::{INPUT_BYTES_MAX, SPARE_MAX, SPARE_MORE, ToKeeper, spare_list};
use holdfast_authority::{Ask, Caller, Input, OperatorId};
use holdfast_session::{Decided, Send, Sent};
use holdfast_types::{Actor, Fence, Proof};
use holdfast_wire::attention::What;
use holdfast_wire::params::{DetachParams, EndParams, RenameParams, ResizeParams, SendAnswer, SendParams};
use holdfast_wire::turns::{LeaveParams, SignalParams};
use holdfast_wire::{Code, Fault};
use std::rc::Rc;
use std::time::Duration;

/// A client that was told to detach and did not is cut off after this long.
const DETACH_WAIT: Duration = Duration::from_millis(1000);
/// What a keeper needs beyond the grace to see the whole tree dead.
const END_WAIT: Duration = Duration::from_secs(10);
/// A signal's target: the whole tree.
const TARGET_TREE: u8 = 2;

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
            let SendParams { stream, secret, force, .. } = *params;
            let seq = params.seq.saturating_add(n as u64);
            let send = Send { by: by.clone(), fence, stream, seq, bytes: chunk.to_vec(), secret, force };
            answer = self.send_piece(send).await?;
            // All of it in one turn: what somebody wrote in between must not stand in the middle.
            fence = Some(answer.fence);
        }
        Ok(answer)
    }

    async fn send_piece(&self, send: Send) -> Result<SendAnswer, Fault> {
        let sent = self.with_core(|core, held, now| {
            let (ticket, sent) = held.ticket();
            core.send(held, now, ticket, send);
            sent
        });
        match sent.await.unwrap_or(Sent::Lost) {
            Sent::Written { at, fence } => Ok(SendAnswer { at, written: true, fence }),
            Sent::Queued { fence } => Ok(SendAnswer { at: self.state.borrow().head(), written: false, fence }),
            Sent::Refused(undecided) => Err(self.undecided(&undecided)),
            Sent::EchoOn => Err(Fault::new(
                Code::EchoOn,
                format!("the terminal of {} would show the secret: its echo is on", self.name()),
            )
            .hint("wait until it asks for a password (`holdfast wait NAME --for waiting`), or use --force")),
            Sent::EchoUnknown => Err(Fault::new(
                Code::Busy,
                format!("the keeper of {} does not report whether echo is off", self.name()),
            )
            .hint("try again")),
            Sent::Full(code) => {
                Err(Fault::new(Code::Busy, format!("{} is not taking input (code {code})", self.name()))
                    .hint("its program is not reading; try again, or interrupt it: holdfast send NAME --key C-c"))
            }
            Sent::ReservedStream => Err(Fault::new(Code::BadRequest, "this stream is reserved for the host")
                .hint("choose another stream at random")),
            Sent::Unknown => Err(Fault::new(Code::Busy, format!("{} is not reading its earlier input", self.name()))
                .hint("send the same seq again")),
            Sent::Lost => {
                self.running().await?;
                Err(Fault::new(Code::Busy, "the keeper went away while typing").hint("send the same seq again"))
            }
        }
    }

    /// Types what was decided about, under that decision's fence and in one piece.
    pub(super) async fn type_decided(&self, actor: &Actor, fence: Fence, bytes: &[u8]) -> Sent {
        let by = self.caller(actor, None);
        let sent = self.with_core(|core, held, now| {
            let (ticket, sent) = held.ticket();
            core.type_decided(held, now, ticket, by, fence, bytes.to_vec());
            sent
        });
        sent.await.unwrap_or(Sent::Lost)
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

    /// Resizes the terminal.
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
        if target == TARGET_TREE {
            self.spare(&link).await?;
        }
        self.ask(actor, None, Ask::Signal { number, target }, proof)?;
        let fence = self.fence().0;
        link.send(ToKeeper::Signal { fence, target, number }).map_err(|e| self.keeper_failed(&e))
    }

    /// Tells clients to let go of their terminals; gives their numbers.
    pub fn detach(self: &Rc<Self>, params: &DetachParams, actor: &Actor) -> Result<Vec<u32>, Fault> {
        let known: Vec<u32> = self.state.borrow().core.clients.iter().map(|client| client.id).collect();
        if let Some(stranger) = params.clients.iter().find(|id| !known.contains(id)) {
            return Err(Fault::new(Code::NotFound, format!("no client {stranger} is attached to {}", self.name()))
                .hint(format!("list clients: holdfast info {}", self.name())));
        }
        let operators = params.clients.iter().map(|id| OperatorId(*id)).collect();
        self.ask(actor, None, Ask::Detach { operators }, params.proof)?;
        let connections = self.with_core(|core, held, now| core.detach(held, now, &params.clients));
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
    pub fn leave(&self, params: &LeaveParams, actor: &Actor, peer: u64) -> Result<(), Fault> {
        self.own_client(params.client, actor, peer)?;
        let left = self.with_core(|core, held, now| core.leave(held, now, params.client));
        left.map_err(|undecided| self.undecided(&undecided))?;
        self.metrics.detached();
        Ok(())
    }

    /// Ends the whole tree and waits until it is gone.
    pub async fn end(&self, params: &EndParams, actor: &Actor) -> Result<(), Fault> {
        let link = self.running().await?;
        self.ask(actor, None, Ask::End { grace_ms: params.grace_ms }, params.proof)?;
        // What stands still hears no HUP, and must not go on for it.
        let frozen = self.state.borrow().core.is_frozen();
        let grace_ms = if frozen { 0 } else { params.grace_ms };
        self.spare(&link).await?;
        link.send(ToKeeper::End { grace_ms }).map_err(|e| self.keeper_failed(&e))?;
        let limit = Duration::from_millis(u64::from(grace_ms)) + END_WAIT;
        self.until(Some(limit), || (!self.is_live()).then_some(())).await.ok_or_else(|| {
            Fault::new(Code::Busy, format!("some processes of {} do not end", self.name()))
                .hint("they may belong to another user, or be stuck in the kernel: check with `ps`")
        })
    }

    /// Tells the keeper which of the processes below it are Holdfast's own, and must not get the signals of its tree.
    async fn spare(&self, link: &Link) -> Result<(), Fault> {
        let (keeper, knows_spare) = {
            let state = self.state.borrow();
            (state.keeper_pid, state.knows_spare)
        };
        if !knows_spare {
            return Ok(());
        }
        let spared = self.own.spared();
        let own = crate::off_thread(move || holdfast_observe::spared_below(keeper, &spared)).await;
        // Where they cannot be read, nothing is signalled: it might be us.
        let own = own.map_err(|error| {
            Fault::new(Code::Internal, format!("cannot read the processes of {}: {error}", self.name()))
                .hint("try again; to see what this machine supports: holdfast doctor")
        })?;
        let own: Vec<(u32, u64)> = own.into_iter().map(|process| (process.pid, process.start)).collect();
        let lists = own.chunks(SPARE_MAX).map(spare_list).chain(own.is_empty().then(Vec::new));
        for (n, processes) in lists.enumerate() {
            let flags = if n == 0 { 0 } else { SPARE_MORE };
            link.send(ToKeeper::Spare { flags, processes: &processes }).map_err(|e| self.keeper_failed(&e))?;
        }
        Ok(())
    }

    /// Decides about something an actor asks for; its signature must fit it.
    pub(super) fn ask(
        &self,
        actor: &Actor,
        client: Option<u32>,
        ask: Ask,
        proof: Option<Proof>,
    ) -> Result<Decided, Fault> {
        if let Some(proof) = &proof {
            holdfast_authority::proof::verify_act(actor.id, self.id, &ask, proof)
                .map_err(|error| Fault::new(Code::BadProof, format!("{}: {error}", ask.word())))?;
            let taken = self.proofs.borrow_mut().take(proof.nonce, crate::now_ms());
            taken.map_err(|stale| Fault::new(Code::BadProof, format!("{}: {stale}", ask.word())))?;
        }
        self.decide(Input::Asked { by: self.caller(actor, client), ask, proof })
    }

    pub(super) fn caller(&self, actor: &Actor, client: Option<u32>) -> Caller {
        Caller { actor: actor.clone(), operator: client.map(OperatorId) }
    }

    /// A client is spoken for by its own actor, and by the connection it attached by.
    pub fn own_client(&self, client: u32, actor: &Actor, peer: u64) -> Result<(), Fault> {
        let is_its = self.state.borrow().core.is_clients(client, actor, peer);
        if is_its { Ok(()) } else { Err(super::looks::not_attached(client)) }
    }

    /// A client's connection to the host is gone; it may still follow its keeper and come back.
    pub fn peer_gone(&self, peer: u64) {
        self.with_core(|core, held, now| {
            held.peers.remove(&peer);
            core.peer_gone(held, now, peer);
        });
    }
}
