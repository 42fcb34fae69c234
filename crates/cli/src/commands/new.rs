//! `holdfast new`: what a session starts with is what its caller has.

use super::attach::{go_in, need_terminal, refuse_nested};
use super::logs::print_output;
use crate::args::NewArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::here::{Here, Link};
use crate::platform;
use crate::show::{on_terminal, print, print_json, say};
use crate::who;
use holdfast_types::Size;
use holdfast_wire::leases::Leasing;
use holdfast_wire::operations::op;
use holdfast_wire::params::{NewParams, SessionView};
use holdfast_wire::wall::Wall;
use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit, umask};
use rustix::termios::tcgetwinsize;
use std::path::{Path, PathBuf};

/// Variables that belong to the caller alone: the session or pane it is in itself, and who it is. What runs inside is somebody else.
const OUTER: [&str; 9] = [
    "TMUX",
    "TMUX_PANE",
    "HOLDFAST_SESSION",
    "HOLDFAST_SESSION_NAME",
    "HOLDFAST_ENV",
    "HOLDFAST_LIFE",
    who::VARIABLE,
    who::TOKEN,
    "HOLDFAST_URL",
];
/// What nearly every terminal that will be attached understands.
const TERM_DEFAULT: &str = "xterm-256color";

/// `holdfast new`.
pub fn new(here: &Here, args: &NewArgs) -> Result<u8, Failure> {
    if !args.detach {
        refuse_nested("attach to a new session")?;
        need_terminal("new")
            .map_err(|failure| failure.hint("`holdfast new -d` starts a session without attaching to it"))?;
    }
    let mut link = here.link()?;
    let session = start(here, &mut link, args)?;
    if !args.detach {
        return go_in(here, link, &session, false)
            .or_else(|failure| over_already(here, &session).unwrap_or(Err(failure)));
    }
    if here.json {
        print_json(&session)?;
    } else {
        print(format!("{}\n", session.name))?;
    }
    Ok(0)
}

/// Starts a session. Sent once: if the answer is lost, a second request might start a second session.
pub fn start(here: &Here, link: &mut Link<'_>, args: &NewArgs) -> Result<SessionView, Failure> {
    let params = params(here, args)?;
    Ok(link.once::<op::New>(&params, &[])?.0)
}

/// What a session is started with.
pub fn params(here: &Here, args: &NewArgs) -> Result<NewParams, Failure> {
    if here.is_elsewhere() {
        return Ok(params_elsewhere(args));
    }
    params_by(here.config()?, args)
}

/// What a session of another machine is started with: what that machine has, and what was said.
pub fn params_elsewhere(args: &NewArgs) -> NewParams {
    // What the caller has without a terminal says nothing of those that will be attached.
    let is_none = |term: &str| term.is_empty() || (term == "dumb" && args.detach);
    let term = std::env::var("TERM").ok().filter(|term| !is_none(term));
    let term = format!("TERM={}", term.as_deref().unwrap_or(TERM_DEFAULT));
    NewParams {
        name: args.called.clone().or_else(|| args.name.clone()),
        command: args.command.clone(),
        env_add: std::iter::once(term).chain(args.env.iter().cloned()).collect(),
        cwd: args.cwd.as_ref().map(|dir| dir.to_string_lossy().into_owned()),
        size: args.size.or_else(terminal_size).unwrap_or_default(),
        ring_bytes: args.ring.map(|ring| ring.0),
        integrate: args.no_integration.then_some(false),
        user: args.user.clone(),
        wall: wall(args, Path::to_path_buf),
        gate: args.gate,
        portable: args.portable,
        on_resume: args.on_resume.clone(),
        checkpoint_every_ms: args.checkpoint_every.map(|every| every.ms),
        lease: args.leased.then_some(Leasing { hard: args.hard_fence }),
        recover: args.recover,
        restart_on_failure: args.restart,
        reap_after: args.reap_after,
        ..NewParams::default()
    }
}

/// The wall that was asked for.
fn wall(args: &NewArgs, there: impl Fn(&Path) -> PathBuf) -> Option<Wall> {
    let text = |dir: &PathBuf| there(dir).to_string_lossy().into_owned();
    let write = args.wall.iter().map(text).collect();
    (!args.wall.is_empty()).then(|| Wall { write, connect: args.wall_ports.clone() })
}

