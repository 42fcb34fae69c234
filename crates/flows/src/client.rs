//! How a command speaks to the flow service: connect, starting it where it does not run, and ask.

use crate::protocol::{Answered, Asked, BINDING, Hello, LINE_BYTES_MAX, Prove, Request, Trouble, VERSION};
use crate::socket;
use holdfast_abi::address::Address;
use holdfast_client::Identity;
use holdfast_types::Home;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the service may take until it answers: it reads every open flow first, on a machine that may be busy.
const READY: Duration = Duration::from_secs(15);
/// How long after one was started and still none answers another one is started.
const START_AGAIN: Duration = Duration::from_millis(500);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// None runs.
    #[error("the flow service is not running (its socket would be {0})")]
    NotRunning(PathBuf),
    /// It could not be started.
    #[error("cannot start the flow service")]
    Start(#[source] io::Error),
    /// It was started and does not answer.
    #[error("the flow service was started but does not answer; its log is {0}")]
    NotReady(PathBuf),
    /// It went away.
    #[error("the connection to the flow service broke")]
    Broken(#[source] io::Error),
    /// It speaks another version.
    #[error(
        "the flow service speaks version {0}, this program version {VERSION}; to start this one's: holdfast flow stop"
    )]
    Version(u32),
    /// It refuses.
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

/// A connection that has proven who speaks.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    hello: Hello,
    next: u64,
}

impl Client {
    /// Connects to a service that runs.
    pub fn connect(home: &Home, who: &Identity) -> Result<Client, ClientError> {
        let path = socket(home);
        let stream = match Address::of(&path).and_then(|address| UnixStream::connect(address.path())) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(ClientError::NotRunning(path));
            }
            Err(error) => return Err(ClientError::Broken(error)),
        };
        let begun = || -> io::Result<(BufReader<UnixStream>, UnixStream, Vec<u8>)> {
            stream.set_read_timeout(Some(READY))?;
            let (mut reader, writer) = (BufReader::new(stream.try_clone()?), stream.try_clone()?);
            let line = line(&mut reader)?;
            stream.set_read_timeout(None)?;
            Ok((reader, writer, line))
        };
        // It died, or yielded to another, between our connect and its hello.
        let (reader, writer, line) = begun().map_err(|_| ClientError::NotRunning(socket(home)))?;
        let hello: Hello = serde_json::from_slice(&line).map_err(|e| ClientError::Broken(e.into()))?;
        if hello.flows != VERSION {
            return Err(ClientError::Version(hello.flows));
        }
        let signature = Some(who.answer_bound(&hello.challenge, BINDING));
        let prove = Prove { actor: who.actor().clone(), signature, ticket: String::new(), vouched: false };
        let mut client = Client { reader, writer, hello, next: 1 };
        client.say(&prove)?;
        Ok(client)
    }

    /// Connects, and starts the service first where none runs: `program flow spawn`.
    pub fn connect_or_start(home: &Home, program: &Path, who: &Identity) -> Result<Client, ClientError> {
        let deadline = Instant::now() + READY;
        let mut start_at = Instant::now();
        let mut pause_ms = 1;
        loop {
            match Client::connect(home, who) {
                Err(ClientError::NotRunning(_)) if Instant::now() < deadline => {}
                Err(ClientError::NotRunning(_)) => return Err(ClientError::NotReady(log_file(home))),
                other => return other,
            }
            if Instant::now() >= start_at {
                spawn(home, program).map_err(ClientError::Start)?;
                start_at = Instant::now() + START_AGAIN;
            }
            std::thread::sleep(Duration::from_millis(pause_ms));
            pause_ms = (pause_ms * 2).min(50);
        }
    }

    /// The process that serves.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.hello.pid
    }

    /// Asks and waits for the answer.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ClientError> {
        let id = self.next;
        self.next += 1;
        // A service that refuses us is gone by now, and what it said still waits to be read.
        let said = self.say(&Asked { id, request: request.clone() });
        loop {
            let line = match line(&mut self.reader) {
                Ok(line) => line,
                Err(error) => {
                    said?;
                    return Err(ClientError::Broken(error));
                }
            };
            let answer: Answered = serde_json::from_slice(&line).map_err(|e| ClientError::Broken(e.into()))?;
            match answer {
                // Number 0 is about the connection itself.
                Answered { id: 0, error: Some(trouble), .. } => return Err(trouble.into()),
                Answered { id: answered, error: Some(trouble), .. } if answered == id => return Err(trouble.into()),
                Answered { id: answered, ok, .. } if answered == id => {
                    let ok = ok.unwrap_or_default();
                    return serde_json::from_value(ok).map_err(|e| ClientError::Broken(e.into()));
                }
                _ => {}
            }
        }
    }

    fn say(&mut self, what: &impl serde::Serialize) -> Result<(), ClientError> {
        let mut line = serde_json::to_vec(what).map_err(|e| ClientError::Broken(e.into()))?;
        line.push(b'\n');
        self.writer.write_all(&line).map_err(ClientError::Broken)
    }
}

fn line(reader: &mut BufReader<UnixStream>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.by_ref().take(16 * LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    if line.pop() == Some(b'\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The service's log.
#[must_use]
pub fn log_file(home: &Home) -> PathBuf {
    home.state.join("flows.log")
}

/// Starts the service in the background.
pub fn spawn(home: &Home, program: &Path) -> io::Result<()> {
    holdfast_store::make_dir(&home.state)?;
    let log = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(log_file(home))?;
    let mut command = Command::new(program);
    command.args(["flow", "spawn"]).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`flow spawn` ended with {status}"))) }
}
