//! From words to paths, and what it means to write or delete them.

use crate::facts::Surroundings;
use crate::line::Command;
use crate::places::{Places, is_below, join};
use crate::risk::Risk;
use crate::targets::{Does, Target};
use crate::word::{HOME, Head, UNKNOWN, is_glob, unquoted};

/// A path that a line would write or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The resolved path; none: only the live shell knows.
    pub path: Option<String>,
    pub does: Does,
    pub whole: bool,
    pub below: bool,
    /// It follows from the text and the file system alone. Where not, it is the likely one, and never counts as inside.
    pub certain: bool,
    /// A pattern for everything in a directory, which is then the path.
    pub everything: bool,
}

/// What a target stands for.
pub(crate) fn hits(command: &Command, target: &Target, around: &Surroundings, places: &dyn Places) -> Vec<Hit> {
    let Target { word, does, whole, below, follows } = target;
    let hit = |path: Option<String>, certain: bool, everything: bool| Hit {
        path,
        does: *does,
        whole: *whole || everything,
        below: *below,
        certain,
        everything,
    };
    let unknown = || vec![hit(None, false, false)];
    let Some(patterns) = word.patterns() else {
        // `$DIR/*` with nothing in DIR is `/*`.
        let rest = word.tail().trim_start_matches(UNKNOWN);
        let is_rooted = word.head == Head::Unknown && rest.starts_with('/') && !rest.contains(UNKNOWN);
        return if is_rooted && *whole { vec![hit(None, false, true)] } else { unknown() };
    };
    let mut all = Vec::new();
    for pattern in patterns {
        let bases: Vec<(String, bool)> = match word.head {
            Head::Home => vec![(format!("{}{pattern}", quoted(&around.home)), false)],
            Head::Here => vec![(format!("{}{pattern}", quoted(&around.cwd)), false)],
            Head::Unknown => return unknown(),
            Head::Plain if pattern.starts_with('/') => vec![(pattern, true)],
            Head::Plain => {
                let from = |dir: &Option<String>| {
                    let dir = dir.as_ref()?;
                    let (dir, certain) = match dir.strip_prefix(HOME) {
                        Some(rest) => (format!("{}{rest}", around.home), false),
                        None => (join(&around.cwd, dir), true),
                    };
                    Some((join(&quoted(&dir), &pattern), certain))
                };
                match command.dirs.iter().map(from).collect() {
                    Some(bases) => bases,
                    None => {
                        all.push(hit(None, false, false));
                        command.dirs.iter().filter_map(from).collect()
                    }
                }
            }
        };
        for (pattern, certain) in bases {
            // Everything in a directory is told by that directory: it matters more than the names.
            let (pattern, everything) = match all_of(&pattern) {
                Some(dir) if *does == Does::Deletes || *whole => (dir, true),
                Some(_) | None => (pattern, false),
            };
            if !is_glob(&pattern) {
                let path = places.resolve(&unquoted(&pattern), *follows || everything);
                all.push(hit(Some(path), certain, everything));
                continue;
            }
            match places.expand(&pattern) {
                Some(paths) => {
                    all.extend(paths.iter().map(|path| hit(Some(places.resolve(path, *follows)), certain, everything)));
                }
                // Too many to name, or no file system: whatever fits lies below the part before the pattern.
                None => {
                    let fixed: Vec<&str> = pattern.split('/').take_while(|part| !is_glob(part)).collect();
                    let path = places.resolve(&unquoted(&format!("/{}", fixed.join("/"))), true);
                    all.push(Hit { below: true, ..hit(Some(path), certain, everything) });
                }
            }
        }
    }
    all
}

fn quoted(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\').then_some('\\').into_iter().chain([c])
        })
        .collect()
}

/// The directory of which this pattern means everything.
fn all_of(pattern: &str) -> Option<String> {
    ["/*", "/.*", "/**", "/{*,.*}", "/*/", "/.[!.]*"].iter().find_map(|end| {
        let dir = pattern.strip_suffix(end)?;
        Some(if dir.is_empty() { "/".to_owned() } else { dir.to_owned() })
    })
}

