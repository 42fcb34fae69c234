//! Who this process is: an actor and its secret key, and where keys lie.
//!
//! A key is a file of its own under the home's `actors`, for its user alone: `<class>.<name>.key` has the secret,
//! `<class>.<name>.pub` is how the host knows the actor. What runs under the same uid can read the same files; whoever must
//! not be another runs under another uid.

use holdfast_authority::{Ask, proof};
use holdfast_types::{
    Actor, ActorId, Challenge, Handle, Home, Nonce, Proof, SessionId, Signature, TimeMs, hex_bytes, hex_text,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many handles are tried for one actor: machines of one name and login are few.
const ADMIT_TRIES: u32 = 20;

/// An actor that can prove it is itself.
#[derive(Clone)]
pub struct Identity {
    actor: Actor,
    secret: [u8; 32],
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.actor)
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// No such file.
    #[error("no key file {0}")]
    Missing(PathBuf),
    /// The file is there and is no key.
    #[error("cannot use the key file {0}: {1}")]
    Damaged(PathBuf, &'static str),
    /// There is one already.
    #[error("the key file {0} already exists")]
    Taken(PathBuf),
    /// The file could not be read or written.
    #[error("cannot read or write the key file {0}")]
    Io(PathBuf, #[source] io::Error),
}

/// A `.key` file.
#[derive(Serialize, Deserialize)]
struct KeyFile {
    handle: Handle,
    secret: String,
}

/// A `.pub` file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublicKey {
    /// Class and name.
    pub handle: Handle,
    /// The key.
    pub id: ActorId,
    /// When it was made.
    pub created_ms: TimeMs,
}

impl Identity {
    /// From its parts.
    #[must_use]
    pub fn new(handle: Handle, secret: [u8; 32]) -> Identity {
        Identity { actor: Actor { id: proof::actor_id(&secret), handle }, secret }
    }

    /// The same key under the handle by which another host knows it.
    #[must_use]
    pub fn called(&self, handle: Handle) -> Identity {
        Identity::new(handle, self.secret)
    }

    /// Key and handle.
    #[must_use]
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Answers a connection's challenge.
    #[must_use]
    pub fn answer(&self, challenge: &Challenge) -> Signature {
        self.answer_bound(challenge, proof::UNIX_BINDING)
    }

    /// Answers a challenge on a connection that is bound to something, a sealed channel or another service than the host: what is signed for one
    /// serves no other.
    #[must_use]
    pub fn answer_bound(&self, challenge: &Challenge, binding: &[u8]) -> Signature {
        proof::sign(&self.secret, &proof::challenge_bytes(&challenge.0, binding, &self.actor))
    }

    /// The key for sealed channels.
    #[must_use]
    pub fn channel_secret(&self) -> holdfast_channel::Secret {
        holdfast_channel::Secret::new(self.secret)
    }

    /// Signs an act in a session.
    #[must_use]
    pub fn prove(&self, session: SessionId, ask: &Ask) -> Proof {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).expect("the kernel gives random bytes");
        // Its time first: a host remembers the nonces of the last minutes, and takes no older ones.
        nonce[..6].copy_from_slice(&now_ms().to_be_bytes()[2..]);
        proof::sign_act(&self.secret, session, Nonce(nonce), ask)
    }

    /// The actor of this handle, whose key lies in the home.
    pub fn load(home: &Home, handle: &Handle) -> Result<Identity, KeyError> {
        let identity = Identity::from_file(&home.actor_key(handle))?;
        if identity.actor.handle == *handle {
            Ok(identity)
        } else {
            Err(KeyError::Damaged(home.actor_key(handle), "it belongs to another actor"))
        }
    }

    /// The actor whose key this file has.
    pub fn from_file(path: &Path) -> Result<Identity, KeyError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(KeyError::Missing(path.to_owned())),
            Err(error) => return Err(KeyError::Io(path.to_owned(), error)),
        };
        let damaged = |why| KeyError::Damaged(path.to_owned(), why);
        let file: KeyFile = serde_json::from_slice(&text).map_err(|_| damaged("it is no key file"))?;
        let secret = hex_bytes(&file.secret).and_then(|bytes| bytes.try_into().ok());
        Ok(Identity::new(file.handle, secret.ok_or_else(|| damaged("its secret is not 64 hexadecimal digits"))?))
    }

    /// Makes an actor with a fresh key: the secret goes to `key` (the home's own place where none is given), the public half
    /// to where the host looks for it.
    pub fn make(home: &Home, handle: &Handle, key: Option<&Path>) -> Result<Identity, KeyError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the kernel gives random bytes");
        let identity = Identity::new(handle.clone(), secret);
        let path = key.map_or_else(|| home.actor_key(handle), Path::to_owned);
        let public = home.actor_public(handle);
        if public.exists() {
            return Err(KeyError::Taken(public));
        }
        let dir = home.actors();
        holdfast_store::make_dir(&dir).map_err(|error| KeyError::Io(dir, error))?;
        // The secret first: a key that is known and lost would be worse than one that is not known.
        write_new(&path, &KeyFile { handle: handle.clone(), secret: hex_text(&secret) })?;
        let created_ms = now_ms();
        match write_new(&public, &PublicKey { handle: handle.clone(), id: identity.actor.id, created_ms }) {
            Ok(()) => Ok(identity),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// The actor of this handle; made where there is none. Two processes that make it at once end up with one key.
    pub fn load_or_make(home: &Home, handle: &Handle) -> Result<Identity, KeyError> {
        for _ in 0..100 {
            match Identity::load(home, handle) {
                Err(KeyError::Missing(_)) => {}
                other => return other,
            }
            match Identity::make(home, handle, None) {
                // Somebody is making it this moment, or made half of it: its secret may be about to be there.
                Err(KeyError::Taken(_)) => std::thread::sleep(std::time::Duration::from_millis(5)),
                other => return other,
            }
        }
        Err(KeyError::Damaged(home.actor_public(handle), "its secret key is missing"))
    }
}

