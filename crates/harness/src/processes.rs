//! The program under test, and processes by their number.

use crate::wait::holds_within;
use rustix::process::{Pid, Signal};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the processes of a home may take to be gone once they were told to go.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The program as cargo built it for the suite that runs.
pub fn program() -> PathBuf {
    let told = ["NEXTEST_BIN_EXE_holdfast", "CARGO_BIN_EXE_holdfast"].iter().find_map(std::env::var_os);
    told.expect("run by cargo, which says where the program is").into()
}

/// CRIU, as `cargo xtask test` fetches it.
pub fn criu() -> PathBuf {
    let told = std::env::var_os("HOLDFAST_CRIU").map(PathBuf::from);
    // The target directory's, whatever profile the program was built with.
    told.unwrap_or_else(|| program().ancestors().nth(2).unwrap_or(Path::new("/")).join("criu/criu"))
}

/// Numbers of the processes that belong to a home: their environment, command line or program names its directory.
pub(crate) fn processes_of(dir: &Path) -> Vec<u32> {
    let needle = dir.as_os_str().as_bytes();
    let names_home = |pid: &u32| {
        let file = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let texts = [file("environ"), file("cmdline"), exe.as_os_str().as_bytes().to_vec()];
        texts.iter().any(|text| text.windows(needle.len()).any(|part| part == needle))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(names_home).collect()
}

/// The end of a home: fails the test if a process of it does not go, or if its host's log tells of a panic. Whatever is left
/// over is ended by its number. `stop` is for a host that a client started just before, and that listens only now.
pub(crate) fn leaves_nothing(dir: &Path, log: &Path, stop: impl Fn()) {
    let mut left = Vec::new();
    holds_within(GONE_WITHIN, || {
        left = processes_of(dir);
        if !left.is_empty() {
            stop();
        }
        left.is_empty()
    });
    let told: Vec<_> = left.iter().map(|pid| format!("{pid} {}", command_line(*pid))).collect();
    left.iter().for_each(|pid| kill(*pid));
    let log = std::fs::read_to_string(log).unwrap_or_default();
    if std::thread::panicking() {
        return eprintln!("the host's log:\n{log}");
    }
    assert!(told.is_empty(), "processes were left over: {told:?}");
    assert!(!log.contains("panicked at"), "a fault of the host's own:\n{log}");
}

/// What a process was started as.
pub fn command_line(pid: u32) -> String {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ")
}

/// Whether a process has ended; a zombie has.
pub fn gone(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z') || rest.starts_with('X'))
}

/// Ends a process by its number, at once.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal to a process; it may be gone by now.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process number");
    let _ = rustix::process::kill_process(pid, signal);
}

/// How many descriptors a process has open.
pub fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}
