//! A home of its own for each test, and the program run in it.
//!
//! `Home::new()` makes a temporary `HOLDFAST_HOME` where [`TESTER`] is at home, and who acts unless a test says otherwise;
//! [`Home::run`], [`Home::ok`] and [`Home::json`] run the program in it;
//! [`until`] polls for a condition. When a home is dropped its sessions are ended and its host stopped, and a process
//! that is left over fails the test (and is ended by its number).

use serde_json::Value;
use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Who acts: a program without a terminal would be an agent, and most tests are about what a person does.
pub const TESTER: &str = "human:tester";

/// Makes an actor's key in a home; the program itself makes no human where there is no terminal.
pub fn settle(dir: &Path, actor: &str) {
    let handle = actor.parse().expect("a handle");
    holdfast_client::Identity::load_or_make(&holdfast_types::Home::under(dir), &handle).expect("a key");
}

/// A temporary home.
pub struct Home {
    dir: tempfile::TempDir,
}

/// How a run of the program went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit status.
    pub status: i32,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl fmt::Display for Ran {
    /// As snapshots show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.out)?;
        if !self.err.is_empty() {
            write!(f, "--- stderr\n{}", self.err)?;
        }
        if self.status != 0 {
            write!(f, "--- status {}", self.status)?;
        }
        Ok(())
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Home {
    /// An empty home; nothing runs in it yet.
    pub fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("hf").tempdir().expect("a temporary directory");
        settle(dir.path(), TESTER);
        Home { dir }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A path below it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The program with these arguments, in this home and in an environment without surprises.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command
            .args(args)
            .env_clear()
            .env("HOLDFAST_HOME", self.path())
            .env("HOLDFAST_ACTOR", TESTER)
            .env("HOME", self.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("the program can be started").into()
    }

    /// Runs the program as another actor.
    pub fn run_as(&self, actor: &str, args: &[&str]) -> Ran {
        self.run(&[&["--as", actor], args].concat())
    }

    /// Runs the program with something on its standard input.
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        child.stdin.take().expect("piped").write_all(input).expect("the program reads its input");
        child.wait_with_output().expect("the program ends").into()
    }

    /// Runs these one after the other and gives what each told, as a person would see it; the first word of each is who.
    pub fn told(&self, calls: &[&[&str]]) -> String {
        let mut told = String::new();
        for call in calls {
            let [who, args @ ..] = call else { continue };
            let ran = self.run_as(who, args);
            told.push_str(&format!("{who} $ holdfast {}\n{}\n", args.join(" "), ran.to_string().trim_end()));
        }
        told
    }

    /// What it printed; it must have ended well.
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.status, 0, "holdfast {args:?}: {ran}");
        ran.out
    }

    /// Its answer to a command with `--json`, which is added.
    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.ok(&[&["--json"], args].concat());
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("holdfast {args:?}: {e}: {out}"))
    }

    /// Starts a detached session that runs a shell script.
    pub fn session(&self, name: &str, script: &str) {
        self.ok(&["new", "-d", "-n", name, "--", "/bin/sh", "-c", script]);
    }

    /// The process of the host, which runs or is about to: one that was killed may be coming back.
    pub fn host_pid(&self) -> u32 {
        let mut said = String::new();
        until("an answer of the host", || {
            let ran = self.run(&["--json", "host", "status"]);
            said = ran.out;
            ran.status == 0
        });
        let status: Value = serde_json::from_str(&said).expect("its answer");
        u32::try_from(status["pid"].as_u64().expect("a process number")).expect("a process number")
    }

    /// Waits until a session's screen shows a text.
    pub fn until_screen_shows(&self, session: &str, text: &str) {
        let mut last = String::new();
        until(&format!("{text:?} on the screen of {session}"), || {
            last = self.ok(&["screen", session]);
            last.contains(text)
        });
    }

    /// Makes snapshots within the scope free of what differs from run to run.
    #[must_use = "it holds until it is dropped"]
    pub fn settle_snapshots(&self) -> insta::internals::SettingsBindDropGuard {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(true);
        settings.add_filter(&self.path().display().to_string().replace('.', r"\."), "[home]");
        settings.add_filter(r"ses_[0-9a-z]{26}", "[id]");
        settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(\d+[smhd] ago\)", "[moment]");
        // A column of a table keeps its width.
        settings.add_filter(r" (\d[smhd] |\d\d[smhd])  ", " 0s   ");
        settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(in \d+[smhd]\)", "[moment]");
        settings.add_filter(r"\b(for|idle|free in) \d+s", "$1 [time]");
        settings.add_filter(r"\b[0-9a-f]{16}\b", "[key 0123456789]");
        settings.add_filter(r"\b[0-9a-f]{64}\b", "[key]");
        settings.add_filter(r"taken for agent:[a-z0-9._-]+", "taken for agent:[login]");
        settings.add_filter(r#""how": "(cgroup|signals)""#, r#""how": "[how]""#);
        settings.add_filter(r#"("\w*us"): \d+"#, "$1: [us]");
        settings.add_filter(r"process \d+", "process [pid]");
        settings.add_filter(r"\(was \d+\)", "(was [pid])");
        settings.add_filter(r"(?m)^(process|keeper)  ( *)\d+", "$1  $2[pid]");
        settings.add_filter(r#"("(?:keeper_)?pid"): \d+"#, "$1: [pid]");
        settings.add_filter(r#"("\w+_ms"): \d+"#, "$1: [ms]");
        settings.add_filter(r#"(version"?:? +"?)\d+\.\d+\.\d+"#, "$1[version]");
        settings.bind_to_scope()
    }

    /// Numbers of the processes that belong to this home: their environment, command line or file names it.
    pub fn processes(&self) -> Vec<u32> {
        let needle = self.path().as_os_str().as_bytes();
        let names_home = |pid: &u32| {
            let file = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let texts = [file("environ"), file("cmdline"), exe.as_os_str().as_bytes().to_vec()];
            texts.iter().any(|text| text.windows(needle.len()).any(|part| part == needle))
        };
        let all = std::fs::read_dir("/proc").expect("/proc").flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(names_home).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.run(&["end", "--all", "--grace", "0"]);
        let _ = self.run(&["host", "stop"]);
        let mut left = Vec::new();
        holds_within(Duration::from_secs(5), || {
            left = self.processes();
            left.is_empty()
        });
        let told: Vec<_> = left.iter().map(|pid| format!("{pid} {}", command_line(*pid))).collect();
        left.iter().for_each(|pid| kill(*pid));
        let log = holdfast_types::Home::under(self.path()).host_log();
        let log = std::fs::read_to_string(log).unwrap_or_default();
        if std::thread::panicking() {
            return eprintln!("the host's log:\n{log}");
        }
        assert!(left.is_empty(), "processes were left over: {told:?}");
        assert!(!log.contains("panicked at"), "a fault of the host's own:\n{log}");
    }
}

/// Ends a process by its number, at once.
pub fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process number");
    // It may be gone by now.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

fn command_line(pid: u32) -> String {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ")
}

/// Polls until a condition holds; fails the test when it does not in time.
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(holds_within(PATIENCE, holds), "waited in vain for {what}");
}

/// Polls for a condition; says whether it came to hold in time.
pub fn holds_within(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
