//! A screen as a picture: rows with their colours, drawn with the Spleen font.
//!
//! Rows come from the host with SGR sequences and nothing else; anything else is skipped. A character the font does not have is drawn as a box.

use crate::png;
use holdfast_types::Size;
use spleen_font::{FONT_12X24, PSF2Header};
use std::collections::HashMap;
use unicode_width::UnicodeWidthChar;

/// A cell, in pixels: the font's.
const WIDE: usize = 12;
const HIGH: usize = 24;
/// Around the screen.
const MARGIN: usize = 8;
/// Largest picture: 300 columns are read on no phone, and a picture of more pixels is refused by Telegram.
const COLS_MAX: usize = 300;
const ROWS_MAX: usize = 120;
/// Colours of one picture: a palette's.
const COLOURS_MAX: usize = 256;

type Rgb = [u8; 3];

const INK: Rgb = [0xd8, 0xde, 0xe9];
const PAPER: Rgb = [0x1a, 0x1d, 0x23];
/// The sixteen named colours.
const NAMED: [Rgb; 16] = [
    [0x1a, 0x1d, 0x23],
    [0xe0, 0x5f, 0x65],
    [0x7f, 0xc0, 0x6e],
    [0xd9, 0xb3, 0x5c],
    [0x5c, 0x9d, 0xe6],
    [0xb8, 0x7f, 0xd9],
    [0x4f, 0xb8, 0xb8],
    [0xc8, 0xcc, 0xd4],
    [0x6b, 0x72, 0x80],
    [0xff, 0x7b, 0x82],
    [0x9a, 0xdb, 0x88],
    [0xf2, 0xcd, 0x7a],
    [0x7f, 0xb8, 0xff],
    [0xd3, 0x9b, 0xf5],
    [0x6f, 0xd6, 0xd6],
    [0xff, 0xff, 0xff],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Style {
    ink: Option<Rgb>,
    paper: Option<Rgb>,
    named: Option<u8>,
    bold: bool,
    dim: bool,
    inverse: bool,
    underline: bool,
    hidden: bool,
}

const PLAIN: Style = Style {
    ink: None,
    paper: None,
    named: None,
    bold: false,
    dim: false,
    inverse: false,
    underline: false,
    hidden: false,
};

impl Style {
    fn colours(self) -> (Rgb, Rgb) {
        let bright = self.named.filter(|n| self.bold && *n < 8).map(|n| NAMED[usize::from(n) + 8]);
        let mut ink = bright.or(self.ink).unwrap_or(INK);
        let mut paper = self.paper.unwrap_or(PAPER);
        if self.inverse {
            (ink, paper) = (paper, ink);
        }
        if self.dim {
            ink = std::array::from_fn(|n| ((u16::from(ink[n]) + u16::from(paper[n])) / 2) as u8);
        }
        (if self.hidden { paper } else { ink }, paper)
    }

    /// Takes one SGR sequence.
    fn take(&mut self, parameters: &str) {
        let mut all = parameters.split([';', ':']).map(|text| text.parse::<u16>().unwrap_or(0));
        while let Some(code) = all.next() {
            match code {
                0 => *self = PLAIN,
                1 => self.bold = true,
                2 => self.dim = true,
                4 | 21 => self.underline = true,
                7 => self.inverse = true,
                8 => self.hidden = true,
                22 => (self.bold, self.dim) = (false, false),
                24 => self.underline = false,
                27 => self.inverse = false,
                28 => self.hidden = false,
                30..=37 => (self.ink, self.named) = (Some(indexed(code - 30)), Some((code - 30) as u8)),
                38 => (self.ink, self.named) = (wide(&mut all), None),
                39 => (self.ink, self.named) = (None, None),
                40..=47 => self.paper = Some(indexed(code - 40)),
                48 => self.paper = wide(&mut all),
                49 => self.paper = None,
                58 => drop(wide(&mut all)),
                90..=97 => (self.ink, self.named) = (Some(indexed(code - 82)), None),
                100..=107 => self.paper = Some(indexed(code - 92)),
                _ => {}
            }
        }
    }
}

fn wide(all: &mut impl Iterator<Item = u16>) -> Option<Rgb> {
    match all.next()? {
        5 => Some(indexed(all.next()?)),
        2 => {
            let (red, green, blue) = (all.next()?, all.next()?, all.next()?);
            Some([red.min(255) as u8, green.min(255) as u8, blue.min(255) as u8])
        }
        _ => None,
    }
}

/// A colour of the 256.
fn indexed(n: u16) -> Rgb {
    let level = |n: u16| if n == 0 { 0 } else { (55 + 40 * n) as u8 };
    match n {
        0..=15 => NAMED[usize::from(n)],
        16..=231 => [level((n - 16) / 36), level((n - 16) / 6 % 6), level((n - 16) % 6)],
        _ => [(8 + 10 * (n.min(255) - 232)) as u8; 3],
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    c: char,
    style: Style,
    /// The second half of the character before.
    rest: bool,
}

/// The cells of a row.
fn cells(row: &str, cols: usize) -> Vec<Cell> {
    let mut all = Vec::with_capacity(cols);
    let mut style = PLAIN;
    let mut chars = row.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            if chars.next() != Some('[') {
                continue;
            }
            let mut parameters = String::new();
            for c in chars.by_ref() {
                match c {
                    '@'..='~' => {
                        if c == 'm' {
                            style.take(&parameters);
                        }
                        break;
                    }
                    c if parameters.len() < 64 => parameters.push(c),
                    _ => {}
                }
            }
            continue;
        }
        let width = c.width().unwrap_or(0);
        if width == 0 {
            continue;
        }
        all.push(Cell { c, style, rest: false });
        if width == 2 {
            all.push(Cell { c: ' ', style, rest: true });
        }
        if all.len() >= cols {
            break;
        }
    }
    all.resize(cols, Cell { c: ' ', style: PLAIN, rest: false });
    all
}

