//! The directories: state, sockets, configuration.

use super::Finding;
use crate::here::Here;
use crate::show::bytes;
use holdfast_store::trust::must_be_ours;
use holdfast_types::Home;
use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use std::path::Path;

/// Less room than this is a few dozen rings.
const FREE_BYTES_FEW: u64 = 64 * 1024 * 1024;

/// Whether anybody else decides what lies in the home.
pub(super) fn owner(home: &Home) -> Finding {
    let what = "home";
    let paths = home.directories().map(Path::to_owned).into_iter().chain([home.config_file()]);
    match paths.into_iter().try_for_each(|path| must_be_ours(&path)) {
        Ok(()) => Finding::ok(what, "only you and root can write to the directories and the configuration"),
        Err(why) => Finding::missing(what, why.to_string(), why.remedy()).needed(),
    }
}

pub(super) fn state(dir: &Path) -> Finding {
    let what = "state";
    let there = nearest(dir);
    if let Err(error) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        let says = format!("cannot write to {}: {error}", there.display());
        return Finding::missing(what, says, "make it writable for you, or use --home DIR").needed();
    }
    let Ok(system) = statvfs(there) else {
        return Finding::limited(what, format!("{}: cannot read the state of its file system", dir.display()), "none");
    };
    if system.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        let says = format!("{} is on a noexec mount: the keeper program cannot run from there", dir.display());
        return Finding::missing(what, says, "remount it with exec, or use --home DIR on another file system").needed();
    }
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free < FREE_BYTES_FEW {
        let says = format!("{}: {} free; each session needs space for its ring", dir.display(), bytes(free));
        return Finding::limited(what, says, "free some space");
    }
    Finding::ok(what, format!("{}: writable, {} free", dir.display(), bytes(free)))
}

pub(super) fn sockets(home: &Home) -> Finding {
    let what = "sockets";
    let there = nearest(&home.run);
    if let Err(error) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        let says = format!("cannot write to {}: {error}", there.display());
        return Finding::missing(what, says, "set XDG_RUNTIME_DIR to a directory you own, or use --home DIR").needed();
    }
    Finding::ok(what, home.run.display().to_string())
}

pub(super) fn configuration(here: &Here) -> Finding {
    let file = here.home.config_file();
    match here.config() {
        Ok(_) if file.exists() => Finding::ok("configuration", file.display().to_string()),
        Ok(_) => Finding::ok("configuration", format!("no {}: using defaults", file.display())),
        Err(failure) => Finding::missing("configuration", failure.message(), failure.advice()).needed(),
    }
}

/// The directory itself, or the nearest one above it that exists.
fn nearest(dir: &Path) -> &Path {
    dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"))
}
