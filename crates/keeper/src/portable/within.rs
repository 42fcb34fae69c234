//! What a branch has for itself: files that are written to a directory of its own, and a network with nothing but a loopback.
//!
//! All of it is made in the keeper's namespaces by the keeper's child, so it is gone with them, whoever is killed.

use super::kernel::{CANNOT, exec, give_up, must};
use std::ffi::{CStr, CString};

/// Words that describe one layer.
const LAYER_WORDS: usize = 4;
/// No file is known by another one's name, and nothing but whole files is copied up: what lies in the upper directory is all that changed.
const LAYER_OPTIONS: &str = "index=off,metacopy=off,redirect_dir=off,xino=off";

/// `within LOG NETWORK COUNT (LOWER UPPER WORK PLACE)… WORD…`: does what WORD… says, above these layers. NETWORK is `own` or `shared`.
pub fn within(words: &[&CStr]) -> i32 {
    let [log, network, count, rest @ ..] = words else { give_up(c"usage") };
    let count: usize = count.to_str().ok().and_then(|count| count.parse().ok()).unwrap_or(usize::MAX);
    let Some((layers, then)) = count.checked_mul(LAYER_WORDS).and_then(|words| rest.split_at_checked(words)) else {
        give_up(c"usage")
    };
    let is_restore = then.first().is_some_and(|word| word.to_bytes() == b"restore");
    let failed = |what: &str| -> ! {
        let why = std::io::Error::last_os_error();
        if !is_restore {
            give_up(&CString::new(what).unwrap_or_default());
        }
        let _ = std::fs::write(super::typed::path(log), format!("{what}: {why}\n"));
        // SAFETY: no memory is involved. The session is as lost as it was.
        unsafe {
            libc::kill(libc::getppid(), libc::SIGKILL);
            libc::_exit(CANNOT)
        }
    };
    // SAFETY: no memory is involved.
    if network.to_bytes() == b"own" && (unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 || !loopback()) {
        failed("a network of its own cannot be made");
    }
    for layer in layers.chunks(LAYER_WORDS) {
        let [lower, upper, work, place] = layer else { give_up(c"usage") };
        if !lay(lower, upper, work, place) {
            failed(&format!("files above {} cannot be kept apart", lower.to_string_lossy()));
        }
    }
    super::obey(then)
}

/// Lays an upper directory over a lower one.
fn lay(lower: &CStr, upper: &CStr, work: &CStr, place: &CStr) -> bool {
    let text = |path: &CStr| path.to_string_lossy().into_owned();
    let dirs = format!("lowerdir={},upperdir={},workdir={}", text(lower), text(upper), text(work));
    let Ok(options) = CString::new(format!("{dirs},{LAYER_OPTIONS}")) else { return false };
    // SAFETY: all texts end with a zero byte, and `found` outlives the call.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(lower.as_ptr(), &mut found) != 0 {
            return false;
        }
        let kept = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let flags = found.f_flag & kept;
        let kind = c"overlay".as_ptr();
        libc::mount(kind, place.as_ptr(), kind, flags, options.as_ptr().cast()) == 0
    }
}

/// Brings up the loopback of this network namespace.
fn loopback() -> bool {
    // SAFETY: the request is plain bytes, all zeros is one, and it outlives the calls.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let is_up = socket >= 0 && libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &request) == 0;
        libc::close(socket);
        is_up
    }
}

/// Joins a namespace of a process.
fn join(pid: &CStr, kind: &str) {
    let path = CString::new(format!("/proc/{}/ns/{kind}", pid.to_string_lossy())).unwrap_or_default();
    // SAFETY: the path ends with a zero byte; descriptors are numbers.
    unsafe {
        let fd = must(libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC), &path);
        must(libc::setns(fd, 0), &path);
        libc::close(fd);
    }
}

/// `beside PID PROGRAM ARGUMENT…`: PROGRAM in the network of a process.
pub fn beside(words: &[&CStr]) -> i32 {
    let [pid, program, ..] = words else { give_up(c"usage") };
    join(pid, "net");
    exec(program, &words[1..]);
    give_up(program)
}

/// `enter PID DIRECTORY LOG PROGRAM ARGUMENT…`: PROGRAM in all namespaces of a session's init, waited for. What it says goes into LOG.
pub fn enter(words: &[&CStr]) -> i32 {
    let [pid, directory, log, program, ..] = words else { give_up(c"usage") };
    // SAFETY: all paths end with a zero byte; descriptors are numbers.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let log = must(libc::open(log.as_ptr(), flags, 0o600), log);
        // Opened before the mounts change: the session's own may lie elsewhere.
        for kind in ["ipc", "net", "pid", "mnt"] {
            join(pid, kind);
        }
        let child = must(libc::fork(), c"fork");
        if child == 0 {
            super::kernel::end_with_parent();
            libc::setsid();
            if libc::chdir(directory.as_ptr()) != 0 {
                libc::chdir(c"/".as_ptr());
            }
            libc::dup2(log, 1);
            libc::dup2(log, 2);
            exec(program, &words[3..]);
            libc::_exit(127);
        }
        super::kernel::end_as(child)
    }
}
