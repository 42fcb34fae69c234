//! The flow service's process: started in the background by whoever needs it, and again whenever it was killed.

use crate::failure::Failure;
use crate::here::Here;
use crate::show::{fields, print, print_json};
use holdfast_flows::protocol::{Request, Status};
use holdfast_flows::{Client, ClientError, Keeping, Served, database};
use rustix::process::setsid;
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How soon the next service follows one that was killed, and how slowly where they fail one after the other.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// What the service takes from the environment: where things are, and what tests set. The rest belongs to whoever happened to
/// start it.
const KEPT: [&str; 14] = [
    "HOME",
    "PATH",
    "LANG",
    "SHELL",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "HOLDFAST_HOME",
    "HOLDFAST_LOG",
    holdfast_pause::DIRECTORY,
    holdfast_pause::TOP,
];

fn background(here: &Here, what: &str) -> Command {
    let mut command = in_background(here);
    command.args(["flow", what]);
    command
}

/// The program, for a service that outlives whoever starts it.
pub fn in_background(here: &Here) -> Command {
    let mut command = Command::new(&here.program);
    command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    for key in KEPT {
        if let Some(value) = std::env::var_os(key) {
            command.env(key, value);
        }
    }
    command
}

/// `holdfast flow spawn`: starts `flow tend` in a session of its own and returns at once.
pub fn spawn(here: &Here) -> Result<u8, Failure> {
    let _ = setsid();
    super::super::host::keep_descriptors_to_ourselves();
    background(here, "tend").spawn().map_err(|e| Failure::io("cannot start the flow service", e))?;
    Ok(0)
}

/// `holdfast flow tend`: starts a service, and another one whenever it was killed or failed; until one ends as it should.
pub fn tend(here: &Here) -> Result<u8, Failure> {
    // The end of a session it was started in is not its own.
    let _ = holdfast_observe::leave_sessions();
    let mut pause = PAUSE_MIN;
    loop {
        let began = Instant::now();
        let ended = background(here, "serve").status().map_err(|e| Failure::io("cannot start the flow service", e))?;
        if ended.success() {
            return Ok(0);
        }
        pause = if began.elapsed() > PAUSE_MAX { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
        std::thread::sleep(pause);
    }
}

/// `holdfast flow serve`: the service itself.
pub fn serve(here: &Here) -> Result<u8, Failure> {
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let config = here.config()?;
    let default = Keeping::default();
    let keeping = Keeping {
        ended_ms: config.flows_keep_ms.unwrap_or(default.ended_ms),
        archive: config.flows_archive.map(Into::into),
    };
    match holdfast_flows::serve(&here.home, here.program.clone(), keeping) {
        Ok(Served::Stopped | Served::Yielded) => Ok(0),
        Err(error) => Err(Failure::from_error("flow_service", &error)),
    }
}

/// Starts the service with the host where there is something for it to take up. A host without flows starts none.
pub fn wake(here: &Here) {
    let is_served = || UnixStream::connect(holdfast_flows::socket(&here.home)).is_ok();
    if database(&here.home).exists() && !is_served() {
        // The next `holdfast flow` starts it where this fails.
        let _ = holdfast_flows::spawn(&here.home, &here.program);
    }
}

fn running(here: &Here) -> Result<Option<Client>, Failure> {
    match Client::connect(&here.home, here.who()?) {
        Ok(client) => Ok(Some(client)),
        Err(ClientError::NotRunning(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `holdfast flow status`.
pub fn status(here: &Here) -> Result<u8, Failure> {
    let Some(mut client) = running(here)? else {
        if here.json {
            print_json(&json!({"running": false}))?;
        } else {
            print("the flow service is not running; the next `holdfast flow` command starts it\n")?;
        }
        return Ok(1);
    };
    let status: Status = client.ask(&Request::Status {})?;
    if here.json {
        print_json(&status)?;
        return Ok(0);
    }
    let mut told = vec![
        ("process", status.pid.to_string()),
        ("version", status.version),
        ("flows", format!("{} open, {} of them in memory", status.open, status.in_memory)),
        ("timers", status.timers.to_string()),
        ("database", status.database),
    ];
    told.extend(status.trouble.map(|why| ("trouble", why)));
    print(fields(&told))?;
    Ok(0)
}

/// Stops the service, where it runs: its process. Flows go on with the next one.
pub fn put_down(here: &Here) -> Result<Option<u32>, Failure> {
    let Some(mut client) = running(here)? else { return Ok(None) };
    let pid = client.pid();
    match client.ask::<Value>(&Request::Stop {}) {
        // It may be gone before its answer is read.
        Ok(_) | Err(ClientError::Broken(_)) => Ok(Some(pid)),
        Err(error) => Err(error.into()),
    }
}

/// `holdfast flow stop`.
pub fn stop(here: &Here) -> Result<u8, Failure> {
    let Some(pid) = put_down(here)? else {
        if here.json {
            print_json(&json!({"stopped": null}))?;
        } else {
            print("the flow service is not running\n")?;
        }
        return Ok(0);
    };
    if here.json {
        print_json(&json!({ "stopped": pid }))?;
    } else {
        print(format!("flow service stopped, process {pid}; flows go on when it is started again\n"))?;
    }
    Ok(0)
}
