//! The seam between Linux, where sessions run, and other systems, where this program is a client of hosts elsewhere.
//!
//! Elsewhere the crates of the host are not built, and the commands that need them are not there (`#[cfg(target_os = "linux")]` on their
//! modules and on their places in the command line). What all commands ask of the system is answered here.

use std::io;
use std::path::PathBuf;

/// The file this program runs from; the new one where an upgrade has replaced it.
#[cfg(target_os = "linux")]
pub fn program() -> io::Result<PathBuf> {
    holdfast_host::program()
}

/// The file this program runs from.
#[cfg(not(target_os = "linux"))]
pub fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// The login name of this process's user, as the system knows it.
#[cfg(target_os = "linux")]
pub fn login() -> Option<String> {
    holdfast_host::user::find().map(|user| user.name)
}

/// Nothing but the environment says it here: sessions, whose programs could change that, run on other machines.
#[cfg(not(target_os = "linux"))]
pub fn login() -> Option<String> {
    None
}

/// The login shell of this process's user, as the system knows it; may be empty.
#[cfg(target_os = "linux")]
pub fn shell() -> Option<String> {
    holdfast_host::user::find().map(|user| user.shell)
}

/// No session is started here that would run it.
#[cfg(not(target_os = "linux"))]
pub fn shell() -> Option<String> {
    None
}

/// Stack of the thread that a host runs on where the first one's is not known: as much as that has.
#[cfg(target_os = "linux")]
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Does something where there is stack enough to be asked for. musl says of a process's first thread that its stack is as large as what was
/// used of it so far, and Cedar decides nothing with less than 100 KiB left.
#[cfg(target_os = "linux")]
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if cfg!(not(target_env = "musl")) {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Whether flows were ever used here.
#[cfg(target_os = "linux")]
pub fn has_flows(home: &holdfast_types::Home) -> bool {
    holdfast_flows::database(home).exists()
}

/// Flows run where sessions do.
#[cfg(not(target_os = "linux"))]
pub fn has_flows(_: &holdfast_types::Home) -> bool {
    false
}

/// What to say of a command that is not there on this system, and is on Linux.
pub fn missing(command: &str) -> Option<String> {
    const OF_LINUX: [&str; 9] = ["bot", "doctor", "flow", "host", "policy", "prove", "relay", "upgrade", "web"];
    let is_missing = cfg!(not(target_os = "linux")) && OF_LINUX.contains(&command);
    is_missing.then(|| {
        let system = std::env::consts::OS;
        format!("`holdfast {command}` works on Linux, where sessions run; on {system} this program is a client of other hosts")
    })
}
