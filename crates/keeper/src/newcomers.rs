//! Coming and going: who knocks, who is let in, and word of it to the host.

use std::os::fd::AsFd;

use holdfast_abi::protocol::{
    CONNECTIONS_MAX, FEATURE_LEASE, FEATURE_SPARE, FromKeeper, ToKeeper, Token, VERSION, Welcome, refused,
};

use crate::connections::Role;
use crate::keeper::Keeper;
use crate::sys::{self, Received};
use crate::turn;

/// No descriptor was left for a newcomer: it waits in the kernel's queue so long.
const CROWDED_MS: u64 = 1000;
/// Newcomers that may be undecided at once, beyond the connections that are greeted.
const NEWCOMERS_MAX: usize = 8;

impl Keeper {
    /// Takes in whoever knocks, if it is our user or root.
    pub(crate) fn accept(&mut self, now_ms: u64) {
        // SAFETY: no memory is involved.
        let own_user = unsafe { libc::geteuid() };
        for _ in 0..NEWCOMERS_MAX {
            if self.connections.len() > CONNECTIONS_MAX + NEWCOMERS_MAX {
                self.connections.drop_oldest_newcomer();
                self.sweep();
            }
            match sys::socket::accept(self.parts.listener.as_fd()) {
                Ok(socket) => match sys::socket::peer(socket.as_fd()) {
                    Ok((pid, user)) if user == own_user || user == 0 => self.connections.add(socket, pid),
                    Ok(_) | Err(_) => drop(socket),
                },
                Err(error) => match sys::errno(&error) {
                    libc::EAGAIN => return,
                    libc::EINTR | libc::ECONNABORTED => {}
                    _ => return self.crowded_until_ms = Some(now_ms + CROWDED_MS),
                },
            }
        }
    }

    /// Closes those who are gone, and tells the host.
    pub(crate) fn sweep(&mut self) {
        while let Some(departed) = self.connections.sweep() {
            if departed.is_screen && !self.connections.iter().any(|connection| connection.is_screen) {
                self.ghost = Some(departed.follower);
            }
            if matches!(departed.role, Role::Client { .. }) {
                let (connection, acked) = (departed.number, departed.follower.acked());
                self.connections.send_to_host(FromKeeper::Left { connection, acked });
            }
        }
    }

    /// A newcomer's first frame, if it is there. The host is heard first: it may just have announced the token.
    pub(crate) fn greet(&mut self, at: usize) {
        let hello = match sys::receive(self.connections[at].socket(), &mut self.buffer) {
            Received::Nothing => return,
            Received::Datagram => ToKeeper::decode(&self.buffer).ok(),
            Received::Oversized | Received::Gone => None,
        };
        let Some(&ToKeeper::Hello { version, role, token }) = hello.as_ref() else {
            self.connections[at].gone = true;
            return;
        };
        self.hear_host();
        match self.role_of(version, role, token) {
            Ok(role) => self.welcome(at, role),
            Err(code) => {
                self.refuse(at, code, 0, 0);
                self.connections[at].gone = true;
            }
        }
    }

    fn role_of(&mut self, version: u8, role: u8, token: Token) -> Result<Role, u8> {
        let clients = self.connections.iter().filter(|connection| connection.is_client() && !connection.gone).count();
        match role {
            _ if version != VERSION => Err(refused::VERSION),
            1 if turn::same(&token, &self.parts.secret) => Ok(Role::Host),
            0 if clients >= CONNECTIONS_MAX => Err(refused::CROWDED),
            0 => self.admitted.take(&token).map(|rights| Role::Client { token, rights }).ok_or(refused::TOKEN),
            1 => Err(refused::TOKEN),
            _ => Err(refused::FRAME),
        }
    }

    fn welcome(&mut self, at: usize, role: Role) {
        if role == Role::Host {
            // Who has not said how far it drained the log did not ask to hear of it.
            self.log_armed = false;
            if let Some(former) = self.connections.host() {
                self.connections[former].gone = true;
            }
        }
        self.connections[at].role = role;
        let welcome = Welcome {
            version: VERSION,
            connection: self.connections[at].number,
            features: FEATURE_SPARE | FEATURE_LEASE,
            head: self.head,
            log_head: self.log_head,
            fence: self.turn.fence(),
            cols: self.parts.size.0,
            rows: self.parts.size.1,
            child_pid: self.child_pid(),
        };
        self.connections.send(at, FromKeeper::Welcome(welcome));
        if role != Role::Host {
            return self.announce(at);
        }
        for client in 0..self.connections.len() {
            if !self.connections[client].gone {
                self.announce(client);
            }
        }
        if self.parts.lease.is_fenced() {
            self.say_fenced();
        }
    }

    /// Tells the host of a client.
    fn announce(&mut self, at: usize) {
        let (connection, pid) = (self.connections[at].number, self.connections[at].pid);
        if let Role::Client { token, rights } = self.connections[at].role {
            self.connections.send_to_host(FromKeeper::Joined { connection, pid, token, rights });
        }
    }
}
