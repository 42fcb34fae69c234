//! The pen: what SGR sequences set, and reading them.

use super::Vt;
use super::attributes::{BACKGROUND, BLINK, FOREGROUND, Style};
use crate::parse::Params;
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, Rgb};

/// The attributes that SGR sets, small enough to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen {
    fg: Color,
    bg: Color,
    flags: Flags,
    underline: Option<Color>,
    /// Something was set that we do not know, but another terminal may.
    pub(crate) strange: bool,
}

impl Default for Pen {
    fn default() -> Pen {
        Pen { fg: FOREGROUND, bg: BACKGROUND, flags: Flags::empty(), underline: None, strange: false }
    }
}

impl Pen {
    #[inline]
    pub(crate) fn of(cell: &Cell) -> Pen {
        Pen { fg: cell.fg, bg: cell.bg, flags: cell.flags, underline: cell.underline_color(), strange: false }
    }

    /// Gives a cell these attributes; its link stays.
    #[inline]
    pub(crate) fn paint(&self, cell: &mut Cell) {
        (cell.fg, cell.bg, cell.flags) = (self.fg, self.bg, self.flags);
        // Cells share what is set here: not to be touched without need.
        if self.underline != cell.underline_color() {
            cell.set_underline_color(self.underline);
        }
    }

    pub(crate) fn style(&self, link: Option<Hyperlink>) -> Style {
        Style { fg: self.fg, bg: self.bg, flags: self.flags, underline: self.underline, link }
    }

    /// True when all that we know of is default. A pen has no named colours but the default ones.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.has_background()
            && matches!(self.fg, Color::Named(_))
            && self.flags.is_empty()
            && self.underline.is_none()
    }

    #[inline]
    pub(crate) fn has_background(&self) -> bool {
        !matches!(self.bg, Color::Named(_))
    }

    /// Applies an SGR sequence.
    #[inline]
    pub(crate) fn apply(&mut self, params: &Params) {
        let values = params.all();
        if values.is_empty() {
            *self = Pen::default();
        }
        let mut at = 0;
        while let Some(value) = values.get(at) {
            at += match value {
                38 | 48 | 58 => self.set_color(params, at),
                4 => {
                    let group = params.group(at);
                    self.set_underline(group.get(1).copied().unwrap_or(1));
                    group.len()
                }
                _ => {
                    self.set(*value);
                    params.group(at).len()
                }
            };
        }
    }

    #[inline]
    fn set(&mut self, value: u16) {
        match value {
            0 => *self = Pen::default(),
            1 => self.flags.insert(Flags::BOLD),
            2 => self.flags.insert(Flags::DIM),
            3 => self.flags.insert(Flags::ITALIC),
            5 | 6 => self.flags.insert(BLINK),
            7 => self.flags.insert(Flags::INVERSE),
            8 => self.flags.insert(Flags::HIDDEN),
            9 => self.flags.insert(Flags::STRIKEOUT),
            21 => self.set_underline(2),
            22 => self.flags.remove(Flags::BOLD | Flags::DIM),
            23 => self.flags.remove(Flags::ITALIC),
            24 => self.flags.remove(Flags::ALL_UNDERLINES),
            25 => self.flags.remove(BLINK),
            27 => self.flags.remove(Flags::INVERSE),
            28 => self.flags.remove(Flags::HIDDEN),
            29 => self.flags.remove(Flags::STRIKEOUT),
            n @ 30..=37 => self.fg = Color::Indexed((n - 30) as u8),
            n @ 90..=97 => self.fg = Color::Indexed((n - 90 + 8) as u8),
            n @ 40..=47 => self.bg = Color::Indexed((n - 40) as u8),
            n @ 100..=107 => self.bg = Color::Indexed((n - 100 + 8) as u8),
            39 => self.fg = FOREGROUND,
            49 => self.bg = BACKGROUND,
            59 => self.underline = None,
            _ => self.strange = true,
        }
    }

    fn set_underline(&mut self, kind: u16) {
        self.flags.remove(Flags::ALL_UNDERLINES);
        self.flags.insert(match kind {
            0 => Flags::empty(),
            2 => Flags::DOUBLE_UNDERLINE,
            3 => Flags::UNDERCURL,
            4 => Flags::DOTTED_UNDERLINE,
            5 => Flags::DASHED_UNDERLINE,
            _ => Flags::UNDERLINE,
        });
    }

    /// Sets the colour of 38, 48 or 58 at `at`, and returns how many values it took.
    #[inline]
    fn set_color(&mut self, params: &Params, at: usize) -> usize {
        let (color, taken) = color(params, at);
        match (params.all()[at], color) {
            (_, None) => self.strange = true,
            (38, Some(color)) => self.fg = color,
            (48, Some(color)) => self.bg = color,
            (_, Some(_)) => self.underline = color,
        }
        taken
    }
}

impl Vt {
    /// The SGR part of the pen.
    pub(crate) fn sgr(&mut self, params: &Params) {
        apply_sgr(&mut self.grid.cursor.template, params);
    }
}

/// Applies an SGR sequence to a cell that serves as a pen.
#[inline]
pub(crate) fn apply_sgr(cell: &mut Cell, params: &Params) {
    let mut pen = Pen::of(cell);
    pen.apply(params);
    pen.paint(cell);
}

/// The colour of 38, 48 or 58 at `at`, in either notation, and how many values it took.
#[inline]
fn color(params: &Params, at: usize) -> (Option<Color>, usize) {
    let values = params.all();
    let group = params.group(at);
    let byte = |value: u16| value.min(255) as u8;
    let rgb = |r: u16, g: u16, b: u16| Some(Color::Spec(Rgb { r: byte(r), g: byte(g), b: byte(b) }));
    if group.len() > 1 {
        let color = match group {
            [_, 5, index, ..] => Some(Color::Indexed(byte(*index))),
            [_, 2, r, g, b] => rgb(*r, *g, *b),
            [_, 2, _, r, g, b, ..] => rgb(*r, *g, *b),
            _ => None,
        };
        return (color, group.len());
    }
    match values.get(at + 1..) {
        Some([5, index, ..]) => (Some(Color::Indexed(byte(*index))), 3),
        Some([2, r, g, b, ..]) => (rgb(*r, *g, *b), 5),
        Some([5, ..]) => (None, 2),
        Some([2, rest @ ..]) => (None, 2 + rest.len()),
        _ => (None, 1),
    }
}
