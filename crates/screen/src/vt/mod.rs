//! The terminal's state and what moves in it.
//!
//! Rows, scrolling and reflow are alacritty's `Grid`; the operations on it are ours and follow xterm.js, which is what the
//! browser shows. Alacritty's `Term` is not used: it hides the other screen, the region, the tab stops and more, and an
//! exact keyframe needs them all.

mod attributes;
mod csi;
mod cursor;
mod edit;
mod modes;
mod osc;
mod pen;
mod print;
mod reply;
mod resize;

pub(crate) use attributes::{STYLE, Style, link, parse_link, write_link, write_number};
pub(crate) use modes::{Keyboard, Modes};
pub(crate) use osc::{BACKGROUND, CURSOR, FOREGROUND};
pub(crate) use pen::{Pen, apply_sgr};
pub(crate) use print::{COMBINING_MAX, width};
pub(crate) use resize::kept_lines;

use crate::history::History;
use crate::marks::{Mark, MarkKind, Reply, TerminalColors};
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{CharsetIndex, StandardCharset};
use holdfast_types::{Offset, Size};
use std::collections::BTreeMap;

/// Titles a program may push before it pops; real ones use one.
const TITLE_STACK_MAX: usize = 16;
/// Longest title, working directory or link kept.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
/// Marks and replies kept for a caller that never takes them; the oldest go first.
pub(crate) const EVENTS_MAX: usize = 1024;

/// The whole state of a terminal.
pub(crate) struct Vt {
    pub(crate) size: Size,
    /// The screen being written to.
    pub(crate) grid: Grid<Cell>,
    /// The primary screen while the alternate is shown; a stub otherwise, for half the memory.
    pub(crate) other: Grid<Cell>,
    pub(crate) alternate: bool,
    pub(crate) modes: Modes,
    /// First and last row of the scroll region, of this screen and the other.
    pub(crate) region: (usize, usize),
    pub(crate) other_region: (usize, usize),
    pub(crate) charset: CharsetIndex,
    pub(crate) saved_charset: CharsetIndex,
    pub(crate) other_saved_charset: CharsetIndex,
    pub(crate) tabs: Vec<bool>,
    /// What REP repeats: the last character, if nothing else came after it.
    pub(crate) last_char: Option<char>,
    pub(crate) cursor_style: u8,
    pub(crate) title: String,
    pub(crate) title_stack: Vec<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) keyboard: Keyboard,
    pub(crate) other_keyboard: Keyboard,
    /// Changed palette entries: 0–255, then foreground, background, cursor.
    pub(crate) palette: BTreeMap<u16, [u8; 3]>,
    pub(crate) colors: TerminalColors,
    pub(crate) history: History,
    pub(crate) marks: Vec<Mark>,
    pub(crate) replies: Vec<Reply>,
    /// End offset of the sequence being executed.
    pub(crate) at: Offset,
}

impl Vt {
    pub(crate) fn new(size: Size) -> Vt {
        let (cols, rows) = (usize::from(size.cols()), usize::from(size.rows()));
        Vt {
            size,
            grid: Grid::new(rows, cols, 0),
            other: stub(),
            alternate: false,
            modes: Modes::default(),
            region: (0, rows - 1),
            other_region: (0, rows - 1),
            charset: CharsetIndex::G0,
            saved_charset: CharsetIndex::G0,
            other_saved_charset: CharsetIndex::G0,
            tabs: default_tabs(cols),
            last_char: None,
            cursor_style: 0,
            title: String::new(),
            title_stack: Vec::new(),
            cwd: None,
            keyboard: Keyboard::default(),
            other_keyboard: Keyboard::default(),
            palette: BTreeMap::new(),
            colors: TerminalColors::default(),
            history: History::default(),
            marks: Vec::new(),
            replies: Vec::new(),
            at: 0,
        }
    }

