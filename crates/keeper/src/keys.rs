//! Input: from frames and from clients' terminals, through the log, into the session's terminal.

use holdfast_abi::log::{FLAG_ECHO_OFF, Kind, RECORD_HEADER_BYTES, Record};
use holdfast_abi::protocol::{FromKeeper, INPUT_BYTES_MAX, refused};

use crate::chord::{self, Cut, PIECE_MS};
use crate::client_tty::AWAY_MS;
use crate::keeper::Keeper;
use crate::streams::Verdict;
use crate::sys;

/// One thing for the log.
pub(crate) struct Entry<'a> {
    pub kind: Kind,
    pub connection: u32,
    pub stream: u64,
    pub seq: u64,
    pub bytes: &'a [u8],
}

impl Keeper {
    fn log_room(&self) -> usize {
        let used = self.log_head - self.log_drained;
        (self.parts.ring.log_bytes() - used) as usize
    }

    /// Records something before it takes effect. False where the log has no room: then it must not take effect.
    pub(crate) fn record(&mut self, entry: &Entry<'_>) -> bool {
        if self.is_over() || (RECORD_HEADER_BYTES + entry.bytes.len()).next_multiple_of(8) > self.log_room() {
            return false;
        }
        let flags = if entry.kind == Kind::Input { self.parts.terminal.echo_flag() } else { 0 };
        let record = Record {
            kind: entry.kind,
            flags,
            count: entry.bytes.len() as u16,
            connection: entry.connection,
            fence: self.turn.fence(),
            at: self.head,
            stream: entry.stream,
            seq: entry.seq,
            time_ms: sys::epoch_ms(),
            bytes: if flags == FLAG_ECHO_OFF { &[] } else { entry.bytes },
        };
        self.scratch.clear();
        record.encode(&mut self.scratch);
        // SAFETY: the ring was made by `Ring::create`.
        unsafe { self.parts.ring.append_log(self.log_head, &self.scratch) };
        self.log_head += self.scratch.len() as u64;
        self.announce_log();
        true
    }

    /// Tells the host once that there is more than it drained.
    pub(crate) fn announce_log(&mut self) {
        let log_head = self.log_head;
        if self.log_armed && log_head > self.log_drained {
            self.log_armed = false;
            self.connections.send_to_host(FromKeeper::Logged { log_head });
        }
    }

    /// Takes an Input frame.
    pub(crate) fn input(&mut self, at: usize, fence: u64, stream: u64, seq: u64, bytes: &[u8]) {
        let number = self.connections[at].number;
        let verdict = self.streams.judge(stream, seq);
        // Asked before the fence: that it was written stays true whoever writes now.
        if verdict == Verdict::Had {
            if !self.queue.readdress(number, stream, seq) {
                self.connections.send(at, FromKeeper::Written { stream, seq, head: self.head });
            }
            return;
        }
        if let Err(code) = self.turn.check(self.connections[at].asker(), fence) {
            return self.refuse(at, code, stream, seq);
        }
        let entry = Entry { kind: Kind::Input, connection: number, stream, seq, bytes };
        if verdict == Verdict::Overtakes || !self.queue.has_room(bytes.len()) || !self.record(&entry) {
            if verdict == Verdict::New {
                self.streams.refused(stream, seq);
            }
            return self.refuse(at, refused::FULL, stream, seq);
        }
        self.streams.took(stream, seq);
        self.queue.push_frame(number, stream, seq, bytes);
        self.write_input();
    }

    /// Writes what the terminal takes, and tells whose frames are through.
    pub(crate) fn write_input(&mut self) {
        while !self.queue.is_empty() && !self.terminal_lost {
            match self.parts.terminal.write(self.queue.front()) {
                Ok(0) => break,
                Ok(count) => self.queue.wrote(count),
                Err(error) => {
                    if !matches!(sys::errno(&error), libc::EAGAIN | libc::EINTR) {
                        self.reopen_terminal();
                    }
                    break;
                }
            }
        }
        while let Some(frame) = self.queue.next_written() {
            if let Some(at) = self.connections.find(frame.connection) {
                let (stream, seq) = (frame.stream, frame.seq);
                self.connections.send(at, FromKeeper::Written { stream, seq, head: self.head });
            }
        }
    }

    /// Drops what waits and what the child has not read.
    pub(crate) fn flush_input(&mut self) {
        for (frame, unwritten) in self.queue.clear() {
            if unwritten {
                self.streams.dropped(frame.stream, frame.seq);
            }
            if let Some(at) = self.connections.find(frame.connection) {
                self.refuse(at, refused::STALE, frame.stream, frame.seq);
            }
        }
        self.parts.terminal.flush();
    }

