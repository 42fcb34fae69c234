//! Clients that come, report back, change and go.

use crate::clients::Client;
use crate::core::{Core, Now};
use crate::decide::Undecided;
use crate::outside::{Event, Outside};
use holdfast_abi::protocol::{RIGHT_WRITE, ToKeeper, Token};
use holdfast_authority::{Ask, Caller, Input, OperatorId, Refusal};
use holdfast_types::{Actor, ClientToken, Offset, Right, Size};
use holdfast_wire::params::{Answers, Resume};

/// A client that attaches.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Who it is.
    pub actor: Actor,
    /// Its process.
    pub pid: u32,
    /// Its terminal's name.
    pub tty: String,
    /// Its terminal's size.
    pub size: Size,
    /// It cannot write.
    pub read_only: bool,
    /// It reads and types through the host, and answers no queries.
    pub remote: bool,
    /// It draws the session itself, and answers no queries.
    pub draws: bool,
    /// Its window gives the session its size.
    pub sizes: bool,
    /// The number of its connection to the host.
    pub peer: u64,
    /// What it will show the keeper.
    pub token: Token,
}

/// A client that outlived the last host and reports back.
#[derive(Debug, Clone)]
pub struct Resumption {
    /// What it was before.
    pub was: Resume,
    /// Who it is.
    pub actor: Actor,
    /// Its process.
    pub pid: u32,
    /// Its terminal's name.
    pub tty: String,
    /// Its terminal's size.
    pub size: Size,
    /// It draws the session itself, and answers no queries.
    pub draws: bool,
    /// The number of its connection to the host.
    pub peer: u64,
}

/// What came of a change at a client's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updated {
    /// It is so; the session takes this size, where there is one.
    Done(Option<Size>),
    /// No client with that number is attached by that connection.
    NotAttached,
    /// An answer to a query is typed, and this client may not type.
    MayNotType,
}

impl Core {
    /// An actor that may observe becomes an operator, with a number of its own.
    fn new_operator(&mut self, out: &mut impl Outside, now: Now, actor: &Actor) -> Result<u32, Undecided> {
        let operator = self.authority.next_operator();
        self.decide(out, now, Input::Attached { by: actor.clone(), operator })?;
        Ok(operator.0)
    }

    /// A client attaches: gives its number, and the size the session takes from it, where it does.
    pub fn arrive(
        &mut self,
        out: &mut impl Outside,
        now: Now,
        arrival: Arrival,
    ) -> Result<(u32, Option<Size>), Undecided> {
        let Arrival { actor, pid, tty, size, read_only, remote, draws, sizes, peer, token } = arrival;
        let id = self.new_operator(out, now, &actor)?;
        self.clients.add(Client {
            id,
            actor: Some(actor.clone()),
            told_writes: None,
            late: false,
            pid,
            tty,
            size: Some(size),
            read_only,
            remote,
            draws,
            sizes: sizes && !read_only,
            since_ms: now.time_ms,
            token,
            connection: None,
            peer: Some(peer),
        });
        // It may have come by the turn before it was here.
        self.after_decision(out, now);
        if !remote {
            out.say(ToKeeper::Admit { token, rights: if read_only { 0 } else { RIGHT_WRITE } });
        }
        // Where somebody else has the turn the size is that one's: the terminal shows what fits.
        let sizes = self.size != size && self.clients.is_only_writer(id) && self.take_size(out, now, &actor, id, size);
        Ok((id, sizes.then_some(size)))
    }

    /// The session takes a client's size, if its actor may give it one.
    fn take_size(&mut self, out: &mut impl Outside, now: Now, actor: &Actor, id: u32, size: Size) -> bool {
        if self.is_sized_for(now, actor, size) {
            self.clients.sized(id, size);
            return true;
        }
        let by = Caller { actor: actor.clone(), operator: Some(OperatorId(id)), token: None };
        let allowed = self.decide(out, now, Input::Asked { by, ask: Ask::Resize { size }, proof: None }).is_ok();
        if allowed {
            self.clients.sized(id, size);
        }
        allowed
    }

    /// Whether a resize by this actor would be allowed and change nothing: that is no act, and leaves no record.
    pub fn is_sized_for(&self, now: Now, actor: &Actor, size: Size) -> bool {
        let is_kept_by_another = || self.authority.state().turn().hold().is_some_and(|hold| hold.by.id != actor.id);
        self.asked_size == size && self.authority.rights(actor, now.time_ms).has(Right::Type) && !is_kept_by_another()
    }

