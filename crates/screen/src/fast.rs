//! Floods of plain lines: straight into the history, past the grid.
//!
//! When output scrolls by faster than anyone could read, all but the last screenful of it is only ever seen as history. If the
//! terminal is in its simplest state (primary screen, no region, cursor at the start of a blank bottom row) and lines hold
//! nothing but text and SGR, what each becomes in the history can be said without drawing it: the rows on the screen go first,
//! then the lines, and the last screenful is drawn from the top of a cleared screen, which ends in the same picture.
//!
//! A line's bytes go into the history as they are, SGR included, between sequences that make it start and end in default
//! attributes; only tabs become blanks, and blanks at the end go. So the history's bytes depend on how the output was cut into
//! feeds; what they mean does not.
//!
//! A line that is not of this kind ends the run. That fast and slow agree in every cell is a property test.

use crate::history::{LINE_BYTES_MAX, is_blank};
use crate::parse::{Decoded, ESC, Params, ascii_run, decode};
use crate::screen::Screen;
use crate::vt::{COMBINING_MAX, Modes, Pen, Style, is_wrapped, width, write_link};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, StandardCharset};
use memchr::memchr_iter;

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
#[derive(Clone, Copy, Default)]
struct Before {
    /// Where it starts in the input.
    input: usize,
    /// Length of the history before it.
    output: usize,
    pen: Pen,
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
        if Run::new(vt.cols(), &vt.grid.cursor.template).line(bytes, &mut Vec::new()).is_none() {
            return Flood::NotHere;
        }
        let mut run = Run::new(vt.cols(), &vt.grid.cursor.template);
        let before = (vt.history.bytes.len(), vt.history.lines, vt.history.open.clone());
        for row in 0..rows as i32 - 1 {
            vt.history.push_row(&vt.grid[Line(row)], Some(&vt.grid[Line(row + 1)]));
        }
        // A ring of the last screenful of lines, which are drawn in the end.
        let mut last = vec![Before::default(); rows - 1];
        let (mut at, mut count, mut place) = (0, 0, 0);
        loop {
            let here = Before { input: at, output: vt.history.bytes.len(), pen: run.pen };
            let Some(length) = run.line(&bytes[at..], &mut vt.history.bytes) else {
                vt.history.bytes.truncate(here.output);
                break;
            };
            last[place] = here;
            place = if place + 1 == last.len() { 0 } else { place + 1 };
            at += length;
            count += 1;
        }
        if count < rows {
            vt.history.bytes.truncate(before.0);
            (vt.history.lines, vt.history.open) = (before.1, before.2);
            return Flood::NotHere;
        }
        let oldest = last[place];
        vt.history.bytes.truncate(oldest.output);
        vt.history.lines += count - last.len();
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

/// Brings lines into the history's form.
struct Run {
    cols: usize,
    pen: Pen,
    /// Text has this link throughout: a sequence that changed it would end the run.
    link: Option<Hyperlink>,
    /// The pen has default attributes.
    plain: bool,
}

/// A line being laid out.
struct Layout<'a> {
    /// It and what follows it.
    bytes: &'a [u8],
    at: usize,
    column: usize,
    /// How many marks may still be hung on the character before the cursor.
    marks: usize,
    /// What comes before is in the output.
    copied: usize,
    /// Length that the output is to have: up to the last character that is not a trailing blank.
    kept: usize,
    /// No attributes are set there.
    clean: bool,
}

impl Run {
    fn new(cols: usize, pen: &Cell) -> Run {
        let mut run = Run { cols, pen: Pen::of(pen), link: pen.hyperlink(), plain: true };
        run.note_pen();
        run
    }

    #[inline]
    fn note_pen(&mut self) {
        self.plain = self.pen.is_plain() && self.link.is_none();
    }

    #[inline]
    fn is_clean(&self) -> bool {
        self.plain && !self.pen.strange
    }

    /// Appends the first line of `bytes` and says how long it is, if that is possible.
    #[inline]
    fn line(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let bytes = &bytes[..bytes.len().min(FAST_LINE_BYTES_MAX + 2)];
        let ascii = ascii_run(bytes);
        if self.plain && bytes[ascii..].starts_with(b"\r\n") {
            let floor = if ascii > self.cols { (ascii - 1) / self.cols * self.cols + 1 } else { 0 };
            let end = trimmed(bytes, floor, ascii);
            out.extend_from_slice(&bytes[..end]);
        } else if bytes.first() != Some(&b'\n') {
            return self.mixed_line(bytes, ascii, out);
        } else {
            // A bare line feed keeps the column, which only an empty line does not notice.
            out.push(b'\n');
            return Some(1);
        }
        out.push(b'\n');
        Some(ascii + 2)
    }

