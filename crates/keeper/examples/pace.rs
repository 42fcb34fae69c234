//! How fast a keeper is: `cargo run --release --example pace -- <keeper binary>`.
//!
//! Prints the time of a key from a client's terminal to its echo there, once echoed by the session's terminal and once by
//! a program, and the time 100 MB of output take unread and read by a holding follower.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_abi::protocol::{FOLLOW_HOLDS, PATTERNS_MAX, TTY_KEYS, TTY_PAINT, ToKeeper, VERSION, WRITER_ANY};
use holdfast_abi::ring::{Copied, Ring, STATE_ENDED};
use holdfast_abi::start::{STARTED_BYTES, Stage, Start, Started};
use holdfast_keeper::terminal::{Output, Terminal, modes};
use holdfast_keeper::{sys, tree};

/// As many as the log takes: nobody drains it here.
const KEYS: usize = 900;
const FLOOD_BYTES: u64 = 100_000_000;

fn main() {
    let keeper = std::env::args().nth(1).expect("the keeper binary comes first");
    echo(&keeper, "terminal", "sleep 1000");
    echo(&keeper, "program", "stty raw -echo; exec cat");
    flood(&keeper, false);
    flood(&keeper, true);
}

struct Session {
    dir: PathBuf,
    ring: Ring,
    keeper: Child,
}

impl Session {
    fn start(keeper: &str, script: &str) -> Session {
        let dir = std::env::temp_dir().join(format!("hf-pace-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a directory of our own");
        let path = |name: &str| dir.join(name).into_os_string().into_encoded_bytes();
        let start = Start {
            ring_path: path("ring"),
            socket_path: path("sock"),
            ring_bytes: 1 << 20,
            size: (80, 24),
            umask: 0o22,
            cwd: b"/".to_vec(),
            argv: ["sh", "-c", script].map(|arg| arg.as_bytes().to_vec()).to_vec(),
            env: vec![b"PATH=/usr/bin:/bin".to_vec()],
            ..Start::default()
        };
        let (mut ours, theirs) = UnixStream::pair().expect("a socket pair");
        let keeper = Command::new(keeper).stdin(Stdio::from(OwnedFd::from(theirs))).spawn().expect("a keeper");
        ours.write_all(&start.encode()).expect("a keeper that reads");
        let mut answer = [0; STARTED_BYTES];
        ours.read_exact(&mut answer).expect("a keeper that answers");
        assert_eq!(Started::decode(&answer).map(|started| started.stage), Some(Stage::Running));
        let file = std::fs::File::open(dir.join("ring")).expect("a ring");
        Session { ring: Ring::open(&file).expect("a sound ring"), dir, keeper }
    }

    /// A host that lets everybody write, and a client.
    fn connect(&self) -> (OwnedFd, OwnedFd) {
        let host = connect(&self.dir.join("sock"));
        send(&host, ToKeeper::Hello { version: VERSION, role: 1, token: [0; 16] });
        send(&host, ToKeeper::Admit { token: [1; 16], rights: 1 });
        send(&host, ToKeeper::Writer { fence: 1, connection: WRITER_ANY });
        let client = connect(&self.dir.join("sock"));
        send(&client, ToKeeper::Hello { version: VERSION, role: 0, token: [1; 16] });
        (host, client)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        tree::descendants(self.keeper.id(), &tree::Spared::new())
            .into_iter()
            .for_each(|pid| sys::kill(pid, libc::SIGKILL));
        let _ = self.keeper.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn connect(path: &Path) -> OwnedFd {
    // SAFETY: plain socket calls on locals.
    unsafe {
        let socket = sys::own(libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)).expect("a socket");
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_encoded_bytes()) {
            *to = *from as libc::c_char;
        }
        let length = std::mem::size_of_val(&address) as libc::socklen_t;
        sys::check(libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length))
            .expect("a keeper that listens");
        socket
    }
}

fn send(socket: &OwnedFd, frame: ToKeeper<'_>) {
    let mut bytes = vec![];
    frame.encode(&mut bytes);
    sys::write(socket.as_fd(), &bytes).expect("a keeper that lives");
}

fn echo(keeper: &str, whose: &str, script: &str) {
    let session = Session::start(keeper, script);
    let (_host, client) = session.connect();
    let screen = Terminal::open(80, 24).expect("a terminal");
    let own = screen.path().expect("its path");
    let slave = sys::open(&own, libc::O_RDWR | libc::O_NOCTTY, 0).expect("its slave");
    // As other processes know it.
    let name = std::fs::read_link(own.to_str().expect("letters and digits")).expect("its name");
    let mut raw = modes(slave.as_fd()).expect("its modes");
    // SAFETY: `raw` outlives both calls.
    unsafe {
        libc::cfmakeraw(&mut raw);
        libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &raw);
    }
    let patterns = [&b""[..]; PATTERNS_MAX];
    send(&client, ToKeeper::Tty { flags: TTY_KEYS | TTY_PAINT, path: name.as_os_str().as_encoded_bytes(), patterns });
    send(&client, ToKeeper::Sleep { position: 0, wake_at: 1 });
    std::thread::sleep(Duration::from_millis(300));
    let mut buffer = [0u8; 256];
    let mut times: Vec<Duration> = (0..KEYS)
        .map(|_| {
            std::thread::sleep(Duration::from_micros(500));
            let pressed = Instant::now();
            screen.write(b"x").expect("a terminal that takes keys");
            loop {
                let ready = sys::poll(&mut [sys::polled(screen.master(), libc::POLLIN)], Some(5000));
                assert!(ready > 0, "no echo");
                // SAFETY: the buffer is ours and so long.
                match unsafe { screen.read(buffer.as_mut_ptr(), buffer.len()) } {
                    Output::Bytes(_) => return pressed.elapsed(),
                    other => assert_eq!(other, Output::Nothing, "the terminal broke"),
                }
            }
        })
        .collect();
    times.sort();
    println!("echo by the {whose}: median {:?}, 99 of 100 {:?}", times[KEYS / 2], times[KEYS / 100 * 99]);
}

fn flood(keeper: &str, read: bool) {
    let script = format!("stty raw; exec head -c {FLOOD_BYTES} /dev/zero");
    let begun = Instant::now();
    let session = Session::start(keeper, &script);
    let (_host, client) = session.connect();
    let (mut position, mut acked) = (0, 0);
    if read {
        send(&client, ToKeeper::Follow { position, flags: FOLLOW_HOLDS });
    }
    let mut buffer = vec![0; 65536];
    while session.ring.header().state.load(std::sync::atomic::Ordering::Acquire) != STATE_ENDED {
        if !read {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        match session.ring.copy(position, &mut buffer) {
            Copied::Bytes(0) => std::thread::sleep(Duration::from_micros(50)),
            Copied::Bytes(count) => position += count as u64,
            other => panic!("{other:?}"),
        }
        if position - acked >= 65536 {
            acked = position;
            let _ = sys::write(client.as_fd(), &[&[3][..], &position.to_le_bytes()].concat());
        }
    }
    assert_eq!(session.ring.head(), FLOOD_BYTES);
    println!("100 MB {}: {:?}", if read { "read" } else { "unread" }, begun.elapsed());
}
