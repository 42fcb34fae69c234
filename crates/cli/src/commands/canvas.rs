//! A terminal that a command draws on until a key ends it.

use crate::failure::Failure;
use crate::show::print;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// `Ctrl-C` and `Ctrl-D`, too.
pub const QUIT_KEYS: [u8; 4] = [b'q', b'Q', 3, 4];

/// The terminal while it is drawn on; it is as before when this is dropped.
pub struct Canvas {
    before: Termios,
}

impl Canvas {
    /// Draws on another screen than the person's.
    pub fn new() -> Result<Canvas, Failure> {
        let failed =
            |error: rustix::io::Errno| Failure::io("cannot set the terminal's modes", std::io::Error::from(error));
        let before = tcgetattr(rustix::stdio::stdin()).map_err(failed)?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes).map_err(failed)?;
        let canvas = Canvas { before };
        print("\x1b[?1049h\x1b[?25l\x1b[?7l")?;
        Ok(canvas)
    }

    /// Draws what fits.
    pub fn draw(&self, text: &str) -> Result<(), Failure> {
        let rows = tcgetwinsize(rustix::stdio::stdout()).map_or(24, |size| usize::from(size.ws_row.max(2)));
        let lines: Vec<&str> = text.lines().collect();
        let mut out = String::from("\x1b[H");
        let shown = if lines.len() > rows { rows - 1 } else { lines.len() };
        for line in &lines[..shown] {
            out.push_str(line);
            out.push_str("\x1b[K\r\n");
        }
        if shown < lines.len() {
            out.push_str(&format!("… {} more\x1b[K", lines.len() - shown));
        }
        // The last line end would scroll a screen that is full.
        let out = if shown == rows { out.trim_end_matches("\r\n").to_owned() } else { out };
        print(format!("{out}\x1b[J"))
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        let _ = print("\x1b[?7h\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
