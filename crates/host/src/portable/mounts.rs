//! Which of the machine's mounts a portable session sees.
//!
//! CRIU finds every one of them again by its path when it restores, so there are few: real storage, `/dev`, `/sys`, `/run`, and
//! temporary file systems a person works in. Not those of containers, of other sessions, or of the kernel's own accounting.

use std::path::Path;

/// Mounts of the machine that a session has at most: more are left out.
const MOUNTS_MAX: usize = 64;

/// File systems of the kernel, of containers, or that cannot be found again.
const LEFT_OUT: [&str; 20] = [
    "proc",
    "devpts",
    "cgroup",
    "cgroup2",
    "mqueue",
    "autofs",
    "binfmt_misc",
    "debugfs",
    "tracefs",
    "bpf",
    "pstore",
    "securityfs",
    "configfs",
    "nsfs",
    "ramfs",
    "squashfs",
    "efivarfs",
    "hugetlbfs",
    "fusectl",
    "rpc_pipefs",
];

/// File systems that anybody mounts for a while: seen only where the machine itself has them, or the session lies on them.
const PASSING: [&str; 3] = ["tmpfs", "overlay", "zfs"];
/// Where the machine itself has such ones.
const STANDING: [&str; 4] = ["/run", "/tmp", "/var/tmp", "/home"];

/// The mounts of a session, parents first, from `/proc/self/mountinfo`. What `needed` lies on is among them.
pub(super) fn kept(mountinfo: &str, needed: &[&Path]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for line in mountinfo.lines() {
        let Some((place, kind)) = parse(line) else { continue };
        let is_needed = needed.iter().any(|path| path.starts_with(&place));
        if is_kept(&place, kind, is_needed) && !kept.contains(&place) {
            kept.push(place);
        }
    }
    kept.sort();
    // What lies below a mount that is not there cannot be bound.
    kept.truncate(MOUNTS_MAX);
    kept
}

/// Where it is, and what.
fn parse(line: &str) -> Option<(String, &str)> {
    let place = line.split(' ').nth(4)?;
    let kind = line.split(" - ").nth(1)?.split(' ').next()?;
    // A place with blanks or other odd characters is written with octal escapes, and could not be told to CRIU.
    (!place.contains(['\\', ':', '[', ']', ','])).then(|| (place.to_owned(), kind))
}

fn is_kept(place: &str, kind: &str, is_needed: bool) -> bool {
    let below =
        |dirs: &[&str]| dirs.iter().any(|dir| place.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/')));
    if place == "/" || LEFT_OUT.contains(&kind) || kind.starts_with("fuse") {
        return false;
    }
    if PASSING.contains(&kind) && !is_needed && !STANDING.contains(&place) && !below(&["/run/user"]) {
        return false;
    }
    !below(&["/proc", "/sys", "/dev", "/boot", "/snap", "/var/lib/docker", "/var/lib/containers", "/var/lib/lxc"])
        && (!below(&["/run"]) || below(&["/run/user"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_sees_storage_and_what_people_work_in_and_nothing_of_containers() {
        let of = |place: &str, kind: &str| format!("22 27 0:21 / {place} rw,relatime - {kind} source rw\n");
        let mounts = [
            of("/", "ext4"),
            of("/proc", "proc"),
            of("/sys", "sysfs"),
            of("/sys/fs/cgroup", "tmpfs"),
            of("/dev", "devtmpfs"),
            of("/dev/shm", "tmpfs"),
            of("/dev/pts", "devpts"),
            of("/run", "tmpfs"),
            of("/run/user/1000", "tmpfs"),
            of("/run/netns", "tmpfs"),
            of("/home", "ext4"),
            of("/home/with\\040blank", "ext4"),
            of("/mnt/far", "fuse.sshfs"),
            of("/var/lib/docker/overlay2/x/merged", "overlay"),
            of("/home", "ext4"),
            of("/srv/state", "tmpfs"),
            of("/tmp/of-a-test/home", "tmpfs"),
        ];
        let needed = [Path::new("/srv/state/sessions")];
        let kept = kept(&mounts.concat(), &needed);
        assert_eq!(kept, ["/dev", "/home", "/run", "/run/user/1000", "/srv/state", "/sys"]);
    }
}
