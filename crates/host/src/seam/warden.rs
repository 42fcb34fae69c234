//! The warden: a small process for each session with a seam. It has the listener, and outlives hosts.
//!
//! It decides nothing. What the kernel asks it tells the host, and the host's answer it gives to the kernel, once. While there is no host
//! nothing is taken from the kernel: who wants to start a program waits. A host that comes is told all that is not answered. Files that
//! do not exist need no decision. It ends with the last process of its session; where it is killed, the kernel refuses every program
//! from then on.
//!
//! Nobody takes the listener from it: it is not dumpable, and accepts one listener, before the session's command runs.

use super::filter::call_of;
use super::listener::Listener;
use super::talk::{Answer, BLIND, Exec, GATE, HELLO_BYTES, HOST, MARK, READY, Told, decode, encode};
use super::target::{self, Found};
use crate::{bind_socket, is_ours};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the session's command may take to come with the listener, on a machine that is very busy.
const HAND_OVER_WAIT: Duration = Duration::from_secs(30);
/// How often those that wait are looked at: whoever was interrupted needs no answer any more.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often it looks whether there can be another host, while there is none.
const LOOK_FOR_HOST: Duration = Duration::from_secs(5);
/// Questions that are taken from the kernel and not answered. The host lets fewer wait for humans.
const TAKEN_MAX: usize = 512;
/// Questions that are taken before a host is listened to again.
const AT_ONCE: usize = 32;
/// Connections that have not said what they are.
const NEWCOMERS_MAX: usize = 8;
/// How long they have.
const HELLO_WAIT: Duration = Duration::from_secs(2);
/// What a host that does not read is sent at most, before it is taken for gone.
const UNSENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long an answer counts for the same program again. A changed rule counts this much later at most.
const AGAIN: Duration = Duration::from_millis(250);
/// Programs that are remembered for that.
const AGAIN_MAX: usize = 1024;

/// A program with its words and its directory.
type Same = (String, String, Vec<String>, String);

fn same(exec: &Exec) -> Same {
    (exec.path.clone(), exec.program.clone(), exec.words.clone(), exec.cwd.clone())
}

/// A host that has shown its secret.
struct Host {
    stream: UnixStream,
    unread: Vec<u8>,
    unsent: Vec<u8>,
}

impl Host {
    fn new(stream: UnixStream) -> Host {
        Host { stream, unread: Vec::new(), unsent: Vec::new() }
    }

    fn tell(&mut self, told: &Told) {
        self.unsent.extend(encode(told));
    }

    /// Sends what it takes; an error: it is gone.
    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.unsent.len() > UNSENT_BYTES_MAX { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Its answers; an error: it is gone.
    fn answers(&mut self) -> io::Result<Vec<Answer>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut answers = Vec::new();
        while let Some(answer) = decode(&mut self.unread)? {
            answers.push(answer);
        }
        Ok(answers)
    }
}

struct Warden {
    secret: [u8; 16],
    /// Programs that what becomes the session's command starts on its way there: the host started that itself.
    free: u8,
    listener: Option<Listener>,
    host: Option<Host>,
    newcomers: Vec<(UnixStream, Instant)>,
    /// Not answered, by the kernel's numbers, which grow.
    waiting: BTreeMap<u64, Box<Exec>>,
    /// What is allowed without a question, and since when. The host says so only where all processes are one actor's, and hangs up when
    /// that ends.
    allowed: HashMap<Same, Instant>,
}

/// The whole life of a warden. `starter` is the host that started it, which says how many programs are free and the secret.
pub fn warden(path: &Path, mut starter: UnixStream) -> io::Result<()> {
    let mut said = [0; HELLO_BYTES];
    starter.read_exact(&mut said)?;
    let [free, secret @ ..] = said;
    let socket = UnixListener::from(bind_socket(path)?);
    starter.write_all(&[READY])?;
    drop(starter);
    let own = Own { path: path.to_owned(), inode: std::fs::symlink_metadata(path)?.ino() };
    let (newcomers, waiting, allowed) = (Vec::new(), BTreeMap::new(), HashMap::new());
    let mut warden = Warden { secret, free, listener: None, host: None, newcomers, waiting, allowed };
    let served = warden.serve(&socket, &own);
    if own.is_there() {
        let _ = std::fs::remove_file(path);
    }
    served
}

/// Its socket's file. Another life of the session puts another there, and its end removes it.
struct Own {
    path: PathBuf,
    inode: u64,
}

