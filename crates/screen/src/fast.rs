//! Floods of plain lines: straight into the history, past the grid.
//!
//! When output scrolls by faster than anyone could read, all but the last screenful of it is only ever seen as history. If the
//! terminal is in its simplest state (primary screen, no region, cursor at the start of a blank bottom row) and lines hold
//! nothing but text and SGR, what each becomes in the history can be said without drawing it: the rows on the screen go first,
//! then the lines, and the last screenful is drawn from the top of a cleared screen, which ends in the same picture.
//!
//! A line that is not of this kind ends the run. That fast and slow agree to the byte is a property test.

use crate::history::{LINE_BYTES_MAX, is_blank};
use crate::parse::{Decoded, ESC, Params, ascii_run, decode};
use crate::screen::Screen;
use crate::vt::{COMBINING_MAX, Modes, Style, apply_sgr, is_wrapped, width};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{Color, NamedColor, StandardCharset};
use memchr::{memchr, memchr_iter};

/// A line this long takes the slow way: the history's cut of endless lines is made there.
const FAST_LINE_BYTES_MAX: usize = LINE_BYTES_MAX / 8;
const PLAIN: Color = Color::Named(NamedColor::Background);

/// What came of an attempt.
pub(crate) enum Flood {
    /// This many bytes went straight into the history.
    Took(usize),
    /// No flood begins here.
    NotHere,
    /// Nor further on in these bytes.
    TooShort,
}

/// The state before a line of the run.
#[derive(Clone)]
struct Before {
    /// Where it starts in the input.
    input: usize,
    /// Length of the history before it.
    output: usize,
    pen: Cell,
}

impl Screen {
    /// Takes as many lines from the start of `bytes` as it may. To be called with the cursor just after a line feed.
    pub(crate) fn take_flood(&mut self, bytes: &[u8]) -> Flood {
        if !self.is_simple() {
            return Flood::NotHere;
        }
        let vt = &mut self.vt;
        let rows = vt.rows();
        // Fewer lines are not worth the preparation.
        if memchr_iter(b'\n', bytes).nth(2 * rows).is_none() {
            return Flood::TooShort;
        }
        let mut run = Run::new(vt.cols(), &vt.grid.cursor.template);
        let first = memchr(b'\n', bytes).unwrap_or(0);
        if !run.line(&bytes[..first], &mut Vec::new()) {
            return Flood::NotHere;
        }
        let mut run = Run::new(vt.cols(), &vt.grid.cursor.template);
        let before = (vt.history.bytes.len(), vt.history.lines, vt.history.open.clone());
        for row in 0..rows as i32 - 1 {
            vt.history.push_row(&vt.grid[Line(row)], Some(&vt.grid[Line(row + 1)]));
        }
        let mut last: Vec<Before> = Vec::with_capacity(rows);
        let (mut at, mut count) = (0, 0);
        while let Some(length) = memchr(b'\n', &bytes[at..]) {
            let here = Before { input: at, output: vt.history.bytes.len(), pen: run.pen.clone() };
            if !run.line(&bytes[at..at + length], &mut vt.history.bytes) {
                vt.history.bytes.truncate(here.output);
                break;
            }
            vt.history.bytes.push(b'\n');
            // A ring of the last screenful of lines, which are drawn in the end.
            let place = count % (rows - 1);
            if place < last.len() {
                last[place] = here
            } else {
                last.push(here)
            }
            at += length + 1;
            count += 1;
        }
        if count < rows {
            vt.history.bytes.truncate(before.0);
            (vt.history.lines, vt.history.open) = (before.1, before.2);
            return Flood::NotHere;
        }
        let oldest = last.swap_remove(count % (rows - 1));
        vt.history.bytes.truncate(oldest.output);
        vt.history.lines += count - (rows - 1);
        vt.clear_for_flood(oldest.pen);
        Flood::Took(oldest.input)
    }

