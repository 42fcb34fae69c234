//! `holdfast invite`, `invites`, `accept` and `devices`: access for other machines, through a relay.

use crate::args::{AcceptArgs, DevicesCommand, InviteArgs, InvitesCommand};
use crate::commands::qr::code;
use crate::failure::Failure;
use crate::here::Here;
use crate::hosts::{self, Elsewhere};
use crate::show::{columns, deadline, now_ms, print, print_json, table};
use holdfast_client::{ConnectError, Identity, InviteLink, Relayed, is_host_name, machine_name};
use holdfast_types::{FOREVER, Handle, Rights, SessionId, TimeMs};
use holdfast_wire::devices::{DeviceParams, DeviceView, InviteNewParams, InviteParams, InviteState, InviteView};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ListParams, Nothing};
use rustix::termios::isatty;
use serde_json::json;
use std::collections::HashMap;
use std::io::Read;

/// What a link takes, and more.
const LINK_BYTES_MAX: u64 = 4096;

/// `holdfast invite`.
pub fn invite(here: &Here, args: &InviteArgs) -> Result<u8, Failure> {
    here.must_not_be_watched("an invite", "holdfast invite … > FILE")?;
    let params = InviteNewParams {
        session: args.session.clone(),
        can: args.can,
        for_ms: args.span.map(|span| span.ms),
        uses: args.uses,
        access_ms: args.access.map(|span| span.ms),
    };
    let made = here.link()?.call::<op::InviteNew>(&params)?;
    if here.json {
        print_json(&made)?;
        return Ok(0);
    }
    if isatty(rustix::stdio::stdout()) {
        print(code(&made.link)?)?;
    }
    print(format!("{}\n", made.link))?;
    let view = &made.invite;
    let what =
        args.session.as_deref().map_or_else(|| "all sessions of this host".into(), |name| format!("session {name}"));
    let times = if view.uses == 1 { "once".into() } else { format!("{} times", view.uses) };
    let can = if view.can == Rights::ALL { "everything you may".into() } else { view.can.to_string() };
    eprintln!(
        "{}: {what}, may do: {can}; can be accepted {times}, until {}\nwhoever has the link gets in: open it in a browser, or run `holdfast accept -` there; revoke it: holdfast invites revoke {}",
        view.id,
        deadline(view.until_ms, now_ms()),
        view.id,
    );
    Ok(0)
}

/// Names of sessions that can be seen.
fn names(here: &Here) -> Result<HashMap<SessionId, String>, Failure> {
    let all = here.link()?.call::<op::List>(&ListParams { all: true })?;
    Ok(all.into_iter().map(|session| (session.id, session.name.to_string())).collect())
}

fn what(session: Option<SessionId>, names: &HashMap<SessionId, String>) -> String {
    session.map_or_else(|| "(host)".into(), |id| names.get(&id).cloned().unwrap_or_else(|| id.to_string()))
}

fn can(rights: Rights) -> String {
    if rights == Rights::ALL { "all".into() } else { rights.to_string() }
}

fn until(end: Option<TimeMs>) -> String {
    // A host of an earlier version says the last moment there is.
    end.filter(|end| *end != FOREVER).map_or_else(|| "no end".into(), |end| deadline(end, now_ms()))
}

/// `holdfast invites`.
pub fn invites(here: &Here, command: &InvitesCommand) -> Result<u8, Failure> {
    match command {
        InvitesCommand::Ls => list_invites(here),
        InvitesCommand::Revoke(args) => {
            let gone = here.link()?.call::<op::InviteRevoke>(&InviteParams { invite: args.invite.clone() })?;
            if here.json {
                print_json(&gone)?;
            } else {
                print(format!(
                    "revoked {}; machines that accepted it keep their access: holdfast devices ls\n",
                    gone.id
                ))?;
            }
            Ok(0)
        }
    }
}

