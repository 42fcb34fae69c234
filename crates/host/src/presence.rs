//! Who is connected, and what they are doing: the runs of theirs that are on, and what their open requests wait for.
//!
//! Only what is on now is known here, so nothing is kept: it ends with the connection, the request or the run.

use crate::serve::Server;
use holdfast_graph::ProcessId;
use holdfast_types::{Actor, ActorClass, ActorId, Places, Right, SessionId, SessionName, TimeMs};
use holdfast_wire::attention::Until;
use holdfast_wire::runs::{RunParams, RunRef};
use holdfast_wire::turns::{Connected, Doing};
use holdfast_wire::{Call, Code, Fault};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use tokio::sync::Notify;

/// Connections at the host's socket: as many as there are observers, and their programs, on a large machine. One program that
/// leaks them finds its share full, and nobody else's.
const CONNECTIONS: Places = Places { all: 4096, not_human: 3072, of_one: 1536, of_human: 2048 };

/// Characters of a command, or of a program's name, that are shown.
const TEXT_CHARS_MAX: usize = 100;

#[derive(Debug)]
struct Peer {
    process: Option<ProcessId>,
    program: String,
    actor: Option<Actor>,
    /// It came by another surface, which has places of its own.
    is_remote: bool,
    since_ms: TimeMs,
}

#[derive(Debug)]
struct Wait {
    actor: Actor,
    session: SessionId,
    text: String,
    since_ms: TimeMs,
}

/// Connections, and requests of theirs that wait.
#[derive(Debug, Default)]
pub struct Presence {
    peers: RefCell<BTreeMap<u64, Peer>>,
    /// By the number of the connection, and one of their own.
    waits: RefCell<BTreeMap<(u64, u64), Wait>>,
    next: Cell<u64>,
    /// Requests that are being answered.
    open: Cell<u64>,
    /// Somebody asks for something.
    pub(crate) asked: Notify,
}

/// A request is being answered until this is dropped.
#[derive(Debug)]
pub struct Open<'a>(&'a Cell<u64>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A request waits until this is dropped.
#[derive(Debug)]
pub struct Waits<'a>(&'a Presence, (u64, u64));

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waits.borrow_mut().remove(&self.1);
    }
}

impl Presence {
    /// A request is being answered.
    pub fn opened(&self) -> Open<'_> {
        self.open.set(self.open.get() + 1);
        self.asked.notify_one();
        Open(&self.open)
    }

    /// How many are.
    pub fn open(&self) -> u64 {
        self.open.get()
    }

    /// A connection was made, by this process where it is of this machine.
    pub fn came(&self, peer: u64, process: Option<ProcessId>, is_remote: bool) {
        let since_ms = crate::now_ms();
        self.peers
            .borrow_mut()
            .insert(peer, Peer { process, program: String::new(), actor: None, is_remote, since_ms });
    }

    /// The processes that speak as agents, with their names, and whether each is a server of tools that its agent started.
    pub fn agents(&self) -> Vec<(ProcessId, String, bool)> {
        let peers = self.peers.borrow();
        let agents = peers.values().filter_map(|peer| {
            let handle = &peer.actor.as_ref()?.handle;
            let is_agent = handle.class() == ActorClass::Agent;
            is_agent.then_some((peer.process?, handle.name().to_owned(), peer.program.starts_with("mcp ")))
        });
        agents.collect()
    }

    /// It said which program it is.
    pub fn said(&self, peer: u64, program: &str) {
        if let Some(peer) = self.peers.borrow_mut().get_mut(&peer) {
            peer.program = line(program);
        }
    }

    /// It proved who speaks, or failed to.
    pub fn is(&self, peer: u64, actor: Option<&Actor>) {
        if let Some(peer) = self.peers.borrow_mut().get_mut(&peer) {
            peer.actor = actor.cloned();
        }
    }

    /// Whether there is a place for one more connection of this actor's.
    pub fn must_fit(&self, peer: u64, actor: &Actor, is_human: impl Fn(&Actor) -> bool) -> Result<(), Fault> {
        let peers = self.peers.borrow();
        let others = peers.iter().filter(|(number, other)| **number != peer && !other.is_remote);
        let taken = others.filter_map(|(_, other)| other.actor.as_ref()).map(|other| (other.id, is_human(other)));
        CONNECTIONS.admit(&actor.id, is_human(actor), taken).map_err(|full| {
            Fault::new(Code::TooMany, format!("too many {}: {}", full.of("connections"), full.max()))
                .hint("close some of them, then connect again: holdfast actor ls --json shows whose they are")
        })
    }

    /// Whether such a connection is there.
    pub fn is_here(&self, peer: u64) -> bool {
        self.peers.borrow().contains_key(&peer)
    }

    /// It is gone, and no caller waits there any more.
    pub fn left(&self, peer: u64) {
        self.peers.borrow_mut().remove(&peer);
        self.waits.borrow_mut().retain(|(of, _), _| *of != peer);
    }

    fn waits(&self, peer: u64, wait: Wait) -> Waits<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        self.waits.borrow_mut().insert((peer, number), wait);
        Waits(self, (peer, number))
    }

    /// Through which programs an actor is connected.
    pub fn connected(&self, actor: &Actor) -> Vec<Connected> {
        let peers = self.peers.borrow();
        let its = peers.values().filter(|peer| peer.actor.as_ref() == Some(actor));
        its.map(|peer| Connected { program: peer.program.clone(), since_ms: peer.since_ms }).collect()
    }
}

