//! Keeper protocol, version 1: the spec, the code and the bytes. Frozen.
//!
//! One SEQPACKET unix socket per session, one frame per datagram, at most [`FRAME_BYTES_MAX`] bytes. The first byte is the
//! kind; numbers are little-endian; a `list` is a u16 count and that many bytes. A keeper answers a kind it does not know
//! with `Refused{UNKNOWN}` and goes on; a host or client ignores kinds and trailing bytes it does not know. Kinds may be
//! added, never changed. The keeper only listens to its own uid and to root.
//!
//! | kind | frame | from | fields |
//! |---|---|---|---|
//! | 0x01 | Hello | any | u8 version, u8 role (0 client, 1 host), 16 bytes token |
//! | 0x02 | Follow | any | u64 position, u8 flags |
//! | 0x03 | Ack | any | u64 position |
//! | 0x04 | Sleep | any | u64 position, u64 wake_at |
//! | 0x05 | Tty | client | u8 flags, list path, then up to eight lists: byte patterns, none empty |
//! | 0x06 | TtyBack | client | |
//! | 0x07 | Input | any | u64 fence, u64 stream, u64 seq, bytes (at most 4096) |
//! | 0x08 | Resize | any | u64 fence, u16 columns, u16 rows |
//! | 0x09 | Signal | host | u64 fence, u8 target (0 foreground group, 1 child's group, 2 the tree), u8 number |
//! | 0x0a | Admit | host | 16 bytes token, u8 rights (1: may write) |
//! | 0x0b | Writer | host | u64 fence, u32 connection |
//! | 0x0c | Expel | host | u32 connection |
//! | 0x0d | Drained | host | u64 log position |
//! | 0x0e | End | host | u32 grace ms |
//! | 0x0f | Probe | host | |
//! | 0x10 | Flush | host | u64 fence |
//! | 0x11 | Spare | host | u8 flags, then up to 512 times: u32 pid, u64 start time |
//! | 0x12 | Lease | host | u64 lease fence, u64 until (ms of CLOCK_BOOTTIME), u8 flags, list cgroup directory |
//! | 0x81 | Welcome | keeper | u8 version, u32 connection, u64 features, u64 head, u64 log head, u64 fence, u16 columns, u16 rows, u32 child pid |
//! | 0x82 | Wake | keeper | u64 position |
//! | 0x83 | Keys | keeper | bytes |
//! | 0x84 | Written | keeper | u64 stream, u64 seq, u64 head |
//! | 0x85 | Refused | keeper | u8 code, u64 newest fence, u64 stream, u64 seq |
//! | 0x86 | Resized | keeper | u64 head, u16 columns, u16 rows |
//! | 0x87 | Joined | keeper | u32 connection, u32 pid, 16 bytes token, u8 rights |
//! | 0x88 | Left | keeper | u32 connection, u64 acked |
//! | 0x89 | Logged | keeper | u64 log head |
//! | 0x8a | Probed | keeper | u32 foreground group, u32 iflag, u32 oflag, u32 lflag, u32 unread input bytes |
//! | 0x8b | Exited | keeper | u32 wait status, u64 head |
//! | 0x8c | Fenced | keeper | u8 fenced (0: it goes on), u64 until, u32 late ms, u32 processes that could not be stopped, u64 head |
//!
//! **Connecting.** Hello first, else the connection is closed. The host's token is the session's secret, given to the
//! keeper at its start; a newer host connection replaces the older. A client's token was announced by the host (Admit) and
//! serves once; the keeper handles the host's frames before it greets newcomers. On a wrong version or token: Refused,
//! then closed. On success: Welcome; the host also gets Joined for every client (those already there too) and Left.
//! Beside the host up to [`CONNECTIONS_MAX`] clients are served; more are Refused{CROWDED}. Whoever does not take what is said
//! to it, and whoever sends 16 malformed frames, is closed.
//!
//! **Following.** Bytes are read from the mapped ring. Follow names the first offset wanted; flag 1 ([`FOLLOW_HOLDS`]):
//! a live reader that may hold the child back: head stays within a window (256 KiB) of what it acknowledged; flag 2
//! ([`FOLLOW_SCREEN`]): the host's screen, whose window is the ring less two guards, and which is held for as long again
//! after its connection broke, so that a host that is restarted at once finds everything. Whoever makes no progress at its
//! window's edge for 500 ms is no longer waited for until it has caught up. Ack says everything before is consumed; Sleep
//! says so too, and that the reader now sleeps: Wake comes once head reaches `wake_at`, at once if it is there, and
//! sooner if a holding reader stands at its window's edge. A Follow from an offset that is overwritten already holds nothing;
//! a reader that was lapped follows again from where it was repainted. Only the host may set flag 2 (Refused{HOST}).
//!
//! **The baton and the terminal.** Tty hands a client's terminal to the keeper, by path, opened on a description of its
//! own. Flag 1 ([`TTY_KEYS`]): the keeper reads its keys. Flag 2 ([`TTY_PAINT`]): while the client sleeps, the keeper
//! writes small output to it itself, and Wake tells from where the client goes on. At the first byte pattern found in
//! the keys (the client's chord), or when keys may not be written, it stops reading and hands everything from there
//! on to the client as Keys: the terminal's keys are the client's again until the next Tty. TtyBack asks for the same: the
//! answer is a Keys frame, possibly empty; with every Keys comes a Wake if the client slept. Before each read and each
//! write the keeper looks whether the client is still there: connected, not stopped, and in its terminal's foreground.
//!
//! **Writing.** Input with a fence other than the newest is Refused{STALE}; from a connection that is not the writer
//! Refused{WRITER}; when the queue is full Refused{FULL}. Otherwise it is recorded in the log, then written, then
//! answered with Written. A `(stream, seq)` at or below what that stream had is answered with Written and not written
//! again, whatever its fence: seq starts at 1 and grows. After Refused{FULL} the stream's later frames are refused so
//! too until that one comes again: nothing overtakes. At the start the fence is 0 and the writer [`WRITER_HOST`].
//! Writer says under which fence, and which connection may write: a number, [`WRITER_ANY`] (every admitted client that
//! may write, and the host) or [`WRITER_HOST`]. The host may always write with the newest fence. A fence is never
//! lowered. Resize counts as writing; everybody gets Resized with the head at that moment, nobody if it is the size
//! already. Signal too. Flush raises the fence, drops queued input and what the terminal has unread; frames dropped
//! are answered Refused{STALE}, and may come again if nothing of them was written.
//!
//! **The log** ([`crate::log`]). Drained says the host has everything before that position and arms Logged, which comes once
//! when there is more. While the log is full no input is taken: Input, Resize and Signal are Refused{FULL}.
//!
//! **The end.** End: HUP and CONT to the whole tree, and KILL after the grace. When the child has ended and its output
//! is drained (End: when the whole tree has) the ring's header gets the final status, everybody gets Exited, the
//! socket closes and goes.
//!
//! **What is spared.** A host that was started inside the session is a descendant of its keeper, and so may be other sessions'
//! keepers. Spare names them, by pid and the start time in `/proc/<pid>/stat`: neither they nor anything below them gets the
//! signals of End and of Signal to the tree. It replaces the earlier list; with flag 1 ([`SPARE_MORE`]) it is added to it. A
//! keeper that knows it says so by the bit [`FEATURE_SPARE`] in Welcome's features; earlier ones spared by name.
//!
//! **Leases.** Lease says until when the session may run here, by a clock that also counts while the machine sleeps. At that moment the
//! keeper stops the whole tree by itself: its cgroup is frozen, if the frame named a directory for one, and who cannot be moved there
//! gets SIGSTOP. From then on nothing is typed: Input, Resize and Signal are Refused{FULL}, and no keys are read. The host is told by
//! Fenced, then and whenever it connects. A Lease with a later `until` lets the tree go on, unless flag 2 ([`LEASE_STILL`]) says that it
//! was frozen for another reason; without that flag it also lets go on what the host froze: of a leased session only the keeper thaws. A
//! lease fence below the newest is Refused{STALE}; `until` never goes back under the same fence, but for 0, which stops the tree now.
//! With flag 1 ([`LEASE_HARD`]) the kernel kills the keeper [`HARD_FENCE_MS`] after `until` if the keeper did not stop the tree: also one
//! that is itself stopped. End kills the tree of a fenced session at once, without letting it go on. A keeper that knows all this says so
//! by [`FEATURE_LEASE`].