/// What a session is started with, by these settings.
pub fn params_by(config: Config, args: &NewArgs) -> Result<NewParams, Failure> {
    let cwd = directory(args.cwd.as_deref())?;
    let is_own = args.user.is_none();
    let command = match &args.command[..] {
        // Another user has a shell of its own.
        [] if !is_own => Vec::new(),
        [] => vec![shell(config.shell)],
        words => words.to_vec(),
    };
    Ok(NewParams {
        name: args.called.clone().or_else(|| args.name.clone()),
        command,
        argv0: None,
        env: Some(environment(args, &cwd)),
        // Of our environment another user gets little; what was asked for it gets whole.
        env_add: if is_own { Vec::new() } else { args.env.clone() },
        cwd: (is_own || args.cwd.is_some()).then_some(cwd),
        size: args.size.or_else(terminal_size).unwrap_or_default(),
        ring_bytes: args.ring.map(|ring| ring.0).or(config.ring),
        umask: Some(file_mode_mask()),
        nofile: getrlimit(Resource::Nofile).current,
        integrate: args.no_integration.then_some(false),
        user: args.user.clone(),
        wall: wall(args, |dir| std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())),
        gate: args.gate,
        portable: args.portable,
        on_resume: args.on_resume.clone(),
        checkpoint_every_ms: args.checkpoint_every.map(|every| every.ms),
        lease: args.leased.then_some(Leasing { hard: args.hard_fence }),
        recover: args.recover,
        restart_on_failure: args.restart,
        reap_after: args.reap_after,
        ahead: false,
    })
}

/// A command that ended before its terminal was there: its output and its status are what its caller wants.
fn over_already(here: &Here, session: &SessionView) -> Option<Result<u8, Failure>> {
    let mut link = here.link().ok()?;
    let exit = link.get(&session.id.to_string()).ok()?.exit?;
    let output = print_output(&mut link, &session.id.to_string());
    say(&format!("session {}: {exit}", session.name));
    Some(output.map(|()| exit.as_status()))
}

fn directory(flag: Option<&Path>) -> Result<String, Failure> {
    let path = match flag {
        Some(path) => std::path::absolute(path),
        None => std::env::current_dir(),
    };
    let path = path.map_err(|e| Failure::io("cannot find the current directory", e).hint("use --cwd DIR"))?;
    path.into_os_string().into_string().map_err(|path| {
        Failure::new("bad_request", format!("the directory {} is not UTF-8", PathBuf::from(path).display()))
            .hint("start it elsewhere: holdfast new --cwd DIR")
    })
}

/// The caller's variables without what is its alone, `K=V` each.
pub fn variables() -> Vec<String> {
    let all = std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    all.filter(|(key, _)| !OUTER.contains(&key.as_str())).map(|(key, value)| format!("{key}={value}")).collect()
}

/// The caller's whole environment without what is its alone, and `--env` on top.
fn environment(args: &NewArgs, cwd: &str) -> Vec<String> {
    let mut vars: Vec<(String, String)> = Vec::new();
    for (key, value) in std::env::vars_os() {
        match (key.into_string(), value.into_string()) {
            (Ok(key), Ok(value)) => vars.push((key, value)),
            (Ok(key), Err(_)) => say(&format!("warning: left out the variable {key}: it is not UTF-8")),
            (Err(key), _) => say(&format!("warning: left out the variable {}: it is not UTF-8", key.display())),
        }
    }
    vars.retain(|(key, _)| !OUTER.contains(&key.as_str()));
    let mut set = |key: &str, value: &str| {
        vars.retain(|(k, _)| k != key);
        vars.push((key.to_owned(), value.to_owned()));
    };
    let term = std::env::var("TERM").unwrap_or_default();
    // Without a terminal of its own, `dumb` is what the caller has, not what the session will be attached to.
    if term.is_empty() || (term == "dumb" && (args.detach || !on_terminal())) {
        set("TERM", TERM_DEFAULT);
    }
    if args.cwd.is_some() {
        set("PWD", cwd);
    }
    for (key, value) in args.env.iter().filter_map(|pair| pair.split_once('=')) {
        set(key, value);
    }
    vars.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// The size of whichever terminal the caller has.
fn terminal_size() -> Option<Size> {
    let sizes = [rustix::stdio::stdout(), rustix::stdio::stdin(), rustix::stdio::stderr()].map(tcgetwinsize);
    let size = sizes.into_iter().flatten().find(|size| size.ws_col > 0 && size.ws_row > 0)?;
    Some(Size::clamped(size.ws_col, size.ws_row))
}

/// The configured shell, `$SHELL`, the user's login shell, `/bin/sh`.
fn shell(configured: Option<String>) -> String {
    let variable = || std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
    let passwd = || platform::shell().filter(|shell| !shell.is_empty());
    configured.or_else(variable).or_else(passwd).unwrap_or_else(|| "/bin/sh".into())
}

/// It can only be read by setting it.
#[allow(clippy::useless_conversion)] // it has 16 bits on macOS
fn file_mode_mask() -> u32 {
    let mask = umask(Mode::from_raw_mode(0o077));
    umask(mask);
    u32::from(mask.as_raw_mode())
}
