//! The holder: a small process that keeps the HTTP port open from one host to the next.
//!
//! A port is free the moment its last descriptor is closed, and whoever binds it then is sent what browsers meant for the host. So a
//! second process has the listening socket too. It accepts nothing from the network. It waits at a socket in the home, hands the
//! listening socket to each host that comes, and goes when it is told to. A host whose holder was killed starts another.
//!
//! It outlives versions. All there is to its protocol: it says [`GREETING`], with the listening socket; a host that stops says
//! [`BYE`]; whoever wants the port to be free says [`LET_GO`], and waits until the connection is closed.

use crate::own::Own;
use crate::{bind_socket, is_ours};
use holdfast_abi::address::Address;
use holdfast_types::Home;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socket_with,
};
use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

const GREETING: u8 = b'1';
const BYE: u8 = b'b';
const LET_GO: u8 = b'x';

/// How long the port is kept for the host after one that stopped as it was asked to: longer than a host takes to start.
const NEXT_HOST_WAIT: Duration = Duration::from_secs(30);
/// Connections to a holder at once: one host, the next one, and a command or two.
const CONNECTIONS_MAX: usize = 16;
/// A holder answers at once, unless it is stopped or stuck.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// How soon the next holder follows one that was killed, and how slowly where they fail one after the other.
const START_PAUSE_MIN: Duration = Duration::from_millis(20);
const START_PAUSE_MAX: Duration = Duration::from_secs(10);

/// The whole life of a holder: `listener` is kept, `host` is the connection to the host that started it.
pub fn hold(home: &Home, listener: &OwnedFd, host: UnixStream) -> io::Result<()> {
    let path = home.http_socket();
    let socket = UnixListener::from(bind_socket(&path)?);
    // For as long as we are here. Where it cannot be had (no IPv6, or somebody is there), the port itself is still held.
    let _other = other_family(listener).ok();
    let mut hosts = vec![host];
    let mut until: Option<Instant> = None;
    while until.is_none_or(|until| Instant::now() < until) {
        let fds: Vec<_> = std::iter::once(socket.as_fd()).chain(hosts.iter().map(AsFd::as_fd)).collect();
        let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ });
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        drop(polled);
        for at in (0..hosts.len()).rev().filter(|at| ready[at + 1]) {
            match heard(&hosts[at]) {
                None => {}
                Some(LET_GO) => {
                    // Before the connections close: who hears that may bind the path next.
                    let _ = std::fs::remove_file(&path);
                    return Ok(());
                }
                Some(said) => {
                    hosts.remove(at);
                    until = (said == BYE && hosts.is_empty()).then(|| Instant::now() + NEXT_HOST_WAIT).or(until);
                }
            }
        }
        if ready[0]
            && let Ok((stream, _)) = socket.accept()
            && is_ours(&stream)
            && hosts.len() < CONNECTIONS_MAX
            && greet(&stream, listener).is_ok()
        {
            hosts.push(stream);
            until = None;
        }
    }
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// The same port of the machine's own address in the other family, bound and never listened at: browsers that are sent to `localhost`
/// try both, and get no answer from a program that took the one that the host does not use.
fn other_family(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let has = TcpListener::from(listener.try_clone()?).local_addr()?;
    let (family, ip) = match has.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => (AddressFamily::INET6, IpAddr::V6(Ipv6Addr::LOCALHOST)),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => (AddressFamily::INET, IpAddr::V4(Ipv4Addr::LOCALHOST)),
        IpAddr::V4(_) | IpAddr::V6(_) => return Ok(None),
    };
    // Without SO_REUSEADDR: with it others that have it too could bind the port as well.
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(ip, has.port()))?;
    Ok(Some(socket))
}

/// What a host said; nothing where it has said nothing yet, and zero where it is gone.
fn heard(mut host: &UnixStream) -> Option<u8> {
    let mut said = [0];
    match host.read(&mut said) {
        Ok(0) => Some(0),
        Ok(_) => Some(said[0]),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        Err(_) => Some(0),
    }
}

