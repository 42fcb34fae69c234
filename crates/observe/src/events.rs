//! Forks, execs and exits of the whole machine as they happen, by the kernel's proc connector.
//!
//! One [`Watcher`] serves all sessions of a host, which knows by the pids whose they are. It is a socket: it costs
//! nothing while nothing happens. The kernel gives events to whom it trusts, in the first pid and network namespaces;
//! other users learn that, and take snapshots from time to time instead.
//!
//! Events say what happened, never what is: a pid in one may be gone, or somebody else's, when it is read. After a loss
//! only a new snapshot is the truth.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::{SocketFlags, bind, sockopt};
use serde::{Deserialize, Serialize};

use crate::netlink::{self, u16_at, u32_at, u64_at};

/// `CN_IDX_PROC` and `CN_VAL_PROC`: the one connector we speak to, and the multicast group of its events.
const CN_PROC: u32 = 1;
/// `struct cn_msg` without its data: index, value, sequence, acknowledgement, length, flags.
const CN_BYTES: usize = 20;
/// `struct proc_event` up to what happened: what, processor, time.
const EVENT_BYTES: usize = 16;
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;
const NLMSG_DONE: u16 = 3;

const WHAT_NONE: u32 = 0;
const WHAT_FORK: u32 = 1;
const WHAT_EXEC: u32 = 2;
const WHAT_EXIT: u32 = 0x8000_0000;

/// The socket's buffer: an event takes some 800 bytes of it, so ten thousand of them wait while the host is busy. A build
/// that starts 300 processes a second makes a thousand.
const BUFFER_BYTES: usize = 8 << 20;

/// Events taken at once: a fork bomb must not keep the caller here, and a build's events of seconds fit.
pub const DRAIN_MAX: usize = 4096;

/// Datagrams looked at for the kernel's acknowledgement, which is in the socket when the sending returns: all that fit
/// into the buffer before it.
const ACKNOWLEDGEMENT_LOOKS_MAX: usize = 10_000;

/// Something a process did. Threads are not told apart from their process, and their own comings and goings are left
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A process made another.
    Fork {
        /// Its parent: who made it, or the maker's own parent if it was made as a sibling.
        parent: u32,
        /// The new one.
        child: u32,
        /// When, in nanoseconds of the monotonic clock.
        at_ns: u64,
    },
    /// A process became another program.
    Exec {
        /// Who. It lives, even if its first thread was said to exit just before: another thread called exec.
        pid: u32,
        /// When.
        at_ns: u64,
    },
    /// The first thread of a process ended, and with it nearly always the process.
    Exit {
        /// Who.
        pid: u32,
        /// How.
        end: Ended,
        /// When.
        at_ns: u64,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It returned this status.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}

/// What [`Watcher::drain`] took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// In the order the kernel sent them; those of different processors may be out of order by a little.
    pub events: Vec<Event>,
    /// Some were lost before these: we were too slow.
    pub lost: bool,
    /// There may be more: [`DRAIN_MAX`] was reached.
    pub more: bool,
}

/// A subscription to the machine's process events.
#[derive(Debug)]
pub struct Watcher {
    socket: OwnedFd,
}

impl Watcher {
    /// Subscribes.
    ///
    /// # Errors
    ///
    /// We may not: the kernel refuses, or has no connector here (inside a container). Then poll.
    pub fn new() -> io::Result<Watcher> {
        Watcher::with_buffer(BUFFER_BYTES)
    }

