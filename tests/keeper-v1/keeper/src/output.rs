//! From the terminal to the ring, and word of it to those who sleep.

use holdfast_abi::protocol::FromKeeper;
use holdfast_abi::ring::Copied;

use crate::keeper::Keeper;
use crate::sys;
use crate::terminal::Output;

/// Reads of the terminal between two looks at everybody else: about 64 KiB, a millisecond.
const READS_MAX: usize = 16;
/// Up to so much the keeper writes to a sleeping client's terminal itself: an echo, a prompt, a completion.
const PAINT_BYTES_MAX: u64 = 1024;
/// Without a page for the ring the child is held this long before the next try.
const NO_PAGE_MS: u64 = 100;
/// After the child's end at most so much is read: more than a terminal holds, so that others who go on writing to it cannot
/// keep the session.
const LAST_OUTPUT_BYTES_MAX: u64 = 1024 * 1024;

impl Keeper {
    /// Moves what the terminal takes and gives.
    pub(crate) fn move_terminal(&mut self, ready: i16, limit: u64, now_ms: u64) {
        if ready & libc::POLLOUT != 0 {
            self.write_input();
        }
        let hung_up = ready & (libc::POLLHUP | libc::POLLERR) != 0;
        if self.head < limit && (ready & libc::POLLIN != 0 || hung_up || self.must_drain()) {
            self.read_output(limit, now_ms);
        } else if hung_up {
            self.reopen_terminal();
        }
    }

    fn read_output(&mut self, limit: u64, now_ms: u64) {
        let settled = self.must_drain();
        for _ in 0..READS_MAX {
            let (to, room) = self.parts.ring.space(self.head);
            let room = (room as u64).min(limit - self.head) as usize;
            if room == 0 {
                return;
            }
            self.touched_ms = Some(now_ms);
            // SAFETY: `to` and `room` lie inside the ring's mapping, beyond the published head, where no reader trusts
            // the bytes and this process holds no reference.
            match unsafe { self.parts.terminal.read(to, room) } {
                Output::Bytes(count) => {
                    self.head += count as u64;
                    self.parts.ring.publish(self.head);
                    for at in 0..self.connections.len() {
                        self.notify(at);
                    }
                    self.last_output_bytes += if settled { count as u64 } else { 0 };
                    self.drained = self.last_output_bytes >= LAST_OUTPUT_BYTES_MAX;
                }
                Output::Nothing => return self.drained = settled,
                Output::HungUp if settled => return self.drained = true,
                Output::HungUp => return self.reopen_terminal(),
                Output::NoPage => return self.no_page_until_ms = Some(now_ms + NO_PAGE_MS),
            }
        }
    }

    pub(crate) fn reopen_terminal(&mut self) {
        self.terminal_lost = self.parts.terminal.reopen().is_err();
    }

    /// Tells a sleeper of new output: paints a little of it, or wakes it.
    pub(crate) fn notify(&mut self, at: usize) {
        let connection = &self.connections[at];
        let Some(wake_at) = connection.wake_at.filter(|_| !connection.gone) else { return };
        if connection.tty.as_ref().is_some_and(|tty| tty.paint) {
            self.paint(at);
            if self.connections[at].follower.acked() < self.head {
                self.wake(at);
            }
        } else if self.head >= wake_at || connection.follower.is_at_edge(self.head) {
            self.wake(at);
        }
    }

    /// Writes small output to a client's terminal, as far as it takes it and the client is in front of it.
    fn paint(&mut self, at: usize) {
        let head = self.head;
        let connection = &mut self.connections[at];
        let mut position = connection.follower.acked();
        let Some(tty) = connection.tty.as_ref() else { return };
        if position == head || head - position > PAINT_BYTES_MAX {
            return;
        }
        if sys::has_hung_up(connection.socket()) {
            connection.gone = true;
            return;
        }
        if !tty.is_attended() {
            return;
        }
        let mut bytes = [0; PAINT_BYTES_MAX as usize];
        while let Copied::Bytes(count @ 1..) = self.parts.ring.copy(position, &mut bytes) {
            let Ok(written @ 1..) = sys::write(tty.file(), &bytes[..count]) else { break };
            position += written as u64;
        }
        connection.follower.ack(position, head);
    }

    /// Gives the word to a sleeper.
    pub(crate) fn wake(&mut self, at: usize) {
        if self.connections[at].wake_at.take().is_some() {
            let position = self.connections[at].follower.acked();
            self.connections.send(at, FromKeeper::Wake { position });
        }
    }
}
