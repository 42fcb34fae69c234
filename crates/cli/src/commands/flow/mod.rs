//! `holdfast flow`: durable flows. Each command asks the flow service, which is started where it does not run.

mod code;
mod dev;
mod export;
mod service;
mod show;
mod worker;

pub use service::{in_background, put_down, serve, spawn, tend, wake};

use crate::args::{
    FlowAnswerArgs, FlowCancelArgs, FlowCheckArgs, FlowCommand, FlowRetryArgs, FlowRewindArgs, FlowSignalArgs,
    FlowStartArgs, FlowWatchArgs,
};
use crate::failure::{Failure, STATUS_TIMEOUT, STATUS_USAGE};
use crate::here::Here;
use crate::show::{print, print_json, say};
use holdfast_flow::State;
use holdfast_flows::protocol::{FlowAnswer, FlowView, Request, StartAnswer};
use holdfast_flows::{Client, ClientError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a watching command waits at the service before it asks again.
const WAIT_MS: u64 = 60_000;
/// Services that break one after the other before we give up: more is no crash but a fault that comes back each time.
const BREAKS_MAX: u32 = 30;
/// Pause after a break.
const BREAK_PAUSE: Duration = Duration::from_millis(50);

/// `holdfast flow`.
pub fn flow(here: &Here, command: &FlowCommand) -> Result<u8, Failure> {
    match command {
        FlowCommand::Start(args) => start(here, args),
        FlowCommand::Ls(args) => show::list(here, args.all),
        FlowCommand::Show(args) => show::show(here, &args.flow),
        FlowCommand::History(args) => show::history(here, args),
        FlowCommand::Watch(args) => watch(here, args),
        FlowCommand::Signal(args) => signal(here, args),
        FlowCommand::Answer(args) => answer(here, args),
        FlowCommand::Cancel(args) => cancel(here, args),
        FlowCommand::Retry(args) => retry(here, args),
        FlowCommand::Rewind(args) => rewind(here, args),
        FlowCommand::Worker(args) => code::worker(here, args),
        FlowCommand::Test(args) => worker::worker(here, &args.file, &["--test"]),
        FlowCommand::Dev(args) => dev::dev(here, args),
        FlowCommand::Export(args) => export::export(here, args),
        FlowCommand::Check(args) => check(here, args),
        FlowCommand::Status => service::status(here),
        FlowCommand::Stop => service::stop(here),
    }
}

/// Asks until there is an answer: every request may be asked twice.
fn ask<T: DeserializeOwned>(here: &Here, request: &Request) -> Result<T, Failure> {
    let mut breaks = 0;
    loop {
        let asked = connect(here)?.ask(request);
        match asked {
            Err(ClientError::Broken(_)) if breaks < BREAKS_MAX => {
                breaks += 1;
                std::thread::sleep(BREAK_PAUSE);
            }
            other => return Ok(other?),
        }
    }
}

fn connect(here: &Here) -> Result<Client, Failure> {
    here.make_state()?;
    Ok(Client::connect_or_start(&here.home, &here.program, here.who()?)?)
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        match error {
            ClientError::Trouble(trouble) => Failure::new(&trouble.code, trouble.message).hint(trouble.hint),
            other => Failure::from_error("flow_service", &other),
        }
    }
}