/// The font's glyphs by character.
struct Glyphs {
    bytes: &'static [u8],
    at: HashMap<char, usize>,
    size: usize,
}

impl Glyphs {
    fn load() -> Option<Glyphs> {
        let head = PSF2Header::from_bytes(FONT_12X24.get(..32)?).ok()?;
        let (count, size) = (head.num_glyphs as usize, head.bytes_per_glyph as usize);
        let bytes = FONT_12X24.get(head.header_size as usize..)?;
        let (bytes, table) = bytes.split_at_checked(count * size)?;
        let mut at = HashMap::new();
        // One entry for each glyph: its characters, and behind 0xFE sequences of several, ended by 0xFF.
        for (n, entry) in table.split(|byte| *byte == 0xff).enumerate().take(count) {
            let single = entry.split(|byte| *byte == 0xfe).next().unwrap_or_default();
            for c in String::from_utf8_lossy(single).chars() {
                at.entry(c).or_insert(n * size);
            }
        }
        Some(Glyphs { bytes, at, size })
    }

    /// Whether a pixel of a character is ink.
    fn has(&self, glyph: usize, x: usize, y: usize) -> bool {
        let row = y * (self.size / HIGH) + x / 8;
        self.bytes.get(glyph + row).is_some_and(|byte| byte & (0x80 >> (x % 8)) != 0)
    }
}

/// Colours, by number.
struct Palette {
    all: Vec<Rgb>,
    numbers: HashMap<Rgb, u8>,
}

impl Palette {
    fn number(&mut self, colour: Rgb) -> u8 {
        if let Some(number) = self.numbers.get(&colour) {
            return *number;
        }
        let number = if self.all.len() < COLOURS_MAX {
            self.all.push(colour);
            (self.all.len() - 1) as u8
        } else {
            // Full: the nearest there is.
            let far = |other: &Rgb| (0..3).map(|n| u32::from(other[n].abs_diff(colour[n])).pow(2)).sum::<u32>();
            (0..COLOURS_MAX).min_by_key(|n| far(&self.all[*n])).unwrap_or_default() as u8
        };
        self.numbers.insert(colour, number);
        number
    }
}

