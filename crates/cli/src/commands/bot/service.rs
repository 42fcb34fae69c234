//! A bot's process: started in the background, and again whenever it was killed, until it is not wanted any more.

use crate::failure::Failure;
use crate::here::Here;
use crate::show::{columns, now_ms, print, print_json, span, table};
use holdfast_bot::{Condition, Config, Served, Service};
use rustix::process::setsid;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

/// How soon the next bot follows one that was killed, and how slowly where they fail one after the other.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// One that lived this long did not fail by itself at once.
const LIVED: Duration = Duration::from_secs(1);
/// How long a bot may take to begin or to end.
const CHANGE: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// `holdfast bot spawn`: starts `bot tend` in a session of its own and returns at once.
pub fn spawn(here: &Here, service: &str) -> Result<u8, Failure> {
    let _ = setsid();
    super::super::host::keep_descriptors_to_ourselves();
    background(here, "tend", service).spawn().map_err(|e| Failure::io("cannot start the bot", e))?;
    Ok(0)
}

fn background(here: &Here, what: &str, service: &str) -> Command {
    let mut command = crate::commands::flow::in_background(here);
    command.args(["bot", what, service]);
    command
}

fn wanted(here: &Here, service: Service) -> bool {
    Config::load(&here.home, service).is_ok_and(|config| config.is_some_and(|config| config.enabled))
}

fn of(text: &str) -> Result<Service, Failure> {
    text.parse().map_err(|why: String| Failure::new("usage", why))
}

/// `holdfast bot tend`: starts a bot, and another one whenever it was killed or failed, as long as it is wanted.
pub fn tend(here: &Here, service: &str) -> Result<u8, Failure> {
    // The end of a session it was started in is not its own.
    let _ = holdfast_observe::leave_sessions();
    let _ = rustix::thread::set_name(c"holdfast-bot");
    let mut pause = PAUSE_MIN;
    while wanted(here, of(service)?) {
        let began = Instant::now();
        let ended = background(here, "serve", service).status().map_err(|e| Failure::io("cannot start the bot", e))?;
        if ended.success() {
            break;
        }
        pause = if began.elapsed() > LIVED { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
        std::thread::sleep(pause);
    }
    Ok(0)
}

/// `holdfast bot serve`: the bot itself.
pub fn serve(here: &Here, service: &str) -> Result<u8, Failure> {
    // It has a token and keys in its memory.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    match holdfast_bot::serve(&here.home, here.program.clone(), of(service)?) {
        Ok(Served::Stopped | Served::Yielded) => Ok(0),
        Err(error) => Err(Failure::from_error("bot", &error)),
    }
}

/// Starts the bots that are wanted with the host.
pub fn wake(here: &Here) {
    for service in Service::EACH {
        if wanted(here, service) && holdfast_bot::is_served(&here.home, service).is_none() {
            // `holdfast bot status` says that it does not run where this fails.
            let _ = holdfast_bot::spawn(&here.home, &here.program, service);
        }
    }
}

/// Starts a bot that does not run, and waits until it does.
pub fn start(here: &Here, service: Service) -> Result<(), Failure> {
    if holdfast_bot::is_served(&here.home, service).is_some() {
        return Ok(());
    }
    holdfast_bot::spawn(&here.home, &here.program, service).map_err(|e| Failure::io("cannot start the bot", e))?;
    let until = Instant::now() + CHANGE;
    while holdfast_bot::is_served(&here.home, service).is_none() {
        if Instant::now() > until {
            let log = holdfast_bot::log_file(&here.home, service);
            return Err(Failure::new("timeout", format!("the bot did not start; its log is {}", log.display())));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Ends a bot, and waits until it is gone.
pub fn end(here: &Here, service: Service) -> Result<(), Failure> {
    let failed = |e| Failure::io("cannot stop the bot", e);
    if let Ok(Some(mut config)) = Config::load(&here.home, service) {
        config.enabled = false;
        config.save(&here.home).map_err(|e| Failure::from_error("bot", &e))?;
    }
    let until = Instant::now() + CHANGE;
    while holdfast_bot::stop(&here.home, service).map_err(failed)?.is_some() {
        if Instant::now() > until {
            return Err(Failure::new("timeout", format!("the {service} bot did not stop")));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// `holdfast bot status`.
pub fn status(here: &Here) -> Result<u8, Failure> {
    let mut all = Vec::new();
    for service in Service::EACH {
        let Some(config) = Config::load(&here.home, service).map_err(super::failed)? else { continue };
        let users = holdfast_bot::users(&here.home, service).map_err(super::failed)?.len();
        all.push((config, holdfast_bot::status(&here.home, service), users));
    }
    let runs = all.iter().any(|(_, status, _)| status.as_ref().is_some_and(|one| one.condition != Condition::Revoked));
    if here.json {
        let one = |(config, status, users): &(Config, Option<holdfast_bot::Status>, usize)| {
            json!({"service": config.service, "bot": config.name, "id": config.id, "api": config.api, "enabled": config.enabled,
                "factor": config.factor.as_ref().map(holdfast_bot::Factor::word), "users": users, "running": status})
        };
        print_json(&json!({"bots": all.iter().map(one).collect::<Vec<_>>()}))?;
        return Ok(u8::from(!runs));
    }
    if all.is_empty() {
        print("no bot is set up; set one up: holdfast bot init telegram\n")?;
        return Ok(1);
    }
    let mut rows = vec![["SERVICE", "BOT", "USERS", "STATE"].map(str::to_owned).to_vec()];
    for (config, status, users) in &all {
        let service = config.service;
        let state = match status {
            None if config.enabled => format!("not running; start it: holdfast bot start {service}"),
            None => "stopped".into(),
            Some(status) => {
                let since = span(now_ms().saturating_sub(status.since_ms));
                match &status.condition {
                    Condition::Connecting => "connecting".into(),
                    Condition::Running => format!("running for {since}, process {}", status.pid),
                    Condition::Failing(why) => format!("failing for {since}: {why}"),
                    Condition::Revoked => {
                        format!("{service} does not accept its token; set it up again: holdfast bot init {service}")
                    }
                }
            }
        };
        rows.push(vec![service.to_string(), config.name.clone(), users.to_string(), state]);
    }
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(u8::from(!runs))
}