/// Text, or JSON, or nothing.
fn given(text: Option<&String>, data: Option<&String>) -> Result<Value, Failure> {
    match (text, data) {
        (Some(text), _) => Ok(Value::String(text.clone())),
        (None, Some(data)) => serde_json::from_str(data)
            .map_err(|error| Failure::new("usage", format!("invalid JSON in --data: {error}")).status(STATUS_USAGE)),
        (None, None) => Ok(Value::Null),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read(path).map_err(|e| Failure::io(format!("cannot read {}", path.display()), e))?;
    String::from_utf8(text)
        .map_err(|_| Failure::new("invalid_definition", format!("{} is not UTF-8 text", path.display())))
}

fn start(here: &Here, args: &FlowStartArgs) -> Result<u8, Failure> {
    let path = Path::new(&args.what);
    let is_file = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let kept = code::is_code(path).then(|| code::kept(here, path, args.flow.as_deref())).transpose()?;
    let (definition, name) = match &kept {
        Some(kept) => (None, Some(kept.name.clone())),
        None if is_file => (Some(read(path)?), None),
        None => (None, Some(args.what.clone())),
    };
    if !is_file && kept.is_none() && !holdfast_flow::is_id(&args.what) {
        let message = format!("{} is neither a file of flows nor the name of a flow", args.what);
        return Err(Failure::new("usage", message).status(STATUS_USAGE));
    }
    let cwd = args.cwd.clone().map_or_else(std::env::current_dir, std::path::absolute);
    let cwd = cwd.map_err(|e| Failure::io("cannot find the current directory", e))?;
    let input = given(args.input.as_ref(), args.data.as_ref())?;
    let cwd = Some(cwd.display().to_string());
    // With an id of its own, a start that is asked twice starts once.
    let flow = args.id.clone();
    let (code, hosted) = kept.map_or_else(Default::default, |kept| (kept.code, Some(kept.hosted)));
    let request = Request::Start { flow, definition, name, input, cwd, skip_timers: args.skip_timers, code, hosted };
    let answer: Result<StartAnswer, Failure> = match args.id {
        Some(_) => ask(here, &request),
        None => connect(here)?.ask(&request).map_err(Failure::from),
    };
    let answer = answer.map_err(|failure| match failure.is("invalid_definition") {
        true => {
            let message = format!("{}: {}", args.what, failure.message());
            failure.reworded(message)
        }
        false => failure,
    })?;
    if args.wait {
        return follow(here, &answer.flow.id, None, false);
    }
    if here.json {
        print_json(&answer)?;
        return Ok(0);
    }
    print(format!("{}\n", answer.flow.id))?;
    match answer.existing {
        true => say(&format!("{} was started before: {}", answer.flow.id, answer.flow.status)),
        false => say(&format!("started; see it with: holdfast flow show {}", answer.flow.id)),
    }
    Ok(0)
}

fn watch(here: &Here, args: &FlowWatchArgs) -> Result<u8, Failure> {
    let until = args.timeout.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout.ms)));
    follow(here, &args.of.flow, until, true)
}

/// Follows a flow to its end; prints its steps on the way, or only what it gave.
fn follow(here: &Here, flow: &str, until: Option<Instant>, steps: bool) -> Result<u8, Failure> {
    let (mut history, mut generation) = (Vec::new(), None);
    let mut shown = show::Shown::default();
    loop {
        let left = until.map_or(WAIT_MS, |at| at.saturating_duration_since(Instant::now()).as_millis() as u64);
        let (after, wait_ms) = (history.len() as u64, left.min(WAIT_MS));
        let request = Request::Get { flow: flow.to_owned(), after, wait_ms, generation };
        let answer: FlowAnswer = ask(here, &request)?;
        for recorded in answer.history {
            if here.json && steps {
                print(crate::show::json_line(&recorded)? + "\n")?;
            }
            history.push(recorded);
        }
        if steps && !here.json {
            print(shown.new_lines(&history))?;
        }
        generation = Some(answer.flow.generation);
        if answer.flow.state == State::Continued {
            // It goes on in the next history.
            generation = Some(answer.flow.generation + 1);
            history.clear();
            shown = show::Shown::default();
            continue;
        }
        if answer.flow.state.is_over() {
            return end_as(here, &answer.flow, steps);
        }
        if until.is_some_and(|at| at <= Instant::now()) {
            let message = format!("{flow} has not ended: {}", answer.flow.status);
            return Err(Failure::new("timeout", message).status(STATUS_TIMEOUT));
        }
    }
}

fn end_as(here: &Here, flow: &FlowView, steps: bool) -> Result<u8, Failure> {
    let value = match &flow.state {
        State::Completed { value } | State::Failed { value } | State::Cancelled { value } => value.clone(),
        State::Deciding | State::Waiting | State::Blocked { .. } | State::Undoing | State::Continued => Value::Null,
    };
    let text = crate::show::visible(&holdfast_flow::text_of(&value));
    match &flow.state {
        State::Completed { .. } => {
            if here.json && !steps {
                print_json(flow)?;
            } else if !here.json {
                print(if steps { format!("{} {text}\n", flow.status) } else { format!("{text}\n") })?;
            }
            Ok(0)
        }
        _ if here.json => {
            if !steps {
                print_json(flow)?;
            }
            Ok(1)
        }
        _ => Err(Failure::new("flow_failed", format!("{} {}: {text}", flow.id, flow.status.to_lowercase()))
            .hint(format!("see its steps: holdfast flow show {}", flow.id))),
    }
}

fn told(here: &Here, view: &FlowView) -> Result<u8, Failure> {
    if here.json {
        print_json(view)?;
    } else {
        print(format!("{}  {}\n", view.id, view.status))?;
    }
    Ok(0)
}

