//! The bytes of a keyframe: numbers, texts, colours, rows. Reading never trusts a length.

use crate::keyframe::KeyframeError;
use crate::vt::{COMBINING_MAX, Style, TEXT_BYTES_MAX, link};
use alacritty_terminal::grid::Row;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

const FG: u8 = 1;
const BG: u8 = 1 << 1;
const FLAGS: u8 = 1 << 2;
const UNDERLINE: u8 = 1 << 3;
const LINK: u8 = 1 << 4;
/// One cell with combining marks follows.
const MARKS: u8 = 1 << 5;

/// Attributes with all flags, those of the cell's place included.
#[derive(Clone, PartialEq)]
struct Look {
    style: Style,
    flags: Flags,
}

impl Look {
    fn start() -> Look {
        Look { style: Style::default(), flags: Flags::empty() }
    }

    fn fits(&self, cell: &Cell) -> bool {
        self.flags == cell.flags && self.style.fits(cell)
    }
}

pub(crate) struct Writer {
    pub(crate) out: Vec<u8>,
    look: Look,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer { out: Vec::with_capacity(8192), look: Look::start() }
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn color(&mut self, color: Color) {
        match color {
            Color::Named(NamedColor::Background) => self.byte(1),
            Color::Named(_) => self.byte(0),
            Color::Indexed(index) => self.out.extend_from_slice(&[2, index]),
            Color::Spec(rgb) => self.out.extend_from_slice(&[3, rgb.r, rgb.g, rgb.b]),
        }
    }

    fn link(&mut self, link: Option<&Hyperlink>) {
        self.bytes(link.map_or("", Hyperlink::id).as_bytes());
        self.bytes(link.map_or("", Hyperlink::uri).as_bytes());
    }

    /// Attributes as they differ from the ones written last.
    fn look(&mut self, next: Look, extra: u8) {
        let (old, new) = (&self.look.style, &next.style);
        let mut changes = extra;
        let changed = [
            (old.fg != new.fg, FG),
            (old.bg != new.bg, BG),
            (self.look.flags != next.flags, FLAGS),
            (old.underline != new.underline, UNDERLINE),
            (old.link != new.link, LINK),
        ];
        for (differs, bit) in changed {
            changes |= if differs { bit } else { 0 };
        }
        self.byte(changes);
        if changes & FG != 0 {
            self.color(next.style.fg);
        }
        if changes & BG != 0 {
            self.color(next.style.bg);
        }
        if changes & FLAGS != 0 {
            self.out.extend_from_slice(&next.flags.bits().to_le_bytes());
        }
        if changes & UNDERLINE != 0 {
            match next.style.underline {
                Some(color) => self.color(color),
                None => self.byte(0),
            }
        }
        if changes & LINK != 0 {
            self.link(next.style.link.as_ref());
        }
        self.look = next;
    }

    /// Attributes on their own.
    pub(crate) fn style(&mut self, style: &Style, flags: Flags) {
        self.look(Look { style: style.clone(), flags }, 0);
    }

    /// A row up to its last cell that is not blank.
    pub(crate) fn row(&mut self, row: &Row<Cell>) {
        let blank = Cell::default();
        let cells = &row[..];
        let end = cells.iter().rposition(|cell| *cell != blank).map_or(0, |at| at + 1);
        self.number(end as u64);
        let mut at = 0;
        while at < end {
            let first = &cells[at];
            let marks = first.zerowidth().filter(|marks| !marks.is_empty());
            let next = if self.look.fits(first) {
                self.look.clone()
            } else {
                Look { style: Style::of(first), flags: first.flags }
            };
            self.look(next, if marks.is_some() { MARKS } else { 0 });
            if let Some(marks) = marks {
                self.char(first.c);
                self.byte(marks.len() as u8);
                marks.iter().for_each(|mark| self.char(*mark));
                at += 1;
                continue;
            }
            let look = &self.look;
            let same = |cell: &&Cell| look.fits(cell) && cell.zerowidth().is_none_or(<[char]>::is_empty);
            let count = cells[at..end].iter().take_while(same).count();
            self.number(count as u64);
            for cell in &cells[at..at + count] {
                self.char(cell.c);
            }
            at += count;
        }
    }

    #[inline]
    pub(crate) fn char(&mut self, c: char) {
        crate::history::push_char(c, &mut self.out);
    }
}

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    look: Look,
}

