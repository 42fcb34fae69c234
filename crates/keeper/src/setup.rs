//! From the start block to a running child.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, IntoRawFd};
use std::sync::atomic::Ordering;

use holdfast_abi::ring::{GUARD_BYTES, Ring, STATE_RUNNING};
use holdfast_abi::start::{START_BYTES_MAX, Stage, Start, Started};

use crate::keeper::{Keeper, Parts};
use crate::lease::Lease;
use crate::leased::Alarms;
use crate::streams::Streams;
use crate::terminal::Terminal;
use crate::{spawn, sys};

/// Smallest ring: the guards and a window worth holding.
pub const RING_BYTES_MIN: u64 = 4 * GUARD_BYTES;
/// Largest ring a reader takes.
pub const RING_BYTES_MAX: u64 = 1 << 40;
/// Smallest terminal, in columns: a full-screen program divides by less.
pub const COLS_MIN: u16 = 2;
/// Smallest terminal, in rows.
pub const ROWS_MIN: u16 = 1;

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// How far it came.
    pub stage: Stage,
    /// Why not further.
    pub errno: i32,
}

impl Failed {
    /// Says at which stage an error happened.
    pub fn at(stage: Stage) -> impl Fn(io::Error) -> Failed {
        move |error| Failed { stage, errno: sys::errno(&error) }
    }
}

/// Files made on the way, removed again when the start fails. What was there before is not ours to remove.
#[derive(Default)]
struct Made(Vec<CString>);

impl Drop for Made {
    fn drop(&mut self) {
        self.0.iter().for_each(|path| sys::unlink(path));
    }
}

/// Reads the start block from standard input, starts the child and answers. `None` where there is no session; why
/// not was answered. `label` is where `ps` reads which session it is: before anything is made it says so.
#[must_use]
pub fn start(label: Option<&mut [u8]>) -> Option<Keeper> {
    // SAFETY: standard input is the host's socket and nobody else in this process uses it.
    let mut host = unsafe { File::from_raw_fd(0) };
    let result = read_block(&mut host).and_then(|start| {
        label.into_iter().for_each(|label| name(label, &start.ring_path));
        session(&start)
    });
    let keeper_pid = std::process::id();
    let answer = match &result {
        Ok(parts) => Started { stage: Stage::Running, errno: 0, keeper_pid, child_pid: parts.child as u32 },
        Err(failed) => Started { stage: failed.stage, errno: failed.errno, keeper_pid, child_pid: 0 },
    };
    // A host that died meanwhile finds the session by its files.
    let _ = host.write_all(&answer.encode());
    let _ = host.into_raw_fd();
    if let Ok(null) = sys::null() {
        let _ = sys::redirect(null.as_fd(), 0);
    }
    // The block and the environment are gone; a session that idles for weeks should not keep their pages. What the keeper
    // needs is only allocated now, from pages that are not touched before they are used.
    // SAFETY: no memory that is in use is touched.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    result.ok().map(Keeper::new)
}

/// Says which session this is: the directory of a ring is called so.
fn name(label: &mut [u8], ring_path: &[u8]) {
    let id = ring_path.rsplit(|byte| *byte == b'/').nth(1).unwrap_or_default();
    if id.len() == label.len() {
        label.copy_from_slice(id);
    }
}

fn read_block(host: &mut File) -> Result<Start, Failed> {
    let block = Failed::at(Stage::Block);
    let nonsense = || Failed { stage: Stage::Block, errno: libc::EINVAL };
    let mut length = [0; 4];
    host.read_exact(&mut length).map_err(&block)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > START_BYTES_MAX {
        return Err(nonsense());
    }
    let mut bytes = vec![0; length];
    host.read_exact(&mut bytes).map_err(&block)?;
    let start = Start::decode(&bytes).ok_or_else(nonsense)?;
    // The keeper leaves its directory, so relative paths would mean something else later.
    let paths_hold = [&start.ring_path, &start.socket_path].iter().all(|path| path.first() == Some(&b'/'));
    if paths_hold { Ok(start) } else { Err(nonsense()) }
}

fn session(start: &Start) -> Result<Parts, Failed> {
    let signals = detach().map_err(Failed::at(Stage::Block))?;
    let mut made = Made::default();
    let ring = make_ring(start, &mut made).map_err(Failed::at(Stage::Ring))?;
    let size = (start.size.0.max(COLS_MIN), start.size.1.max(ROWS_MIN));
    let terminal = Terminal::open(size.0, size.1).map_err(Failed::at(Stage::Terminal))?;
    let socket_path = sys::c_string(&start.socket_path).map_err(Failed::at(Stage::Socket))?;
    let listener = sys::socket::listen(&start.socket_path).map_err(Failed::at(Stage::Socket))?;
    made.0.push(socket_path.clone());
    let path = terminal.path().map_err(Failed::at(Stage::Terminal))?;
    let lease = Lease::of(start.lease.clone());
    let mut alarms = Alarms::default();
    alarms.set(&lease).map_err(Failed::at(Stage::Block))?;
    if lease.is_over(sys::boottime_ms) {
        // It was over before it began.
        return Err(Failed { stage: Stage::Block, errno: libc::ETIME });
    }
    let child = spawn::spawn(start, &path)?;
    made.0.clear();
    ring.header().child_pid.store(child as u32, Ordering::Relaxed);
    ring.header().state.store(STATE_RUNNING, Ordering::Release);
    let streams = Streams::of_before(&start.streams);
    Ok(Parts {
        ring,
        terminal,
        child,
        signals,
        listener,
        socket_path,
        secret: start.secret,
        size,
        streams,
        lease,
        alarms,
    })
}

/// Cuts every tie to whoever started us: its session, its descriptors, its directory, its signals.
fn detach() -> io::Result<std::os::fd::OwnedFd> {
    // SAFETY: no memory is involved. Nothing is open in this process yet but the standard streams.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // No program of the same user reads our memory, or takes the terminal's master out of our descriptors.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        // Nothing but 0600 is ever made by this process, sockets included.
        libc::umask(0o177);
        libc::chdir(c"/".as_ptr());
    }
    let null = sys::null()?;
    sys::redirect(null.as_fd(), 1)?;
    sys::redirect(null.as_fd(), 2)?;
    sys::signals()
}

fn make_ring(start: &Start, made: &mut Made) -> io::Result<Ring> {
    let sound = start.ring_bytes.is_power_of_two()
        && (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&start.ring_bytes)
        && start.base.is_sound();
    if !sound {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let path = sys::c_string(&start.ring_path)?;
    let file = sys::open(&path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600)?;
    // The mapping keeps the lock as long as this process lives, whatever happens to the path or the socket. A host gives a
    // session another life only while it has this lock itself.
    sys::lock(file.as_fd())?;
    if !sys::is_at(file.as_fd(), &path) {
        // Another host took the file for a dead one's before it was locked: this life is not to be.
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    made.0.push(path);
    let ring = Ring::create(&File::from(file), start.ring_bytes, start.base, std::process::id(), sys::epoch_ms())?;
    put_preface(&ring, &start.preface);
    Ok(ring)
}

/// Writes what the output begins with.
fn put_preface(ring: &Ring, preface: &[u8]) {
    let mut head = ring.head();
    let mut rest = preface;
    while !rest.is_empty() {
        let (to, room) = ring.space(head);
        let (part, behind) = rest.split_at(room.min(rest.len()));
        // SAFETY: `to` and `room` lie inside the mapping, beyond the published head, and nobody reads there yet.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) };
        head += part.len() as u64;
        ring.publish(head);
        rest = behind;
    }
}
