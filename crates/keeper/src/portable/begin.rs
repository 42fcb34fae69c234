//! The namespaces of a portable session.
//!
//! CRIU looks up every mount of the session by its path when it brings it back. So the session sees a small root: the machine's `/` and a
//! listed few mounts, each bound by itself; its own `/proc`, `/dev/pts` and `/dev/shm`; and nothing that another session or
//! container mounts meanwhile.

use super::kernel::{
    below, bind, end_as, end_with_parent, exec, give_up, let_go_of_terminal, mount, must, propagate, signals,
};
use std::ffi::{CStr, CString};

const PTS_OPTIONS: &CStr = c"newinstance,ptmxmode=0666,mode=620,gid=5";

/// Where terminals are, in the keeper's namespace and in the session's.
const PTS: &CStr = c"/dev/pts";

/// `apart PROGRAM ARGUMENT…`: PROGRAM's terminals come from a devpts of its own. Terminals of clients it opens by `/proc/PID/root`.
pub fn apart(words: &[&CStr]) -> i32 {
    let [program, ..] = words else { give_up(c"usage") };
    // SAFETY: no memory is involved.
    must(unsafe { libc::unshare(libc::CLONE_NEWNS) }, c"a mount namespace");
    // What the machine mounts later is seen; what is mounted here stays here.
    propagate(libc::MS_SLAVE);
    // Whoever opens /dev/ptmx gets a terminal of the devpts that lies beside it.
    mount(c"devpts", PTS, libc::MS_NOSUID | libc::MS_NOEXEC, PTS_OPTIONS);
    exec(program, words);
    give_up(program)
}

/// `begin INIT ROOT FROM COUNT (FROM MOUNT)… ARGV0 COMMAND ARGUMENT…`: the session's init in its namespaces, waited for. Its root and
/// each of its mounts are bound from where FROM says.
pub fn begin(words: &[&CStr]) -> i32 {
    let [init, root, from, count, rest @ ..] = words else { give_up(c"usage") };
    let count: usize = count.to_str().ok().and_then(|count| count.parse().ok()).unwrap_or(usize::MAX);
    let Some((mounts, command)) = count.checked_mul(2).and_then(|words| rest.split_at_checked(words)) else {
        give_up(c"usage")
    };
    signals(true);
    end_with_parent();
    // SAFETY: no memory is involved; the process has one thread.
    let child = unsafe {
        must(libc::unshare(libc::CLONE_NEWPID), c"a pid namespace");
        must(libc::fork(), c"fork")
    };
    if child == 0 {
        signals(false);
        end_with_parent();
        inside(root, from, mounts);
        let words = [&[*init, c"init"], command].concat();
        exec(init, &words);
        give_up(init)
    }
    let_go_of_terminal();
    // SAFETY: the path ends with a zero byte. A process that waits must not keep a file system busy.
    unsafe { libc::chdir(c"/".as_ptr()) };
    end_as(child)
}

/// This process's mounts become the session's, and its terminal descriptor 3.
fn inside(root: &CStr, from: &CStr, mounts: &[&CStr]) {
    let cwd = std::env::current_dir().ok().and_then(|cwd| {
        use std::os::unix::ffi::OsStringExt;
        CString::new(cwd.into_os_string().into_vec()).ok()
    });
    // SAFETY: no memory is involved.
    must(unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC) }, c"namespaces");
    propagate(libc::MS_PRIVATE);
    bind(from, root);
    for pair in mounts.chunks_exact(2) {
        bind(pair[0], &below(root, pair[1]));
    }
    let plain = libc::MS_NOSUID | libc::MS_NODEV;
    mount(c"proc", &below(root, c"/proc"), plain | libc::MS_NOEXEC, c"");
    mount(c"tmpfs", &below(root, c"/dev/shm"), plain, c"mode=1777");
    bind(PTS, &below(root, PTS));
    // SAFETY: all paths end with a zero byte; descriptors are numbers.
    unsafe {
        let old = must(libc::open(c"/".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC), c"/");
        must(libc::chdir(root.as_ptr()), root);
        must(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) as i32, c"pivot_root");
        must(libc::fchdir(old), c"the old root");
        must(libc::umount2(c".".as_ptr(), libc::MNT_DETACH), c"the old root");
        must(libc::chdir(c"/".as_ptr()), c"/");
        if let Some(cwd) = cwd {
            libc::chdir(cwd.as_ptr());
        }
        // The first terminal of this devpts is the keeper's.
        let terminal = must(libc::open(c"/dev/pts/0".as_ptr(), libc::O_RDWR | libc::O_NOCTTY), c"/dev/pts/0");
        let terminal = must(libc::fcntl(terminal, libc::F_DUPFD, 10), c"a descriptor");
        let_go_of_terminal();
        libc::dup2(terminal, 3);
        libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0);
        libc::setsid();
    }
}
