//! `holdfast host`: the daemon by hand. It comes and goes without a session noticing.

use crate::args::{HostCommand, ListenArgs, LogArgs, StartArgs};
use crate::failure::Failure;
use crate::here::Here;
use crate::listen;
use crate::show::{fields, moment, now_ms, print, print_json};
use crate::who;
use holdfast_client::{CallError, ConnectError, Connection, Identity, connect};
use holdfast_host::{HostConfig, Ran, begin_log};
use holdfast_wire::operations::op;
use holdfast_wire::params::{HostStatus, Nothing};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};
use serde_json::json;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a host may take to write down what it must and go.
const STOP_MS_MAX: u64 = 10_000;

/// How soon the next host follows one that was killed, and how slowly where they fail one after the other.
const TEND_PAUSE_MIN: Duration = Duration::from_millis(20);
const TEND_PAUSE_MAX: Duration = Duration::from_secs(10);

/// `holdfast host`.
pub fn host(here: &Here, command: HostCommand) -> Result<u8, Failure> {
    match command {
        HostCommand::Run(args) => run(here, args),
        HostCommand::Start(args) => start(here, &args),
        HostCommand::Stop => stop(here),
        HostCommand::Restart => restart(here),
        HostCommand::Status => status(here),
        HostCommand::Metrics => metrics(here),
        HostCommand::InstallUnit(args) => super::unit::install(here, &args),
        HostCommand::Key => super::relay::key(here),
    }
}

fn run(here: &Here, args: LogArgs) -> Result<u8, Failure> {
    let cannot = |error| Failure::io("the host failed", error);
    let given = holdfast_host::given(&here.home).map_err(cannot)?;
    let config = here.config()?;
    begin_log(args.format.unwrap_or(config.log_format), &config.log);
    let default = HostConfig::default();
    let config = HostConfig {
        ring_bytes: config.ring.unwrap_or(default.ring_bytes),
        history_lines: config.history_lines.unwrap_or(default.history_lines),
        ended_keep_ms: config.ended_keep_ms.unwrap_or(default.ended_keep_ms),
        runs_keep_ms: config.runs_keep_ms.unwrap_or(default.runs_keep_ms),
        defaults: config.defaults,
        metrics_listen: config.metrics_listen,
        http: listen::load(&here.home)?,
        notify: config.notify,
        recover: config.recover,
        reap: config.reap,
        policy: config.policy,
        lease: config.lease.config()?,
        shell: config.shell,
        base: default.base,
    };
    let stranger = who::stranger()?;
    let yielded = "another host is already running for this home\n";
    // The daemon needs no identity: it only checks whether a host answers. At a socket that systemd passed, we are the one that does.
    match given.as_ref().map_or_else(|| connect(&here.home, &stranger).map(Some), |_| Ok(None)) {
        Ok(None) => {}
        Ok(Some(_)) => {
            print(yielded)?;
            return Ok(0);
        }
        Err(ConnectError::NoHost(_)) => {}
        Err(error) => return Err(error.into()),
    }
    super::flow::wake(here);
    super::bot::wake(here);
    print(format!("host {} listens on {}\n", env!("CARGO_PKG_VERSION"), here.home.host_socket().display()))?;
    let home = &here.home;
    let ran = crate::platform::with_stack(|| holdfast_host::run_at(home, &config, given)).and_then(|ran| ran);
    match ran.map_err(cannot)? {
        Ran::Stopped => {}
        Ran::Yielded => print(yielded)?,
    }
    Ok(0)
}

/// `holdfast host spawn`: starts `host run` in a session of its own and returns at once: the host's parent is then init, nobody's
/// zombie, and no terminal's end reaches it. Where it listens for HTTP or waits at a relay it is tended: who comes over a network cannot start the
/// next one.
pub fn spawn(here: &Here) -> Result<u8, Failure> {
    // Fails where this process leads a group already; then a shell started it by hand and knows what it does.
    let _ = setsid();
    keep_descriptors_to_ourselves();
    let tended =
        listen::load(&here.home).is_ok_and(|listen| listen.is_some()) || holdfast_host::waits_at_relays(&here.home);
    background(here, if tended { "tend" } else { "run" })
        .spawn()
        .map_err(|e| Failure::io("cannot start the host", e))?;
    Ok(0)
}

