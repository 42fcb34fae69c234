//! Where a control sequence ends, and what its parameters are.
//!
//! The states are those of the DEC parser as xterm.js and vte walk them, reduced to what a boundary needs. A sequence is only
//! interpreted once it is complete, so between two feeds the terminal is always at rest and the incomplete tail is plain
//! bytes: that is what makes a keyframe possible at any byte.

use memchr::memchr3;

pub(crate) const ESC: u8 = 0x1b;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const BEL: u8 = 0x07;

/// Most parameters of one sequence; the rest is ignored, as xterm does.
const PARAMS_MAX: usize = 32;

/// What kind of sequence an unfinished one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// `ESC`.
    Escape,
    /// `ESC` and intermediates.
    Intermediate,
    /// `ESC [`.
    Csi,
    /// `ESC ]`: ends at BEL too.
    Osc,
    /// `ESC P`, `ESC X`, `ESC ^`, `ESC _`: ends at the next escape.
    Text,
}

/// Finds the end of one sequence, resumably.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    pub(crate) state: State,
    seen: usize,
}

impl Boundary {
    /// For a sequence whose first byte is ESC.
    pub(crate) fn new() -> Boundary {
        Boundary { state: State::Escape, seen: 1 }
    }

    /// For the middle of a string or CSI whose beginning was thrown away.
    pub(crate) fn within(state: State) -> Boundary {
        Boundary { state, seen: 0 }
    }

    /// The sequence's length if `bytes` (which grows from call to call) holds all of it. An escape that interrupts it is
    /// not part of it.
    #[inline]
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        while self.seen < bytes.len() {
            let byte = bytes[self.seen];
            match self.state {
                State::Osc | State::Text => return self.find_string_end(bytes),
                State::Csi if (0x40..=0x7e).contains(&byte) => return Some(self.seen + 1),
                State::Escape | State::Intermediate | State::Csi if byte == ESC => return Some(self.seen),
                State::Escape | State::Intermediate | State::Csi if byte == CAN || byte == SUB => {
                    return Some(self.seen + 1);
                }
                State::Csi => {}
                State::Escape => match byte {
                    b'[' => self.state = State::Csi,
                    b']' => self.state = State::Osc,
                    b'P' | b'X' | b'^' | b'_' => self.state = State::Text,
                    0x20..=0x2f => self.state = State::Intermediate,
                    0x30..=0x7e => return Some(self.seen + 1),
                    _ => {}
                },
                State::Intermediate if (0x30..=0x7e).contains(&byte) => return Some(self.seen + 1),
                State::Intermediate => {}
            }
            self.seen += 1;
        }
        None
    }

    fn find_string_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let rest = &bytes[self.seen..];
        let hard = memchr3(ESC, CAN, SUB, rest);
        let bell =
            if self.state == State::Osc { memchr::memchr(BEL, &rest[..hard.unwrap_or(rest.len())]) } else { None };
        if let Some(at) = bell {
            return Some(self.seen + at + 1);
        }
        match hard {
            Some(at) if rest[at] == ESC => Some(self.seen + at),
            Some(at) => Some(self.seen + at + 1),
            None => {
                self.seen = bytes.len();
                None
            }
        }
    }
}

/// The numbers of a CSI or DCS sequence.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    values: [u16; PARAMS_MAX],
    /// Bit i: value i was joined to the one before it by a colon.
    joined: u32,
    count: usize,
}

impl Params {
    /// The value at `index`, or `default` where it is missing or zero.
    #[inline]
    pub(crate) fn or(&self, index: usize, default: u16) -> u16 {
        match self.values[..self.count].get(index) {
            Some(0) | None => default,
            Some(value) => *value,
        }
    }

    /// All values, joined ones included.
    #[inline]
    pub(crate) fn all(&self) -> &[u16] {
        &self.values[..self.count]
    }

    /// The group that starts at `index`: a value and those joined to it.
    #[inline]
    pub(crate) fn group(&self, index: usize) -> &[u16] {
        let mut end = index + 1;
        if self.joined == 0 {
            return &self.values[index..end];
        }
        while end < self.count && self.joined & 1 << end != 0 {
            end += 1;
        }
        &self.values[index.min(self.count)..end.min(self.count)]
    }
}

/// A parsed CSI sequence.
#[derive(Clone, Debug)]
pub(crate) struct Csi {
    /// `?`, `>`, `<`, `=` or zero.
    pub(crate) prefix: u8,
    pub(crate) params: Params,
    /// The intermediate byte or zero.
    pub(crate) intermediate: u8,
    pub(crate) last: u8,
}

