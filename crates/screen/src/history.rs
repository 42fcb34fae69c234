//! Lines that scrolled off, as escape-encoded logical lines.
//!
//! A line is printable text with SGR and OSC 8 sequences, starts from default attributes, ends with `ESC [ m` if they are not
//! default at its end, then `\n`. Rows that wrapped are one line. The newest lines stay here until later ones push them out,
//! because a terminal that grows takes them back onto the screen.

use crate::parse::{Boundary, Csi, Decoded, ESC, State, ascii_run, decode};
use crate::plain::PlainText;
use crate::vt::{COMBINING_MAX, Style, apply_sgr, is_wrapped};
use alacritty_terminal::grid::Row;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};
use memchr::{memchr_iter, memrchr_iter};

/// A logical line is cut here: `yes | tr -d '\n'` must not grow one line without end.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Lines not yet handed out.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Complete lines, then the open one if there is one.
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: usize,
    /// The line whose rest is still on the screen.
    pub(crate) open: Option<Open>,
    /// The program threw the history away: what was handed out before is none of it any more.
    pub(crate) cleared: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// Where it starts in `bytes`.
    pub(crate) start: usize,
    /// Attributes at its end so far.
    pub(crate) style: Style,
}

impl History {
    /// Records a row that left the screen; `next` is the row below it.
    #[inline]
    pub(crate) fn push_row(&mut self, row: &Row<Cell>, next: Option<&Row<Cell>>) {
        let wrapped = is_wrapped(row);
        let continued = self.open.is_some();
        let mut open = self.open.take().unwrap_or_else(|| Open { start: self.bytes.len(), style: Style::default() });
        let mut end = content_end(row, wrapped, next);
        if continued {
            // A row that only exists because its line wrapped into it must wrap again.
            end = end.max(1);
        }
        encode_cells(&row[Column(0)..Column(end)], &mut open.style, &mut self.bytes);
        if wrapped && self.bytes.len() - open.start < LINE_BYTES_MAX {
            self.open = Some(open);
        } else {
            self.end_line(open.style);
        }
    }

    fn end_line(&mut self, mut style: Style) {
        style.clear(&mut self.bytes);
        self.bytes.push(b'\n');
        self.lines += 1;
    }

    /// The program throws away what scrolled off, as a terminal does at `ESC [3J` and at a reset: people clear what nobody shall read.
    pub(crate) fn clear(&mut self) {
        *self = History { cleared: true, ..History::default() };
    }

    /// The open line goes no further.
    pub(crate) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.end_line(open.style);
        }
    }

    /// Moves all but the newest `keep` complete lines to `out`.
    pub(crate) fn drain(&mut self, keep: usize, out: &mut Vec<u8>) -> u32 {
        if self.lines <= keep {
            return 0;
        }
        let count = self.lines - keep;
        let closed = self.open.as_ref().map_or(self.bytes.len(), |open| open.start);
        let cut = if keep == 0 { closed } else { self.end_of_older(keep, closed) };
        out.extend_from_slice(&self.bytes[..cut]);
        self.bytes.drain(..cut);
        if let Some(open) = &mut self.open {
            open.start -= cut;
        }
        self.lines = keep;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The newest complete lines.
    pub(crate) fn newest(&self, count: usize) -> &[u8] {
        let closed = self.open.as_ref().map_or(self.bytes.len(), |open| open.start);
        let from = if count == 0 { closed } else { self.end_of_older(count, closed) };
        &self.bytes[from..closed]
    }

    /// The newest complete lines, and what there is of the line behind them.
    pub(crate) fn newest_open(&self, count: usize) -> &[u8] {
        let closed = self.open.as_ref().map_or(self.bytes.len(), |open| open.start);
        let from = if count == 0 { closed } else { self.end_of_older(count, closed) };
        &self.bytes[from..]
    }

    /// Where the newest `keep` of the complete lines begin, which end at `closed`.
    fn end_of_older(&self, keep: usize, closed: usize) -> usize {
        // From the end: few lines stay.
        memrchr_iter(b'\n', &self.bytes[..closed]).nth(keep).map_or(0, |at| at + 1)
    }

    /// Takes back about `want` rows, newest lines whole, as rows of a screen `cols` wide.
    pub(crate) fn take_rows(&mut self, cols: usize, want: usize) -> Vec<Row<Cell>> {
        let mut taken: Vec<Vec<Row<Cell>>> = Vec::new();
        let mut count = 0;
        if let Some(open) = self.open.take() {
            let mut rows = rows_of(&self.bytes[open.start..], cols);
            if let Some(row) = rows.last_mut() {
                row[Column(cols - 1)].flags.insert(Flags::WRAPLINE);
            }
            count += rows.len();
            taken.push(rows);
            self.bytes.truncate(open.start);
        }
        while count < want && self.lines > 0 {
            let start = memrchr_iter(b'\n', &self.bytes).nth(1).map_or(0, |at| at + 1);
            let rows = rows_of(&self.bytes[start..self.bytes.len() - 1], cols);
            count += rows.len();
            taken.push(rows);
            self.bytes.truncate(start);
            self.lines -= 1;
        }
        taken.into_iter().rev().flatten().collect()
    }
}