type Read<T> = Result<T, KeyframeError>;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, look: Look::start() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(KeyframeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Read<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Read<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(KeyframeError::Invalid("a number is too long"))
    }

    /// A number that must not be above `most`.
    pub(crate) fn below(&mut self, most: usize, what: &'static str) -> Read<usize> {
        let number = self.number()?;
        usize::try_from(number).ok().filter(|n| *n <= most).ok_or(KeyframeError::Invalid(what))
    }

    pub(crate) fn bytes(&mut self) -> Read<&'a [u8]> {
        let count = self.below(self.rest.len(), "a length goes beyond the end")?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Read<&'a str> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| KeyframeError::Invalid("a text is not UTF-8"))?;
        if text.len() > 3 * TEXT_BYTES_MAX || text.chars().any(char::is_control) {
            return Err(KeyframeError::Invalid("a text has controls or is too long"));
        }
        Ok(text)
    }

    fn color(&mut self) -> Read<Color> {
        Ok(match self.byte()? {
            0 => Color::Named(NamedColor::Foreground),
            1 => Color::Named(NamedColor::Background),
            2 => Color::Indexed(self.byte()?),
            3 => {
                let rgb = self.take(3)?;
                Color::Spec(Rgb { r: rgb[0], g: rgb[1], b: rgb[2] })
            }
            _ => return Err(KeyframeError::Invalid("a colour is of no known kind")),
        })
    }

    fn look(&mut self) -> Read<u8> {
        let changes = self.byte()?;
        if changes & FG != 0 {
            self.look.style.fg = self.color()?;
        }
        if changes & BG != 0 {
            self.look.style.bg = self.color()?;
        }
        if changes & FLAGS != 0 {
            let bits = self.take(2)?;
            self.look.flags = Flags::from_bits_retain(u16::from_le_bytes([bits[0], bits[1]]));
        }
        if changes & UNDERLINE != 0 {
            let color = self.color()?;
            self.look.style.underline = (!matches!(color, Color::Named(_))).then_some(color);
        }
        if changes & LINK != 0 {
            let (id, uri) = (self.text()?, self.text()?);
            self.look.style.link = (!uri.is_empty()).then(|| link(id, uri));
        }
        self.look.style.flags = self.look.flags & crate::vt::STYLE;
        Ok(changes)
    }

    pub(crate) fn style(&mut self) -> Read<Style> {
        self.look()?;
        Ok(self.look.style.clone())
    }

    /// A pen: a cell whose attributes are the ones that follow.
    pub(crate) fn pen(&mut self) -> Read<Cell> {
        self.look()?;
        let mut pen = self.cell();
        pen.flags &= crate::vt::STYLE;
        Ok(pen)
    }

    fn cell(&self) -> Cell {
        let style = &self.look.style;
        let mut cell = Cell { c: ' ', fg: style.fg, bg: style.bg, flags: self.look.flags, extra: None };
        if style.underline.is_some() {
            cell.set_underline_color(style.underline);
        }
        if style.link.is_some() {
            cell.set_hyperlink(style.link.clone());
        }
        cell
    }

    pub(crate) fn char(&mut self) -> Read<char> {
        let first = *self.rest.first().ok_or(KeyframeError::Truncated)?;
        if first < 0x80 {
            self.rest = &self.rest[1..];
            return Ok(char::from(first)).and_then(check);
        }
        match crate::parse::decode(self.rest) {
            crate::parse::Decoded::Char(c, length) => {
                self.rest = &self.rest[length..];
                check(c)
            }
            _ => Err(KeyframeError::Invalid("a character is not UTF-8")),
        }
    }

    /// A character, or NUL for none.
    pub(crate) fn byte_or_char(&mut self) -> Read<char> {
        if self.rest.first() == Some(&0) {
            self.rest = &self.rest[1..];
            return Ok('\0');
        }
        self.char()
    }

    /// Fills a blank row.
    pub(crate) fn row(&mut self, row: &mut Row<Cell>) -> Read<()> {
        let cols = row.len();
        let end = self.below(cols, "a row is too long")?;
        let mut at = 0;
        while at < end {
            let changes = self.look()?;
            let cell = self.cell();
            if changes & MARKS != 0 {
                let mut cell = Cell { c: self.char()?, ..cell };
                for _ in 0..usize::from(self.byte()?).min(COMBINING_MAX) {
                    cell.push_zerowidth(self.char()?);
                }
                row[Column(at)] = cell;
                at += 1;
                continue;
            }
            let count = self.below(end - at, "a run is too long")?.max(1);
            for place in &mut row[Column(at)..Column(at + count)] {
                *place = Cell { c: self.char()?, ..cell.clone() };
            }
            at += count;
        }
        check_pairs(row)
    }
}

fn check(c: char) -> Read<char> {
    if c.is_control() { Err(KeyframeError::Invalid("a cell holds a control")) } else { Ok(c) }
}

/// Refuses rows in which wide characters and their second halves do not pair up: the editing code relies on it.
fn check_pairs(row: &Row<Cell>) -> Read<()> {
    let cells = &row[..];
    let wide = |at: usize| cells.get(at).is_some_and(|cell| cell.flags.contains(Flags::WIDE_CHAR));
    let spacer = |at: usize| cells.get(at).is_some_and(|cell| cell.flags.contains(Flags::WIDE_CHAR_SPACER));
    let fine = (0..cells.len()).all(|at| wide(at) == spacer(at + 1)) && !spacer(0);
    if fine { Ok(()) } else { Err(KeyframeError::Invalid("half a wide character")) }
}