use crate::take::Take;

/// The version this file describes.
pub const VERSION: u8 = 1;
/// Largest frame: an Input of 4096 bytes, or a path and patterns.
pub const FRAME_BYTES_MAX: usize = 8192;
/// Largest input in one frame: what a terminal's line discipline takes at once.
pub const INPUT_BYTES_MAX: usize = 4096;
/// Clients a keeper serves at once.
pub const CONNECTIONS_MAX: usize = 64;
/// How far head may run ahead of a live reader: 2 ms of a flood, so that Ctrl-C is not late.
pub const WINDOW_BYTES: u64 = 256 * 1024;
/// A reader without progress at its window's edge for this long is no longer waited for.
pub const STALL_MS: u64 = 500;

/// [`ToKeeper::Follow`]: may hold the child back.
pub const FOLLOW_HOLDS: u8 = 1;
/// [`ToKeeper::Follow`]: the host's screen.
pub const FOLLOW_SCREEN: u8 = 2;
/// [`ToKeeper::Tty`]: read its keys.
pub const TTY_KEYS: u8 = 1;
/// [`ToKeeper::Tty`]: write small output to it while the client sleeps.
pub const TTY_PAINT: u8 = 2;
/// [`ToKeeper::Admit`]: may write.
pub const RIGHT_WRITE: u8 = 1;
/// [`ToKeeper::Writer`]: every admitted client that may write.
pub const WRITER_ANY: u32 = 0;
/// [`ToKeeper::Writer`]: nobody but the host.
pub const WRITER_HOST: u32 = u32::MAX;
/// [`ToKeeper::Spare`]: adds to the list instead of replacing it.
pub const SPARE_MORE: u8 = 1;
/// Processes in one Spare frame.
pub const SPARE_MAX: usize = 512;
/// Bytes of one process in a Spare frame.
pub const SPARE_BYTES: usize = 12;
/// [`Welcome::features`]: the keeper knows Spare.
pub const FEATURE_SPARE: u64 = 1;
/// [`Welcome::features`]: the keeper knows Lease.
pub const FEATURE_LEASE: u64 = 2;
/// [`ToKeeper::Lease`]: the keeper is killed if it does not stop the tree in time.
pub const LEASE_HARD: u8 = 1;
/// [`ToKeeper::Lease`]: the tree is to stand still, whatever the lease says.
pub const LEASE_STILL: u8 = 2;
/// From the end of a lease to the kill of a keeper that did nothing: what a keeper takes under load to stop its tree.
pub const HARD_FENCE_MS: u64 = 300;
/// Byte patterns in one Tty frame.
pub const PATTERNS_MAX: usize = 8;
/// Bytes of one pattern.
pub const PATTERN_BYTES_MAX: usize = 32;

