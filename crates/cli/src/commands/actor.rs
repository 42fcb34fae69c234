//! `holdfast actor`: the actors this home knows; and which actor a handle means.

use crate::args::{ActorCommand, ActorNewArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{columns, now_ms, print, print_json, span, table, visible};
use crate::who;
use holdfast_client::{Identity, KeyError};
use holdfast_types::{Actor, ActorClass, ActorId, Handle};
use holdfast_wire::operations::op;
use holdfast_wire::params::{Nothing, SessionParams, SessionView};
use holdfast_wire::turns::{ActorParams, ActorView, Doing};
use serde_json::json;

/// Digits of a key that tell it from the others of a home.
const KEY_DIGITS: usize = 16;

/// `holdfast actor`.
pub fn actor(here: &Here, command: &ActorCommand) -> Result<u8, Failure> {
    match command {
        ActorCommand::New(args) => new(here, args),
        ActorCommand::Ls => list(here),
        ActorCommand::Remove(args) => remove(here, &args.handle),
    }
}

/// The beginning of a key, for people.
pub fn short(id: ActorId) -> String {
    id.to_string().chars().take(KEY_DIGITS).collect()
}

/// Whatever a process says of itself: what is no human by the rule makes none.
fn may_make(here: &Here, handle: &Handle) -> Result<(), Failure> {
    if handle.is_reserved() {
        return Err(Failure::new("denied", format!("the host itself acts as {handle}")).hint("choose another name"));
    }
    if handle.class() != ActorClass::Human {
        return Ok(());
    }
    let itself = who::unsaid(here.inside().as_ref()).handle;
    if itself.class() != ActorClass::Human {
        let message = format!("only a human may create {handle}, and you are {itself}");
        return Err(Failure::new("denied", message));
    }
    Ok(())
}

/// Makes an actor where it is not there yet.
pub fn make_if_missing(here: &Here, handle: &Handle) -> Result<(), Failure> {
    match Identity::load(&here.home, handle) {
        Err(KeyError::Missing(_)) => {
            may_make(here, handle)?;
            Identity::load_or_make(&here.home, handle)?;
            Ok(())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn new(here: &Here, args: &ActorNewArgs) -> Result<u8, Failure> {
    let handle = &args.of.handle;
    may_make(here, handle)?;
    let file = args.key.as_deref().map(std::path::absolute).transpose();
    let file = file.map_err(|e| Failure::io("cannot resolve the path of the key file", e))?;
    let identity = Identity::make(&here.home, handle, file.as_deref()).map_err(|error| taken(handle, error))?;
    let id = identity.actor().id;
    let place = file.clone().unwrap_or_else(|| here.home.actor_key(handle));
    let said = file.as_ref().map_or_else(|| handle.to_string(), |file| file.display().to_string());
    if here.json {
        print_json(&json!({"actor": identity.actor(), "key_file": place}))?;
        return Ok(0);
    }
    print(format!(
        "created {handle}, key {}\n  file    {}\n  use it  holdfast --as {said} …\n  or      {}={said}\n",
        short(id),
        place.display(),
        who::VARIABLE,
    ))?;
    Ok(0)
}

fn taken(handle: &Handle, error: KeyError) -> Failure {
    match error {
        KeyError::Taken(file) => {
            let message = format!("actor {handle} already exists: {}", file.display());
            Failure::new("actor_taken", message)
        }
        other => other.into(),
    }
}

fn list(here: &Here) -> Result<u8, Failure> {
    let mut actors = here.link()?.call::<op::Actors>(&Nothing {})?;
    actors.sort_by(|a, b| a.actor.handle.cmp(&b.actor.handle));
    if here.json {
        print_json(&actors)?;
        return Ok(0);
    }
    let now = now_ms();
    let head = ["ACTOR", "KEY", "ATTACHED TO", "DOING"].map(str::to_owned).to_vec();
    let row = |view: &ActorView| {
        let sessions = if view.sessions.is_empty() { "-".into() } else { view.sessions.join(", ") };
        let doing = |one: &Doing| {
            let since = span(now.saturating_sub(one.since_ms));
            format!("{} in {} for {since}", visible(&one.text), one.name)
        };
        let doing: Vec<String> = view.doing.iter().map(doing).collect();
        let doing = if doing.is_empty() { "-".into() } else { doing.join(", ") };
        vec![view.actor.handle.to_string(), short(view.actor.id), sessions, doing]
    };
    let rows: Vec<_> = std::iter::once(head).chain(actors.iter().map(row)).collect();
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

fn remove(here: &Here, handle: &Handle) -> Result<u8, Failure> {
    let answer = here.link()?.call::<op::ActorRemove>(&ActorParams { handle: handle.clone() })?;
    if here.json {
        print_json(&answer)?;
    } else {
        print(format!("removed {handle}\n"))?;
    }
    Ok(0)
}

/// The handles this home knows, one a line, for completions; asks no host.
pub fn handles(here: &Here) -> Result<u8, Failure> {
    let names = std::fs::read_dir(here.home.actors()).into_iter().flatten().flatten();
    let mut handles: Vec<Handle> = names
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".pub")?.replacen('.', ":", 1).parse().ok()
        })
        .collect();
    handles.sort();
    print(handles.iter().map(|handle| format!("{handle}\n")).collect::<String>())?;
    Ok(0)
}

/// The actors that the host knows; none if it does not answer.
pub fn known(link: &mut Link<'_>) -> Vec<Actor> {
    let views = link.call::<op::Actors>(&Nothing {}).unwrap_or_default();
    views.into_iter().map(|view| view.actor).collect()
}

/// Which actor a handle means. Whom the host knows comes first: others call themselves what they like.
pub fn find(link: &mut Link<'_>, session: &SessionView, handle: &Handle) -> Result<Actor, Failure> {
    let known = known(link);
    if let Some(actor) = known.iter().find(|actor| actor.handle == *handle) {
        return Ok(actor.clone());
    }
    let mut met: Vec<Actor> = session.clients.iter().filter_map(|client| client.actor.clone()).collect();
    met.extend(session.turn.holder.iter().map(|holder| holder.actor.clone()));
    let answer = link.call::<op::Grants>(&SessionParams { session: session.id.to_string() })?;
    met.extend(answer.grants.into_iter().flat_map(|grant| [Some(grant.to), grant.by]).flatten());
    met.sort();
    met.dedup();
    let named: Vec<&Actor> = met.iter().filter(|actor| actor.handle == *handle).collect();
    match named.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(unknown(handle, known.iter().chain(&met))),
        many => {
            let keys: Vec<String> = many.iter().map(|actor| short(actor.id)).collect();
            let message = format!("{} actors have the handle {handle}: {}", many.len(), keys.join(" "));
            Err(Failure::new("ambiguous", message))
        }
    }
}

fn unknown<'a>(handle: &Handle, known: impl Iterator<Item = &'a Actor>) -> Failure {
    let distance = |near: &Handle| strsim::damerau_levenshtein(&near.to_string(), &handle.to_string());
    let mut near: Vec<&Handle> = known.map(|actor| &actor.handle).filter(|near| distance(near) <= 2).collect();
    near.sort();
    near.dedup();
    let near: Vec<String> = near.into_iter().map(Handle::to_string).collect();
    let meant = if near.is_empty() { String::new() } else { format!("did you mean {}?\n", near.join(", ")) };
    Failure::new("no_such_actor", format!("no actor {handle}"))
        .hint(format!("{meant}create it: holdfast actor new {handle}"))
}
