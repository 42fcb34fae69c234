//! Who is at the other end of the socket: a process of our user, an actor that proves its key, and, where that is a human, a
//! process that a person may be at. The host speaks for actors that have proven themselves to it, as far as this home has their keys.
//!
//! As with the host, a process inside a session or below an agent is no human unasked: a flow acts for weeks by what its starter
//! may do.

use crate::engine::{Standing, Tickets};
use crate::protocol::{BINDING, Hello, Prove, Trouble};
use holdfast_authority::identity::marker;
use holdfast_authority::proof;
use holdfast_client::{Identity, PublicKey};
use holdfast_observe::ancestry::{self, Peer};
use holdfast_types::{Actor, ActorClass, Home};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Deeper than anybody starts programs.
const ANCESTORS_MAX: usize = 128;
/// As much of a process's environment as is read.
const VARIABLES_BYTES_MAX: u64 = 256 * 1024;
/// How long the host may take to say which process it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// The name of keepers.
const KEEPER: &str = "holdfast-keeper";

/// Whether a connection comes from a process of our own user.
pub fn is_ours(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::getuid())
}

/// Checks who speaks.
pub fn admit(
    home: &Home,
    tickets: &Tickets,
    peer: Option<&Peer>,
    hello: &Hello,
    said: &Prove,
) -> Result<(Actor, Standing), Trouble> {
    if said.ticket.is_empty() {
        let actor = proven(home, peer, hello, said)?;
        return Ok((actor, if said.vouched { Standing::Vouched } else { Standing::Own }));
    }
    match tickets.show(&said.ticket, peer) {
        Some((actor, code)) => Ok((actor, Standing::Hosted(code))),
        None => Err(Trouble::new("unidentified", "this ticket is another worker's, or of another service".to_owned())),
    }
}

fn proven(home: &Home, peer: Option<&Peer>, hello: &Hello, said: &Prove) -> Result<Actor, Trouble> {
    let Prove { actor, signature, vouched, .. } = said;
    let unknown = |why: &str| Trouble::new("unidentified", why.to_owned());
    match signature {
        Some(signature) if !vouched => {
            let signed = proof::challenge_bytes(&hello.challenge.0, BINDING, actor);
            proof::verify(actor.id, &signed, signature).map_err(|error| unknown(&error.to_string()))?;
        }
        None if *vouched => {}
        Some(_) | None => return Err(unknown("expected a signature")),
    }
    // Its secret must lie in this home: a flow goes on when its starter has left, and acts with that key.
    let public = std::fs::read(home.actor_public(&actor.handle)).ok();
    let known = public.and_then(|text| serde_json::from_slice::<PublicKey>(&text).ok());
    if known.is_none_or(|known| known.id != actor.id || known.handle != actor.handle) {
        return Err(
            unknown(&format!("this home does not know {}", actor.handle)).hint("create it: holdfast actor new HANDLE")
        );
    }
    if *vouched {
        // Actors that have tokens alone are known and have no key here.
        let who = Identity::load(home, &actor.handle).ok().filter(|who| who.actor().id == actor.id);
        let Some(who) = who else {
            return Err(unknown(&format!("this home has no key of {}, by which its flow would act", actor.handle)));
        };
        // The host has looked at who is at the other end of its own door.
        return if is_host(home, &who, peer) {
            Ok(actor.clone())
        } else {
            Err(unknown("only the host speaks for others"))
        };
    }
    if actor.handle.class() == ActorClass::Human && !is_a_persons(peer) {
        let message = format!(
            "this process runs inside a session or was started by an agent: that {} is at its keys is not confirmed",
            actor.handle
        );
        return Err(Trouble::new("unconfirmed", message).hint("a person acts from a terminal of their own"));
    }
    Ok(actor.clone())
}

/// Whether a process is the one that answers at the host's socket. What cannot be known is no.
fn is_host(home: &Home, who: &Identity, peer: Option<&Peer>) -> bool {
    // Its pid, and when it started.
    static KNOWN: Mutex<Option<(u32, u64)>> = Mutex::new(None);
    let Some(peer) = peer else { return false };
    let process = (peer.id().pid, peer.id().start);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if *known == Some(process) {
        return peer.is_there();
    }
    let asked = || {
        let mut host = holdfast_client::connect(home, who).ok()?;
        host.set_patience(Some(PATIENCE)).ok()?;
        host.call::<op::Status>(&Nothing {}).ok()
    };
    let is_it = asked().is_some_and(|status| status.pid == process.0) && peer.is_there();
    if is_it {
        *known = Some(process);
    }
    is_it
}

/// Whether neither a keeper nor an agent is above a process. What cannot be known is no.
fn is_a_persons(peer: Option<&Peer>) -> bool {
    let Some(peer) = peer else { return false };
    let Some(above) = ancestry::ancestors(peer.id(), ANCESTORS_MAX) else { return false };
    let top = top();
    let is_inside = above.iter().take_while(|process| Some(process.pid) != top).any(|process| {
        let variables = ancestry::variables(process.pid, VARIABLES_BYTES_MAX).unwrap_or_default();
        let pairs = variables.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        ancestry::name(process.pid).is_some_and(|name| name == KEEPER) || marker(pairs).is_some()
    });
    // While it runs its pid is its own: what was read is of it.
    !is_inside && peer.is_there()
}

/// As in the host: a test may itself be run by an agent. Release builds look at everything.
fn top() -> Option<u32> {
    let said = || std::env::var(holdfast_pause::TOP).ok()?.parse().ok();
    if cfg!(debug_assertions) { said() } else { None }
}
