//! Changing cells: scrolling, erasing, inserting, deleting.

use super::{Pen, Vt, is_wrapped};
use alacritty_terminal::grid::{Dimensions, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

impl Vt {
    /// Marks that the text of `row` ends with it.
    pub(crate) fn unwrap_row(&mut self, row: usize) {
        let last = Column(self.cols() - 1);
        if is_wrapped(self.row(row)) {
            self.grid[Line(row as i32)][last].flags.remove(Flags::WRAPLINE);
        }
    }

    /// The text of `row` no longer continues the row above it, which may be the last one of the history.
    fn part_from_above(&mut self, row: usize) {
        if row > 0 {
            self.unwrap_row(row - 1);
        } else if !self.alternate {
            self.history.close();
        }
    }

    /// Moves the region's text up; what leaves the top of the primary screen becomes history.
    pub(crate) fn scroll_up(&mut self, count: usize) {
        let (top, bottom) = self.region;
        let count = count.min(bottom + 1 - top);
        if top == 0 && !self.alternate {
            for row in 0..count as i32 {
                // The row below tells whether a wide character was carried over.
                let below = row + 1 < self.grid.screen_lines() as i32;
                self.history.push_row(&self.grid[Line(row)], below.then(|| &self.grid[Line(row + 1)]));
            }
        }
        self.grid.scroll_up(&(Line(top as i32)..Line(bottom as i32 + 1)), count);
    }

    /// Moves rows down within the region, starting at `top`.
    pub(crate) fn scroll_down(&mut self, top: usize, count: usize) {
        let bottom = self.region.1;
        let count = count.min(bottom + 1 - top);
        self.part_from_above(top);
        self.grid.scroll_down(&(Line(top as i32)..Line(bottom as i32 + 1)), count);
    }

    /// SD: the new rows are blank in the default background.
    pub(crate) fn scroll_down_plain(&mut self, count: usize) {
        let pen = std::mem::take(&mut self.grid.cursor.template);
        self.scroll_down(self.region.0, count);
        self.grid.cursor.template = pen;
    }

    pub(crate) fn insert_lines(&mut self, count: usize) {
        self.confine();
        let (_, row, _) = self.place();
        if (self.region.0..=self.region.1).contains(&row) {
            self.scroll_down(row, count);
            self.set_column(0);
        }
    }

    pub(crate) fn delete_lines(&mut self, count: usize) {
        self.confine();
        let (_, row, _) = self.place();
        if (self.region.0..=self.region.1).contains(&row) {
            let count = count.min(self.region.1 + 1 - row);
            self.part_from_above(row);
            self.rotate_up(row, self.region.1, count);
            self.set_column(0);
        }
    }

    /// Moves rows up without making history of them.
    fn rotate_up(&mut self, top: usize, bottom: usize, count: usize) {
        for row in top..=bottom {
            let source = row + count;
            let moved =
                if source <= bottom { std::mem::take(&mut self.grid[Line(source as i32)]) } else { self.blank_row() };
            self.grid[Line(row as i32)] = moved;
        }
    }

    fn blank_row(&self) -> Row<Cell> {
        let blank = self.blank();
        let cols = self.cols();
        Row::from_vec(vec![blank; cols], cols)
    }

    /// An erased cell: the current background and nothing else.
    pub(crate) fn blank(&self) -> Cell {
        Cell { bg: self.grid.cursor.template.bg, ..Cell::default() }
    }

    /// Erases columns `from..to` of a row; halves of wide characters at the edges become blanks.
    pub(crate) fn erase(&mut self, row: usize, from: usize, to: usize) {
        let to = to.min(self.cols());
        if from >= to {
            return;
        }
        let blank = self.blank();
        self.split_wide(row, from, to, &blank);
        let cells = &mut self.grid[Line(row as i32)][Column(from)..Column(to)];
        for cell in cells {
            *cell = blank.clone();
        }
    }

    /// Prepares columns `from..to` for being overwritten: of wide characters across the edges, `blank` takes the other half.
    #[inline]
    pub(crate) fn split_wide(&mut self, row: usize, from: usize, to: usize, blank: &Cell) {
        let cols = self.cols();
        let row = &mut self.grid[Line(row as i32)];
        if from > 0 && from < cols && row[Column(from)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            row[Column(from - 1)] = blank.clone();
        }
        if to < cols && row[Column(to)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            let wrapped = row[Column(to)].flags & Flags::WRAPLINE;
            row[Column(to)] = blank.clone();
            row[Column(to)].flags.insert(wrapped);
        }
    }

    pub(crate) fn erase_line(&mut self, which: u16) {
        let (column, row, pending) = self.place();
        let start = if pending { self.cols() } else { column };
        match which {
            0 => {
                self.erase(row, start, self.cols());
                if start == 0 {
                    self.part_from_above(row);
                }
            }
            1 => self.erase(row, 0, column + 1),
            2 => {
                self.erase(row, 0, self.cols());
                self.part_from_above(row);
            }
            _ => {}
        }
    }

    pub(crate) fn erase_display(&mut self, which: u16) {
        let (column, row, pending) = self.place();
        let start = if pending { self.cols() } else { column };
        match which {
            0 => {
                self.erase(row, start, self.cols());
                if start == 0 {
                    self.part_from_above(row);
                }
                self.erase_rows(row + 1, self.rows());
            }
            1 => {
                self.erase(row, 0, column + 1);
                self.erase_rows(0, row);
            }
            2 => self.erase_rows(0, self.rows()),
            3 => self.history.clear(),
            _ => {}
        }
    }

    fn erase_rows(&mut self, from: usize, to: usize) {
        if from < to {
            self.grid.reset_region(Line(from as i32)..Line(to as i32));
            self.part_from_above(from);
        }
    }

    pub(crate) fn erase_chars(&mut self, count: usize) {
        self.confine();
        let (column, row, _) = self.place();
        self.erase(row, column, column.saturating_add(count));
    }

    pub(crate) fn insert_chars(&mut self, count: usize) {
        self.confine();
        let (column, row, _) = self.place();
        self.insert_cells(row, column, count);
    }

    /// Shifts the cells from `column` on to the right; what leaves the row is gone.
    pub(crate) fn insert_cells(&mut self, row: usize, column: usize, count: usize) {
        let cols = self.cols();
        let count = count.min(cols - column);
        let blank = self.blank();
        self.split_wide(row, column, column, &blank);
        let line = &mut self.grid[Line(row as i32)][Column(column)..Column(cols)];
        line[..].rotate_right(count);
        for cell in &mut line[..count] {
            *cell = blank.clone();
        }
        self.mend_edge(row);
        let after = column + count;
        if after < cols {
            self.grid[Line(row as i32)][Column(after)].flags.remove(Flags::WIDE_CHAR_SPACER);
        }
    }

    /// A wide character whose second half left the row becomes a blank; the wrap flag stays in the last cell only.
    fn mend_edge(&mut self, row: usize) {
        let cols = self.cols();
        let row = &mut self.grid[Line(row as i32)];
        if row[Column(cols - 1)].flags.contains(Flags::WIDE_CHAR) {
            row[Column(cols - 1)].clear_wide();
        }
        for cell in &mut row[Column(0)..Column(cols - 1)] {
            cell.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
        }
    }

    pub(crate) fn delete_chars(&mut self, count: usize) {
        self.confine();
        let (column, row, _) = self.place();
        let cols = self.cols();
        let count = count.min(cols - column);
        let blank = self.blank();
        self.split_wide(row, column, column + count, &blank);
        let line = &mut self.grid[Line(row as i32)][Column(column)..Column(cols)];
        line.rotate_left(count);
        let kept = line.len() - count;
        for cell in &mut line[kept..] {
            *cell = blank.clone();
        }
        self.mend_edge(row);
    }

    /// DECALN.
    pub(crate) fn alignment_pattern(&mut self) {
        let pen = &self.grid.cursor.template;
        let filled = Cell { c: 'E', fg: pen.fg, bg: pen.bg, flags: pen.flags, extra: None };
        for row in 0..self.rows() {
            for cell in &mut self.grid[Line(row as i32)][..] {
                *cell = filled.clone();
            }
        }
        self.goto(0, 0);
    }

    /// Blanks the screen for a flood's last screenful: the cursor at its top, writing with `pen`.
    pub(crate) fn clear_for_flood(&mut self, pen: Pen) {
        let mut template = std::mem::take(&mut self.grid.cursor.template);
        pen.paint(&mut template);
        let rows = self.rows() as i32;
        self.grid.reset_region(Line(0)..Line(rows));
        self.grid.cursor.template = template;
        self.grid.cursor.point = super::point(0, 0);
    }
}
