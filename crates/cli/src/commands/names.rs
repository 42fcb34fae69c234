//! What completions ask for: names of sessions, here and elsewhere, and of hosts. Where something is wrong they print nothing: a person who
//! pressed Tab is in the middle of a line.

use crate::everywhere::called;
use crate::failure::Failure;
use crate::here::Here;
use crate::hosts;
use crate::show::print;
use holdfast_client::{Identity, PROGRAM};
use holdfast_types::Home;
use holdfast_wire::operations::op;
use holdfast_wire::params::ListParams;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a person who pressed Tab waits for another machine.
const TAB: Duration = Duration::from_secs(2);

/// The names of live sessions, one a line, that what was typed can become: those of this host, and each host elsewhere with a slash; behind that
/// slash, those of that host.
pub fn sessions(here: &Here, begun: &str) -> Result<u8, Failure> {
    // Pressing Tab must not create a key.
    let Some(who) = here.who_if_there() else { return Ok(0) };
    let names = match begun.split_once('/') {
        Some((host, _)) => elsewhere(&here.home, host, who),
        None => {
            let hosts = hosts::load(&here.home).unwrap_or_default();
            let hosts = hosts.iter().map(|host| format!("{}/", host.name));
            names_here(&here.home, &who).into_iter().chain(hosts).collect()
        }
    };
    show(&names)
}

/// The names of hosts elsewhere, one a line.
pub fn hosts(here: &Here) -> Result<u8, Failure> {
    let hosts: Vec<String> = hosts::load(&here.home)?.into_iter().map(|host| host.name).collect();
    show(&hosts)
}

fn show(names: &[String]) -> Result<u8, Failure> {
    print(names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    Ok(0)
}

/// None where no host runs.
fn names_here(home: &Home, who: &Identity) -> Vec<String> {
    let listed = || holdfast_client::connect(home, who).ok()?.call::<op::List>(&ListParams { all: false }).ok();
    listed().unwrap_or_default().iter().map(|session| session.name.to_string()).collect()
}

/// None where the host does not run, does not know this actor yet, or does not answer at once.
fn elsewhere(home: &Home, name: &str, who: Identity) -> Vec<String> {
    let Ok(host) = hosts::find(home, name) else { return Vec::new() };
    let Ok(route) = host.route(home) else { return Vec::new() };
    // By ssh an actor would first have to be made known there; a relay says its handle.
    let known = host.actors.get(&who.actor().handle).map(|there| who.called(there.clone()));
    let Some(who) = known.or_else(|| host.key.is_some().then_some(who)) else { return Vec::new() };
    let (sender, answer) = channel();
    std::thread::spawn(move || {
        let mut connection = route.unattended().connect_if_running(&who, PROGRAM).ok()?;
        sender.send(connection.call::<op::List>(&ListParams { all: false }).ok()?).ok()
    });
    let sessions = answer.recv_timeout(TAB).unwrap_or_default();
    sessions.iter().map(|session| called(Some(name), session.name.as_str())).collect()
}