impl Csi {
    /// The sequence at the start of `bytes` if it is complete and has nothing but numbers and a final byte, as nearly all
    /// have, and its length.
    #[inline]
    pub(crate) fn plain(bytes: &[u8]) -> Option<(Csi, usize)> {
        let body = bytes.strip_prefix(b"\x1b[")?;
        let (params, length) = Params::read(body);
        let last = *body.get(length).filter(|last| (0x40..=0x7e).contains(*last))?;
        Some((Csi { prefix: 0, params, intermediate: 0, last }, length + 3))
    }

    /// Parses the bytes between `ESC [` and the end; `None` for what a terminal ignores. Controls inside are skipped: the
    /// caller has executed them.
    #[inline]
    pub(crate) fn parse(body: &[u8]) -> Option<Csi> {
        let (last, body) = body.split_last()?;
        if !(0x40..=0x7e).contains(last) {
            return None;
        }
        let mut csi = Csi { prefix: 0, params: Params::none(), intermediate: 0, last: *last };
        let (mut value, mut any) = (0u16, false);
        for (at, byte) in body.iter().enumerate() {
            match byte {
                b'0'..=b'9' if csi.intermediate == 0 => {
                    value = value.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                    any = true;
                }
                b';' | b':' if csi.intermediate == 0 => {
                    csi.params.push(value, *byte == b':');
                    value = 0;
                    any = true;
                }
                b'<'..=b'?' if at == 0 => csi.prefix = *byte,
                0x20..=0x2f if csi.intermediate == 0 => csi.intermediate = *byte,
                0x00..=0x1f | 0x7f..=0xff => {}
                _ => return None,
            }
        }
        if any {
            csi.params.push(value, false);
        }
        Some(csi)
    }
}

impl Params {
    fn none() -> Params {
        Params { values: [0; PARAMS_MAX], joined: 0, count: 0 }
    }

    /// The numbers at the start of `bytes`, and how many bytes they are.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> (Params, usize) {
        let mut params = Params::none();
        let (mut value, mut length) = (0u32, bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            // The colon and the semicolon come behind the nine.
            match byte.wrapping_sub(b'0') {
                digit @ 0..10 => value = (value * 10 + u32::from(digit)).min(u16::MAX.into()),
                other @ (10 | 11) => {
                    params.push(value as u16, other == 10);
                    value = 0;
                }
                _ => {
                    length = at;
                    break;
                }
            }
        }
        if length > 0 {
            params.push(value as u16, false);
        }
        (params, length)
    }

    #[inline]
    fn push(&mut self, value: u16, next_joined: bool) {
        if self.count < PARAMS_MAX {
            self.values[self.count] = value;
            self.count += 1;
            if next_joined && self.count < PARAMS_MAX {
                self.joined |= 1 << self.count;
            }
        }
    }
}

/// The C0 controls inside an escape or CSI sequence that a terminal executes on its way.
pub(crate) fn controls_within(sequence: &[u8]) -> impl Iterator<Item = u8> + '_ {
    sequence.iter().skip(1).copied().filter(|b| *b < 0x20 && !matches!(*b, ESC | CAN | SUB))
}

/// True when a CAN or SUB cut the sequence off: nothing of it takes effect.
pub(crate) fn is_cancelled(sequence: &[u8]) -> bool {
    matches!(sequence.last(), Some(&(CAN | SUB)))
}

/// One step of UTF-8 decoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// A character and its length.
    Char(char, usize),
    /// This many bytes are no character.
    Invalid(usize),
    /// More bytes are needed to know.
    Incomplete,
}

/// Decodes the first character of `bytes`, which does not start with ASCII.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    // What most text is made of, for speed.
    let char =
        |value: u32, length| char::from_u32(value).map_or(Decoded::Invalid(length), |c| Decoded::Char(c, length));
    let part = |byte: u8| u32::from(byte & 0x3f);
    match bytes {
        [first @ 0xc2..=0xdf, second @ 0x80..=0xbf, ..] => char(u32::from(first & 0x1f) << 6 | part(*second), 2),
        [first @ 0xe1..=0xec, second @ 0x80..=0xbf, third @ 0x80..=0xbf, ..] => {
            char(u32::from(first & 0xf) << 12 | part(*second) << 6 | part(*third), 3)
        }
        _ => decode_any(bytes),
    }
}

fn decode_any(bytes: &[u8]) -> Decoded {
    let first = bytes[0];
    let (need, low, high) = match first {
        0xc2..=0xdf => (2, 0x80, 0xbf),
        0xe0 => (3, 0xa0, 0xbf),
        0xed => (3, 0x80, 0x9f),
        0xe1..=0xef => (3, 0x80, 0xbf),
        0xf0 => (4, 0x90, 0xbf),
        0xf1..=0xf3 => (4, 0x80, 0xbf),
        0xf4 => (4, 0x80, 0x8f),
        _ => return Decoded::Invalid(1),
    };
    let mut value = u32::from(first) & (0x7f >> need);
    for at in 1..need {
        let Some(&byte) = bytes.get(at) else { return Decoded::Incomplete };
        let range = if at == 1 { low..=high } else { 0x80..=0xbf };
        if !range.contains(&byte) {
            return Decoded::Invalid(at);
        }
        value = value << 6 | u32::from(byte & 0x3f);
    }
    match char::from_u32(value) {
        Some(c) => Decoded::Char(c, need),
        None => Decoded::Invalid(need),
    }
}

