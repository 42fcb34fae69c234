//! `holdfast session as`: becomes another user and then a session's command. A keeper starts it, as root, where the session is another
//! user's.

use super::no_typing;
use crate::failure::Failure;
use rustix::fs::{Gid, Uid, fchown};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `session as UID GID GROUPS DIR ARGV0 COMMAND…`. Returns only where it failed.
pub fn run() -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().skip(3).collect();
    let [uid, gid, groups, directory, argv0, program, rest @ ..] = &words[..] else {
        return Err(Failure::new("usage", "this is for keepers: see holdfast new --user"));
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| Failure::new("usage", format!("{text:?} is no number")));
    let text = |word: &OsString| word.to_str().unwrap_or_default().to_owned();
    let (uid, gid) = (Uid::from_raw(number(&text(uid))?), Gid::from_raw(number(&text(gid))?));
    let groups = text(groups);
    let groups = groups.split(',').map(|group| number(group).map(Gid::from_raw)).collect::<Result<Vec<_>, _>>()?;
    if uid.is_root() {
        return Err(Failure::new("usage", "root is nobody else"));
    }
    let refused = |what: &'static str| move |error: rustix::io::Errno| Failure::io(what, std::io::Error::from(error));
    // The terminal is the user's, as after a login: programs open it by its name.
    fchown(rustix::stdio::stdin(), Some(uid), None).map_err(refused("cannot give the terminal to the user"))?;
    // While we are root. A kernel without filters leaves it to the machine's own switch, of which `doctor` tells.
    if let Err(error) = no_typing::refuse()
        && error.raw_os_error() != Some(libc::EINVAL)
    {
        return Err(Failure::io("cannot keep programs from typing into their own terminal", error));
    }
    // This thread is the only one. The groups first: they need root.
    set_thread_groups(&groups).map_err(refused("cannot take on the user's groups"))?;
    set_thread_res_gid(gid, gid, gid).map_err(refused("cannot take on the user's group"))?;
    set_thread_res_uid(uid, uid, uid).map_err(refused("cannot become the user"))?;
    std::env::set_current_dir(directory).map_err(|error| {
        Failure::io(format!("cannot enter {} as this user", directory.display()), error)
            .hint("use --cwd with a directory of theirs")
    })?;
    let mut command = Command::new(program);
    if !argv0.as_bytes().is_empty() {
        command.arg0(argv0);
    }
    Err(Failure::io(format!("cannot start {}", program.display()), command.args(rest).exec()))
}