    /// A client that attached was painted for the first time, with the screen at `offset`; `whole` where its terminal shows all
    /// of it, so that it can answer queries.
    pub fn first_painted(&mut self, out: &mut impl Outside, id: u32, offset: Offset, size: Size, whole: bool) {
        let writer = self.writer(out);
        if whole && self.clients.candidate(size, writer).is_some_and(|c| c.id == id) {
            self.clients.start_answering(id, offset);
        }
        if self.clients.answers(id) {
            // It may have been asked to before it had a screen: what came until then is the host's.
            let due = self.clients.answering(id, Answers { on: whole, left: 0, from: offset });
            self.type_replies(out, due);
        }
    }

    /// Whether this client writes, which it is being told.
    pub fn told_writes(&mut self, out: &impl Outside, client: u32) -> bool {
        let (fence, writes) = (self.fence(), self.writer(out) == Some(client));
        if let Some(known) = self.clients.get(client) {
            known.told_writes = writes.then_some(fence);
        }
        writes
    }

    /// The client with this token, once the keeper has said that it is there.
    #[must_use]
    pub fn joined_as(&self, token: ClientToken) -> Option<u32> {
        self.clients.iter().find(|c| c.token == token.0 && c.connection.is_some()).map(|c| c.id)
    }

    /// Whether nothing says that a client, or the operator it says it was, is another actor's.
    fn may_be(&self, client: u32, operator: u32, actor: &Actor) -> bool {
        let known = self.clients.iter().filter(|c| c.id == client).filter_map(|c| c.actor.as_ref());
        let operators = self.authority.state().operators();
        let attached = operators.filter(|(id, _)| id.0 == operator).map(|(_, operator)| &operator.actor);
        known.chain(attached).all(|other| other == actor)
    }

    /// A client that outlived the last host reports back; gives its number. It is known by its token and its actor. None: the
    /// keeper has no such client.
    pub fn resume(&mut self, out: &mut impl Outside, now: Now, back: Resumption) -> Result<Option<u32>, Undecided> {
        let Resumption { was, actor, pid, tty, size, draws, peer } = back;
        let Some(known) = self.joined_as(was.token) else { return Ok(None) };
        if !self.may_be(known, was.client, &actor) {
            return Err(Refusal::NotAttached.into());
        }
        // An operator that was away for too long is like a new one.
        let operator = OperatorId(was.client);
        let id = match self.decide(out, now, Input::Resumed { by: actor.clone(), operator }) {
            Ok(_) => was.client,
            Err(_) => self.new_operator(out, now, &actor)?,
        };
        self.clients.rename(known, id);
        let Some(client) = self.clients.get(id) else { return Ok(None) };
        client.actor = Some(actor.clone());
        client.size = Some(size);
        client.tty = tty;
        client.pid = pid;
        client.draws = draws;
        client.peer = Some(peer);
        if was.answers && self.writes_next() == Some(id) && self.may_answer(now, id) {
            self.clients.start_answering(id, 0);
        }
        let due = self.clients.release();
        self.timers.rearm = Some(now.clock_ms);
        self.type_replies(out, due);
        // It may have typed, or changed its size, while no host was there to see.
        if self.clients.sizes(id) && size != self.size {
            self.take_size(out, now, &actor, id, size);
        }
        self.record_joined(out, now, id);
        // It may be the writer: now the keeper can be told by which connection.
        self.say_writer(out);
        self.after_decision(out, now);
        self.detach_again(out, now, OperatorId(id));
        Ok(Some(id))
    }

