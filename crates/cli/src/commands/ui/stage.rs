//! The terminal while the picker has it: another screen than the person's, and as before when this is dropped.

use super::surface::Surface;
use crate::failure::Failure;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Write as _};

/// Puts the title and the person's screen aside.
const ENTER: &str = "\x1b[22;2t\x1b]2;holdfast\x1b\\\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l\x1b[23;2t";

/// The terminal.
#[derive(Debug)]
pub struct Stage {
    before: Termios,
    /// What it shows.
    shown: Option<Surface>,
}

impl Stage {
    /// Takes the terminal.
    pub fn new() -> Result<Stage, Failure> {
        let failed = |error: rustix::io::Errno| Failure::io("cannot set the terminal's modes", io::Error::from(error));
        let before = tcgetattr(rustix::stdio::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        let stage = Stage { before, shown: None };
        write(ENTER)?;
        Ok(stage)
    }

    /// An empty surface as large as the terminal is now.
    pub fn surface() -> Surface {
        let size = tcgetwinsize(rustix::stdio::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or_else(|| Surface::new(80, 24), |size| Surface::new(size.ws_col, size.ws_row))
    }

    /// Shows a surface.
    pub fn show(&mut self, surface: Surface) -> Result<(), Failure> {
        if self.shown.as_ref() != Some(&surface) {
            write(&surface.changes(self.shown.as_ref()))?;
            self.shown = Some(surface);
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = write(LEAVE);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::io("cannot draw on the terminal", error))
}