/// Directories the system consists of.
const SYSTEM: [&str; 30] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    concat!("/", "root"),
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/sbin",
    "/usr/local",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/log",
    "/mnt",
    "/media",
    "/Users",
    "/System",
    "/Library",
];
/// Directories that are anybody's to fill and empty.
const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp"];
/// Below a home: what can be made again.
const CACHES: [&str; 10] = [
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".npm",
    ".pnpm-store",
    ".rustup/tmp",
    ".gradle/caches",
    ".m2/repository",
    "go/pkg",
    ".local/share/Trash",
];
/// Below a home: what lets somebody in.
const CREDENTIALS: [&str; 12] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".netrc",
    ".git-credentials",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
    ".password-store",
    ".npmrc",
];
/// Nothing is changed by writing to these.
const SINKS: [&str; 8] =
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full", "/dev/fd", "/dev/pts"];
/// Writing here says who may log in, and from what the machine starts.
const TOUCHY: [&str; 12] = [
    "/etc/passwd",
    "/etc/shadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/group",
    "/etc/ssh",
    "/etc/pam.d",
    "/boot",
    "/etc/fstab",
    "/etc/crontab",
    "/etc/ld.so.preload",
    "/proc/sysrq-trigger",
];
const DISKS: [&str; 12] = [
    "/dev/sd",
    "/dev/hd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/mmcblk",
    "/dev/md",
    "/dev/dm-",
    "/dev/mapper/",
    "/dev/disk/",
    "/dev/loop",
    "/dev/mem",
];

/// Whether writing there changes nothing.
pub(crate) fn is_sink(path: &str) -> bool {
    SINKS.iter().any(|sink| is_below(path, sink))
}

/// What a hit risks.
pub(crate) fn risks(hit: &Hit, around: &Surroundings, add: &mut impl FnMut(Risk)) {
    let deletes = hit.does == Does::Deletes;
    let outside = if deletes { Risk::DeletesOutside } else { Risk::WritesOutside };
    let Some(path) = &hit.path else {
        add(outside);
        if deletes && hit.whole {
            add(Risk::DeletesUnknown);
        }
        return;
    };
    let path = path.as_str();
    if is_sink(path) {
        return;
    }
    let is_inside = around
        .inside
        .iter()
        .chain(TEMPORARY.map(str::to_owned).iter())
        .any(|dir| is_below(path, dir) && (path != dir || !deletes || hit.below))
        || CACHES.iter().any(|cache| is_below(path, &join(&around.home, cache)));
    if !is_inside || !hit.certain {
        add(outside);
    }
    // With what lies around it, but for a whole home or system, which have names of their own.
    let is_around = |dir: &String| hit.whole && is_below(dir, path) && !is_below(&around.home, path);
    if around.own.iter().any(|dir| is_below(path, dir) || is_around(dir)) {
        add(Risk::ReachesHoldfast);
    }
    if DISKS.iter().any(|disk| path.starts_with(disk)) {
        add(Risk::DestroysDevice);
    }
    if TOUCHY.iter().any(|touchy| is_below(path, touchy)) {
        add(Risk::TouchesSystem);
    }
    if CREDENTIALS.iter().any(|name| is_below(path, &join(&around.home, name))) {
        add(Risk::TouchesCredentials);
    }
    if path.rsplit('/').next() == Some(".git") && hit.whole && deletes {
        add(Risk::DeletesRepository);
    }
    if !hit.whole {
        // By a pattern, here and there.
        if hit.below && deletes && (path == "/" || path == around.home || SYSTEM.contains(&path)) {
            add(Risk::DeletesWidely);
        }
        return;
    }
    if path == around.home {
        add(Risk::DeletesHome);
    } else if path == "/" || SYSTEM.contains(&path) || is_below(&around.home, path) {
        add(Risk::DestroysSystem);
    } else if deletes && is_below(&around.cwd, path) && !TEMPORARY.iter().any(|dir| is_below(path, dir)) {
        add(Risk::DeletesHere);
    }
}