fn background(here: &Here, what: &str) -> Command {
    let mut command = Command::new(&here.program);
    command
        .args(["host", what])
        .env_remove("HOLDFAST_SESSION")
        .env_remove("HOLDFAST_SESSION_NAME")
        .env_remove("HOLDFAST_ENV")
        .env_remove("HOLDFAST_LIFE")
        .env_remove(who::VARIABLE)
        .env_remove(who::TOKEN)
        .env_remove("HOLDFAST_URL")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command
}

/// `holdfast host tend`: starts a host, and another one whenever it was killed or failed; until one ends as it was asked to.
pub fn tend(here: &Here) -> Result<u8, Failure> {
    // As for the host itself: the end of a session it was started in is not its own.
    let _ = holdfast_observe::leave_sessions();
    let _ = rustix::thread::set_name(c"holdfast-host");
    let mut pause = TEND_PAUSE_MIN;
    loop {
        let began = Instant::now();
        let ended = background(here, "run").status().map_err(|e| Failure::io("cannot start the host", e))?;
        if ended.success() {
            return Ok(0);
        }
        // One that fails at once would only fill the log.
        pause = if began.elapsed() > TEND_PAUSE_MAX { TEND_PAUSE_MIN } else { (pause * 2).min(TEND_PAUSE_MAX) };
        std::thread::sleep(pause);
    }
}

