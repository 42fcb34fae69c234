//! What the kernel and its tools give.

use super::{Finding, read};
use landlock::{ABI, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit, getuid};
use std::path::{Path, PathBuf};

/// Descriptors the host has open per session: the keeper, its ring, its files.
const FILES_PER_SESSION: u64 = 4;
/// With fewer open files than this a few dozen attached sessions fill the host.
const FILES_FEW: u64 = 1024;

pub(super) fn version() -> Finding {
    judged(&read("/proc/sys/kernel/osrelease").unwrap_or_default())
}

fn judged(release: &str) -> Finding {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match version {
        (0, 0) => {
            Finding::missing("kernel", "not Linux: Holdfast cannot keep sessions here", "use a Linux machine").needed()
        }
        v if v >= (5, 9) => Finding::ok("kernel", release),
        _ => Finding::missing("kernel", format!("{release} is too old: Holdfast needs 5.9 or later"), "a newer kernel")
            .needed(),
    }
}

pub(super) fn user() -> Finding {
    if getuid().is_root() {
        return Finding::ok("user", "root: sessions, and clients attached to them, can do anything on this machine");
    }
    Finding::ok("user", format!("uid {}: sessions have your permissions", getuid().as_raw()))
}

pub(super) fn terminals() -> Vec<Finding> {
    let ptmx = match std::fs::OpenOptions::new().read(true).write(true).open("/dev/ptmx") {
        Ok(_) => match (number("/proc/sys/kernel/pty/nr"), number("/proc/sys/kernel/pty/max")) {
            (Some(used), Some(max)) if max.saturating_sub(used) < 16 => Finding::limited(
                "terminals",
                format!("{used} of {max} pseudo-terminals are in use"),
                "raise kernel.pty.max with sysctl",
            ),
            (Some(used), Some(max)) => Finding::ok("terminals", format!("{used} of {max} pseudo-terminals in use")),
            _ => Finding::ok("terminals", "pseudo-terminals can be opened"),
        },
        Err(error) => {
            Finding::missing("terminals", format!("cannot open /dev/ptmx: {error}"), "mount devpts on /dev/pts")
                .needed()
        }
    };
    let term = match std::env::var("TERM").unwrap_or_default().as_str() {
        "" => Finding::limited("TERM", "not set: new sessions get xterm-256color", "set TERM to your terminal's name"),
        "dumb" => Finding::limited(
            "TERM",
            "dumb: new detached sessions get xterm-256color",
            "set TERM to your terminal's name",
        ),
        term => Finding::ok("TERM", term),
    };
    let is_root = rustix::process::getuid().is_root();
    let others = other_users(is_root);
    vec![
        ptmx,
        term,
        pushed_input(read("/proc/sys/dev/tty/legacy_tiocsti").as_deref()),
        others,
        walls(&lacking()),
        programs(is_root),
    ]
}

/// What this kernel's Landlock lacks of a wall.
fn lacking() -> Vec<&'static str> {
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let has = |rules: Result<Ruleset, RulesetError>| rules.and_then(Ruleset::create).is_ok();
    let parts = [
        ("directories", has(strict().handle_access(AccessFs::from_write(ABI::V1)))),
        ("truncate(2)", has(strict().handle_access(AccessFs::from_write(ABI::V3)))),
        ("TCP ports", has(strict().handle_access(AccessNet::ConnectTcp))),
        ("signals", has(strict().scope(Scope::Signal).and_then(|rules| rules.handle_access(AccessFs::WriteFile)))),
    ];
    parts.into_iter().filter(|(_, has)| !has).map(|(part, _)| part).collect()
}

/// Whether sessions can have a wall.
fn walls(lacking: &[&str]) -> Finding {
    let remedy = "Linux 6.12 or later has all of it, with landlock in its list of security modules (lsm=)";
    match lacking {
        [] => Finding::ok("walls", "sessions can have a wall around what they write (new --wall)"),
        ["directories", ..] => {
            Finding::missing("walls", "this kernel has no Landlock: `new --wall` is refused", remedy)
        }
        some => Finding::limited("walls", format!("a wall (new --wall) does not cover {}", some.join(", ")), remedy),
    }
}

/// Whether a session's programs can be judged.
fn programs(is_root: bool) -> Finding {
    match (holdfast_host::seam::can_here(), is_root) {
        (Ok(()), true) => Finding::ok("programs", "every program of a session can be judged (new --gate exec)"),
        (Ok(()), false) => Finding::limited(
            "programs",
            "every program of a session can be judged (new --gate exec), but `sudo` does not work in it",
            "a host that runs as root keeps `sudo` working",
        ),
        (Err(why), _) => {
            let remedy = "Linux 5.19 or later; for other users than root: sysctl kernel.yama.ptrace_scope=0";
            Finding::missing("programs", format!("`new --gate exec` is refused: {why}"), remedy)
        }
    }
}

