use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use holdfast_abi::protocol::{
    FromKeeper, PATTERNS_MAX, RIGHT_WRITE, TTY_KEYS, TTY_PAINT, ToKeeper, Token, VERSION, WRITER_HOST, refused,
};
use holdfast_keeper::{sys, terminal};

use crate::harness::*;

/// A terminal somebody sits at: the test types on the master, the client's side is the slave.
pub struct Pair {
    master: OwnedFd,
    slave: OwnedFd,
    path: String,
}

impl Pair {
    pub fn open() -> Pair {
        // SAFETY: plain calls on locals.
        unsafe {
            let master = sys::own(libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC)).unwrap();
            assert_eq!(libc::unlockpt(master.as_raw_fd()), 0);
            let mut number = 0i32;
            assert_eq!(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number), 0);
            let path = format!("/dev/pts/{number}");
            let slave = sys::open(&sys::c_string(path.as_bytes()).unwrap(), libc::O_RDWR | libc::O_NOCTTY, 0).unwrap();
            let mut modes = terminal::modes(slave.as_fd()).unwrap();
            libc::cfmakeraw(&mut modes);
            assert_eq!(libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &modes), 0);
            for fd in [&master, &slave] {
                libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK);
            }
            Pair { master, slave, path }
        }
    }

    pub fn hand_over<'a>(&'a self, flags: u8, chords: &[&'a [u8]]) -> ToKeeper<'a> {
        let mut patterns: [&[u8]; PATTERNS_MAX] = [&[]; PATTERNS_MAX];
        patterns[..chords.len()].copy_from_slice(chords);
        ToKeeper::Tty { flags, path: self.path.as_bytes(), patterns }
    }

    fn press(&self, keys: &str) {
        assert_eq!(sys::write(self.master.as_fd(), keys.as_bytes()).unwrap(), keys.len());
    }

    /// What is on the screen since the last look, until it is as long as expected.
    #[track_caller]
    fn painted(&self, expected: &str) {
        let mut seen = vec![];
        eventually(&format!("{expected:?} on the client's terminal"), || {
            let mut buffer = vec![];
            while let Ok(1..) = sys::read(self.master.as_fd(), &mut buffer, 4096) {
                seen.extend_from_slice(&buffer);
            }
            (seen.len() >= expected.len()).then_some(())
        });
        assert_eq!(String::from_utf8_lossy(&seen), expected);
    }

    /// Keys that nobody has taken.
    fn untaken(&self) -> String {
        let mut buffer = vec![];
        let _ = sys::read(self.slave.as_fd(), &mut buffer, 4096);
        String::from_utf8_lossy(&buffer).into_owned()
    }
}

fn echo() -> Session {
    let session = Session::raw("echo ready; cat");
    session.wait_for_text("ready");
    session
}

#[test]
fn keys_go_straight_in_and_small_output_straight_out() {
    let session = echo();
    let mut host = session.host();
    let mut client = session.writer(&mut host, 4);
    let terminal = Pair::open();
    client.send(terminal.hand_over(TTY_KEYS | TTY_PAINT, &[b"\x1c"]));
    client.send(ToKeeper::Sleep { position: 6, wake_at: 7 });
    client.sync();
    terminal.press("ls -l\n");
    terminal.painted("ls -l\n");
    terminal.press("more");
    terminal.painted("more");
    client.sync();
    assert_eq!(client.try_take(wake), None, "the client slept through it");
    let log = session.log().join("\n");
    assert!(log.starts_with("Input fence 4 stream 0 seq 0 count 6 flags 0 \"ls -l\\n\""), "{log}");
    // More than a little is the client's to draw.
    host.type_in(4, 1, 1, &"x".repeat(3000));
    assert_eq!(client.woken(), 6 + 10);
    assert_eq!(terminal.painted(""), ());
}