    #[inline]
    pub(crate) fn cols(&self) -> usize {
        self.grid.columns()
    }

    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.grid.screen_lines()
    }

    /// Column and row of the cursor, and whether the next character wraps first.
    #[inline]
    pub(crate) fn place(&self) -> (usize, usize, bool) {
        place(&self.grid)
    }

    /// The screen that history comes from.
    pub(crate) fn primary(&self) -> &Grid<Cell> {
        if self.alternate { &self.other } else { &self.grid }
    }

    /// Executes one C0 control.
    pub(crate) fn control(&mut self, byte: u8) {
        self.last_char = None;
        match byte {
            0x05 => self.answer(b""),
            0x07 => self.mark(MarkKind::Bell),
            0x08 => self.backspace(),
            0x09 => self.tab(1),
            0x0a..=0x0c => self.line_feed(),
            0x0d => self.set_column(0),
            0x0e => self.charset = CharsetIndex::G1,
            0x0f => self.charset = CharsetIndex::G0,
            _ => {}
        }
    }

    /// Executes a complete `ESC …` sequence that is neither CSI nor a string.
    pub(crate) fn escape(&mut self, sequence: &[u8]) {
        let mut bytes = sequence.iter().skip(1).filter(|b| (0x20..0x7f).contains(*b));
        let (first, second) = (bytes.next().copied().unwrap_or(0), bytes.next().copied());
        match (first, second) {
            (b'7', None) => self.save_cursor(),
            (b'8', None) => self.restore_cursor(),
            (b'D', None) => self.index(),
            (b'E', None) => {
                self.set_column(0);
                self.index();
            }
            (b'H', None) => self.set_tab(),
            (b'M', None) => self.reverse_index(),
            (b'Z', None) => self.answer(b"\x1b[?62;22c"),
            (b'c', None) => self.reset(),
            (b'=', None) => self.modes.insert(Modes::APP_KEYPAD),
            (b'>', None) => self.modes.remove(Modes::APP_KEYPAD),
            (b'n', None) => self.charset = CharsetIndex::G2,
            (b'o', None) => self.charset = CharsetIndex::G3,
            (b'#', Some(b'8')) => self.alignment_pattern(),
            (b'%', Some(b'@' | b'G')) => {
                self.charset = CharsetIndex::G0;
                self.grid.cursor.charsets[CharsetIndex::G0] = StandardCharset::Ascii;
            }
            (b'(', Some(set)) => self.set_charset(CharsetIndex::G0, set),
            (b')' | b'-', Some(set)) => self.set_charset(CharsetIndex::G1, set),
            (b'*' | b'.', Some(set)) => self.set_charset(CharsetIndex::G2, set),
            (b'+', Some(set)) => self.set_charset(CharsetIndex::G3, set),
            _ => {}
        }
    }

    fn set_charset(&mut self, index: CharsetIndex, set: u8) {
        self.grid.cursor.charsets[index] =
            if set == b'0' { StandardCharset::SpecialCharacterAndLineDrawing } else { StandardCharset::Ascii };
    }

    /// RIS. History that was recorded stays recorded.
    pub(crate) fn reset(&mut self) {
        if self.alternate {
            self.leave_alternate();
        }
        let fresh = Vt::new(self.size);
        let old = std::mem::replace(self, fresh);
        self.history = old.history;
        self.history.clear();
        (self.marks, self.replies, self.at) = (old.marks, old.replies, old.at);
        (self.colors, self.cwd) = (old.colors, old.cwd);
        (self.title, self.title_stack) = (old.title, old.title_stack);
    }

    /// DECSTR, with the reach xterm.js gives it.
    pub(crate) fn soft_reset(&mut self) {
        self.region = (0, self.rows() - 1);
        self.grid.cursor.template = Cell::default();
        self.grid.cursor.charsets = Default::default();
        self.charset = CharsetIndex::G0;
        self.saved_charset = CharsetIndex::G0;
        let kept = self.modes & Modes::SURVIVES_SOFT_RESET;
        self.modes = Modes::default() & !Modes::SURVIVES_SOFT_RESET | kept;
        self.grid.saved_cursor = Default::default();
    }

    pub(crate) fn save_cursor(&mut self) {
        self.grid.saved_cursor = self.grid.cursor.clone();
        self.saved_charset = self.charset;
    }

    pub(crate) fn restore_cursor(&mut self) {
        let link = self.grid.cursor.template.hyperlink();
        self.grid.cursor = self.grid.saved_cursor.clone();
        self.grid.cursor.template.set_hyperlink(link);
        self.grid.cursor.input_needs_wrap = false;
        self.charset = self.saved_charset;
        self.confine();
    }

    /// Shows the alternate screen, blank in the current background.
    pub(crate) fn enter_alternate(&mut self) {
        if self.alternate {
            return;
        }
        let (cols, rows) = (self.cols(), self.rows());
        self.other = Grid::new(rows, cols, 0);
        self.other.cursor = self.grid.cursor.clone();
        self.other.reset_region(Line(0)..Line(rows as i32));
        self.swap();
        self.region = (0, self.rows() - 1);
        self.saved_charset = CharsetIndex::G0;
        self.keyboard = Keyboard::default();
    }

    /// Shows the primary screen again.
    pub(crate) fn leave_alternate(&mut self) {
        if !self.alternate {
            return;
        }
        self.other.cursor = self.grid.cursor.clone();
        self.swap();
        self.other = stub();
    }

    fn swap(&mut self) {
        std::mem::swap(&mut self.grid, &mut self.other);
        std::mem::swap(&mut self.region, &mut self.other_region);
        std::mem::swap(&mut self.saved_charset, &mut self.other_saved_charset);
        std::mem::swap(&mut self.keyboard, &mut self.other_keyboard);
        self.alternate = !self.alternate;
    }

    pub(crate) fn mark(&mut self, kind: MarkKind) {
        if self.marks.len() >= EVENTS_MAX {
            self.marks.remove(0);
        }
        self.marks.push(Mark { at: self.at, kind });
    }

    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.replies.len() >= EVENTS_MAX {
            self.replies.remove(0);
        }
        self.replies.push(Reply { at: self.at, bytes: bytes.to_vec() });
    }

    pub(crate) fn row(&self, row: usize) -> &alacritty_terminal::grid::Row<Cell> {
        &self.grid[Line(row as i32)]
    }
}

fn stub() -> Grid<Cell> {
    Grid::new(1, 2, 0)
}

/// Column and row of a grid's cursor, and whether the next character wraps first.
pub(crate) fn place(grid: &Grid<Cell>) -> (usize, usize, bool) {
    let cursor = &grid.cursor;
    (cursor.point.column.0, cursor.point.line.0.max(0) as usize, cursor.input_needs_wrap)
}

pub(crate) fn point(column: usize, row: usize) -> Point {
    Point::new(Line(row as i32), Column(column))
}

/// A stop in every eighth column.
pub(crate) fn default_tabs(cols: usize) -> Vec<bool> {
    (0..cols).map(|column| column % 8 == 0).collect()
}

/// True when the row's text goes on in the row below it.
#[inline]
pub(crate) fn is_wrapped(row: &alacritty_terminal::grid::Row<Cell>) -> bool {
    row.last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}
