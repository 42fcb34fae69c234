//! Acting on a session: typing, renaming, detaching, ending, waiting for its end.

use super::Session;
use crate::gate::Act;
use crate::link::Link;
use holdfast_abi::protocol::{INPUT_BYTES_MAX, SPARE_MAX, SPARE_MORE, ToKeeper, spare_list};
use holdfast_authority::{Ask, Caller, DeedId, Ending, Input, OperatorId, Refusal};
use holdfast_session::{Decided, Send, Sent};
use holdfast_types::{Actor, Fence, Proof};
use holdfast_wire::attention::What;
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::params::{DetachParams, EndParams, Life, RenameParams, ResizeParams, SendAnswer, SendParams};
use holdfast_wire::turns::{LeaveAnswer, LeaveParams, SignalParams};
use holdfast_wire::{Code, Fault};
use std::time::Duration;

/// Whether a message may have this number, and each of its pieces the one behind: numbers begin with 1 and do not wrap.
fn must_be_numbers(seq: u64, bytes: usize) -> Result<(), Fault> {
    let pieces = bytes.div_ceil(INPUT_BYTES_MAX) as u64;
    let bad = |what: &str| Fault::new(Code::BadRequest, what);
    match seq.checked_add(pieces.saturating_sub(1)) {
        _ if seq == 0 => Err(bad("invalid `seq` 0: numbers of a stream begin with 1")),
        None => Err(bad(&format!(
            "invalid `seq` {seq}: this message takes {pieces} numbers, and there are fewer behind it"
        ))
        .hint("begin a new stream: another random number, with `seq` 1")),
        Some(_) => Ok(()),
    }
}

/// What a keeper needs beyond the grace to see the whole tree dead.
const END_WAIT: Duration = Duration::from_secs(10);
impl Session {
    /// Types bytes into the session, exactly once per stream and seq.
    pub async fn send(&self, params: &SendParams, bytes: &[u8], actor: &Actor) -> Result<SendAnswer, Fault> {
        self.running().await?;
        if params.secret && bytes.len() > INPUT_BYTES_MAX {
            return Err(Fault::new(Code::BadRequest, format!("a secret may have at most {INPUT_BYTES_MAX} bytes")));
        }
        must_be_numbers(params.seq, bytes.len())?;
        let _alone = self.judge_typing(params, bytes, actor).await?;
        let by = self.caller(actor, params.client);
        let mut answer = SendAnswer { at: 0, written: true, fence: self.fence() };
        let mut fence = params.fence;
        for (n, chunk) in bytes.chunks(INPUT_BYTES_MAX).enumerate() {
            let SendParams { stream, secret, force, .. } = *params;
            let seq = params.seq + n as u64;
            let send = Send { by: by.clone(), fence, stream, seq, bytes: chunk.to_vec(), secret, force };
            answer = self.send_piece(send).await?;
            // All of it in one turn: what somebody wrote in between must not stand in the middle.
            fence = Some(answer.fence);
        }
        Ok(answer)
    }

    async fn send_piece(&self, send: Send) -> Result<SendAnswer, Fault> {
        self.must_not_be_moving()?;
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
        let from = self.state.borrow().spec.name.clone();
        self.act(actor, Ask::Rename { name: params.name.clone() }, params.proof)?;
        self.tell_watchers(What::Renamed { by: actor.handle.clone(), from });
        Ok(())
    }

    /// Resizes the terminal.
    pub async fn resize_asked(&self, params: &ResizeParams, actor: &Actor) -> Result<(), Fault> {
        self.running().await?;
        if !self.state.borrow().core.is_sized_for(crate::now(), actor, params.size) {
            self.act(actor, Ask::Resize { size: params.size }, params.proof)?;
        }
        self.until_sized(params.size).await;
        Ok(())
    }