const HIGH: u64 = 0x8080_8080_8080_8080;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Length of the printable ASCII at the start of `bytes`.
#[inline]
pub(crate) fn ascii_run(bytes: &[u8]) -> usize {
    ascii_end(bytes, 0)
}

/// Where the printable ASCII that starts at `at` ends.
#[inline]
pub(crate) fn ascii_end(bytes: &[u8], at: usize) -> usize {
    // A byte below 0x20 borrows into its high bit; 0x7f overflows into it when one is added.
    let odd = |word: u64| (word.wrapping_sub(ONES * 0x20) | word | word.wrapping_add(ONES)) & HIGH;
    run_end(bytes, at, odd, |byte| (0x20..0x7f).contains(&byte))
}

/// Where the digits, semicolons and colons that start at `at` end.
#[inline]
pub(crate) fn numbers_end(bytes: &[u8], at: usize) -> usize {
    // Digits and the two behind them become 0 to 11; anything above overflows into the high bit.
    let odd = |word: u64| {
        let word = word ^ (ONES * 0x30);
        (word | word.wrapping_add(ONES * (0x80 - 12))) & HIGH
    };
    run_end(bytes, at, odd, |byte| (b'0'..=b';').contains(&byte))
}

/// Where the bytes that are `fine` end, eight at a time: `odd` sets the high bit of the first byte that is not, and of none
/// before it. Borrows and carries only reach bytes behind an odd one.
#[inline]
fn run_end(bytes: &[u8], mut at: usize, odd: impl Fn(u64) -> u64, fine: impl Fn(u8) -> bool) -> usize {
    for chunk in bytes[at..].chunks_exact(8) {
        let odd = odd(u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
        if odd != 0 {
            return at + odd.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    short_run_end(bytes, at, fine)
}

#[cold]
fn short_run_end(bytes: &[u8], mut at: usize, fine: impl Fn(u8) -> bool) -> usize {
    while bytes.get(at).is_some_and(|byte| fine(*byte)) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_ends_where_xterm_says() {
        for (bytes, length) in [
            (&b"\x1b[31mx"[..], Some(5)),
            (b"\x1b[31", None),
            (b"\x1b[3\x1b[m", Some(3)),
            (b"\x1b[3\x18m", Some(4)),
            (b"\x1b[\n1m", Some(5)),
            (b"\x1b]0;t\x07x", Some(6)),
            (b"\x1b]0;t\x1b\\", Some(5)),
            (b"\x1bPq\x07\x1b\\", Some(4)),
            (b"\x1b(0", Some(3)),
            (b"\x1b([", Some(3)),
            (b"\x1b\x1b", Some(1)),
            (b"\x1b7", Some(2)),
        ] {
            assert_eq!(Boundary::new().find(bytes), length, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn numbers_end_at_the_first_other_byte() {
        for odd in 0..=255 {
            for at in 0..20 {
                let mut bytes = *b"0123456789:;:0123456";
                bytes[at] = odd;
                let expected = if (b'0'..=b';').contains(&odd) { 20 } else { at };
                assert_eq!(numbers_end(&bytes, 0), expected, "{odd:#x}");
            }
        }
    }

    #[test]
    fn an_ascii_run_ends_at_the_first_other_byte() {
        for odd in [0x00, 0x1b, 0x1f, 0x7f, 0x80, 0xff] {
            for at in 0..40 {
                let mut bytes = [b'~'; 40];
                bytes[at] = odd;
                assert_eq!(ascii_run(&bytes), at, "{odd:#x}");
            }
        }
        assert_eq!(ascii_run(&(0x20..0x7f).collect::<Vec<u8>>()), 95);
    }

    #[test]
    fn characters_are_decoded_as_the_standard_library_does() {
        for first in 0x80..=0xff_u8 {
            for second in [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0] {
                for third in [0x20, 0x80, 0xbf] {
                    let bytes = [first, second, third, 0x80, b'x'];
                    let valid = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
                    let expected = match std::str::from_utf8(&bytes[..valid]).unwrap().chars().next() {
                        Some(c) => Decoded::Char(c, c.len_utf8()),
                        None => Decoded::Invalid(std::str::from_utf8(&bytes).unwrap_err().error_len().unwrap()),
                    };
                    assert_eq!(decode(&bytes), expected, "{bytes:x?}");
                }
            }
        }
    }
}
