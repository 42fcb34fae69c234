//! A home of its own for each test, and the program run in it.

use holdfast_client::{Connection, Identity};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Who acts: a program without a terminal would be an agent, and these tests are about what a person does.
pub const TESTER: &str = "human:tester";

/// Makes the tester's key in a home.
fn settle_tester(dir: &Path) {
    Identity::load_or_make(&holdfast_types::Home::under(dir), &TESTER.parse().unwrap()).unwrap();
}

/// A temporary home.
pub struct Home {
    /// Removed at the end; none where somebody else owns the directory.
    dir: Option<tempfile::TempDir>,
    path: PathBuf,
}

/// How a run of the program went.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    /// An empty home; nothing runs in it yet.
    pub fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("hfe").tempdir().unwrap();
        settle_tester(dir.path());
        Home { path: dir.path().to_owned(), dir: Some(dir) }
    }

    /// A home in a directory that somebody else makes and removes.
    pub fn at(path: &Path) -> Home {
        settle_tester(path);
        Home { path: path.to_owned(), dir: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where things lie in it.
    pub fn places(&self) -> holdfast_types::Home {
        holdfast_types::Home::under(&self.path)
    }

    /// The program with these arguments, in this home and in an environment without surprises.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command
            .args(args)
            .env_clear()
            .env("HOLDFAST_HOME", &self.path)
            .env("HOLDFAST_ACTOR", TESTER)
            .env("HOME", &self.path)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .current_dir(&self.path)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end; one that hangs fails the test.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ran {
        let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut command = self.command(args);
        command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap());
        let mut child = command.spawn().expect("the program can be started");
        let ended = poll_for(2 * PATIENCE, || child.try_wait().unwrap());
        let status = ended.unwrap_or_else(|| {
            let _ = child.kill();
            let _ = child.wait();
            panic!("holdfast {args:?} hangs")
        });
        let text = |mut file: File| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.read_to_end(&mut bytes)).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ran { status: status.code().unwrap_or(-1), out: text(out), err: text(err) }
    }

    /// What it printed; it must have ended well.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.status, 0, "holdfast {args:?}: {ran:?}");
        ran.out
    }

    /// What it said when it failed, as it must.
    #[track_caller]
    pub fn fails(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_ne!(ran.status, 0, "holdfast {args:?}: {ran:?}");
        ran.err
    }

    /// Its answer as JSON.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.ok(&[&["--json"], args].concat());
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("holdfast {args:?}: {e}: {out}"))
    }

    /// Starts a detached session of a shell script.
    #[track_caller]
    pub fn session(&self, name: &str, script: &str) {
        self.ok(&["new", "-d", "-n", name, "--", "/bin/sh", "-c", script]);
    }

    /// A field of a session that is a number.
    #[track_caller]
    pub fn number(&self, session: &str, field: &str) -> u64 {
        let view = self.json(&["info", session]);
        view[field].as_u64().unwrap_or_else(|| panic!("{field} of {view}"))
    }

    /// The session's size, as `80x24`.
    #[track_caller]
    pub fn size(&self, session: &str) -> String {
        self.json(&["info", session])["size"].as_str().unwrap().to_owned()
    }

    /// How many clients are attached.
    #[track_caller]
    pub fn clients(&self, session: &str) -> usize {
        self.json(&["info", session])["clients"].as_array().unwrap().len()
    }

    /// The session's directory.
    #[track_caller]
    pub fn session_dir(&self, session: &str) -> PathBuf {
        self.path.join("sessions").join(self.json(&["info", session])["id"].as_str().unwrap())
    }

    /// Waits until a session's screen shows a text.
    #[track_caller]
    pub fn until_screen_shows(&self, session: &str, text: &str) {
        let mut last = String::new();
        let found = poll(|| {
            last = self.run(&["screen", session]).out;
            last.contains(text).then_some(())
        });
        assert!(found.is_some(), "waited in vain for {text:?} on the screen of {session}:\n{last}");
    }

    /// A connection to the host that runs.
    pub fn connect(&self) -> Option<Connection> {
        let who = Identity::load(&self.places(), &TESTER.parse().unwrap()).unwrap();
        holdfast_client::connect(&self.places(), &who).ok()
    }

    /// The process of the host, once it answers.
    #[track_caller]
    pub fn host_pid(&self) -> u32 {
        until("an answer of the host", || self.host_answers())
    }

    /// The process of the host if it answers now.
    pub fn host_answers(&self) -> Option<u32> {
        Some(self.connect()?.call::<op::Status>(&Nothing {}).ok()?.pid)
    }

    /// The process that has the host's lock, be it ready or not.
    pub fn lock_holder(&self) -> Option<u32> {
        let inode = std::fs::metadata(self.places().host_lock()).ok()?.ino();
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let held = |line: &&str| line.contains("FLOCK") && line.contains(&format!(":{inode} "));
        locks.lines().filter(|line| !line.contains("->")).find(held)?.split_whitespace().nth(4)?.parse().ok()
    }

    /// Kills the host at once and waits until it is gone.
    #[track_caller]
    pub fn kill_host(&self) -> u32 {
        let pid = self.host_pid();
        kill(pid);
        until("the host's end", || gone(pid).then_some(()));
        pid
    }

    /// Numbers of the processes that belong to this home: their environment or command line names it.
    pub fn processes(&self) -> Vec<u32> {
        let needle = self.path.as_os_str().as_bytes();
        let names_home = |pid: &u32| {
            let file = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let texts = [file("environ"), file("cmdline"), exe.as_os_str().as_bytes().to_vec()];
            texts.iter().any(|text| text.windows(needle.len()).any(|part| part == needle))
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(names_home).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let last = |args: &[&str]| {
            let mut command = Command::new("timeout");
            command.args(["-k", "1", "20", env!("CARGO_BIN_EXE_holdfast")]).args(args);
            let _ =
                command.env("HOLDFAST_HOME", &self.path).env("HOLDFAST_ACTOR", TESTER).stdin(Stdio::null()).output();
        };
        last(&["end", "--all", "--grace", "0"]);
        last(&["host", "stop"]);
        let left = poll_for(Duration::from_secs(10), || Some(self.processes()).filter(Vec::is_empty)).is_none();
        let left = if left { self.processes() } else { Vec::new() };
        let told: Vec<_> = left.iter().map(|pid| format!("{pid} {}", command_line(*pid))).collect();
        left.iter().for_each(|pid| kill(*pid));
        let log = std::fs::read_to_string(self.places().host_log()).unwrap_or_default();
        drop(self.dir.take());
        if std::thread::panicking() {
            return eprintln!("the host's log:\n{log}");
        }
        assert!(told.is_empty(), "processes were left over: {told:?}");
        assert!(!log.contains("panicked at"), "a fault of the host's own:\n{log}");
    }
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
    let pid = Pid::from_raw(pid as i32).expect("a process number");
    let _ = rustix::process::kill_process(pid, signal);
}

/// Polls until the condition gives something.
pub fn poll<T>(condition: impl FnMut() -> Option<T>) -> Option<T> {
    poll_for(PATIENCE, condition)
}

fn poll_for<T>(patience: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Polls until the condition gives something; fails the test when it does not in time.
#[track_caller]
pub fn until<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    match poll(condition) {
        Some(value) => value,
        None => panic!("waited in vain for {what}"),
    }
}