impl Own {
    fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.ino() == self.inode)
    }
}

impl Warden {
    fn serve(&mut self, socket: &UnixListener, own: &Own) -> io::Result<()> {
        let begun = Instant::now();
        let mut looked = begun;
        loop {
            if self.listener.is_none() && begun.elapsed() > HAND_OVER_WAIT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let ready = self.wait(socket)?;
            if ready.is_over {
                return Ok(());
            }
            if ready.socket
                && let Ok((stream, _)) = socket.accept()
                && is_ours(&stream)
                && stream.set_nonblocking(true).is_ok()
                && self.newcomers.len() < NEWCOMERS_MAX
            {
                self.newcomers.push((stream, Instant::now()));
            }
            self.hear_newcomers();
            self.hear_host();
            if ready.asked {
                self.take()?;
            }
            // No host will come any more: what is left of the session starts nothing.
            if self.host.is_none() && self.newcomers.is_empty() && !own.is_there() {
                return Ok(());
            }
            if looked.elapsed() >= LOOK_AGAIN {
                looked = Instant::now();
                self.drop_gone();
            }
            if self.host.as_mut().is_some_and(|host| host.flush().is_err()) {
                self.host_gone();
            }
        }
    }

    /// Whether anything is taken from the kernel now.
    fn takes(&self) -> bool {
        (self.free > 0 || self.host.is_some()) && self.waiting.len() < TAKEN_MAX
    }