#[test]
fn a_chord_and_what_follows_it_are_the_clients() {
    let session = echo();
    let mut host = session.host();
    let mut client = session.writer(&mut host, 1);
    let terminal = Pair::open();
    let chords: [&[u8]; 2] = [b"\x1c", b"\x1b[92;5u"];
    client.send(terminal.hand_over(TTY_KEYS | TTY_PAINT, &chords));
    client.send(ToKeeper::Sleep { position: 6, wake_at: 7 });
    client.sync();
    terminal.press("abc\x1cd");
    assert_eq!(client.keys(), b"\x1cd");
    assert!(client.woken() >= 6);
    session.wait_for_text("ready\nabc");
    terminal.press("mine");
    client.sync();
    assert_eq!(terminal.untaken(), "mine");
    // Handed over again, the second chord comes in two pieces. On a busy machine the second may come too late, and all of it
    // is typed; then once more.
    client.send(terminal.hand_over(TTY_KEYS, &chords));
    client.sync();
    let handed = (1..50).any(|typed| {
        terminal.press("\x1b[92");
        terminal.press(";5uz");
        eventually("the chord somewhere", || {
            let keys = client.try_take(|frame| match frame {
                FromKeeper::Keys { bytes } => Some(bytes.to_vec()),
                _ => None,
            });
            let handed = keys.map(|keys| assert_eq!(keys, b"\x1b[92;5uz")).is_some();
            (handed || session.text().matches(";5uz").count() == typed).then_some(handed)
        })
    });
    assert!(handed);
    // A piece that does not become a chord goes in.
    client.send(terminal.hand_over(TTY_KEYS, &chords));
    terminal.press("\x1b[9");
    session.wait_for_text("\x1b[9");
}

#[test]
fn a_client_gets_its_terminal_back_when_it_asks_or_may_not_write() {
    let session = echo();
    let mut host = session.host();
    let mut client = session.writer(&mut host, 1);
    let terminal = Pair::open();
    client.send(terminal.hand_over(TTY_KEYS, &[]));
    client.send(ToKeeper::Sleep { position: 6, wake_at: u64::MAX });
    client.send(ToKeeper::TtyBack);
    assert_eq!((client.keys(), client.woken()), (vec![], 6));
    client.send(terminal.hand_over(TTY_KEYS, &[]));
    client.sync();
    host.send(ToKeeper::Writer { fence: 2, connection: WRITER_HOST });
    assert_eq!(client.keys(), b"");
    terminal.press("too late");
    host.sync();
    client.sync();
    assert_eq!(terminal.untaken(), "too late");
    client.send(terminal.hand_over(TTY_KEYS, &[]));
    assert_eq!(client.keys(), b"");
    assert_eq!(session.text(), "ready\n");
}

#[test]
fn what_is_no_terminal_of_ours_is_refused() {
    let session = Session::raw("tty; cat");
    session.wait_for_text("\n");
    let own = session.text().trim().to_string();
    let mut host = session.host();
    let mut client = session.writer(&mut host, 1);
    for path in ["/dev/null", "/etc/passwd", "/nowhere", "relative", "", &own] {
        let patterns = [&b""[..]; PATTERNS_MAX];
        client.send(ToKeeper::Tty { flags: TTY_KEYS, path: path.as_bytes(), patterns });
        assert_eq!(client.refused(), refused::TTY, "{path}");
    }
    let terminal = Pair::open();
    client.send(terminal.hand_over(TTY_KEYS, &[]));
    client.sync();
    drop(terminal);
    assert_eq!(client.refused(), refused::TTY, "a terminal that closed");
}

#[test]
fn while_the_log_is_full_keys_stay_in_the_terminal() {
    let session = echo();
    let mut host = session.host();
    let mut client = session.writer(&mut host, 1);
    let terminal = Pair::open();
    let block = "x".repeat(4096);
    let mut seq = 0;
    loop {
        seq += 1;
        host.type_in(1, 5, seq, &block);
        let full = host.take("an answer", |frame| match frame {
            FromKeeper::Written { .. } => Some(false),
            FromKeeper::Refused { code: refused::FULL, .. } => Some(true),
            _ => None,
        });
        if full {
            break;
        }
    }
    // Fill the rest with small ones.
    let mut stream = 100;
    loop {
        stream += 1;
        host.type_in(1, stream, 1, "y");
        let full = host.take("an answer", |frame| match frame {
            FromKeeper::Written { .. } => Some(false),
            FromKeeper::Refused { code: refused::FULL, .. } => Some(true),
            _ => None,
        });
        if full {
            break;
        }
    }
    client.send(terminal.hand_over(TTY_KEYS, &[]));
    client.sync();
    terminal.press("patience");
    client.sync();
    host.sync();
    assert!(!session.text().contains("patience"));
    let ticks = session.cpu_ticks();
    let position = session.ring.log_head();
    host.send(ToKeeper::Drained { position });
    session.wait_for_text("patience");
    assert!(session.cpu_ticks() - ticks < 10);
}

