//! The service's process: its lock, its socket, a pair of threads for each client, and the engine on the first thread.

use crate::engine::{Engine, Input, Tickets};
use crate::link::Place;
use crate::peer;
use crate::protocol::{Answered, Asked, Hello, LINE_BYTES_MAX, Prove, Trouble, VERSION};
use crate::store::{Store, StoreError};
use crate::{Keeping, database, lock_file, socket};
use holdfast_abi::address::Address;
use holdfast_observe::ancestry::Peer;
use holdfast_types::{Challenge, Home};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::time::Duration;

/// Clients at once: workers, watchers and commands of one machine.
const CONNECTIONS_MAX: usize = 256;
/// Questions of one client that may be open: who reads no answers asks no more.
const UNANSWERED_MAX: usize = 64;
/// How long a client may take to prove itself.
const PROVE: Duration = Duration::from_secs(10);
/// Longest line of a client that has not proven itself.
const STRANGERS_BYTES_MAX: usize = 4 * 1024;

/// Why the service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// It was told to, or had nothing left to do.
    Stopped,
    /// Another one serves this home.
    Yielded,
}

/// Why it could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The histories.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Files and sockets.
    #[error("cannot serve flows at {0}")]
    Io(PathBuf, #[source] io::Error),
}

/// Serves a home's flows until it is told to stop, or nothing is left to do.
pub fn serve(home: &Home, program: PathBuf, keeping: Keeping) -> Result<Served, ServeError> {
    let failed = |error| ServeError::Io(socket(home), error);
    holdfast_store::make_dir(&home.state).and_then(|()| holdfast_store::make_dir(&home.run)).map_err(failed)?;
    let lock = std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock_file(home));
    let lock = lock.map_err(failed)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(Served::Yielded);
    }
    let path = database(home);
    // SQLite gives its other files the mode of this one.
    let private = std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    drop(private.map_err(failed)?);
    let store = Store::open(&path)?;
    let (tell, inputs) = channel();
    let place = Place { home: home.clone(), program };
    let engine = Engine::new(store, place, keeping, tell.clone())?;
    let tickets = engine.tickets();
    let listener = listen(home).map_err(failed)?;
    let (accepted, home) = (tell, home.clone());
    let accepting = move || accept(&listener, &home, &tickets, &accepted);
    std::thread::Builder::new().name("accept".into()).spawn(accepting).map_err(failed)?;
    engine.run(&inputs);
    drop(lock);
    Ok(Served::Stopped)
}

fn listen(home: &Home) -> io::Result<UnixListener> {
    let path = socket(home);
    // We have the lock: whatever a crash left there, nobody serves it.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = Address::of(&path).and_then(|address| UnixListener::bind(address.path()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn accept(listener: &UnixListener, home: &Home, tickets: &Tickets, tell: &Sender<Input>) {
    let open = Arc::new(AtomicUsize::new(0));
    for (number, stream) in (1..).zip(listener.incoming()) {
        let Ok(stream) = stream else {
            // Out of descriptors: somebody may give one back.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if !peer::is_ours(&stream) || open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            continue;
        }
        let (home, tickets, tell, opened) = (home.clone(), tickets.clone(), tell.clone(), Arc::clone(&open));
        open.fetch_add(1, Ordering::Relaxed);
        let client = std::thread::Builder::new().name("client".into()).stack_size(256 * 1024).spawn(move || {
            // Whatever went wrong with a client is that client's.
            let _ = client(number, stream, &home, &tickets, &tell);
            opened.fetch_sub(1, Ordering::Relaxed);
        });
        if client.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn client(number: u64, stream: UnixStream, home: &Home, tickets: &Tickets, tell: &Sender<Input>) -> io::Result<()> {
    let peer = Peer::of(&stream);
    let mut challenge = [0; 32];
    getrandom::fill(&mut challenge).map_err(io::Error::other)?;
    let program = format!("holdfast {}", env!("CARGO_PKG_VERSION"));
    let hello = Hello { flows: VERSION, program, pid: std::process::id(), challenge: Challenge(challenge) };
    let mut writer = stream.try_clone()?;
    say(&mut writer, &hello)?;
    stream.set_read_timeout(Some(PROVE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(line) = line(&mut reader, STRANGERS_BYTES_MAX)? else { return Ok(()) };
    let proven = serde_json::from_slice::<Prove>(&line)
        .map_err(|e| Trouble::new("bad_request", format!("expected an actor and its signature: {e}")))
        .and_then(|said| peer::admit(home, tickets, peer.as_ref(), &hello, &said));
    let (by, standing) = match proven {
        Ok(by) => by,
        Err(trouble) => return say(&mut writer, &Answered { id: 0, ok: None, error: Some(trouble) }),
    };
    stream.set_read_timeout(None)?;
    let (reply, answers) = channel::<(u64, Result<Value, Trouble>)>();
    let (taken, answered) = sync_channel::<()>(UNANSWERED_MAX);
    let writing = std::thread::Builder::new().name("answers".into()).stack_size(256 * 1024).spawn(move || {
        while let Ok((id, answer)) = answers.recv() {
            let (ok, error) = match answer {
                Ok(value) => (Some(value), None),
                Err(trouble) => (None, Some(trouble)),
            };
            if say(&mut writer, &Answered { id, ok, error }).is_err() {
                break;
            }
            let _ = answered.try_recv();
        }
    })?;
    let _ = tell.send(Input::Came);
    while let Ok(Some(line)) = line_of(&mut reader) {
        // Waits for room; the writer is gone with whoever it wrote to.
        if taken.send(()).is_err() {
            break;
        }
        let sent = match serde_json::from_slice::<Asked>(&line) {
            Ok(Asked { id, request }) => {
                let (by, standing, reply) = (by.clone(), standing.clone(), reply.clone());
                let request = Box::new(request);
                tell.send(Input::Asked { connection: number, by, standing, id, request, reply }).is_ok()
            }
            Err(error) => {
                let id =
                    serde_json::from_slice::<Value>(&line).ok().and_then(|asked| asked["id"].as_u64()).unwrap_or(0);
                reply.send((id, Err(Trouble::new("bad_request", error.to_string())))).is_ok()
            }
        };
        if !sent {
            break;
        }
    }
    let _ = tell.send(Input::Gone(number));
    drop(reply);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    let _ = writing.join();
    Ok(())
}

fn line_of(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    line(reader, LINE_BYTES_MAX)
}

/// The next line; none at the end. One that is too long ends the connection.
fn line(reader: &mut impl BufRead, max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.by_ref().take(max as u64 + 1).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        Some(_) | None => Ok(None),
    }
}

fn say(writer: &mut UnixStream, what: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    writer.write_all(&line)
}
