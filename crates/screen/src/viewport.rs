//! A screen drawn into a terminal of another size.

use crate::history::{encode_cells, is_blank};
use crate::repaint::{CLEAR, keyboard_to, modes_to};
use crate::screen::Screen;
use crate::vt::{Keyboard, Modes, Style};
use alacritty_terminal::term::cell::{Cell, Flags};
use holdfast_types::Size;
use std::io::Write;

/// Draws a screen into a terminal whose size is not the session's, a little at a time.
///
/// A smaller terminal shows the part around the cursor, a larger one shows the screen at its top left with the rest blank. The
/// terminal must be cleared, with default modes, before the first [`Viewport::render`] and after each [`Viewport::resize`]
/// nothing is assumed about its content.
pub struct Viewport {
    size: Size,
    /// First column and row of the screen that is shown.
    pan: (usize, usize),
    /// What the terminal shows; empty before the first render.
    drawn: Vec<Vec<Cell>>,
    modes: Modes,
    keyboard: Keyboard,
    cursor_style: u8,
    title: String,
    cursor: Option<(usize, usize)>,
}

/// Modes that mean the same in a terminal of another size.
const FORWARDED: Modes = Modes(
    Modes::APP_CURSOR.0
        | Modes::APP_KEYPAD.0
        | Modes::BRACKETED_PASTE.0
        | Modes::FOCUS.0
        | Modes::SHOW_CURSOR.0
        | Modes::BLINKING_CURSOR.0
        | Modes::REVERSE_VIDEO.0
        | Modes::ALT_SCROLL.0
        | Modes::MOUSE_ANY.0
        | Modes::ENCODE_ANY.0,
);

impl Viewport {
    /// For a terminal of this size.
    #[must_use]
    pub fn new(size: Size) -> Viewport {
        Viewport {
            size,
            pan: (0, 0),
            drawn: Vec::new(),
            modes: Modes::default(),
            keyboard: Keyboard::default(),
            cursor_style: 0,
            title: String::new(),
            cursor: None,
        }
    }

    /// The terminal has a new size; the next render draws everything.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.drawn.clear();
    }

    /// What to print so that the terminal shows the screen; nothing if it already does.
    pub fn render(&mut self, screen: &Screen) -> Vec<u8> {
        let mut out = Vec::new();
        let (cols, rows) = (usize::from(self.size.cols()), usize::from(self.size.rows()));
        let vt = &screen.vt;
        let (column, row, _) = vt.place();
        let pan = (follow(self.pan.0, column, cols, vt.cols()), follow(self.pan.1, row, rows, vt.rows()));
        self.pan = pan;
        if self.drawn.is_empty() {
            out.extend_from_slice(b"\x1b[m");
            out.extend_from_slice(CLEAR.as_bytes());
            self.drawn = vec![vec![Cell::default(); cols]; rows];
            self.cursor = None;
        }
        let mut body = Vec::new();
        let mut style = Style::default();
        for at in 0..rows {
            let wanted = cropped(screen, pan, at, cols);
            draw_row(&self.drawn[at], &wanted, at, &mut style, &mut body);
            self.drawn[at] = wanted;
        }
        style.clear(&mut body);
        if !body.is_empty() {
            // One picture at a time, where the terminal can do that.
            out.extend_from_slice(b"\x1b[?2026h");
            out.extend_from_slice(&body);
        }
        let place = (column.saturating_sub(pan.0).min(cols - 1), row.saturating_sub(pan.1).min(rows - 1));
        if !body.is_empty() || self.cursor != Some(place) {
            go(place.0, place.1, &mut out);
            self.cursor = Some(place);
        }
        if !body.is_empty() {
            out.extend_from_slice(b"\x1b[?2026l");
        }
        self.forward(screen, &mut out);
        out
    }

    fn forward(&mut self, screen: &Screen, out: &mut Vec<u8>) {
        let vt = &screen.vt;
        let mut modes = vt.modes & FORWARDED;
        if self.pan != (0, 0) {
            // The reported places would be wrong.
            modes.remove(Modes::MOUSE_ANY);
        }
        modes.insert(Modes::WRAP & self.modes);
        modes_to(self.modes, modes, out);
        self.modes = modes;
        // The outer terminal has one stack entry of ours at most.
        let keyboard = Keyboard { flags: vt.keyboard.flags, stack: Vec::new(), modify_other: vt.keyboard.modify_other };
        keyboard_to(&self.keyboard, &keyboard, out);
        self.keyboard = keyboard;
        if self.cursor_style != vt.cursor_style {
            self.cursor_style = vt.cursor_style;
            write!(out, "\x1b[{} q", vt.cursor_style).expect("a vector takes everything");
        }
        if self.title != vt.title {
            self.title.clone_from(&vt.title);
            write!(out, "\x1b]2;{}\x1b\\", vt.title).expect("a vector takes everything");
        }
    }
}

/// The first column (or row) to show so that `at` is visible, moving as little as possible.
fn follow(first: usize, at: usize, shown: usize, all: usize) -> usize {
    let first = first.min(all.saturating_sub(shown));
    if at < first {
        at
    } else if at >= first + shown {
        at + 1 - shown
    } else {
        first
    }
}

/// The cells that row `at` of the terminal is to show.
fn cropped(screen: &Screen, pan: (usize, usize), at: usize, cols: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); cols];
    let row = at + pan.1;
    if row < screen.vt.rows() {
        let source = &screen.vt.row(row)[..];
        for (cell, from) in cells.iter_mut().zip(source.iter().skip(pan.0)) {
            *cell = from.clone();
            cell.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
        }
        // Half a wide character cannot be drawn.
        if cells[0].flags.contains(Flags::WIDE_CHAR_SPACER) {
            cells[0].flags.remove(Flags::WIDE_CHAR_SPACER);
        }
        if cells[cols - 1].flags.contains(Flags::WIDE_CHAR) {
            cells[cols - 1].clear_wide();
        }
    }
    cells
}

fn go(column: usize, row: usize, out: &mut Vec<u8>) {
    write!(out, "\x1b[{};{}H", row + 1, column + 1).expect("a vector takes everything");
}

/// Writes the part of a row that changed.
fn draw_row(old: &[Cell], new: &[Cell], row: usize, style: &mut Style, out: &mut Vec<u8>) {
    let Some(mut first) = old.iter().zip(new).position(|(old, new)| old != new) else { return };
    let mut last = old.iter().zip(new).rposition(|(old, new)| old != new).unwrap_or(first);
    // Wide characters are drawn whole, those that stood there before included.
    let halved = |cells: &[Cell], at: usize| cells[at].flags.contains(Flags::WIDE_CHAR_SPACER);
    while first > 0 && (halved(new, first) || halved(old, first)) {
        first -= 1;
    }
    while last + 1 < new.len() && (halved(new, last + 1) || halved(old, last + 1)) {
        last += 1;
    }
    go(first, row, out);
    let content = new.iter().rposition(|cell| !is_blank(cell)).map_or(0, |at| at + 1);
    let end = (last + 1).min(content.max(first));
    encode_cells(&new[first..end], style, out);
    if end <= last {
        style.clear(out);
        out.extend_from_slice(b"\x1b[K");
    }
}
