//! Where a soak happens: a home on a small disk of its own where root may have one, a host that listens, a relay, a second home
//! behind it, and the sessions.

use std::fs;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Plan;
use super::clients::Sdks;
use super::log::Log;
use crate::step::works;

/// Whoever prepares everything: relays and invites to a whole host are for humans.
pub const HUMAN: &str = "human:soak";
/// The operators behind the relay.
pub const GUEST: &str = "agent:guest";
/// A command that takes longer hangs.
const COMMAND_TIME: Duration = Duration::from_secs(90);
/// Of a session on the small disk: ring, journal, history, and room for what is forgotten later.
const DISK_PER_SESSION_MIB: usize = 4;

/// Places of this process so far.
static PLACES: AtomicUsize = AtomicUsize::new(0);

/// What a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts, line by line: its output has no gap.
    Counts,
    /// The same, by another program.
    CountsInPython,
    /// A shell, for runs.
    Shell,
    /// Gives back each typed line once. By keys, since a line without echo is a password, which no agent may type.
    Repeats,
    /// An editor.
    Edits,
    /// A full screen that draws itself anew.
    Watches,
}

pub const KINDS: &[Kind] = &[
    Kind::Counts,
    Kind::Shell,
    Kind::Repeats,
    Kind::CountsInPython,
    Kind::Edits,
    Kind::Shell,
    Kind::Repeats,
    Kind::Watches,
];

impl Kind {
    fn command(self) -> &'static [&'static str] {
        match self {
            Kind::Counts => &["sh", "-c", "n=0; while :; do n=$((n + 1)); echo \"n $n\"; sleep 0.3; done"],
            Kind::CountsInPython => &[
                "python3",
                "-uc",
                "import itertools, time\nfor n in itertools.count(1):\n    print('n', n)\n    time.sleep(0.2)",
            ],
            Kind::Shell => &["bash", "--norc"],
            Kind::Repeats => &["sh", "-c", "stty -echo -icanon; echo ready; exec cat"],
            Kind::Edits => &["vim", "-u", "NONE", "-n"],
            Kind::Watches => &["top", "-d", "3"],
        }
    }
}

/// A session, and the process that it was when it began.
#[derive(Debug, Clone)]
pub struct Session {
    pub name: String,
    pub kind: Kind,
    pub pid: u32,
    pub started: String,
    pub keeper: u32,
}

/// How a command went.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The code of its error, from `--json`.
    pub fn code(&self) -> String {
        let error =
            self.err.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok()).unwrap_or_default();
        error["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The place.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
    program: PathBuf,
    /// Whether the home is on a disk of its own, and of what size.
    pub disk_mib: Option<usize>,
    /// What says how far the place's clock is off.
    clock: Option<PathBuf>,
    pub address: String,
    pub token: String,
    pub sessions: Vec<Session>,
    relay: Mutex<Option<Child>>,
    relay_address: String,
    /// What the second home calls this one.
    pub far_name: String,
    pub sdks: Sdks,
}