fn signal(here: &Here, args: &FlowSignalArgs) -> Result<u8, Failure> {
    let value = given(args.value.as_ref(), args.data.as_ref())?;
    // Drawn once: asked again after the service died, it is the same signal.
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|e| Failure::new("io", format!("cannot get random bytes: {e}")))?;
    let signal = args.id.clone().unwrap_or_else(|| holdfast_types::hex_text(&bits));
    let (flow, name) = (args.of.flow.clone(), args.name.clone());
    told(here, &ask(here, &Request::Signal { flow, name, value, signal })?)
}

fn answer(here: &Here, args: &FlowAnswerArgs) -> Result<u8, Failure> {
    let n = match args.step {
        Some(0) => return Err(Failure::new("usage", "steps are counted from 1").status(STATUS_USAGE)),
        step => step.map(|step| step - 1),
    };
    let (flow, text) = (args.of.flow.clone(), args.text.join(" "));
    told(here, &connect(here)?.ask(&Request::Answer { flow, n, text })?)
}

fn cancel(here: &Here, args: &FlowCancelArgs) -> Result<u8, Failure> {
    let request = Request::Cancel { flow: args.of.flow.clone(), reason: args.reason.clone() };
    told(here, &connect(here)?.ask(&request)?)
}

fn retry(here: &Here, args: &FlowRetryArgs) -> Result<u8, Failure> {
    let kept = args.new_code.iter().flatten().next().map(|file| code::file(here, file)).transpose()?;
    let (code, hosted) = kept.map_or((Value::Null, None), |(code, hosted)| (code.into(), Some(hosted)));
    let (verdict, value) = match (&args.done, args.failed) {
        _ if args.new_code.is_some() => ("code", code),
        (Some(text), _) => ("done", json!({ "output": text })),
        (None, true) => ("failed", Value::Null),
        (None, false) => ("again", Value::Null),
    };
    let request = Request::Retry { flow: args.of.flow.clone(), verdict: verdict.into(), value, hosted };
    told(here, &connect(here)?.ask(&request)?)
}

fn rewind(here: &Here, args: &FlowRewindArgs) -> Result<u8, Failure> {
    let flow = args.of.flow.clone();
    let view: FlowView = connect(here)?.ask(&Request::Rewind { flow, to: args.to.clone(), again: args.again })?;
    let older = view.generation.saturating_sub(1);
    if !here.json {
        say(&format!("the history before is kept: holdfast flow history {} --generation {older}", view.id));
    }
    told(here, &view)
}

fn check(here: &Here, args: &FlowCheckArgs) -> Result<u8, Failure> {
    let text = read(&args.file)?;
    let shown = args.file.display();
    let definition = holdfast_flow::yaml::parse(&text).map_err(|problem| {
        let message = format!("{shown}: line {}: {}", problem.line, problem.message);
        Failure::new("invalid_definition", message).hint(problem.hint)
    })?;
    if here.json {
        print_json(&json!({"name": definition.name, "steps": definition.steps.len()}))?;
    } else {
        print(format!("{shown}: {} with {} steps is fine\n", definition.name, definition.steps.len()))?;
    }
    Ok(0)
}

/// What flows ask the humans now; nothing where no service runs.
pub fn questions(here: &Here) -> Vec<super::questions::FlowQuestion> {
    let client = here.who_if_there().and_then(|who| Client::connect(&here.home, &who).ok());
    let flows: Vec<FlowView> = client
        .and_then(|mut client| client.ask(&Request::List { all: false, after: 0, wait_ms: 0 }).ok())
        .unwrap_or_default();
    let asks = |flow: FlowView| {
        let FlowView { id, by, waits_for, .. } = flow;
        waits_for.into_iter().filter_map(move |one| {
            let text = one.question?;
            let (flow, by, options, asked_ms) = (id.clone(), by.clone(), one.options, one.since_ms);
            Some(super::questions::FlowQuestion { flow, step: one.n + 1, by, text, options, asked_ms })
        })
    };
    flows.into_iter().flat_map(asks).collect()
}

/// The ids of all flows, one a line; completes nothing where no service runs.
pub fn ids(here: &Here) -> Result<u8, Failure> {
    // Pressing Tab must not create a key.
    let Some(who) = here.who_if_there() else { return Ok(0) };
    let Ok(mut client) = Client::connect(&here.home, &who) else { return Ok(0) };
    let flows: Vec<FlowView> = client.ask(&Request::List { all: true, after: 0, wait_ms: 0 })?;
    print(flows.iter().map(|flow| format!("{}\n", flow.id)).collect::<String>())?;
    Ok(0)
}
