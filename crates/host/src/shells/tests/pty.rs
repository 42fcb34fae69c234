//! A shell in a terminal, started as the host would, and what it told.

use super::super::keys::keys_for;
use super::super::state::{State, parse_state};
use super::super::{Kind, install, integrate, without_line_mark};
use crate::store::checksum;
use holdfast_screen::{PlainText, Screen, ShellMark};
use holdfast_types::Size;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Far more than any shell needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a shell finds when it starts.
#[derive(Default)]
pub struct Setting<'a> {
    /// The file an interactive shell of this kind reads.
    pub rc: &'a str,
    /// More files, relative to the home directory.
    pub files: &'a [(&'a str, &'a str)],
    pub arguments: &'a [&'a str],
    pub argv0: Option<&'a str>,
    /// `K=V`; `~` at the start of a value is the home directory.
    pub env: &'a [(&'a str, &'a str)],
}

#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub output: String,
}

impl Ran {
    /// The output as text, its blanks made one.
    pub fn words(&self) -> String {
        let mut plain = Vec::new();
        PlainText::new().feed(without_line_mark(self.output.as_bytes()), &mut plain);
        String::from_utf8_lossy(&plain).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Told {
    Prompt { last: Option<i32> },
    More,
    Reads,
    Start(Option<String>),
    End(Option<i32>, Option<String>),
}

pub struct Live {
    kind: Kind,
    child: Child,
    terminal: File,
    screen: Screen,
    bytes: Vec<u8>,
    told: VecDeque<(u64, Told)>,
    cwd: String,
    state: Option<u8>,
    runs: u64,
    pub dir: PathBuf,
    home: tempfile::TempDir,
}

impl Live {
    /// Starts a shell and waits for its first prompt.
    pub fn start(kind: Kind, setting: &Setting) -> Live {
        let mut live = Live::begin(kind, setting);
        live.idle();
        live
    }

    pub fn begin(kind: Kind, setting: &Setting) -> Live {
        let home = tempfile::tempdir().unwrap();
        let (program, rc) = match kind {
            Kind::Bash => ("bash", ".bashrc"),
            Kind::Zsh => ("zsh", ".zshrc"),
            Kind::Fish => ("fish", ".config/fish/config.fish"),
        };
        for (name, text) in [(rc, setting.rc)].iter().chain(setting.files) {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let at_home = |value: &str| match value.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", home.path().display()),
            None => value.to_owned(),
        };
        let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
        let path = std::env::var("PATH").unwrap();
        let mut env: Vec<Vec<u8>> =
            [("HOME", "~"), ("PATH", &path), ("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("USER", &user)]
                .iter()
                .chain(setting.env)
                .map(|(name, value)| format!("{name}={}", at_home(value)).into_bytes())
                .collect();
        // A quote and a blank in the path: everything must be quoted.
        let dir = home.path().join("it's a session");
        let scripts = install(&home.path().join("state dir")).unwrap();
        let command: Vec<String> =
            [program].iter().chain(setting.arguments).map(|argument| (*argument).to_owned()).collect();
        let integrated = integrate(&command, setting.argv0, &mut env, &scripts, &dir).expect("a plain start");
        integrated.prepare(&dir).unwrap();
        let (terminal, child) = spawn(&integrated.argv, setting.argv0.unwrap_or(program), env, home.path());
        Live {
            kind,
            child,
            terminal: terminal.into(),
            screen: Screen::new(Size::clamped(80, 24), 0),
            bytes: Vec::new(),
            told: VecDeque::new(),
            cwd: String::new(),
            state: None,
            runs: 0,
            dir,
            home,
        }
    }

    pub fn write(&mut self, keys: &[u8]) {
        self.terminal.write_all(keys).unwrap();
    }

    /// Types, and waits for the echo if told so.
    pub fn type_echoed(&mut self, text: &str, wait: bool) {
        let from = self.bytes.len();
        self.write(text.as_bytes());
        let deadline = Instant::now() + PATIENCE;
        while wait && !String::from_utf8_lossy(&self.bytes[from..]).contains(text) {
            assert!(self.read(deadline), "gone before it echoed {text:?}");
        }
    }

    /// Reads once; false at the end.
    fn read(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{:?} says no more: {:?}\n{}", self.kind, self.told, self.raw().escape_debug());
        let timeout = rustix::event::Timespec::try_from(left).unwrap();
        if poll(&mut [PollFd::new(&self.terminal, PollFlags::IN)], Some(&timeout)).unwrap() == 0 {
            return true;
        }
        let mut buffer = [0; 65_536];
        let Ok(count @ 1..) = self.terminal.read(&mut buffer) else { return false };
        self.bytes.extend_from_slice(&buffer[..count]);
        self.screen.feed(&buffer[..count]);
        for reply in self.screen.take_replies() {
            self.write(&reply.bytes);
        }
        for mark in self.screen.take_marks() {
            let token = |token: Option<&str>| token.map(str::to_owned);
            let told = match mark.kind.shell() {
                None => continue,
                Some(ShellMark::Cwd(path)) => {
                    path.clone_into(&mut self.cwd);
                    continue;
                }
                Some(ShellMark::PromptStart { last, state, .. }) => {
                    self.state = state.or(self.state);
                    Told::Prompt { last }
                }
                Some(ShellMark::Continuation) => Told::More,
                Some(ShellMark::PromptEnd | ShellMark::Line { .. }) => Told::Reads,
                Some(ShellMark::CommandStart { token: t }) => Told::Start(token(t)),
                Some(ShellMark::CommandEnd { status, token: t }) => Told::End(status, token(t)),
            };
            self.told.push_back((mark.at, told));
        }
        true
    }

    fn next(&mut self) -> (u64, Told) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            assert!(self.read(deadline), "{:?} is gone: {}", self.kind, self.raw().escape_debug());
        }
    }

    pub fn idle(&mut self) {
        while self.next().1 != Told::Reads {}
    }

    /// The next marks, in short.
    pub fn log(&mut self, count: usize) -> String {
        let mut short = |_| match self.next().1 {
            Told::Prompt { last } => format!("A{}", last.unwrap_or(-1)),
            Told::More => ">".into(),
            Told::Reads => "B".into(),
            Told::Start(token) => format!("C{}", if token.is_some() { "!" } else { "" }),
            Told::End(status, token) => {
                format!("D{}{}", status.unwrap_or(-1), if token.is_some() { "!" } else { "" })
            }
        };
        (0..count).map(&mut short).collect::<Vec<_>>().join(" ")
    }

    /// Enters a command as the host would.
    pub fn enter(&mut self, command: &str) -> String {
        self.runs += 1;
        let token = format!("token{}", self.runs);
        let column = Some(self.screen.cursor().0 + 1);
        let entry = keys_for(command, self.kind, self.screen.bracketed_paste(), column).unwrap();
        if let Some(run) = entry.run {
            std::fs::write(self.dir.join("run"), run).unwrap();
        }
        std::fs::write(self.dir.join("next"), format!("{token}\n")).unwrap();
        self.write(&entry.keys);
        token
    }

    /// Waits until a run has ended and the shell is idle.
    pub fn ended(&mut self, token: &str) -> Ran {
        let mut from = self.screen.offset();
        loop {
            match self.next() {
                (at, Told::Start(_)) => from = at,
                (to, Told::End(status, Some(ended))) if ended == token => {
                    let output = String::from_utf8_lossy(&self.bytes[from as usize..to as usize]).into_owned();
                    let output = output[..output.rfind("\x1b]133;D").unwrap()].to_owned();
                    self.idle();
                    return Ran { status: status.unwrap(), output };
                }
                (_, Told::Prompt { .. } | Told::More | Told::Reads | Told::End(..)) => {}
            }
        }
    }

    pub fn run(&mut self, command: &str) -> Ran {
        let token = self.enter(command);
        self.ended(&token)
    }

    /// Waits for the start of a run; the mark stays to be read.
    pub fn wait_started(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.told.iter().any(|(_, told)| matches!(told, Told::Start(Some(_)))) {
            assert!(self.read(deadline), "gone before it started");
        }
    }

    pub fn wait_text(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.raw().contains(text) {
            assert!(self.read(deadline), "gone before {text:?}");
        }
    }

    /// Waits until the shell sits in a read: bash notices an interrupt that comes just before one only at the next key.
    pub fn wait_asleep(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        let path = format!("/proc/{}/syscall", self.child.id());
        let look = || std::fs::read_to_string(&path).unwrap();
        loop {
            let first = look();
            std::thread::sleep(Duration::from_millis(20));
            if !first.starts_with("running") && first == look() {
                return;
            }
            assert!(Instant::now() < deadline, "never asleep: {first}");
        }
    }

    /// Waits until the shell has a child of this name.
    pub fn wait_child(&mut self, name: &str) {
        let deadline = Instant::now() + PATIENCE;
        let pid = self.child.id();
        let comm = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        loop {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            if children.split_whitespace().any(|child| comm(child).trim() == name) {
                return;
            }
            assert!(Instant::now() < deadline, "{name} never came: {}", self.raw());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a program of this name has the terminal.
    pub fn wait_foreground(&mut self, name: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let group = tcgetpgrp(&self.terminal).ok();
            let comm = group.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
            if comm.is_some_and(|comm| comm.trim() == name) {
                return;
            }
            assert!(Instant::now() < deadline, "{name} never came: {}", self.raw());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn exit_status(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        while self.read(deadline) {}
        self.child.wait().unwrap().code().unwrap()
    }

    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn rows(&self) -> Vec<String> {
        self.screen.rows_text()
    }

    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The state as told with the last prompt.
    pub fn state(&self) -> State {
        let path = self.dir.join(format!("state.{}", self.state.expect("a command has ended")));
        let bytes = std::fs::read(path).unwrap();
        parse_state(&bytes, |_, _, value| checksum(value))
            .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&bytes)))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program as leader of a session with a terminal of its own.
fn spawn(argv: &[String], argv0: &str, env: Vec<Vec<u8>>, cwd: &Path) -> (OwnedFd, Child) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = || File::options().read(true).write(true).open(&name).unwrap();
    // As in a new session of the host: setsid takes the terminal, a passing bash sets the name.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "bash", "--norc", "--noprofile", "-c", "exec -a \"$0\" \"$@\"", argv0]).args(argv);
    command.env_clear().current_dir(cwd).stdin(theirs()).stdout(theirs()).stderr(theirs());
    for pair in env {
        let at = pair.iter().position(|b| *b == b'=').unwrap();
        let (name, value) = (pair[..at].to_vec(), pair[at + 1..].to_vec());
        command.env(std::ffi::OsString::from_vec(name), std::ffi::OsString::from_vec(value));
    }
    (ours, command.spawn().unwrap())
}