impl Server {
    /// Notes what a request waits for, if it does.
    pub(crate) fn note_wait(&self, call: &Call, peer: u64, actor: &Actor) -> Option<Waits<'_>> {
        let (session, text) = self.waits_for(call, actor)?;
        Some(self.presence.waits(peer, Wait { actor: actor.clone(), session, text, since_ms: crate::now_ms() }))
    }

    /// A run that is started is seen by itself, while it is on.
    fn waits_for(&self, call: &Call, actor: &Actor) -> Option<(SessionId, String)> {
        let (session, text) = match call {
            Call::Wait(params) => {
                let text = match params.until {
                    Until::Exit => "waits for its end".into(),
                    Until::Idle => "waits for an idle prompt".into(),
                    Until::Waiting => "waits until it wants input".into(),
                    Until::Port(port) => format!("waits for port {port}"),
                };
                (&params.session, text)
            }
            Call::Read(params) if params.wait_ms > 0 => (&params.session, "reads the output".into()),
            Call::Watch(params) if params.wait_ms > 0 => (params.session.as_ref()?, "watches".into()),
            Call::QuestionAsk(params) if params.wait_ms > 0 => (&params.session, "waits for an answer".into()),
            Call::RunGet(RunParams { run, wait_ms }) if *wait_ms > 0 => return self.waits_for_run(run, actor),
            _ => return None,
        };
        Some((self.registry.find(session).ok()?.id, text))
    }

    fn waits_for_run(&self, wanted: &RunRef, actor: &Actor) -> Option<(SessionId, String)> {
        let on = |session: &crate::session::Session| session.run_on().map(|run| (session.id, run));
        let is_it = |run: &holdfast_session::Run| match wanted {
            RunRef::Id(id) => run.id == *id,
            RunRef::Key(key) => run.key.as_ref() == Some(key),
        };
        let (session, run) = self.registry.all().iter().filter_map(|one| on(one)).find(|(_, run)| is_it(run))?;
        // Its own is seen as what it runs.
        (run.actor != *actor).then(|| (session, format!("waits for run: {}", line(&run.command))))
    }

    /// What actors are doing, as far as who asks may know: oldest first. Sessions and waits are looked at once each.
    pub(crate) fn doing(&self, asks: &Actor) -> HashMap<ActorId, Vec<Doing>> {
        let mut names: HashMap<SessionId, SessionName> = HashMap::new();
        let mut doing: HashMap<ActorId, Vec<Doing>> = HashMap::new();
        for session in self.registry.all() {
            if !session.rights(asks).has(Right::Observe) {
                continue;
            }
            let name = session.state.borrow().spec.name.clone();
            if let Some(run) = session.run_on() {
                let text = format!("run: {}", line(&run.command));
                let one = Doing { session: session.id, name: name.clone(), text, since_ms: run.started_ms };
                doing.entry(run.actor.id).or_default().push(one);
            }
            names.insert(session.id, name);
        }
        for wait in self.presence.waits.borrow().values() {
            if let Some(name) = names.get(&wait.session) {
                let (name, text) = (name.clone(), wait.text.clone());
                let one = Doing { session: wait.session, name, text, since_ms: wait.since_ms };
                doing.entry(wait.actor.id).or_default().push(one);
            }
        }
        doing.values_mut().for_each(|one| one.sort_by_key(|one| one.since_ms));
        doing
    }
}

/// One line without control characters, not too long.
fn line(text: &str) -> String {
    let mut plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut cut: String = plain.by_ref().take(TEXT_CHARS_MAX).collect();
    if plain.next().is_some() {
        cut.push('…');
    }
    cut
}
