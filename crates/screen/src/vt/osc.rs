//! What OSC strings say: titles, colours, links, directories, marks.

use super::{TEXT_BYTES_MAX, TITLE_STACK_MAX, Vt};
use crate::marks::MarkKind;
use crate::parse::Csi;
use crate::vt::attributes;

/// Palette numbers of the three colours that have no index.
pub(crate) const FOREGROUND: u16 = 256;
pub(crate) const BACKGROUND: u16 = 257;
pub(crate) const CURSOR: u16 = 258;

impl Vt {
    /// Executes the text of a complete OSC sequence; `end` is how it was terminated, for the answer's sake.
    pub(crate) fn osc(&mut self, text: &[u8], end: &[u8]) {
        let (number, rest) = match memchr::memchr(b';', text) {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, &b""[..]),
        };
        let Some(number) = std::str::from_utf8(number).ok().and_then(|n| n.parse::<u16>().ok()) else { return };
        match number {
            0 | 2 => self.title = clean(rest),
            4 => self.palette_entries(rest, end),
            7 => self.set_directory(rest),
            8 => self.set_link(rest),
            9 => self.notify_plain(rest),
            10..=12 => self.special_colors(number - 10, rest, end),
            104 if rest.is_empty() => self.palette.retain(|index, _| *index >= FOREGROUND),
            104 => {
                for index in rest.split(|b| *b == b';').filter_map(parse_index) {
                    self.palette.remove(&index);
                }
            }
            110..=112 => {
                self.palette.remove(&(FOREGROUND + number - 110));
            }
            133 => self.prompt_mark(rest),
            777 => self.notify_titled(rest),
            _ => {}
        }
    }

    fn palette_entries(&mut self, text: &[u8], end: &[u8]) {
        let mut parts = text.split(|b| *b == b';');
        while let (Some(index), Some(color)) = (parts.next(), parts.next()) {
            let Some(index) = parse_index(index) else { continue };
            if color == b"?" {
                let color = self.palette.get(&index).copied().unwrap_or_else(|| default_palette(index as u8));
                self.answer_color(&format!("4;{index}"), color, end);
            } else if let Some(color) = parse_color(color) {
                self.palette.insert(index, color);
            }
        }
    }

    fn special_colors(&mut self, first: u16, text: &[u8], end: &[u8]) {
        for (which, color) in (first..3).zip(text.split(|b| *b == b';')) {
            let index = FOREGROUND + which;
            if color == b"?" {
                let own = [self.colors.foreground, self.colors.background, self.colors.cursor][usize::from(which)];
                if let Some(color) = self.palette.get(&index).copied().or(own) {
                    self.answer_color(&(10 + which).to_string(), color, end);
                }
            } else if let Some(color) = parse_color(color) {
                self.palette.insert(index, color);
            }
        }
    }

    fn answer_color(&mut self, what: &str, [r, g, b]: [u8; 3], end: &[u8]) {
        let end = if end == b"\x07" { "\x07" } else { "\x1b\\" };
        let text = format!("\x1b]{what};rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}{end}");
        self.answer(text.as_bytes());
    }

    fn set_link(&mut self, text: &[u8]) {
        if let Some(link) = attributes::parse_link(text) {
            self.grid.cursor.template.set_hyperlink(link);
        }
    }

    fn set_directory(&mut self, text: &[u8]) {
        let given = clean(text);
        let path = match given.strip_prefix("file://") {
            Some(rest) => percent_decode(rest.find('/').map_or("", |at| &rest[at..])),
            None => given,
        };
        if !path.is_empty() {
            self.cwd = Some(path.clone());
            self.mark(MarkKind::Directory(path));
        }
    }

    fn notify_plain(&mut self, text: &[u8]) {
        // ConEmu uses OSC 9 followed by a number for progress and more.
        if text.first().is_some_and(u8::is_ascii_digit) && text.get(1).is_none_or(|b| *b == b';' || b.is_ascii_digit())
        {
            return;
        }
        self.mark(MarkKind::Notification { title: String::new(), body: clean(text) });
    }

    fn notify_titled(&mut self, text: &[u8]) {
        let mut parts = text.splitn(3, |b| *b == b';');
        if parts.next() == Some(b"notify") {
            let (title, body) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
            self.mark(MarkKind::Notification { title: clean(title), body: clean(body) });
        }
    }

    fn prompt_mark(&mut self, text: &[u8]) {
        let (kind, rest) = match memchr::memchr(b';', text) {
            Some(at) => (&text[..at], clean(&text[at + 1..])),
            None => (text, String::new()),
        };
        match kind {
            b"A" => self.mark(MarkKind::PromptStart(rest)),
            b"B" => self.mark(MarkKind::CommandStart(rest)),
            b"C" => self.mark(MarkKind::OutputStart(rest)),
            b"D" => {
                let status = rest.split(';').next().and_then(|text| text.parse().ok());
                self.mark(MarkKind::CommandEnd { status, parameters: rest });
            }
            _ => {}
        }
    }

    /// XTWINOPS: the title stack and the size reports.
    pub(crate) fn window(&mut self, csi: &Csi) {
        match csi.params.or(0, 0) {
            22 if csi.params.or(1, 0) != 1 => {
                if self.title_stack.len() >= TITLE_STACK_MAX {
                    self.title_stack.remove(0);
                }
                self.title_stack.push(self.title.clone());
            }
            23 if csi.params.or(1, 0) != 1 => {
                if let Some(title) = self.title_stack.pop() {
                    self.title = title;
                }
            }
            what => self.window_report(what),
        }
    }
}

