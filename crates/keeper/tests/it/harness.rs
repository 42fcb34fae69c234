//! A host and clients small enough to read, and the waiting they need: for a condition, with a deadline.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use holdfast_abi::log::Record;
use holdfast_abi::protocol::{FromKeeper, RIGHT_WRITE, ToKeeper, Token, VERSION, Welcome};
use holdfast_abi::ring::{Base, Copied, Ring, STATE_ENDED};
use holdfast_abi::start::{STARTED_BYTES, Stage, Start, Started};
use holdfast_keeper::{sys, tree};

pub const SECRET: Token = [0x5e; 16];
pub const RING_BYTES: u64 = 1 << 20;
/// Long enough for a busy machine; nothing waits for it that works.
const DEADLINE: Duration = Duration::from_secs(30);

/// Polls until the condition gives something.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(started.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A directory of its own, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("hf-keeper-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn bytes(path: &Path) -> Vec<u8> {
    path.to_str().unwrap().as_bytes().to_vec()
}

/// What a session of `sh -c script` needs.
pub fn shell(dir: &Scratch, script: &str) -> Start {
    Start {
        secret: SECRET,
        ring_path: bytes(&dir.path("ring")),
        socket_path: bytes(&dir.path("sock")),
        ring_bytes: RING_BYTES,
        base: Base::default(),
        size: (80, 24),
        umask: 0o22,
        nofile: 0,
        cwd: bytes(&dir.0),
        argv: ["sh", "-c", script].map(|arg| arg.as_bytes().to_vec()).to_vec(),
        argv0: vec![],
        env: vec![b"PATH=/usr/bin:/bin".to_vec(), b"TERM=dumb".to_vec()],
        ..Start::default()
    }
}

/// Starts a keeper with these bytes on its standard input.
pub fn launch(block: &[u8]) -> (Started, Child) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let process = Command::new(env!("CARGO_BIN_EXE_holdfast-keeper"))
        .arg("ses_test")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    ours.set_read_timeout(Some(DEADLINE)).unwrap();
    ours.write_all(block).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = [0; STARTED_BYTES];
    ours.read_exact(&mut answer).unwrap();
    (Started::decode(&answer).unwrap(), process)
}

/// A session under test.
pub struct Session {
    pub dir: Scratch,
    pub ring: Ring,
    pub keeper: u32,
    pub child: u32,
    socket: PathBuf,
    process: Child,
}

impl Session {
    /// A session of `sh -c script`.
    pub fn shell(script: &str) -> Session {
        let dir = Scratch::new();
        let start = shell(&dir, script);
        Session::start(dir, &start)
    }

    /// A shell whose terminal passes bytes as they are; it prints `ready` first, so ask [`Session::body`] for output.
    pub fn raw(script: &str) -> Session {
        Session::shell(&format!("stty raw -echo; {script}"))
    }

    pub fn start(dir: Scratch, start: &Start) -> Session {
        let (started, process) = launch(&start.encode());
        assert_eq!((started.stage, started.errno), (Stage::Running, 0));
        assert_eq!(started.keeper_pid, process.id());
        let ring = Ring::open(&File::open(dir.path("ring")).unwrap()).unwrap();
        let socket = PathBuf::from(String::from_utf8(start.socket_path.clone()).unwrap());
        Session { dir, ring, keeper: started.keeper_pid, child: started.child_pid, socket, process }
    }

    /// A connection that has said nothing yet.
    pub fn connect(&self) -> Connection {
        Connection::to(&self.socket)
    }

    /// A host.
    pub fn host(&self) -> Connection {
        let mut host = self.connect();
        host.send(ToKeeper::Hello { version: VERSION, role: 1, token: SECRET });
        host.welcomed();
        host
    }

    /// A client the host admitted.
    pub fn client(&self, host: &mut Connection, rights: u8) -> Connection {
        let token = fresh_token();
        host.send(ToKeeper::Admit { token, rights });
        let mut client = self.connect();
        client.send(ToKeeper::Hello { version: VERSION, role: 0, token });
        client.welcomed();
        client
    }

    /// A client that is the writer under this fence.
    pub fn writer(&self, host: &mut Connection, fence: u64) -> Connection {
        let client = self.client(host, RIGHT_WRITE);
        host.send(ToKeeper::Writer { fence, connection: client.number });
        host.sync();
        client
    }