    /// The same for a line that starts with that much ASCII.
    fn mixed_line(&mut self, bytes: &[u8], ascii: usize, out: &mut Vec<u8>) -> Option<usize> {
        let mut line = Layout { bytes, at: 0, column: 0, marks: 0, copied: 0, kept: out.len(), clean: true };
        if !self.plain {
            Style::default().change_to(self.pen.style(self.link.clone()), out);
        }
        if ascii > 0 {
            self.ascii(ascii, &mut line, out)?;
        }
        while let Some(byte) = bytes.get(line.at) {
            match byte {
                0x20..=0x7e => self.ascii(ascii_run(&bytes[line.at..]), &mut line, out)?,
                &ESC => line.at += self.sgr(&bytes[line.at..])?,
                0x80.. => self.char(&mut line, out)?,
                b'\t' => self.tab(&mut line, out)?,
                b'\r' => return self.end(&line, out),
                _ => return None,
            }
        }
        None
    }

    fn ascii(&mut self, length: usize, line: &mut Layout<'_>, out: &[u8]) -> Option<()> {
        let start = line.at;
        line.at += length;
        line.marks = COMBINING_MAX;
        let mut kept = if self.plain { trimmed(line.bytes, start, line.at) } else { line.at };
        line.column += length;
        if line.column > self.cols {
            // A row that scrolls in takes the background of the moment.
            if self.pen.has_background() {
                return None;
            }
            let full = (line.column - 1) / self.cols * self.cols;
            line.column -= full;
            // The row only exists because of its first cell.
            kept = kept.max(line.at - line.column + 1);
        }
        if kept > start {
            line.keep(kept, self.is_clean(), out);
        }
        Some(())
    }

    #[inline]
    fn sgr(&mut self, rest: &[u8]) -> Option<usize> {
        let body = rest.strip_prefix(b"\x1b[")?;
        // Every other sequence is a reset.
        let reset = if body.first() == Some(&b'm') { 1 } else { 2 * usize::from(body.starts_with(b"0m")) };
        if reset != 0 {
            (self.pen, self.plain) = (Pen::default(), self.link.is_none());
            return Some(2 + reset);
        }
        let (params, length) = Params::read(body);
        if body.get(length) != Some(&b'm') {
            return None;
        }
        self.pen.apply(&params);
        self.note_pen();
        Some(length + 3)
    }

    /// A tab skips cells, which stay blank.
    fn tab(&mut self, line: &mut Layout<'_>, out: &mut Vec<u8>) -> Option<()> {
        if !self.is_clean() || line.column >= self.cols {
            return None;
        }
        let next = (line.column / 8 + 1) * 8;
        // In the last column a tab stays where it is; what follows would overwrite.
        if next >= self.cols - 1 {
            return None;
        }
        out.extend_from_slice(&line.bytes[line.copied..line.at]);
        out.extend_from_slice(&b"        "[..next - line.column]);
        line.at += 1;
        (line.column, line.copied, line.marks) = (next, line.at, 0);
        Some(())
    }

    #[inline]
    fn char(&mut self, line: &mut Layout<'_>, out: &[u8]) -> Option<()> {
        let Decoded::Char(c, length) = decode(&line.bytes[line.at..]) else { return None };
        if c < '\u{a0}' {
            return None;
        }
        let columns = width(c);
        line.at += length;
        if columns == 0 {
            // It takes the looks of what it hangs on, whatever the pen became since.
            line.marks = line.marks.checked_sub(1)?;
        } else {
            line.marks = COMBINING_MAX;
            line.column += columns;
            if line.column > self.cols {
                if self.pen.has_background() {
                    return None;
                }
                line.column = columns;
            }
        }
        line.keep(line.at, self.is_clean(), out);
        Some(())
    }

    /// Ends the line, which is at a carriage return.
    fn end(&mut self, line: &Layout<'_>, out: &mut Vec<u8>) -> Option<usize> {
        // The row that scrolls in must be blank.
        if line.bytes.get(line.at + 1) != Some(&b'\n') || self.pen.has_background() {
            return None;
        }
        match line.kept.checked_sub(out.len()) {
            Some(more) => out.extend_from_slice(&line.bytes[line.copied..line.copied + more]),
            None => out.truncate(line.kept),
        }
        if !line.clean {
            out.extend_from_slice(b"\x1b[m");
            if self.link.is_some() {
                write_link(None, out);
            }
        }
        out.push(b'\n');
        // The next line starts without it.
        self.pen.strange = false;
        Some(line.at + 2)
    }
}

impl Layout<'_> {
    /// What comes before `to` is not to be cut off.
    #[inline]
    fn keep(&mut self, to: usize, clean: bool, out: &[u8]) {
        self.kept = out.len() + (to - self.copied);
        self.clean = clean;
    }
}

/// Where `bytes[from..to]` ends without the blanks at its end.
#[inline]
fn trimmed(bytes: &[u8], from: usize, mut to: usize) -> usize {
    while to > from && bytes[to - 1] == b' ' {
        to -= 1;
    }
    to
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
