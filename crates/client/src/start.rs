//! Finding the host, and starting it where there is none.

use crate::connection::{CallError, Connection, Greeted, PROGRAM};
use crate::identity::Identity;
use holdfast_abi::address::Address;
use holdfast_types::Home;
use holdfast_wire::Code;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a host may take until it answers: it reads every session's files first, on a machine that may be busy.
pub const HOST_READY_MS: u64 = 15_000;

/// How long after a host was started and still none answers another one is started.
const START_AGAIN: Duration = Duration::from_millis(500);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No host listens.
    #[error("no host is running (its socket would be {0})")]
    NoHost(PathBuf),
    /// The socket is there but cannot be used.
    #[error("cannot reach the host's socket {0}")]
    Socket(PathBuf, #[source] io::Error),
    /// The host could not be started.
    #[error("cannot start the host from {0}")]
    Start(PathBuf, #[source] io::Error),
    /// One listens and does not answer.
    #[error("the host on {0} does not answer; its process may be stopped or stuck")]
    Silent(PathBuf),
    /// It was started and does not answer.
    #[error("the host was started but does not answer; its log is {0}")]
    NotReady(PathBuf),
    /// A host elsewhere cannot be reached.
    #[error("cannot reach the host {name}: {why}")]
    Far {
        /// What people call it.
        name: String,
        /// What went wrong.
        why: String,
        /// What to try.
        hint: Option<String>,
    },
    /// It answered something else than hello.
    #[error("the host refused the connection")]
    Hello(#[source] CallError),
}

/// What it means that a host elsewhere answered, and refused.
pub(crate) fn refused(name: &str, error: CallError) -> ConnectError {
    match error {
        CallError::Fault(fault) if fault.code == Code::Version => ConnectError::Far {
            name: name.to_owned(),
            why: fault.message,
            hint: Some(format!(
                "this is {PROGRAM}, and {name} has another version: install the newer one on both machines, then run on {name}: \
                 holdfast host restart (sessions keep running)"
            )),
        },
        other => ConnectError::Hello(other),
    }
}

/// Connects to a host that runs.
pub fn connect(home: &Home, who: &Identity) -> Result<Connection, ConnectError> {
    connect_as(home, who, PROGRAM)
}

/// The same under the name of another program.
pub fn connect_as(home: &Home, who: &Identity, said: &str) -> Result<Connection, ConnectError> {
    finish(home, greet_as(home, said)?.identify(who))
}

/// Says hello to a host that runs, and nothing of who speaks.
pub fn greet(home: &Home) -> Result<Greeted, ConnectError> {
    greet_as(home, PROGRAM)
}

fn greet_as(home: &Home, said: &str) -> Result<Greeted, ConnectError> {
    let stream = socket(home)?;
    // A stopped or stuck host accepts without answering: report that instead of waiting.
    let patience = Some(Duration::from_millis(HOST_READY_MS));
    stream.set_read_timeout(patience).map_err(|error| ConnectError::Socket(home.host_socket(), error))?;
    finish(home, Greeted::on(stream, said))
}

/// The socket of a host that runs, and nothing said yet.
pub fn socket(home: &Home) -> Result<UnixStream, ConnectError> {
    let path = home.host_socket();
    match Address::of(&path).and_then(|address| UnixStream::connect(address.path())) {
        Ok(stream) => Ok(stream),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Err(ConnectError::NoHost(path))
        }
        Err(error) => Err(ConnectError::Socket(path, error)),
    }
}

/// What a broken beginning means.
pub fn finish<T>(home: &Home, begun: Result<T, CallError>) -> Result<T, ConnectError> {
    let path = || home.host_socket();
    match begun {
        Ok(begun) => Ok(begun),
        Err(CallError::Broken(error)) if error.kind() == io::ErrorKind::WouldBlock => Err(ConnectError::Silent(path())),
        // It died, or yielded to another, between our connect and its hello.
        Err(CallError::Broken(_)) => Err(ConnectError::NoHost(path())),
        Err(error) => Err(ConnectError::Hello(error)),
    }
}

/// The host's socket, and nothing said yet: for what passes on somebody else's words. The host is started where it does not run.
pub fn socket_or_start(home: &Home, program: &Path) -> Result<UnixStream, ConnectError> {
    or_start(home, program, || socket(home))
}

/// Connects to the host, and starts `program host run` first where none listens.
pub fn connect_or_start(home: &Home, program: &Path, who: &Identity) -> Result<Connection, ConnectError> {
    connect_or_start_as(home, program, who, PROGRAM)
}

/// The same under the name of another program.
pub fn connect_or_start_as(
    home: &Home,
    program: &Path,
    who: &Identity,
    said: &str,
) -> Result<Connection, ConnectError> {
    or_start(home, program, || connect_as(home, who, said))
}

/// Says hello to the host, and starts one first where none listens.
pub fn greet_or_start(home: &Home, program: &Path) -> Result<Greeted, ConnectError> {
    or_start(home, program, || greet(home))
}

fn or_start<T>(home: &Home, program: &Path, connect: impl Fn() -> Result<T, ConnectError>) -> Result<T, ConnectError> {
    let deadline = Instant::now() + Duration::from_millis(HOST_READY_MS);
    let mut start_at = Instant::now();
    let mut pause_ms = 1;
    loop {
        match connect() {
            Err(ConnectError::NoHost(_)) if Instant::now() < deadline => {}
            Err(ConnectError::NoHost(_)) => return Err(ConnectError::NotReady(home.host_log())),
            other => return other,
        }
        // Again after a while: the one we started may have yielded to another that died since. One too many yields.
        if Instant::now() >= start_at {
            start_host(home, program).map_err(|e| ConnectError::Start(program.to_owned(), e))?;
            start_at = Instant::now() + START_AGAIN;
        }
        std::thread::sleep(Duration::from_millis(pause_ms));
        pause_ms = (pause_ms * 2).min(50);
    }
}

/// Starts a host in the background, in a session of its own: no terminal's end reaches it.
fn start_host(home: &Home, program: &Path) -> io::Result<()> {
    holdfast_store::make_dir(&home.state)?;
    let log = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(home.host_log())?;
    // `host spawn` forks away and returns at once, so that no zombie is left to us.
    let status = Command::new(program)
        .args(["host", "spawn"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`host spawn` ended with {status}"))) }
}
