//! The person's terminal: a PTY whose other end is a [`Screen`] that answers queries as a real terminal does.

use crate::home::Home;
use crate::processes::{gone, kill, signal};
use crate::wait::{PATIENCE, poll, until};
use holdfast_screen::{MarkKind, Screen, TerminalColors};
use holdfast_types::Size;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::{Termios, Winsize};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Starts the chord.
pub const CHORD: &[u8] = b"\x1c";
/// The chord and its key.
pub const DETACH: &[u8] = b"\x1cd";

/// The chord that takes the turn.
pub const TAKE: &[u8] = b"\x1ct";
/// The background this terminal says it has, unlike the host's.
pub const BACKGROUND: [u8; 3] = [0x12, 0x34, 0x56];

/// Bytes that a terminal remembers as they came: several screens.
const RAW_BYTES_MAX: usize = 64 * 1024;

/// A terminal and what it shows.
pub struct Terminal {
    master: Arc<OwnedFd>,
    slave: OwnedFd,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
    paused: AtomicBool,
    stop: AtomicBool,
}

/// What the terminal shows.
pub struct Seen {
    /// The screen itself.
    pub screen: Screen,
    /// Lines that went into its scrollback.
    pub history: Vec<u8>,
    /// How many bytes came.
    pub bytes: u64,
    /// The last of them, as they came.
    pub raw: Vec<u8>,
    /// Bells and notifications.
    pub marks: Vec<MarkKind>,
}

/// Everything about a screen that a person or a program could notice.
#[derive(Clone, PartialEq, Eq)]
pub struct Look {
    /// Its rows, with their attributes.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: (u16, u16),
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// The window's title.
    pub title: String,
    /// The mode of that name.
    pub bracketed_paste: bool,
    /// The mode of that name.
    pub application_cursor: bool,
    /// All of its state as escape sequences: attributes, modes, region, tabs, saved cursors, keyboard, colours.
    pub state: Vec<u8>,
}

impl std::fmt::Debug for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "cursor {:?} alternate {} title {:?}", self.cursor, self.alternate, self.title)?;
        for row in &self.rows {
            writeln!(f, "  {row:?}")?;
        }
        write!(f, "state {:?}", String::from_utf8_lossy(&self.state))
    }
}

impl Look {
    /// Where two looks differ.
    pub fn difference(&self, other: &Look) -> String {
        let mut told = Vec::new();
        for (row, (ours, theirs)) in self.rows.iter().zip(&other.rows).enumerate() {
            if ours != theirs {
                told.push(format!("row {row}: {ours:?}\n   not: {theirs:?}"));
            }
        }
        if self.cursor != other.cursor {
            told.push(format!("cursor {:?}, not {:?}", self.cursor, other.cursor));
        }
        if self.title != other.title {
            told.push(format!("title {:?}, not {:?}", self.title, other.title));
        }
        if self.state != other.state {
            let at = self.state.iter().zip(&other.state).take_while(|(a, b)| a == b).count();
            let rest = |state: &[u8]| String::from_utf8_lossy(&state[at.saturating_sub(20)..]).into_owned();
            told.push(format!("state at {at}: {:?}\n   not: {:?}", rest(&self.state), rest(&other.state)));
        }
        told.join("\n")
    }
}

impl Seen {
    /// Whether a row has this text.
    pub fn shows(&self, text: &str) -> bool {
        self.screen.rows_text().iter().any(|row| row.contains(text))
    }

    /// All of it, to be compared.
    pub fn look(&self) -> Look {
        let screen = &self.screen;
        Look {
            rows: rows_ansi(screen),
            cursor: screen.cursor(),
            alternate: screen.alternate(),
            title: screen.title().to_owned(),
            bracketed_paste: screen.bracketed_paste(),
            application_cursor: screen.application_cursor(),
            state: screen.repaint(None),
        }
    }