    /// True when a line of text does nothing but appear in the bottom row and scroll the screen by its rows.
    fn is_simple(&self) -> bool {
        let vt = &self.vt;
        let rows = vt.rows();
        let (column, row, pending) = vt.place();
        let plain_modes = vt.modes.has(Modes::WRAP)
            && !vt.modes.has(Modes(Modes::INSERT.0 | Modes::ORIGIN.0 | Modes::NEW_LINE.0))
            && vt.grid.cursor.charsets[vt.charset] == StandardCharset::Ascii;
        rows >= 2
            && (column, row, pending) == (0, rows - 1, false)
            && !vt.alternate
            && vt.region == (0, rows - 1)
            && plain_modes
            && vt.grid.cursor.template.bg == PLAIN
            && !is_wrapped(vt.row(rows - 2))
            && vt.row(rows - 1)[..].iter().all(is_blank)
            && vt.tabs.iter().enumerate().all(|(at, stop)| *stop == (at % 8 == 0))
    }
}

/// Encodes lines as the history would encode the rows they become.
struct Run {
    cols: usize,
    pen: Cell,
    /// What the line being written was last told.
    style: Style,
    /// The pen has default attributes.
    plain: bool,
    /// The pen may differ from `style`.
    fresh: bool,
}

/// A line being laid out.
struct Place {
    column: usize,
    /// Blanks before this length of the output stay.
    floor: usize,
    /// How many marks may still be hung on the character before the cursor.
    marks: usize,
}

impl Run {
    fn new(cols: usize, pen: &Cell) -> Run {
        let mut run = Run { cols, pen: pen.clone(), style: Style::default(), plain: true, fresh: true };
        run.note_pen();
        run
    }

    fn note_pen(&mut self) {
        self.plain = Style::default().fits(&self.pen);
        self.fresh = true;
    }

    /// Appends the line, without its end, and says whether that was possible.
    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((b'\r', text)) = line.split_last() else {
            // A bare line feed keeps the column, which only an empty line does not notice.
            return line.is_empty();
        };
        if text.len() > FAST_LINE_BYTES_MAX {
            return false;
        }
        let start = out.len();
        if self.plain && ascii_run(text) == text.len() {
            out.extend_from_slice(text);
            let floor = if text.len() > self.cols { (text.len() - 1) / self.cols * self.cols + 1 } else { 0 };
            trim(out, start + floor);
            return true;
        }
        self.mixed_line(text, out)
    }

    fn mixed_line(&mut self, text: &[u8], out: &mut Vec<u8>) -> bool {
        self.fresh = true;
        let mut place = Place { column: 0, floor: out.len(), marks: 0 };
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let taken = match rest[0] {
                0x20..=0x7e => self.ascii(&rest[..ascii_run(rest)], &mut place, out),
                ESC => self.sgr(rest),
                b'\t' => self.tab(&mut place, out),
                0x80.. => self.char(rest, &mut place, out),
                _ => None,
            };
            let Some(taken) = taken else { return false };
            at += taken;
        }
        // The row that scrolls in at the line's end must be blank.
        if self.pen.bg != PLAIN {
            return false;
        }
        trim(out, place.floor);
        self.style.clear(out);
        true
    }

    /// Tells the output about the pen if it changed.
    #[inline]
    fn ink(&mut self, out: &mut Vec<u8>) {
        if self.fresh {
            self.fresh = false;
            if self.plain {
                self.style.clear(out);
            } else if !self.style.fits(&self.pen) {
                self.style.change_to(Style::of(&self.pen), out);
            }
        }
    }

    #[inline]
    fn ascii(&mut self, run: &[u8], place: &mut Place, out: &mut Vec<u8>) -> Option<usize> {
        self.ink(out);
        place.marks = COMBINING_MAX;
        let room = self.cols - place.column;
        let start = out.len();
        out.extend_from_slice(run);
        if run.len() <= room {
            place.column += run.len();
        } else {
            // A row that scrolls in takes the background of the moment.
            if self.pen.bg != PLAIN {
                return None;
            }
            let beyond = run.len() - room;
            let full = (beyond - 1) / self.cols * self.cols;
            place.column = beyond - full;
            place.floor = place.floor.max(start + room + full + 1);
        }
        if !self.plain {
            place.floor = out.len();
        }
        Some(run.len())
    }

    #[inline]
    fn sgr(&mut self, rest: &[u8]) -> Option<usize> {
        let body = rest.strip_prefix(b"\x1b[")?;
        // Every other sequence is a reset.
        let reset = if body.first() == Some(&b'm') { 1 } else { 2 * usize::from(body.starts_with(b"0m")) };
        if reset != 0 && self.pen.extra.is_none() {
            self.pen = Cell::default();
            (self.plain, self.fresh) = (true, true);
            return Some(2 + reset);
        }
        let length = body.iter().position(|b| !matches!(b, b'0'..=b';'))?;
        if body[length] != b'm' {
            return None;
        }
        apply_sgr(&mut self.pen, &Params::parse(&body[..length]));
        self.note_pen();
        Some(length + 3)
    }

    /// A tab skips cells, which stay blank.
    fn tab(&mut self, place: &mut Place, out: &mut Vec<u8>) -> Option<usize> {
        if !self.plain || place.column >= self.cols {
            return None;
        }
        let next = (place.column / 8 + 1) * 8;
        let next = next.min(self.cols - 1);
        let spaces = next - place.column;
        // At the last column a tab stays where it is; what follows would overwrite.
        if spaces == 0 || next == self.cols - 1 {
            return None;
        }
        self.ascii(&b"        "[..spaces], place, out)?;
        place.marks = 0;
        Some(1)
    }

    fn char(&mut self, rest: &[u8], place: &mut Place, out: &mut Vec<u8>) -> Option<usize> {
        let Decoded::Char(c, length) = decode(rest) else { return None };
        let columns = width(c);
        if c < '\u{a0}' {
            return None;
        }
        if columns == 0 {
            // It takes the looks of what it hangs on, whatever the pen became since.
            place.marks = place.marks.checked_sub(1)?;
            out.extend_from_slice(&rest[..length]);
            return Some(length);
        }
        self.ink(out);
        place.marks = COMBINING_MAX;
        out.extend_from_slice(&rest[..length]);
        place.column += columns;
        if place.column > self.cols {
            if self.pen.bg != PLAIN {
                return None;
            }
            place.column = columns;
            place.floor = out.len();
        }
        if !self.plain {
            place.floor = out.len();
        }
        Some(length)
    }
}

