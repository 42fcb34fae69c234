//! The escape stream that brings a terminal into a screen's state.

use crate::history::{content_end, encode_cells, push_char, rows_of};
use crate::screen::Screen;
use crate::vt::{BACKGROUND, CURSOR, FOREGROUND, Keyboard, Modes, Style, Vt, default_tabs, is_wrapped, place};
use alacritty_terminal::grid::{Cursor, Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{CharsetIndex, Color, NamedColor, StandardCharset};
use std::io::Write;

const PLAIN: Color = Color::Named(NamedColor::Background);

impl Screen {
    /// The escape stream that brings a terminal of this size, cleared, with default modes and the cursor at home, into this
    /// state. With `history` (drained lines, oldest first) those lines and the undrained ones come first, as real lines, so
    /// that they land in its scrollback. Bytes fed afterwards may follow the stream directly.
    #[must_use]
    pub fn repaint(&self, history: Option<&[u8]>) -> Vec<u8> {
        self.repaint_behind(history, usize::MAX)
    }

    /// The same for a terminal that has all but the newest of the undrained lines: only so many of those come.
    #[must_use]
    pub fn repaint_behind(&self, history: Option<&[u8]>, undrained: usize) -> Vec<u8> {
        let vt = &self.vt;
        let mut paint = Painter { out: Vec::with_capacity(16 * 1024), style: Style::default(), cols: vt.cols() };
        let mut open = false;
        if let Some(drained) = history {
            paint.lines(drained);
            paint.lines(vt.history.newest_open(undrained));
            open = vt.history.open.is_some();
        }
        paint.grid(vt.primary(), open);
        if vt.alternate {
            paint.keyboard(&vt.other_keyboard);
            paint.region(vt, vt.other_region);
            let other = Spot { cursor: &vt.other.saved_cursor, charset: vt.other_saved_charset, origin: 0 };
            paint.spot(&other);
            // Entering saves the cursor, which puts the primary screen's saved one in place.
            paint.out.extend_from_slice(b"\x1b[?1049h");
            paint.plain();
            paint.out.extend_from_slice(b"\x1b[r\x1b[H\x1b[2J");
            paint.grid(&vt.grid, false);
        }
        paint.state(vt);
        paint.out.extend_from_slice(&self.unfinished());
        paint.out
    }

    /// What makes a terminal expect the rest of a sequence that was cut in the middle.
    fn unfinished(&self) -> Vec<u8> {
        use crate::parse::State;
        match self.skipping {
            None => self.pending.clone(),
            Some(State::Escape) => b"\x1b".to_vec(),
            Some(State::Intermediate) => b"\x1b ".to_vec(),
            Some(State::Csi) => b"\x1b[".to_vec(),
            // An unknown OSC number, so that what follows is ignored.
            Some(State::Osc) => b"\x1b]99999;".to_vec(),
            Some(State::Text) => b"\x1b^".to_vec(),
        }
    }
}

/// A cursor with what belongs to it.
struct Spot<'a> {
    cursor: &'a Cursor<Cell>,
    charset: CharsetIndex,
    /// First row that positions count from.
    origin: usize,
}

struct Painter {
    out: Vec<u8>,
    style: Style,
    cols: usize,
}

