//! The init of a portable session: pid 1 of its pid namespace. It has no terminal, no file but `/dev/null`, and nothing to tell.

use super::kernel::{CANNOT, exec, let_go_of_terminal, must};
use std::ffi::CStr;

/// The exit code of a command that is not there, as shells have it.
const NOT_FOUND: i32 = 127;
/// Added to the number of a signal that ended the command: pid 1 cannot end by it.
const SIGNALLED: i32 = 128;

/// `init ARGV0 COMMAND ARGUMENT…`: starts the command and ends with it; the kernel ends everything else in the namespace then.
pub fn init(words: &[&CStr]) -> i32 {
    // SAFETY: no memory is involved; the process has one thread.
    let command = unsafe { must(libc::fork(), c"fork") };
    if command == 0 {
        become_command(words);
    }
    let_go_of_terminal();
    // SAFETY: the texts end with a zero byte; descriptors are numbers.
    unsafe {
        libc::close(3);
        libc::chdir(c"/".as_ptr());
    }
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let ended = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
        if ended == command {
            return match libc::WIFEXITED(status) {
                true => libc::WEXITSTATUS(status),
                false => SIGNALLED + libc::WTERMSIG(status),
            };
        }
        if ended < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            return CANNOT;
        }
    }
}

fn become_command(words: &[&CStr]) -> ! {
    // SAFETY: descriptors are numbers. The terminal is taken from the keeper's child, which started as its leader: it needs none.
    unsafe {
        libc::setsid();
        must(libc::ioctl(3, libc::TIOCSCTTY, 1), c"the terminal");
        for fd in 0..3 {
            libc::dup2(3, fd);
        }
        libc::close(3);
    }
    let [argv0, program, rest @ ..] = words else { super::kernel::give_up(c"usage") };
    let argv0 = if argv0.is_empty() { program } else { argv0 };
    exec(program, &[&[*argv0], rest].concat());
    let why = std::io::Error::last_os_error();
    let text = format!("holdfast: cannot run {}: {why}\r\n", program.to_string_lossy());
    // SAFETY: the text outlives the call; a process may always end.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(NOT_FOUND)
    }
}
