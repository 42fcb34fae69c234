//! The connections: who they are, how far they have read, and sending to them.
//!
//! A connection whose buffer is full when something must be said to it would miss it; it is marked gone instead, and
//! swept at the end of the round. Within a round positions in the list stay valid.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holdfast_abi::protocol::{FromKeeper, Token, WRITER_HOST};

use crate::client_tty::ClientTty;
use crate::flow::Follower;
use crate::sys;
use crate::turn::Asker;

/// Frames that make no sense before a connection is closed: a confused peer is told, a broken one is not fed for ever.
pub const BAD_FRAMES_MAX: u8 = 16;

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Not greeted yet.
    Newcomer,
    /// A client.
    Client {
        /// What it was admitted by.
        token: Token,
        /// What it may do.
        rights: u8,
    },
    /// The host.
    Host,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number, never used again.
    pub number: u32,
    /// Its process.
    pub pid: u32,
    /// Who it is.
    pub role: Role,
    /// How far it has read.
    pub follower: Follower,
    /// Whether the follower is the host's screen.
    pub is_screen: bool,
    /// It sleeps, and is to be woken once head reaches this.
    pub wake_at: Option<u64>,
    /// Its terminal.
    pub tty: Option<Box<ClientTty>>,
    /// Frames that made no sense.
    pub bad_frames: u8,
    /// To be closed.
    pub gone: bool,
    socket: OwnedFd,
}

impl Connection {
    /// What to poll and receive from.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Who asks, for the turn; a newcomer has no rights.
    #[must_use]
    pub fn asker(&self) -> Asker {
        match self.role {
            Role::Host => Asker::Host,
            Role::Client { rights, .. } => Asker::Client { connection: self.number, rights },
            Role::Newcomer => Asker::Client { connection: self.number, rights: 0 },
        }
    }

    /// Whether it is a client that was greeted.
    #[must_use]
    pub fn is_client(&self) -> bool {
        matches!(self.role, Role::Client { .. })
    }
}

/// All connections.
#[derive(Debug, Default)]
pub struct Connections {
    list: Vec<Connection>,
    last_number: u32,
    scratch: Vec<u8>,
}

impl std::ops::Index<usize> for Connections {
    type Output = Connection;
    fn index(&self, at: usize) -> &Connection {
        &self.list[at]
    }
}

impl std::ops::IndexMut<usize> for Connections {
    fn index_mut(&mut self, at: usize) -> &mut Connection {
        &mut self.list[at]
    }
}

impl Connections {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.list.iter()
    }

    /// All, in the order they came.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.list.iter_mut()
    }

    /// A newcomer.
    pub fn add(&mut self, socket: OwnedFd, pid: u32) {
        // Zero and the largest number have meanings of their own.
        self.last_number = if self.last_number >= WRITER_HOST - 1 { 1 } else { self.last_number + 1 };
        self.list.push(Connection {
            number: self.last_number,
            pid,
            role: Role::Newcomer,
            follower: Follower::watching(0),
            is_screen: false,
            wake_at: None,
            tty: None,
            bad_frames: 0,
            gone: false,
            socket,
        });
    }

    /// Where the connection of this number is.
    #[must_use]
    pub fn find(&self, number: u32) -> Option<usize> {
        self.list.iter().position(|connection| connection.number == number && !connection.gone)
    }

    /// Where the host is.
    #[must_use]
    pub fn host(&self) -> Option<usize> {
        self.list.iter().position(|connection| connection.role == Role::Host && !connection.gone)
    }

    /// Says something to one.
    pub fn send(&mut self, at: usize, frame: FromKeeper<'_>) {
        let connection = &mut self.list[at];
        if connection.gone {
            return;
        }
        frame.encode(&mut self.scratch);
        connection.gone = sys::send(connection.socket.as_fd(), &self.scratch).is_err();
    }

    /// Says something to the host, if there is one.
    pub fn send_to_host(&mut self, frame: FromKeeper<'_>) {
        if let Some(at) = self.host() {
            self.send(at, frame);
        }
    }

    /// Says something to everybody who was greeted.
    pub fn broadcast(&mut self, frame: FromKeeper<'_>) {
        for at in 0..self.list.len() {
            if self.list[at].role != Role::Newcomer {
                self.send(at, frame);
            }
        }
    }

    /// Takes out one that is gone, and closes it.
    pub fn sweep(&mut self) -> Option<Departed> {
        let at = self.list.iter().position(|connection| connection.gone)?;
        let connection = self.list.remove(at);
        sys::close_after_last_words(connection.socket);
        Some(Departed {
            number: connection.number,
            role: connection.role,
            follower: connection.follower,
            is_screen: connection.is_screen,
        })
    }

    /// Marks the newcomer that has waited longest to say who it is, so that those who never do cannot keep others out.
    pub fn drop_oldest_newcomer(&mut self) {
        let oldest = self.list.iter_mut().find(|connection| connection.role == Role::Newcomer && !connection.gone);
        if let Some(connection) = oldest {
            connection.gone = true;
        }
    }
}

/// What is left of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Departed {
    /// Its number.
    pub number: u32,
    /// Who it was.
    pub role: Role,
    /// How far it had read.
    pub follower: Follower,
    /// Whether it was the host's screen.
    pub is_screen: bool,
}
