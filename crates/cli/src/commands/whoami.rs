//! `holdfast whoami`: which actor this process is, why, and whether the host believes it.

use super::actor::short;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{fields, print, print_json, visible};
use holdfast_authority::identity::Because;
use holdfast_client::{ConnectError, connect};
use holdfast_types::Actor;
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use serde_json::json;

/// `holdfast whoami`.
pub fn whoami(here: &Here) -> Result<u8, Failure> {
    let me = here.me()?;
    let actor = me.identity.actor();
    let known = known(here, actor)?;
    let (word, why) = reason(me.because);
    if here.json {
        print_json(&json!({"actor": actor, "because": word, "key_file": me.file, "known": known}))?;
        return Ok(0);
    }
    let host = match known {
        Some(true) => "knows you",
        Some(false) => "does not know you",
        None => "not running",
    };
    print(fields(&[
        ("actor", actor.handle.to_string()),
        ("key", short(actor.id)),
        ("because", why.into()),
        ("key file", visible(&me.file.display().to_string())),
        ("host", host.into()),
    ]))?;
    Ok(0)
}

/// Whether the host knows this key under this handle; none where no host runs.
fn known(here: &Here, actor: &Actor) -> Result<Option<bool>, Failure> {
    match connect(&here.home, here.who()?) {
        Err(ConnectError::NoHost(_)) => Ok(None),
        connection => {
            let all = connection?.call::<op::Actors>(&Nothing {})?;
            Ok(Some(all.iter().any(|view| view.actor == *actor)))
        }
    }
}

fn reason(because: Because) -> (&'static str, &'static str) {
    match because {
        Because::Said => ("said", "--as or HOLDFAST_ACTOR names it"),
        Because::Marked => ("marked", "the environment has a coding agent's marker"),
        Because::Inside => ("inside", "this shell runs inside a session"),
        Because::NoTerminal => ("no_terminal", "there is no terminal"),
        Because::AtTerminal => ("at_terminal", "you are at a terminal"),
    }
}