/// [`FromKeeper::Refused`] codes.
pub mod refused {
    /// The version asked for is not spoken here.
    pub const VERSION: u8 = 1;
    /// The token is not known.
    pub const TOKEN: u8 = 2;
    /// The fence is not the newest.
    pub const STALE: u8 = 3;
    /// This connection is not the writer.
    pub const WRITER: u8 = 4;
    /// The queue or the log is full: try again.
    pub const FULL: u8 = 5;
    /// The frame is cut or makes no sense.
    pub const FRAME: u8 = 6;
    /// Too many connections.
    pub const CROWDED: u8 = 7;
    /// Only the host may ask that.
    pub const HOST: u8 = 8;
    /// The kind is not known here.
    pub const UNKNOWN: u8 = 9;
    /// The terminal cannot be opened, or is gone.
    pub const TTY: u8 = 10;
}

/// A token: 128 random bits.
pub type Token = [u8; 16];

/// What the host and the clients say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are described in the module's table
pub enum ToKeeper<'a> {
    Hello { version: u8, role: u8, token: Token },
    Follow { position: u64, flags: u8 },
    Ack { position: u64 },
    Sleep { position: u64, wake_at: u64 },
    Tty { flags: u8, path: &'a [u8], patterns: [&'a [u8]; PATTERNS_MAX] },
    TtyBack,
    Input { fence: u64, stream: u64, seq: u64, bytes: &'a [u8] },
    Resize { fence: u64, cols: u16, rows: u16 },
    Signal { fence: u64, target: u8, number: u8 },
    Admit { token: Token, rights: u8 },
    Writer { fence: u64, connection: u32 },
    Expel { connection: u32 },
    Drained { position: u64 },
    End { grace_ms: u32 },
    Probe,
    Flush { fence: u64 },
    Spare { flags: u8, processes: &'a [u8] },
    Lease { fence: u64, until_ms: u64, flags: u8, cgroup: &'a [u8] },
}

/// Processes as [`ToKeeper::Spare`] has them.
#[must_use]
pub fn spare_list(processes: &[(u32, u64)]) -> Vec<u8> {
    processes.iter().flat_map(|(pid, start)| [&pid.to_le_bytes()[..], &start.to_le_bytes()].concat()).collect()
}

/// The processes of a [`ToKeeper::Spare`].
pub fn spared(processes: &[u8]) -> impl Iterator<Item = (u32, u64)> {
    processes.chunks_exact(SPARE_BYTES).filter_map(|process| {
        let mut take = Take(process);
        Some((take.u32()?, take.u64()?))
    })
}

/// What a keeper says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are described in the module's table
pub enum FromKeeper<'a> {
    Welcome(Welcome),
    Wake { position: u64 },
    Keys { bytes: &'a [u8] },
    Written { stream: u64, seq: u64, head: u64 },
    Refused { code: u8, fence: u64, stream: u64, seq: u64 },
    Resized { head: u64, cols: u16, rows: u16 },
    Joined { connection: u32, pid: u32, token: Token, rights: u8 },
    Left { connection: u32, acked: u64 },
    Logged { log_head: u64 },
    Probed { foreground: u32, iflag: u32, oflag: u32, lflag: u32, unread: u32 },
    Exited { status: u32, head: u64 },
    Fenced { fenced: u8, until_ms: u64, late_ms: u32, left: u32, head: u64 },
}

/// The greeting of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are described in the module's table
pub struct Welcome {
    pub version: u8,
    pub connection: u32,
    pub features: u64,
    pub head: u64,
    pub log_head: u64,
    pub fence: u64,
    pub cols: u16,
    pub rows: u16,
    pub child_pid: u32,
}

/// Why a datagram is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A kind this build does not know.
    Unknown(u8),
    /// Too short, too long, or with impossible fields.
    Malformed,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Unknown(kind) => write!(f, "unknown frame kind {kind:#04x}"),
            FrameError::Malformed => write!(f, "malformed frame"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Fields appended to a frame.
struct Put<'a>(&'a mut Vec<u8>);

impl Put<'_> {
    fn u8(self, n: u8) -> Self {
        self.0.push(n);
        self
    }
    fn u16(self, n: u16) -> Self {
        self.bytes(&n.to_le_bytes())
    }
    fn u32(self, n: u32) -> Self {
        self.bytes(&n.to_le_bytes())
    }
    fn u64(self, n: u64) -> Self {
        self.bytes(&n.to_le_bytes())
    }
    fn bytes(self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
    fn list(self, bytes: &[u8]) -> Self {
        self.u16(bytes.len() as u16).bytes(bytes)
    }
}

/// Starts a frame in a cleared buffer.
fn frame(out: &mut Vec<u8>, kind: u8) -> Put<'_> {
    out.clear();
    Put(out).u8(kind)
}

impl<'a> ToKeeper<'a> {
    /// Replaces the buffer's content with this frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            ToKeeper::Hello { version, role, token } => frame(out, 0x01).u8(version).u8(role).bytes(&token),
            ToKeeper::Follow { position, flags } => frame(out, 0x02).u64(position).u8(flags),
            ToKeeper::Ack { position } => frame(out, 0x03).u64(position),
            ToKeeper::Sleep { position, wake_at } => frame(out, 0x04).u64(position).u64(wake_at),
            ToKeeper::Tty { flags, path, patterns } => {
                let mut put = frame(out, 0x05).u8(flags).list(path);
                for pattern in patterns.iter().filter(|p| !p.is_empty()) {
                    put = put.list(pattern);
                }
                put
            }
            ToKeeper::TtyBack => frame(out, 0x06),
            ToKeeper::Input { fence, stream, seq, bytes } => {
                frame(out, 0x07).u64(fence).u64(stream).u64(seq).bytes(bytes)
            }
            ToKeeper::Resize { fence, cols, rows } => frame(out, 0x08).u64(fence).u16(cols).u16(rows),
            ToKeeper::Signal { fence, target, number } => frame(out, 0x09).u64(fence).u8(target).u8(number),
            ToKeeper::Admit { token, rights } => frame(out, 0x0a).bytes(&token).u8(rights),
            ToKeeper::Writer { fence, connection } => frame(out, 0x0b).u64(fence).u32(connection),
            ToKeeper::Expel { connection } => frame(out, 0x0c).u32(connection),
            ToKeeper::Drained { position } => frame(out, 0x0d).u64(position),
            ToKeeper::End { grace_ms } => frame(out, 0x0e).u32(grace_ms),
            ToKeeper::Probe => frame(out, 0x0f),
            ToKeeper::Flush { fence } => frame(out, 0x10).u64(fence),
            ToKeeper::Spare { flags, processes } => frame(out, 0x11).u8(flags).bytes(processes),
            ToKeeper::Lease { fence, until_ms, flags, cgroup } => {
                frame(out, 0x12).u64(fence).u64(until_ms).u8(flags).list(cgroup)
            }
        };
    }

    /// Reads one datagram.
    pub fn decode(datagram: &'a [u8]) -> Result<ToKeeper<'a>, FrameError> {
        let mut take = Take(datagram);
        let kind = take.u8().ok_or(FrameError::Malformed)?;
        if !(0x01..=0x12).contains(&kind) {
            return Err(FrameError::Unknown(kind));
        }
        ToKeeper::fields(kind, &mut take).ok_or(FrameError::Malformed)
    }

    fn fields(kind: u8, take: &mut Take<'a>) -> Option<ToKeeper<'a>> {
        Some(match kind {
            0x01 => ToKeeper::Hello { version: take.u8()?, role: take.u8()?, token: take.array()? },
            0x02 => ToKeeper::Follow { position: take.u64()?, flags: take.u8()? },
            0x03 => ToKeeper::Ack { position: take.u64()? },
            0x04 => ToKeeper::Sleep { position: take.u64()?, wake_at: take.u64()? },
            0x05 => {
                let (flags, path) = (take.u8()?, take.counted()?);
                let mut patterns: [&[u8]; PATTERNS_MAX] = [&[]; PATTERNS_MAX];
                for slot in &mut patterns {
                    if take.0.is_empty() {
                        break;
                    }
                    *slot = take.counted().filter(|p| (1..=PATTERN_BYTES_MAX).contains(&p.len()))?;
                }
                ToKeeper::Tty { flags, path, patterns }
            }
            0x06 => ToKeeper::TtyBack,
            0x07 => {
                let (fence, stream, seq) = (take.u64()?, take.u64()?, take.u64()?);
                let bytes = Some(take.0).filter(|b| b.len() <= INPUT_BYTES_MAX)?;
                ToKeeper::Input { fence, stream, seq, bytes }
            }
            0x08 => ToKeeper::Resize { fence: take.u64()?, cols: take.u16()?, rows: take.u16()? },
            0x09 => ToKeeper::Signal { fence: take.u64()?, target: take.u8()?, number: take.u8()? },
            0x0a => ToKeeper::Admit { token: take.array()?, rights: take.u8()? },
            0x0b => ToKeeper::Writer { fence: take.u64()?, connection: take.u32()? },
            0x0c => ToKeeper::Expel { connection: take.u32()? },
            0x0d => ToKeeper::Drained { position: take.u64()? },
            0x0e => ToKeeper::End { grace_ms: take.u32()? },
            0x0f => ToKeeper::Probe,
            0x10 => ToKeeper::Flush { fence: take.u64()? },
            0x12 => {
                let (fence, until_ms, flags) = (take.u64()?, take.u64()?, take.u8()?);
                let is_path = |path: &&[u8]| path.is_empty() || (path.starts_with(b"/") && !path.contains(&0));
                ToKeeper::Lease { fence, until_ms, flags, cgroup: take.counted().filter(is_path)? }
            }
            _ => {
                let flags = take.u8()?;
                let is_whole =
                    |list: &&[u8]| list.len().is_multiple_of(SPARE_BYTES) && list.len() <= SPARE_MAX * SPARE_BYTES;
                ToKeeper::Spare { flags, processes: Some(take.0).filter(is_whole)? }
            }
        })
    }
}

impl<'a> FromKeeper<'a> {
    /// Replaces the buffer's content with this frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            FromKeeper::Welcome(w) => frame(out, 0x81)
                .u8(w.version)
                .u32(w.connection)
                .u64(w.features)
                .u64(w.head)
                .u64(w.log_head)
                .u64(w.fence)
                .u16(w.cols)
                .u16(w.rows)
                .u32(w.child_pid),
            FromKeeper::Wake { position } => frame(out, 0x82).u64(position),
            FromKeeper::Keys { bytes } => frame(out, 0x83).bytes(bytes),
            FromKeeper::Written { stream, seq, head } => frame(out, 0x84).u64(stream).u64(seq).u64(head),
            FromKeeper::Refused { code, fence, stream, seq } => {
                frame(out, 0x85).u8(code).u64(fence).u64(stream).u64(seq)
            }
            FromKeeper::Resized { head, cols, rows } => frame(out, 0x86).u64(head).u16(cols).u16(rows),
            FromKeeper::Joined { connection, pid, token, rights } => {
                frame(out, 0x87).u32(connection).u32(pid).bytes(&token).u8(rights)
            }
            FromKeeper::Left { connection, acked } => frame(out, 0x88).u32(connection).u64(acked),
            FromKeeper::Logged { log_head } => frame(out, 0x89).u64(log_head),
            FromKeeper::Probed { foreground, iflag, oflag, lflag, unread } => {
                frame(out, 0x8a).u32(foreground).u32(iflag).u32(oflag).u32(lflag).u32(unread)
            }
            FromKeeper::Exited { status, head } => frame(out, 0x8b).u32(status).u64(head),
            FromKeeper::Fenced { fenced, until_ms, late_ms, left, head } => {
                frame(out, 0x8c).u8(fenced).u64(until_ms).u32(late_ms).u32(left).u64(head)
            }
        };
    }

    /// Reads one datagram.
    pub fn decode(datagram: &'a [u8]) -> Result<FromKeeper<'a>, FrameError> {
        let mut take = Take(datagram);
        let kind = take.u8().ok_or(FrameError::Malformed)?;
        if !(0x81..=0x8c).contains(&kind) {
            return Err(FrameError::Unknown(kind));
        }
        FromKeeper::fields(kind, &mut take).ok_or(FrameError::Malformed)
    }

    fn fields(kind: u8, take: &mut Take<'a>) -> Option<FromKeeper<'a>> {
        Some(match kind {
            0x81 => FromKeeper::Welcome(Welcome {
                version: take.u8()?,
                connection: take.u32()?,
                features: take.u64()?,
                head: take.u64()?,
                log_head: take.u64()?,
                fence: take.u64()?,
                cols: take.u16()?,
                rows: take.u16()?,
                child_pid: take.u32()?,
            }),
            0x82 => FromKeeper::Wake { position: take.u64()? },
            0x83 => FromKeeper::Keys { bytes: take.0 },
            0x84 => FromKeeper::Written { stream: take.u64()?, seq: take.u64()?, head: take.u64()? },
            0x85 => FromKeeper::Refused { code: take.u8()?, fence: take.u64()?, stream: take.u64()?, seq: take.u64()? },
            0x86 => FromKeeper::Resized { head: take.u64()?, cols: take.u16()?, rows: take.u16()? },
            0x87 => FromKeeper::Joined {
                connection: take.u32()?,
                pid: take.u32()?,
                token: take.array()?,
                rights: take.u8()?,
            },
            0x88 => FromKeeper::Left { connection: take.u32()?, acked: take.u64()? },
            0x89 => FromKeeper::Logged { log_head: take.u64()? },
            0x8a => FromKeeper::Probed {
                foreground: take.u32()?,
                iflag: take.u32()?,
                oflag: take.u32()?,
                lflag: take.u32()?,
                unread: take.u32()?,
            },
            0x8c => FromKeeper::Fenced {
                fenced: take.u8()?,
                until_ms: take.u64()?,
                late_ms: take.u32()?,
                left: take.u32()?,
                head: take.u64()?,
            },
            _ => FromKeeper::Exited { status: take.u32()?, head: take.u64()? },
        })
    }
}

#[cfg(test)]
mod tests;
