//! Who is at the other end of the socket: a process of our user, an actor that proves its key, and, where that is a human, a
//! process that a person may be at.
//!
//! As with the host, a process inside a session or below an agent is no human unasked: a flow acts for weeks by what its starter
//! may do.

use crate::protocol::{BINDING, Hello, Prove, Trouble};
use holdfast_authority::identity::marker;
use holdfast_authority::proof;
use holdfast_client::PublicKey;
use holdfast_observe::ancestry::{self, Peer};
use holdfast_types::{Actor, ActorClass, Home};
use std::os::unix::net::UnixStream;

/// Deeper than anybody starts programs.
const ANCESTORS_MAX: usize = 128;
/// As much of a process's environment as is read.
const VARIABLES_BYTES_MAX: u64 = 256 * 1024;
/// The name of keepers.
const KEEPER: &str = "holdfast-keeper";

/// Whether a connection comes from a process of our own user.
pub fn is_ours(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::getuid())
}

/// Checks who speaks.
pub fn admit(home: &Home, peer: Option<&Peer>, hello: &Hello, said: &Prove) -> Result<Actor, Trouble> {
    let Prove { actor, signature } = said;
    let unknown = |why: &str| Trouble::new("unidentified", why.to_owned());
    let signed = proof::challenge_bytes(&hello.challenge.0, BINDING, actor);
    proof::verify(actor.id, &signed, signature).map_err(|error| unknown(&error.to_string()))?;
    // Its secret must lie in this home: a flow goes on when its starter has left, and acts with that key.
    let public = std::fs::read(home.actor_public(&actor.handle)).ok();
    let known = public.and_then(|text| serde_json::from_slice::<PublicKey>(&text).ok());
    if known.is_none_or(|known| known.id != actor.id || known.handle != actor.handle) {
        return Err(
            unknown(&format!("this home does not know {}", actor.handle)).hint("create it: holdfast actor new HANDLE")
        );
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