impl Painter {
    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.out.write_fmt(arguments).expect("a vector takes everything");
    }

    fn plain(&mut self) {
        self.out.extend_from_slice(b"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[m\x1b]8;;\x1b\\");
        self.style = Style::default();
    }

    /// Encoded history lines; those that wrap with colours are laid out here, because a terminal fills the row it scrolls in
    /// with the background of the moment.
    fn lines(&mut self, encoded: &[u8]) {
        for line in encoded.split_inclusive(|b| *b == b'\n') {
            let (text, ended) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
            if text.len() > self.cols && memchr::memchr(crate::parse::ESC, text).is_some() {
                let rows = rows_of(text, self.cols);
                self.rows(rows.iter(), false);
                self.style.clear(&mut self.out);
            } else {
                self.out.extend_from_slice(text);
            }
            if ended {
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn grid(&mut self, grid: &Grid<Cell>, continued: bool) {
        self.rows((0..grid.screen_lines()).map(|row| &grid[Line(row as i32)]), continued);
        self.style.clear(&mut self.out);
    }

    /// Rows below each other; `continued` when the first one goes on where the cursor is.
    fn rows<'a>(&mut self, rows: impl Iterator<Item = &'a Row<Cell>>, mut continued: bool) {
        let mut rows = rows.peekable();
        // The background of the character that wrapped into the row, with which the terminal filled it.
        let mut filled = PLAIN;
        while let Some(row) = rows.next() {
            let next = rows.peek().copied();
            let wrapped = next.is_some() && is_wrapped(row);
            let mut end = content_end(row, wrapped, next);
            if continued {
                end = end.max(1);
            }
            encode_cells(&row[Column(0)..Column(end)], &mut self.style, &mut self.out);
            if continued && (row[Column(0)].bg != PLAIN || filled != PLAIN) && end < self.cols {
                self.style.clear(&mut self.out);
                self.out.extend_from_slice(b"\x1b[K");
            }
            filled = PLAIN;
            if let Some(next) = next.filter(|_| wrapped && end < self.cols) {
                filled = self.placeholder(&row[Column(end)], &next[Column(0)]);
            }
            if !wrapped && next.is_some() {
                if self.style.bg != PLAIN {
                    self.style.clear(&mut self.out);
                }
                self.out.extend_from_slice(b"\r\n");
            }
            continued = wrapped;
        }
    }

    /// The last column, left empty because `wide` did not fit into it. It has the attributes that a character in this place
    /// had then; if those are not its own any more, one is written for them, to be overwritten. Returns its background.
    fn placeholder(&mut self, empty: &Cell, wide: &Cell) -> Color {
        let then = Style::of(empty);
        if then.fits(wide) {
            return PLAIN;
        }
        self.style.change_to(then, &mut self.out);
        push_char(wide.c, &mut self.out);
        self.out.push(b'\r');
        empty.bg
    }

    fn go(&mut self, column: usize, row: usize) {
        self.write(format_args!("\x1b[{};{}H", row + 1, column + 1));
    }

    fn region(&mut self, vt: &Vt, region: (usize, usize)) {
        if region != (0, vt.rows() - 1) {
            self.write(format_args!("\x1b[{};{}r", region.0 + 1, region.1 + 1));
        }
    }

    /// Position, attributes and character sets of a cursor.
    fn spot(&mut self, spot: &Spot<'_>) {
        let (column, row) = (spot.cursor.point.column.0, spot.cursor.point.line.0.max(0) as usize);
        self.go(column, row.saturating_sub(spot.origin));
        self.attributes(spot);
    }

    fn attributes(&mut self, spot: &Spot<'_>) {
        self.style.change_to(Style::of(&spot.cursor.template), &mut self.out);
        let sets = [(CharsetIndex::G0, '('), (CharsetIndex::G1, ')'), (CharsetIndex::G2, '*'), (CharsetIndex::G3, '+')];
        for (index, introducer) in sets {
            if spot.cursor.charsets[index] != StandardCharset::Ascii {
                self.write(format_args!("\x1b{introducer}0"));
            }
        }
        match spot.charset {
            CharsetIndex::G0 => {}
            CharsetIndex::G1 => self.out.push(0x0e),
            CharsetIndex::G2 => self.out.extend_from_slice(b"\x1bn"),
            CharsetIndex::G3 => self.out.extend_from_slice(b"\x1bo"),
        }
    }

    /// Everything but the cells: saved cursor, region, tabs, cursor, titles, colours, modes.
    fn state(&mut self, vt: &Vt) {
        self.tabs(vt);
        if vt.grid.saved_cursor != Cursor::default() || vt.saved_charset as u8 != 0 {
            self.spot(&Spot { cursor: &vt.grid.saved_cursor, charset: vt.saved_charset, origin: 0 });
            self.out.extend_from_slice(b"\x1b7");
            self.plain();
        }
        self.region(vt, vt.region);
        let mut origin = 0;
        if vt.modes.has(Modes::ORIGIN) {
            self.out.extend_from_slice(b"\x1b[?6h");
            origin = vt.region.0;
        }
        self.cursor(vt, origin);
        self.colors(vt);
        self.titles(vt);
        self.keyboard(&vt.keyboard);
        self.modes(vt);
        // Last, because text in between would be mapped.
        self.attributes(&Spot { cursor: &vt.grid.cursor, charset: vt.charset, origin });
    }

    fn tabs(&mut self, vt: &Vt) {
        if vt.tabs != default_tabs(vt.cols()) {
            self.out.extend_from_slice(b"\x1b[3g");
            for column in (0..vt.cols()).filter(|column| vt.tabs[*column]) {
                self.go(column, 0);
                self.out.extend_from_slice(b"\x1bH");
            }
        }
    }

    fn cursor(&mut self, vt: &Vt, origin: usize) {
        let (column, row, pending) = place(&vt.grid);
        let shown_row = row.saturating_sub(origin);
        if !pending {
            return self.go(column, shown_row);
        }
        // Writing the last column again is the only way into the pending wrap.
        let cells = &vt.row(row)[..];
        let spacer = cells[self.cols - 1].flags.contains(Flags::WIDE_CHAR_SPACER);
        let start = self.cols - if spacer { 2 } else { 1 };
        self.go(start, shown_row);
        encode_cells(&cells[start..], &mut self.style, &mut self.out);
    }

    fn colors(&mut self, vt: &Vt) {
        for (index, [r, g, b]) in &vt.palette {
            match *index {
                FOREGROUND => self.write(format_args!("\x1b]10;")),
                BACKGROUND => self.write(format_args!("\x1b]11;")),
                CURSOR => self.write(format_args!("\x1b]12;")),
                index => self.write(format_args!("\x1b]4;{index};")),
            }
            self.write(format_args!("rgb:{r:02x}/{g:02x}/{b:02x}\x1b\\"));
        }
    }

    fn titles(&mut self, vt: &Vt) {
        for title in &vt.title_stack {
            self.write(format_args!("\x1b]2;{title}\x1b\\\x1b[22;2t"));
        }
        if !vt.title.is_empty() || !vt.title_stack.is_empty() {
            self.write(format_args!("\x1b]2;{}\x1b\\", vt.title));
        }
    }

    pub(crate) fn keyboard(&mut self, keyboard: &Keyboard) {
        keyboard_to(&Keyboard::default(), keyboard, &mut self.out);
    }

    fn modes(&mut self, vt: &Vt) {
        if vt.cursor_style != 0 {
            self.write(format_args!("\x1b[{} q", vt.cursor_style));
        }
        // Origin was set before the cursor was placed; a held-back frame must not freeze the picture.
        modes_to(Modes::default(), vt.modes & !Modes::ORIGIN & !Modes::SYNC, &mut self.out);
    }
}

/// The sequences that lead from one set of modes to another.
pub(crate) fn modes_to(from: Modes, to: Modes, out: &mut Vec<u8>) {
    let changed = Modes(from.0 ^ to.0);
    // Resets first: switching one mouse protocol off switches them all off.
    for on in [false, true] {
        let letter = if on { b'h' } else { b'l' };
        for (number, mode) in Modes::PRIVATE {
            if changed.has(mode) && to.has(mode) == on && number != 66 {
                out.extend_from_slice(b"\x1b[?");
                crate::vt::write_number(number.into(), out);
                out.push(letter);
            }
        }
    }
    let switch = |mode: Modes| changed.has(mode).then(|| to.has(mode));
    for (mode, set, reset) in [
        (Modes::APP_KEYPAD, &b"\x1b="[..], &b"\x1b>"[..]),
        (Modes::INSERT, b"\x1b[4h", b"\x1b[4l"),
        (Modes::NEW_LINE, b"\x1b[20h", b"\x1b[20l"),
    ] {
        if let Some(on) = switch(mode) {
            out.extend_from_slice(if on { set } else { reset });
        }
    }
}

/// The sequences that lead from one keyboard state to another.
pub(crate) fn keyboard_to(from: &Keyboard, to: &Keyboard, out: &mut Vec<u8>) {
    if from.modify_other != to.modify_other {
        out.extend_from_slice(format!("\x1b[>4;{}m", to.modify_other).as_bytes());
    }
    if from.stack == to.stack && from.flags == to.flags {
        return;
    }
    let mut values = to.stack.iter().copied().chain([to.flags]);
    if !from.stack.is_empty() {
        out.extend_from_slice(format!("\x1b[<{}u", from.stack.len()).as_bytes());
    }
    let first = values.next().unwrap_or(0);
    if first != from.stack.first().copied().unwrap_or(from.flags) {
        out.extend_from_slice(format!("\x1b[={first};1u").as_bytes());
    }
    for flags in values {
        out.extend_from_slice(format!("\x1b[>{flags}u").as_bytes());
    }
}

/// Switches off everything a session may have switched on in a terminal its output was passed to: cancels an unfinished
/// sequence, ends a held-back frame, leaves the alternate screen, resets modes, colours, character sets, attributes and links,
/// shows the cursor. The title stays. Where the cursor was is kept, but for origin mode, which no well-behaved program leaves on.
const OFF: &str = "\x18\x1b[?2026l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?9l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\
                   \x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[?1l\x1b>\x1b[<16u\x1b[=0;1u\x1b[>4;0m\
                   \x1b[?1049l\x1b[<16u\x1b[=0;1u\x1b[4l\x1b[20l\x1b[?7h\x1b[?5l\x1b[?45l\
                   \x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b[?12l\
                   \x1b(B\x1b)B\x0f\x1b]8;;\x1b\\\x1b[m\x1b[?25h\x1b[0 q\x1b7\x1b[r\x1b8";

/// What a client prints before it paints anew: everything off, the screen cleared, the cursor at home. Nothing scrolls.
#[must_use]
pub fn start_over() -> Vec<u8> {
    [OFF, "\x1b[?6l", CLEAR].concat().into_bytes()
}

/// Clears a terminal's screen, and puts the cursor at home. Not from the first cell on in one go: tmux (3.3 and later) takes that for a
/// `clear`, and moves what was there into its scrollback.
pub const CLEAR: &str = "\x1b[H\x1b[K\x1b[2H\x1b[J\x1b[H";

/// What a client prints to leave the user's terminal clean: everything off. With `below`, what is on the screen stays
/// above the next prompt, on a new line at the bottom; without, the cursor stays where the session left it.
#[must_use]
pub fn leave(below: bool) -> Vec<u8> {
    [OFF, if below { "\x1b[?6l\x1b[9999;1H\r\n" } else { "" }].concat().into_bytes()
}