/// Where a row's content ends: all of it when it wrapped, without the placeholder of a wide character that did not fit.
pub(crate) fn content_end(row: &Row<Cell>, wrapped: bool, next: Option<&Row<Cell>>) -> usize {
    let cols = row.len();
    if wrapped {
        let carried = next.is_some_and(|next| next[Column(0)].flags.contains(Flags::WIDE_CHAR));
        let spacer = row[Column(cols - 1)].flags.contains(Flags::LEADING_WIDE_CHAR_SPACER);
        return if carried && spacer { cols - 1 } else { cols };
    }
    let cells = &row[..];
    cells.iter().rposition(|cell| !is_blank(cell)).map_or(0, |at| at + 1)
}

/// True for a cell that looks as if nothing had ever been written.
#[inline]
pub(crate) fn is_blank(cell: &Cell) -> bool {
    const UNSEEN: Flags = Flags::LEADING_WIDE_CHAR_SPACER.union(Flags::WRAPLINE);
    let blank = Cell::default();
    cell.c == ' ' && cell.extra.is_none() && UNSEEN.contains(cell.flags) && cell.fg == blank.fg && cell.bg == blank.bg
}

/// Writes cells as text with the sequences that change attributes between them.
#[inline]
pub(crate) fn encode_cells(cells: &[Cell], style: &mut Style, out: &mut Vec<u8>) {
    out.reserve(cells.len());
    for cell in cells {
        if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
            continue;
        }
        if !style.fits(cell) {
            style.change_to(Style::of(cell), out);
        }
        push_char(cell.c, out);
        if let Some(marks) = cell.zerowidth() {
            for mark in marks {
                push_char(*mark, out);
            }
        }
    }
}

#[inline]
pub(crate) fn push_char(c: char, out: &mut Vec<u8>) {
    if c.is_ascii() {
        out.push(c as u8);
    } else {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Lays one encoded line out on rows of `cols` columns.
pub(crate) fn rows_of(line: &[u8], cols: usize) -> Vec<Row<Cell>> {
    let mut page = Page { rows: Vec::new(), cells: Vec::with_capacity(cols), pen: Cell::default(), cols };
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        if rest[0] == ESC {
            let mut boundary = Boundary::new();
            let length = boundary.find(rest).unwrap_or(rest.len());
            page.sequence(boundary.state, &rest[..length]);
            at += length;
        } else if rest[0] < 0x80 {
            let run = ascii_run(rest).max(1);
            for byte in &rest[..run] {
                page.put(char::from(*byte), 1);
            }
            at += run;
        } else {
            match decode(rest) {
                Decoded::Char(c, length) => {
                    page.put(c, crate::vt::width(c));
                    at += length;
                }
                Decoded::Invalid(length) => at += length,
                Decoded::Incomplete => break,
            }
        }
    }
    page.finish()
}

struct Page {
    rows: Vec<Row<Cell>>,
    cells: Vec<Cell>,
    pen: Cell,
    cols: usize,
}

impl Page {
    /// A line read back from a file may hold anything; a cell may not.
    fn put(&mut self, c: char, width: usize) {
        if c.is_control() {
            return;
        }
        if width == 0 {
            let back = self.cells.iter_mut().rev().find(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER));
            if let Some(cell) = back.filter(|cell| cell.zerowidth().is_none_or(|marks| marks.len() < COMBINING_MAX)) {
                cell.push_zerowidth(c);
            }
            return;
        }
        if self.cells.len() + width > self.cols {
            if self.cells.len() < self.cols {
                let mut spacer = Cell { c: ' ', ..self.pen.clone() };
                spacer.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
                self.cells.push(spacer);
            }
            if let Some(last) = self.cells.last_mut() {
                last.flags.insert(Flags::WRAPLINE);
            }
            self.turn();
        }
        let mut cell = Cell { c, ..self.pen.clone() };
        if width == 2 {
            cell.flags.insert(Flags::WIDE_CHAR);
            let mut spacer = Cell { c: ' ', ..self.pen.clone() };
            spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
            self.cells.push(cell);
            self.cells.push(spacer);
        } else {
            self.cells.push(cell);
        }
    }

    fn turn(&mut self) {
        let mut cells = std::mem::replace(&mut self.cells, Vec::with_capacity(self.cols));
        cells.resize(self.cols, Cell::default());
        self.rows.push(Row::from_vec(cells, self.cols));
    }

    fn sequence(&mut self, state: State, sequence: &[u8]) {
        match state {
            State::Csi => {
                if let Some(csi) = Csi::parse(&sequence[2..]).filter(|csi| csi.last == b'm') {
                    apply_sgr(&mut self.pen, &csi.params);
                }
            }
            State::Osc => {
                if let Some(link) = sequence.strip_prefix(b"\x1b]8;").and_then(crate::vt::parse_link) {
                    self.pen.set_hyperlink(link);
                }
            }
            State::Escape | State::Intermediate | State::Text => {}
        }
    }

    fn finish(mut self) -> Vec<Row<Cell>> {
        self.turn();
        self.rows
    }
}

/// The encoded lines as plain text.
#[must_use]
pub fn history_text(encoded: &[u8]) -> String {
    let mut text = Vec::with_capacity(encoded.len());
    PlainText::new().feed(encoded, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends the encoded lines as a terminal wants them: each `\n` becomes `\r\n`.
pub fn history_ansi(encoded: &[u8], out: &mut Vec<u8>) {
    out.reserve(encoded.len() + encoded.len() / 32);
    let mut from = 0;
    for at in memchr_iter(b'\n', encoded) {
        out.extend_from_slice(&encoded[from..at]);
        out.extend_from_slice(b"\r\n");
        from = at + 1;
    }
    out.extend_from_slice(&encoded[from..]);
}
