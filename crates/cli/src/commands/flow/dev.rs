//! `holdfast flow dev`: runs a flow while its file is being written, anew whenever the file changes.

use super::{ask, code, connect, given, read, show, worker};
use crate::args::FlowDevArgs;
use crate::failure::{Failure, STATUS_USAGE};
use crate::here::Here;
use crate::show::{print, say, visible};
use holdfast_flow::{State, text_of, yaml};
use holdfast_flows::protocol::{FlowAnswer, Request, StartAnswer};
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// How soon a change of the file is seen: before a person has looked up from saving it.
const LOOK: Duration = Duration::from_millis(200);

/// What the file was when it was last looked at.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(file: &Path) -> Stamp {
    let seen = std::fs::metadata(file).ok()?;
    Some((seen.modified().ok()?, seen.len()))
}

/// A worker that ends with us.
struct Working(Child);

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `holdfast flow dev`.
pub fn dev(here: &Here, args: &FlowDevArgs) -> Result<u8, Failure> {
    if !args.file.is_file() {
        return Err(Failure::new("usage", format!("cannot read {}", args.file.display())).status(STATUS_USAGE));
    }
    let input = given(args.input.as_ref(), args.data.as_ref())?;
    let stopped = interrupted()?;
    while !stopped.load(Ordering::Relaxed) {
        let before = stamp(&args.file);
        // A file that cannot be run for the moment is what this is for.
        if let Err(failure) = round(here, args, &input, before, &stopped) {
            say(&format!("{}: {}", args.file.display(), failure.message()));
        }
        while stamp(&args.file) == before && !stopped.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }
    Ok(0)
}

/// Whether somebody pressed Ctrl-C: what was started is then cancelled.
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let failed = |error| Failure::io("cannot wait for an interrupt", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stopped);
    let waiting = move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            told.store(true, Ordering::Relaxed);
        }
    };
    std::thread::Builder::new().name("interrupt".into()).spawn(waiting).map_err(failed)?;
    Ok(stopped)
}

/// Runs the file once, until the flow ends, the file changes, or somebody interrupts.
fn round(here: &Here, args: &FlowDevArgs, input: &Value, before: Stamp, stopped: &AtomicBool) -> Result<(), Failure> {
    let is_yaml = args.file.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let (definition, name, working) = if is_yaml {
        let text = read(&args.file)?;
        let wrong = |problem: yaml::Problem| Failure::new("invalid_definition", problem.to_string());
        yaml::parse(&text).map_err(wrong)?;
        (Some(text), None, None)
    } else {
        let name = code::one_of(&code::names(here, &args.file)?, args.flow.as_deref())?;
        let worker = worker::command(here, &args.file, &[])?.spawn();
        let worker = worker.map_err(|e| Failure::io("cannot start the worker", e))?;
        (None, Some(name), Some(Working(worker)))
    };
    let cwd = std::env::current_dir().map_err(|e| Failure::io("cannot find the current directory", e))?;
    let (cwd, input) = (Some(cwd.display().to_string()), input.clone());
    let request = Request::Start {
        flow: None,
        definition,
        name,
        input,
        cwd,
        skip_timers: args.skip_timers,
        code: String::new(),
        hosted: None,
    };
    let answer: StartAnswer = connect(here)?.ask(&request)?;
    let id = answer.flow.id;
    print(format!("── {id}\n"))?;
    let goes_on = || stamp(&args.file) == before && !stopped.load(Ordering::Relaxed);
    let followed = follow(here, &id, &goes_on);
    if !matches!(followed, Ok(true)) {
        let reason = "its file changed, or flow dev ended".to_owned();
        // It may have ended just now.
        let _ = connect(here)?.ask::<Value>(&Request::Cancel { flow: id, reason });
    }
    drop(working);
    followed.map(|_| ())
}

/// Prints a flow's steps as they happen; whether it ended.
fn follow(here: &Here, id: &str, goes_on: &dyn Fn() -> bool) -> Result<bool, Failure> {
    let (mut history, mut generation, mut status) = (Vec::new(), None, String::new());
    let mut shown = show::Shown::default();
    while goes_on() {
        let (flow, after, wait_ms) = (id.to_owned(), history.len() as u64, LOOK.as_millis() as u64);
        let answer: FlowAnswer = ask(here, &Request::Get { flow, after, wait_ms, generation })?;
        history.extend(answer.history);
        print(shown.new_lines(&history))?;
        generation = Some(answer.flow.generation);
        match &answer.flow.state {
            State::Continued => {
                (generation, shown) = (Some(answer.flow.generation + 1), show::Shown::default());
                history.clear();
            }
            State::Completed { value } | State::Failed { value } | State::Cancelled { value } => {
                print(format!("{} {}\n", answer.flow.status, visible(&text_of(value))))?;
                return Ok(true);
            }
            State::Deciding | State::Waiting | State::Blocked { .. } | State::Undoing => {
                if answer.flow.status != status && answer.flow.status != "RUNNING" {
                    status.clone_from(&answer.flow.status);
                    print(format!("   {status}\n"))?;
                }
            }
        }
    }
    Ok(false)
}
