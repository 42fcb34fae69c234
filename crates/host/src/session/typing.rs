//! What keepers read from terminals by themselves, as bursts for the journal.
//!
//! A burst is what one hand typed within a moment, up to the end of a line: a word is one act, not five.

use holdfast_abi::log::{FLAG_ECHO_OFF, Kind, Record as Logged};
use holdfast_abi::ring::Ring;
use holdfast_authority::{Burst, Keys};
use holdfast_types::{Fence, TimeMs};

/// How long keys typed directly may wait to become one burst with those that follow.
const BURST_MS: TimeMs = 2_000;

/// One burst of keys that a keeper read by itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Typing {
    /// Under which fence.
    pub fence: Fence,
    /// The keeper's number of the client whose terminal it was.
    connection: u32,
    /// The keys.
    pub burst: Burst,
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

/// Reads the log's records from `from` to `to` as bursts, but for those connections to skip.
pub fn read_bursts(ring: &Ring, from: u64, to: u64, skips: impl Fn(u32) -> bool) -> Vec<Typing> {
    let mut bursts: Vec<Typing> = Vec::new();
    let Some(length) = usize::try_from(to.saturating_sub(from)).ok().filter(|n| *n as u64 <= ring.log_bytes()) else {
        return bursts;
    };
    let mut bytes = vec![0; length];
    ring.copy_log(from, &mut bytes);
    let mut rest = bytes.as_slice();
    while let Some((record, length)) = Logged::decode(rest) {
        rest = &rest[length..];
        if record.kind != Kind::Input || skips(record.connection) {
            continue;
        }
        let typing = Typing {
            fence: Fence(record.fence),
            connection: record.connection,
            burst: Burst {
                from: record.at,
                to: record.at,
                len: u64::from(record.count),
                keys: (record.flags & FLAG_ECHO_OFF == 0).then(|| Keys(record.bytes.to_vec())),
            },
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
            && (self.burst.keys.is_none() || !self.ends_line())
            && next.since_ms.saturating_sub(self.since_ms) < BURST_MS
            && self.burst.len + next.burst.len <= BURST_BYTES_MAX as u64
    }
}
