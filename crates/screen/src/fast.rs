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
use crate::parse::{Decoded, ESC, Params, ascii_end, decode, numbers_end};
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
///
/// Lines are skimmed: what a sequence sets is only looked at where something depends on it.
struct Run {
    cols: usize,
    pen: Pen,
    /// Text has this link throughout: a sequence that changed it would end the run.
    link: Option<Hyperlink>,
    /// The pen has default attributes.
    plain: bool,
    /// Where the line's sequences start.
    sequences: Vec<usize>,
}

/// A line being laid out.
struct Layout<'a> {
    /// It and what follows it.
    bytes: &'a [u8],
    /// What comes before this place stays; behind it are only blanks, which may be trailing ones, and sequences.
    solid: usize,
    /// The pen is the one of this place, and `kept` is right for what comes before it.
    settled: usize,
    /// How many sequences come before that place.
    applied: usize,
    /// What comes before is in the output.
    copied: usize,
    /// Length that the output is to have.
    kept: usize,
    /// No attributes are set there.
    clean: bool,
}

impl Run {
    fn new(cols: usize, pen: &Cell) -> Run {
        let mut run = Run { cols, pen: Pen::of(pen), link: pen.hyperlink(), plain: true, sequences: Vec::new() };
        run.note_pen();
        run
    }

    fn note_pen(&mut self) {
        self.plain = self.pen.is_plain() && self.link.is_none();
    }

    fn is_clean(&self) -> bool {
        self.plain && !self.pen.strange
    }

    /// Appends the first line of `bytes` and says how long it is, if that is possible.
    #[inline]
    fn line(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let bytes = &bytes[..bytes.len().min(FAST_LINE_BYTES_MAX + 2)];
        let ascii = ascii_end(bytes, 0);
        if self.plain && bytes[ascii..].starts_with(b"\r\n") {
            let floor = if ascii > self.cols { (ascii - 1) / self.cols * self.cols + 1 } else { 0 };
            out.extend_from_slice(&bytes[..trimmed(bytes, floor, ascii)]);
            out.push(b'\n');
            return Some(ascii + 2);
        }
        if bytes.first() == Some(&b'\n') {
            // A bare line feed keeps the column, which only an empty line does not notice.
            out.push(b'\n');
            return Some(1);
        }
        self.mixed_line(bytes, out)
    }

    fn mixed_line(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        self.sequences.clear();
        let mut line = Layout::new(bytes, out.len());
        if !self.plain {
            Style::default().change_to(self.pen.style(self.link.clone()), out);
        }
        let cols = self.cols;
        // Marks: how many may still be hung on the character before the cursor.
        let (mut at, mut column, mut marks) = (0, 0, 0);
        loop {
            let byte = *bytes.get(at)?;
            if (0x20..0x7f).contains(&byte) {
                let start = at;
                at = ascii_end(bytes, at);
                column += at - start;
                marks = COMBINING_MAX;
                if column > cols {
                    column -= (column - 1) / cols * cols;
                    self.wrapped(at + 1 - column, &mut line, out)?;
                }
                let end = trimmed(bytes, start, at);
                if end > start {
                    line.solid = line.solid.max(end);
                }
            } else if byte == ESC {
                self.sequences.push(at);
                at = sgr_end(bytes, at)?;
            } else if byte >= 0x80 {
                let Decoded::Char(c @ '\u{a0}'.., length) = decode(&bytes[at..]) else { return None };
                at += length;
                let columns = width(c);
                column += columns;
                // A mark takes the looks of what it hangs on, whatever the pen became since.
                marks = if columns == 0 { marks.checked_sub(1)? } else { COMBINING_MAX };
                if column > cols {
                    column = columns;
                    self.wrapped(at, &mut line, out)?;
                }
                line.solid = at;
            } else if byte == b'\t' {
                column = self.tab(at, column, &mut line, out)?;
                at += 1;
                marks = 0;
            } else if bytes[at..].starts_with(b"\r\n") {
                self.end(at, &mut line, out)?;
                return Some(at + 2);
            } else {
                return None;
            }
        }
    }