/// Drops blanks at the end, as far as `floor`.
#[inline]
fn trim(out: &mut Vec<u8>, floor: usize) {
    while out.len() > floor && out.last() == Some(&b' ') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Size;

    /// Does a flood begin behind these bytes, in front of plenty of `line`s?
    fn floods(before: &str, line: &str) -> bool {
        let mut screen = Screen::new(Size::clamped(20, 5), 0);
        screen.feed(before.as_bytes());
        matches!(screen.take_flood(line.repeat(100).as_bytes()), Flood::Took(taken) if taken == line.len() * 96)
    }

    #[test]
    fn plain_lines_are_a_flood() {
        let bottom = "\n\n\n\n\n";
        for line in ["a line\r\n", "\n", "\x1b[31mred\x1b[m\r\n", "漢字 é\r\n", "a\tb\r\n", "\x1b[44m x \x1b[49m\r\n", "e\u{301}\r\n"]
        {
            assert!(floods(bottom, line), "{line:?}");
        }
        let long = format!("{}\r\n", "longer than the row ".repeat(9));
        assert!(floods(bottom, &long));
    }

    #[test]
    fn anything_that_draws_otherwise_is_none() {
        let bottom = "\n\n\n\n\n";
        for line in [
            "\x1b[K\r\n",
            "a\x08\r\n",
            "a\rb\r\n",
            "stairs\n",
            "\u{301}e\r\n",
            "\x1b[44mx\r\n",
            "\u{85}\r\n",
            "\x07\r\n",
        ] {
            assert!(!floods(bottom, line), "{line:?}");
        }
        for before in [
            "",
            "\n\n\n\n\nx",
            "\x1b[?1049h\n\n\n\n\n",
            "\x1b[2;4r\n\n\n\n\n",
            "\x1b[4h\n\n\n\n\n",
            "\x1b(0\n\n\n\n\n",
            "\x1b[44m\n\n\n\n\n",
        ] {
            assert!(!floods(before, "a line\r\n"), "{before:?}");
        }
    }
}