    /// Everything the ring still has.
    pub fn output(&self) -> Vec<u8> {
        let mut output = vec![];
        let mut buffer = vec![0; 65536];
        let mut position = self.ring.oldest();
        while let Copied::Bytes(count @ 1..) = self.ring.copy(position, &mut buffer) {
            output.extend_from_slice(&buffer[..count]);
            position += count as u64;
        }
        output
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output()).into_owned()
    }

    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        let found = || self.text().contains(text).then_some(());
        eventually(&format!("{text:?} in the output"), found);
    }

    /// The log's records from `position` on, as `(kind, flags, count, bytes, stream, seq, fence, connection)` in words.
    pub fn log(&self) -> Vec<String> {
        let base = self.ring.base().log;
        let mut log = vec![0; (self.ring.log_head() - base) as usize];
        self.ring.copy_log(base, &mut log);
        let (mut rest, mut words) = (&log[..], vec![]);
        while let Some((record, length)) = Record::decode(rest) {
            let text = String::from_utf8_lossy(record.bytes).into_owned();
            words.push(format!(
                "{:?} fence {} stream {} seq {} count {} flags {} {text:?}",
                record.kind, record.fence, record.stream, record.seq, record.count, record.flags
            ));
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "the log ends with half a record");
        words
    }

    /// Waits for the keeper's own end; gives the child's status.
    #[track_caller]
    pub fn ended(&mut self) -> u32 {
        let process = &mut self.process;
        let exit = eventually("the keeper's end", || process.try_wait().unwrap());
        assert!(exit.success(), "{exit:?}");
        assert_eq!(self.ring.header().state.load(Ordering::Acquire), STATE_ENDED);
        assert!(self.ring.header().ended_ms.load(Ordering::Relaxed) > 0);
        assert!(!self.socket.exists(), "the socket is still there");
        self.ring.header().status.load(Ordering::Relaxed)
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.keeper)).unwrap().count()
    }

    /// User and system time the keeper has had, in clock ticks.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.keeper)).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_running() {
            for pid in tree::descendants(self.keeper, &tree::Spared::new()) {
                sys::kill(pid, libc::SIGKILL);
            }
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

pub fn fresh_token() -> Token {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mut token = [0xa0; 16];
    token[..4].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    token
}

/// A connection to a keeper.
pub struct Connection {
    pub number: u32,
    pub welcome: Option<Welcome>,
    socket: OwnedFd,
    received: VecDeque<Vec<u8>>,
}

