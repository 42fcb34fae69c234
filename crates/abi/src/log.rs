//! The log beside the ring: what reached the terminal from outside, recorded by the keeper before it took effect.
//!
//! Records are multiples of eight bytes, one behind the other, and wrap with the log:
//!
//! ```text
//!  0 u32 length of the record    4 u8 kind   5 u8 flags   6 u16 n
//!  8 u32 connection             12 u32 zero
//! 16 u64 fence                  24 u64 output head at that moment
//! 32 u64 stream                 40 u64 seq
//! 48 u64 ms since the epoch     56 the n bytes, unless flag 1 is set, then zeros up to the length
//! ```
//!
//! kind 1: input of `n` bytes; flag 1: the terminal's echo was off, so the bytes are not kept; flag 2: the terminal itself
//! echoed them. With neither a program reads them as they come, and shows them or not.
//! kind 2: a resize; stream holds the columns, seq the rows.
//! kind 3: a signal; stream holds its number, seq the target.
//! A reader skips kinds it does not know. The keeper never overwrites what the host has not drained.

use crate::take::Take;

/// Bytes of a record before its payload.
pub const RECORD_HEADER_BYTES: usize = 56;
/// [`Record::flags`]: echo was off, the bytes are not kept.
pub const FLAG_ECHO_OFF: u8 = 1;
/// [`Record::flags`]: the terminal echoed the bytes. Keepers of ring version 1 do not say.
pub const FLAG_ECHO_ON: u8 = 2;

/// What a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes written to the terminal.
    Input,
    /// The terminal's size changed.
    Resize,
    /// A signal was sent.
    Signal,
    /// Of a later version.
    Unknown(u8),
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Kind::Input => 1,
            Kind::Resize => 2,
            Kind::Signal => 3,
            Kind::Unknown(number) => number,
        }
    }
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// What happened.
    pub kind: Kind,
    /// [`FLAG_ECHO_OFF`], [`FLAG_ECHO_ON`].
    pub flags: u8,
    /// How many bytes were written; with echo off this is all that is known.
    pub count: u16,
    /// The keeper's number of the connection it came by.
    pub connection: u32,
    /// The fence it was written under.
    pub fence: u64,
    /// Output head at that moment.
    pub at: u64,
    /// The client's stream (columns of a resize).
    pub stream: u64,
    /// Its sequence number there (rows of a resize).
    pub seq: u64,
    /// When, ms since the epoch.
    pub time_ms: u64,
    /// The bytes, empty with echo off.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let length = (RECORD_HEADER_BYTES + self.bytes.len()).next_multiple_of(8);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[self.kind.number(), self.flags]);
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.connection.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for number in [self.fence, self.at, self.stream, self.seq, self.time_ms] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.bytes);
        out.resize(start + length, 0);
    }

    /// The record at the front of `bytes` and its length; `None` where there is no whole, sound one.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<(Record<'a>, usize)> {
        let mut take = Take(bytes);
        let length = take.u32()? as usize;
        if length < RECORD_HEADER_BYTES || !length.is_multiple_of(8) || length > bytes.len() {
            return None;
        }
        let kind = match take.u8()? {
            1 => Kind::Input,
            2 => Kind::Resize,
            3 => Kind::Signal,
            number => Kind::Unknown(number),
        };
        let (flags, count, connection) = (take.u8()?, take.u16()?, take.u32()?);
        take.u32()?;
        let (fence, at, stream, seq, time_ms) = (take.u64()?, take.u64()?, take.u64()?, take.u64()?, take.u64()?);
        let kept = if kind == Kind::Input && flags & FLAG_ECHO_OFF == 0 { usize::from(count) } else { 0 };
        let payload = bytes[RECORD_HEADER_BYTES..length].get(..kept)?;
        Some((Record { kind, flags, count, connection, fence, at, stream, seq, time_ms, bytes: payload }, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> Record<'_> {
        Record {
            kind: Kind::Input,
            flags: 0,
            count: bytes.len() as u16,
            connection: 7,
            fence: 2,
            at: 99,
            stream: 5,
            seq: 1,
            time_ms: 1_700_000_000_000,
            bytes,
        }
    }

    #[test]
    fn a_record_reads_back_and_is_a_multiple_of_eight() {
        for text in ["", "a", "12345678", "123456789"] {
            let mut out = vec![];
            typed(text.as_bytes()).encode(&mut out);
            assert_eq!(out.len() % 8, 0);
            assert_eq!(Record::decode(&out), Some((typed(text.as_bytes()), out.len())));
        }
    }

    #[test]
    fn a_cut_or_nonsensical_record_is_no_record() {
        let mut out = vec![];
        typed(b"hello").encode(&mut out);
        for cut in 0..out.len() {
            assert_eq!(Record::decode(&out[..cut]), None, "cut at {cut}");
        }
        for length in [0u32, 8, 57, 1 << 30] {
            let mut bad = out.clone();
            bad[..4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Record::decode(&bad), None, "length {length}");
        }
    }
}
