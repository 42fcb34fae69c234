//! The way to a host: this machine's own, one elsewhere that `ssh` reaches, or one behind a relay ([`crate::relayed`]).
//!
//! Over ssh the client starts `holdfast connect --stdio` on the other machine and speaks the protocol through it. ssh answers for
//! the other machine's identity; which actor speaks is proven inside, by the actor's own key.

use crate::connection::{CallError, Connection, Greeted, PROGRAM};
use crate::identity::Identity;
use crate::relayed::Relayed;
use crate::start::{ConnectError, connect_as, connect_or_start_as, refused};
use holdfast_types::Home;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Names the `ssh` program where it is another one.
pub const SSH_VARIABLE: &str = "HOLDFAST_SSH";

/// Seconds that ssh may take to reach the other machine.
const CONNECT_S: u32 = 15;
/// How often ssh asks a silent machine whether it is there, and how many unanswered times it takes: a path that died is noticed
/// within ten seconds.
const ALIVE_S: u32 = 3;
const ALIVE_COUNT: u32 = 3;
/// How long the connection that all commands share stays open behind the last of them.
const SHARED_S: u32 = 60;
/// Longest path that ssh can use for it: the address of a unix socket has 107 bytes, and ssh adds 17 while it makes it.
const CONTROL_BYTES_MAX: usize = 90;
/// How long a person may take to type a password before the host's first word is awaited in vain.
const HELLO: Duration = Duration::from_secs(120);
/// The same where nobody can be asked for one.
const HELLO_UNATTENDED: Duration = Duration::from_secs(20);
/// How long ssh may take to say why it ended.
const REASON: Duration = Duration::from_secs(2);
/// How much of what ssh complains about is kept.
const COMPLAINT_BYTES_MAX: usize = 4096;
/// Most of what a command on the other machine may answer: more is not what was asked for.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// What a shell answers for a program that is not there.
const NO_PROGRAM: i32 = 127;
/// What `holdfast` answers to a command that it does not know.
const USAGE: i32 = 2;
/// What ssh answers where it did not get there.
const SSH_FAILED: i32 = 255;

/// How to reach a host.
#[derive(Debug, Clone)]
pub enum Route {
    /// This machine's, which is started where it does not run.
    Here {
        /// Its home.
        home: Home,
        /// The program that starts it.
        program: PathBuf,
    },
    /// Another machine's.
    Ssh(Ssh),
    /// Another machine's, through a relay.
    Relay(Relayed),
}

impl Route {
    /// Connects as this actor.
    pub fn connect(&self, who: &Identity) -> Result<Connection, ConnectError> {
        self.connect_as(who, PROGRAM)
    }

    /// The same under the name of another program.
    pub fn connect_as(&self, who: &Identity, said: &str) -> Result<Connection, ConnectError> {
        match self {
            Route::Here { home, program } => connect_or_start_as(home, program, who, said),
            Route::Ssh(ssh) => ssh.connect_as(who, said, &["connect", "--stdio"]),
            Route::Relay(relayed) => relayed.connect_as(who, said),
        }
    }

    /// The same where a host runs already: none is started.
    pub fn connect_if_running(&self, who: &Identity, said: &str) -> Result<Connection, ConnectError> {
        match self {
            Route::Here { home, .. } => connect_as(home, who, said),
            Route::Ssh(ssh) => ssh.connect_as(who, said, &["connect", "--stdio", "--if-running"]),
            // Only one that runs waits at a relay.
            Route::Relay(relayed) => relayed.connect_as(who, said),
        }
    }

    /// Ring and keeper are another machine's: everything goes through the host.
    #[must_use]
    pub fn is_far(&self) -> bool {
        matches!(self, Route::Ssh(_) | Route::Relay(_))
    }

    /// The same, for somebody who finds its host again by itself: a connection through a relay ends once the host can be reached without it.
    #[must_use]
    pub fn moving(mut self) -> Route {
        if let Route::Relay(relayed) = &mut self {
            relayed.moves = true;
        }
        self
    }

    /// The same, for somebody who cannot answer ssh's questions now.
    #[must_use]
    pub fn unattended(mut self) -> Route {
        if let Route::Ssh(ssh) = &mut self {
            ssh.batch = true;
        }
        self
    }
}

/// Another machine, by ssh.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// What people call it.
    pub name: String,
    /// What ssh calls it: `user@machine` or an alias of its configuration.
    pub target: String,
    /// The program there; may begin with `~/`.
    pub program: String,
    /// Where the shared connection's socket lies.
    pub run: PathBuf,
    /// ssh asks nothing.
    pub batch: bool,
}

/// A running ssh.
struct Running {
    /// The way in and out.
    stream: UnixStream,
    /// How it ended, and what it complained about.
    ended: Receiver<(io::Result<ExitStatus>, String)>,
}

