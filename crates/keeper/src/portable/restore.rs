//! A session that comes back from a checkpoint: CRIU makes its processes our children, on the keeper's new terminal.
//!
//! Where that fails nothing of it may stay: what CRIU left half-made is killed, and then the keeper, so that the session is as lost as it
//! was, and can be tried again.

use super::kernel::{end_as, end_with_parent, exec, give_up, let_go_of_terminal, must, signals};
use super::typed;
use std::ffi::CStr;

/// Descriptors of the terminal that CRIU's arguments and `CRIU_CTTY` name: for the terminal, for `/dev/tty`, for the leader.
const TERMINAL_FDS: [i32; 3] = [60, 61, 200];
/// How long CRIU may take. A damaged image makes it loop for ever; a gigabyte of memory takes it some seconds.
const RESTORE_MS_MAX: u64 = 120_000;
/// How often it is looked at: a tenth of what the smallest session takes.
const LOOK_MS: u64 = 5;

/// `restore DONE LOG INPUT CANONICAL CRIU ARGUMENT…`.
pub fn restore(words: &[&CStr]) -> i32 {
    let [done, log, input, canonical, criu, ..] = words else { give_up(c"usage") };
    signals(true);
    end_with_parent();
    // SAFETY: descriptors are numbers; the paths end with a zero byte.
    unsafe {
        // What a killed CRIU leaves becomes ours.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // CRIU sets the terminal's modes afterwards. Whether lines are edited must be as it was then: a change of it would cut the line.
        typed::put_back(0, input, canonical.to_bytes() == b"1");
        for fd in TERMINAL_FDS {
            must(libc::dup2(0, fd), c"a descriptor");
        }
        let_go_of_terminal();
        let child = must(libc::fork(), c"fork");
        if child == 0 {
            signals(false);
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
            let log = libc::open(log.as_ptr(), flags, 0o600);
            if log >= 0 {
                libc::dup2(log, 1);
                libc::dup2(log, 2);
            }
            exec(criu, &words[4..]);
            libc::_exit(127);
        }
        let is_restored = wait(child);
        for fd in TERMINAL_FDS {
            libc::close(fd);
        }
        match children().first() {
            Some(&init) if is_restored => {
                let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
                let file = libc::open(done.as_ptr(), flags, 0o600);
                if file >= 0 {
                    libc::close(file);
                }
                end_as(init)
            }
            _ => {
                sweep();
                libc::kill(libc::getppid(), libc::SIGKILL);
                libc::_exit(1)
            }
        }
    }
}

/// Whether CRIU ended well, in its time.
fn wait(criu: libc::pid_t) -> bool {
    for _ in 0..RESTORE_MS_MAX / LOOK_MS {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let ended = unsafe { libc::waitpid(criu, &mut status, libc::WNOHANG) };
        if ended == criu {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        std::thread::sleep(std::time::Duration::from_millis(LOOK_MS));
    }
    // SAFETY: no memory is involved; it is our child.
    unsafe {
        libc::kill(criu, libc::SIGKILL);
        libc::waitpid(criu, std::ptr::null_mut(), 0);
    }
    false
}

/// Our children, zombies too.
fn children() -> Vec<libc::pid_t> {
    let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Kills what is left, until there is nothing.
fn sweep() {
    loop {
        let left = children();
        if left.is_empty() {
            return;
        }
        for pid in left {
            // SAFETY: no memory is involved; they are our children, and nobody else reaps them.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
            }
        }
    }
}
