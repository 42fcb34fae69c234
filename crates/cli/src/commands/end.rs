//! `holdfast end`: HUP to the whole tree, KILL after the grace.

use crate::args::EndArgs;
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::{Here, Link};
use crate::show::{print, print_json, state, visible};
use holdfast_authority::Ask;
use holdfast_client::{CallError, Incoming};
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, Life, ListParams, SessionView};
use holdfast_wire::{Code, Fault};
use serde_json::json;
use std::collections::HashMap;
use std::io;

/// Requests under way at once: enough that graces run side by side, few enough that neither side's socket fills up
/// while the other does not read.
const ASKED_MAX: usize = 256;

/// `holdfast end`.
pub fn end(here: &Here, args: &EndArgs) -> Result<u8, Failure> {
    if args.session.is_none() && !args.all {
        return Err(Failure::new("usage", "which session?")
            .hint("one: holdfast end NAME\nevery session: holdfast end --all")
            .status(STATUS_USAGE));
    }
    let grace_ms = match args.grace {
        Some(grace) => grace.ms,
        None => here.config()?.grace_ms,
    };
    let grace_ms = u32::try_from(grace_ms).unwrap_or(u32::MAX);
    let mut link = here.link()?;
    match &args.session {
        Some(session) => end_one(here, &mut link, session, grace_ms),
        None => end_all(here, &mut link, grace_ms),
    }
}

fn end_one(here: &Here, link: &mut Link<'_>, session: &str, grace_ms: u32) -> Result<u8, Failure> {
    let session = link.get(session)?;
    let id = session.id.to_string();
    let params = |proof| EndParams { session: id.clone(), grace_ms, proof };
    let view = match link.act::<op::End>(&session, &Ask::End { grace_ms }, params) {
        Err(refused) if refused.was_done(Code::Ended) => link.get(&id)?,
        other => other?,
    };
    if here.json {
        print_json(&view)?;
    } else {
        print(line(&view))?;
    }
    Ok(0)
}

fn end_all(here: &Here, link: &mut Link<'_>, grace_ms: u32) -> Result<u8, Failure> {
    let mut left = link.call::<op::List>(&ListParams { all: false })?;
    if left.is_empty() && !here.json {
        print("no sessions to end\n")?;
    }
    let mut documents = Vec::new();
    let mut status = 0;
    while !left.is_empty() {
        let ended = |session: SessionView, result: Result<SessionView, Fault>| {
            let (line, document) = match result {
                Ok(view) => (line(&view), json!(view)),
                Err(fault) => {
                    status = 1;
                    let line = format!("{}: not ended: {}\n", session.name, visible(&fault.message));
                    (line, json!({"id": session.id, "name": session.name, "error": fault}))
                }
            };
            documents.push(document);
            if here.json { Ok(()) } else { print(line) }
        };
        if let Err(error) = end_some(link, &mut left, grace_ms, ended)? {
            link.mend(error)?;
        }
    }
    if here.json {
        print_json(&documents)?;
    }
    Ok(status)
}

/// Ends the first of those that are left and takes them from the list as they are answered for; gives the error of a
/// connection that broke.
fn end_some(
    link: &mut Link<'_>,
    left: &mut Vec<SessionView>,
    grace_ms: u32,
    mut ended: impl FnMut(SessionView, Result<SessionView, Fault>) -> Result<(), Failure>,
) -> Result<Result<(), io::Error>, Failure> {
    let mut asked = HashMap::new();
    for session in left.iter().take(ASKED_MAX) {
        let proof = Some(link.who()?.prove(session.id, &Ask::End { grace_ms }));
        let params = EndParams { session: session.id.to_string(), grace_ms, proof };
        match link.connection().ask::<op::End>(&params, &[]) {
            Ok(request) => asked.insert(request, session.id),
            Err(CallError::Broken(error)) => return Ok(Err(error)),
            Err(error) => return Err(error.into()),
        };
    }
    while !asked.is_empty() {
        let (request, result) = match link.connection().receive() {
            Ok(Incoming::Answer { id, result, .. }) => (id, result),
            Ok(Incoming::Event { .. }) => continue,
            Err(CallError::Broken(error)) => return Ok(Err(error)),
            Err(error) => return Err(error.into()),
        };
        let Some(id) = asked.remove(&request) else { continue };
        let Some(at) = left.iter().position(|session| session.id == id) else { continue };
        let session = left.swap_remove(at);
        let result = match result {
            Ok(view) => Ok(serde_json::from_value(view).map_err(|e| CallError::Nonsense(e.to_string()))?),
            // It ended by itself, or by the host that went away.
            Err(fault) if fault.code == Code::Ended => Ok(SessionView { life: Life::Ended, ..session.clone() }),
            Err(fault) => Err(fault),
        };
        ended(session, result)?;
    }
    Ok(Ok(()))
}

fn line(session: &SessionView) -> String {
    format!("{}: {}\n", session.name, state(session))
}
