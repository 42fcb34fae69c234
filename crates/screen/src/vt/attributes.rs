//! Cell attributes, and SGR to write them.

use super::TEXT_BYTES_MAX;
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

/// Alacritty's cells have no blink; this bit of theirs is free.
pub(crate) const BLINK: Flags = Flags::from_bits_retain(1 << 15);

/// The flags that are attributes; the others say how a cell stands in its row.
pub(crate) const STYLE: Flags = Flags::INVERSE
    .union(Flags::BOLD)
    .union(Flags::ITALIC)
    .union(Flags::DIM)
    .union(Flags::HIDDEN)
    .union(Flags::STRIKEOUT)
    .union(Flags::ALL_UNDERLINES)
    .union(BLINK);

pub(super) const FOREGROUND: Color = Color::Named(NamedColor::Foreground);
pub(super) const BACKGROUND: Color = Color::Named(NamedColor::Background);

/// The attributes a terminal was last set to, or is to be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) fg: Color,
    pub(crate) bg: Color,
    pub(crate) flags: Flags,
    pub(crate) underline: Option<Color>,
    pub(crate) link: Option<Hyperlink>,
}

impl Default for Style {
    fn default() -> Style {
        Style { fg: FOREGROUND, bg: BACKGROUND, flags: Flags::empty(), underline: None, link: None }
    }
}

impl Style {
    pub(crate) fn of(cell: &Cell) -> Style {
        Style {
            fg: cell.fg,
            bg: cell.bg,
            flags: cell.flags & STYLE,
            underline: cell.underline_color(),
            link: cell.hyperlink(),
        }
    }

    /// True when the cell has just these attributes.
    #[inline]
    pub(crate) fn fits(&self, cell: &Cell) -> bool {
        self.fg == cell.fg
            && self.bg == cell.bg
            && self.flags == cell.flags & STYLE
            && match &cell.extra {
                None => self.underline.is_none() && self.link.is_none(),
                Some(_) => self.underline == cell.underline_color() && self.link == cell.hyperlink(),
            }
    }

    /// True without colours, flags and link.
    #[inline]
    pub(crate) fn is_default(&self) -> bool {
        self.is_sgr_default() && self.link.is_none()
    }

    #[inline]
    fn is_sgr_default(&self) -> bool {
        self.fg == FOREGROUND && self.bg == BACKGROUND && self.flags.is_empty() && self.underline.is_none()
    }

    fn same_sgr(&self, other: &Style) -> bool {
        self.fg == other.fg && self.bg == other.bg && self.flags == other.flags && self.underline == other.underline
    }

    /// Makes a terminal that is at `self` be at `next`.
    pub(crate) fn change_to(&mut self, next: Style, out: &mut Vec<u8>) {
        if !self.same_sgr(&next) {
            write_sgr(&next, out);
        }
        if self.link != next.link {
            write_link(next.link.as_ref(), out);
        }
        *self = next;
    }

    /// Back to the default attributes.
    #[inline]
    pub(crate) fn clear(&mut self, out: &mut Vec<u8>) {
        if !self.is_default() {
            self.change_to(Style::default(), out);
        }
    }
}

/// Links without an id get the empty one: equal addresses are then one link.
pub(crate) fn link(id: &str, uri: &str) -> Hyperlink {
    Hyperlink::new(Some(id), uri.to_owned())
}

/// What stands behind `8;`: a link, or the end of one. Nothing if it is too long or not printable.
pub(crate) fn parse_link(text: &[u8]) -> Option<Option<Hyperlink>> {
    let at = memchr::memchr(b';', text)?;
    let (params, uri) = (&text[..at], &text[at + 1..]);
    if uri.is_empty() {
        return Some(None);
    }
    let printable = |text: &[u8]| text.iter().all(|b| (0x20..0x7f).contains(b));
    let id = params.split(|b| *b == b':').find_map(|p| p.strip_prefix(b"id=")).unwrap_or(b"");
    let fits = uri.len() <= TEXT_BYTES_MAX && id.len() <= 256 && printable(uri) && printable(id);
    fits.then(|| Some(link(&String::from_utf8_lossy(id), &String::from_utf8_lossy(uri))))
}

pub(crate) fn write_link(link: Option<&Hyperlink>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b]8;");
    if let Some(link) = link {
        if !link.id().is_empty() {
            out.extend_from_slice(b"id=");
            out.extend_from_slice(link.id().as_bytes());
        }
        out.push(b';');
        out.extend_from_slice(link.uri().as_bytes());
    } else {
        out.push(b';');
    }
    out.extend_from_slice(b"\x1b\\");
}

/// Writes a number without the formatting machinery, which is slow where every coloured word needs a few.
pub(crate) fn write_number(mut number: u32, out: &mut Vec<u8>) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The SGR sequence that sets exactly these attributes from any state.
pub(crate) fn write_sgr(style: &Style, out: &mut Vec<u8>) {
    if style.is_sgr_default() {
        out.extend_from_slice(b"\x1b[m");
        return;
    }
    out.extend_from_slice(b"\x1b[0");
    const FLAGS: [(Flags, &[u8]); 12] = [
        (Flags::BOLD, b";1"),
        (Flags::DIM, b";2"),
        (Flags::ITALIC, b";3"),
        (Flags::UNDERLINE, b";4"),
        (Flags::DOUBLE_UNDERLINE, b";4:2"),
        (Flags::UNDERCURL, b";4:3"),
        (Flags::DOTTED_UNDERLINE, b";4:4"),
        (Flags::DASHED_UNDERLINE, b";4:5"),
        (BLINK, b";5"),
        (Flags::INVERSE, b";7"),
        (Flags::HIDDEN, b";8"),
        (Flags::STRIKEOUT, b";9"),
    ];
    if !style.flags.is_empty() {
        for (flag, code) in FLAGS {
            if style.flags.contains(flag) {
                out.extend_from_slice(code);
            }
        }
    }
    write_color(style.fg, 30, out);
    write_color(style.bg, 40, out);
    match style.underline {
        Some(Color::Indexed(index)) => {
            out.extend_from_slice(b";58:5:");
            write_number(index.into(), out);
        }
        Some(Color::Spec(rgb)) => {
            out.extend_from_slice(b";58:2:");
            for part in [rgb.r, rgb.g, rgb.b] {
                out.push(b':');
                write_number(part.into(), out);
            }
        }
        Some(Color::Named(_)) | None => {}
    }
    out.push(b'm');
}

fn write_color(color: Color, base: u32, out: &mut Vec<u8>) {
    match color {
        Color::Named(_) => {}
        Color::Indexed(index) => {
            out.push(b';');
            match u32::from(index) {
                n @ 0..8 => write_number(base + n, out),
                n @ 8..16 => write_number(base + 60 + n - 8, out),
                n => {
                    write_number(base + 8, out);
                    out.extend_from_slice(b";5;");
                    write_number(n, out);
                }
            }
        }
        Color::Spec(rgb) => {
            out.push(b';');
            write_number(base + 8, out);
            out.extend_from_slice(b";2");
            for part in [rgb.r, rgb.g, rgb.b] {
                out.push(b';');
                write_number(part.into(), out);
            }
        }
    }
}
