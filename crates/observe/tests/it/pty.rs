//! A shell at a real terminal, and what the keeper's probe would say about it.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use holdfast_observe::waiting::{Doing, TerminalFacts, state};
use holdfast_observe::{Spared, descendants};
use rustix::fs::{Mode, OFlags, fstat, major, minor, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{eventually, kill};

/// A terminal with a program in it. The test process stands for the keeper.
pub struct Pty {
    pub shell: Child,
    master: fs::File,
    slave: OwnedFd,
    output: Arc<Mutex<Vec<u8>>>,
    /// Nobody's settings; whatever programs leave there goes with the test.
    _home: tempfile::TempDir,
}

impl Pty {
    /// Starts a program as the session's shell. `setsid --ctty` gives it the terminal and becomes it.
    pub fn start(program: &[&str]) -> Pty {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let slave = open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(program).stdin(end()).stdout(end()).stderr(end());
        command.env("TERM", "xterm-256color").env("PS1", "prompt> ").env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
        command.env_remove("ENV").env_remove("BASH_ENV").env_remove("XDG_CONFIG_HOME");
        let shell = command.spawn().unwrap();
        let master = fs::File::from(master);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, into) = (master.try_clone().unwrap(), Arc::clone(&output));
        // It ends when the last end of the terminal is closed.
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                into.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Pty { shell, master, slave, output, _home: home }
    }

    /// An interactive bash without anybody's settings, at its prompt.
    pub fn bash() -> Pty {
        let pty = Pty::start(&["bash", "--norc", "--noprofile", "-i"]);
        pty.becomes("an idle bash", |doing| matches!(doing, Doing::IdlePrompt { .. }));
        pty
    }

    pub fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub fn shows(&self, text: &str) {
        eventually(text, || self.text().contains(text).then_some(()));
    }

    /// What the keeper and the screen would say now.
    pub fn facts(&self) -> TerminalFacts {
        let modes = tcgetattr(&self.slave).unwrap();
        let device = fstat(&self.slave).unwrap().st_rdev;
        let text = self.text();
        let last = |what: &str| text.rfind(what).map_or(0, |at| at + 1);
        TerminalFacts {
            foreground: rustix::termios::tcgetpgrp(&self.master).map_or(0, |group| group.as_raw_nonzero().get() as u32),
            iflag: modes.input_modes.bits(),
            oflag: modes.output_modes.bits(),
            lflag: modes.local_modes.bits(),
            unread: rustix::io::ioctl_fionread(&self.slave).unwrap() as u32,
            device: (major(device), minor(device)),
            alternate_screen: last("\x1b[?1049h") > last("\x1b[?1049l"),
            shell_prompt: None,
        }
    }

    pub fn doing(&self) -> Doing {
        state(std::process::id(), self.shell.id(), &self.facts())
    }

    /// Waits until the session does this.
    #[track_caller]
    pub fn becomes(&self, what: &str, is_it: impl Fn(Doing) -> bool) -> Doing {
        eventually(what, || Some(self.doing()).filter(|doing| is_it(*doing)))
    }

    /// Everyone below the shell, and the shell.
    fn everyone(&self) -> Vec<u32> {
        let below = descendants(self.shell.id(), &Spared::default()).unwrap_or_default();
        below
            .iter()
            .filter(|process| process.state != 'Z')
            .map(|process| process.pid)
            .chain([self.shell.id()])
            .collect()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{:?} by {:?} after\n{}", self.doing(), self.facts(), self.text());
        }
        for pid in self.everyone() {
            kill(pid);
        }
        let _ = self.shell.wait();
    }
}
