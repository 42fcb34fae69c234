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
        let text = |row: usize| {
            let mut text = String::new();
            for cell in &self.vt.row(row)[..] {
                if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
                    continue;
                }
                text.push(cell.c);
                text.extend(cell.zerowidth().into_iter().flatten());
            }
            text.truncate(text.trim_end_matches(' ').len());
            text
        };
        (0..self.vt.rows()).map(text).collect()
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