fn greet(stream: &UnixStream, listener: &OwnedFd) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let fds = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(stream, &[IoSlice::new(&[GREETING])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// What a holder gives: the listening socket, and the connection on which it hears of us.
struct Held {
    listener: TcpListener,
    holder: UnixStream,
}

/// What the holder of this home has, if there is one.
fn take(home: &Home) -> io::Result<Option<Held>> {
    let path = home.http_socket();
    let holder = match Address::of(&path).and_then(|address| UnixStream::connect(address.path())) {
        Ok(holder) => holder,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    holder.set_read_timeout(Some(ANSWER_WAIT))?;
    let mut said = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(&holder, &mut [IoSliceMut::new(&mut said)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let rights = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    match (got.bytes, said[0], rights) {
        (1, GREETING, Some(listener)) => Ok(Some(Held { listener: listener.into(), holder })),
        // It was just going.
        (0, ..) => Ok(None),
        _ => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the process that holds the HTTP port says something else"))
        }
    }
}

/// Frees the port that was held for the next host of this home, if any is.
pub fn let_go(home: &Home) -> io::Result<()> {
    let Some(Held { mut holder, .. }) = take(home)? else { return Ok(()) };
    holder.write_all(&[LET_GO])?;
    // Until it has closed: the next holder binds the same path, and the next host perhaps the same port.
    holder.read(&mut [0]).map(|_| ())
}

/// Whether a listening socket is the one that is wanted; port 0 is whichever was found.
fn fits(listener: &TcpListener, wanted: SocketAddr) -> bool {
    listener
        .local_addr()
        .is_ok_and(|has| has.ip() == wanted.ip() && (wanted.port() == 0 || has.port() == wanted.port()))
}

/// The holder of the port that this host listens at.
#[derive(Debug, Default)]
pub struct Holder(RefCell<Option<UnixStream>>);

impl Holder {
    /// The socket to listen with, where one was held for us; a port that is not wanted any more is let go.
    pub fn inherit(&self, home: &Home, wanted: Option<SocketAddr>) -> Option<TcpListener> {
        let held = match take(home) {
            Ok(held) => held?,
            Err(error) => {
                tracing::warn!("the process that holds the HTTP port does not answer: {error}");
                return None;
            }
        };
        if wanted.is_some_and(|wanted| fits(&held.listener, wanted)) {
            *self.0.borrow_mut() = Some(held.holder);
            return Some(held.listener);
        }
        drop(held);
        if let Err(error) = let_go(home) {
            tracing::warn!("a port that is not wanted any more stays open: {error}");
        }
        None
    }

    /// Sees to it that somebody beside us has the socket, for as long as this host runs.
    pub async fn keep(self: Rc<Self>, listener: TcpListener, own: Arc<Own>) {
        let mut pause = START_PAUSE_MIN;
        loop {
            let inherited = self.0.borrow_mut().take();
            let began = Instant::now();
            match inherited
                .map_or_else(|| start(&listener).map(|(child, holder)| (Some(child), holder)), |h| Ok((None, h)))
            {
                Ok((child, holder)) => self.watch(child, holder, &own).await,
                Err(error) => tracing::error!("nobody holds the HTTP port beside this host: {error}"),
            }
            pause = if began.elapsed() > START_PAUSE_MAX { START_PAUSE_MIN } else { (pause * 2).min(START_PAUSE_MAX) };
            tokio::time::sleep(pause).await;
        }
    }

    /// Until the holder is gone.
    async fn watch(&self, child: Option<Child>, holder: UnixStream, own: &Own) {
        let pid = child.as_ref().map_or_else(|| peer(&holder), |child| Some(child.id()));
        pid.inspect(|pid| own.holds(Some(*pid)));
        let watched = holder.set_nonblocking(true).and_then(|()| holder.try_clone());
        let watched = watched.and_then(tokio::net::UnixStream::from_std);
        *self.0.borrow_mut() = Some(holder);
        match watched {
            Ok(watched) => gone(&watched).await,
            Err(error) => tracing::warn!("the process that holds the HTTP port is not watched: {error}"),
        }
        own.holds(None);
        self.0.borrow_mut().take();
        // It has ended, or ends now; nobody else would reap it.
        if let Some(mut child) = child {
            let _ = tokio::task::spawn_blocking(move || child.wait()).await;
        }
    }

    /// This host stops as it was asked to: the port is kept for the next one, and not for ever.
    pub fn bye(&self) {
        let holder = self.0.borrow();
        let _ = holder.as_ref().map(|mut holder| holder.write(&[BYE]));
    }
}

async fn gone(holder: &tokio::net::UnixStream) {
    while holder.readable().await.is_ok() {
        match holder.try_read(&mut [0; 16]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

fn peer(holder: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(holder).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// Starts a holder. It gets what it needs as its standard input and output: nothing else of ours is open in it.
fn start(listener: &TcpListener) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let child = Command::new(crate::program()?)
        .args(["host", "hold"])
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener.try_clone()?)))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::inherit())
        .spawn()?;
    Ok((child, ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A holder on a thread, as it is in a process of its own.
    fn held(home: &Home, listener: &TcpListener) -> (UnixStream, std::thread::JoinHandle<io::Result<()>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let (home, listener) = (home.clone(), OwnedFd::from(listener.try_clone().unwrap()));
        let holds = std::thread::spawn(move || hold(&home, &listener, theirs));
        (ours, holds)
    }

    #[test]
    fn a_holder_hands_the_port_to_each_host_and_goes_when_told() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        std::fs::create_dir(&home.run).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (first, holds) = held(&home, &listener);
        drop(listener);
        let next = loop {
            if let Some(next) = take(&home).unwrap() {
                break next;
            }
            std::thread::yield_now();
        };
        assert!(fits(&next.listener, at) && fits(&next.listener, "127.0.0.1:0".parse().unwrap()));
        assert!(!fits(&next.listener, "127.0.0.1:1".parse().unwrap()));
        drop((first, next));
        assert!(TcpListener::bind(at).is_err(), "no host is there, and the port is held");
        // A host that wants another port, or none, frees it.
        assert!(Holder::default().inherit(&home, Some("127.0.0.1:1".parse().unwrap())).is_none());
        holds.join().unwrap().unwrap();
        drop(TcpListener::bind(at).expect("it is free"));
        assert!(take(&home).unwrap().is_none() && !home.http_socket().exists());
    }
}
