//! The child: looked up in its own PATH, started on the terminal with a clean slate.
//!
//! `posix_spawn` tells synchronously whether the exec worked. What it cannot do for the child (directory, mode mask, limit of
//! files) is done here before and undone after: the process has one thread and nobody to notice.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdfast_abi::start::{Stage, Start};

use crate::setup::Failed;
use crate::sys;

/// Where commands are looked for when the child's environment has no PATH: what the C library would take.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Starts the child; gives its process.
pub fn spawn(start: &Start, terminal: &CStr) -> Result<i32, Failed> {
    let directory = sys::c_string(&start.cwd).map_err(Failed::at(Stage::Directory))?;
    // SAFETY: the path ends with a zero byte.
    sys::check(unsafe { libc::chdir(directory.as_ptr()) }).map_err(Failed::at(Stage::Directory))?;
    // SAFETY: no memory is involved.
    let own_umask = unsafe { libc::umask(start.umask & 0o777) };
    let own_limit = (start.nofile > 0).then(|| limit_files(start.nofile)).flatten();
    let child = run(start, terminal).map_err(Failed::at(Stage::Command));
    if let Some(limit) = own_limit {
        // SAFETY: `limit` outlives the call.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    }
    // SAFETY: the path ends with a zero byte. A keeper must not keep a file system busy.
    unsafe {
        libc::umask(own_umask);
        libc::chdir(c"/".as_ptr());
    }
    child
}

/// Sets the soft limit of open files; gives what it was.
fn limit_files(soft: u64) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call.
    sys::check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }).ok()?;
    let wanted = libc::rlimit { rlim_cur: soft.min(limit.rlim_max), ..limit };
    // SAFETY: `wanted` outlives the call.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) };
    Some(limit)
}

fn run(start: &Start, terminal: &CStr) -> io::Result<i32> {
    let command = start.argv.first().ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let search = start.env.iter().find_map(|pair| pair.strip_prefix(b"PATH=")).unwrap_or(DEFAULT_PATH);
    let program = sys::c_string(&look_up(command, search)?)?;
    let mut argv = start.argv.iter().map(|arg| sys::c_string(arg)).collect::<io::Result<Vec<_>>>()?;
    if !start.argv0.is_empty() {
        argv[0] = sys::c_string(&start.argv0)?;
    }
    let env = start.env.iter().map(|pair| sys::c_string(pair)).collect::<io::Result<Vec<_>>>()?;
    match exec(&program, &argv, &env, terminal) {
        // A script without an interpreter line: every shell runs it with sh.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            argv.insert(1, program);
            exec(c"/bin/sh", &argv, &env, terminal)
        }
        result => result,
    }
}

/// The file a command names: itself where it has a slash, else the first executable file of that name in the search path.
pub fn look_up(command: &[u8], search: &[u8]) -> io::Result<Vec<u8>> {
    if command.contains(&b'/') {
        return Ok(command.to_vec());
    }
    let mut error = libc::ENOENT;
    if !command.is_empty() {
        for directory in search.split(|byte| *byte == b':') {
            // An empty entry is the current directory, by tradition.
            let directory = if directory.is_empty() { b"." } else { directory };
            let candidate = [directory, b"/", command].concat();
            if !Path::new(std::ffi::OsStr::from_bytes(&candidate)).is_file() {
                continue;
            }
            // SAFETY: the path ends with a zero byte.
            if unsafe { libc::access(sys::c_string(&candidate)?.as_ptr(), libc::X_OK) } == 0 {
                return Ok(candidate);
            }
            error = libc::EACCES;
        }
    }
    Err(io::Error::from_raw_os_error(error))
}

fn pointers(texts: &[CString]) -> Vec<*mut libc::c_char> {
    texts.iter().map(|text| text.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

fn exec(program: &CStr, argv: &[CString], env: &[CString], terminal: &CStr) -> io::Result<i32> {
    let (argv, env) = (pointers(argv), pointers(env));
    let flags = libc::POSIX_SPAWN_SETSID as i32 | libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
    let mut child = 0;
    // SAFETY: the structures are initialised by their init calls before use and destroyed once; every pointer is to a
    // local that outlives the calls; argument lists end with a null pointer.
    let error = unsafe {
        let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
        let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&mut actions);
        libc::posix_spawnattr_init(&mut attributes);
        // The first terminal a session leader opens becomes its controlling one.
        libc::posix_spawn_file_actions_addopen(&mut actions, 0, terminal.as_ptr(), libc::O_RDWR, 0);
        libc::posix_spawn_file_actions_adddup2(&mut actions, 0, 1);
        libc::posix_spawn_file_actions_adddup2(&mut actions, 0, 2);
        libc::sigemptyset(&mut signals);
        libc::posix_spawnattr_setsigmask(&mut attributes, &signals);
        // All of them: what the host or a background shell ignores would stay ignored in the session for ever. Filled by hand,
        // since sigfillset leaves out two that the C library keeps for itself, and posix_spawn would ignore those.
        std::ptr::write_bytes(&mut signals, 0xff, 1);
        libc::posix_spawnattr_setsigdefault(&mut attributes, &signals);
        libc::posix_spawnattr_setflags(&mut attributes, flags as libc::c_short);
        let error = libc::posix_spawn(&mut child, program.as_ptr(), &actions, &attributes, argv.as_ptr(), env.as_ptr());
        libc::posix_spawn_file_actions_destroy(&mut actions);
        libc::posix_spawnattr_destroy(&mut attributes);
        error
    };
    if error == 0 { Ok(child) } else { Err(io::Error::from_raw_os_error(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_looked_up_where_the_child_would_look() {
        let found = |command: &str, search: &str| look_up(command.as_bytes(), search.as_bytes());
        assert_eq!(found("sh", "/nowhere:/bin").unwrap(), b"/bin/sh");
        assert_eq!(found("./sh", "").unwrap(), b"./sh");
        assert_eq!(found("sh", "/nowhere").unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(found("passwd", "/etc").unwrap_err().raw_os_error(), Some(libc::EACCES));
        assert_eq!(found("", "/bin").unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