/// Text without controls, bounded.
fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]);
    text.chars().filter(|c| !c.is_control()).collect()
}

fn parse_index(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse::<u8>().ok().map(u16::from)
}

fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    clean(&out)
}

/// `#rgb`, `#rrggbb`, `#rrrrggggbbbb`, `rgb:r/g/b` with one to four digits each.
fn parse_color(text: &[u8]) -> Option<[u8; 3]> {
    let text = std::str::from_utf8(text).ok()?;
    let scale = |digits: &str| {
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| (1..=4).contains(&digits.len()))?;
        Some((value * 255 / ((1 << (4 * digits.len())) - 1)) as u8)
    };
    if let Some(digits) = text.strip_prefix('#') {
        let each = digits.len() / 3;
        if digits.len() % 3 != 0 || !digits.is_ascii() || each == 0 {
            return None;
        }
        return Some([scale(&digits[..each])?, scale(&digits[each..2 * each])?, scale(&digits[2 * each..])?]);
    }
    let mut parts = text.strip_prefix("rgb:")?.split('/');
    let color = [scale(parts.next()?)?, scale(parts.next()?)?, scale(parts.next()?)?];
    parts.next().is_none().then_some(color)
}

/// xterm's 256 colours.
fn default_palette(index: u8) -> [u8; 3] {
    const BASE: [[u8; 3]; 16] = [
        [0x00, 0x00, 0x00],
        [0xcd, 0x00, 0x00],
        [0x00, 0xcd, 0x00],
        [0xcd, 0xcd, 0x00],
        [0x00, 0x00, 0xee],
        [0xcd, 0x00, 0xcd],
        [0x00, 0xcd, 0xcd],
        [0xe5, 0xe5, 0xe5],
        [0x7f, 0x7f, 0x7f],
        [0xff, 0x00, 0x00],
        [0x00, 0xff, 0x00],
        [0xff, 0xff, 0x00],
        [0x5c, 0x5c, 0xff],
        [0xff, 0x00, 0xff],
        [0x00, 0xff, 0xff],
        [0xff, 0xff, 0xff],
    ];
    match index {
        0..16 => BASE[usize::from(index)],
        16..232 => {
            let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let n = index - 16;
            [step(n / 36), step(n / 6 % 6), step(n % 6)]
        }
        232.. => [8 + 10 * (index - 232); 3],
    }
}