    /// Something changed at an attached terminal.
    pub fn update(
        &mut self,
        out: &mut impl Outside,
        now: Now,
        actor: &Actor,
        (id, peer): (u32, u64),
        size: Option<Size>,
        answers: Option<Answers>,
    ) -> Updated {
        if !self.is_clients(id, actor, peer) {
            return Updated::NotAttached;
        }
        let answers = match answers {
            Some(said) if !self.may_answer(now, id) => {
                self.retire_answerer(out, now);
                if said.on {
                    return Updated::MayNotType;
                }
                None
            }
            // The host chooses who answers: whoever writes. One that it chose may report after it lost the turn.
            Some(said) if said.on && !self.clients.answers(id) && self.writer(out) != Some(id) => None,
            answers => answers,
        };
        if answers.is_some_and(|answers| !answers.on) {
            // What it answered must be behind the screen before the host answers again.
            self.look(out, now);
        }
        let Some(known) = self.clients.get(id) else { return Updated::NotAttached };
        let mut resize = None;
        if let Some(size) = size {
            known.size = Some(size);
            resize = self.clients.sizes(id).then_some(size);
        }
        let due = answers.map(|answers| self.clients.answering(id, answers)).unwrap_or_default();
        self.timers.rearm = Some(now.clock_ms);
        self.type_replies(out, due);
        let wanted = resize.filter(|_| self.clients.wants_size(id).is_some());
        let taken = wanted.filter(|size| self.take_size(out, now, actor, id, *size));
        self.appoint(out, now);
        Updated::Done(taken)
    }

    /// Whether a client's terminal may answer queries: an answer is typed, so whoever may not type gives none.
    fn may_answer(&self, now: Now, client: u32) -> bool {
        let Some(client) = self.clients.iter().find(|c| c.id == client) else { return false };
        let types = |actor| self.authority.rights(actor, now.time_ms).has(Right::Type);
        !client.read_only && !client.remote && !client.draws && client.actor.as_ref().is_some_and(types)
    }

    /// A terminal that may no longer type answers no longer. What it was to answer goes unanswered: it had the time, and the
    /// host must not type it at a moment of its choosing.
    pub(crate) fn retire_answerer(&mut self, out: &mut impl Outside, now: Now) {
        let retired = |core: &Core| core.clients.answerer().is_some_and(|client| !core.may_answer(now, client.id));
        if retired(self) {
            // What it has seen is behind the screen before the host answers again.
            self.look(out, now);
            self.clients.stop_answering(Offset::MAX);
            self.timers.rearm = Some(now.clock_ms);
        }
    }

    /// Whether a client is this actor's, and attached by this connection to the host. Its number alone is no identity.
    #[must_use]
    pub fn is_clients(&self, client: u32, actor: &Actor, peer: u64) -> bool {
        self.clients.iter().any(|c| c.id == client && c.actor.as_ref() == Some(actor) && c.peer == Some(peer))
    }

    /// An operator lets go by itself: what it held is free.
    pub fn leave(&mut self, out: &mut impl Outside, now: Now, client: u32) -> Result<(), Undecided> {
        self.decide(out, now, Input::Left { operator: OperatorId(client) })?;
        self.forget_remote(now, &[client]);
        Ok(())
    }

    /// Clients are told to let go; those that do not are cut off by the keeper.
    pub(crate) fn detach(&mut self, out: &mut impl Outside, now: Now, clients: &[u32]) {
        let mut connections = Vec::new();
        for client in self.clients.iter().filter(|client| clients.contains(&client.id)) {
            connections.extend(client.connection);
            if let Some(peer) = client.peer {
                out.tell(peer, client.id, Event::Detached);
            }
        }
        for id in self.forget_remote(now, clients) {
            let _ = self.handle(out, now, Input::Left { operator: OperatorId(id) });
        }
        out.cut_off_soon(connections);
    }

    /// Of those who have no connection to the keeper nobody else will say that they are gone. Gives which they are.
    fn forget_remote(&mut self, now: Now, clients: &[u32]) -> Vec<u32> {
        let gone: Vec<u32> =
            self.clients.iter().filter(|c| c.remote && clients.contains(&c.id)).map(|c| c.id).collect();
        for id in &gone {
            self.clients.remove(*id, None);
            self.timers.rearm = Some(now.clock_ms);
        }
        gone
    }

    /// A client's connection to the host is gone; it may still follow its keeper and come back.
    pub fn peer_gone(&mut self, out: &mut impl Outside, now: Now, peer: u64) {
        let mut never_joined = Vec::new();
        for client in self.clients.iter_mut().filter(|client| client.peer == Some(peer)) {
            client.peer = None;
            if client.connection.is_none() {
                never_joined.push(client.id);
            }
        }
        for id in &never_joined {
            self.clients.remove(*id, Some(0));
            self.timers.rearm = Some(now.clock_ms);
        }
        for id in never_joined {
            // Those who said that they leave are gone already.
            let _ = self.decide(out, now, Input::CutOff { operator: OperatorId(id) });
        }
    }
}
