//! CRIU: whether portable sessions can be had here, and how to get them.

use super::Finding;
use crate::failure::Failure;
use holdfast_host::portable::criu;
use std::path::Path;
use std::process::{Command, Stdio};

/// Fetches CRIU and its libraries from Debian, into a directory of its own.
const FETCH: &str = include_str!("get-criu.sh");

/// Whether checkpoints can be made.
pub fn checkpoints(state: &Path) -> Finding {
    let what = "checkpoints";
    let remedy = "holdfast doctor --fix, or install CRIU 4.2 or later";
    let Some(criu) = criu::find(state) else {
        return Finding::limited(what, "CRIU is not installed: `new --portable` is refused", remedy);
    };
    let version = match criu::version(&criu) {
        Ok(version) => version,
        Err(error) => return Finding::limited(what, format!("{} does not run: {error}", criu.display()), remedy),
    };
    if !is_new_enough(&version) {
        return Finding::limited(what, format!("CRIU {version} is too old"), remedy);
    }
    if !rustix::process::getuid().is_root() {
        let says = format!("CRIU {version} is there; portable sessions need a host that runs as root");
        return Finding::limited(what, says, "without root, `recover` brings a session back without its processes");
    }
    match criu::check(&criu) {
        Ok(()) => Finding::ok(what, format!("CRIU {version} works: sessions can be portable (new --portable)")),
        Err(error) => Finding::limited(what, format!("CRIU {version} does not work here: {error}"), "another kernel"),
    }
}

/// Earlier ones lose sockets or die on newer kernels.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (4, 2)
}

/// Fetches CRIU where there is none that is new enough.
pub fn fetch(state: &Path) -> Result<(), Failure> {
    let has =
        criu::find(state).and_then(|criu| criu::version(&criu).ok()).is_some_and(|version| is_new_enough(&version));
    if has {
        return Ok(());
    }
    let prefix = std::path::absolute(state.join("criu"))
        .map_err(|error| Failure::io("cannot find the state directory", error))?;
    crate::show::say("fetching CRIU from Debian...");
    let mut script = Command::new("/bin/sh");
    script.args(["-c", FETCH, "get-criu.sh"]).arg(&prefix).stdin(Stdio::null()).stdout(Stdio::null());
    let status = script.status().map_err(|error| Failure::io("cannot run /bin/sh", error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new("cannot_start", "CRIU could not be fetched")
        .hint("install CRIU 4.2 or later with your package manager"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_4_2_are_too_old() {
        for (version, is_new) in
            [("4.2.1", true), ("4.2", true), ("5.0", true), ("4.1.1", false), ("3.17", false), ("", false)]
        {
            assert_eq!(is_new_enough(version), is_new, "{version}");
        }
    }
}