/// Runs as a process of its own when a test asks for it: a client that hands over its terminal, sleeps, and is then killed
/// or stopped from outside.
#[test]
fn client_process() {
    let Ok(words) = std::env::var("HOLDFAST_TEST_CLIENT") else { return };
    let [socket, terminal, token] = words.split(' ').collect::<Vec<_>>()[..] else { panic!("{words}") };
    let mut client = Connection::to(std::path::Path::new(socket));
    let number: u32 = token.parse().unwrap();
    client.send(ToKeeper::Hello { version: VERSION, role: 0, token: token_of(number) });
    client.welcomed();
    let patterns = [&b""[..]; PATTERNS_MAX];
    client.send(ToKeeper::Tty { flags: TTY_KEYS | TTY_PAINT, path: terminal.as_bytes(), patterns });
    client.send(ToKeeper::Sleep { position: client.welcome.unwrap().head, wake_at: 0 });
    client.sync();
    // The test reads this.
    eprintln!("handed over");
    std::thread::park();
}

fn token_of(number: u32) -> Token {
    let mut token = [0xc1; 16];
    token[..4].copy_from_slice(&number.to_le_bytes());
    token
}

/// A client in a process of its own; the writer from the start.
struct ClientProcess(Child);

impl ClientProcess {
    fn start(session: &Session, host: &mut Connection, terminal: &Pair) -> ClientProcess {
        host.send(ToKeeper::Admit { token: token_of(session.keeper), rights: RIGHT_WRITE });
        host.send(ToKeeper::Writer { fence: 1, connection: holdfast_abi::protocol::WRITER_ANY });
        host.sync();
        let words = format!("{} {} {}", session.dir.path("sock").display(), terminal.path, session.keeper);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tty::client_process", "--nocapture"])
            .env("HOLDFAST_TEST_CLIENT", words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
        assert!(lines.any(|line| line.unwrap().contains("handed over")), "the client did not come up");
        ClientProcess(child)
    }

    fn signal(&self, signal: i32) {
        sys::kill(self.0.id() as i32, signal);
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn after_a_client_was_killed_no_key_of_its_terminal_is_taken() {
    for _ in 0..10 {
        let session = echo();
        let mut host = session.host();
        let terminal = Pair::open();
        let mut client = ClientProcess::start(&session, &mut host, &terminal);
        terminal.press("before ");
        terminal.painted("before ");
        client.signal(libc::SIGKILL);
        client.0.wait().unwrap();
        // The shell it was started from reads again; nobody else may.
        terminal.press("secret for the shell\n");
        host.take("Left", |frame| matches!(frame, FromKeeper::Left { .. }).then_some(()));
        host.sync();
        assert_eq!(terminal.untaken(), "secret for the shell\n");
        assert_eq!(session.text(), "ready\nbefore ");
    }
}

#[test]
fn a_stopped_clients_keys_wait_without_the_keeper_spinning() {
    let session = echo();
    let mut host = session.host();
    let terminal = Pair::open();
    let client = ClientProcess::start(&session, &mut host, &terminal);
    client.signal(libc::SIGSTOP);
    eventually("the stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", client.0.id())).unwrap();
        stat.contains(") T ").then_some(())
    });
    // What is in front of the terminal now is somebody else: nothing is painted over it.
    host.type_in(1, 1, 1, "output");
    session.wait_for_text("ready\noutput");
    host.sync();
    terminal.painted("");
    let ticks = session.cpu_ticks();
    terminal.press("while stopped");
    let started = std::time::Instant::now();
    eventually("a while", || (started.elapsed().as_millis() > 600).then_some(()));
    host.sync();
    assert_eq!(session.text(), "ready\noutput");
    assert!(session.cpu_ticks() - ticks < 10, "the keeper spins");
    client.signal(libc::SIGCONT);
    session.wait_for_text("while stopped");
}