/// `holdfast host hold`: has the HTTP port open while no host does. Its standard input is the listening socket, its standard output
/// the connection to the host that started it.
pub fn hold(here: &Here) -> Result<u8, Failure> {
    // As for the host itself: the end of a terminal or of a session it was started in is not its own.
    let _ = setsid();
    let _ = holdfast_observe::leave_sessions();
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let _ = rustix::thread::set_name(c"holdfast-port");
    let failed = |error| Failure::io("cannot hold the HTTP port", error);
    let listener = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let host = UnixStream::from(std::io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
    host.set_nonblocking(true).map_err(failed)?;
    holdfast_host::hold(&here.home, &listener, host).map_err(failed)?;
    Ok(0)
}

/// A pipe or a lock that the caller happened to have open must not live as long as the host.
pub fn keep_descriptors_to_ourselves() {
    // SAFETY: no pointer is passed, and no descriptor is closed in this process: they are only marked to be closed on
    // exec. Where the kernel does not know the call the descriptors stay open, which is untidy and nothing worse.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// A host that listens as these say, or as an earlier start did; and what was done for it.
pub fn listening(here: &Here, args: &ListenArgs) -> Result<(HostStatus, String), Failure> {
    brought_up(here, args, false)
}

/// The same; one that runs is replaced where its next start would be another.
fn brought_up(here: &Here, args: &ListenArgs, logs_anew: bool) -> Result<(HostStatus, String), Failure> {
    here.make_state()?;
    let changed = listen::keep(&here.home, args)? || logs_anew;
    Ok(match running(here)? {
        Some((_, status)) if changed || status.http_error.is_some() => {
            here.config()?;
            bring_down(here)?;
            (bring_up(here)?, format!("restarted; {}", went_on(status.running)))
        }
        Some((_, status)) => (status, "already running".into()),
        None => (bring_up(here)?, "started".into()),
    })
}

fn start(here: &Here, args: &StartArgs) -> Result<u8, Failure> {
    if let Some(format) = args.log.format {
        // The host takes it from its environment, which is ours.
        here.settle_variable("HOLDFAST_LOG_FORMAT", format.word())?;
    }
    let (status, was) = brought_up(here, &args.listen, args.log.format.is_some())?;
    if here.json {
        print_json(&status)?;
    } else {
        print(format!("host {was}, process {}\n", status.pid))?;
    }
    match (&status.http, &status.http_error) {
        (_, Some(error)) => {
            return Err(Failure::new("cannot_listen", format!("the host is not listening for HTTP: {error}"))
                .hint("choose another address: holdfast host start --http ADDR"));
        }
        (Some(url), None) if !here.json => print(format!("listens at {url}\n"))?,
        _ => {}
    }
    Ok(0)
}

fn stop(here: &Here) -> Result<u8, Failure> {
    let stopped = bring_down(here)?;
    // Also where no host runs: one that was killed left its port to the next.
    holdfast_host::let_go(&here.home).map_err(|e| Failure::io("cannot free the HTTP port", e))?;
    let text = match &stopped {
        _ if here.json => return print_json(&json!({"stopped": stopped.map(|s| s.pid)})).map(|()| 0),
        Some(status) => format!("host stopped, process {}; {}\n", status.pid, went_on(status.running)),
        None => "no host is running\n".into(),
    };
    print(text)?;
    Ok(0)
}

fn restart(here: &Here) -> Result<u8, Failure> {
    let (before, after) = replace(here)?;
    if here.json {
        print_json(&after)?;
        return Ok(0);
    }
    let was = before.map_or(String::new(), |before| format!(" (was {})", before.pid));
    print(format!("host restarted, process {}{was}; {}\n", after.pid, went_on(after.running)))?;
    Ok(0)
}

pub fn went_on(sessions: u32) -> String {
    match sessions {
        0 => "no session was running".into(),
        1 => "1 session kept running".into(),
        many => format!("{many} sessions kept running"),
    }
}

fn status(here: &Here) -> Result<u8, Failure> {
    let Some((_, status)) = running(here)? else {
        if here.json {
            print_json(&json!({"running": false}))?;
        } else {
            print("the host is not running; the next command starts it\n")?;
        }
        return Ok(1);
    };
    if here.json {
        print_json(&status)?;
        return Ok(0);
    }
    print(fields(&[
        ("process", status.pid.to_string()),
        ("version", status.version),
        ("started", moment(status.started_ms, now_ms())),
        ("sessions", format!("{} running, {} ended", status.running, status.ended)),
        ("clients", status.clients.to_string()),
        ("socket", status.socket),
        ("http", status.http_error.or(status.http).unwrap_or_else(|| "no".into())),
        ("state", status.state),
    ]))?;
    Ok(0)
}

fn metrics(here: &Here) -> Result<u8, Failure> {
    let answer = connect(&here.home, here.who()?)?.call::<op::Metrics>(&Nothing {})?;
    if here.json {
        print_json(&answer)?;
    } else {
        print(answer.text)?;
    }
    Ok(0)
}

/// The host that serves this home, if one does.
fn running(here: &Here) -> Result<Option<(Connection, HostStatus)>, Failure> {
    running_for(here, here.who()?)
}

/// The host that serves this home, if one does, as somebody sees it.
pub fn running_for(here: &Here, who: &Identity) -> Result<Option<(Connection, HostStatus)>, Failure> {
    let mut connection = match connect(&here.home, who) {
        Ok(connection) => connection,
        Err(ConnectError::NoHost(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match connection.call::<op::Status>(&Nothing {}) {
        Ok(status) => Ok(Some((connection, status))),
        // It was just going.
        Err(CallError::Broken(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn bring_up(here: &Here) -> Result<HostStatus, Failure> {
    Ok(here.start()?.call::<op::Status>(&Nothing {})?)
}

/// Another host in the place of this one, started as it would be started now; sessions keep running.
pub fn renew(here: &Here) -> Result<(), Failure> {
    replace(here).map(|_| ())
}

/// The same: the host before, where one ran, and the one after.
pub fn replace(here: &Here) -> Result<(Option<HostStatus>, HostStatus), Failure> {
    // The next host reads it too: with one that it cannot read there would be none.
    here.config()?;
    let before = bring_down(here)?;
    Ok((before, bring_up(here)?))
}

/// Stops the host and waits until its process is gone: the next one needs its lock.
fn bring_down(here: &Here) -> Result<Option<HostStatus>, Failure> {
    let Some((mut connection, status)) = running(here)? else { return Ok(None) };
    let process = i32::try_from(status.pid).ok().and_then(Pid::from_raw);
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    match connection.call::<op::Stop>(&Nothing {}) {
        // It may be gone before its answer is read.
        Ok(_) | Err(CallError::Broken(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let late = || Failure::new("timeout", format!("the host (process {}) did not stop", status.pid));
    let deadline = Instant::now() + Duration::from_millis(STOP_MS_MAX);
    if let Some(process) = process {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = rustix::event::Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            // To ask whether a host still listens would start the next one where systemd does.
            Ok(1..) => return Ok(Some(status)),
            Ok(0) | Err(_) => return Err(late()),
        }
    }
    // Gone, or the next one is there already because somebody's command has started it.
    while !running(here).is_ok_and(|next| next.is_none_or(|(_, next)| next.pid != status.pid)) {
        if Instant::now() > deadline {
            return Err(late());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(Some(status))
}
