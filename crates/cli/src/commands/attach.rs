//! `holdfast`, `holdfast attach`: a person's terminal goes into a session.

use super::ui::{self, Picked};
use super::{checkpoint, new, recover};
use crate::args::{AttachArgs, NewArgs};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{on_terminal, print, print_json, say};
use holdfast_client::{AttachEnd, AttachOptions, Connection, machine_name};
use holdfast_types::{Exit, SessionName};
use holdfast_wire::lives::Cause;
use holdfast_wire::operations::op;
use holdfast_wire::params::{Life, ListParams, SessionView};
use std::time::{Duration, Instant};

/// How long a session that was moved may take to run again, and how often it is looked for.
const ARRIVES: Duration = Duration::from_secs(60);
const ARRIVES_LOOK: Duration = Duration::from_millis(50);

/// The session of a bare `holdfast`.
const MAIN: &str = "main";

/// `holdfast attach`.
pub fn attach(here: &Here, args: &AttachArgs) -> Result<u8, Failure> {
    if !args.nested {
        refuse_nested("attach")?;
    }
    need_terminal("attach")?;
    let mut link = here.link_to_attach()?;
    let session = match &args.session {
        None => match choose(here, &mut link)? {
            Some(session) => session,
            None => return Ok(0),
        },
        Some(wanted) if args.create => match wanted.parse::<SessionName>() {
            Ok(name) => ensure(here, &mut link, name)?.0,
            // An id: it names a session that is there already, or none.
            Err(error) => link.get(wanted).map_err(|_| Failure::from_error("bad_request", &error))?,
        },
        Some(wanted) => begins_with(&mut link, wanted)?,
    };
    go_in(here, link, &session, args.read_only)
}

