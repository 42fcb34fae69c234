//! A home of its own for each experiment, and the program run in it as a person or a script runs it.

use crate::terminal::Terminal;
use crate::trial::{Stop, broken, wait};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The human of every experiment.
pub const HUMAN: &str = "human:prover";
/// A command that takes longer than this hangs.
const COMMAND_TIME: Duration = Duration::from_secs(60);

/// The program under test.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    /// Its exit status; -1 where a signal ended it.
    pub status: i32,
    /// What it printed.
    pub out: String,
    /// What it complained about.
    pub err: String,
}

impl Ran {
    /// The code of the error that `--json` printed.
    pub fn code(&self) -> String {
        let error: Value = serde_json::from_str(self.err.trim()).unwrap_or_default();
        error["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Program {
    /// The program at a path.
    pub fn new(path: PathBuf) -> Program {
        Program { path }
    }

    /// What it says its version is.
    pub fn version(&self) -> String {
        let said = Command::new(&self.path).arg("--version").output();
        said.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
    }

    /// Whether it has a command.
    pub fn has(&self, words: &[&str]) -> bool {
        let asked = self.command(words).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    /// The program, without what an enclosing session or home left in the environment.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars_os() {
            // Where CRIU is says nothing of who or where.
            if name.to_string_lossy().starts_with("HOLDFAST") && name != "HOLDFAST_CRIU" {
                command.env_remove(name);
            }
        }
        command.args(args).stdin(Stdio::null());
        command
    }
}

/// A home; its sessions and its host end with it.
pub struct Place {
    program: Program,
    dir: PathBuf,
}

impl Place {
    /// Makes a home with a human in it.
    ///
    /// Only a process at a terminal is taken for a human, so this opens one.
    pub fn new(program: &Program) -> Result<Place, Stop> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| broken("random bytes", error))?;
        let name = format!("holdfast-prove-{:016x}", u64::from_ne_bytes(random));
        let dir = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&dir).map_err(|error| broken("a directory for the experiment", error))?;
        let place = Place { program: program.clone(), dir };
        let mut terminal = Terminal::start(place.command(&["actor", "new", HUMAN]).env_remove("HOLDFAST_ACTOR"))?;
        if terminal.end()? != 0 {
            let why = terminal.text();
            return Err(Stop::NotProvided(format!(
                "no human can act here; run `holdfast prove` at a terminal, outside sessions: {}",
                why.trim()
            )));
        }
        Ok(place)
    }

    /// The program under test.
    pub fn program(&self) -> &Path {
        &self.program.path
    }

    /// Where the program keeps its state.
    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// A path in the home's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The program in this home, as the human.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program.command(args);
        self.settle(&mut command).env("HOLDFAST_ACTOR", HUMAN).current_dir(&self.dir);
        command
    }

    /// Has a command find this home, and the program where it needs it.
    pub fn settle<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("HOLDFAST_HOME", self.home()).env("HOLDFAST_BIN", &self.program.path).env("SHELL", "/bin/bash")
    }

    /// Runs the program.
    pub fn run(&self, args: &[&str]) -> Result<Ran, Stop> {
        self.run_with(args, &[])
    }

    /// Runs the program with more in its environment.
    pub fn run_with(&self, args: &[&str], variables: &[(&str, &OsStr)]) -> Result<Ran, Stop> {
        let mut command = self.command(args);
        finish(command.envs(variables.iter().copied()), &shown(args))
    }

    /// Runs the program as another actor.
    pub fn run_as(&self, actor: &str, args: &[&str]) -> Result<Ran, Stop> {
        self.run_with(args, &[("HOLDFAST_ACTOR", OsStr::new(actor))])
    }

    /// Runs the program, which must succeed.
    pub fn ok(&self, args: &[&str]) -> Result<String, Stop> {
        succeeded(args, self.run(args)?)
    }

    /// The same as another actor.
    pub fn ok_as(&self, actor: &str, args: &[&str]) -> Result<String, Stop> {
        succeeded(args, self.run_as(actor, args)?)
    }

    /// Runs the program and reads the JSON that it prints.
    pub fn json(&self, args: &[&str]) -> Result<Value, Stop> {
        let out = self.ok(&[args, &["--json"]].concat())?;
        serde_json::from_str(&out).map_err(|error| broken(&args.join(" "), error))
    }

    /// The journal's records of a session.
    pub fn journal(&self, session: &str) -> Result<Vec<Value>, Stop> {
        let out = self.ok(&["journal", session, "--json"])?;
        Ok(out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Creates an agent, a service or a device.
    pub fn actor(&self, handle: &str) -> Result<(), Stop> {
        self.ok(&["actor", "new", handle]).map(drop)
    }

    /// The host's process.
    pub fn host_pid(&self) -> Result<u32, Stop> {
        let status = self.json(&["host", "status"])?;
        status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).ok_or_else(|| broken("host status", status))
    }

    /// Kills the host as the kernel would, and waits until it is gone.
    pub fn kill_host(&self) -> Result<u32, Stop> {
        let pid = self.host_pid()?;
        kill(pid);
        wait("the killed host is gone", || !alive(pid))?;
        Ok(pid)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.run(&["end", "--all", "--grace", "0"]);
        let _ = self.run(&["host", "stop"]);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn shown(args: &[&str]) -> String {
    format!("holdfast {}", args.join(" "))
}

fn succeeded(args: &[&str], ran: Ran) -> Result<String, Stop> {
    match ran.status {
        0 => Ok(ran.out),
        status => Err(Stop::Broken(format!("`{}` exited with {status}: {}", shown(args), ran.err.trim()))),
    }
}

/// Runs a command to its end; one that hangs is killed.
pub fn finish(command: &mut Command, what: &str) -> Result<Ran, Stop> {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| broken(what, error))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let deadline = Instant::now() + COMMAND_TIME;
    let status = loop {
        match child.try_wait().map_err(|error| broken(what, error))? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Stop::Broken(format!("`{what}` did not end within {} s", COMMAND_TIME.as_secs())));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let text = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ok(Ran { status: status.code().unwrap_or(-1), out: text(out), err: text(err) })
}

fn reader(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether a process runs; one that waits to be reaped does not.
pub fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z" && state != "X"))
}

/// When a process started, in ticks since boot: with its id it names one process and no other.
pub fn started(pid: u32) -> Option<String> {
    stat(pid)?.get(19).cloned()
}

/// The fields of `/proc/PID/stat` behind the name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// Kills a process by its id.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
