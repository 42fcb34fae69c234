//! Output as the lines that a terminal leaves of it.

use crate::parse::{Boundary, Decoded, ESC, State, decode};
use crate::vt::width;
use std::collections::VecDeque;

/// A line beyond this is given in pieces: no screen is as wide, and what has no line feeds at all must not pile up.
const LINE_CELLS_MAX: usize = 16 * 1024;
/// What is kept of a sequence that is not whole: longer ones move nothing here.
const SEQUENCE_BYTES_MAX: usize = 64;
/// Lines that a program can still go back to: more than the bars that package managers draw one below the other.
const LINES_MAX: usize = 64;
/// Cells of all these lines: some hundred ordinary ones, and never more than a quarter of a megabyte.
const CELLS_MAX: usize = 4 * LINE_CELLS_MAX;

/// Turns output bytes into UTF-8 text, however they are cut, in which each line stands as the terminal shows it in the end: a
/// carriage return, a backspace, an erasure and a step up do what they do there, so a progress bar is one line, and a command that a
/// shell draws again stands there once.
///
/// Other escape sequences and controls go, tabs stay, bytes that are no UTF-8 become U+FFFD. Knows no places on a screen: what a
/// full-screen program draws comes one behind the other.
#[derive(Debug)]
pub struct SettledText {
    /// Columns, beyond which a line goes on in the next row; 0: one row for each line.
    cols: usize,
    /// The lines that can still change, oldest first; never empty.
    lines: VecDeque<Line>,
    /// The one with the cursor.
    at: usize,
    /// The cell of that line.
    cursor: usize,
    /// Cells of all lines.
    cells: usize,
    /// A character was written into a row's last column, and the cursor is still there.
    at_margin: bool,
    /// The beginning of a character or a sequence.
    pending: Vec<u8>,
    /// Within a sequence that is too long to do anything here.
    skipping: Option<State>,
    /// The beginning of the only line was given, and the cursor went back into it.
    returned: bool,
}

/// One line, of one row or several.
#[derive(Debug, Default)]
struct Line {
    /// A wide character has an empty cell behind it.
    cells: Vec<char>,
    /// Something was written over: what was cleared at the end does not stand there.
    is_edited: bool,
    /// Its beginning was given already.
    is_rest: bool,
}

const EMPTY: char = '\0';

impl Line {
    fn give(&mut self, out: &mut Vec<u8>) {
        if self.is_edited {
            let used = self.cells.iter().rposition(|c| *c != ' ' && *c != EMPTY).map_or(0, |last| last + 1);
            self.cells.truncate(used);
        }
        self.cells.iter().filter(|c| **c != EMPTY).for_each(|c| crate::history::push_char(*c, out));
        self.cells.clear();
        self.is_edited = false;
    }
}

impl SettledText {
    /// At the beginning of a text, of a terminal with so many columns.
    #[must_use]
    pub fn new(cols: u16) -> SettledText {
        SettledText {
            cols: usize::from(cols),
            lines: VecDeque::from([Line::default()]),
            at: 0,
            cursor: 0,
            cells: 0,
            at_margin: false,
            pending: Vec::new(),
            skipping: None,
            returned: false,
        }
    }

    /// The text of all of `bytes`.
    #[must_use]
    pub fn of(cols: u16, bytes: &[u8]) -> Vec<u8> {
        let (mut settled, mut out) = (SettledText::new(cols), Vec::new());
        settled.feed(bytes, &mut out);
        settled.finish(&mut out);
        out
    }

    /// Appends the lines that can no longer change to `out`.
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

