//! `holdfast watch`: what happens in sessions, as it happens.

mod everywhere;

use super::graph::kind;
use super::state;
use crate::args::WatchArgs;
use crate::failure::Failure;
use crate::here::Here;
use crate::show::{command_line, end_with_reader, json_line, left, print, say, visible};
use crate::tell::Teller;
use holdfast_wire::attention::{Event, OpenPort, WatchParams, What};
use holdfast_wire::operations::op;
use jiff::tz::TimeZone;

/// How long a question for more waits at the host before it is asked again.
const WAIT_MS: u64 = 20_000;

/// `holdfast watch`.
pub fn watch(here: &Here, args: &WatchArgs) -> Result<u8, Failure> {
    if args.all_hosts {
        return everywhere::watch(here);
    }
    let mut link = here.link()?;
    // The id: a name may go to another session while we watch.
    let session = match &args.session {
        Some(name) => Some(link.get(name)?.id.to_string()),
        None => None,
    };
    end_with_reader();
    let clock = Teller::new(TimeZone::system());
    let mut after = None;
    loop {
        let params =
            WatchParams { session: session.clone(), after, wait_ms: if after.is_some() { WAIT_MS } else { 0 } };
        let answer = link.call::<op::Watch>(&params)?;
        if answer.lost > 0 {
            lost(here, answer.lost)?;
        }
        for event in &answer.events {
            if here.json {
                print(json_line(event)? + "\n")?;
            } else {
                print(format!("{}  {}  {}\n", clock.local(event.at_ms).strftime("%H:%M:%S"), event.name, text(event)))?;
            }
            // One session's end is the end of what can happen there.
            if session.is_some() && matches!(event.what, What::Exit { .. }) {
                return Ok(0);
            }
        }
        if after.is_none()
            && let Some(session) = &session
        {
            let view = link.get(session)?;
            if let Some(exit) = view.exit {
                return Err(Failure::new("ended", format!("session {} has ended: {exit}", view.name)));
            }
        }
        after = Some(answer.to);
    }
}

fn lost(here: &Here, count: u64) -> Result<(), Failure> {
    if here.json {
        return print(format!("{}\n", serde_json::json!({ "lost": count })));
    }
    say(&format!("{count} events were dropped"));
    Ok(())
}

fn text(event: &Event) -> String {
    match &event.what {
        What::Started { by } => format!("started by {by}"),
        What::State { now, .. } => state::text(now),
        What::Exit { exit } => format!("ended: {exit}"),
        What::Recovered { incarnation, checkpoint: None, .. } => format!("recovered: life {incarnation}"),
        What::Recovered { incarnation, checkpoint: Some(checkpoint), cut } => {
            let cut = if cut.is_empty() { String::new() } else { format!("; cut: {}", cut.join(", ")) };
            format!("restored from {checkpoint}: life {incarnation}{cut}")
        }
        What::Turn { holder: Some(holder) } => format!("{holder} has the turn"),
        What::Turn { holder: None } => "the turn is free".into(),
        What::TurnRequested { by } => format!("{by} asks for the turn"),
        What::Asked { by, text, options, question } => {
            let options = if options.is_empty() { String::new() } else { format!(" [{}]", options.join("/")) };
            format!("{by} asks: {} ({question})", visible(&format!("{text}{options}")))
        }
        What::Answered { by, text, question, .. } => format!("{by} answers: {} ({question})", visible(text)),
        What::QuestionClosed { question, state, by: Some(by) } => format!("{question} {} by {by}", state.word()),
        What::QuestionClosed { question, state, by: None } => format!("{question} {}", state.word()),
        What::Held { approval, by, command, rule, why } => {
            format!("{by} needs approval to run: {} · {rule}: {} ({approval})", visible(command), visible(why))
        }
        What::HeldClosed { approval, state, by, reason } => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {}", visible(reason)));
            format!("{approval} {}{by}{reason}", state.word())
        }
        What::ReapSoon { ends_ms, why } => {
            let left = left(*ends_ms, event.at_ms);
            format!("is ended in {left}: {} (to keep it: holdfast keep {})", why.words(), event.name)
        }
        What::ReapAverted => "is not ended: it was used or kept".into(),
        What::Reaped { why } => format!("reaped: {}", why.words()),
        What::Renamed { by, from } => format!("{by} renamed it, from {from}"),
        What::RunStarted { run, by, command, .. } => format!("{by} runs: {} ({run})", visible(command)),
        What::RunEnded { run, by, command, state, exit_code, .. } => {
            let status = exit_code.map_or_else(String::new, |code| format!(" with status {code}"));
            format!("run of {by} {}{status}: {} ({run})", state.word(), visible(command))
        }
        What::Listen { port } => listens(port),
        What::NotListening { port } => format!("no longer listens on {} {}", kind(port.kind), port.address),
        What::Attached { by, client } => format!("{by} attached (client {client})"),
        What::Detached { by: Some(by), client } => format!("{by} detached (client {client})"),
        What::Detached { by: None, client } => format!("client {client} detached"),
    }
}

fn listens(port: &OpenPort) -> String {
    let by = port.by.as_ref().map_or_else(String::new, |by| format!(" · started by {by}"));
    let pid = port.pid.map_or_else(String::new, |pid| format!(" {pid}"));
    format!("process{pid} listens on {} {}: {}{by}", kind(port.kind), port.address, command_line(&port.argv))
}