    /// Sends a signal.
    pub(crate) async fn signal(
        &self,
        params: &SignalParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<(), Fault> {
        self.running().await?;
        if !(1..=64).contains(&params.number) || params.target > 2 {
            return Err(Fault::new(Code::BadRequest, "invalid signal or target; signals are 1 to 64, targets 0 to 2"));
        }
        let SignalParams { number, target, proof, .. } = *params;
        let held = Act::Signal(params.clone());
        let decided = self.ask_judged(actor, Ask::Signal { number, target }, proof, held, released).await?;
        Self::was_done("signal", decided)?;
        self.reach_trees().await
    }

    /// Tells clients to let go of their terminals; gives their numbers.
    pub fn detach(&self, params: &DetachParams, actor: &Actor) -> Result<Vec<u32>, Fault> {
        let known: Vec<u32> = self.state.borrow().core.clients.iter().map(|client| client.id).collect();
        if let Some(stranger) = params.clients.iter().find(|id| !known.contains(id)) {
            return Err(Fault::new(Code::NotFound, format!("no client {stranger} is attached to {}", self.name()))
                .hint(format!("list clients: holdfast info {}", self.name())));
        }
        if params.clients.is_empty() || params.clients.len() > known.len() {
            return Err(Fault::new(Code::BadRequest, "name the clients to detach, each once")
                .hint(format!("list clients: holdfast info {}", self.name())));
        }
        let operators = params.clients.iter().map(|id| OperatorId(*id)).collect();
        self.act(actor, Ask::Detach { operators }, params.proof)?;
        Ok(params.clients.clone())
    }

    /// An operator lets go by itself: what it held is free.
    pub fn leave(&self, params: &LeaveParams, actor: &Actor, peer: u64) -> Result<LeaveAnswer, Fault> {
        self.own_client(params.client, actor, peer)?;
        let history = params.shown.map(|shown| {
            self.look();
            let mut state = self.state.borrow_mut();
            let missed = state.picture.seen().saturating_sub(shown);
            state.picture.place_before(missed)
        });
        let left = self.with_core(|core, held, now| core.leave(held, now, params.client));
        left.map_err(|undecided| self.undecided(&undecided))?;
        self.metrics.detached();
        Ok(LeaveAnswer { history })
    }

    /// Ends the whole tree and waits until it is gone.
    pub(crate) async fn end(
        &self,
        params: &EndParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<(), Fault> {
        let is_over = || self.view_life() == Life::Lost || self.state.borrow().next_life_ms.is_some();
        if !is_over() {
            self.running().await?;
        }
        let (ask, held) = (Ask::End { grace_ms: params.grace_ms }, Act::End(params.clone()));
        let decided = self.ask_judged(actor, ask, params.proof, held, released).await?;
        if is_over() {
            // There is nothing to end but the name it holds, and the life it might have.
            self.state.borrow_mut().to_tree.clear();
            self.begun(&decided).over(&Ok::<(), String>(()));
            self.dismiss();
            return Ok(());
        }
        Self::was_done("end", decided)?;
        self.is_to_end();
        self.reach_trees().await?;
        let limit = Duration::from_millis(u64::from(params.grace_ms)) + END_WAIT;
        self.until(Some(limit), || (!self.is_live()).then_some(())).await.ok_or_else(|| {
            Fault::new(Code::Busy, format!("some processes of {} do not end", self.name()))
                .hint("they may belong to another user, or be stuck in the kernel: check with `ps`")
        })
    }

    /// Does what was decided about the whole tree, and marks it. It goes on where its asker goes away.
    pub(crate) async fn reach_trees(&self) -> Result<(), Fault> {
        let due = std::mem::take(&mut self.state.borrow_mut().to_tree);
        let Some(this) = self.this.upgrade().filter(|_| !due.is_empty()) else { return Ok(()) };
        let reached = tokio::task::spawn_local(async move {
            let mut all = Ok(());
            for (id, what) in due {
                let done = this.reach_tree(id, what).await;
                Begun { session: &this, deed: Some(id) }.over(&done.as_ref().copied().map_err(|fault| &fault.message));
                all = all.and(done);
            }
            all
        });
        reached.await.unwrap_or(Ok(()))
    }

    async fn reach_tree(&self, deed: DeedId, mut what: ToKeeper<'static>) -> Result<(), Fault> {
        let link = self.running().await?;
        self.spare(&link).await?;
        holdfast_pause::task_point("tree.spared").await;
        if let ToKeeper::Signal { fence, .. } = &mut what {
            let newest = self.state.borrow().core.fence_of(deed, Fence(*fence));
            let stale = || super::decide::fault(&Refusal::FenceStale { newest: self.fence() });
            *fence = newest.ok_or_else(stale)?.0;
        }
        link.send(what).map_err(|error| self.keeper_failed(&error))
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

    fn keeper_failed(&self, error: &std::io::Error) -> Fault {
        Fault::new(Code::Busy, format!("cannot reach the keeper of {}: {error}", self.name())).hint("try again")
    }

    /// Does what an actor asks for, where that is allowed and done at once.
    fn act(&self, actor: &Actor, ask: Ask, proof: Option<Proof>) -> Result<(), Fault> {
        let word = ask.word().to_owned();
        Self::was_done(&word, self.ask(actor, None, ask, proof)?)
    }

    /// Whether what was decided was done at once.
    pub(crate) fn was_done(word: &str, decided: Decided) -> Result<(), Fault> {
        match decided.deed {
            Some((_, Some(Ending::Failed { why }))) => {
                Err(Fault::new(Code::Internal, format!("{word}: {why}")).hint("try again"))
            }
            Some((_, Some(Ending::Done | Ending::Lost) | None)) | None => Ok(()),
        }
    }

    /// The deed of a decision that goes on after it.
    pub(crate) fn begun<'a>(&'a self, decided: &Decided) -> Begun<'a> {
        Begun { session: self, deed: decided.deed.as_ref().map(|(id, _)| *id) }
    }

    /// Decides about something an actor asks for; its signature must fit it.
    pub(crate) fn ask(
        &self,
        actor: &Actor,
        client: Option<u32>,
        ask: Ask,
        proof: Option<Proof>,
    ) -> Result<Decided, Fault> {
        self.ask_as(self.caller(actor, client), ask, proof)
    }

    /// The same, for a caller that is known already.
    pub(super) fn ask_as(&self, by: Caller, ask: Ask, proof: Option<Proof>) -> Result<Decided, Fault> {
        self.must_be_its(&by, &ask, proof.as_ref())?;
        self.decide(Input::Asked { by, ask, proof })
    }

    /// Its signature fits what an actor asks for, and was not used before.
    pub(super) fn must_be_its(&self, by: &Caller, ask: &Ask, proof: Option<&Proof>) -> Result<(), Fault> {
        if let Some(proof) = proof {
            holdfast_authority::proof::verify_act(by.actor.id, self.id, ask, proof)
                .map_err(|error| Fault::new(Code::BadProof, format!("{}: {error}", ask.word())))?;
            let taken = self.proofs.borrow_mut().take(proof.nonce, crate::now());
            taken.map_err(|stale| Fault::new(Code::BadProof, format!("{}: {stale}", ask.word())))?;
        }
        Ok(())
    }

    pub(crate) fn caller(&self, actor: &Actor, client: Option<u32>) -> Caller {
        Caller { actor: actor.clone(), operator: client.map(OperatorId), token: None }
    }

    /// A client is spoken for by its own actor, and by the connection it attached by.
    pub fn own_client(&self, client: u32, actor: &Actor, peer: u64) -> Result<(), Fault> {
        let is_its = self.state.borrow().core.is_clients(client, actor, peer);
        if is_its { Ok(()) } else { Err(super::attaching::not_attached(client)) }
    }

    /// A client's connection to the host is gone; it may still follow its keeper and come back.
    pub fn peer_gone(&self, peer: u64) {
        self.with_core(|core, held, now| {
            held.peers.remove(&peer);
            core.peer_gone(held, now, peer);
        });
    }
}

/// A deed that takes longer than its decision. It is marked when it is over, also where its asker goes away first.
pub(crate) struct Begun<'a> {
    session: &'a Session,
    deed: Option<DeedId>,
}

impl Begun<'_> {
    /// It was done, or why not.
    pub fn over<E: ToString>(&mut self, done: &Result<(), E>) {
        let ending = match done {
            Ok(()) => Ending::Done,
            Err(why) => Ending::Failed { why: why.to_string() },
        };
        if let Some(id) = self.deed.take() {
            self.session.with_core(|core, held, now| core.did(held, now, id, ending));
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.over(&Err("it was given up"));
    }
}
