//! Output as the lines that a terminal leaves of it.

use crate::parse::{Boundary, Decoded, ESC, State, decode};
use crate::vt::width;

/// A line beyond this is given in pieces: no screen is as wide, and what has no line feeds at all must not pile up.
const LINE_CELLS_MAX: usize = 16 * 1024;
/// What is kept of a sequence that is not whole: longer ones move nothing within a line.
const SEQUENCE_BYTES_MAX: usize = 64;

/// Turns output bytes into UTF-8 text, however they are cut, in which each line stands as the terminal shows it in the end: a
/// carriage return, a backspace and an erasure do what they do there, so a progress bar is one line.
///
/// Other escape sequences and controls go, tabs stay, bytes that are no UTF-8 become U+FFFD. Knows no lines above the current one:
/// what a program draws over several of them comes one behind the other.
#[derive(Debug, Default)]
pub struct SettledText {
    /// Columns, beyond which a line goes on in the next row; 0: one row for each line.
    cols: usize,
    /// The current line; a wide character has an empty cell behind it.
    cells: Vec<char>,
    cursor: usize,
    /// A character was written into a row's last column, and the cursor is still there.
    at_margin: bool,
    /// Something was written over: what was cleared at the end does not stand there.
    is_edited: bool,
    /// The beginning of a character or a sequence.
    pending: Vec<u8>,
    /// Within a sequence that is too long to do anything here.
    skipping: Option<State>,
}

const EMPTY: char = '\0';

impl SettledText {
    /// At the beginning of a text, of a terminal with so many columns.
    #[must_use]
    pub fn new(cols: u16) -> SettledText {
        SettledText { cols: usize::from(cols), ..SettledText::default() }
    }

    /// The text of all of `bytes`.
    #[must_use]
    pub fn of(cols: u16, bytes: &[u8]) -> Vec<u8> {
        let (mut settled, mut out) = (SettledText::new(cols), Vec::new());
        settled.feed(bytes, &mut out);
        settled.finish(&mut out);
        out
    }

