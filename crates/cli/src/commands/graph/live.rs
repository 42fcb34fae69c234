//! `holdfast graph --watch`: the tree drawn again whenever something happens; events alone where there is no terminal.

use super::super::canvas::{Canvas, QUIT_KEYS};
use super::{COLUMNS_DEFAULT, get, text};
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::show::{columns, command_line, end_with_reader, json_line, on_terminal, print, say, styled};
use crate::tell::Teller;
use holdfast_client::{CallError, Incoming, ready};
use holdfast_graph::Depth;
use holdfast_wire::Code;
use holdfast_wire::graphs::{ConnectionView, GraphNews, HowWatched, WatchGraphAnswer, WatchGraphParams};
use holdfast_wire::operations::op;
use jiff::tz::TimeZone;
use std::time::{Duration, Instant};

/// How long a question for more waits at the host before it is asked again.
const WAIT_MS: u64 = 20_000;
/// Where nothing happens, processor time and memory are shown anew this often.
const REFRESH: Duration = Duration::from_secs(2);
/// Drawn at most so often: a build starts hundreds of processes a second.
const DRAW_PAUSE: Duration = Duration::from_millis(100);

pub(super) fn watch(here: &Here, link: &mut Link<'_>, session: &str) -> Result<u8, Failure> {
    // The id: a name may go to another session while we watch.
    let session = link.get(session)?.id.to_string();
    if here.json || !on_terminal() { list(here, link, &session) } else { draw(here, link, &session) }
}

fn question(session: &str, after: Option<u64>) -> WatchGraphParams {
    WatchGraphParams { session: session.to_owned(), after, wait_ms: if after.is_some() { WAIT_MS } else { 0 } }
}

/// Events, one a line, until the session ends.
fn list(here: &Here, link: &mut Link<'_>, session: &str) -> Result<u8, Failure> {
    end_with_reader();
    let clock = Teller::new(TimeZone::system());
    let mut after = None;
    loop {
        let answer = match link.call::<op::WatchGraph>(&question(session, after)) {
            // Between two questions.
            Err(failure) if failure.is("ended") && after.is_some() => return Ok(0),
            answer => answer?,
        };
        if answer.lost {
            lost(here)?;
        }
        for event in &answer.events {
            let shown = if here.json {
                json_line(event)?
            } else {
                format!("{}  {}", clock.local(event.at_ms).strftime("%H:%M:%S"), line(&event.what))
            };
            print(format!("{shown}\n"))?;
        }
        if after.is_none() {
            let how = serde_json::to_value(answer.how).unwrap_or_default();
            if here.json {
                print(format!("{}\n", serde_json::json!({ "watching": how })))?;
            } else {
                say(match answer.how {
                    HowWatched::Connector => "watching kernel events",
                    HowWatched::Polling => "polling: short-lived processes are missed",
                });
            }
        }
        if answer.end {
            return Ok(0);
        }
        after = Some(answer.to);
    }
}

fn lost(here: &Here) -> Result<(), Failure> {
    if here.json {
        return print("{\"lost\":true}\n");
    }
    say("some events were lost");
    Ok(())
}

fn line(news: &GraphNews) -> String {
    let connection = |there: &ConnectionView| format!("{} -> {}", there.local, there.remote);
    match news {
        GraphNews::Fork { pid, parent } => format!("fork {pid} by {parent}"),
        GraphNews::Exec { pid, argv } if argv.is_empty() => format!("exec {pid}"),
        GraphNews::Exec { pid, argv } => format!("exec {pid} {}", command_line(argv)),
        GraphNews::Exit { pid, signal: Some(signal), .. } => format!("exit {pid} by signal {signal}"),
        GraphNews::Exit { pid, code: Some(code), .. } => format!("exit {pid} with {code}"),
        GraphNews::Exit { pid, code: None, signal: None } => format!("exit {pid}"),
        GraphNews::Listen { port } => format!("listen {}", port.address),
        GraphNews::NotListening { port } => format!("no longer listens {}", port.address),
        GraphNews::Connect { connection: there } => format!("connect {}", connection(there)),
        GraphNews::Closed { connection: there } => format!("closed {}", connection(there)),
    }
}

/// What ended a wait.
enum Woken {
    Quit,
    News(Box<WatchGraphAnswer>),
    Time,
}

fn draw(here: &Here, link: &mut Link<'_>, session: &str) -> Result<u8, Failure> {
    // A connection of its own for the question that waits: its answer may come in the middle of another.
    let mut waits = here.link()?;
    let mut after = waits.call::<op::WatchGraph>(&question(session, None))?.to;
    let mut shown = tree(link, session)?;
    let canvas = Canvas::new()?;
    let mut asked = None;
    let mut drawn = Instant::now();
    while let Some(text) = &shown {
        canvas.draw(text)?;
        match wait(&mut waits, session, after, &mut asked) {
            Ok(Woken::Quit) => break,
            Ok(Woken::News(answer)) if answer.end => break,
            Ok(Woken::News(answer)) => {
                after = answer.to;
                std::thread::sleep(DRAW_PAUSE.saturating_sub(drawn.elapsed()));
            }
            Ok(Woken::Time) => {}
            Err(CallError::Broken(error)) => {
                waits.mend(error)?;
                asked = None;
            }
            Err(CallError::Fault(fault)) if fault.code == Code::Ended => break,
            Err(error) => return Err(error.into()),
        }
        shown = tree(link, session)?;
        drawn = Instant::now();
    }
    Ok(0)
}

/// The tree as it is now; none: the session has ended.
fn tree(link: &mut Link<'_>, session: &str) -> Result<Option<String>, Failure> {
    match get(link, session, Depth::Full) {
        Ok(graph) => Ok(Some(text(&graph, columns().unwrap_or(COLUMNS_DEFAULT), styled()))),
        Err(failure) if failure.is("ended") => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Waits for a key, for news, or until it is time to look again.
fn wait(link: &mut Link<'_>, session: &str, after: u64, asked: &mut Option<u64>) -> Result<Woken, CallError> {
    let connection = link.connection();
    let id = match *asked {
        Some(id) => id,
        None => *asked.insert(connection.ask::<op::WatchGraph>(&question(session, Some(after)), &[])?),
    };
    let watched = [rustix::stdio::stdin(), connection.descriptor()];
    let [keys, host] = ready(watched, Some(REFRESH)).map_err(CallError::Broken)?;
    if keys {
        let mut typed = [0; 64];
        match rustix::io::read(rustix::stdio::stdin(), &mut typed) {
            // The terminal is gone.
            Ok(0) | Err(_) => return Ok(Woken::Quit),
            Ok(count) if typed[..count].iter().any(|key| QUIT_KEYS.contains(key)) => return Ok(Woken::Quit),
            Ok(_) => {}
        }
    }
    if !host {
        return Ok(Woken::Time);
    }
    for incoming in link.connection().receive_ready()? {
        if let Incoming::Answer { id: answered, result, .. } = incoming
            && answered == id
        {
            *asked = None;
            let answer = serde_json::from_value(result?).map_err(|e| CallError::Nonsense(e.to_string()))?;
            return Ok(Woken::News(Box::new(answer)));
        }
    }
    Ok(Woken::Time)
}