    /// How many keys may be read now; none while some still wait or the log could not take them.
    pub(crate) fn keys_room(&self) -> usize {
        if !self.queue.is_empty() || self.is_over() {
            return 0;
        }
        let room = self.log_room().saturating_sub(RECORD_HEADER_BYTES) / 8 * 8;
        // A piece of a chord kept back goes with the next keys.
        let pieces = holdfast_abi::protocol::PATTERN_BYTES_MAX;
        room.saturating_sub(pieces).min(INPUT_BYTES_MAX)
    }

    /// Reads a client's terminal, if that is right at this very moment.
    pub(crate) fn read_keys(&mut self, at: usize, now_ms: u64) {
        let room = self.keys_room();
        let connection = &mut self.connections[at];
        let allowed = self.turn.allows(connection.asker());
        let Some(tty) = connection.tty.as_ref().filter(|tty| tty.keys && !connection.gone && room > 0) else { return };
        if sys::has_hung_up(connection.socket()) {
            connection.gone = true;
            return;
        }
        if !allowed {
            return self.hand_back(at, &[]);
        }
        if !tty.is_attended() {
            if let Some(tty) = connection.tty.as_mut() {
                tty.away_until_ms = Some(now_ms + AWAY_MS);
            }
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        match sys::read(tty.file(), &mut buffer, room) {
            Ok(1..) => self.take_keys(at, &buffer, now_ms),
            Err(error) if matches!(sys::errno(&error), libc::EAGAIN | libc::EINTR) => {}
            Ok(_) | Err(_) => self.lose_tty(at),
        }
        self.buffer = buffer;
    }

    fn take_keys(&mut self, at: usize, new: &[u8], now_ms: u64) {
        let Some(tty) = self.connections[at].tty.as_mut() else { return };
        let mut keys = std::mem::take(&mut tty.piece);
        keys.extend_from_slice(new);
        match chord::find(&keys, tty.patterns()) {
            Cut::None => self.type_keys(at, &keys),
            Cut::Piece(cut) => {
                tty.piece = keys[cut..].to_vec();
                tty.piece_until_ms = now_ms + PIECE_MS;
                self.type_keys(at, &keys[..cut]);
            }
            Cut::Chord(cut) => {
                self.type_keys(at, &keys[..cut]);
                self.hand_back(at, &keys[cut..]);
            }
        }
    }

    fn type_keys(&mut self, at: usize, keys: &[u8]) {
        let connection = self.connections[at].number;
        let entry = Entry { kind: Kind::Input, connection, stream: 0, seq: 0, bytes: keys };
        // There is room: it was looked at before the keys were read.
        if !keys.is_empty() && self.record(&entry) {
            self.queue.push_keys(keys);
            self.write_input();
        }
    }

    /// The terminal's keys are the client's again, these first; and so is the word.
    pub(crate) fn hand_back(&mut self, at: usize, keys: &[u8]) {
        let mut kept = Vec::new();
        if let Some(tty) = self.connections[at].tty.as_mut() {
            tty.keys = false;
            tty.away_until_ms = None;
            kept = std::mem::take(&mut tty.piece);
        }
        kept.extend_from_slice(keys);
        self.connections.send(at, FromKeeper::Keys { bytes: &kept });
        self.wake(at);
    }

    /// Takes the keys from clients that may not write any more.
    pub(crate) fn hand_back_where_not_allowed(&mut self) {
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            let reads = connection.tty.as_ref().is_some_and(|tty| tty.keys);
            if reads && !connection.gone && !self.turn.allows(connection.asker()) {
                self.hand_back(at, &[]);
            }
        }
    }

    /// The client's terminal is gone.
    pub(crate) fn lose_tty(&mut self, at: usize) {
        self.connections[at].tty = None;
        self.refuse(at, refused::TTY, 0, 0);
        self.wake(at);
    }

    /// Looks after what was put off: pieces that became no chord, and clients that were away.
    pub(crate) fn release_pieces(&mut self, now_ms: u64) {
        for at in 0..self.connections.len() {
            let may_type = self.keys_room() > 0;
            let Some(tty) = self.connections[at].tty.as_mut() else { continue };
            tty.away_until_ms = tty.away_until_ms.filter(|until_ms| now_ms < *until_ms);
            if tty.piece.is_empty() || now_ms < tty.piece_until_ms || !may_type {
                continue;
            }
            let piece = std::mem::take(&mut tty.piece);
            self.type_keys(at, &piece);
        }
    }
}
