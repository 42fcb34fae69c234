//! Answers to queries, given when no attached client answers.

use super::{Modes, Style, Vt};
use crate::parse::Csi;
use crate::vt::attributes::write_sgr;

/// Pixels a cell is said to have: common, and only ratios of it matter to the programs that ask.
const CELL_PIXELS: (u16, u16) = (8, 16);
/// Capabilities one XTGETTCAP may ask for.
const CAPABILITIES_MAX: usize = 64;

impl Vt {
    /// Answers a CSI query; anything else is ignored.
    pub(crate) fn query(&mut self, csi: &Csi) {
        let first = csi.params.or(0, 0);
        match (csi.prefix, csi.intermediate, csi.last) {
            // A VT220 with colour: what most programs take as "modern, no surprises".
            (0, 0, b'c') if first == 0 => self.answer(b"\x1b[?62;22c"),
            (b'>', 0, b'c') if first == 0 => self.answer(b"\x1b[>1;100;0c"),
            (b'=', 0, b'c') if first == 0 => self.answer(b"\x1bP!|00000000\x1b\\"),
            (0, 0, b'n') if first == 5 => self.answer(b"\x1b[0n"),
            (0, 0, b'n') if first == 6 => self.report_cursor(""),
            (b'?', 0, b'n') if first == 6 => self.report_cursor("?"),
            (b'>', 0, b'q') if first == 0 => {
                let text = format!("\x1bP>|holdfast {}\x1b\\", env!("CARGO_PKG_VERSION"));
                self.answer(text.as_bytes());
            }
            (b'?', 0, b'm') if first == 4 => {
                let text = format!("\x1b[>4;{}m", self.keyboard.modify_other);
                self.answer(text.as_bytes());
            }
            (0, b'$', b'p') => {
                let text = format!("\x1b[{first};{}$y", self.mode_state(false, first));
                self.answer(text.as_bytes());
            }
            (b'?', b'$', b'p') => {
                let text = format!("\x1b[?{first};{}$y", self.mode_state(true, first));
                self.answer(text.as_bytes());
            }
            _ => {}
        }
    }

    fn report_cursor(&mut self, prefix: &str) {
        let (column, row, _) = self.place();
        let top = if self.modes.has(Modes::ORIGIN) { self.region.0 } else { 0 };
        let text = format!("\x1b[{prefix}{};{}R", row.saturating_sub(top) + 1, column + 1);
        self.answer(text.as_bytes());
    }

    pub(crate) fn report_keyboard(&mut self) {
        let text = format!("\x1b[?{}u", self.keyboard.flags);
        self.answer(text.as_bytes());
    }

    /// The size reports of XTWINOPS.
    pub(crate) fn window_report(&mut self, what: u16) {
        let (cols, rows) = (self.size.cols(), self.size.rows());
        let (width, height) = CELL_PIXELS;
        let text = match what {
            14 => format!("\x1b[4;{};{}t", u32::from(rows) * u32::from(height), u32::from(cols) * u32::from(width)),
            16 => format!("\x1b[6;{height};{width}t"),
            18 => format!("\x1b[8;{rows};{cols}t"),
            _ => return,
        };
        self.answer(text.as_bytes());
    }

    /// Executes a complete DCS string: the two that ask something.
    pub(crate) fn dcs(&mut self, text: &[u8]) {
        if let Some(names) = text.strip_prefix(b"+q") {
            for name in names.split(|b| *b == b';').take(CAPABILITIES_MAX) {
                self.capability(name);
            }
        } else if let Some(what) = text.strip_prefix(b"$q") {
            self.setting(what);
        }
    }

    /// XTGETTCAP: name and value are in hex.
    fn capability(&mut self, hex: &[u8]) {
        let digits = std::str::from_utf8(hex).unwrap_or("");
        let value = match unhex(hex).as_deref() {
            Some(b"TN") => Some("xterm-256color"),
            Some(b"Co" | b"colors") => Some("256"),
            Some(b"RGB") => Some("8/8/8"),
            _ => None,
        };
        let text = match value {
            Some(value) => {
                let value: String = value.bytes().map(|b| format!("{b:02x}")).collect();
                format!("\x1bP1+r{digits}={value}\x1b\\")
            }
            None => format!("\x1bP0+r{}\x1b\\", if unhex(hex).is_some() { digits } else { "" }),
        };
        self.answer(text.as_bytes());
    }

    /// DECRQSS.
    fn setting(&mut self, what: &[u8]) {
        let mut text = b"\x1bP1$r".to_vec();
        match what {
            b"m" => {
                let mut style = Style::of(&self.grid.cursor.template);
                style.link = None;
                let mut sgr = Vec::new();
                write_sgr(&style, &mut sgr);
                // The answer always starts with the reset: `0m`, `0;1;31m`.
                let body = &sgr[2..];
                if body.first() == Some(&b'm') {
                    text.push(b'0');
                }
                text.extend_from_slice(body);
            }
            b"r" => text.extend_from_slice(format!("{};{}r", self.region.0 + 1, self.region.1 + 1).as_bytes()),
            b" q" => text.extend_from_slice(format!("{} q", self.cursor_style).as_bytes()),
            _ => text = b"\x1bP0$r".to_vec(),
        }
        text.extend_from_slice(b"\x1b\\");
        self.answer(&text);
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let digits = std::str::from_utf8(text).ok().filter(|t| t.is_ascii() && t.len() % 2 == 0)?;
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}
