//! `holdfast wait`: ends as the session's command did, or when something else has come.
//!
//! States and ports the host sees; text and silence are found here, in what the host sends: a pattern that is slow to search
//! for costs who asked for it, not the host.

mod output;

use crate::args::{Awaited, WaitArgs};
use crate::failure::{Failure, STATUS_TIMEOUT};
use crate::here::{Here, Link};
use crate::show::{now_ms, print, print_json, span};
use holdfast_client::CallError;
use holdfast_types::Exit;
use holdfast_wire::attention::Until;
use holdfast_wire::operations::op;
use holdfast_wire::params::{SessionView, WaitAnswer, WaitParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// When to give up.
type Deadline = Option<Instant>;

/// `holdfast wait`.
pub fn wait(here: &Here, args: &WaitArgs) -> Result<u8, Failure> {
    if args.from.is_some() && !matches!(args.what, Awaited::Text(_)) {
        return Err(Failure::new("usage", "--from needs --for text:REGEX").status(crate::failure::STATUS_USAGE));
    }
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout.ms)));
    let mut link = here.link()?;
    // The id: a name may go to another session while we wait.
    let session = link.get(&args.of.session)?;
    let came = match &args.what {
        Awaited::Exit => return exit(here, &mut link, &session, deadline),
        Awaited::Idle => at_host(&mut link, &session, deadline, Until::Idle)?,
        Awaited::Waiting => at_host(&mut link, &session, deadline, Until::Waiting)?,
        Awaited::Port(port) => at_host(&mut link, &session, deadline, Until::Port(*port))?,
        Awaited::Text(pattern) => output::text(&mut link, &session, deadline, pattern, args.from)?,
        Awaited::Quiet(time) => output::quiet(&mut link, &session, deadline, time.ms)?,
    };
    report(here, args, &session, came)
}

/// What came of waiting.
#[derive(Debug)]
pub enum Came {
    /// It is there: for programs, and for people.
    Yes(Value, String),
    /// The session ended first.
    Ended(Exit),
    /// The time is up.
    Late,
}

fn report(here: &Here, args: &WaitArgs, session: &SessionView, came: Came) -> Result<u8, Failure> {
    let what = &args.what;
    let (outcome, status) = match &came {
        Came::Yes(..) => ("came", 0),
        Came::Ended(_) => ("ended", 1),
        Came::Late => ("timeout", STATUS_TIMEOUT),
    };
    if here.json {
        let mut answer = json!({ "for": what.to_string(), "outcome": outcome });
        match &came {
            Came::Yes(seen, _) => answer["seen"] = seen.clone(),
            Came::Ended(exit) => answer["exit"] = json!(exit),
            Came::Late => {}
        }
        print_json(&answer)?;
        return Ok(status);
    }
    match came {
        Came::Yes(_, text) => {
            print(format!("{text}\n"))?;
            Ok(0)
        }
        Came::Ended(exit) => {
            Err(Failure::new("ended", format!("session {} ended first: {exit}", session.name)).status(status))
        }
        Came::Late => {
            Err(Failure::new("timeout", format!("timed out waiting for {what} in session {}", session.name))
                .status(status))
        }
    }
}

/// Asks the host until it has come, whatever happens to the host in between.
fn ask(link: &mut Link<'_>, session: &SessionView, deadline: Deadline, until: Until) -> Result<WaitAnswer, Failure> {
    loop {
        let timeout_ms = deadline.map(left_ms);
        let params = WaitParams { session: session.id.to_string(), timeout_ms, until };
        match link.once::<op::Wait>(&params, &[]) {
            Err(CallError::Broken(error)) => link.mend(error)?,
            Ok((WaitAnswer { exit: None, state: None, listener: None }, _)) if !is_over(deadline) => {}
            other => return Ok(other?.0),
        }
    }
}

fn at_host(link: &mut Link<'_>, session: &SessionView, deadline: Deadline, until: Until) -> Result<Came, Failure> {
    let answer = ask(link, session, deadline, until)?;
    Ok(match (answer.state, answer.listener, answer.exit) {
        (Some(state), _, _) => {
            let since = span(now_ms().saturating_sub(state.since_ms));
            Came::Yes(json!(state), format!("{} · for {since}", super::state::text(&state.now)))
        }
        (None, Some(listener), _) => {
            let text = format!("process {} listens on {}", listener.pid, listener.address);
            Came::Yes(json!(listener), text)
        }
        (None, None, Some(exit)) => Came::Ended(exit),
        (None, None, None) => Came::Late,
    })
}

fn exit(here: &Here, link: &mut Link<'_>, session: &SessionView, deadline: Deadline) -> Result<u8, Failure> {
    let answer = ask(link, session, deadline, Until::Exit)?;
    if here.json {
        print_json(&answer)?;
    }
    match answer.exit {
        Some(Exit::Lost) if !here.json => {
            let message = format!("session {} is lost: its command's exit status is unknown", session.name);
            Err(Failure::new("lost", message).status(Exit::Lost.as_status()))
        }
        Some(exit) => Ok(exit.as_status()),
        None if here.json => Ok(STATUS_TIMEOUT),
        None => {
            Err(Failure::new("timeout", format!("session {} is still running", session.name)).status(STATUS_TIMEOUT))
        }
    }
}

fn left_ms(at: Instant) -> u64 {
    at.saturating_duration_since(Instant::now()).as_millis() as u64
}

fn is_over(deadline: Deadline) -> bool {
    deadline.is_some_and(|at| Instant::now() >= at)
}
