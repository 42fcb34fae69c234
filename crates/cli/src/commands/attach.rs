//! `holdfast`, `holdfast attach`: a person's terminal goes into a session.

use super::new;
use crate::args::{AttachArgs, NewArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{command_line, on_terminal, print, print_json, say};
use holdfast_client::{AttachEnd, AttachOptions};
use holdfast_types::SessionName;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, SessionView};
use std::io::Write;

/// The session of a bare `holdfast`.
const MAIN: &str = "main";

/// `holdfast attach`.
pub fn attach(here: &Here, args: &AttachArgs) -> Result<u8, Failure> {
    if !args.nested {
        refuse_nested("attach")?;
    }
    need_terminal("attach")?;
    let mut link = here.link()?;
    let session = match &args.session {
        None => choose(&mut link)?,
        Some(wanted) if args.create => match wanted.parse::<SessionName>() {
            Ok(name) => ensure(here, &mut link, name)?.0,
            // An id: it names a session that is there already, or none.
            Err(error) => link.get(wanted).map_err(|_| Failure::from_error("bad_request", &error))?,
        },
        Some(wanted) => begins_with(&mut link, wanted)?,
    };
    go_in(here, link, &session.id.to_string(), session.name.as_str(), args.read_only)
}

/// The session of this name or id, or the only live one whose name begins so.
fn begins_with(link: &mut Link<'_>, wanted: &str) -> Result<SessionView, Failure> {
    let unknown = match link.get(wanted) {
        Err(failure) if failure.is("not_found") => failure,
        other => return other,
    };
    let mut fits = live(link)?;
    fits.retain(|session| session.name.as_str().starts_with(wanted));
    match fits.len() {
        0 => Err(unknown),
        1 => Ok(fits.remove(0)),
        _ => {
            let names: Vec<&str> = fits.iter().map(|session| session.name.as_str()).collect();
            Err(Failure::new("ambiguous", format!("several sessions begin with {wanted:?}: {}", names.join(", "))))
        }
    }
}

/// The only session there is, or the one that the person chooses.
fn choose(link: &mut Link<'_>) -> Result<SessionView, Failure> {
    let mut all = live(link)?;
    match all.len() {
        0 => return Err(Failure::new("not_found", "no sessions").hint("start one with: holdfast new")),
        1 => return Ok(all.remove(0)),
        _ => {}
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for (at, session) in all.iter().enumerate() {
        say_plain(&format!("{:>3}  {:<16} {}", at + 1, session.name, command_line(&session.command)));
    }
    let mut line = String::new();
    say_part("attach to which (number or name)? ");
    std::io::stdin().read_line(&mut line).map_err(|error| Failure::io("cannot read the answer", error))?;
    let wanted = line.trim();
    let by_number = wanted.parse::<usize>().ok().filter(|at| (1..=all.len()).contains(at)).map(|at| at - 1);
    match by_number {
        _ if wanted.is_empty() => Err(Failure::new("not_found", "no session was chosen")),
        Some(at) => Ok(all.remove(at)),
        None => begins_with(link, wanted),
    }
}

fn live(link: &mut Link<'_>) -> Result<Vec<SessionView>, Failure> {
    let mut all = link.call::<op::List>(&ListParams { all: false })?;
    all.retain(|session| session.life == Life::Running);
    Ok(all)
}

fn say_plain(line: &str) {
    say_part(&format!("{line}\n"));
}

/// On standard error, where a question belongs.
fn say_part(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// `holdfast` without a command: into the session `main`, or its whereabouts where there is no terminal.
pub fn main_session(here: &Here) -> Result<u8, Failure> {
    let terminal = on_terminal() && !here.json;
    if terminal {
        refuse_nested("attach")?;
    }
    let mut link = here.link()?;
    let name: SessionName = MAIN.parse().expect("`main` is a name");
    let (session, started) = ensure(here, &mut link, name)?;
    if terminal {
        return go_in(here, link, &session.id.to_string(), session.name.as_str(), false);
    }
    if here.json {
        print_json(&session)?;
        return Ok(0);
    }
    let (name, id) = (&session.name, session.id);
    let found =
        if started { format!("started session {name} ({id})") } else { format!("session {name} ({id}) is running") };
    print(format!(
        "{found}\n  attach  holdfast attach {name}\n  look    holdfast screen {name}\n  \
         type    holdfast send {name} --enter 'ls'\n",
    ))?;
    Ok(0)
}

/// Attaches until the person detaches or the session ends; `name` is what the person calls it.
pub fn go_in(here: &Here, link: Link<'_>, session: &str, name: &str, read_only: bool) -> Result<u8, Failure> {
    let config = here.config()?;
    let options = AttachOptions {
        session: session.to_owned(),
        read_only,
        chord: config.chord,
        detach_key: config.detach_key,
        history: config.attach_history,
        route: here.route()?,
        who: here.who()?.clone(),
    };
    let name = here.called(name);
    match holdfast_client::attach(link.into_connection(), &options)? {
        AttachEnd::Detached => {
            say(&format!("detached; to come back: holdfast attach {name}"));
            Ok(0)
        }
        AttachEnd::Ended(exit) => {
            say(&format!("session {name}: {exit}"));
            Ok(exit.as_status())
        }
        // The same as detaching, but the terminal is gone: there is nothing to print to.
        AttachEnd::HungUp => Ok(0),
    }
}

/// A program inside a session must not move the person's terminal by accident.
pub fn refuse_nested(what: &str) -> Result<(), Failure> {
    let Some(id) = std::env::var_os("HOLDFAST_SESSION").filter(|_| crate::who::is_inside()) else { return Ok(()) };
    let name = std::env::var_os("HOLDFAST_SESSION_NAME").filter(|name| !name.is_empty()).unwrap_or(id);
    let name = name.to_string_lossy();
    let message = format!("cannot {what}: this terminal is inside session {name}");
    Err(Failure::new("nested", message).hint("detach first; or start a session without attaching: holdfast new -d"))
}

/// Said before anything is started.
pub fn need_terminal(what: &str) -> Result<(), Failure> {
    if on_terminal() {
        return Ok(());
    }
    Err(Failure::new("no_terminal", format!("{what} needs a terminal on standard input and output")))
}

/// The live session of that name, and whether it was started just now.
fn ensure(here: &Here, link: &mut Link<'_>, name: SessionName) -> Result<(SessionView, bool), Failure> {
    let live = |link: &mut Link<'_>| -> Result<Option<SessionView>, Failure> {
        let all = link.call::<op::List>(&ListParams { all: false })?;
        Ok(all.into_iter().find(|s| s.name == name && s.life != Life::Ended))
    };
    if let Some(session) = live(link)? {
        return Ok((session, false));
    }
    let args = NewArgs { name: Some(name.clone()), ..NewArgs::default() };
    match new::start(here, link, &args) {
        Ok(session) => Ok((session, true)),
        // Somebody else started it in between, or the answer was lost on its way.
        Err(failure) => live(link)?.map(|session| (session, false)).ok_or(failure),
    }
}
