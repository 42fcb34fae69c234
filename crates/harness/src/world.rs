//! A home with a host of its own, which can be killed and started again.

use crate::operator::Operator;
use crate::pauses::Pause;
use crate::processes::{leaves_nothing, program, signal};
use crate::wait::until;
use holdfast_authority::journal::{Checker, Entry};
use holdfast_client::{CallError, Connection, Identity};
use holdfast_types::{Home, SessionId};
use holdfast_wire::Code;
use holdfast_wire::operations::op;
use holdfast_wire::params::{EndParams, ListParams, NewParams, SessionView};
use holdfast_wire::turns::JournalParams;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// A home, its host, and the human who starts and ends the sessions there.
pub struct World {
    dir: tempfile::TempDir,
    host: Mutex<Option<Child>>,
    root: Identity,
}

impl World {
    /// A home whose host runs.
    pub fn new() -> World {
        let dir = tempfile::Builder::new().prefix("hfo").tempdir().unwrap();
        let root = Identity::make(&Home::under(dir.path()), &"human:root".parse().unwrap(), None).unwrap();
        let world = World { dir, host: Mutex::new(None), root };
        world.start_host();
        world
    }

    /// Where things lie in its home.
    pub fn home(&self) -> Home {
        Home::under(self.dir.path())
    }

    /// A path below its home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// An actor the host knows.
    pub fn actor(&self, handle: &str) -> Identity {
        Identity::make(&self.home(), &handle.parse().unwrap(), None).unwrap()
    }

    /// The same key under another handle.
    pub fn renamed(&self, who: &Identity, handle: &str) -> Identity {
        let file = std::fs::read(self.home().actor_key(&who.actor().handle)).unwrap();
        let key: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let secret = holdfast_types::hex_bytes(key["secret"].as_str().unwrap()).unwrap();
        Identity::new(handle.parse().unwrap(), secret.try_into().unwrap())
    }

    /// An actor with a key the host does not know.
    pub fn stranger(&self, handle: &str, key: u8) -> Identity {
        Identity::new(handle.parse().unwrap(), [key; 32])
    }

    /// Starts the host; it may not answer yet.
    pub fn start_host(&self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("host.log")).unwrap();
        let child = Command::new(program())
            .args(["host", "run"])
            .env_clear()
            .env("HOLDFAST_HOME", self.dir.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env(holdfast_pause::DIRECTORY, self.path("pause"))
            .env(holdfast_pause::TOP, std::process::id().to_string())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("the program can be started");
        *self.host.lock().unwrap() = Some(child);
    }

    /// From now on the host stops where it comes to this point; see [`holdfast_pause`] for what a point is.
    pub fn pause(&self, point: &str) -> Pause {
        Pause::at(&self.path("pause"), point)
    }

    /// Sends a signal to the host.
    pub fn signal_host(&self, what: Signal) {
        let host = self.host.lock().unwrap().as_ref().map(Child::id);
        signal(host.expect("a host that runs"), what);
    }

    /// Kills the host at once; it is gone when this returns.
    pub fn kill_host(&self) {
        if let Some(mut child) = self.host.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts the host and kills it again while it takes its sessions up.
    pub fn start_host_in_vain(&self) {
        let said = || std::fs::metadata(self.path("host.log")).map_or(0, |log| log.len());
        let before = said();
        self.start_host();
        until("the host's first word", || (said() > before).then_some(()));
        self.kill_host();
    }

    /// A connection of this actor, as soon as the host answers.
    pub fn connect(&self, who: &Identity) -> Connection {
        until("an answer of the host", || holdfast_client::connect(&self.home(), who).ok())
    }

    /// A session of a shell script, started by this actor.
    pub fn session_by(&self, who: &Identity, name: &str, script: &str) -> Operator {
        let mut link = self.connect(who);
        let params = NewParams {
            name: Some(name.parse().unwrap()),
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            cwd: Some(self.dir.path().to_string_lossy().into_owned()),
            env: Some(vec!["PATH=/usr/local/bin:/usr/bin:/bin".into(), "TERM=xterm-256color".into()]),
            ..NewParams::default()
        };
        let view = link.call::<op::New>(&params).unwrap();
        Operator::on(link, who.clone(), view.id)
    }

    /// A session of a shell script that has nothing to do with who acts in the test.
    pub fn session(&self, name: &str, script: &str) -> SessionId {
        self.session_by(&self.root, name, script).session
    }

    /// A session that writes everything it is sent to a file, byte by byte as it comes; it is ready.
    pub fn recorder(&self, name: &str) -> (SessionId, PathBuf) {
        let file = self.path(&format!("{name}.received"));
        let id = self.session(name, &format!("stty raw -echo; : > {0}; echo ready; exec cat > {0}", file.display()));
        self.shows(id, "ready");
        (id, file)
    }

    /// An actor of this handle, made now, on a session.
    pub fn operator(&self, handle: &str, session: SessionId) -> Operator {
        self.as_operator(&self.actor(handle), session)
    }

    /// An actor on a session.
    pub fn as_operator(&self, who: &Identity, session: SessionId) -> Operator {
        Operator::on(self.connect(who), who.clone(), session)
    }

    /// The human who may do everything, on a session.
    pub fn root(&self, session: SessionId) -> Operator {
        self.as_operator(&self.root, session)
    }

    /// Waits until a session's screen shows a text.
    #[track_caller]
    pub fn shows(&self, session: SessionId, text: &str) {
        let mut root = self.root(session);
        until(text, || root.screen().contains(text).then_some(()));
    }

    /// The session's whole journal, verified line by line.
    #[track_caller]
    pub fn journal(&self, session: SessionId) -> Vec<Entry> {
        let mut link = self.connect(&self.root);
        let (mut checker, mut entries, mut after) = (Checker::new(), Vec::new(), 0);
        loop {
            let params = JournalParams { session: session.to_string(), after, last: None, wait_ms: 0 };
            let (answer, bytes) = link.call_with_bytes::<op::Journal>(&params, &[]).unwrap();
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                entries.push(checker.line(line).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(line))));
            }
            if !answer.more {
                return entries;
            }
            after = answer.to;
        }
    }

    fn end_all(&self) -> Option<()> {
        let mut link = holdfast_client::connect(&self.home(), &self.root).ok()?;
        for SessionView { id, .. } in link.call::<op::List>(&ListParams::default()).ok()? {
            let ended = link.call::<op::End>(&EndParams { session: id.to_string(), grace_ms: 0, proof: None });
            // One whose command has just ended by itself needs no end.
            let is_over = matches!(&ended, Err(CallError::Fault(fault)) if fault.code == Code::Ended);
            if !is_over {
                ended.ok()?;
            }
        }
        Some(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let ended = self.end_all().is_some();
        self.kill_host();
        leaves_nothing(self.dir.path(), &self.path("host.log"), || ());
        assert!(ended || std::thread::panicking(), "the sessions end when they are told to");
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// What a program has written into a file so far.
pub fn received(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_default()
}
