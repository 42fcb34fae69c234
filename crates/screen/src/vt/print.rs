//! Writing characters.

use super::Vt;
use crate::vt::Modes;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::StandardCharset;
use unicode_width::UnicodeWidthChar;

/// Marks one cell may carry: more than any script needs, and a bound on what a hostile stream can hang on a cell.
pub(crate) const COMBINING_MAX: usize = 16;

/// Columns a character takes: 0, 1 or 2, as xterm.js counts with Unicode 11.
#[inline]
pub(crate) fn width(c: char) -> usize {
    // What most text is made of, for speed.
    match c {
        // Soft hyphen: xterm.js gives it a column, unicode-width none.
        ..'\u{300}' => 1,
        // Greek and Cyrillic; dashes and quotes; arrows and mathematics; boxes and blocks.
        '\u{370}'..'\u{483}' | '\u{2010}'..'\u{2028}' | '\u{2190}'..'\u{231a}' | '\u{2500}'..'\u{25fd}' => 1,
        // Kana; Han; Hangul.
        '\u{3041}'..'\u{3097}' | '\u{4e00}'..'\u{a000}' | '\u{ac00}'..'\u{d7a4}' => 2,
        _ => table_width(c),
    }
}

fn table_width(c: char) -> usize {
    c.width().unwrap_or(0).min(2)
}

impl Vt {
    /// Writes printable ASCII.
    pub(crate) fn print_ascii(&mut self, mut run: &[u8]) {
        let Some(last) = run.last() else { return };
        self.last_char = Some(char::from(*last));
        let charset = self.grid.cursor.charsets[self.charset];
        if charset != StandardCharset::Ascii || self.modes.has(Modes::INSERT) {
            for byte in run {
                self.put(char::from(*byte), 1);
            }
            return;
        }
        let cols = self.cols();
        while !run.is_empty() {
            if self.grid.cursor.input_needs_wrap {
                if !self.modes.has(Modes::WRAP) {
                    // Every further character replaces the last column's.
                    run = &run[run.len() - 1..];
                    self.grid.cursor.input_needs_wrap = false;
                } else {
                    self.wrap();
                }
            }
            let (column, row, _) = self.place();
            let count = run.len().min(cols - column);
            let pen = self.grid.cursor.template.clone();
            self.split_wide(row, column, column + count, &pen);
            let wrapped = self.wrap_flag(row, column + count);
            let cells = &mut self.grid[Line(row as i32)][Column(column)..Column(column + count)];
            for (cell, byte) in cells.iter_mut().zip(run) {
                cell.c = char::from(*byte);
                cell.fg = pen.fg;
                cell.bg = pen.bg;
                cell.flags = pen.flags;
                if cell.extra.is_some() || pen.extra.is_some() {
                    cell.extra = pen.extra.clone();
                }
            }
            self.grid[Line(row as i32)][Column(column + count - 1)].flags.insert(wrapped);
            run = &run[count..];
            self.advance(column + count, cols);
        }
    }

    /// The row's wrap flag if writing up to column `end` would overwrite it: new text in the last column does not cut a line.
    #[inline]
    fn wrap_flag(&self, row: usize, end: usize) -> Flags {
        if end == self.cols() { self.row(row)[Column(end - 1)].flags & Flags::WRAPLINE } else { Flags::empty() }
    }

    #[inline]
    fn advance(&mut self, column: usize, cols: usize) {
        let cursor = &mut self.grid.cursor;
        cursor.input_needs_wrap = column >= cols;
        cursor.point.column = Column(column.min(cols - 1));
    }

    /// Writes one character that is not ASCII.
    pub(crate) fn print(&mut self, c: char) {
        match width(c) {
            0 => self.combine(c),
            n => {
                self.last_char = Some(c);
                self.put(c, n);
            }
        }
    }

