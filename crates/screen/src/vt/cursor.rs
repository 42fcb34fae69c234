//! Moving the cursor: by steps, by tabs, by lines.

use super::{Vt, is_wrapped};
use crate::vt::Modes;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;

impl Vt {
    /// Keeps the cursor on the screen (within the region in origin mode) and takes it out of the pending wrap.
    pub(crate) fn confine(&mut self) {
        let (low, high) = if self.modes.has(Modes::ORIGIN) { self.region } else { (0, self.rows() - 1) };
        let last = self.cols() - 1;
        let cursor = &mut self.grid.cursor;
        cursor.point.line = cursor.point.line.clamp(Line(low as i32), Line(high as i32));
        cursor.point.column = Column(cursor.point.column.0.min(last));
        cursor.input_needs_wrap = false;
    }

    /// CUP: relative to the region in origin mode.
    pub(crate) fn goto(&mut self, column: usize, row: usize) {
        let top = if self.modes.has(Modes::ORIGIN) { self.region.0 } else { 0 };
        self.grid.cursor.point = super::point(column, (row + top).min(usize::from(u16::MAX)));
        self.confine();
    }

    pub(crate) fn set_column(&mut self, column: usize) {
        self.grid.cursor.point.column = Column(column.min(self.cols() - 1));
        self.grid.cursor.input_needs_wrap = false;
    }

    pub(crate) fn move_up(&mut self, count: usize) {
        let (_, row, _) = self.place();
        let limit = if row >= self.region.0 { self.region.0 } else { 0 };
        self.move_to_row(row.saturating_sub(count).max(limit));
    }

    pub(crate) fn move_down(&mut self, count: usize) {
        let (_, row, _) = self.place();
        let limit = if row <= self.region.1 { self.region.1 } else { self.rows() - 1 };
        self.move_to_row((row + count).min(limit));
    }

    fn move_to_row(&mut self, row: usize) {
        self.grid.cursor.point.line = Line(row as i32);
        self.confine();
    }

    pub(crate) fn move_right(&mut self, count: usize) {
        let (column, _, _) = self.place();
        self.grid.cursor.point.column = Column(column + count);
        self.confine();
    }

    pub(crate) fn move_left(&mut self, count: usize) {
        let (column, _, _) = self.place();
        self.grid.cursor.point.column = Column(column.saturating_sub(count));
        self.confine();
    }

    pub(crate) fn backspace(&mut self) {
        let (column, row, pending) = self.place();
        if !self.modes.has(Modes::REVERSE_WRAP) {
            return self.move_left(1);
        }
        if pending {
            // xterm.js counts the pending wrap as a column of its own here.
            self.grid.cursor.input_needs_wrap = false;
        } else if column > 0 {
            self.move_left(1);
        } else if row > self.region.0 && row <= self.region.1 && is_wrapped(self.row(row - 1)) {
            self.unwrap_row(row - 1);
            self.grid.cursor.point = super::point(self.cols() - 1, row - 1);
            if self.row(row - 1)[Column(self.cols() - 1)].flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
                self.move_left(1);
            }
        }
    }

    pub(crate) fn tab(&mut self, count: usize) {
        let (mut column, _, pending) = self.place();
        if pending {
            return;
        }
        for _ in 0..count.min(self.cols()) {
            column = (column + 1..self.cols()).find(|c| self.tabs[*c]).unwrap_or(self.cols() - 1);
        }
        self.set_column(column);
    }

    pub(crate) fn tab_back(&mut self, count: usize) {
        let (mut column, _, pending) = self.place();
        if pending {
            return;
        }
        for _ in 0..count.min(self.cols()) {
            column = (0..column).rev().find(|c| self.tabs[*c]).unwrap_or(0);
        }
        self.set_column(column);
    }

    pub(crate) fn set_tab(&mut self) {
        let (column, _, pending) = self.place();
        if !pending {
            self.tabs[column] = true;
        }
    }

    pub(crate) fn clear_tab(&mut self, which: u16) {
        let (column, _, pending) = self.place();
        match which {
            0 if !pending => self.tabs[column] = false,
            3 => self.tabs.fill(false),
            _ => {}
        }
    }

    pub(crate) fn line_feed(&mut self) {
        if self.modes.has(Modes::NEW_LINE) {
            self.set_column(0);
        }
        let (_, row, _) = self.place();
        if row == self.region.1 {
            self.unwrap_row(row);
            self.scroll_up(1);
        } else if row + 1 < self.rows() {
            self.unwrap_row(row);
            self.grid.cursor.point.line = Line(row as i32 + 1);
        }
        self.grid.cursor.input_needs_wrap = false;
    }

    /// IND.
    pub(crate) fn index(&mut self) {
        self.confine();
        let (_, row, _) = self.place();
        if row == self.region.1 {
            self.scroll_up(1);
        } else if row + 1 < self.rows() {
            self.grid.cursor.point.line = Line(row as i32 + 1);
        }
        self.confine();
    }

    /// RI.
    pub(crate) fn reverse_index(&mut self) {
        self.confine();
        let (_, row, _) = self.place();
        if row == self.region.0 {
            self.scroll_down(self.region.0, 1);
        } else {
            self.grid.cursor.point.line = Line(row.saturating_sub(1) as i32);
            self.confine();
        }
    }

    /// DECSTBM.
    pub(crate) fn set_region(&mut self, top: u16, bottom: u16) {
        let rows = self.rows();
        let bottom = if bottom == 0 { rows } else { usize::from(bottom).min(rows) };
        let top = usize::from(top.max(1));
        if top < bottom {
            self.region = (top - 1, bottom - 1);
            self.goto(0, 0);
        }
    }
}