/// Whether a session can run as another user, out of reach of this one's keys.
fn other_users(is_root: bool) -> Finding {
    if is_root {
        Finding::ok("other users", "sessions can run as another user (new --user)")
    } else {
        let why = "sessions run as you, and what runs in them can read your keys";
        Finding::limited("other users", why, "a host that runs as root can start sessions of others (new --user)")
    }
}

/// Whether a program can push keys into its own terminal (TIOCSTI): the next program to read takes them for typed.
fn pushed_input(legacy: Option<&str>) -> Finding {
    match legacy {
        Some("0") => Finding::ok("typed input", "programs cannot push keys into their terminal (TIOCSTI is off)"),
        Some(_) => Finding::limited(
            "typed input",
            "programs can push keys into their terminal, which the journal does not see (TIOCSTI is on)",
            "sysctl dev.tty.legacy_tiocsti=0",
        ),
        None => Finding::limited(
            "typed input",
            "programs can push keys into their terminal, which the journal does not see (TIOCSTI)",
            "Linux 6.2 or later can turn it off: sysctl dev.tty.legacy_tiocsti=0",
        ),
    }
}

pub(super) fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    // The host raises its own limit as far as it may.
    let most = limit.maximum.or(limit.current);
    match most {
        Some(most) if most < FILES_FEW => Finding::limited(
            "open files",
            format!("at most {most}: room for about {} sessions", most / FILES_PER_SESSION),
            "raise the hard limit (ulimit -Hn, LimitNOFILE=)",
        ),
        Some(most) => {
            Finding::ok("open files", format!("at most {most}: room for about {} sessions", most / FILES_PER_SESSION))
        }
        None => Finding::ok("open files", "no limit"),
    }
}

pub(super) fn freezer() -> Finding {
    let what = "freezer";
    let slower = "freezing a session stops its processes one by one";
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let Some(mount) = unified_mount(&mounts) else {
        return Finding::limited(
            what,
            format!("no cgroup v2 is mounted: {slower}"),
            "boot with systemd.unified_cgroup_hierarchy=1",
        );
    };
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let dir = mount.join(own);
    if access(&dir, Access::WRITE_OK).is_ok() && access(dir.join("cgroup.procs"), Access::WRITE_OK).is_ok() {
        return Finding::ok(
            what,
            format!("cgroup v2 at {} is writable: freezing a session stops all its processes at once", mount.display()),
        );
    }
    Finding::limited(
        what,
        format!("cgroup v2 at {} is not delegated to you: {slower}", mount.display()),
        "start the host with: systemd-run --user --scope -p Delegate=yes holdfast host start",
    )
}

/// Where cgroup v2 is mounted, alone or beside v1.
fn unified_mount(mounts: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with("cgroup2 ")))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    read(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::Grade;
    use super::*;

    #[test]
    fn keys_that_programs_push_are_warned_of_where_the_kernel_lets_them() {
        assert_eq!(pushed_input(Some("0")).grade, Grade::Ok);
        assert_eq!([true, false].map(|is_root| other_users(is_root).grade), [Grade::Ok, Grade::Limited]);
        for on in [Some("1"), None] {
            let finding = pushed_input(on);
            assert!(finding.grade == Grade::Limited && finding.remedy.contains("legacy_tiocsti"));
        }
    }

    #[test]
    fn what_a_wall_does_not_cover_is_said() {
        assert_eq!(walls(&[]).grade, Grade::Ok);
        assert_eq!(walls(&["directories", "truncate(2)", "TCP ports", "signals"]).grade, Grade::Missing);
        let some = walls(&["TCP ports", "signals"]);
        assert!(some.grade == Grade::Limited && some.says.contains("TCP ports, signals"), "{}", some.says);
    }

    #[test]
    fn a_kernel_will_do_from_the_version_on_that_keepers_need() {
        let will_do = |release| judged(release).grade == Grade::Ok;
        let releases = ["6.12.41+deb13-amd64", "5.19.0", "5.9.0-rc1", "5.8.18", "4.19.0", ""];
        assert_eq!(releases.map(will_do), [true, true, true, false, false, false]);
        assert!(judged("5.8.18").needed && judged("").needed, "nothing works without it");
    }

    #[test]
    fn the_unified_mount_is_found_alone_and_beside_v1() {
        let hybrid = "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        assert_eq!(unified_mount(hybrid), Some("/sys/fs/cgroup/unified".into()));
        let unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(unified_mount(unified), Some("/sys/fs/cgroup".into()));
        assert_eq!(unified_mount("30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw"), None);
    }
}
