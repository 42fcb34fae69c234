//! The kernel, for a program of one thread that ends where anything fails.

use std::ffi::{CStr, CString};

/// The exit code of a session that could not be made, as shells have it for a command that cannot be run.
pub const CANNOT: i32 = 126;

/// Says why on the session's terminal, and ends.
pub fn give_up(what: &CStr) -> ! {
    // SAFETY: no memory is involved.
    let errno = std::io::Error::last_os_error();
    let text = format!("holdfast: {}: {errno}\r\n", what.to_string_lossy());
    // SAFETY: the text outlives the call; a process may always end.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(CANNOT)
    }
}

/// The result of a call that gives -1 on failure.
pub fn must(result: i32, what: &CStr) -> i32 {
    if result < 0 { give_up(what) } else { result }
}

/// A path below another.
pub fn below(root: &CStr, path: &CStr) -> CString {
    let bytes = [root.to_bytes(), path.to_bytes()].concat();
    CString::new(bytes).unwrap_or_else(|_| give_up(c"a path"))
}

/// Binds a file or directory, without what is mounted below it.
pub fn bind(from: &CStr, to: &CStr) {
    // SAFETY: both paths end with a zero byte.
    let bound = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null()) };
    must(bound, from);
}

/// Mounts a file system of its own.
pub fn mount(kind: &CStr, to: &CStr, flags: libc::c_ulong, options: &CStr) {
    // SAFETY: all texts end with a zero byte.
    let mounted = unsafe { libc::mount(kind.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) };
    must(mounted, to);
}

/// Says how mounts of others and ours follow each other, for all of them.
pub fn propagate(flags: libc::c_ulong) {
    let none = std::ptr::null();
    // SAFETY: the path ends with a zero byte.
    let said = unsafe { libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | flags, none.cast()) };
    must(said, c"mount propagation");
}

/// Becomes another program. Gives the words that it gets; returns only where it failed.
pub fn exec(program: &CStr, words: &[&CStr]) {
    let mut list: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    list.push(std::ptr::null());
    // SAFETY: the list ends with a null pointer, and its texts outlive the call.
    unsafe { libc::execvp(program.as_ptr(), list.as_ptr()) };
}

/// Makes every signal that can be ignored so, or back to what it does by itself. The keeper's child must outlive what is sent to the
/// session's tree: it ends when the session does.
pub fn signals(ignore: bool) {
    let action = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    for number in 1..=64 {
        if !matches!(number, libc::SIGKILL | libc::SIGSTOP | libc::SIGCHLD) {
            // SAFETY: neither action runs code of ours.
            unsafe { libc::signal(number, action) };
        }
    }
}

/// Ends this process with its parent.
pub fn end_with_parent() {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
}

/// `/dev/null` in place of the standard streams.
pub fn let_go_of_terminal() {
    // SAFETY: the path ends with a zero byte; descriptors are numbers.
    unsafe {
        let null = must(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR), c"/dev/null");
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        if null > 2 {
            libc::close(null);
        }
    }
}

/// Waits for a child, and ends as it did. Others that come to us are reaped.
pub fn end_as(child: libc::pid_t) -> ! {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let ended = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
        let is_none_left = ended < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        if ended != child && !is_none_left {
            continue;
        }
        // SAFETY: a process may always end, also by a signal.
        unsafe {
            if !is_none_left && libc::WIFSIGNALED(status) {
                let number = libc::WTERMSIG(status);
                libc::signal(number, libc::SIG_DFL);
                libc::kill(libc::getpid(), number);
            }
            libc::_exit(if is_none_left { CANNOT } else { libc::WEXITSTATUS(status) })
        }
    }
}
