//! The way to a host behind a relay, in a sealed channel that ends at the host.
//!
//! A host that listens itself says where, inside the channel. That is kept in the run directory, and tried first from then on.
//!
//! The host's key is known beforehand: whoever answers and does not have it is not spoken to. Through which relay a connection goes makes no
//! difference: each is a new channel, and what was under way is resumed by offset and number.

use crate::bridge::bridge;
use crate::connection::{CallError, Connection, Greeted};
use crate::identity::Identity;
use crate::start::{ConnectError, refused};
use holdfast_channel::{InviteLink, Invited};
use holdfast_relay::{ReachError, Reached, RelayUrl, UrlError, Wanted, reach};
use holdfast_store::{DIRECT_KNOWN, Survives, get_json, put_json};
use holdfast_types::{Handle, HostKey, hex_text};
use holdfast_wire::devices::{DIRECT_MAX, InviteAcceptAnswer};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a host may take for its first word inside the channel.
const HELLO: Duration = Duration::from_secs(15);
/// How often an attached terminal that goes through a relay looks whether the host can be reached without: soon after a laptop is home again.
const MOVES_EVERY: Duration = Duration::from_secs(10);

/// Another machine, behind relays.
#[derive(Debug, Clone)]
pub struct Relayed {
    /// What people call it.
    pub name: String,
    /// Where it waits.
    pub relays: Vec<RelayUrl>,
    /// Its key.
    pub key: HostKey,
    /// Where its own addresses are remembered.
    pub run: PathBuf,
    /// Whoever connects resumes by itself: its connection may end to go on without the relay.
    pub moves: bool,
}

impl Relayed {
    /// From what is kept.
    pub fn new(name: &str, relays: &[String], key: HostKey, run: PathBuf) -> Result<Relayed, UrlError> {
        let relays = relays.iter().map(|url| url.parse()).collect::<Result<_, _>>()?;
        Ok(Relayed { name: name.to_owned(), relays, key, run, moves: false })
    }

    /// Where it is tried: its own addresses first.
    fn wanted(&self) -> Wanted {
        let known = self.known().into_iter().filter_map(|address| RelayUrl::direct(&address).ok());
        Wanted {
            at: known.chain(self.relays.iter().cloned()).collect(),
            moves_every: self.moves.then_some(MOVES_EVERY),
        }
    }

    fn file(&self) -> String {
        format!("direct-{}.json", hex_text(&self.key.0[..8]))
    }

    /// Addresses that it said it listens at.
    fn known(&self) -> Vec<String> {
        let mut known: Vec<String> =
            get_json(&DIRECT_KNOWN, &self.run.join(self.file())).ok().flatten().unwrap_or_default();
        known.truncate(DIRECT_MAX);
        known
    }

    /// Remembers what it says now; whether that is news.
    fn learn(&self, said: &[String]) -> bool {
        let said = &said[..said.len().min(DIRECT_MAX)];
        if *said == *self.known() {
            return false;
        }
        // Without it the relay is all there is.
        let _ = holdfast_store::make_dir(&self.run)
            .and_then(|()| put_json(&DIRECT_KNOWN, &self.run, &self.file(), &said, Survives::Crash));
        !said.is_empty()
    }

    pub(crate) fn connect_as(&self, who: &Identity, said: &str) -> Result<Connection, ConnectError> {
        let (mut reached, mut handle) = self.open(who)?;
        let mut at = reached.relay.clone();
        let mut greeted = self.greet(reached, said)?;
        // Said for the first time: tried at once.
        if self.learn(greeted.direct())
            && !at.is_direct()
            && let Ok(again) = self.open(who)
            && again.0.relay.is_direct()
        {
            (reached, handle) = again;
            at = reached.relay.clone();
            greeted = self.greet(reached, said)?;
        }
        let connection = greeted.identify(&who.called(handle)).map_err(|error| self.failed(error))?;
        Ok(connection.through(at))
    }

    /// The handle by which the host knows an actor.
    pub fn handle_of(&self, who: &Identity) -> Result<Handle, ConnectError> {
        Ok(self.open(who)?.1)
    }

