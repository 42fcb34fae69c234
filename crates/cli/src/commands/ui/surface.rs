//! What the picker draws on: a grid of cells, of which only those go to the terminal that changed.
//!
//! Text that is put there has been made harmless before. Bold, dim and reversed are the only styles: colours are the person's.

use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// To be seen first.
    Bold,
    /// To be seen last.
    Dim,
    /// Selected.
    Reversed,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "\x1b[0m",
            Style::Bold => "\x1b[0;1m",
            Style::Dim => "\x1b[0;2m",
            Style::Reversed => "\x1b[0;7m",
        }
    }
}

/// A part of the surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The first column.
    pub x: u16,
    /// The first row.
    pub y: u16,
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

impl Area {
    /// One of its rows.
    pub fn row(self, row: u16) -> Area {
        Area { y: self.y + row, height: 1, ..self }
    }
}

/// A cell: a character with what is written over it; nothing behind a wide one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Cell {
    text: String,
    style: Style,
}

/// The grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    columns: u16,
    rows: u16,
    cells: Vec<Cell>,
    /// Where the cursor is shown, if it is.
    pub cursor: Option<(u16, u16)>,
}

impl Surface {
    /// An empty one.
    pub fn new(columns: u16, rows: u16) -> Surface {
        let blank = Cell { text: " ".into(), style: Style::Plain };
        Surface { columns, rows, cells: vec![blank; usize::from(columns) * usize::from(rows)], cursor: None }
    }

    /// All of it.
    pub fn area(&self) -> Area {
        Area { x: 0, y: 0, width: self.columns, height: self.rows }
    }

    /// Writes one line at the beginning of an area's first row, and no further than the area is wide. Gives the columns it took.
    pub fn put(&mut self, area: Area, text: &str, style: Style) -> u16 {
        let end = (area.x + area.width).min(self.columns);
        if area.y >= self.rows || area.height == 0 {
            return 0;
        }
        let start = usize::from(area.y) * usize::from(self.columns);
        let mut x = area.x;
        for c in text.chars() {
            let width = c.width().unwrap_or(0) as u16;
            if width == 0 {
                // It belongs to the character before it; one that begins a text is left out.
                if x > area.x && !c.is_control() {
                    self.cells[start + usize::from(x) - 1].text.push(c);
                }
                continue;
            }
            if x + width > end {
                break;
            }
            self.cells[start + usize::from(x)] = Cell { text: c.into(), style };
            for behind in 1..width {
                self.cells[start + usize::from(x + behind)] = Cell { text: String::new(), style };
            }
            x += width;
        }
        x - area.x
    }

    /// Blanks an area.
    pub fn clear(&mut self, area: Area) {
        let blank = " ".repeat(usize::from(area.width));
        for row in 0..area.height {
            self.put(area.row(row), &blank, Style::Plain);
        }
    }

    /// What makes a terminal that shows `before` show this.
    pub fn changes(&self, before: Option<&Surface>) -> String {
        let before = before.filter(|before| (before.columns, before.rows) == (self.columns, self.rows));
        let mut out = String::from("\x1b[?2026h\x1b[?25l");
        if before.is_none() {
            out.push_str("\x1b[0m\x1b[H\x1b[2J");
        }
        for y in 0..self.rows {
            self.row_changes(y, before, &mut out);
        }
        out.push_str("\x1b[0m");
        if let Some((x, y)) = self.cursor {
            let _ = write!(out, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1);
        }
        out.push_str("\x1b[?2026l");
        out
    }

    /// A row that changed is written from the first cell that did to the last: where a wide character was, its halves change together.
    fn row_changes(&self, y: u16, before: Option<&Surface>, out: &mut String) {
        let row = |surface: &Surface| {
            let start = usize::from(y) * usize::from(surface.columns);
            surface.cells[start..start + usize::from(surface.columns)].to_vec()
        };
        let (now, was) = (row(self), before.map(row));
        let differs = |at: &usize| was.as_ref().is_none_or(|was| was[*at] != now[*at]);
        let (Some(mut first), Some(last)) = ((0..now.len()).find(differs), (0..now.len()).rfind(differs)) else {
            return;
        };
        while first > 0 && (now[first].text.is_empty() || was.as_ref().is_some_and(|was| was[first].text.is_empty())) {
            first -= 1;
        }
        let _ = write!(out, "\x1b[{};{}H", y + 1, first + 1);
        let mut style = None;
        for cell in &now[first..=last] {
            if style != Some(cell.style) {
                out.push_str(cell.style.code());
                style = Some(cell.style);
            }
            out.push_str(&cell.text);
        }
    }

    /// What it shows, row by row.
    #[cfg(test)]
    pub fn text(&self) -> String {
        let rows = self.cells.chunks(usize::from(self.columns).max(1));
        let line = |row: &[Cell]| row.iter().map(|cell| cell.text.as_str()).collect::<String>();
        rows.map(|row| line(row).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

/// A text in lines of so many columns, cut at spaces where there are some.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let width = |text: &str| text.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_inclusive(' ') {
        if width(&line) + width(word.trim_end()) > columns && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if width(&line) + c.width().unwrap_or(0) > columns && c != ' ' && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_screen::Screen;
    use holdfast_types::Size;

    /// What a terminal shows.
    fn shown(screen: &Screen) -> String {
        screen.rows_text().iter().map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_terminal_that_gets_the_changes_shows_the_surface() {
        let mut screen = Screen::new(Size::clamped(20, 4), 0);
        let texts = ["plain", "終わり wide", "x終わり", "", "e\u{301}a very long line that is cut", "終"];
        let mut before: Option<Surface> = None;
        for (number, text) in texts.iter().cycle().take(24).enumerate() {
            let mut surface = Surface::new(20, 4);
            let style = [Style::Plain, Style::Bold, Style::Reversed][number % 3];
            let area = Area { x: (number % 5) as u16, width: 20, ..surface.area().row((number % 4) as u16) };
            surface.put(area, text, style);
            surface.put(surface.area().row(3), "終わりの行 end", Style::Dim);
            surface.cursor = (number % 2 == 0).then_some((3, 1));
            screen.feed(surface.changes(before.as_ref()).as_bytes());
            assert_eq!(shown(&screen), surface.text(), "{number}");
            assert_eq!(
                surface.changes(Some(&surface)).matches('H').count(),
                usize::from(number % 2 == 0),
                "nothing new"
            );
            before = Some(surface);
        }
    }

    #[test]
    fn text_never_leaves_its_area() {
        let mut surface = Surface::new(10, 2);
        let area = Area { x: 2, y: 0, width: 5, height: 1 };
        assert_eq!(surface.put(area, "終わり終わり", Style::Plain), 4);
        assert_eq!(surface.put(Area { y: 7, ..area }, "below", Style::Plain), 0);
        assert_eq!(surface.put(Area { x: 9, width: 9, ..area }, "wide", Style::Plain), 1);
        assert_eq!(surface.text(), "  終わ   w\n");
    }

    #[test]
    fn lines_are_cut_at_spaces_and_nothing_is_lost() {
        assert_eq!(wrapped("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("終わり終わり", 5), ["終わ", "り終", "わり"]);
        for columns in 1..9 {
            assert_eq!(wrapped("a bb ccc dddd eeeee", columns).concat(), "a bb ccc dddd eeeee");
        }
    }
}