fn list_invites(here: &Here) -> Result<u8, Failure> {
    let all = here.link()?.call::<op::InviteList>(&Nothing {})?;
    if here.json {
        print_json(&all)?;
        return Ok(0);
    }
    if all.is_empty() {
        print("no invites; make one: holdfast invite SESSION\n")?;
        return Ok(0);
    }
    let names = names(here)?;
    let head = ["ID", "STATE", "SESSION", "CAN", "USED", "UNTIL", "MADE BY"].map(str::to_owned).to_vec();
    let row = |view: &InviteView| {
        let state = match view.state {
            InviteState::Open => "open",
            InviteState::Used => "used",
            InviteState::Expired => "expired",
            InviteState::Revoked => "revoked",
        };
        vec![
            view.id.clone(),
            state.into(),
            what(view.session, &names),
            can(view.can),
            format!("{} of {}", view.used, view.uses),
            deadline(view.until_ms, now_ms()),
            view.by.to_string(),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(row)).collect();
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

/// `holdfast devices`.
pub fn devices(here: &Here, command: &DevicesCommand) -> Result<u8, Failure> {
    match command {
        DevicesCommand::Ls => list_devices(here),
        DevicesCommand::Revoke(args) => {
            let gone = here.link()?.call::<op::DeviceRevoke>(&DeviceParams { device: args.device.clone() })?;
            if here.json {
                print_json(&gone)?;
            } else {
                print(format!("revoked {}, which was {}'s\n", gone.id, gone.actor.handle))?;
            }
            Ok(0)
        }
    }
}

fn list_devices(here: &Here) -> Result<u8, Failure> {
    let all = here.link()?.call::<op::DeviceList>(&Nothing {})?;
    if here.json {
        print_json(&all)?;
        return Ok(0);
    }
    if all.is_empty() {
        print("no devices; invite one: holdfast invite --host-wide\n")?;
        return Ok(0);
    }
    let names = names(here)?;
    let head = ["ID", "ACTOR", "SESSION", "CAN", "UNTIL", "CONNECTED", "INVITED BY"].map(str::to_owned).to_vec();
    let row = |view: &DeviceView| {
        let connected = if view.connections == 0 { "-".into() } else { view.connections.to_string() };
        vec![
            view.id.clone(),
            view.actor.handle.to_string(),
            what(view.session, &names),
            can(view.can),
            until(view.until_ms),
            connected,
            view.by.to_string(),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(row)).collect();
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

/// `holdfast accept`.
pub fn accept(here: &Here, args: &AcceptArgs) -> Result<u8, Failure> {
    let mut text = args.link.clone();
    if text == "-" {
        text.clear();
        let read = std::io::stdin().take(LINK_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| Failure::io("cannot read the link", error))?;
    }
    let link = InviteLink::read(&text).map_err(|error| {
        Failure::new("bad_request", error.to_string()).hint("copy the whole link, with everything behind `#`")
    })?;
    let wanted = args.name.clone().unwrap_or_else(|| link.name.clone());
    let all = hosts::load(&here.home)?;
    let known = all.iter().find(|host| host.key == Some(link.host));
    let name = match known {
        Some(host) => host.name.clone(),
        None => free_name(&all, &wanted)?,
    };
    let relayed = Relayed::new(&name, &link.relays, link.host, here.home.run.clone())
        .map_err(|error| Failure::from_error("bad_request", &error))?;
    let who = here.who()?;
    let accepted = relayed.accept(&link, &asking(who), holdfast_client::PROGRAM).map_err(|error| {
        let refused = matches!(error, ConnectError::Hello(_));
        let failure = Failure::from(error);
        if refused { failure.hint("ask for a new one; on the other machine: holdfast invite") } else { failure }
    })?;
    let here_as = who.actor().handle.clone();
    hosts::change(&here.home, |hosts| {
        let relays = if accepted.relays.is_empty() { link.relays.clone() } else { accepted.relays.clone() };
        match hosts.iter_mut().find(|host| host.key == Some(link.host)) {
            Some(host) => {
                host.relays = relays;
                host.actors.insert(here_as, accepted.actor.handle.clone());
            }
            None => {
                let mut host = Elsewhere::through_relays(&name, relays, link.host, now_ms());
                host.actors.insert(here_as, accepted.actor.handle.clone());
                hosts.push(host);
            }
        }
        Ok(())
    })?;
    let handle = &accepted.actor.handle;
    if here.json {
        print_json(&json!({"host": name, "actor": handle, "session": accepted.session, "can": accepted.can}))?;
        return Ok(0);
    }
    match &accepted.session {
        Some(session) => print(format!(
            "you are {handle} on {name}, and may do in session {session}: {}\n  attach  holdfast attach {name}/{session}\n",
            can(accepted.can)
        ))?,
        None => print(format!(
            "added {name}; you are {handle} there\n  list    holdfast --host {name} ls\n  start   holdfast --host {name} new\n  attach  holdfast attach {name}/SESSION\n"
        ))?,
    }
    Ok(0)
}

/// An actor with the handle it would like there: its own, and the machine's name.
fn asking(who: &Identity) -> Identity {
    let here = &who.actor().handle;
    who.called(Handle::near(here.class(), &format!("{}.{}", here.name(), machine_name())))
}

/// A name for a new host: what it calls itself, or with a number where that is taken.
fn free_name(all: &[Elsewhere], wanted: &str) -> Result<String, Failure> {
    let wanted = if is_host_name(wanted) { wanted } else { "host" };
    let is_free = |name: &String| all.iter().all(|host| host.name != *name);
    let more = (2..=99).map(|n| format!("{wanted}-{n}"));
    std::iter::once(wanted.to_owned()).chain(more).find(is_free).ok_or_else(|| {
        Failure::new("name_taken", format!("a host is already called {wanted}"))
            .hint("choose another name: --name HOST")
    })
}
