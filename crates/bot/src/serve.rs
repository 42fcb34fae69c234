//! The bot's process: its lock, its threads, and what `bot status` says of it.

use crate::chat::{Chat, Service, Trouble};
use crate::config::{BotError, Config};
use crate::discord::{self, Discord};
use crate::engine::{Engine, Job};
use crate::state::State;
use crate::telegram::{self, Telegram};
use holdfast_store::{BOT_STATUS, Survives};
use holdfast_types::{Home, TimeMs};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How often and how long apart the lock is tried.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(15);

/// Why a bot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// It was told to, or its service is over for it.
    Stopped,
    /// Another one serves.
    Yielded,
}

/// How a bot is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "condition", content = "why")]
pub enum Condition {
    /// It has not heard from its service yet.
    Connecting,
    /// It hears from its service.
    Running,
    /// It does not, and tries again.
    Failing(String),
    /// Its token is not accepted.
    Revoked,
}

impl Condition {
    /// What a trouble means.
    #[must_use]
    pub(crate) fn of(trouble: &Trouble) -> Condition {
        match trouble {
            Trouble::Revoked => Condition::Revoked,
            Trouble::Slow { .. } => Condition::Running,
            Trouble::Away(_) | Trouble::Refused(_) | Trouble::Conflict(_) => Condition::Failing(trouble.to_string()),
        }
    }
}

/// What a bot says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// How it is.
    #[serde(flatten)]
    pub condition: Condition,
    /// Since when.
    pub since_ms: TimeMs,
}

/// Writes how the bot is, where that changes.
pub struct Reporter {
    dir: PathBuf,
    last: Option<Condition>,
}

impl Reporter {
    fn new(home: &Home, service: Service) -> Reporter {
        Reporter { dir: Config::dir(home, service), last: None }
    }

    /// How it is now.
    pub fn report(&mut self, condition: Condition) {
        if self.last.as_ref() == Some(&condition) {
            return;
        }
        if let Condition::Failing(why) = &condition {
            eprintln!("{why}");
        }
        let status = Status { pid: std::process::id(), condition: condition.clone(), since_ms: crate::desk::now_ms() };
        // Nothing depends on it.
        let _ = holdfast_store::put_json(&BOT_STATUS, &self.dir, "status.json", &status, Survives::Crash);
        self.last = Some(condition);
    }
}

/// Held by the one bot of a service and home; has its process's number in it.
#[must_use]
pub fn lock_file(home: &Home, service: Service) -> PathBuf {
    home.run.join(format!("bot-{service}.lock"))
}

/// What the bot says when something goes wrong.
#[must_use]
pub fn log_file(home: &Home, service: Service) -> PathBuf {
    home.state.join(format!("bot-{service}.log"))
}

fn open_lock(home: &Home, service: Service) -> io::Result<File> {
    holdfast_store::make_dir(&home.run)?;
    let path = lock_file(home, service);
    File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// The process that serves, if one does.
#[must_use]
pub fn is_served(home: &Home, service: Service) -> Option<u32> {
    let mut lock = File::open(lock_file(home, service)).ok()?;
    if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// How the bot is, if it runs.
#[must_use]
pub fn status(home: &Home, service: Service) -> Option<Status> {
    let pid = is_served(home, service)?;
    let path = Config::dir(home, service).join("status.json");
    let said: Option<Status> = holdfast_store::get_json(&BOT_STATUS, &path).ok().flatten();
    let connecting = Status { pid, condition: Condition::Connecting, since_ms: crate::desk::now_ms() };
    Some(said.filter(|said| said.pid == pid).unwrap_or(connecting))
}

/// Starts the bot in the background.
pub fn spawn(home: &Home, program: &Path, service: Service) -> io::Result<()> {
    holdfast_store::make_dir(&home.state)?;
    let log = File::options().create(true).append(true).mode(0o600).open(log_file(home, service))?;
    let mut command = Command::new(program);
    command
        .args(["bot", "spawn", service.word()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`bot spawn` ended with {status}"))) }
}

/// Ends the bot's process. It may be ended at any moment; whoever tends it sees that it is not wanted any more.
pub fn stop(home: &Home, service: Service) -> io::Result<Option<u32>> {
    let Some(pid) = is_served(home, service) else { return Ok(None) };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("no process"))?;
    kill_process(process, Signal::TERM)?;
    Ok(Some(pid))
}

/// Serves a bot until it is ended.
pub fn serve(home: &Home, program: PathBuf, service: Service) -> Result<Served, BotError> {
    let failed = |error| BotError::Io(lock_file(home, service), error);
    let mut lock = open_lock(home, service).map_err(failed)?;
    // Whoever asks whether a bot runs has the lock for a moment.
    let has_it = (0..LOCK_TRIES).any(|_| {
        let taken = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !taken {
            std::thread::sleep(LOCK_PAUSE);
        }
        taken
    });
    if !has_it {
        return Ok(Served::Yielded);
    }
    // Looked at with the lock: it may have been stopped meanwhile.
    let config = Config::get(home, service)?;
    if !config.enabled {
        return Ok(Served::Stopped);
    }
    lock.set_len(0).and_then(|()| lock.rewind()).map_err(failed)?;
    writeln!(lock, "{}", std::process::id()).map_err(failed)?;
    let state = State::load(home, service)?;
    let mut reporter = Reporter::new(home, service);
    reporter.report(Condition::Connecting);
    let (tell, inputs) = channel();
    let (jobs, taken) = channel();
    let chat: Box<dyn Chat> = match service {
        Service::Telegram => Box::new(Telegram::new(config.clone())),
        Service::Discord => Box::new(Discord::new(config.clone())),
    };
    let told = tell.clone();
    start("post", move || post(chat, &taken, &told)).map_err(failed)?;
    let (told, cursor, channels) = (tell.clone(), state.cursor.clone(), state.channels.clone());
    let of = config.clone();
    start("receive", move || match service {
        Service::Telegram => telegram::receive(&of, cursor, &told),
        Service::Discord => discord::receive(&of, cursor, channels, &told),
    })
    .map_err(failed)?;
    Engine::new(home.clone(), program, config, state, jobs, tell, reporter).run(&inputs);
    drop(lock);
    Ok(Served::Stopped)
}

/// A thread without which the bot is none: it ends with it, and is started again.
fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let body = move || {
        body();
        std::process::exit(1);
    };
    std::thread::Builder::new().name(name.into()).spawn(body).map(|_| ())
}

fn post(mut chat: Box<dyn Chat>, jobs: &Receiver<Job>, tell: &Sender<crate::engine::Input>) {
    while let Ok(job) = jobs.recv() {
        holdfast_pause::point("bot.post");
        let done = match job {
            Job::Post(post) => chat.post(&post),
            Job::Acknowledge(ack) => chat.acknowledge(&ack).map(|()| String::new()),
            Job::Remove(from, message) => chat.remove(&from, &message).map(|()| String::new()),
        };
        if tell.send(crate::engine::Input::Sent(done)).is_err() {
            return;
        }
    }
}