    /// REP.
    pub(crate) fn repeat(&mut self, count: usize) {
        let Some(c) = self.last_char else { return };
        // More than two screens of it look the same; the bound keeps a hostile count cheap.
        let most = 2 * self.cols() * self.rows();
        let marks = self.marks_before_cursor();
        for _ in 0..count.min(most) {
            self.put(c, width(c));
            marks.iter().for_each(|mark| self.combine(*mark));
        }
    }

    /// Where the character before the cursor stands.
    fn before_cursor(&self) -> Option<(usize, usize)> {
        let (column, row, pending) = self.place();
        let column = if pending { column } else { column.checked_sub(1)? };
        let spacer = self.row(row)[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER);
        Some((column.saturating_sub(usize::from(spacer)), row))
    }

    fn marks_before_cursor(&self) -> Vec<char> {
        let cell = self.before_cursor().map(|(column, row)| &self.row(row)[Column(column)]);
        cell.and_then(Cell::zerowidth).map(<[char]>::to_vec).unwrap_or_default()
    }

    /// Hangs a mark on the character before the cursor.
    fn combine(&mut self, c: char) {
        let Some((column, row)) = self.before_cursor() else { return };
        let cell = &mut self.grid[Line(row as i32)][Column(column)];
        if cell.zerowidth().is_none_or(|marks| marks.len() < COMBINING_MAX) {
            cell.push_zerowidth(c);
        }
    }

    /// Goes to the next row and notes that the text goes on there.
    fn wrap(&mut self) {
        let cols = self.cols();
        let (_, row, _) = self.place();
        self.grid[Line(row as i32)][Column(cols - 1)].flags.insert(Flags::WRAPLINE);
        if row == self.region.1 {
            self.scroll_up(1);
        } else if row + 1 < self.rows() {
            self.grid.cursor.point.line = Line(row as i32 + 1);
        } else {
            self.unwrap_row(row);
        }
        self.grid.cursor.point.column = Column(0);
        self.grid.cursor.input_needs_wrap = false;
    }

    fn put(&mut self, c: char, width: usize) {
        // The underscore stays, as in xterm.js: a blank in its place only ever surprised.
        let c = if c == '_' { c } else { self.grid.cursor.charsets[self.charset].map(c) };
        let cols = self.cols();
        let (mut column, mut row, pending) = self.place();
        if pending || column + width > cols {
            if self.modes.has(Modes::WRAP) {
                if !pending {
                    self.leave_spacer(row, column);
                }
                self.wrap();
                (column, row, _) = self.place();
            } else {
                if width == 2 {
                    return;
                }
                column = cols - 1;
            }
        }
        if self.modes.has(Modes::INSERT) {
            let pen = self.grid.cursor.template.clone();
            self.insert_cells(row, column, width);
            self.grid.cursor.template = pen;
        }
        let pen = self.grid.cursor.template.clone();
        self.split_wide(row, column, column + width, &pen);
        let mut cell = Cell { c, fg: pen.fg, bg: pen.bg, flags: pen.flags, extra: pen.extra.clone() };
        let wrapped = self.wrap_flag(row, column + width);
        let line = &mut self.grid[Line(row as i32)];
        if width == 2 {
            let mut spacer = cell.clone();
            spacer.c = ' ';
            spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
            line[Column(column + 1)] = spacer;
            cell.flags.insert(Flags::WIDE_CHAR);
        }
        line[Column(column)] = cell;
        line[Column(column + width - 1)].flags.insert(wrapped);
        self.advance(column + width, cols);
    }

    /// The last column stays empty when a wide character does not fit into it.
    fn leave_spacer(&mut self, row: usize, column: usize) {
        let mut spacer = self.grid.cursor.template.clone();
        self.split_wide(row, column, column + 1, &spacer);
        spacer.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
        self.grid[Line(row as i32)][Column(column)] = spacer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_characters_are_as_wide_as_the_table_says() {
        for c in '\u{300}'..=char::MAX {
            assert_eq!(width(c), table_width(c), "{c:?}");
        }
    }
}