    /// A channel, and by which handle the host knows the actor at its other end. Nothing is said yet.
    pub fn open(&self, who: &Identity) -> Result<(Reached, Handle), ConnectError> {
        let reached = reach(self.wanted(), self.key, who.channel_secret(), None);
        let mut reached = reached.map_err(|error| self.explain(error, who))?;
        let handle = reached.handle.take().filter(|handle| handle.class() == who.actor().handle.class());
        let handle = handle.ok_or_else(|| self.far("it knows this key as another kind of actor".into(), None))?;
        Ok((reached, handle))
    }

    /// Carries another program's connection to the host, in this actor's name, until one of the two ends.
    pub fn carry(&self, who: &Identity, program: UnixStream) -> Result<(), ConnectError> {
        let (reached, handle) = self.open(who)?;
        bridge(program, reached.stream, reached.binding, &who.called(handle)).map_err(|error| self.failed(error))
    }

    /// Accepts an invite of this host: the actor's key is enrolled there.
    pub fn accept(&self, link: &InviteLink, who: &Identity, said: &str) -> Result<InviteAcceptAnswer, ConnectError> {
        let invited = Invited { id: link.id, secret: link.secret.clone() };
        let reached = reach(self.wanted(), self.key, who.channel_secret(), Some(invited));
        let reached = reached.map_err(|error| match error {
            ReachError::NoAnswer(relay) => {
                let why = format!("no machine that knows this invite answered at {relay}");
                self.far(why, Some("it may be too old, or the link is not complete; ask for a new invite".into()))
            }
            other => self.explain(other, who),
        })?;
        let accepted = self.greet(reached, said)?.accept(who).map_err(|error| self.failed(error))?;
        if accepted.actor.id != who.actor().id || accepted.actor.handle.class() != who.actor().handle.class() {
            return Err(self.far("it answered for another actor".into(), None));
        }
        Ok(accepted)
    }

    fn greet(&self, reached: Reached, said: &str) -> Result<Greeted, ConnectError> {
        let Reached { stream, binding, .. } = reached;
        stream.set_read_timeout(Some(HELLO)).map_err(|error| self.far(error.to_string(), None))?;
        Ok(Greeted::on(stream, said).map_err(|error| self.failed(error))?.bound(binding))
    }

    fn far(&self, why: String, hint: Option<String>) -> ConnectError {
        ConnectError::Far { name: self.name.clone(), why, hint }
    }

    fn failed(&self, error: CallError) -> ConnectError {
        match error {
            CallError::Broken(error) => self.far(format!("the connection broke: {error}"), None),
            other => refused(&self.name, other),
        }
    }

    /// What a person can do about it.
    fn explain(&self, error: ReachError, who: &Identity) -> ConnectError {
        let name = &self.name;
        let (why, hint) = match error {
            ReachError::Unknown => (
                format!("it does not know {}", who.actor().handle),
                Some(format!(
                    "get an invite: run `holdfast invite --host-wide` on {name}, then here: holdfast accept LINK"
                )),
            ),
            ReachError::Impostor(relay) | ReachError::NoAnswer(relay) => (
                format!("whoever answers for it at {relay} did not prove {name}'s key {}", short(&self.key)),
                Some(format!(
                    "nothing was sent to it. Somebody may be in between, or {name} was set up anew and has another key: compare \
                     `holdfast host key` there; if it changed, run `holdfast hosts forget {name}` and add it again"
                )),
            ),
            ReachError::NotThere(relay) => (
                format!("it is not connected to {relay}"),
                Some(format!(
                    "see `holdfast relay ls` on {name}; a machine that sleeps or has no network is not connected"
                )),
            ),
            ReachError::Dial(error) => (error.to_string(), None),
            other @ (ReachError::NoRelay | ReachError::Key | ReachError::Here(_)) => (other.to_string(), None),
        };
        self.far(why, hint)
    }
}

/// The beginning of a key, for people to compare.
fn short(key: &HostKey) -> String {
    key.to_string().chars().take(16).collect::<String>() + "…"
}
