//! A new size: the primary screen and its newest history reflow together, the alternate one is cut or padded.

use super::{Vt, default_tabs};
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};
use holdfast_types::Size;

/// Scrollback of the grid while it reflows; it is taken out again at once.
const SCROLLBACK_MAX: usize = 1 << 30;

/// Lines of history that stay available to a screen of `rows` rows that grows: twice its height, at least 100.
pub(crate) fn kept_lines(rows: usize) -> usize {
    (2 * rows).max(100)
}

impl Vt {
    pub(crate) fn resize(&mut self, size: Size) {
        if size == self.size {
            return;
        }
        let (cols, rows) = (usize::from(size.cols()), usize::from(size.rows()));
        let (old_cols, old_rows) = (self.cols(), self.rows());
        let tail = self.history.take_rows(old_cols, kept_lines(rows.max(old_rows)));
        let primary = if self.alternate { &mut self.other } else { &mut self.grid };
        let mut page = with_scrollback(primary, tail);
        page.resize(true, rows, cols);
        let above = page.history_size() as i32;
        mend_rows(&mut page, above);
        for line in -above..0 {
            self.history.push_row(&page[Line(line)], Some(&page[Line(line + 1)]));
        }
        page.update_history(0);
        page.truncate();
        *primary = page;
        if self.alternate {
            self.grid.resize(false, rows, cols);
            mend_rows(&mut self.grid, 0);
        }
        if cols != old_cols {
            self.tabs = default_tabs(cols);
        }
        self.size = size;
        self.region = (0, rows - 1);
        self.other_region = (0, rows - 1);
    }
}

/// The grid's rows in a grid that has `tail` above them.
fn with_scrollback(grid: &mut Grid<Cell>, tail: Vec<alacritty_terminal::grid::Row<Cell>>) -> Grid<Cell> {
    let (cols, rows) = (grid.columns(), grid.screen_lines());
    let mut page: Grid<Cell> = Grid::new(rows, cols, SCROLLBACK_MAX);
    for row in tail {
        page[Line(0)] = row;
        page.scroll_up(&(Line(0)..Line(rows as i32)), 1);
    }
    for row in 0..rows as i32 {
        page[Line(row)] = std::mem::take(&mut grid[Line(row)]);
    }
    page.cursor = std::mem::take(&mut grid.cursor);
    page.saved_cursor = std::mem::take(&mut grid.saved_cursor);
    page
}

/// Reflow and cutting may leave half a wide character, or a flag of the last column elsewhere.
fn mend_rows(grid: &mut Grid<Cell>, above: i32) {
    for line in -above..grid.screen_lines() as i32 {
        let cells = &mut grid[Line(line)][..];
        let last = cells.len() - 1;
        for at in 0..=last {
            let halved = at == last || !cells[at + 1].flags.contains(Flags::WIDE_CHAR_SPACER);
            if cells[at].flags.contains(Flags::WIDE_CHAR) && halved {
                cells[at].clear_wide();
            }
            let alone = at == 0 || !cells[at - 1].flags.contains(Flags::WIDE_CHAR);
            if cells[at].flags.contains(Flags::WIDE_CHAR_SPACER) && alone {
                cells[at].flags.remove(Flags::WIDE_CHAR_SPACER);
            }
            if at != last {
                cells[at].flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
            }
        }
    }
}