impl Ssh {
    fn connect_as(&self, who: &Identity, said: &str, words: &[&str]) -> Result<Connection, ConnectError> {
        let Running { stream, ended } = self.start(words)?;
        let patience = if self.batch { HELLO_UNATTENDED } else { HELLO };
        stream.set_read_timeout(Some(patience)).map_err(|error| self.failed(error))?;
        let connected = Greeted::on(stream, said).and_then(|greeted| greeted.identify(who));
        connected.map_err(|error| match error {
            CallError::Broken(broken) => match ended.recv_timeout(REASON) {
                Ok((status, complaint)) => self.explain(status, &complaint),
                Err(_) => self.failed(broken),
            },
            other => refused(&self.name, other),
        })
    }

    /// Gives a command on the other machine some bytes, and gives back what it printed.
    pub fn ask(&self, words: &[&str], input: &[u8]) -> Result<Vec<u8>, ConnectError> {
        let Running { mut stream, ended } = self.start(words)?;
        // One that ended at once says so below.
        let _ = stream.write_all(input);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut output = Vec::new();
        // One that ended without reading what it was given breaks the connection: its status says more.
        let read = (&mut stream).take(ANSWER_BYTES_MAX).read_to_end(&mut output);
        match ended.recv_timeout(REASON) {
            Ok((Ok(status), _)) if status.success() => read.map(|_| output).map_err(|error| self.failed(error)),
            Ok((status, complaint)) => Err(self.explain(status, &complaint)),
            Err(_) => Err(self.failed(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Carries another program's connection to the host's socket there, until one of the two ends.
    pub fn carry(&self, stream: UnixStream) -> Result<(), ConnectError> {
        let unattended = Ssh { batch: true, ..self.clone() };
        let Running { stream: far, .. } = unattended.start(&["connect", "--stdio"])?;
        let (mut from, mut to) = (stream.try_clone(), far.try_clone());
        let back = std::thread::spawn(move || {
            if let (Ok(from), Ok(to)) = (&mut from, &mut to) {
                let _ = io::copy(from, to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            }
        });
        let (mut from, mut to) = (far, stream);
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = back.join();
        Ok(())
    }

    /// Closes the connection that commands share, if there is one.
    pub fn close(&self) {
        let quiet = || Stdio::null();
        let mut command = Command::new(ssh_program());
        command.args(self.options()).args(["-O", "exit", "--", &self.target]);
        let _ = command.stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
    }

    fn start(&self, words: &[&str]) -> Result<Running, ConnectError> {
        let failed = |error| ConnectError::Start(ssh_program().into(), error);
        let started = || -> io::Result<(UnixStream, Child)> {
            holdfast_store::make_dir(&self.run)?;
            let (ours, theirs) = UnixStream::pair()?;
            let mut command = Command::new(ssh_program());
            command.args(self.options()).args(["-T", "--", &self.target]).arg(self.remote_command(words));
            command.stdin(OwnedFd::from(theirs.try_clone()?)).stdout(OwnedFd::from(theirs)).stderr(Stdio::piped());
            let child = command.spawn()?;
            Ok((ours, child))
        };
        let (stream, mut child) = started().map_err(failed)?;
        let (sender, ended) = channel();
        let complaints = child.stderr.take();
        let watch = move || {
            // The shared connection may keep the pipe open for longer than ssh itself runs: the status comes first.
            let said = complaints.map(tail_of);
            let status = child.wait();
            let complaint = said.and_then(|said| said.recv_timeout(REASON).ok()).unwrap_or_default();
            let _ = sender.send((status, complaint));
        };
        std::thread::Builder::new().name("ssh".into()).spawn(watch).map_err(failed)?;
        Ok(Running { stream, ended })
    }

    fn options(&self) -> Vec<OsString> {
        let mut settings = vec![
            format!("ConnectTimeout={CONNECT_S}"),
            format!("ServerAliveInterval={ALIVE_S}"),
            format!("ServerAliveCountMax={ALIVE_COUNT}"),
        ];
        // %C is 40 digits that stand for both ends and the user.
        let control = self.run.join("ssh-%C");
        if control.as_os_str().len() + 38 <= CONTROL_BYTES_MAX {
            settings.push("ControlMaster=auto".into());
            settings.push(format!("ControlPersist={SHARED_S}"));
            settings.push(format!("ControlPath=\"{}\"", control.display()));
        }
        if self.batch {
            settings.push("BatchMode=yes".into());
        }
        settings.into_iter().flat_map(|setting| ["-o".into(), OsString::from(setting)]).collect()
    }

    /// For the shell on the other machine.
    fn remote_command(&self, words: &[&str]) -> String {
        let program = match self.program.strip_prefix("~/") {
            Some(rest) => format!("~/{}", quoted(rest)),
            None => quoted(&self.program),
        };
        std::iter::once(program).chain(words.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
    }

    fn failed(&self, error: io::Error) -> ConnectError {
        ConnectError::Far { name: self.name.clone(), why: error.to_string(), hint: None }
    }

    /// What a person can do about it.
    fn explain(&self, status: io::Result<ExitStatus>, complaint: &str) -> ConnectError {
        let (target, program) = (&self.target, &self.program);
        let code = status.ok().and_then(|status| status.code());
        let said = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("").trim();
        let (why, hint) = match code {
            Some(NO_PROGRAM) => (
                format!("{program} is not installed there"),
                Some(format!(
                    "copy it: scp \"$(command -v holdfast)\" {target}:.local/bin/; \
                     or, if it is not in PATH there: holdfast hosts add {} --ssh {target} --program PATH",
                    self.name
                )),
            ),
            Some(USAGE) => (
                format!("the holdfast there is too old: {said}"),
                Some(format!("install {PROGRAM} on {target}, then run there: holdfast host restart")),
            ),
            Some(SSH_FAILED) if self.batch => (
                format!("ssh: {said}"),
                Some(format!(
                    "try: ssh {target} true; if that asks you something, run this first: holdfast --host {} ls",
                    self.name
                )),
            ),
            Some(SSH_FAILED) => (format!("ssh: {said}"), Some(format!("try: ssh {target} true"))),
            Some(_) | None => (if said.is_empty() { "ssh ended".into() } else { said.to_owned() }, None),
        };
        ConnectError::Far { name: self.name.clone(), why, hint }
    }
}

/// The last of what ssh complains about, once it has said everything.
fn tail_of(mut from: ChildStderr) -> Receiver<String> {
    let (sender, tail) = channel();
    let drain = move || {
        let (mut kept, mut buffer) = (Vec::new(), [0; 1024]);
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..count]);
            let over = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
            kept.drain(..over);
        }
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    };
    // Without it the complaint is not shown.
    let _ = std::thread::Builder::new().name("ssh-stderr".into()).spawn(drain);
    tail
}

fn ssh_program() -> OsString {
    std::env::var_os(SSH_VARIABLE).filter(|program| !program.is_empty()).unwrap_or_else(|| "ssh".into())
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Joins this process's standard input and output with the host's socket, until one of the two ends: the far half of a way by ssh.
pub fn join(socket: UnixStream) -> io::Result<()> {
    let (mut from, mut to) = (socket.try_clone()?, socket.try_clone()?);
    std::thread::Builder::new().name("to-host".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    })?;
    let mut stdout = io::stdout().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                stdout.write_all(&buffer[..count])?;
                stdout.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether a host elsewhere can be called this: it stands before a slash, and in file names.
#[must_use]
pub fn is_host_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with(['.', '-'])
}

/// The machine's own name, up to its first dot: what people call it.
#[must_use]
pub fn machine_name() -> String {
    let name = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    name.trim().split('.').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(program: &str) -> Ssh {
        let (name, target) = ("gpu".into(), "ann@gpu".into());
        Ssh { name, target, program: program.into(), run: "/run".into(), batch: false }
    }

    #[test]
    fn the_other_shell_reads_back_the_words_that_were_meant() {
        assert_eq!(ssh("holdfast").remote_command(&["connect", "--stdio"]), "holdfast connect --stdio");
        assert_eq!(ssh("~/my bin/holdfast").remote_command(&[]), "~/'my bin/holdfast'");
        assert_eq!(ssh("/opt/it's/h; rm").remote_command(&[]), r"'/opt/it'\''s/h; rm'");
    }

    #[test]
    fn a_failure_names_its_remedy() {
        let say = |code: i32, complaint| {
            let status = std::os::unix::process::ExitStatusExt::from_raw(code << 8);
            match ssh("holdfast").explain(Ok(status), complaint) {
                ConnectError::Far { why, hint, .. } => (why, hint.unwrap_or_default()),
                other => panic!("{other:?}"),
            }
        };
        let (why, hint) = say(127, "bash: holdfast: command not found\n");
        assert!(why.contains("not installed there") && hint.contains("scp"), "{why} {hint}");
        let (why, hint) = say(255, "Warning: x\nssh: connect to host gpu port 22: Connection refused\n\n");
        assert!(why.ends_with("Connection refused") && hint == "try: ssh ann@gpu true", "{why} {hint}");
        assert!(say(2, "error: unrecognized subcommand 'connect'").0.contains("too old"));
    }

    #[test]
    fn names_of_hosts_stand_before_a_slash() {
        assert!(["gpu", "gpu-1.lan", "a_b"].into_iter().all(is_host_name));
        assert!(!["", "a/b", "-a", ".", "..", "a b", "ä"].into_iter().any(is_host_name));
    }
}
