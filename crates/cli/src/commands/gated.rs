//! `holdfast session gate`: has the kernel ask before a process of the session starts a program, and then becomes its command. A keeper
//! starts it. `holdfast session warden`: who the kernel asks. A host starts it.

use crate::failure::Failure;
use holdfast_host::seam;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// `session gate SOCKET ARGV0 COMMAND…`. Returns only where it failed.
pub fn run() -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().skip(3).collect();
    let [socket, argv0, program, rest @ ..] = &words[..] else {
        return Err(Failure::new("usage", "this is for keepers: see holdfast new --gate"));
    };
    seam::hand_over(Path::new(socket)).map_err(|error| Failure::io("cannot have programs judged here", error))?;
    let mut command = Command::new(program);
    if !argv0.as_bytes().is_empty() {
        command.arg0(argv0);
    }
    Err(Failure::io(format!("cannot start {}", program.display()), command.args(rest).exec()))
}

/// `session warden SOCKET`. Its standard input is the connection to the host that started it.
pub fn warden() -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().skip(3).collect();
    let [socket] = &words[..] else {
        return Err(Failure::new("usage", "this is for hosts: see holdfast new --gate"));
    };
    // As for the host itself: the end of a terminal or of a session it was started in is not its own.
    let _ = rustix::process::setsid();
    let _ = holdfast_observe::leave_sessions();
    let failed = |error| Failure::io("cannot watch over a session", error);
    // Who could look into it could take the listener, and answer in the host's place.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| failed(error.into()))?;
    let _ = rustix::thread::set_name(c"holdfast-warden");
    let starter = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    seam::warden(Path::new(socket), starter).map_err(failed)?;
    Ok(0)
}
