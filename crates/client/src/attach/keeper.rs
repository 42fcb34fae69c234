//! A client's connection to a keeper.

use holdfast_abi::address::Address;
use holdfast_abi::protocol::{FRAME_BYTES_MAX, FromKeeper, ToKeeper, Token, VERSION, Welcome};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// An admitted connection.
#[derive(Debug)]
pub struct Keeper {
    socket: OwnedFd,
    /// What the keeper said at the door.
    pub welcome: Welcome,
}

impl Keeper {
    /// Connects and shows the token the host gave.
    pub fn open(path: &Path, token: Token) -> io::Result<Keeper> {
        let socket = connect(path)?;
        let welcome = Welcome {
            version: 0,
            connection: 0,
            features: 0,
            head: 0,
            log_head: 0,
            fence: 0,
            cols: 0,
            rows: 0,
            child_pid: 0,
        };
        let mut keeper = Keeper { socket, welcome };
        let mut hello = Vec::new();
        ToKeeper::Hello { version: VERSION, role: 0, token }.encode(&mut hello);
        keeper.send(&hello)?;
        let mut buffer = [0; FRAME_BYTES_MAX];
        let count = keeper.receive(&mut buffer, RecvFlags::empty())?;
        match FromKeeper::decode(&buffer[..count.unwrap_or(0)]) {
            Ok(FromKeeper::Welcome(welcome)) => keeper.welcome = welcome,
            _ if count == Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            other => return Err(io::Error::other(format!("the keeper did not greet: {other:?}"))),
        }
        Ok(keeper)
    }

    /// Sends a frame; the keeper always reads, so this does not block for long.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        loop {
            match rustix::net::send(&self.socket, frame, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next frame's length if there is one; `Some(0)` at the end.
    pub fn receive_now(&self, buffer: &mut [u8; FRAME_BYTES_MAX]) -> io::Result<Option<usize>> {
        self.receive(buffer, RecvFlags::DONTWAIT)
    }

    fn receive(&self, buffer: &mut [u8; FRAME_BYTES_MAX], flags: RecvFlags) -> io::Result<Option<usize>> {
        loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], flags) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                // Said before what is still queued: the next call has that, or the end.
                Err(rustix::io::Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Where to poll.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connects a sequenced-packet socket.
fn connect(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(Address::of(path)?.path())?)?;
    Ok(socket)
}

/// How long a process that was killed may take from letting go of its sockets to being gone.
const DYING_MS: u64 = 300;

/// Whether a process runs; one that has ended and was not collected yet does not, nor does one that is about to.
pub fn lives(pid: u32) -> bool {
    let Some(process) = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return false;
    };
    let patience = Duration::from_millis(DYING_MS).try_into().expect("short times fit");
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience));
    matches!(ended, Ok(0))
}
