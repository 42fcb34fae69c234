//! A secret as it is asked for: from the person's terminal without showing it, or one line of standard input.

use crate::failure::Failure;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Longest secret: what a terminal takes as one line, less its end.
const SECRET_BYTES_MAX: usize = 4095;

/// One line of standard input, without its end.
pub fn from_stdin() -> Result<Zeroizing<Vec<u8>>, Failure> {
    line(&mut std::io::stdin().lock()).map_err(|e| Failure::io("cannot read standard input", e))
}

/// Asks the person at the terminal.
pub fn from_terminal(session: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let nowhere = |e| Failure::io("there is no terminal to ask on", e).hint("pass the secret with --stdin");
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").map_err(nowhere)?;
    let shown = tcgetattr(&terminal).map_err(|e| Failure::io("cannot open the terminal", e))?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    hidden.local_modes.insert(LocalModes::ICANON | LocalModes::ECHONL | LocalModes::ISIG);
    let set = |modes| tcsetattr(&terminal, OptionalActions::Flush, modes);
    // Interrupted, the program ends without an echo: shells put that right, as after any such prompt.
    set(&hidden).map_err(|e| Failure::io("cannot turn off the terminal's echo", e))?;
    let asked = write!(&terminal, "secret for {session}: ");
    let read = asked.and_then(|()| line(&mut terminal));
    let _ = tcsetattr(&terminal, OptionalActions::Now, &shown);
    read.map_err(|e| Failure::io("cannot read from the terminal", e))
}

/// A line, without a buffer that others could find it in.
fn line(from: &mut impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut secret = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 1));
    let mut byte = Zeroizing::new([0]);
    while from.read(&mut *byte)? == 1 && byte[0] != b'\n' {
        if secret.len() == SECRET_BYTES_MAX {
            return Err(std::io::Error::other(format!("a secret may have at most {SECRET_BYTES_MAX} bytes")));
        }
        secret.push(byte[0]);
    }
    if secret.last() == Some(&b'\r') {
        secret.pop();
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_line_and_not_too_long() {
        assert_eq!(line(&mut &b"hush\r\nmore"[..]).unwrap().as_slice(), b"hush");
        assert_eq!(line(&mut &b"hush"[..]).unwrap().as_slice(), b"hush");
        assert!(line(&mut &[b'x'; SECRET_BYTES_MAX + 1][..]).is_err());
    }
}