/// Draws rows as they came from the host, with the cursor.
pub fn draw(size: Size, rows: &[String], cursor: Option<(u16, u16)>) -> Vec<u8> {
    let cols = usize::from(size.cols()).clamp(1, COLS_MAX);
    let lines = usize::from(size.rows()).clamp(1, ROWS_MAX);
    let (width, height) = (cols * WIDE + 2 * MARGIN, lines * HIGH + 2 * MARGIN);
    let mut palette = Palette { all: Vec::new(), numbers: HashMap::new() };
    let paper = palette.number(PAPER);
    let mut pixels = vec![paper; width * height];
    let glyphs = Glyphs::load();
    for (y, row) in rows.iter().take(lines).enumerate() {
        for (x, cell) in cells(row, cols).into_iter().take(cols).enumerate() {
            let mut style = cell.style;
            if cursor == Some((x as u16, y as u16)) {
                style.inverse = !style.inverse;
            }
            let (ink, paper) = style.colours();
            let (ink, paper) = (palette.number(ink), palette.number(paper));
            let glyph = glyphs.as_ref().and_then(|glyphs| glyphs.at.get(&cell.c).copied());
            for dy in 0..HIGH {
                let from = (MARGIN + y * HIGH + dy) * width + MARGIN + x * WIDE;
                for dx in 0..WIDE {
                    let is_ink = match (&glyphs, glyph) {
                        (Some(glyphs), Some(glyph)) => {
                            // Bold is drawn twice, a pixel apart.
                            glyphs.has(glyph, dx, dy) || (style.bold && dx > 0 && glyphs.has(glyph, dx - 1, dy))
                        }
                        _ => cell.c != ' ' && is_box(dx, dy),
                    };
                    let is_ink = is_ink || (style.underline && dy == HIGH - 2);
                    pixels[from + dx] = if is_ink && !cell.rest { ink } else { paper };
                }
            }
        }
    }
    png::encode(width, height, &palette.all, &pixels)
}

/// A character that the font does not have.
fn is_box(x: usize, y: usize) -> bool {
    let (inside_x, inside_y) = ((2..WIDE - 2).contains(&x), (4..HIGH - 4).contains(&y));
    let edge = x == 2 || x == WIDE - 3 || y == 4 || y == HIGH - 5;
    inside_x && inside_y && edge
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_terminals_show() {
        let glyphs = Glyphs::load().unwrap();
        for c in "aZ0~éß│─┌█▒€".chars() {
            assert!(glyphs.at.contains_key(&c), "{c}");
        }
        let ink = |c: char| {
            let glyph = glyphs.at[&c];
            (0..HIGH).flat_map(|y| (0..WIDE).map(move |x| (x, y))).filter(|(x, y)| glyphs.has(glyph, *x, *y)).count()
        };
        assert_eq!((ink(' '), ink('█')), (0, WIDE * HIGH));
        assert!(ink('a') > 10 && ink('a') < 120, "{}", ink('a'));
    }

    #[test]
    fn colours_follow_their_sequences_and_nothing_else_is_obeyed() {
        let row = cells("\x1b[31ma\x1b[0mb\x1b[38;5;196;1mc\x1b[2Jd\x1b]0;x", 6);
        let (a, b, c) = (row[0].style, row[1].style, row[2].style);
        assert_eq!(a.colours().0, NAMED[1]);
        assert_eq!(b, PLAIN);
        assert_eq!((c.colours().0, c.bold), ([255, 0, 0], true));
        assert_eq!(row[3].c, 'd');
        assert_eq!(row.len(), 6, "a row has its columns, whatever it is made of");
        let wide = cells("日a", 4);
        assert_eq!((wide[0].c, wide[1].rest, wide[2].c), ('日', true, 'a'));
    }

    #[test]
    fn a_picture_has_the_screens_pixels() {
        let size: Size = "10x3".parse().unwrap();
        let png = draw(size, &["\x1b[7mhello\x1b[0m".into()], Some((0, 1)));
        assert_eq!(&png[1..4], b"PNG");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((number(16), number(20)), (10 * WIDE + 2 * MARGIN, 3 * HIGH + 2 * MARGIN));
    }

    #[test]
    fn more_colours_than_a_palette_has_are_drawn_by_the_nearest() {
        let many: String = (0..300).map(|n| format!("\x1b[48;2;{};{};7mx", n % 256, n / 2)).collect();
        let png = draw("300x1".parse().unwrap(), &[many], None);
        let at = png.windows(4).position(|four| four == b"PLTE").unwrap();
        assert_eq!(u32::from_be_bytes(png[at - 4..at].try_into().unwrap()), 768);
    }
}
