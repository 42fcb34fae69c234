//! A session with a seam starts: its warden first, then what hands it the listener and becomes the command.

use super::filter;
use super::talk::{GATE, HELLO_BYTES, MARK, READY};
use crate::birth::Birth;
use crate::session::{Session, Shared};
use crate::store::Spec;
use holdfast_abi::address::Address;
use holdfast_abi::start::Start;
use holdfast_wire::{Code, Fault};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A warden is there at once, unless the machine is very busy.
const READY_WAIT: Duration = Duration::from_secs(10);
/// All a thread needs that waits for a process to end.
const STACK_BYTES: usize = 64 * 1024;

/// Whether a session can have the seam that it asks for.
pub(crate) fn with_its_seam(birth: &Birth) -> Result<(), Fault> {
    if birth.gate.is_none() {
        return Ok(());
    }
    if birth.is_portable {
        return Err(Fault::new(
            Code::CannotStart,
            "a session cannot be portable and have a gate: no checkpoint carries it",
        )
        .hint("leave out --portable or --gate"));
    }
    can_here().map_err(|why| {
        Fault::new(Code::CannotStart, format!("programs cannot be judged here: {why}"))
            .hint("leave out --gate; what this machine supports: holdfast doctor")
    })
}

/// Whether programs can be judged on this machine, by this user; or why not.
pub fn can_here() -> Result<(), &'static str> {
    filter::can()?;
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "" | "0" => Ok(()),
        "1" | "2" if rustix::process::geteuid().is_root() => Ok(()),
        _ => Err("the kernel lets no process look into another that is not below it (kernel.yama.ptrace_scope)"),
    }
}

/// Starts a session's command behind the filter, if it has a seam: last, so that everything else happens behind it.
pub(crate) async fn put_up(shared: &Shared, session: &Session, spec: &Spec, start: &mut Start) -> Result<(), Fault> {
    if spec.gate.is_none() {
        return Ok(());
    }
    let cannot = |error: io::Error| Fault::new(Code::CannotStart, format!("cannot have programs judged: {error}"));
    let socket = shared.home.warden_socket(session.id);
    // What is on the way to the command: it puts up a wall, or becomes another user.
    let free = 1 + u8::from(spec.wall.is_some()) + u8::from(spec.user.is_some());
    begin(&socket, free, start.secret).await.map_err(cannot)?;
    let program = crate::program().map_err(cannot)?.into_os_string().into_vec();
    let argv0 = std::mem::take(&mut start.argv0);
    let words = [program, b"session".to_vec(), b"gate".to_vec(), socket.into_os_string().into_vec(), argv0];
    start.argv.splice(0..0, words);
    Ok(())
}

/// Starts a warden, and waits until it can be reached.
async fn begin(socket: &Path, free: u8, secret: [u8; 16]) -> io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(crate::program()?)
        .args(["session", "warden"])
        .arg(socket)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // It lives as long as its session, perhaps longer than this host.
    std::thread::Builder::new().name("warden".into()).stack_size(STACK_BYTES).spawn(move || child.wait())?;
    ours.set_nonblocking(true)?;
    let mut stream = tokio::net::UnixStream::from_std(ours)?;
    let answer = async {
        let hello: Vec<u8> = std::iter::once(free).chain(secret).collect();
        stream.write_all(&hello).await?;
        let mut said = [0];
        stream.read_exact(&mut said).await?;
        if said[0] == READY { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    };
    match tokio::time::timeout(READY_WAIT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Puts the filter on this process, and hands the listener to the warden at this socket. From here on every program is asked about.
pub fn hand_over(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(Address::of(socket)?.path())?;
    stream.set_read_timeout(Some(READY_WAIT))?;
    let listener = filter::install()?;
    let mut said = [0; HELLO_BYTES];
    said[0] = GATE;
    said[1..9].copy_from_slice(&(MARK.as_ptr() as u64).to_le_bytes());
    let fds = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(stream.as_fd(), &[IoSlice::new(&said)], &mut control, SendFlags::NOSIGNAL)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer[0] == READY {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "its warden may not look into its processes"))
    }
}
