//! A tree of processes below one that stands for the keeper, and the waiting: for a condition, with a deadline.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use holdfast_observe::{Freezer, Frozen, How, Process, Spared, descendants};
use rustix::process::{Pid, Signal, kill_process};

/// Long enough for a busy machine; nothing waits for it that works.
const DEADLINE: Duration = Duration::from_secs(30);

/// Looks that must all find the same before something counts as standing still. A process that runs gets the
/// processor many times in as many pauses.
const STILL_LOOKS: u32 = 100;

fn pause() {
    std::thread::sleep(Duration::from_millis(3));
}

/// Polls until the condition gives something.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(started.elapsed() < DEADLINE, "waited in vain for {what}");
        pause();
    }
}

/// Asserts that what is looked at does not change.
#[track_caller]
pub fn stands_still<T: PartialEq + std::fmt::Debug>(what: &str, mut look: impl FnMut() -> T) {
    let first = look();
    for _ in 0..STILL_LOOKS {
        pause();
        assert_eq!(look(), first, "{what}");
    }
}

/// Runs the test once with each mechanism.
pub fn with_both(test: impl Fn(How)) {
    test(How::Cgroup);
    test(How::Signals);
}

/// A session: a process that stands for its keeper, a directory, a label. All go at the end.
pub struct Session {
    pub dir: PathBuf,
    pub label: String,
    pub keeper: Child,
    /// What is Holdfast's own in it.
    pub spared: Spared,
    how: How,
}

impl Session {
    /// The keeper is a shell with this script, which runs in the session's directory.
    pub fn shell(how: How, script: &str) -> Session {
        Session::start(how, "sh", &["-c", script])
    }

    pub fn start(how: How, program: &str, args: &[&str]) -> Session {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let label = format!("ses_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(format!("hf-observe-{label}"));
        fs::create_dir(&dir).unwrap();
        // What the tests call Holdfast's own are shells with another name.
        fs::copy("/bin/sh", dir.join("holdfast-host")).unwrap();
        let file = |name: &str| fs::File::create(dir.join(name)).unwrap();
        let mut command = Command::new(program);
        command.args(args).current_dir(&dir).stdin(Stdio::piped()).stdout(file("output")).stderr(file("errors"));
        let keeper = command.spawn().unwrap();
        Session { dir, label, keeper, spared: Spared::default(), how }
    }

    /// A new one each time: none remembers anything.
    pub fn freezer(&self) -> Freezer {
        match self.how {
            How::Cgroup => Freezer::new(&self.label),
            How::Signals => Freezer::by_signals(&self.label),
        }
    }

    #[track_caller]
    pub fn freeze(&self) -> Frozen {
        let frozen = self.freezer().freeze(self.keeper.id(), &self.spared).unwrap();
        assert_eq!(frozen.how, self.how, "cgroup v2 must be mounted and writable here: run the tests as root");
        assert_eq!(frozen.refused, [0; 0]);
        frozen
    }

    #[track_caller]
    pub fn thaw(&self) {
        self.freezer().thaw(self.keeper.id(), &self.spared).unwrap();
    }

    pub fn tree(&self) -> Vec<Process> {
        descendants(self.keeper.id(), &self.spared).unwrap()
    }

    /// How long a file in the session's directory is.
    pub fn size(&self, name: &str) -> u64 {
        fs::metadata(self.dir.join(name)).map_or(0, |file| file.len())
    }

    #[track_caller]
    pub fn grows(&self, name: &str) {
        let size = self.size(name);
        eventually(&format!("{name} to grow"), || (self.size(name) > size).then_some(()));
    }

    /// A pid that a program in the session wrote into a file.
    #[track_caller]
    pub fn pid_in(&self, name: &str) -> u32 {
        eventually(&format!("a pid in {name}"), || {
            let text = fs::read_to_string(self.dir.join(name)).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
    }

    /// Whether the kernel says that this process stands still, asked by other means than the crate's.
    pub fn is_still(&self, pid: u32) -> bool {
        match self.how {
            How::Cgroup => fs::read_to_string(format!("/proc/{pid}/cgroup"))
                .unwrap()
                .lines()
                .any(|line| line.starts_with("0::") && line.ends_with(&format!("/holdfast-{}", self.label))),
            How::Signals => {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                status.lines().any(|line| line == "State:\tT (stopped)")
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let started = Instant::now();
        while started.elapsed() < DEADLINE {
            let live: Vec<u32> = self.tree().iter().filter(|process| process.state != 'Z').map(|it| it.pid).collect();
            if live.is_empty() {
                break;
            }
            live.into_iter().for_each(kill);
        }
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        // What is no longer below the keeper, or was spared, is in its directory all the same.
        while started.elapsed() < DEADLINE {
            let live = in_directory(&self.dir);
            if live.is_empty() {
                break;
            }
            live.into_iter().for_each(kill);
        }
        let freezer = Freezer::new(&self.label);
        // The cgroup is empty only when init has reaped them all.
        while started.elapsed() < DEADLINE && leftover(&self.label) {
            freezer.forget();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Processes whose working directory this is.
fn in_directory(dir: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir)).collect()
}

pub fn kill(pid: u32) {
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
}

/// Whether the session's cgroup is still there, wherever cgroup v2 is mounted.
pub fn leftover(label: &str) -> bool {
    cgroup_dir(label).exists()
}

/// Where the session's cgroup is: the keeper is where the tests are.
pub fn cgroup_dir(label: &str) -> PathBuf {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).expect("the tests need cgroup v2");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("cgroup v2 is mounted");
    PathBuf::from(mount.split(' ').nth(1).unwrap()).join(own).join(format!("holdfast-{label}"))
}