impl Place {
    pub fn new(program: &Path, plan: &Plan, sdks: Sdks, log: &Log) -> Result<Place> {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        // Short: the paths of sockets are.
        let dir = std::env::temp_dir().join(format!("hfsoak{}.{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        for name in ["home", "far", "work"] {
            fs::DirBuilder::new().mode(0o700).create(dir.join(name))?;
        }
        let mut place = Place {
            dir,
            program: program.to_owned(),
            disk_mib: None,
            clock: None,
            address: String::new(),
            token: String::new(),
            sessions: vec![],
            relay: Mutex::new(None),
            relay_address: "127.0.0.1:0".into(),
            far_name: String::new(),
            sdks,
        };
        // Whatever fails from here on, the place is cleared away.
        if let Err(error) = place.furnish(plan, log) {
            place.end(log);
            return Err(error);
        }
        Ok(place)
    }

    fn furnish(&mut self, plan: &Plan, log: &Log) -> Result<()> {
        if plan.chaos {
            self.small_disk(plan, log);
            self.own_clock(log)?;
        }
        // Only a process at a terminal makes a human.
        let make = format!("'{}' actor new {HUMAN}", self.program.display());
        let mut script = Command::new("script");
        self.settle(script.args(["-qec", &make, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::null()));
        if !script.status().context("cannot run script(1)")?.success() {
            bail!("cannot create {HUMAN}");
        }
        let status: Value =
            serde_json::from_str(&self.ok(HUMAN, &["--json", "host", "start", "--http", "127.0.0.1:0"])?)?;
        let url = status["http"].as_str().context("the host does not listen")?;
        self.address = url.trim_start_matches("http://").to_owned();
        self.token = self.ok("agent:web", &["token", "new"])?.trim().to_owned();
        self.start_relay()?;
        self.ok(HUMAN, &["relay", "add", &format!("http://{}", self.relay_address)])?;
        let invite: Value = serde_json::from_str(&self.ok(HUMAN, &["--json", "invite", "--host-wide"])?)?;
        let link = invite["link"].as_str().context("no link")?;
        let accepted = self.far(&["--json", "accept", link])?;
        let accepted: Value =
            serde_json::from_str(&accepted.out).with_context(|| format!("accept: {}", accepted.err))?;
        self.far_name = accepted["host"].as_str().context("no name for the host")?.to_owned();
        for (number, kind) in KINDS.iter().cycle().take(plan.sessions).enumerate() {
            self.start_session(&format!("s{number}"), *kind)?;
        }
        Ok(())
    }

    /// A disk that can be filled without filling the machine's.
    fn small_disk(&mut self, plan: &Plan, log: &Log) {
        let mib = 128 + plan.sessions * DISK_PER_SESSION_MIB;
        let size = format!("size={mib}m,mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "soak"]).arg(self.home()).output();
        match mounted {
            Ok(output) if output.status.success() => self.disk_mib = Some(mib),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                log.note(format!("a full disk: not provided ({why})"));
            }
            Err(error) => log.note(format!("a full disk: not provided (mount: {error})")),
        }
    }

    /// A clock that can be set without setting the machine's: a library between all programs of the place and the kernel.
    fn own_clock(&mut self, log: &Log) -> Result<()> {
        let source = self.dir.join("clock.c");
        fs::write(&source, include_str!("clock.c"))?;
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(self.dir.join("clock.so")).arg(&source);
        match compile.output() {
            Ok(output) if output.status.success() => {
                let path = self.dir.join("clock");
                fs::write(&path, 0_i64.to_ne_bytes())?;
                self.clock = Some(path);
            }
            Ok(output) => log.note(format!(
                "clock jumps: not provided ({})",
                String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default()
            )),
            Err(error) => log.note(format!("clock jumps: not provided (cc: {error})")),
        }
        Ok(())
    }

    /// Sets the clock by so many seconds before or behind the machine's; false where the place has none of its own.
    pub fn set_clock(&self, seconds: i64) -> Result<bool> {
        let Some(clock) = &self.clock else { return Ok(false) };
        // In place: programs have it mapped.
        fs::OpenOptions::new().write(true).open(clock)?.write_all(&seconds.to_ne_bytes())?;
        Ok(true)
    }

    fn start_session(&mut self, name: &str, kind: Kind) -> Result<()> {
        let work = self.work();
        let mut words =
            vec!["new", "-d", "-n", name, "--cwd", work.to_str().context("a path")?, "--size", "80x24", "--"];
        words.extend(kind.command());
        self.ok("agent:crew", &words)?;
        let info: Value = serde_json::from_str(&self.ok("agent:crew", &["--json", "info", name])?)?;
        let number = |field: &str| {
            info[field].as_u64().and_then(|pid| u32::try_from(pid).ok()).with_context(|| format!("{info}"))
        };
        let (pid, keeper) = (number("pid")?, number("keeper_pid")?);
        let started = started(pid).with_context(|| format!("{name} ended at once"))?;
        self.sessions.push(Session { name: name.to_owned(), kind, pid, started, keeper });
        Ok(())
    }

    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Where the sessions work.
    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    pub fn of_kind(&self, kind: impl Fn(Kind) -> bool) -> Vec<&Session> {
        self.sessions.iter().filter(|session| kind(session.kind)).collect()
    }

    fn settle<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("HOLDFAST_TEST_TOP", std::process::id().to_string());
        if let Some(clock) = &self.clock {
            command.env("LD_PRELOAD", self.dir.join("clock.so")).env("SOAK_CLOCK", clock);
        }
        // Where `cargo xtask test` fetched CRIU to: beside the directory of the program's profile.
        let criu = self.program.ancestors().nth(2).map(|target| target.join("criu/criu"));
        if let Some(criu) = criu.filter(|criu| criu.is_file() && std::env::var_os("HOLDFAST_CRIU").is_none()) {
            command.env("HOLDFAST_CRIU", criu);
        }
        command.env("HOLDFAST_HOME", self.home()).env("HOME", self.work()).env("SHELL", "/bin/bash");
        command.env("TERM", "xterm-256color").env_remove("HOLDFAST_ACTOR").current_dir(self.work())
    }

    /// The program, as an actor.
    pub fn command(&self, actor: &str, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.settle(command.args(["--as", actor]).args(args).stdin(Stdio::null()));
        command
    }

    /// Another program, with the same environment; where it needs a host it finds the program that is soaked.
    pub fn other(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.settle(&mut command).env("HOLDFAST_BIN", &self.program);
        command
    }

    /// Runs it to its end; one that hangs is killed and is an error.
    pub fn run(&self, actor: &str, args: &[&str]) -> Result<Ran> {
        finish(self.command(actor, args))
    }

    /// Runs it from the second home, which the relay alone joins with this one.
    pub fn far(&self, args: &[&str]) -> Result<Ran> {
        let mut command = self.command(GUEST, args);
        command.env("HOLDFAST_HOME", self.dir.join("far"));
        finish(command)
    }

    fn ok(&self, actor: &str, args: &[&str]) -> Result<String> {
        let ran = self.run(actor, args)?;
        if ran.status != 0 {
            bail!("holdfast {}: {}", args.join(" "), ran.err.trim());
        }
        Ok(ran.out)
    }

    pub fn host_pid(&self) -> Option<u32> {
        let status = self.run(HUMAN, &["--json", "host", "status"]).ok()?;
        serde_json::from_str::<Value>(&status.out).ok()?["pid"].as_u64()?.try_into().ok()
    }

    fn start_relay(&mut self) -> Result<()> {
        let (child, address) = self.relay_at("127.0.0.1:0")?;
        self.relay_address = address;
        *self.relay.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(child);
        Ok(())
    }

    fn relay_at(&self, listen: &str) -> Result<(Child, String)> {
        let mut command = self.command(HUMAN, &["relay", "--listen", listen]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("piped")?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)?;
        let Some((_, address)) = line.trim().rsplit_once("http://") else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the relay does not listen: {line:?}");
        };
        Ok((child, address.to_owned()))
    }

