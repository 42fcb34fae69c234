//! `holdfast session stderr`: gives a session's command a standard error that is not its terminal, and then becomes it. A keeper
//! starts it.
//!
//! What the command writes there is copied into a file of the session by another process, which is nobody's child that the command
//! could wait for, and ends once nobody can write any more.

use crate::failure::Failure;
use holdfast_store::stderr;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// `session stderr FILE ARGV0 COMMAND…`. Returns only where it failed.
pub fn run() -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().skip(3).collect();
    let [file, argv0, program, rest @ ..] = &words[..] else {
        return Err(Failure::new("usage", "this is for keepers: see holdfast run --separate-stderr"));
    };
    let cannot = |error: std::io::Error| Failure::io("cannot keep its standard error apart", error);
    let file = stderr::create(Path::new(file)).map_err(cannot)?;
    let (reads, writes) = std::io::pipe().map_err(cannot)?;
    let own = holdfast_host::program().map_err(cannot)?;
    let (mut hears, tells) = std::io::pipe().map_err(cannot)?;
    let mut copier = Command::new(own);
    copier.args(["session", "copy-stderr", "apart"]).stdin(reads).stdout(file).stderr(tells);
    let mut started = copier.spawn().map_err(cannot)?;
    // The file is open there alone from here on.
    drop(copier);
    let is_there = hears.read_exact(&mut [0]);
    started.wait().map_err(cannot)?;
    is_there.map_err(cannot)?;
    let mut command = Command::new(program);
    if !argv0.as_bytes().is_empty() {
        command.arg0(argv0);
    }
    Err(Failure::io(format!("cannot start {}", program.display()), command.args(rest).stderr(writes).exec()))
}

/// `session copy-stderr`: copies standard input into the file that is standard output. First it becomes a process of its own.
pub fn copy(apart: bool) -> Result<u8, Failure> {
    let cannot = |error: std::io::Error| Failure::io("cannot copy", error);
    if apart {
        let own = holdfast_host::program().map_err(cannot)?;
        // Its own parent ends at once: whoever holds the session takes it.
        Command::new(own).args(["session", "copy-stderr"]).current_dir("/").spawn().map_err(cannot)?;
        return Ok(0);
    }
    // Keys that interrupt the command do not reach it.
    let _ = rustix::process::setsid();
    // It copies from now on.
    std::io::stderr().write_all(b".").map_err(cannot)?;
    let file = File::from(rustix::stdio::stdout().try_clone_to_owned().map_err(cannot)?);
    stderr::copy(std::io::stdin().lock(), &file).map_err(cannot)?;
    Ok(0)
}