    fn wait(&self, socket: &UnixListener) -> io::Result<Ready> {
        let mut polled = vec![PollFd::new(socket, PollFlags::IN)];
        if let Some(listener) = &self.listener {
            // Also where nothing is taken: it says when the last process is gone.
            polled.push(PollFd::new(listener, if self.takes() { PollFlags::IN } else { PollFlags::empty() }));
        }
        if let Some(host) = &self.host {
            let sends = if host.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            polled.push(PollFd::new(&host.stream, PollFlags::IN | sends));
        }
        for (stream, _) in &self.newcomers {
            polled.push(PollFd::new(stream, PollFlags::IN));
        }
        let often = Timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN.subsec_nanos().into() };
        let seldom = Timespec { tv_sec: LOOK_FOR_HOST.as_secs() as _, tv_nsec: 0 };
        let until = match &self.host {
            _ if !self.waiting.is_empty() || !self.newcomers.is_empty() => Some(&often),
            // Where nobody waits for anything it sleeps.
            Some(_) => None,
            None => Some(&seldom),
        };
        match poll(&mut polled, until) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let listener = self.listener.as_ref().map_or(PollFlags::empty(), |_| polled[1].revents());
        Ok(Ready {
            socket: !polled[0].revents().is_empty(),
            asked: listener.contains(PollFlags::IN),
            is_over: listener.intersects(PollFlags::HUP | PollFlags::ERR) && !listener.contains(PollFlags::IN),
        })
    }

    fn hear_newcomers(&mut self) {
        for (stream, since) in std::mem::take(&mut self.newcomers) {
            match hello(&stream) {
                Ok(None) if since.elapsed() < HELLO_WAIT => self.newcomers.push((stream, since)),
                Ok(Some((said, _))) if said[0] == HOST && is_same(&said[1..], &self.secret) && !is_gated(&stream) => {
                    self.greet(stream);
                }
                Ok(Some((said, Some(fd)))) if said[0] == GATE => self.hand_over(&stream, &said, fd),
                Ok(None | Some(_)) | Err(_) => {}
            }
        }
    }

    /// The newest host counts.
    fn greet(&mut self, stream: UnixStream) {
        let mut host = Host::new(stream);
        for exec in self.waiting.values() {
            host.tell(&Told::Exec(exec.clone()));
        }
        self.allowed.clear();
        self.host = Some(host);
    }

    fn host_gone(&mut self) {
        self.host = None;
        self.allowed.clear();
    }

    /// Takes the listener, once, from who can be looked into.
    fn hand_over(&mut self, mut stream: &UnixStream, said: &[u8; HELLO_BYTES], fd: OwnedFd) {
        let peer = rustix::net::sockopt::socket_peercred(stream).ok();
        let pid = peer.and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok());
        let address = said[1..9].try_into().map(u64::from_le_bytes);
        let sees = matches!((pid, address), (Some(pid), Ok(address)) if target::has(pid, address, &MARK));
        if self.listener.is_some() {
            return;
        }
        if sees {
            self.listener = Some(Listener::new(fd));
        }
        let _ = stream.write_all(&[if sees { READY } else { BLIND }]);
    }

    fn hear_host(&mut self) {
        let Some(host) = &mut self.host else { return };
        let Ok(answers) = host.answers() else { return self.host_gone() };
        for answer in answers {
            // Twice is once.
            let (Some(exec), Some(listener)) = (self.waiting.remove(&answer.id), &self.listener) else { continue };
            if answer.allow {
                listener.allow(answer.id);
                if answer.again {
                    if self.allowed.len() >= AGAIN_MAX {
                        self.allowed.clear();
                    }
                    self.allowed.insert(same(&exec), Instant::now());
                }
                continue;
            }
            // While it waits its terminal is known.
            if let Some(line) = &answer.line {
                target::say(exec.pid, line);
            }
            listener.refuse(answer.id, libc::EACCES);
        }
    }

    /// Takes what the kernel asks.
    fn take(&mut self) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let Some(listener) = self.listener.as_ref().filter(|_| self.takes()) else { return Ok(()) };
            let Some(asked) = listener.receive()? else { return Ok(()) };
            let found =
                call_of(asked.arch, asked.number).map(|call| target::read(asked.id, asked.pid, call, asked.args));
            // What was read may be of another process.
            if listener.waits(asked.id) {
                match found {
                    None => listener.refuse(asked.id, libc::ENOSYS),
                    Some(Found::Fails(errno)) => listener.refuse(asked.id, errno),
                    Some(Found::Exec(exec)) => self.taken(exec),
                }
            }
            // Another would block.
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let is_next = |listener| matches!(poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&now)), Ok(1));
            if !self.listener.as_ref().is_some_and(is_next) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A program that exists: free, allowed as the same was a moment ago, or for the host to decide.
    fn taken(&mut self, exec: Box<Exec>) {
        // Whatever the host said or did before this process came here counts.
        self.hear_host();
        let is_same = || self.allowed.get(&same(&exec)).is_some_and(|since| since.elapsed() < AGAIN);
        if self.free > 0 || (exec.is_whole && !self.allowed.is_empty() && is_same()) {
            self.free = self.free.saturating_sub(1);
            if let Some(listener) = &self.listener {
                listener.allow(exec.id);
            }
            return;
        }
        if let Some(host) = &mut self.host {
            host.tell(&Told::Exec(exec.clone()));
        }
        self.waiting.insert(exec.id, exec);
    }

    /// Those whose process was killed wait for nothing. Who was interrupted and would handle that is let out, without the program.
    fn drop_gone(&mut self) {
        let Some(listener) = &self.listener else { return };
        let is_gone = |id: u64, pid: u32| !listener.waits(id) || target::is_interrupted(pid);
        let gone = self.waiting.iter().filter(|(id, exec)| is_gone(**id, exec.pid));
        for id in gone.map(|(id, _)| *id).collect::<Vec<u64>>() {
            listener.refuse(id, libc::EINTR);
            self.waiting.remove(&id);
            if let Some(host) = &mut self.host {
                host.tell(&Told::Gone(id));
            }
        }
    }
}

struct Ready {
    socket: bool,
    asked: bool,
    is_over: bool,
}

/// Whether who connected has more filters on it than this process: then it may be behind the one that is watched here, and would answer
/// for itself. It can read the secret where it is the same user.
fn is_gated(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok();
    let pid = peer.map(|peer| peer.pid.as_raw_nonzero().get().to_string());
    match (target::filters("self"), pid.as_deref().map(target::filters)) {
        (Some(own), Some(Some(theirs))) => theirs > own,
        // Before Linux 5.9 nobody tells.
        (None, _) => false,
        (Some(_), _) => true,
    }
}

/// What a newcomer says, with the descriptor it sends; none: nothing yet.
fn hello(stream: &UnixStream) -> io::Result<Option<([u8; HELLO_BYTES], Option<OwnedFd>)>> {
    let mut said = [0; HELLO_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = match recvmsg(stream.as_fd(), &mut [IoSliceMut::new(&mut said)], &mut control, RecvFlags::CMSG_CLOEXEC) {
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
        got => got?,
    };
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    if got.bytes != HELLO_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Some((said, fd)))
}

/// Without telling by its time where they differ.
fn is_same(a: &[u8], b: &[u8; 16]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