    /// Appends the lines that are over to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let joined;
        let mut rest = bytes;
        if let Some(state) = self.skipping {
            let mut boundary = Boundary::within(state);
            let end = boundary.find(rest);
            self.skipping = end.is_none().then_some(boundary.state);
            rest = &rest[end.unwrap_or(rest.len())..];
        } else if !self.pending.is_empty() {
            joined = [std::mem::take(&mut self.pending).as_slice(), bytes].concat();
            rest = &joined;
        }
        while !rest.is_empty() {
            match self.one(rest, out) {
                Some(length) => rest = &rest[length..],
                None => {
                    self.keep(rest);
                    return;
                }
            }
        }
    }

    /// Appends the line that is not over.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.pending.first().is_some_and(|first| *first != ESC) {
            self.put('\u{fffd}');
        }
        self.pending.clear();
        self.give(out);
    }

    /// Takes one character or sequence; gives its length, or none where its rest is still to come.
    fn one(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        match rest[0] {
            ESC => {
                let length = Boundary::new().find(rest)?;
                self.sequence(&rest[..length]);
                return Some(length);
            }
            b'\n' => {
                self.give(out);
                out.push(b'\n');
            }
            b'\r' => (self.cursor, self.at_margin) = (self.row_start(), false),
            0x08 => {
                self.cursor = self.cursor.saturating_sub(usize::from(!self.at_margin)).max(self.row_start());
                self.at_margin = false;
            }
            b'\t' => self.put('\t'),
            byte @ 0x20..=0x7e => self.put(byte as char),
            0..=0x1f | 0x7f => {}
            0x80.. => {
                let (c, length) = match decode(rest) {
                    Decoded::Char(c, length) => (c, length),
                    Decoded::Invalid(length) => ('\u{fffd}', length),
                    Decoded::Incomplete => return None,
                };
                if !c.is_control() {
                    self.put(c);
                }
                self.limit(out);
                return Some(length);
            }
        }
        self.limit(out);
        Some(1)
    }

    /// The first cell of the row that the cursor is in.
    fn row_start(&self) -> usize {
        let at = if self.at_margin { self.cursor.saturating_sub(1) } else { self.cursor };
        at.checked_div(self.cols).map_or(0, |row| row * self.cols)
    }

    fn put(&mut self, c: char) {
        for cell in std::iter::once(c).chain(std::iter::repeat_n(EMPTY, width(c).saturating_sub(1))) {
            match self.cells.get_mut(self.cursor) {
                Some(there) => (*there, self.is_edited) = (cell, true),
                None => self.cells.push(cell),
            }
            self.cursor += 1;
        }
        self.at_margin = self.cols > 0 && self.cursor.is_multiple_of(self.cols);
    }

    /// What moves or erases within the line.
    fn sequence(&mut self, bytes: &[u8]) {
        let Some((last, body)) = bytes.strip_prefix(b"\x1b[").and_then(<[u8]>::split_last) else { return };
        let number = std::str::from_utf8(body).ok().and_then(|body| match body {
            "" => Some(None),
            digits => digits.parse::<usize>().ok().map(Some),
        });
        let Some(number) = number else { return };
        let count = number.unwrap_or(1).clamp(1, LINE_CELLS_MAX);
        match last {
            b'K' => self.erase(number.unwrap_or(0)),
            b'C' => self.go(self.cursor + count),
            b'D' => self.go(self.cursor.saturating_sub(count).max(self.row_start())),
            b'G' => self.go(self.row_start() + count - 1),
            b'P' => {
                let end = (self.cursor + count).min(self.cells.len());
                if self.cursor < end {
                    self.cells.drain(self.cursor..end);
                    self.is_edited = true;
                }
            }
            _ => {}
        }
    }

    fn go(&mut self, to: usize) {
        self.cursor = to.min(LINE_CELLS_MAX);
        self.at_margin = false;
        if self.cursor > self.cells.len() {
            self.cells.resize(self.cursor, ' ');
            self.is_edited = true;
        }
    }

    fn erase(&mut self, what: usize) {
        let (start, end) = (self.row_start(), self.cells.len());
        let at = self.cursor.min(end);
        self.is_edited = true;
        match what {
            0 => self.cells.truncate(at),
            1 => self.cells[start..at].fill(' '),
            2 => {
                self.cells.truncate(start);
                self.cells.resize(at.max(start), ' ');
            }
            _ => {}
        }
    }

    fn limit(&mut self, out: &mut Vec<u8>) {
        if self.cells.len() >= LINE_CELLS_MAX {
            self.give(out);
        }
    }

    fn give(&mut self, out: &mut Vec<u8>) {
        if self.is_edited {
            let used = self.cells.iter().rposition(|c| *c != ' ' && *c != EMPTY).map_or(0, |last| last + 1);
            self.cells.truncate(used);
        }
        self.cells.iter().filter(|c| **c != EMPTY).for_each(|c| crate::history::push_char(*c, out));
        self.cells.clear();
        (self.cursor, self.at_margin, self.is_edited) = (0, false, false);
    }

    /// Keeps the beginning of a character or a sequence.
    fn keep(&mut self, rest: &[u8]) {
        if rest.len() <= SEQUENCE_BYTES_MAX {
            return self.pending = rest.to_vec();
        }
        let mut boundary = Boundary::new();
        boundary.find(rest);
        self.skipping = Some(boundary.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, whole and cut at every byte.
    #[track_caller]
    fn settles(cols: u16, bytes: &[u8], text: &str) {
        assert_eq!(String::from_utf8(SettledText::of(cols, bytes)).unwrap(), text);
        for cut in 0..bytes.len() {
            let (mut settled, mut out) = (SettledText::new(cols), Vec::new());
            settled.feed(&bytes[..cut], &mut out);
            settled.feed(&bytes[cut..], &mut out);
            settled.finish(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_is_what_a_terminal_leaves_of_it() {
        settles(80, b"10%\r50%\r100%\r\ndone\r\n", "100%\ndone\n");
        settles(80, b"abc\x08\x08XY\n", "aXY\n");
        settles(80, b"password: \x08 \x08\n", "password:\n");
        settles(80, b"long text\r\x1b[Kshort\n", "short\n");
        settles(80, b"a\x1b[2Kb\n", " b\n");
        settles(80, b"ab\x1b[1K\x1b[GX\n", "X\n");
        settles(80, b"abcdef\x1b[4D\x1b[2P!\n", "ab!f\n");
        settles(80, b"\x1b[31mred\x1b[0m\tx  \n", "red\tx  \n");
        settles(80, "日本\r中\n".as_bytes(), "中本\n");
        settles(80, b"a\xffb\n\xe2\x82", "a\u{fffd}b\n\u{fffd}");
        settles(80, b"\x1b]0;title\x07ok\n", "ok\n");
        let sequence = [b"a\x1b]2;", vec![b'x'; 200].as_slice(), b"\x1b\\b\n"].concat();
        settles(80, &sequence, "ab\n");
    }

    #[test]
    fn a_line_that_wraps_is_rewritten_in_its_last_row_only() {
        settles(4, b"abcdef\rXY\n", "abcdXY\n");
        // As readline moves to the next row.
        settles(4, b"abcd \refgh\n", "abcdefgh\n");
        settles(4, b"abcd\rX\n", "Xbcd\n");
        settles(0, b"abcdef\rX\n", "Xbcdef\n");
    }

    #[test]
    fn what_has_no_end_is_given_in_pieces() {
        let (mut settled, mut out) = (SettledText::new(80), Vec::new());
        settled.feed(&vec![b'x'; LINE_CELLS_MAX * 3 + 5], &mut out);
        assert_eq!(out.len(), LINE_CELLS_MAX * 3);
        settled.feed(b"\x1b[99999999999C\x1b[9999C\x1b[9999C\x1b[9999C!", &mut out);
        assert!(settled.cells.len() <= LINE_CELLS_MAX + 1);
    }
}
