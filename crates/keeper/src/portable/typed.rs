//! What was typed and not read: taken out of a terminal whose processes stand still, and put back.

use super::kernel::{give_up, must};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Input that a terminal keeps for its reader.
const INPUT_BYTES_MAX: usize = 4096;

/// As the standard library has paths.
pub fn path(text: &CStr) -> &OsStr {
    OsStr::from_bytes(text.to_bytes())
}

fn open(terminal: &CStr) -> i32 {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    must(unsafe { libc::open(terminal.as_ptr(), flags) }, terminal)
}

fn modes(fd: i32) -> libc::termios {
    // SAFETY: termios is plain numbers; all zeros is one, and it outlives the call.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        must(libc::tcgetattr(fd, &mut modes), c"the terminal's modes");
        modes
    }
}

fn set(fd: i32, modes: &libc::termios) {
    // SAFETY: `modes` outlives the call.
    unsafe { libc::tcsetattr(fd, libc::TCSANOW, modes) };
}

/// `take TERMINAL FILE`.
pub fn take(words: &[&CStr]) -> i32 {
    let [terminal, file] = words else { give_up(c"usage") };
    let fd = open(terminal);
    let own = modes(fd);
    let mut raw = own;
    raw.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ISIG);
    (raw.c_cc[libc::VMIN], raw.c_cc[libc::VTIME]) = (0, 0);
    let canonical = own.c_lflag & libc::ICANON != 0;
    // A line that is being edited can be read only where lines are not edited.
    if canonical {
        set(fd, &raw);
    }
    let mut bytes = [0u8; INPUT_BYTES_MAX];
    // SAFETY: the buffer outlives the call, and is as long as is said.
    let count = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) }.max(0) as usize;
    if canonical {
        set(fd, &own);
    }
    if std::fs::write(path(file), &bytes[..count]).is_err() {
        return 2;
    }
    i32::from(canonical)
}

/// `give TERMINAL FILE`.
pub fn give(words: &[&CStr]) -> i32 {
    let [terminal, file] = words else { give_up(c"usage") };
    let fd = open(terminal);
    let own = modes(fd);
    put_back(fd, file, own.c_lflag & libc::ICANON != 0);
    set(fd, &own);
    0
}

/// Puts the file's bytes back as they were: not echoed again, and no key of them acts.
pub fn put_back(fd: i32, file: &CStr, canonical: bool) {
    let bytes = std::fs::read(path(file)).unwrap_or_default();
    if bytes.is_empty() {
        return;
    }
    let mut modes = modes(fd);
    modes.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ISIG | libc::ICANON | libc::IEXTEN);
    modes.c_lflag |= if canonical { libc::ICANON } else { 0 };
    modes.c_iflag &= !(libc::ICRNL | libc::INLCR | libc::IGNCR | libc::ISTRIP | libc::IXON | libc::IUCLC);
    set(fd, &modes);
    for byte in bytes.iter().take(INPUT_BYTES_MAX) {
        // SAFETY: the byte outlives the call.
        unsafe { libc::ioctl(fd, libc::TIOCSTI, byte) };
    }
}
