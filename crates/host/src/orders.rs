//! What a keeper is told to start: program, environment, terminal, and what the shell reads so that it tells what it does.

use crate::birth::Birth;
use crate::session::{Session, Shared};
use crate::shells::{self, Integrated};
use crate::store::Spec;
use crate::user::Other;
use holdfast_abi::start::Start;
use holdfast_wire::{Code, Fault};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How a shell is started so that it tells what it does. Whatever is in the way of that, it starts.
pub(crate) fn integrate(shared: &Shared, session: &Session, start: &mut Start, birth: &Birth) -> Option<Integrated> {
    if birth.integrate == Some(false) {
        return None;
    }
    // Most commands are none, and read no scripts.
    shells::Kind::of(birth.command.first()?)?;
    let scripts = shells::install(&shared.home.state).ok()?;
    let argv0 = birth.argv0.as_deref();
    let seen = session.seen_shell_dir();
    let shell = shells::integrate(&birth.command, argv0, &mut start.env, &scripts, &seen)?;
    start.argv = shell.argv.iter().map(|argument| argument.clone().into_bytes()).collect();
    Some(shell)
}

/// What the keeper is told.
pub(crate) fn orders(session: &Session, spec: &Spec, birth: &Birth, secret: [u8; 16]) -> Result<Start, Fault> {
    let mut env: Vec<Vec<u8>> = birth.env.iter().map(|pair| pair.clone().into_bytes()).collect();
    let mut set = |key: &str, value: &[u8]| {
        let start = format!("{key}=").into_bytes();
        env.retain(|pair| !pair.starts_with(&start));
        env.push([start.as_slice(), value].concat());
    };
    // Who started the session is not who acts inside it.
    set("HOLDFAST_ACTOR", b"");
    set("HOLDFAST_SESSION", spec.id.to_string().as_bytes());
    set("HOLDFAST_SESSION_NAME", spec.name.as_str().as_bytes());
    // For resources that check who acts: both grow with each life.
    set("HOLDFAST_INCARNATION", session.incarnation().max(1).to_string().as_bytes());
    set("HOLDFAST_FENCE", crate::lives::token(session, spec).to_string().as_bytes());
    let is_own = birth.other.is_none();
    if is_own {
        let seen = crate::portable::seen_dir(session, spec);
        set("HOLDFAST_ENV", seen.join("env").as_os_str().as_bytes());
        // The same of each life, for processes that outlive one.
        set("HOLDFAST_LIFE", seen.join(crate::lives::LIFE).as_os_str().as_bytes());
    }
    // The link follows whoever attaches last; it starts with the agent of whoever started the session.
    let agent = birth.env.iter().find_map(|pair| pair.strip_prefix("SSH_AUTH_SOCK=")).filter(|_| is_own);
    if let Some(agent) = agent.filter(|path| !path.is_empty())
        && std::os::unix::fs::symlink(agent, &session.agent_link).is_ok()
    {
        set("SSH_AUTH_SOCK", session.agent_link.as_os_str().as_bytes());
    }
    let (argv, argv0) = match &birth.other {
        Some(other) => (as_other(other, birth)?, Vec::new()),
        None => (
            birth.command.iter().map(|arg| arg.clone().into_bytes()).collect(),
            birth.argv0.clone().unwrap_or_default().into_bytes(),
        ),
    };
    Ok(Start {
        secret,
        ring_path: session.dir.join("ring").as_os_str().as_bytes().to_vec(),
        socket_path: session.socket.as_os_str().as_bytes().to_vec(),
        ring_bytes: spec.ring_bytes,
        base: birth.base,
        size: (spec.size.cols(), spec.size.rows()),
        umask: birth.umask,
        nofile: birth.nofile,
        // Another user enters its directory with its own rights.
        cwd: if is_own { birth.cwd.clone().into_bytes() } else { b"/".to_vec() },
        argv,
        argv0,
        env,
        preface: Vec::new(),
        streams: Vec::new(),
        lease: None,
    })
}

/// The program that becomes another user, and then the command.
fn as_other(other: &Other, birth: &Birth) -> Result<Vec<Vec<u8>>, Fault> {
    // Never looked up by its name: it starts as root.
    let program = crate::program()
        .map_err(|error| Fault::new(Code::CannotStart, format!("cannot find the holdfast program itself: {error}")))?;
    let groups: Vec<String> = other.groups.iter().map(u32::to_string).collect();
    let ids = [other.uid.to_string(), other.gid.to_string(), groups.join(",")];
    let argv0 = birth.argv0.clone().unwrap_or_default();
    let words = ["session", "as"].map(str::to_owned).into_iter().chain(ids).chain([birth.cwd.clone(), argv0]);
    let words = words.chain(birth.command.iter().cloned()).map(String::into_bytes);
    Ok(std::iter::once(program.into_os_string().into_vec()).chain(words).collect())
}
