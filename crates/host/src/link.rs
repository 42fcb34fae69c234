//! A host's connection to one keeper: frames out in order, frames in.

use holdfast_abi::address::Address;
use holdfast_abi::protocol::{FRAME_BYTES_MAX, FromKeeper, ToKeeper, Token, VERSION, Welcome, refused};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// How long a keeper may take to greet: it does nothing that blocks, so only a stopped one takes longer.
const WELCOME_MS: u64 = 3_000;
/// Frames kept for a keeper that does not read; beyond it, it is given up.
const QUEUED_MAX: usize = 1024;

/// An open connection.
#[derive(Debug)]
pub struct Link {
    socket: AsyncFd<OwnedFd>,
    queued: RefCell<VecDeque<Vec<u8>>>,
    scratch: RefCell<Vec<u8>>,
    keeper_pid: Option<u32>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Nobody listens: the keeper is gone.
    #[error("the keeper is gone")]
    Gone,
    /// It speaks a version this build does not know.
    #[error("the keeper speaks a version this host does not know")]
    Version,
    /// It does not answer, or the socket failed.
    #[error("the keeper does not answer")]
    Io(#[from] io::Error),
}

impl Link {
    /// Connects and proves to be the host. `listens` hears which process listens there, whatever it says then.
    pub async fn open(path: &Path, secret: Token, listens: impl FnOnce(u32)) -> Result<(Link, Welcome), LinkError> {
        let socket = connect(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => LinkError::Gone,
            _ => LinkError::Io(error),
        })?;
        // None where it is in a pid namespace that is hidden from us.
        let peer = rustix::net::sockopt::socket_peercred(&socket).ok();
        let keeper_pid = peer.map(|peer| peer.pid.as_raw_pid() as u32).filter(|pid| *pid != 0);
        if let Some(pid) = keeper_pid {
            listens(pid);
        }
        // SAFETY: an owned descriptor: it stays open, and the same, for as long as it is registered.
        let socket = unsafe { AsyncFd::register(socket) }.map_err(io::Error::from)?;
        let link = Link { socket, queued: RefCell::default(), scratch: RefCell::new(Vec::new()), keeper_pid };
        link.send(ToKeeper::Hello { version: VERSION, role: 1, token: secret })?;
        let greeting = tokio::time::timeout(Duration::from_millis(WELCOME_MS), link.greeting());
        let welcome = greeting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok((link, welcome))
    }

    /// The process that listened there, by the kernel's word.
    pub fn keeper_pid(&self) -> Option<u32> {
        self.keeper_pid
    }

    async fn greeting(&self) -> Result<Welcome, LinkError> {
        let mut buffer = [0; FRAME_BYTES_MAX];
        loop {
            self.readable().await?;
            let Some(count) = self.receive(&mut buffer)? else { continue };
            return match FromKeeper::decode(&buffer[..count]) {
                Ok(FromKeeper::Welcome(welcome)) if welcome.version == VERSION => Ok(welcome),
                Ok(FromKeeper::Refused { code: refused::CROWDED, .. }) => {
                    Err(LinkError::Io(io::Error::other("the keeper has too many connections")))
                }
                _ if count == 0 => Err(LinkError::Gone),
                _ => Err(LinkError::Version),
            };
        }
    }

    /// Sends a frame, or queues it behind those that wait.
    pub fn send(&self, frame: ToKeeper<'_>) -> io::Result<()> {
        let mut scratch = self.scratch.borrow_mut();
        frame.encode(&mut scratch);
        let mut queued = self.queued.borrow_mut();
        if queued.is_empty() && self.try_send(&scratch)? {
            return Ok(());
        }
        if queued.len() >= QUEUED_MAX {
            return Err(io::Error::other("the keeper does not read"));
        }
        queued.push_back(scratch.clone());
        Ok(())
    }

    /// Whether frames wait for room in the socket.
    pub fn has_queued(&self) -> bool {
        !self.queued.borrow().is_empty()
    }

    /// Waits until queued frames can go on, and sends them.
    pub async fn flush(&self) -> io::Result<()> {
        let mut guard = self.socket.writable().await?;
        let mut queued = self.queued.borrow_mut();
        while let Some(frame) = queued.front() {
            if !self.try_send(frame)? {
                guard.clear_ready();
                return Ok(());
            }
            queued.pop_front();
        }
        Ok(())
    }

    fn try_send(&self, frame: &[u8]) -> io::Result<bool> {
        loop {
            return match rustix::net::send(self.socket.as_fd(), frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) => Ok(true),
                Err(rustix::io::Errno::AGAIN) => Ok(false),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Waits until there is a frame, or the end.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await.map(|mut guard| guard.retain_ready())
    }

    /// The next frame's length; `None` when there is none now; 0 at the end.
    pub fn receive(&self, buffer: &mut [u8; FRAME_BYTES_MAX]) -> io::Result<Option<usize>> {
        loop {
            let received = self.socket.try_io(tokio::io::Interest::READABLE, |socket| {
                rustix::net::recv(socket.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT).map_err(io::Error::from)
            });
            return match received {
                Ok((count, _)) => Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Said before what is still queued: the next call has that, or the end.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => continue,
                Err(error) => Err(error),
            };
        }
    }
}

/// Connects a sequenced-packet socket.
fn connect(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(Address::of(path)?.path())?)?;
    Ok(socket)
}
