//! `holdfast`, `holdfast attach`: a person's terminal goes into a session.

use super::new;
use crate::args::{AttachArgs, NewArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{on_terminal, print, print_json, say};
use holdfast_client::{AttachEnd, AttachOptions};
use holdfast_types::SessionName;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, SessionView};

/// The session of a bare `holdfast`.
const MAIN: &str = "main";

/// `holdfast attach`.
pub fn attach(here: &Here, args: &AttachArgs) -> Result<u8, Failure> {
    if !args.nested {
        refuse_nested("attach")?;
    }
    need_terminal("attach")?;
    let mut link = here.link()?;
    if args.create {
        match args.of.session.parse::<SessionName>() {
            Ok(name) => drop(ensure(here, &mut link, name)?),
            // An id: it names a session that is there already, or none.
            Err(_) if link.get(&args.of.session).is_ok() => {}
            Err(error) => return Err(Failure::from_error("bad_request", &error)),
        }
    }
    let name = &args.of.session;
    go_in(here, link, name, name, args.read_only)
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
        home: here.home.clone(),
        program: here.program.clone(),
        who: here.who()?.clone(),
    };
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