    /// Kills the relay and starts it again at its address.
    pub fn kill_relay(&self) -> Result<()> {
        let mut relay = self.relay.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(mut child) = relay.take() {
            child.kill()?;
            child.wait()?;
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match self.relay_at(&self.relay_address) {
                Ok((child, _)) => {
                    *relay = Some(child);
                    return Ok(());
                }
                Err(error) if Instant::now() > deadline => return Err(error),
                // The port of a killed process is free a moment later.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Ends everything; what does not end is a violation.
    pub fn end(mut self, log: &Log) {
        for args in [["flow", "stop"].as_slice(), &["end", "--all", "--grace", "0"], &["host", "stop"]] {
            let _ = self.run(HUMAN, args);
        }
        if let Some(mut relay) = self.relay.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
            let _ = relay.kill();
            let _ = relay.wait();
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut left = processes_of(&self.dir);
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(100));
            left = processes_of(&self.dir);
        }
        for pid in left {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
            log.violation(format!("a process is left over: {pid} {}", line.trim()));
            signal(pid, "KILL");
        }
        if !log.clean() {
            // The small disk goes; what the host said stays.
            let _ = fs::copy(self.home().join("host.log"), self.dir.join("host.log"));
        }
        if self.disk_mib.is_some() && !works(Command::new("umount").arg(self.home())) {
            works(Command::new("umount").arg("-l").arg(self.home()));
        }
        if log.clean() {
            let _ = fs::remove_dir_all(&self.dir);
        } else {
            log.note(format!("what is left for looking at: {}", self.dir.display()));
        }
    }
}

fn finish(mut command: Command) -> Result<Ran> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let reader = |from: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = vec![];
            if let Some(mut from) = from {
                let _ = from.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = reader(child.stdout.take().map(|from| Box::new(from) as Box<dyn Read + Send>));
    let err = reader(child.stderr.take().map(|from| Box::new(from) as Box<dyn Read + Send>));
    let deadline = Instant::now() + COMMAND_TIME;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            bail!("`holdfast {}` did not end within {} s", words.join(" "), COMMAND_TIME.as_secs());
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    Ok(Ran {
        status: status.code().unwrap_or(-1),
        out: out.join().unwrap_or_default(),
        err: err.join().unwrap_or_default(),
    })
}

/// When a process started, in ticks since boot; nothing of one that ended.
pub fn started(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18).map(str::to_owned) }
}

/// How many files a process has open.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Its resident memory.
pub fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}

/// Sends a signal to one process.
pub fn signal(pid: u32, name: &str) -> bool {
    works(Command::new("kill").args(["-s", name, &pid.to_string()]))
}

/// The processes whose environment or command line names a directory, except this one.
fn processes_of(dir: &Path) -> Vec<u32> {
    let needle = dir.as_os_str().as_encoded_bytes();
    let names = |pid: &u32| {
        let has = |file: &str| {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            bytes.windows(needle.len()).any(|part| part == needle)
        };
        *pid != std::process::id() && (has("environ") || has("cmdline"))
    };
    let Ok(all) = fs::read_dir("/proc") else { return vec![] };
    all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(names).collect()
}