    /// The scrollback and the main screen's lines, as text.
    pub fn lines(&self) -> Vec<String> {
        let mut encoded = self.history.clone();
        encoded.extend_from_slice(&self.screen.open_history());
        let mut lines: Vec<String> = holdfast_screen::history_text(&encoded).lines().map(str::to_owned).collect();
        lines.extend(self.screen.rows_text());
        lines
    }
}

fn rows_ansi(screen: &Screen) -> Vec<String> {
    screen.rows_ansi().iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

impl Terminal {
    /// A terminal of this size, for example `80x24`.
    pub fn new(size: &str) -> Terminal {
        let size: Size = size.parse().unwrap();
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let path = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap();
        let mut screen = Screen::new(size, 0);
        screen.set_colors(TerminalColors { background: Some(BACKGROUND), ..TerminalColors::default() });
        let shared = Arc::new(Shared {
            seen: Mutex::new(Seen { screen, history: Vec::new(), bytes: 0, raw: Vec::new(), marks: Vec::new() }),
            changed: Condvar::new(),
            paused: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let master = Arc::new(master);
        let reader = std::thread::spawn({
            let (master, shared) = (Arc::clone(&master), Arc::clone(&shared));
            move || read_all(&master, &shared)
        });
        let terminal = Terminal { master, slave, shared, reader: Some(reader) };
        terminal.set_winsize(size);
        terminal
    }

    /// A terminal with a client attached to a session, which shows the session.
    #[track_caller]
    pub fn attached(home: &Home, session: &str, size: &str) -> (Terminal, Client) {
        let terminal = Terminal::new(size);
        let client = terminal.run(home, &["attach", session]);
        until("the client", || {
            let view = home.json(&["info", session]);
            let all = view["clients"].as_array()?.clone();
            all.iter().any(|c| c["pid"].as_u64() == Some(client.pid.into())).then_some(())
        });
        (terminal, client)
    }

    /// Runs the program on this terminal, which is its controlling one.
    pub fn run(&self, home: &Home, args: &[&str]) -> Client {
        self.start(home.command(args))
    }

    /// Runs a command on this terminal, which is its controlling one.
    pub fn start(&self, mut command: Command) -> Client {
        let end = || self.slave.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: only calls that are safe between fork and exec are made, on the new process's own descriptors.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        Client { pid: child.id(), child }
    }

    /// Types, however slowly the other side reads.
    pub fn types(&self, keys: impl AsRef<[u8]>) {
        write_all(&self.master, keys.as_ref());
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at it.
    pub fn peek<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen())
    }

    /// What it shows now.
    pub fn look(&self) -> Look {
        self.peek(Seen::look)
    }

    /// Waits until it shows what is asked for.
    #[track_caller]
    pub fn wait_for(&self, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen();
        while !holds(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}; the terminal shows:\n{:?}", seen.look());
            seen = self.shared.changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits until it shows a text.
    #[track_caller]
    pub fn wait_text(&self, text: &str) {
        self.wait_for(&format!("{text:?}"), |seen| seen.shows(text));
    }

    /// Waits until it looks like this, and still does after the host was asked something.
    #[track_caller]
    pub fn wait_look(&self, home: &Home, session: &str, expected: &Look) {
        for _ in 0..2 {
            let deadline = Instant::now() + PATIENCE;
            let mut seen = self.seen();
            while seen.look() != *expected {
                let left = deadline.saturating_duration_since(Instant::now());
                assert!(
                    !left.is_zero(),
                    "the terminal does not come to look as before\n{}",
                    seen.look().difference(expected)
                );
                seen = self.shared.changed.wait_timeout(seen, left).unwrap().0;
            }
            drop(seen);
            home.ok(&["screen", session]);
        }
    }

    /// Waits until it shows what the host says the session's screen is, with the program at rest, and gives that look.
    #[track_caller]
    pub fn settle(&self, home: &Home, session: &str) -> Look {
        let mut told = (serde_json::Value::Null, None);
        let mut quiet = (0, Instant::now());
        let settled = poll(|| {
            let screen = home.json(&["screen", session, "--ansi"]);
            let look = self.look();
            let same = screen["rows"] == serde_json::json!(look.rows)
                && screen["cursor"] == serde_json::json!(look.cursor)
                && screen["alternate"] == serde_json::json!(look.alternate);
            let offset = screen["offset"].as_u64().unwrap();
            if offset != quiet.0 {
                quiet = (offset, Instant::now());
            }
            told = (screen, Some(look.clone()));
            // Programs talk with their terminal for a while after their first paint.
            (same && quiet.1.elapsed() > Duration::from_millis(250)).then_some(look)
        });
        settled.unwrap_or_else(|| {
            let (screen, look) = &told;
            let look = look.as_ref().unwrap();
            let rows = screen["rows"].as_array().unwrap().iter().zip(&look.rows).enumerate();
            let differing: Vec<_> = rows.filter(|(_, (host, ours))| host.as_str() != Some(ours)).collect();
            let (cursor, alternate) = (&screen["cursor"], &screen["alternate"]);
            panic!("the host says {cursor} {alternate}, shown is {:?} {}: {differing:?}", look.cursor, look.alternate)
        })
    }

    /// The window gets another size.
    pub fn resize(&self, size: &str, client: &Client) {
        let size: Size = size.parse().unwrap();
        self.seen().screen.resize(size);
        self.set_winsize(size);
        // The kernel tells the foreground group; a client that was started otherwise is told here.
        signal(client.pid, Signal::WINCH);
    }

    /// The window gets another size, and the terminal arranges its lines for it in a way of its own.
    pub fn resize_oddly(&self, size: &str, client: &Client) {
        self.seen().screen.feed(b"\x1b[H\x1b[2Jnothing is where it was");
        self.resize(size, client);
    }

    fn set_winsize(&self, size: Size) {
        let winsize = Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&*self.master, winsize).unwrap();
    }

    /// The line settings.
    pub fn termios(&self) -> Termios {
        rustix::termios::tcgetattr(&self.slave).unwrap()
    }

    /// Stops or resumes reading what is written to it.
    pub fn pause(&self, paused: bool) {
        self.shared.paused.store(paused, Ordering::SeqCst);
    }
}

impl Drop for Terminal {
    /// Closing the last descriptor of the master hangs the terminal up, as closing its window does.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn write_all(master: &OwnedFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(master, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

fn read_all(master: &OwnedFd, shared: &Shared) {
    let mut buffer = vec![0; 64 * 1024];
    while !shared.stop.load(Ordering::SeqCst) {
        if shared.paused.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let mut ready = [PollFd::new(master, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut ready, Some(&timeout)), Ok(1..)) {
            continue;
        }
        let Ok(count) = rustix::io::read(master, &mut buffer[..]) else { continue };
        let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Seen { screen, history, bytes, raw, marks } = &mut *seen;
        screen.feed(&buffer[..count]);
        screen.drain_history(history);
        marks.extend(screen.take_marks().into_iter().map(|mark| mark.kind));
        *bytes += count as u64;
        raw.extend_from_slice(&buffer[..count]);
        raw.drain(..raw.len().saturating_sub(RAW_BYTES_MAX));
        let replies = screen.take_replies();
        drop(seen);
        shared.changed.notify_all();
        for reply in replies {
            write_all(master, &reply.bytes);
        }
    }
}

/// A program on a terminal.
pub struct Client {
    /// Its process.
    pub pid: u32,
    child: Child,
}

impl Client {
    /// Waits for its end and gives its status, 128+n for a signal.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = until("the client's end", || self.child.try_wait().unwrap());
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        kill(self.pid);
        let _ = self.child.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !gone(self.pid) {
            signal(self.pid, Signal::CONT);
            kill(self.pid);
        }
        let _ = self.child.wait();
    }
}

/// Its number as the tests' messages show it.
impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Terminal({})", self.slave.as_raw_fd())
    }
}
