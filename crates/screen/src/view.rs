//! What a person sees: rows as text.

use crate::history::{content_end, encode_cells};
use crate::screen::Screen;
use crate::vt::Style;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::Flags;

impl Screen {
    /// The rows as plain text, without trailing blanks; a wide character stands once.
    #[must_use]
    pub fn rows_text(&self) -> Vec<String> {
        (0..self.vt.rows()).map(|row| self.row_text(row, usize::MAX)).collect()
    }

    /// The last line up to the cursor that has something in it, without trailing blanks: a prompt, as a rule.
    #[must_use]
    pub fn before_cursor(&self) -> String {
        let (column, row, wraps) = self.vt.place();
        let here = self.row_text(row, column + usize::from(wraps));
        let above = || (0..row).rev().map(|row| self.row_text(row, usize::MAX)).find(|text| !text.is_empty());
        if here.is_empty() { above().unwrap_or_default() } else { here }
    }

    fn row_text(&self, row: usize, columns: usize) -> String {
        let mut text = String::new();
        for cell in self.vt.row(row)[..].iter().take(columns) {
            if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
                continue;
            }
            text.push(cell.c);
            text.extend(cell.zerowidth().into_iter().flatten());
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// The rows with their attributes; each stands for itself, starting from and ending in default attributes.
    #[must_use]
    pub fn rows_ansi(&self) -> Vec<Vec<u8>> {
        let encoded = |row: usize| {
            let row = self.vt.row(row);
            let (mut out, mut style) = (Vec::new(), Style::default());
            let end = content_end(row, false, None);
            encode_cells(&row[Column(0)..Column(end)], &mut style, &mut out);
            style.clear(&mut out);
            out
        };
        (0..self.vt.rows()).map(encoded).collect()
    }
}