impl Connection {
    pub fn to(path: &Path) -> Connection {
        let path = path.to_str().unwrap().as_bytes();
        // SAFETY: plain socket calls on locals.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            let socket = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_un = std::mem::zeroed();
            address.sun_family = libc::AF_UNIX as u16;
            assert!(path.len() < address.sun_path.len());
            for (to, from) in address.sun_path.iter_mut().zip(path) {
                *to = *from as libc::c_char;
            }
            let length = std::mem::size_of_val(&address) as u32;
            assert_eq!(
                libc::connect(fd, (&raw const address).cast(), length),
                0,
                "{}",
                std::io::Error::last_os_error()
            );
            socket
        };
        Connection { number: 0, welcome: None, socket, received: VecDeque::new() }
    }

    pub fn send(&mut self, frame: ToKeeper<'_>) {
        let mut bytes = vec![];
        frame.encode(&mut bytes);
        self.send_bytes(&bytes).unwrap();
    }

    /// Sends any datagram, waiting while the keeper's side is full.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        // SAFETY: the slice is valid for its length.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        sys::check(sent as i32).map(|_| ())
    }

    /// Takes in whatever is there; false once the connection is closed.
    pub fn pump(&mut self) -> bool {
        let mut buffer = Vec::with_capacity(16384);
        loop {
            match sys::receive(self.socket.as_fd(), &mut buffer) {
                sys::Received::Datagram => self.received.push_back(buffer.clone()),
                sys::Received::Nothing => return true,
                sys::Received::Oversized => panic!("a keeper sent more than fits"),
                sys::Received::Gone => return false,
            }
        }
    }

    /// The first frame that fits, taken out; the others stay.
    pub fn try_take<T>(&mut self, pick: impl Fn(FromKeeper<'_>) -> Option<T>) -> Option<T> {
        self.pump();
        let found = self
            .received
            .iter()
            .enumerate()
            .find_map(|(at, bytes)| FromKeeper::decode(bytes).ok().and_then(&pick).map(|value| (at, value)));
        found.map(|(at, value)| {
            self.received.remove(at);
            value
        })
    }

    /// Whether it was told of the session's end, which stays to be taken.
    fn has_exited(&self) -> bool {
        self.received.iter().any(|bytes| matches!(FromKeeper::decode(bytes), Ok(FromKeeper::Exited { .. })))
    }

    #[track_caller]
    pub fn take<T>(&mut self, what: &str, pick: impl Fn(FromKeeper<'_>) -> Option<T>) -> T {
        eventually(what, || self.try_take(&pick))
    }

    #[track_caller]
    pub fn welcomed(&mut self) {
        let welcome = self.take("Welcome", |frame| match frame {
            FromKeeper::Welcome(welcome) => Some(welcome),
            _ => None,
        });
        assert_eq!(welcome.version, VERSION);
        self.number = welcome.connection;
        self.welcome = Some(welcome);
    }

    #[track_caller]
    pub fn refused(&mut self) -> u8 {
        self.take("Refused", |frame| match frame {
            FromKeeper::Refused { code, .. } => Some(code),
            _ => None,
        })
    }

    #[track_caller]
    pub fn written(&mut self) -> u64 {
        self.take("Written", |frame| match frame {
            FromKeeper::Written { seq, .. } => Some(seq),
            _ => None,
        })
    }

    #[track_caller]
    pub fn woken(&mut self) -> u64 {
        self.take("Wake", wake)
    }

    #[track_caller]
    pub fn keys(&mut self) -> Vec<u8> {
        self.take("Keys", |frame| match frame {
            FromKeeper::Keys { bytes } => Some(bytes.to_vec()),
            _ => None,
        })
    }

    #[track_caller]
    pub fn exited(&mut self) -> (u32, u64) {
        self.take("Exited", |frame| match frame {
            FromKeeper::Exited { status, head } => Some((status, head)),
            _ => None,
        })
    }

    /// Everything sent before has been handled when this returns. Any greeted connection may ask: a kind that is not known
    /// is answered.
    #[track_caller]
    pub fn sync(&mut self) {
        use holdfast_abi::protocol::refused::UNKNOWN;
        self.send_bytes(&[0x7f]).unwrap();
        self.take("an answer", |frame| matches!(frame, FromKeeper::Refused { code: UNKNOWN, .. }).then_some(()));
    }

    #[track_caller]
    pub fn closed(&mut self) {
        eventually("the connection's end", || (!self.pump()).then_some(()));
    }

    pub fn type_in(&mut self, fence: u64, stream: u64, seq: u64, text: &str) {
        self.send(ToKeeper::Input { fence, stream, seq, bytes: text.as_bytes() });
    }
}

pub fn wake(frame: FromKeeper<'_>) -> Option<u64> {
    match frame {
        FromKeeper::Wake { position } => Some(position),
        _ => None,
    }
}

/// Reads the ring as a well-behaved follower does.
pub struct Reader<'a> {
    pub position: u64,
    session: &'a Session,
    unacknowledged: u64,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub fn at(session: &'a Session, position: u64) -> Reader<'a> {
        Reader { position, session, unacknowledged: 0, buffer: vec![0; 65536] }
    }

    /// Reads until the session has ended, sleeping when caught up. Panics when lapped.
    pub fn read_to_end(&mut self, connection: &mut Connection, mut each: impl FnMut(&[u8])) {
        let ring = &self.session.ring;
        loop {
            let ended = ring.header().state.load(Ordering::Acquire) == STATE_ENDED;
            match ring.copy(self.position, &mut self.buffer) {
                Copied::Bytes(0) if ended => return,
                Copied::Bytes(0) => {
                    self.unacknowledged = 0;
                    let position = self.position;
                    // The session may have ended between the look and this: then there is its end to hear, or nobody to tell.
                    let _ = connection.send_bytes(&encoded(ToKeeper::Sleep { position, wake_at: position + 1 }));
                    let woken = eventually("Wake or Exited", || {
                        let woken = connection.try_take(wake).map(Some);
                        woken.or_else(|| connection.has_exited().then_some(None))
                    });
                    assert!(woken.is_none_or(|woken| woken == position), "{woken:?} instead of {position}");
                }
                Copied::Bytes(count) => {
                    each(&self.buffer[..count]);
                    self.position += count as u64;
                    self.unacknowledged += count as u64;
                    if self.unacknowledged >= 65536 {
                        self.unacknowledged = 0;
                        let _ = connection.send_bytes(&encoded(ToKeeper::Ack { position: self.position }));
                    }
                }
                other => panic!("{other:?} at {}", self.position),
            }
        }
    }
}

pub fn encoded(frame: ToKeeper<'_>) -> Vec<u8> {
    let mut bytes = vec![];
    frame.encode(&mut bytes);
    bytes
}

pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !matches!(stat.rsplit(") ").next().and_then(|rest| rest.chars().next()), Some('Z' | 'X')))
}
