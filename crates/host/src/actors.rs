//! Whom the host vouches for: the actors whose public keys lie in the home.
//!
//! A `.pub` file is believed if its name is its handle's and nobody but its owner, who is this user or root, could have
//! written it. While it lies there the host knows the actor; everybody else is unknown, whatever they call themselves.

use holdfast_types::{Actor, ActorId, Handle, Home, TimeMs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A `.pub` file has some two hundred bytes; whatever is longer is none.
const FILE_BYTES_MAX: u64 = 4096;
/// Most actors: every session's policy has them all, and no machine's users and programs come near.
const ACTORS_MAX: usize = 10_000;

/// A `.pub` file, as far as the host cares.
#[derive(Serialize, Deserialize)]
struct PublicKey {
    handle: Handle,
    id: ActorId,
    #[serde(default)]
    created_ms: TimeMs,
}

/// Why a file is not believed.
#[derive(Debug, thiserror::Error)]
enum Unbelieved {
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    #[error("it is no public key")]
    NotAKey,
    #[error("it is another actor's than its name says")]
    OtherHandle,
    #[error("others can write to it")]
    Writable,
    #[error("the host itself acts under this name")]
    Reserved,
}

/// The actors of a home.
#[derive(Debug, Clone)]
pub struct Actors {
    home: Home,
    vouched: BTreeMap<ActorId, Handle>,
}

impl Actors {
    /// Reads the home's actors; what cannot be believed is told and left out.
    #[must_use]
    pub fn load(home: &Home) -> Actors {
        let mut actors = Actors { home: home.clone(), vouched: BTreeMap::new() };
        actors.refresh();
        actors
    }

    /// Reads them again, and says whether anything changed. Where the directory cannot be read, those known stay known.
    pub fn refresh(&mut self) -> bool {
        let dir = self.home.actors();
        match read_dir(&self.home) {
            Ok(vouched) => std::mem::replace(&mut self.vouched, vouched) != self.vouched,
            Err(error) if error.kind() == io::ErrorKind::NotFound => !std::mem::take(&mut self.vouched).is_empty(),
            Err(error) => {
                tracing::warn!("{} cannot be read: {error}", dir.display());
                false
            }
        }
    }

    /// Somebody says to be this actor: looks at its handle's file where it is not known, and says whether anything changed.
    pub fn learn(&mut self, actor: &Actor) -> bool {
        if self.vouched.get(&actor.id) == Some(&actor.handle) {
            return false;
        }
        let before = self.vouched.len();
        let found = self.look(&actor.handle);
        // The handle may have another key now, or none.
        self.vouched.retain(|id, handle| *handle != actor.handle || Some(*id) == found);
        let mut changed = self.vouched.len() != before;
        // What the handle's file says is learnt also where it is not what was said: the handle is that key's.
        if let Some(id) = found
            && self.vouched.get(&id) != Some(&actor.handle)
            && self.vouched.len() < ACTORS_MAX
        {
            // The key may be known by another handle: whoever came first stays, as long as it is there.
            let other = self.vouched.get(&id).cloned();
            if other.is_none_or(|other| self.look(&other) != Some(id)) {
                self.vouched.insert(id, actor.handle.clone());
                changed = true;
            }
        }
        changed
    }

    /// Keys and their handles, as a policy has them.
    #[must_use]
    pub fn vouched(&self) -> &BTreeMap<ActorId, Handle> {
        &self.vouched
    }

    /// The actor of a handle.
    #[must_use]
    pub fn by_handle(&self, handle: &Handle) -> Option<Actor> {
        let (id, handle) = self.vouched.iter().find(|(_, known)| *known == handle)?;
        Some(Actor { id: *id, handle: handle.clone() })
    }

    /// All of them, by handle.
    #[must_use]
    pub fn all(&self) -> Vec<Actor> {
        let mut all: Vec<Actor> =
            self.vouched.iter().map(|(id, handle)| Actor { id: *id, handle: handle.clone() }).collect();
        all.sort_by(|a, b| a.handle.cmp(&b.handle));
        all
    }

    /// Makes an actor that nobody has the key of: it is known by its tokens alone.
    pub fn make(&mut self, handle: &Handle) -> io::Result<Actor> {
        if handle.is_reserved() {
            return Err(io::Error::other("the host itself acts under this name"));
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the kernel gives random bytes");
        let id = holdfast_authority::proof::actor_id(&secret);
        crate::store::make_dir(&self.home.actors())?;
        let path = self.home.actor_public(handle);
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
        let public = PublicKey { handle: handle.clone(), id, created_ms: crate::now_ms() };
        let mut text = serde_json::to_vec(&public).expect("texts and numbers always serialise");
        text.push(b'\n');
        crate::store::replace(&self.home.actors(), name, &text)?;
        self.vouched.insert(id, handle.clone());
        Ok(Actor { id, handle: handle.clone() })
    }

    /// Makes an actor known whose secret lies elsewhere. False: the handle, or the key, is another's.
    pub fn admit(&mut self, actor: &Actor) -> io::Result<bool> {
        if actor.is_reserved() || self.vouched.len() >= ACTORS_MAX || self.vouched.contains_key(&actor.id) {
            return Ok(false);
        }
        crate::store::make_dir(&self.home.actors())?;
        let public = PublicKey { handle: actor.handle.clone(), id: actor.id, created_ms: crate::now_ms() };
        let mut text = serde_json::to_vec(&public).expect("texts and numbers always serialise");
        text.push(b'\n');
        match holdfast_store::create(&self.home.actor_public(&actor.handle), &text) {
            Ok(()) => {
                self.vouched.insert(actor.id, actor.handle.clone());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Forgets an actor for good: its public key goes, and its secret one if that lies here. False: there was none.
    pub fn remove(&mut self, handle: &Handle) -> io::Result<bool> {
        // The public one first: from then on the actor is unknown, whatever becomes of the rest.
        let was_known = remove_file(&self.home.actor_public(handle))?;
        self.vouched.retain(|_, known| known != handle);
        Ok(remove_file(&self.home.actor_key(handle))? || was_known)
    }

    /// The key a handle's file has now.
    fn look(&self, handle: &Handle) -> Option<ActorId> {
        let path = self.home.actor_public(handle);
        match read_key(&path, handle) {
            Ok(id) => Some(id),
            Err(Unbelieved::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(why) => {
                tell(&path, &why);
                None
            }
        }
    }
}

fn read_dir(home: &Home) -> io::Result<BTreeMap<ActorId, Handle>> {
    let mut handles = Vec::new();
    for entry in std::fs::read_dir(home.actors())? {
        let name = entry?.file_name();
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".pub")) else { continue };
        // Classes have no dot, so the first one ends the class.
        match stem.replacen('.', ":", 1).parse::<Handle>() {
            Ok(handle) => handles.push((stem.to_owned(), handle)),
            Err(_) => tell(&home.actors().join(&name), &Unbelieved::OtherHandle),
        }
    }
    handles.sort();
    let mut vouched = BTreeMap::new();
    for (_, handle) in handles {
        let path = home.actor_public(&handle);
        if vouched.len() == ACTORS_MAX {
            tracing::warn!("more than {ACTORS_MAX} actors, {handle} and those behind it are not known");
            break;
        }
        match read_key(&path, &handle) {
            Ok(id) => {
                vouched.entry(id).or_insert(handle);
            }
            Err(why) => tell(&path, &why),
        }
    }
    Ok(vouched)
}

fn read_key(path: &Path, handle: &Handle) -> Result<ActorId, Unbelieved> {
    if handle.is_reserved() {
        return Err(Unbelieved::Reserved);
    }
    // Before it is opened: a pipe would not open until somebody writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Unbelieved::NotAKey);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !is_ours(metadata.permissions().mode(), metadata.uid(), rustix::process::geteuid().as_raw()) {
        return Err(Unbelieved::Writable);
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    let key: PublicKey = serde_json::from_slice(&text).map_err(|_| Unbelieved::NotAKey)?;
    match key.handle == *handle {
        true if (Actor { id: key.id, handle: key.handle }).is_reserved() => Err(Unbelieved::Reserved),
        true => Ok(key.id),
        false => Err(Unbelieved::OtherHandle),
    }
}

/// Nobody but this user and root can write to a file with this mode and owner.
fn is_ours(mode: u32, owner: u32, user: u32) -> bool {
    mode & 0o022 == 0 && (owner == user || owner == 0)
}

fn tell(path: &Path, why: &Unbelieved) {
    let reason = std::error::Error::source(why).map(|source| format!(" ({source})")).unwrap_or_default();
    tracing::warn!("{} is not believed: {why}{reason}", path.display());
}

fn remove_file(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn handle(text: &str) -> Handle {
        text.parse().unwrap()
    }

    fn actor(text: &str, key: u8) -> Actor {
        Actor { id: ActorId([key; 32]), handle: handle(text) }
    }

    /// A home with these actors, as the command line program writes them.
    fn home(actors: &[(&str, u8)]) -> (TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path());
        std::fs::create_dir(home.actors()).unwrap();
        actors.iter().for_each(|(name, key)| write(&home, &actor(name, *key)));
        (dir, home)
    }

    fn write(home: &Home, actor: &Actor) {
        write_as(&home.actor_public(&actor.handle), actor);
    }

    fn write_as(path: &Path, actor: &Actor) {
        let json = serde_json::json!({"handle": actor.handle, "id": actor.id, "created_ms": 1});
        std::fs::write(path, format!("{json}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn names(actors: &Actors) -> Vec<String> {
        actors.all().iter().map(Actor::to_string).collect()
    }

    #[test]
    fn the_homes_actors_are_known_by_key_and_by_handle() {
        let (_dir, home) = home(&[("human:ann", 1), ("agent:a.b-c_d.2", 2), ("device:phone", 3)]);
        let actors = Actors::load(&home);
        assert_eq!(names(&actors), ["human:ann", "agent:a.b-c_d.2", "device:phone"], "by class and name");
        assert_eq!(actors.vouched().get(&ActorId([2; 32])), Some(&handle("agent:a.b-c_d.2")));
        assert_eq!(actors.by_handle(&handle("human:ann")), Some(actor("human:ann", 1)));
        assert_eq!(actors.by_handle(&handle("agent:ann")), None);
        let nowhere = Home::under(Path::new("/nonexistent"));
        assert_eq!(names(&Actors::load(&nowhere)), [""; 0]);
    }

    #[test]
    fn an_actor_of_the_version_before_is_known() {
        let (_dir, home) = home(&[]);
        let path = home.actor_public(&handle("agent:bot"));
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1/actors/agent.bot.pub");
        std::fs::copy(old, &path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(names(&Actors::load(&home)), ["agent:bot"]);
    }

    #[test]
    fn what_is_no_actors_own_file_is_not_believed_and_hides_nobody() {
        let (_dir, home) = home(&[("human:ann", 1)]);
        let file = |name: &str| home.actors().join(name);
        write_as(&file("agent.bot.pub"), &actor("human:bot", 2));
        write_as(&file("human.bob.pub"), &actor("human:ann", 3));
        write_as(&file("robot.x.pub"), &actor("human:x", 4));
        write_as(&file("human.new123"), &actor("human:y", 5));
        std::fs::write(file("human.eve.pub"), "{}").unwrap();
        std::fs::write(file("human.long.pub"), " ".repeat(1 << 20)).unwrap();
        std::fs::create_dir(file("human.dir.pub")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", file("human.zero.pub")).unwrap();
        let mut actors = Actors::load(&home);
        assert_eq!(names(&actors), ["human:ann"]);
        for stranger in [actor("agent:bot", 2), actor("human:bob", 3), actor("human:eve", 6), actor("human:dir", 7)] {
            assert!(!actors.learn(&stranger), "{stranger}");
        }
        assert_eq!(names(&actors), ["human:ann"]);
    }

    #[test]
    fn a_file_that_others_can_write_to_is_not_believed() {
        let (_dir, home) = home(&[("human:ann", 1), ("human:bob", 2), ("human:cat", 3)]);
        for (name, mode) in [("human:ann", 0o620), ("human:bob", 0o602), ("human:cat", 0o644)] {
            let path = home.actor_public(&handle(name));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(names(&Actors::load(&home)), ["human:cat"]);
        for (owner, expected) in [(1000, true), (0, true), (1001, false)] {
            assert_eq!(is_ours(0o100600, owner, 1000), expected, "{owner}");
        }
    }

    #[test]
    fn of_two_files_with_one_key_the_first_counts() {
        let (_dir, home) = home(&[("human:bob", 1), ("human:ann", 1), ("service:ann", 1)]);
        let mut actors = Actors::load(&home);
        assert_eq!(names(&actors), ["human:ann"]);
        assert!(!actors.learn(&actor("human:bob", 1)));
        std::fs::remove_file(home.actor_public(&handle("human:ann"))).unwrap();
        assert!(actors.learn(&actor("human:bob", 1)), "until its file is gone");
        assert_eq!(names(&actors), ["human:bob"]);
    }

    #[test]
    fn an_actor_that_was_made_since_is_learned_from_its_own_file() {
        let (_dir, home) = home(&[("human:ann", 1)]);
        let mut actors = Actors::load(&home);
        assert!(!actors.learn(&actor("human:ann", 1)), "known already");
        assert!(!actors.learn(&actor("agent:bot", 2)), "no file");
        write(&home, &actor("agent:bot", 2));
        assert!(actors.learn(&actor("agent:bot", 3)), "another key says so, and its file is looked at");
        assert_eq!(actors.by_handle(&handle("agent:bot")), Some(actor("agent:bot", 2)));
        assert!(!actors.learn(&actor("agent:bot", 2)), "known by now");
        assert_eq!(names(&actors), ["human:ann", "agent:bot"]);
        write(&home, &actor("agent:bot", 4));
        assert!(actors.learn(&actor("agent:bot", 4)), "a new key takes the old one's place");
        assert_eq!(actors.vouched().len(), 2);
        assert!(!actors.refresh(), "the same as reading everything");
    }

    #[test]
    fn a_removed_actor_is_known_no_longer() {
        let (_dir, home) = home(&[("human:ann", 1), ("human:bob", 2)]);
        let mut actors = Actors::load(&home);
        let key = home.actor_key(&handle("human:ann"));
        std::fs::write(&key, "secret").unwrap();
        assert!(actors.remove(&handle("human:ann")).unwrap());
        assert!(!key.exists() && !home.actor_public(&handle("human:ann")).exists());
        assert!(!actors.remove(&handle("human:ann")).unwrap());
        assert_eq!(names(&actors), ["human:bob"]);
        std::fs::remove_file(home.actor_public(&handle("human:bob"))).unwrap();
        assert!(actors.refresh() && !actors.refresh());
        std::fs::remove_dir_all(home.actors()).unwrap();
        write_back(&home);
        assert!(actors.refresh());
        std::fs::remove_dir_all(home.actors()).unwrap();
        assert!(actors.refresh() && actors.vouched().is_empty());
    }

    fn write_back(home: &Home) {
        std::fs::create_dir(home.actors()).unwrap();
        write(home, &actor("human:bob", 2));
    }
}