    /// The text wrapped into a row whose first cell ends at `first`, and which must wrap again.
    #[cold]
    #[inline(never)]
    fn wrapped(&mut self, first: usize, line: &mut Layout<'_>, out: &[u8]) -> Option<()> {
        line.solid = first;
        self.settle(first, line, out);
        // A row that scrolls in takes the background of the moment.
        (!self.pen.has_background()).then_some(())
    }

    /// Brings the pen up to `to`, and keeps blanks on the way that can be seen.
    fn settle(&mut self, to: usize, line: &mut Layout<'_>, out: &[u8]) {
        if line.solid > line.settled {
            let mut end = self.sequences.len();
            while end > line.applied && self.sequences[end - 1] >= line.solid {
                end -= 1;
            }
            // Nothing before a reset matters.
            let reset = (line.applied..end).rev().find(|at| is_reset(&line.bytes[self.sequences[*at]..]));
            if reset.is_some() {
                (self.pen, self.plain) = (Pen::default(), self.link.is_none());
            }
            for at in reset.map_or(line.applied, |reset| reset + 1)..end {
                self.apply(&line.bytes[self.sequences[at]..]);
            }
            (line.settled, line.applied) = (line.solid, end);
            line.keep(self.is_clean(), out);
        }
        while line.settled < to {
            if line.bytes[line.settled] == ESC {
                line.settled += self.apply(&line.bytes[line.settled..]);
                line.applied += 1;
            } else {
                line.settled += 1;
                if !self.plain {
                    line.keep(false, out);
                }
            }
        }
    }

    /// Applies the SGR sequence that `bytes` start with and returns its length.
    fn apply(&mut self, bytes: &[u8]) -> usize {
        let (params, length) = Params::read(&bytes[2..]);
        self.pen.apply(&params);
        self.note_pen();
        length + 3
    }

    /// A tab skips cells, which stay blank. Returns the column it leads to.
    fn tab(&mut self, at: usize, column: usize, line: &mut Layout<'_>, out: &mut Vec<u8>) -> Option<usize> {
        self.settle(at, line, out);
        let next = (column / 8 + 1) * 8;
        // In the last column a tab stays where it is; what follows would overwrite.
        if !self.is_clean() || next >= self.cols - 1 {
            return None;
        }
        out.extend_from_slice(&line.bytes[line.copied..at]);
        out.extend_from_slice(&b"        "[..next - column]);
        (line.settled, line.copied) = (at + 1, at + 1);
        Some(next)
    }

    /// Ends the line, whose text ends at `at`.
    fn end(&mut self, at: usize, line: &mut Layout<'_>, out: &mut Vec<u8>) -> Option<()> {
        self.settle(at, line, out);
        // The row that scrolls in must be blank.
        if self.pen.has_background() {
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
        Some(())
    }
}

impl Layout<'_> {
    fn new(bytes: &[u8], kept: usize) -> Layout<'_> {
        Layout { bytes, solid: 0, settled: 0, applied: 0, copied: 0, kept, clean: true }
    }

    /// What comes before the settled place is not to be cut off.
    fn keep(&mut self, clean: bool, out: &[u8]) {
        self.kept = out.len() + (self.settled - self.copied);
        self.clean = clean;
    }
}

/// Where the sequence at `at` ends, if it is SGR.
#[inline]
fn sgr_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) != Some(&b'[') {
        return None;
    }
    let end = numbers_end(bytes, at + 2);
    (bytes.get(end) == Some(&b'm')).then_some(end + 1)
}

fn is_reset(sequence: &[u8]) -> bool {
    sequence.starts_with(b"\x1b[m") || sequence.starts_with(b"\x1b[0m")
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
        for line in [
            "a line\r\n",
            "\n",
            "\x1b[31mred\x1b[m\r\n",
            "漢字 é\r\n",
            "a\tb\r\n",
            "\x1b[44m x \x1b[49m\r\n",
            "e\u{301}\r\n",
        ] {
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
