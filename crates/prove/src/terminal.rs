//! A person's terminal: a PTY with a program on it.

use crate::trial::{Stop, broken, wait};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Output that is kept of a terminal: several screens.
const KEPT_BYTES_MAX: usize = 256 * 1024;
/// How soon the reader notices that the terminal is to be closed.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A program on a terminal of its own.
pub struct Terminal {
    child: Child,
    /// None once it was hung up.
    master: Option<std::fs::File>,
    shown: Arc<Mutex<Vec<u8>>>,
    closes: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a program on a new terminal, as the leader of its own session.
    pub fn start(command: &mut Command) -> Result<Terminal, Stop> {
        let (master, slave) = open().map_err(|error| broken("a terminal", error))?;
        let end = || slave.try_clone().map_err(|error| broken("a terminal", error));
        // `setsid -c` makes the program the leader of a session with this terminal, as a login does; then it becomes the program.
        let mut leader = Command::new("setsid");
        leader.arg("-c").arg(command.get_program()).args(command.get_args());
        leader.stdin(end()?).stdout(end()?).stderr(end()?);
        if let Some(dir) = command.get_current_dir() {
            leader.current_dir(dir);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => leader.env(name, value),
                None => leader.env_remove(name),
            };
        }
        leader.env("TERM", "xterm-256color");
        let child = leader.spawn().map_err(|error| broken("a program on a terminal", error))?;
        let master = std::fs::File::from(master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let closes = Arc::new(AtomicBool::new(false));
        let from = master.try_clone().map_err(|error| broken("a terminal", error))?;
        let reader = std::thread::spawn({
            let (shown, closes) = (Arc::clone(&shown), Arc::clone(&closes));
            move || read(from, &shown, &closes)
        });
        Ok(Terminal { child, master: Some(master), shown, closes, reader: Some(reader) })
    }

    /// What it has shown, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Types.
    pub fn types(&mut self, text: &str) -> Result<(), Stop> {
        let master = self.master.as_mut().ok_or_else(|| broken("typing", "the terminal was hung up"))?;
        master.write_all(text.as_bytes()).map_err(|error| broken("typing", error))
    }

    /// Waits until it has shown something.
    pub fn until_shown(&self, text: &str) -> Result<(), Stop> {
        wait(&format!("the terminal shows {text:?}"), || self.text().contains(text))
    }

    /// Waits for the program's end, and says how it ended.
    pub fn end(&mut self) -> Result<i32, Stop> {
        let mut status = None;
        wait("the program on the terminal ends", || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        })?;
        Ok(status.and_then(|status| status.code()).unwrap_or(-1))
    }

    /// Takes the terminal away, as a closed window or a lost connection does, and waits for the program's end.
    pub fn hang_up(&mut self) -> Result<(), Stop> {
        self.close();
        self.end().map(drop)
    }

    fn close(&mut self) {
        self.closes.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.master = None;
    }

    /// Kills the program as the kernel would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
        self.close();
    }
}

/// Reads what is shown until the terminal is closed from either side.
fn read(mut from: std::fs::File, shown: &Mutex<Vec<u8>>, closes: &AtomicBool) {
    let mut chunk = [0; 4096];
    while !closes.load(Ordering::Acquire) {
        let ready = rustix::event::poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&LOOK_AGAIN));
        if !matches!(ready, Ok(1..)) {
            continue;
        }
        let Ok(count @ 1..) = from.read(&mut chunk) else { return };
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.extend_from_slice(&chunk[..count]);
        let excess = shown.len().saturating_sub(KEPT_BYTES_MAX);
        shown.drain(..excess);
    }
}

fn open() -> Result<(OwnedFd, OwnedFd), rustix::io::Errno> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
    rustix::termios::tcsetwinsize(slave.as_fd(), Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((master, slave))
}