    fn with_buffer(bytes: usize) -> io::Result<Watcher> {
        let socket = netlink::open(CONNECTOR, SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrNetlink::new(0, CN_PROC))?;
        // Beyond the system's limit if we may, up to it if not.
        sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))?;
        let watcher = Watcher { socket };
        // With a choice of events if the kernel knows that (6.6); an older one says nothing to a message that long.
        let chosen = [LISTEN.to_ne_bytes(), (WHAT_FORK | WHAT_EXEC | WHAT_EXIT).to_ne_bytes()].concat();
        for operation in [&chosen[..], &chosen[..4]] {
            match watcher.subscribe(operation)? {
                Some(0) => return Ok(watcher),
                Some(error) => return Err(io::Error::from_raw_os_error(error as i32)),
                None => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel gives no process events here"))
    }

    /// Sends an operation; gives the error number of its acknowledgement if there is one.
    fn subscribe(&self, operation: &[u8]) -> io::Result<Option<u32>> {
        // All watchers see all acknowledgements, so ours needs a number. The kernel keeps the one that it adds one to.
        let ours = std::process::id();
        netlink::send(&self.socket, NLMSG_DONE, 0, &connector_message(ours, operation))?;
        let mut buffer = [0; 512];
        for _ in 0..ACKNOWLEDGEMENT_LOOKS_MAX {
            let datagram = match netlink::receive(&self.socket, &mut buffer) {
                Ok(datagram) => datagram.unwrap_or_default(),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::NOBUFS | Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let acknowledged = netlink::messages(datagram).find_map(|message| acknowledgement(message.body, ours));
            if acknowledged.is_some() {
                return Ok(acknowledged);
            }
        }
        Ok(None)
    }

    /// Takes what has come, and never waits. Call it when the descriptor is readable.
    ///
    /// # Errors
    ///
    /// The socket is broken; then a new watcher is needed.
    pub fn drain(&mut self) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let mut buffer = [0; 512];
        for _ in 0..DRAIN_MAX {
            match netlink::receive(&self.socket, &mut buffer) {
                Ok(Some(datagram)) => {
                    drained.events.extend(netlink::messages(datagram).filter_map(|message| event(message.body)));
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => drained.lost = true,
                Err(Errno::AGAIN) => return Ok(drained),
                Err(error) => return Err(error.into()),
            }
        }
        drained.more = true;
        Ok(drained)
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Kernels before 6.6 count listeners by what they say, and make events for nobody otherwise.
        let _ = netlink::send(&self.socket, NLMSG_DONE, 0, &connector_message(0, &IGNORE.to_ne_bytes()));
    }
}

fn connector_message(number: u32, operation: &[u8]) -> Vec<u8> {
    let mut message = [CN_PROC, CN_PROC, 0, number].map(u32::to_ne_bytes).concat();
    message.extend_from_slice(&(operation.len() as u16).to_ne_bytes());
    message.extend_from_slice(&[0, 0]);
    message.extend_from_slice(operation);
    message
}

/// The data of a connector message that is about processes.
fn proc_event(message: &[u8]) -> Option<&[u8]> {
    let is_proc = u32_at(message, 0)? == CN_PROC && u32_at(message, 4)? == CN_PROC;
    let length = usize::from(u16_at(message, 16)?);
    message.get(CN_BYTES..CN_BYTES + length).filter(|_| is_proc)
}

fn acknowledgement(message: &[u8], number: u32) -> Option<u32> {
    let data = proc_event(message)?;
    let is_ours = u32_at(data, 0)? == WHAT_NONE && u32_at(message, 12)? == number.wrapping_add(1);
    u32_at(data, EVENT_BYTES).filter(|_| is_ours)
}

fn event(message: &[u8]) -> Option<Event> {
    let data = proc_event(message)?;
    let at_ns = u64_at(data, 8)?;
    let field = |number: usize| u32_at(data, EVENT_BYTES + number * 4);
    match u32_at(data, 0)? {
        // Thread and process of the parent, then of the child.
        WHAT_FORK => {
            let (parent, thread, child) = (field(1)?, field(2)?, field(3)?);
            (thread == child).then_some(Event::Fork { parent, child, at_ns })
        }
        WHAT_EXEC => Some(Event::Exec { pid: field(1)?, at_ns }),
        WHAT_EXIT => {
            let (thread, pid, status) = (field(0)?, field(1)?, field(2)?);
            (thread == pid).then_some(Event::Exit { pid, end: ended(status), at_ns })
        }
        _ => None,
    }
}

/// A status as wait(2) has it; the bit for a core dump is left out.
fn ended(status: u32) -> Ended {
    let signal = (status & 0x7f) as u8;
    if signal == 0 { Ended::Code((status >> 8) as u8) } else { Ended::Signal(signal) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn message(what: u32, fields: &[u32]) -> Vec<u8> {
        let mut data = [what, 0, 7, 0].map(u32::to_ne_bytes).concat();
        fields.iter().for_each(|field| data.extend_from_slice(&field.to_ne_bytes()));
        connector_message(5, &data)
    }

    #[test]
    fn events_of_threads_are_left_out() {
        assert_eq!(event(&message(WHAT_FORK, &[1, 1, 9, 9])), Some(Event::Fork { parent: 1, child: 9, at_ns: 7 }));
        assert_eq!(event(&message(WHAT_FORK, &[1, 1, 9, 1])), None);
        assert_eq!(event(&message(WHAT_EXEC, &[10, 9])), Some(Event::Exec { pid: 9, at_ns: 7 }));
        let exit = |fields| event(&message(WHAT_EXIT, fields));
        assert_eq!(exit(&[9, 9, 0x700, 17]), Some(Event::Exit { pid: 9, end: Ended::Code(7), at_ns: 7 }));
        assert_eq!(exit(&[9, 9, 0x8b, 17]), Some(Event::Exit { pid: 9, end: Ended::Signal(11), at_ns: 7 }));
        assert_eq!(exit(&[10, 9, 0, 17]), None);
    }

    #[test]
    fn what_is_cut_short_or_strange_is_no_event() {
        let whole = message(WHAT_FORK, &[1, 1, 9, 9]);
        for length in 0..whole.len() {
            assert_eq!(event(&whole[..length]), None, "{length}");
        }
        assert_eq!(event(&message(4, &[1, 1, 9, 9])), None);
        assert_eq!(acknowledgement(&message(WHAT_NONE, &[0]), 4), Some(0));
        assert_eq!(acknowledgement(&message(WHAT_NONE, &[1]), 5), None);
    }

    /// As root, not in a container.
    #[test]
    fn who_is_too_slow_is_told_that_events_were_lost() {
        let mut watcher = Watcher::with_buffer(4096).unwrap();
        let mut rounds = 0;
        loop {
            for _ in 0..20 {
                Command::new("true").stdin(Stdio::null()).status().unwrap();
            }
            let drained = watcher.drain().unwrap();
            if drained.lost {
                break;
            }
            rounds += 1;
            assert!(rounds < 50, "a thousand processes fit into a page");
        }
        Command::new("true").status().unwrap();
        assert!(!watcher.drain().unwrap().events.is_empty(), "it goes on after a loss");
    }
}
