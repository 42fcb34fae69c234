//! What was typed, from the keeper's log, as bursts for the journal.
//!
//! The log has both what the keeper read from terminals by itself and what the host handed to it for others. A burst is what
//! one hand typed within a moment, up to the end of a line: a word is one act, not five.

use holdfast_abi::log::{FLAG_ECHO_OFF, FLAG_ECHO_ON, Kind, Record as Logged};
use holdfast_authority::{Burst, Keys};
use holdfast_types::{Fence, TimeMs};

/// How long keys typed directly may wait to become one burst with those that follow.
const BURST_MS: TimeMs = 2_000;

/// One burst of keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Typing {
    /// Under which fence.
    pub fence: Fence,
    /// The keeper's number of the connection it came by.
    pub connection: u32,
    /// The keys.
    pub burst: Burst,
    /// The keeper read them from a terminal by itself; otherwise they came through a host.
    pub direct: bool,
    /// The terminal echoed them.
    pub echoed: bool,
    since_ms: TimeMs,
    /// The log up to and with it.
    pub log: u64,
}

impl Typing {
    /// Whether what follows may still become part of it.
    pub fn may_grow(&self, now_ms: TimeMs) -> bool {
        !self.ends_line() && now_ms.saturating_sub(self.since_ms) < BURST_MS
    }

    fn ends_line(&self) -> bool {
        let last = self.burst.keys.as_ref().and_then(|keys| keys.0.last());
        self.burst.keys.is_none() || matches!(last, Some(b'\r' | b'\n' | 3 | 4))
    }
}

/// Longest burst in one record: a paste becomes several, and each line of the journal stays readable.
const BURST_BYTES_MAX: usize = 16 * 1024;

/// A stream's first three bytes tell whose it is; the rest is random. Streams of clients begin with neither of these: one
/// that picks its stream at random is refused once in eight million times.
const TAG_SHIFT: u32 = 40;
/// What the host types on nobody's behalf: answers to queries, and the keys of runs, which have records of their own.
const OWN_TAG: u64 = 0xf0_1dfa;
/// Secrets: the journal keeps their lengths.
const SECRET_TAG: u64 = 0xf0_1d5e;

fn tagged(stream: u64, tag: u64) -> u64 {
    (stream & ((1 << TAG_SHIFT) - 1)) | tag << TAG_SHIFT
}

/// A stream of the host's own.
pub(crate) fn own_stream(random: u64) -> u64 {
    tagged(random, OWN_TAG)
}

/// The stream under which a client's secrets reach the keeper.
pub(crate) fn secret_stream(stream: u64) -> u64 {
    tagged(stream, SECRET_TAG)
}

/// Whether a stream is the host's own.
#[must_use]
pub fn is_own_stream(stream: u64) -> bool {
    stream >> TAG_SHIFT == OWN_TAG
}

/// Whether a client may not use a stream: what it types there would not be recorded as its own.
#[must_use]
pub fn is_reserved_stream(stream: u64) -> bool {
    is_own_stream(stream) || stream >> TAG_SHIFT == SECRET_TAG
}

/// Reads the log's records, whose bytes end at `to`, as bursts. `is_host` tells a host's connections.
pub fn read_bursts(bytes: &[u8], to: u64, is_host: impl Fn(u32) -> bool) -> Vec<Typing> {
    let mut bursts: Vec<Typing> = Vec::new();
    let mut rest = bytes;
    while let Some((record, length)) = Logged::decode(rest) {
        rest = &rest[length..];
        let direct = !is_host(record.connection);
        if record.kind != Kind::Input || (!direct && is_own_stream(record.stream)) {
            continue;
        }
        let hidden = record.flags & FLAG_ECHO_OFF != 0 || (!direct && record.stream >> TAG_SHIFT == SECRET_TAG);
        let typing = Typing {
            fence: Fence(record.fence),
            connection: record.connection,
            burst: Burst {
                from: record.at,
                to: record.at,
                len: u64::from(record.count),
                keys: (!hidden).then(|| Keys(record.bytes.to_vec())),
            },
            direct,
            echoed: record.flags & FLAG_ECHO_ON != 0,
            since_ms: record.time_ms,
            log: to - rest.len() as u64,
        };
        match bursts.last_mut().filter(|last| last.joins(&typing)) {
            Some(last) => {
                last.burst.to = typing.burst.to;
                last.burst.len += typing.burst.len;
                last.log = typing.log;
                if let (Some(keys), Some(more)) = (&mut last.burst.keys, typing.burst.keys) {
                    keys.0.extend(more.0);
                }
            }
            None => bursts.push(typing),
        }
    }
    bursts
}

impl Typing {
    /// Whether the next one belongs to the same burst: the same hand, a moment later, and the line not ended yet.
    fn joins(&self, next: &Typing) -> bool {
        self.fence == next.fence
            && self.connection == next.connection
            && self.burst.keys.is_some() == next.burst.keys.is_some()
            && (self.burst.keys.is_none() || (!self.ends_line() && self.echoed == next.echoed))
            && next.since_ms.saturating_sub(self.since_ms) < BURST_MS
            && self.burst.len + next.burst.len <= BURST_BYTES_MAX as u64
    }
}
