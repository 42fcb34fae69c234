//! The person's terminal: raw while attached, left as it was.

use super::{AttachError, failed};
use holdfast_types::Size;
use rustix::termios::{OptionalActions, Termios};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// The terminal in raw mode; restored on drop.
#[derive(Debug)]
pub struct Terminal {
    before: Termios,
    /// Its path where keys and output are the same terminal, which the keeper can then open too.
    pub path: Option<Vec<u8>>,
}

impl Terminal {
    /// Puts the terminal into raw mode.
    pub fn enter() -> Result<Terminal, AttachError> {
        let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        if !rustix::termios::isatty(stdin) || !rustix::termios::isatty(stdout) {
            return Err(AttachError::NoTerminal);
        }
        let raw = || -> io::Result<Termios> {
            let before = rustix::termios::tcgetattr(stdin)?;
            let mut raw = before.clone();
            raw.make_raw();
            rustix::termios::tcsetattr(stdin, OptionalActions::Now, &raw)?;
            Ok(before)
        };
        let before = raw().map_err(failed("the terminal cannot be put into raw mode"))?;
        let name = |fd: rustix::fd::BorrowedFd<'_>| rustix::termios::ttyname(fd, Vec::new()).ok();
        let path = name(stdin).filter(|path| name(stdout).as_ref() == Some(path)).map(|path| path.into_bytes());
        Ok(Terminal { before, path })
    }

    /// Its size.
    pub fn size() -> Size {
        rustix::termios::tcgetwinsize(rustix::stdio::stdout())
            .ok()
            .filter(|size| size.ws_col > 0 && size.ws_row > 0)
            .map_or_else(Size::default, |size| Size::clamped(size.ws_col, size.ws_row))
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.path
            .as_deref()
            .map_or_else(String::new, |path| std::ffi::OsStr::from_bytes(path).to_string_lossy().into_owned())
    }

    /// Writes everything, however slow the terminal is.
    pub fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(rustix::io::Errno::INTR) => {}
                // Somebody made it non-blocking: wait as a blocking one would.
                Err(rustix::io::Errno::AGAIN) => {
                    let stdout = rustix::stdio::stdout();
                    let mut ready = [rustix::event::PollFd::from_borrowed_fd(stdout, rustix::event::PollFlags::OUT)];
                    rustix::event::poll(&mut ready, None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
