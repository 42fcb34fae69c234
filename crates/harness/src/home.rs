//! A home of its own for each test, and the program run in it.

use crate::pauses::Pause;
use crate::processes::{gone, kill, leaves_nothing, processes_of, program};
use crate::wait::{PATIENCE, poll, until};
use holdfast_client::{Connection, Identity};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use serde_json::Value;
use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

/// Who acts: a program without a terminal would be an agent, and most tests are about what a person does.
pub const TESTER: &str = "human:tester";

/// Makes an actor's key in a home; the program itself makes no human where there is no terminal.
pub fn settle(dir: &Path, actor: &str) {
    let handle = actor.parse().expect("a handle");
    Identity::load_or_make(&holdfast_types::Home::under(dir), &handle).expect("a key");
}

/// A temporary home.
pub struct Home {
    /// Removed at the end; none where somebody else owns the directory.
    dir: Option<tempfile::TempDir>,
    path: PathBuf,
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

impl Ran {
    /// Waits for a program and all it says; nothing, and it is ended, where that takes too long.
    fn of(child: Child) -> Option<Ran> {
        let pid = child.id();
        let (ended, ends) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output()));
        match ends.recv_timeout(2 * PATIENCE) {
            Ok(output) => Some(output.expect("the program ends").into()),
            Err(_) => {
                kill(pid);
                None
            }
        }
    }
}

impl Home {
    /// An empty home where [`TESTER`] has a key; nothing runs in it yet.
    pub fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("hf").tempdir().expect("a temporary directory");
        let mut home = Home::at(dir.path());
        home.dir = Some(dir);
        home
    }

    /// A home in a directory that somebody else makes and removes.
    pub fn at(path: &Path) -> Home {
        settle(path, TESTER);
        Home { path: path.to_owned(), dir: None }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path below it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where things lie in it.
    pub fn places(&self) -> holdfast_types::Home {
        holdfast_types::Home::under(&self.path)
    }

    /// The program with these arguments, in this home and in an environment without surprises.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(program());
        command
            .args(args)
            .env_clear()
            .env("HOLDFAST_HOME", &self.path)
            .env("HOLDFAST_ACTOR", TESTER)
            .env("HOME", &self.path)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env("HOLDFAST_CRIU", crate::processes::criu())
            .env("LANG", "C.UTF-8")
            // Tests compare whole screens; those of the greeting and the title ask for them.
            .env("HOLDFAST_GREETING", "false")
            .env("HOLDFAST_TITLE", "false")
            .env(holdfast_pause::DIRECTORY, self.path.join("pause"))
            .env(holdfast_pause::TOP, std::process::id().to_string())
            .current_dir(&self.path)
            .stdin(Stdio::null());
        command
    }

    /// From now on the host stops where it comes to this point; see [`holdfast_pause`] for what a point is.
    pub fn pause(&self, point: &str) -> Pause {
        Pause::at(&self.path.join("pause"), point)
    }

    /// Runs the program to its end; one that hangs fails the test.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with_input(args, b"")
    }

    /// Runs the program with something on its standard input, or with none.
    #[track_caller]
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input).expect("the program reads its input");
        }
        Ran::of(child).unwrap_or_else(|| panic!("holdfast {args:?} hangs"))
    }

    /// Runs the program as another actor.
    #[track_caller]
    pub fn run_as(&self, actor: &str, args: &[&str]) -> Ran {
        self.run(&[&["--as", actor], args].concat())
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
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.status, 0, "holdfast {args:?}: {ran}");
        ran.out
    }

    /// What it said when it failed, as it must.
    #[track_caller]
    pub fn fails(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_ne!(ran.status, 0, "holdfast {args:?}: {ran}");
        ran.err
    }

    /// Its answer to a command with `--json`, which is added.
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
            last.contains(text)
        });
        assert!(found.is_some(), "waited in vain for {text:?} on the screen of {session}:\n{last}");
    }

    /// A connection to the host that runs.
    pub fn connect(&self) -> Option<Connection> {
        let who = Identity::load(&self.places(), &TESTER.parse().unwrap()).unwrap();
        holdfast_client::connect(&self.places(), &who).ok()
    }

    /// The process of the host, which runs or is about to: one that was killed may be coming back.
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

    /// Kills the host at once and waits until it is gone, and its lock with it: of a killed process the first thread is a zombie
    /// before the others have let go of its files.
    #[track_caller]
    pub fn kill_host(&self) -> u32 {
        let pid = self.host_pid();
        kill(pid);
        until("the host's end", || gone(pid) && self.lock_holder() != Some(pid));
        pid
    }

    /// Numbers of the processes that belong to this home: their environment, command line or program names it.
    pub fn processes(&self) -> Vec<u32> {
        processes_of(&self.path)
    }

    /// The same without a keeper that was started ahead and has no session yet.
    pub fn processes_at_work(&self) -> Vec<u32> {
        let waits = self.waiting_keeper();
        self.processes().into_iter().filter(|pid| waits != Some(*pid)).collect()
    }

    /// The keeper that was started ahead and has no session yet, if there is one.
    pub fn waiting_keeper(&self) -> Option<u32> {
        self.processes().into_iter().find(|pid| crate::command_line(*pid).contains(" ses_...."))
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
        settings.add_filter(r"you are agent:[a-z0-9._-]+", "you are agent:[login]");
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
}

impl Default for Home {
    fn default() -> Home {
        Home::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let last = |args: &[&str]| {
            let spawned = self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            // One that fails or hangs left something over, which is found next.
            let _ = spawned.map(Ran::of);
        };
        if self.path.join("flows.db").exists() {
            last(&["flow", "stop"]);
        }
        if self.path.join("bots").exists() {
            last(&["bot", "stop"]);
        }
        last(&["end", "--all", "--grace", "0"]);
        last(&["host", "stop"]);
        leaves_nothing(&self.path, &self.places().host_log(), || {
            if self.path.join("flows.db").exists() {
                last(&["flow", "stop"]);
            }
            last(&["host", "stop"]);
        });
        drop(self.dir.take());
    }
}
