//! `holdfast state`: what a session is doing, in one line.

use crate::failure::Failure;
use crate::here::Here;
use crate::show::{now_ms, print, print_json, span, visible};
use holdfast_types::doing::{Blind, Kind};
use holdfast_wire::attention::Now;
use holdfast_wire::operations::op;
use holdfast_wire::params::SessionParams;

/// `holdfast state`.
pub fn state(here: &Here, session: &str) -> Result<u8, Failure> {
    let view = here.link()?.call::<op::State>(&SessionParams { session: session.to_owned() })?;
    if here.json {
        print_json(&view)?;
    } else {
        print(format!("{} · for {}\n", text(&view.now), span(now_ms().saturating_sub(view.since_ms))))?;
    }
    Ok(0)
}

/// A state as people read it.
pub fn text(now: &Now) -> String {
    match now {
        Now::IdlePrompt => "idle prompt".into(),
        Now::Running => "running".into(),
        Now::Waiting { kind, prompt } => {
            let kind = match kind {
                Kind::Line => "a line",
                Kind::Password => "a password",
                Kind::Repl => "input (repl)",
                Kind::Choice => "a choice",
            };
            let prompt = if prompt.is_empty() { String::new() } else { format!(": {}", visible(prompt)) };
            format!("waiting for {kind}{prompt}")
        }
        Now::FullScreen => "full-screen program".into(),
        Now::BlockedElsewhere => "blocked elsewhere".into(),
        Now::Stopped => "stopped".into(),
        Now::Frozen { by } => format!("frozen by {by}"),
        Now::Ended { exit } => format!("ended: {exit}"),
        Now::Unknown { why } => format!("unknown: {}", reason(*why)),
    }
}

fn reason(why: Blind) -> &'static str {
    match why {
        Blind::Nobody => "no running process has the terminal",
        Blind::Unreadable => "the process belongs to another user, or hides itself",
        Blind::Opaque => "cannot see what the process is waiting for",
        Blind::TooMany => "there are too many processes to inspect",
        Blind::Keeper => "the keeper does not answer, or has a version that this host does not support",
        Blind::Damaged => "cannot read the session's files",
    }
}