    /// Appends all that stands there now, because nothing more may come for long. What is written over it later comes in a line of its
    /// own.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        while self.lines.len() > 1 {
            self.give_oldest(out);
        }
        let line = &mut self.lines[0];
        line.is_rest |= !line.cells.is_empty();
        // Blanks at the end stand there: this may be a prompt.
        line.is_edited = false;
        line.give(out);
        (self.cells, self.cursor, self.at_margin) = (0, 0, false);
    }

    /// Whether something stands there that was not given.
    #[must_use]
    pub fn holds_text(&self) -> bool {
        self.cells > 0 || self.lines.len() > 1
    }

    /// Appends all that is left.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.pending.first().is_some_and(|first| *first != ESC) {
            self.put('\u{fffd}');
        }
        self.pending.clear();
        while self.lines.len() > 1 {
            self.give_oldest(out);
        }
        self.lines[0].give(out);
        self.lines[0].is_rest = false;
        (self.cells, self.at, self.cursor, self.at_margin, self.returned) = (0, 0, 0, false, false);
    }

    /// Takes one character or sequence; gives its length, or none where its rest is still to come.
    fn one(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        match rest[0] {
            ESC => {
                let length = Boundary::new().find(rest)?;
                self.sequence(&rest[..length]);
                self.limit(out);
                return Some(length);
            }
            b'\n' => self.next_line(),
            b'\r' => {
                (self.cursor, self.at_margin) = (self.row_start(), false);
                self.returned |= self.cursor == 0 && self.line().is_rest;
            }
            0x08 => {
                self.returned |= self.cursor == 0 && self.line().is_rest;
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

    fn line(&self) -> &Line {
        &self.lines[self.at]
    }

    /// The first cell of the row that the cursor is in.
    fn row_start(&self) -> usize {
        let at = if self.at_margin { self.cursor.saturating_sub(1) } else { self.cursor };
        at.checked_div(self.cols).map_or(0, |row| row * self.cols)
    }

    /// Behind the last cell of the row that the cursor is in.
    fn row_end(&self) -> usize {
        if self.cols == 0 { LINE_CELLS_MAX } else { self.row_start() + self.cols }
    }

    fn next_line(&mut self) {
        self.at += 1;
        if self.at == self.lines.len() {
            self.lines.push_back(Line::default());
        }
        (self.cursor, self.at_margin, self.returned) = (0, false, false);
    }

    fn put(&mut self, c: char) {
        if self.returned {
            self.next_line();
        }
        let line = &mut self.lines[self.at];
        for cell in std::iter::once(c).chain(std::iter::repeat_n(EMPTY, width(c).saturating_sub(1))) {
            match line.cells.get_mut(self.cursor) {
                Some(there) => (*there, line.is_edited) = (cell, true),
                None => {
                    line.cells.push(cell);
                    self.cells += 1;
                }
            }
            self.cursor += 1;
        }
        self.at_margin = self.cols > 0 && self.cursor.is_multiple_of(self.cols);
    }

    /// What moves or erases. Nothing beyond the row, but for steps to other rows: no sequence costs more than a row.
    fn sequence(&mut self, bytes: &[u8]) {
        let Some((last, body)) = bytes.strip_prefix(b"\x1b[").and_then(<[u8]>::split_last) else { return };
        let number = std::str::from_utf8(body).ok().and_then(|body| match body {
            "" => Some(None),
            digits => digits.parse::<usize>().ok().map(Some),
        });
        let Some(number) = number else { return };
        let count = number.unwrap_or(1).clamp(1, LINE_CELLS_MAX);
        match last {
            b'A' => self.up(count),
            b'B' => self.down(count),
            b'C' => self.go(self.cursor + count),
            b'D' => self.go(self.cursor.saturating_sub(count).max(self.row_start())),
            b'E' | b'F' => {
                if *last == b'E' {
                    self.down(count)
                } else {
                    self.up(count)
                }
                self.go(self.row_start());
            }
            b'G' => self.go(self.row_start() + count - 1),
            b'J' if number.unwrap_or(0) == 0 => self.erase_below(),
            b'K' => self.erase(number.unwrap_or(0)),
            b'P' => self.delete(count),
            _ => {}
        }
    }

    /// To a cell of the same row.
    fn go(&mut self, to: usize) {
        self.cursor = to.min(self.row_end() - 1);
        self.at_margin = false;
        let line = &mut self.lines[self.at];
        if self.cursor > line.cells.len() {
            self.cells += self.cursor - line.cells.len();
            line.cells.resize(self.cursor, ' ');
            line.is_edited = true;
        }
    }

    /// The column, and how many rows of the line lie above.
    fn place(&self) -> (usize, usize) {
        let start = self.row_start();
        let column = if self.at_margin { self.cols - 1 } else { self.cursor - start };
        (column, start.checked_div(self.cols).unwrap_or(0))
    }

    /// The last row of the line with the cursor.
    fn last_row(&self) -> usize {
        self.line().cells.len().saturating_sub(1).checked_div(self.cols).unwrap_or(0)
    }

    fn up(&mut self, rows: usize) {
        let (column, mut row) = self.place();
        for _ in 0..rows {
            if row > 0 {
                row -= 1;
            } else if self.at > 0 {
                self.at -= 1;
                row = self.last_row();
            } else {
                break;
            }
        }
        self.go_to(row, column);
    }

    fn down(&mut self, rows: usize) {
        let (column, mut row) = self.place();
        for _ in 0..rows {
            if row < self.last_row() {
                row += 1;
            } else if self.at + 1 < self.lines.len() {
                self.at += 1;
                row = 0;
            } else {
                break;
            }
        }
        self.go_to(row, column);
    }

    fn go_to(&mut self, row: usize, column: usize) {
        self.cursor = row * self.cols;
        self.at_margin = false;
        self.go(self.cursor + column);
    }

    fn erase_below(&mut self) {
        let line = &mut self.lines[self.at];
        self.cells -= line.cells.len().saturating_sub(self.cursor);
        line.cells.truncate(self.cursor);
        line.is_edited = true;
        // Those below stand there no more; the cursor's own is the last.
        self.cells -= self.lines.drain(self.at + 1..).map(|line| line.cells.len()).sum::<usize>();
        self.at_margin = false;
    }

    fn erase(&mut self, what: usize) {
        let (start, end) = (self.row_start(), self.row_end());
        let line = &mut self.lines[self.at];
        let length = line.cells.len();
        let at = self.cursor.min(length).min(end);
        let (from, to) = match what {
            0 => (at, end),
            1 => (start, (at + 1).min(end)),
            2 => (start, end),
            _ => return,
        };
        line.is_edited = true;
        line.cells[from.min(length)..to.min(length)].fill(' ');
        // In its last row nothing stands behind: then it is as if it had never been there, up to the cursor.
        if to >= length {
            let kept = from.max(at).min(length);
            line.cells.truncate(kept);
            self.cells -= length - kept;
        }
    }

    fn delete(&mut self, count: usize) {
        let row_end = self.row_end();
        let line = &mut self.lines[self.at];
        let row_end = row_end.min(line.cells.len());
        if self.cursor >= row_end {
            return;
        }
        let end = (self.cursor + count).min(row_end);
        line.is_edited = true;
        if row_end == line.cells.len() {
            line.cells.drain(self.cursor..end);
            self.cells -= end - self.cursor;
        } else {
            line.cells.copy_within(end..row_end, self.cursor);
            line.cells[row_end - (end - self.cursor)..row_end].fill(' ');
        }
    }

    fn limit(&mut self, out: &mut Vec<u8>) {
        let line = &mut self.lines[self.at];
        if line.cells.len() >= LINE_CELLS_MAX {
            // In pieces: nobody goes back to them, nor to what stands above.
            while self.at > 0 {
                self.give_oldest(out);
            }
            let line = &mut self.lines[0];
            self.cells -= line.cells.len();
            line.give(out);
            (self.cursor, self.at_margin) = (0, false);
        }
        while self.lines.len() > 1 && (self.lines.len() > LINES_MAX || self.cells > CELLS_MAX) {
            self.give_oldest(out);
        }
    }

    /// Gives the oldest line, of several.
    fn give_oldest(&mut self, out: &mut Vec<u8>) {
        if let Some(mut line) = self.lines.pop_front() {
            self.cells -= line.cells.len();
            line.give(out);
            out.push(b'\n');
        }
        match self.at.checked_sub(1) {
            Some(at) => self.at = at,
            // The cursor was in it.
            None => (self.cursor, self.at_margin) = (0, false),
        }
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
    fn what_is_drawn_again_above_stands_there_once() {
        // As a shell shows a command that it read from a file.
        settles(80, b"$ . run\r\n\x1b[A\x1b[3G\x1b[Jone\r\ntwo\r\nout\r\n", "$ one\ntwo\nout\n");
        // As package managers draw several bars.
        settles(80, b"a 1%\r\nb 1%\r\n\x1b[2Aa 9%\r\nb 9%\r\n\x1b[2A\x1b[Kdone\r\n\x1b[J", "done\n");
        settles(80, b"a\nb\n\x1b[2F\x1b[Kx\x1b[E\x1b[Ky\n", "x\ny\n");
        settles(80, b"a\nb\nc\x1b[9A!\x1b[9B?\n", "a!\nb\nc ?\n");
        // Rows of a line that wraps.
        settles(4, b"abcdef\r\n\x1b[A\x1b[AXY\x1b[B\x1b[2GZ\n", "XYcdeZ\n");
        settles(4, b"abcdef\x1b[A\x1b[K\n", "ab  ef\n");
        settles(4, b"abcdefgh\x1b[A\r\x1b[2P\n", "cd  efgh\n");
        settles(4, b"ab\x1b[99C!\x1b[9D?\n", "?b !\n");
    }

    #[test]
    fn however_it_is_cut_the_text_is_the_same() {
        const PIECES: [&[u8]; 16] = [
            b"a",
            b"word ",
            b"\r",
            b"\n",
            b"\x08",
            b"\t",
            "\u{65e5}".as_bytes(),
            b"\xff",
            b"\x1b[A",
            b"\x1b[2B",
            b"\x1b[3C",
            b"\x1b[9D",
            b"\x1b[K",
            b"\x1b[J",
            b"\x1b[2P",
            b"\x1b[5G",
        ];
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..3_000 {
            let bytes: Vec<u8> = (0..next(200)).flat_map(|_| PIECES[next(PIECES.len())]).copied().collect();
            let (cols, cut) = ([0, 1, 2, 7, 80][next(5)], next(bytes.len() + 1));
            let whole = SettledText::of(cols, &bytes);
            assert!(String::from_utf8(whole.clone()).is_ok(), "round {round}");
            let (mut settled, mut out) = (SettledText::new(cols), Vec::new());
            settled.feed(&bytes[..cut], &mut out);
            settled.feed(&bytes[cut..], &mut out);
            assert_eq!(
                settled.cells,
                settled.lines.iter().map(|line| line.cells.len()).sum::<usize>(),
                "round {round}"
            );
            settled.finish(&mut out);
            assert_eq!(out, whole, "round {round}");
            let (mut early, mut out) = (SettledText::new(cols), Vec::new());
            early.feed(&bytes[..cut], &mut out);
            early.flush(&mut out);
            assert!(!early.holds_text(), "round {round}");
            early.feed(&bytes[cut..], &mut out);
            early.finish(&mut out);
        }
    }

    #[test]
    fn what_was_given_before_its_end_is_not_given_again() {
        let pieces = |texts: &[&str]| {
            let (mut settled, mut out) = (SettledText::new(80), Vec::new());
            for text in texts {
                settled.feed(text.as_bytes(), &mut out);
                settled.flush(&mut out);
                assert!(!settled.holds_text());
            }
            settled.finish(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(pieces(&["name: ", "ann\r\n", "ok\r\n"]), "name: ann\nok\n");
        assert_eq!(pieces(&["10%", "\r20%", "\r\n", "done"]), "10%\n20%\ndone");
        assert_eq!(pieces(&["ab", "\x08c\n"]), "ab\nc\n");
        assert_eq!(pieces(&["ab", "cd\rX\n", "\r\n"]), "abcd\nX\n\n");
    }

    #[test]
    fn lines_that_nobody_can_go_back_to_are_given() {
        let (mut settled, mut out) = (SettledText::new(80), Vec::new());
        (0..LINES_MAX + 3).for_each(|n| settled.feed(format!("{n}\n").as_bytes(), &mut out));
        assert_eq!(String::from_utf8(out.clone()).unwrap(), "0\n1\n2\n3\n");
        settled.feed(b"\x1b[9999Ax", &mut out);
        settled.finish(&mut out);
        assert!(String::from_utf8(out).unwrap().contains("\n3\nx\n5\n"));
        let (mut settled, mut out) = (SettledText::new(0), Vec::new());
        (0..LINES_MAX).for_each(|_| settled.feed(&[vec![b'x'; LINE_CELLS_MAX - 1], vec![b'\n']].concat(), &mut out));
        assert!(settled.cells <= CELLS_MAX + LINE_CELLS_MAX);
        assert_eq!(settled.cells, settled.lines.iter().map(|line| line.cells.len()).sum::<usize>());
    }

    #[test]
    fn what_has_no_end_is_given_in_pieces() {
        let (mut settled, mut out) = (SettledText::new(80), Vec::new());
        settled.feed(&vec![b'x'; LINE_CELLS_MAX * 3 + 5], &mut out);
        assert_eq!(out.len(), LINE_CELLS_MAX * 3);
        settled.feed(b"\x1b[99999999999C\x1b[9999C\x1b[9999C\x1b[9999C!", &mut out);
        assert!(settled.cells <= LINE_CELLS_MAX + 1);
    }
}