/// Makes an actor whose secret lies elsewhere known to this home: by this handle, or the next free one. A key that is known keeps its
/// handle.
pub fn admit(home: &Home, handle: &Handle, id: ActorId) -> Result<Handle, KeyError> {
    let dir = home.actors();
    holdfast_store::make_dir(&dir).map_err(|error| KeyError::Io(dir.clone(), error))?;
    let names = std::iter::once(handle.clone())
        .chain((2..=ADMIT_TRIES).map(|n| Handle::near(handle.class(), &format!("{}-{n}", handle.name()))));
    if let Some(known) = known_as(&dir, id) {
        return Ok(known);
    }
    let mut last = None;
    for handle in names {
        let path = home.actor_public(&handle);
        match write_new(&path, &PublicKey { handle: handle.clone(), id, created_ms: now_ms() }) {
            Err(KeyError::Taken(path)) => last = Some(KeyError::Taken(path)),
            other => return other.map(|()| handle),
        }
    }
    Err(last.unwrap_or(KeyError::Missing(dir)))
}

/// The handle by which a home knows a key.
fn known_as(actors: &Path, id: ActorId) -> Option<Handle> {
    let files = std::fs::read_dir(actors).ok()?.flatten().map(|entry| entry.path());
    let public = files.filter(|path| path.extension().is_some_and(|ending| ending == "pub"));
    let known = public.filter_map(|path| serde_json::from_slice::<PublicKey>(&std::fs::read(path).ok()?).ok());
    known.into_iter().find(|known| known.id == id).map(|known| known.handle)
}

/// Milliseconds since the epoch.
fn now_ms() -> TimeMs {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as TimeMs)
}

/// Writes a file that must not be there yet, whole or not at all. Plain JSON: clients in other languages read it.
fn write_new(path: &Path, content: &impl Serialize) -> Result<(), KeyError> {
    let failed = |error| KeyError::Io(path.to_owned(), error);
    let mut text = serde_json::to_vec(content).expect("texts and numbers always serialise");
    text.push(b'\n');
    match holdfast_store::create(path, &text) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(KeyError::Taken(path.to_owned())),
        other => other.map_err(failed),
    }
}