/// `holdfast ui`.
pub fn ui(here: &Here) -> Result<u8, Failure> {
    if here.json {
        return Err(Failure::new("no_terminal", "`ui` is for people").hint("for programs: holdfast ls --json"));
    }
    refuse_nested("open the picker")?;
    need_terminal("ui")?;
    match ui::pick(here, None)? {
        Picked::Session(session) => go_in(here, here.link_to_attach()?, &session, false),
        Picked::Nothing => Ok(0),
    }
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

/// The only session there is, or the one that the person chooses; none: it chose none.
fn choose(here: &Here, link: &mut Link<'_>) -> Result<Option<SessionView>, Failure> {
    let mut all = live(link)?;
    match all.len() {
        0 => Err(Failure::new("not_found", "no sessions").hint("start one with: holdfast new")),
        1 => Ok(Some(all.remove(0))),
        _ => match ui::pick(here, None)? {
            Picked::Session(session) => Ok(Some(*session)),
            Picked::Nothing => Ok(None),
        },
    }
}

fn live(link: &mut Link<'_>) -> Result<Vec<SessionView>, Failure> {
    let mut all = link.call::<op::List>(&ListParams { all: false })?;
    all.retain(|session| session.life == Life::Running);
    Ok(all)
}

/// `holdfast` without a command: into the session `main`, or its whereabouts where there is no terminal.
pub fn main_session(here: &Here) -> Result<u8, Failure> {
    let terminal = on_terminal() && !here.json;
    if terminal {
        refuse_nested("attach")?;
    }
    let mut link = here.link_to_attach()?;
    let name: SessionName = MAIN.parse().expect("`main` is a name");
    let (session, started) = ensure(here, &mut link, name)?;
    if terminal {
        return go_in(here, link, &session, false);
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

/// Attaches until the person detaches or the session ends; by way of others, if the person switches.
pub fn go_in(here: &Here, link: Link<'_>, session: &SessionView, read_only: bool) -> Result<u8, Failure> {
    let config = here.config()?;
    let mut session = session.clone();
    let (mut connection, mut over) = (link.into_connection(), false);
    // Where it lives now, once it was moved.
    let mut there: Option<Here> = None;
    loop {
        let at = there.as_ref().unwrap_or(here);
        if let Some((place, link, moved)) = follow(at, &session)? {
            (connection, session) = (link, moved);
            there = Some(place);
            continue;
        }
        let here = at;
        let name = here.called(session.name.as_str());
        let options = AttachOptions {
            session: session.id.to_string(),
            name: name.clone(),
            read_only,
            chord: config.chord,
            detach_key: config.detach_key,
            history: config.attach_history,
            greeting: config.greeting,
            title: config.title,
            status: config.status,
            over,
            terminals: here.home.terminals(),
            route: here.route()?,
            who: here.who()?.clone(),
        };
        match holdfast_client::attach(connection, &options)? {
            AttachEnd::Detached => {
                say(&format!("detached; to come back: holdfast attach {name}"));
                return Ok(0);
            }
            AttachEnd::Ended(Exit::Lost) if is_moved(here, &mut session) => over = true,
            AttachEnd::Ended(Exit::Lost) => {
                say(&format!("session {name} was lost; to give it another life: holdfast recover {name}"));
                return Ok(Exit::Lost.as_status());
            }
            AttachEnd::Ended(exit) => {
                say(&format!("session {name}: {exit}"));
                return Ok(exit.as_status());
            }
            // The same as detaching, but the terminal is gone: there is nothing to print to.
            AttachEnd::HungUp => return Ok(0),
            AttachEnd::Suspended => {
                say(&format!("suspended; to come back to {name}: fg"));
                suspend()?;
                over = false;
            }
            AttachEnd::Switches => {
                if let Picked::Session(chosen) = ui::pick(here, Some(session.id))? {
                    session = *chosen;
                }
                over = true;
            }
        }
        connection = here.connect()?;
    }
}

/// Whether a session that is gone here was moved; as it is now.
fn is_moved(here: &Here, session: &mut SessionView) -> bool {
    let seen = here.link().and_then(|mut link| link.get(&session.id.to_string()));
    match seen {
        Ok(seen) if seen.moved.is_some() => {
            *session = seen;
            true
        }
        Ok(_) | Err(_) => false,
    }
}

/// Where a session that was moved goes on: its host, a connection, and the session there. Only to hosts that this person added, and only
/// to the same session in a later life.
fn follow(here: &Here, session: &SessionView) -> Result<Option<(Here, Connection, SessionView)>, Failure> {
    let Some(moved) = &session.moved else { return Ok(None) };
    let name = here.called(session.name.as_str());
    let host = if moved.host == machine_name() && here.is_elsewhere() { "here" } else { moved.host.as_str() };
    let there = here.at(host).map_err(|failure| {
        let message = format!("session {name} was moved to {}", moved.host);
        Failure::new("moved", message).hint(format!(
            "{}; then: holdfast attach {}/{}",
            failure.message(),
            moved.host,
            session.name
        ))
    })?;
    say(&format!("session {name} was moved to {}; going on there", moved.host));
    let until = Instant::now() + ARRIVES;
    loop {
        let mut link = there.link()?;
        match link.get(&session.id.to_string()) {
            Ok(found)
                if found.id == session.id && found.life == Life::Running && found.incarnation > session.incarnation =>
            {
                let connection = link.into_connection();
                return Ok(Some((there, connection, found)));
            }
            Ok(found) if found.id == session.id && found.moved.is_some() => {
                let connection = link.into_connection();
                return Ok(Some((there, connection, found)));
            }
            _ if Instant::now() < until => std::thread::sleep(ARRIVES_LOOK),
            _ => {
                let message = format!("session {name} was moved to {}, and does not run there yet", moved.host);
                return Err(Failure::new("moved", message)
                    .hint(format!("to finish the move: holdfast move {name} {}", moved.host)));
            }
        }
    }
}

/// Stops this process and those it was started with, as Ctrl-Z does. Returns when it goes on, or at once where no shell would take
/// the terminal.
fn suspend() -> Result<(), Failure> {
    use rustix::process::{Signal, kill_current_process_group};
    kill_current_process_group(Signal::TSTP).map_err(|error| Failure::io("cannot suspend", std::io::Error::from(error)))
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
        if session.life == Life::Lost {
            // It was stopped so that its processes can come back.
            if session.lost.as_ref().is_some_and(|lost| lost.cause == Cause::Checkpoint) {
                return checkpoint::begin(link, &session, None).map(|answer| (answer.session, true));
            }
            // What a person wants who comes back after a reboot: the same session, and nothing that ran is run again.
            return recover::begin(here, link, &session, false).map(|answer| (answer.session, true));
        }
        return Ok((session, false));
    }
    let args = NewArgs { name: Some(name.clone()), ..NewArgs::default() };
    match new::start(here, link, &args) {
        Ok(session) => Ok((session, true)),
        // Somebody else started it in between, or the answer was lost on its way.
        Err(failure) => live(link)?.map(|session| (session, false)).ok_or(failure),
    }
}
