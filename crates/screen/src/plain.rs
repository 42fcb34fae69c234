//! Output as plain text.

use crate::parse::{Boundary, Decoded, ESC, State, ascii_run, decode};

/// Turns output bytes into UTF-8 text, however they are cut.
///
/// Escape sequences and controls go, tabs and line feeds stay, CRLF is one line feed, bytes that are no UTF-8 become U+FFFD. A
/// carriage return on its own becomes a line feed if anything was written since the last one: each state of a progress bar is
/// then a line, which is what a person searching a log wants.
#[derive(Debug, Default)]
pub struct PlainText {
    /// The beginning of a character.
    pending: Vec<u8>,
    /// Within a sequence; nothing of it is needed.
    skipping: Option<State>,
    /// A carriage return was seen; what it means depends on what follows.
    returned: bool,
    /// Something stands in the current line.
    written: bool,
}

impl PlainText {
    /// At the beginning of a text.
    #[must_use]
    pub fn new() -> PlainText {
        PlainText::default()
    }

    /// Appends the text of `bytes` to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = if self.skipping.is_some() || !self.pending.is_empty() {
                self.resume(rest, out)
            } else {
                self.run(rest, out)
            };
        }
    }

    fn resume<'a>(&mut self, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        if let Some(state) = self.skipping {
            let mut boundary = Boundary::within(state);
            let end = boundary.find(rest);
            self.skipping = if end.is_none() { Some(boundary.state) } else { None };
            return &rest[end.unwrap_or(rest.len())..];
        }
        let before = self.pending.len();
        let taken = rest.len().min(4 - before.min(3));
        self.pending.extend_from_slice(&rest[..taken]);
        let length = match decode(&self.pending) {
            Decoded::Char(c, length) => {
                self.char(c, out);
                length
            }
            Decoded::Invalid(length) => {
                self.char('\u{fffd}', out);
                length
            }
            Decoded::Incomplete => return &rest[taken..],
        };
        self.pending.clear();
        &rest[length - before..]
    }

    /// Handles one piece of `rest`, which is not empty, and returns what follows it.
    fn run<'a>(&mut self, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let length = match rest[0] {
            0x20..=0x7e => {
                let length = ascii_run(rest);
                self.begin(out);
                out.extend_from_slice(&rest[..length]);
                length
            }
            b'\t' => {
                self.begin(out);
                out.push(b'\t');
                1
            }
            b'\n' => {
                out.push(b'\n');
                (self.returned, self.written) = (false, false);
                1
            }
            b'\r' => {
                self.returned = true;
                1
            }
            ESC => {
                let mut boundary = Boundary::new();
                match boundary.find(rest) {
                    Some(length) => length,
                    None => {
                        self.skipping = Some(boundary.state);
                        rest.len()
                    }
                }
            }
            0..=0x1f | 0x7f => 1,
            0x80.. => match decode(rest) {
                Decoded::Char(c, length) => {
                    self.char(c, out);
                    length
                }
                Decoded::Invalid(length) => {
                    self.char('\u{fffd}', out);
                    length
                }
                Decoded::Incomplete => {
                    self.pending.extend_from_slice(rest);
                    rest.len()
                }
            },
        };
        &rest[length..]
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.returned && self.written {
            out.push(b'\n');
        }
        (self.returned, self.written) = (false, true);
    }

    fn char(&mut self, c: char, out: &mut Vec<u8>) {
        if !c.is_control() {
            self.begin(out);
            crate::history::push_char(c, out);
        }
    }
}
