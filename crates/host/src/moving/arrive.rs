//! A session arrives at this host.
//!
//! What is sent lies in `arriving/<id>/` under names from a list, in files that were made here, as many bytes as were announced and
//! fit on the disk. Nothing of it is used before all of it is there, as it was sent, and this machine has what the session needs. It is a session
//! once its directory has its place among the others, which needs the key: the old host gives it out behind its commit alone.

use super::needs::{self, SPARE_BYTES};
use super::{lock_of, place, sent};
use crate::off_thread;
use crate::portable::kept;
use crate::registry::{Registry, take_up};
use crate::runs::index;
use crate::session::{Origin, Session};
use crate::store::Spec;
use holdfast_store::{ARRIVAL, SPEC, Survives, get_json, make_dir, put_json};
use holdfast_types::{Actor, ActorId, SessionId, SessionName};
use holdfast_wire::lives::{Cause, LostView};
use holdfast_wire::moves::{ArriveAnswer, MoveOffer, MoveParcel, PIECE_BYTES_MAX, SentFile};
use holdfast_wire::params::Life;
use holdfast_wire::portable::RestoreParams;
use holdfast_wire::{Code, Fault};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Sessions that may be on their way here, or wait to be finished.
const ARRIVALS_MAX: usize = 8;
/// How long one waits that is whole: as long as a session that was lost.
const KEEP_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Says that all of it is there.
const PARCEL: &str = "parcel";
/// Keys of runs that are believed.
const KEYS_MAX: usize = 4096;

/// Sessions on their way here.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    all: RefCell<HashMap<SessionId, Arriving>>,
    /// One at a time becomes a session.
    finishing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Arriving {
    parcel: Rc<MoveParcel>,
    by: ActorId,
    /// How much of each file is there.
    written: Vec<u64>,
}

/// What is kept of one that is whole.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Whole {
    parcel: MoveParcel,
    by: Actor,
    at_ms: u64,
}

fn failed(error: &io::Error) -> Fault {
    Fault::new(Code::CannotStart, format!("what arrives cannot be kept: {error}")).hint("is the disk full there?")
}

fn bad(what: impl Into<String>) -> Fault {
    Fault::new(Code::BadRequest, what)
}

/// Removes what never became whole, and what nobody finished in a month. Blocks.
pub(crate) fn sweep(state: &Path) {
    for entry in fs::read_dir(place(state)).into_iter().flatten().flatten() {
        let whole: Option<Whole> = get_json(&ARRIVAL, &entry.path().join(PARCEL)).ok().flatten();
        if whole.is_none_or(|whole| whole.at_ms.saturating_add(KEEP_MS) <= crate::now_ms()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether what is announced can be taken in at all.
fn must_be_sound(parcel: &MoveParcel) -> Result<(), Fault> {
    let (id, files) = (&parcel.checkpoint, &parcel.files);
    if !kept::is_id(id) || parcel.lock.len() != 64 || files.is_empty() || files.len() > sent::FILES_MAX {
        return Err(bad("that is no session that could arrive"));
    }
    let mut paths = BTreeSet::new();
    for SentFile { path, .. } in files {
        if !sent::is_sent(path, id) || !paths.insert(path.as_str()) {
            return Err(bad(format!("{path:?} is not taken in")));
        }
    }
    let needed = ["spec".to_owned(), "portable".into(), super::carried::NAME.into(), sent::KEYS.into()];
    let beside = sent::BESIDE.map(|name| format!("checkpoints/{id}/{name}"));
    match needed.iter().chain(&beside).find(|path| !paths.contains(path.as_str())) {
        Some(missing) => Err(bad(format!("{missing} is missing in what is to arrive"))),
        None => Ok(()),
    }
}

/// Makes empty files for everything that will come, if it fits on the disk. Blocks.
fn make_room(state: &Path, parcel: &MoveParcel) -> io::Result<()> {
    let dir = place(state).join(parcel.offer.session.to_string());
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    make_dir(&place(state))?;
    let total = parcel.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    let disk = rustix::fs::statvfs(state)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < total.saturating_add(SPARE_BYTES) {
        return Err(io::Error::other(format!("there is no room for {} MiB", total >> 20)));
    }
    for part in ["", "shell", "checkpoints", &format!("checkpoints/{}/img", parcel.checkpoint)] {
        let mut at = dir.clone();
        make_dir(&at)?;
        for name in part.split('/').filter(|name| !name.is_empty()) {
            at.push(name);
            make_dir(&at)?;
        }
    }
    for file in &parcel.files {
        let mut options = OpenOptions::new();
        // Never more than what its owner may do.
        options.write(true).create_new(true).mode(file.mode & 0o700 | 0o600);
        options.open(dir.join(&file.path))?.set_permissions(fs::Permissions::from_mode(file.mode & 0o755 | 0o600))?;
    }
    Ok(())
}

/// Whether everything is there as it was sent, and synced. Blocks.
fn must_be_whole(dir: &Path, parcel: &MoveParcel) -> io::Result<()> {
    for sent in &parcel.files {
        let file = File::open(dir.join(&sent.path))?;
        let (bytes, sum) = kept::summed(&file)?;
        if bytes != sent.bytes || needs::sum_text(sum) != sent.sum {
            return Err(io::Error::other(format!("{} did not arrive as it was sent", sent.path)));
        }
        file.sync_all()?;
    }
    Ok(())
}

/// Whether what arrived is what was announced: nothing in it leads elsewhere. Blocks.
fn must_fit(dir: &Path, parcel: &MoveParcel) -> io::Result<()> {
    let odd = |what: &str| Err(io::Error::other(format!("{what} is not as it was announced")));
    let (offer, spec) = (&parcel.offer, Spec::load(dir)?);
    let Some(portable) = &spec.portable else { return odd("the session") };
    if spec.id != offer.session || spec.wall.is_some() || spec.gate.is_some() || portable.branch.is_some() {
        return odd("the session");
    }
    if portable.mounts != offer.mounts || portable.own.as_deref() != Some(&offer.own) || spec.user != offer.user {
        return odd("what the session sees");
    }
    if spec.command.is_empty()
        || !(holdfast_types::RING_BYTES_MIN..=holdfast_types::RING_BYTES_MAX).contains(&spec.ring_bytes)
    {
        return odd("the session");
    }
    let manifest = kept::load(dir, &parcel.checkpoint)?;
    let start = format!("checkpoints/{}/img/", parcel.checkpoint);
    let sent: BTreeSet<&str> = parcel.files.iter().filter_map(|file| file.path.strip_prefix(&start)).collect();
    let listed: BTreeSet<&str> = manifest.files.iter().map(|(name, ..)| name.as_str()).collect();
    if sent != listed || manifest.files.len() != listed.len() || manifest.view.mounts != portable.mounts {
        return odd("the checkpoint");
    }
    let is_terminal = |key: &str| {
        let inner =
            key.strip_prefix("tty[").and_then(|rest| rest.strip_suffix(']')).and_then(|rest| rest.split_once(':'));
        let is_hex = |text: &str| (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        inner.is_some_and(|(one, other)| is_hex(one) && is_hex(other))
    };
    let terminal = manifest.terminal();
    if !is_terminal(&terminal.key) || !is_terminal(&terminal.tty_key) || manifest.view.session != spec.id {
        return odd("the checkpoint");
    }
    kept::verify(dir, &manifest)?;
    kept::fits(dir, &manifest)
}

/// Gives the directory its place among the sessions, under this name. Blocks.
fn settle(registry: &Settling, parcel: &MoveParcel, key: &str) -> io::Result<Spec> {
    let Settling { state, from, to, name, mapped } = registry;
    let mut spec = Spec::load(from)?;
    let keys: Vec<index::Entry> = get_json(&ARRIVAL, &from.join(sent::KEYS)).ok().flatten().unwrap_or_default();
    for entry in keys.iter().take(KEYS_MAX).filter(|entry| entry.session == spec.id) {
        // One that is taken here stays what it is.
        index::take(state, entry)?;
    }
    let now = crate::now_ms();
    spec.name = name.clone();
    spec.secret = holdfast_types::hex_text(&crate::random_token());
    (spec.ahead, spec.passing, spec.end_asked, spec.reaped) = (false, false, false, None);
    (spec.exit, spec.ended_ms) = (Some(holdfast_types::Exit::Lost), Some(now));
    spec.lost = Some(Box::new(LostView {
        at_ms: now,
        cause: Cause::Checkpoint,
        why: format!("it arrived from {}, and does not run yet", parcel.offer.machine),
        cwd: None,
        seen_ms: None,
        processes: Vec::new(),
        listened: Vec::new(),
        connected: Vec::new(),
        runs: Vec::new(),
        checkpoint: Some(parcel.checkpoint.clone()),
        withheld: Vec::new(),
    }));
    if let Some(portable) = &mut spec.portable {
        portable.stopped_for = Some(parcel.checkpoint.clone());
        portable.mapped = mapped.clone();
        portable.came_with.retain(|known| known != key);
        portable.came_with.push(key.to_owned());
        let old = portable.came_with.len().saturating_sub(super::HOMES_MAX);
        portable.came_with.drain(..old);
    }
    put_json(&SPEC, from, "spec", &spec, Survives::PowerCut)?;
    make_dir(&from.join("root"))?;
    make_dir(&state.join("own"))?;
    let _ = fs::remove_file(from.join(sent::KEYS));
    // One that was moved away from here, and comes back.
    let away = from.with_extension("before");
    let _ = fs::remove_dir_all(&away);
    match fs::rename(to, &away) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(from, to)?;
    File::open(to.parent().unwrap_or(to))?.sync_all()?;
    // Last: until here what arrived is found again, and settled again.
    let _ = fs::remove_file(to.join(PARCEL));
    let _ = fs::remove_dir_all(&away);
    Ok(spec)
}

/// Where a session is put.
struct Settling {
    state: PathBuf,
    from: PathBuf,
    to: PathBuf,
    name: SessionName,
    mapped: Vec<(String, String)>,
}

impl Registry {
    /// The session with this id that is here, in whatever state.
    fn here(&self, id: SessionId) -> Option<Rc<Session>> {
        self.all().into_iter().find(|session| session.id == id)
    }

    /// What would be in the way.
    pub(super) async fn arrive_check(&self, offer: MoveOffer) -> Result<ArriveAnswer, Fault> {
        let mut refused = self.in_the_way(&offer);
        if offer.files.len() > needs::FILES_MAX || offer.mounts.len() > needs::FILES_MAX {
            return Err(bad("it needs more files than could be looked at"));
        }
        let mut own = None;
        if offer.leased {
            match &self.shared.leases {
                Some(leases) => match leases.own_home().await {
                    Ok(home) => own = Some(home),
                    Err(fault) => refused.push(fault.message),
                },
                None => refused.push("it is leased, and there is no `lease` in config.toml there".into()),
            }
        }
        let (home, sums) = (self.shared.home.clone(), self.sums.clone());
        let looked = off_thread(move || Ok(needs::missing(&home, &offer, &sums)));
        refused.extend(looked.await.map_err(|error| failed(&error))?);
        Ok(ArriveAnswer { refused, home: own, ..ArriveAnswer::default() })
    }

    /// What of this host's own keeps a session from arriving.
    fn in_the_way(&self, offer: &MoveOffer) -> Vec<String> {
        let mut refused = Vec::new();
        let number = |text: &str| -> Vec<u32> { text.split('.').map_while(|part| part.parse().ok()).collect() };
        let ours = env!("CARGO_PKG_VERSION");
        if number(ours) < number(&offer.version) {
            refused.push(format!("holdfast there is {ours}, older than {}: update it", offer.version));
        }
        match self.here(offer.session) {
            Some(session) if session.moved().is_none() => {
                refused.push(format!("a session with this id is there already: {}", session.name()));
            }
            // It comes back: who brings it knows the key with which it left.
            Some(session) => {
                let left = super::home::load(&session.dir).map(|moved| moved.key).filter(|key| !key.is_empty());
                if !left.is_some_and(|key| offer.came_with.contains(&key)) {
                    let name = session.name();
                    refused.push(format!(
                        "{name} was moved away from there, and this is not it: holdfast end {name} there lets go of it"
                    ));
                }
            }
            None if self.shared.names.is_taken(&offer.name, Some(offer.session)) => {
                refused.push(format!("a session there has the name {}: rename one of the two", offer.name));
            }
            None => {}
        }
        refused
    }

    /// Makes room for it.
    pub(super) async fn arrive_begin(&self, parcel: MoveParcel, actor: &Actor) -> Result<ArriveAnswer, Fault> {
        must_be_sound(&parcel)?;
        let refused = self.in_the_way(&parcel.offer);
        if !refused.is_empty() {
            return Ok(ArriveAnswer { refused, ..ArriveAnswer::default() });
        }
        let (id, state) = (parcel.offer.session, self.shared.home.state.clone());
        let waiting = fs::read_dir(place(&state)).into_iter().flatten().flatten();
        let others = waiting.filter(|entry| entry.file_name().to_string_lossy() != id.to_string()).count();
        if others >= ARRIVALS_MAX {
            return Err(Fault::new(Code::TooMany, format!("{others} sessions are on their way there already"))
                .hint("finish those moves first"));
        }
        let made = parcel.clone();
        off_thread(move || make_room(&state, &made)).await.map_err(|error| failed(&error))?;
        let written = vec![0; parcel.files.len()];
        let arriving = Arriving { parcel: Rc::new(parcel), by: actor.id, written };
        self.arrivals.all.borrow_mut().insert(id, arriving);
        holdfast_pause::task_point("arrive.begun").await;
        Ok(ArriveAnswer::default())
    }

    fn arriving<T>(&self, id: SessionId, actor: &Actor, with: impl FnOnce(&mut Arriving) -> T) -> Result<T, Fault> {
        let mut all = self.arrivals.all.borrow_mut();
        let found = all.get_mut(&id).filter(|arriving| arriving.by == actor.id);
        found.map(with).ok_or_else(|| {
            Fault::new(Code::NotFound, format!("{id} is not on its way here")).hint("begin again: holdfast move")
        })
    }

    /// Bytes of a file, in order.
    pub(super) async fn arrive_write(
        &self,
        id: SessionId,
        file: u32,
        from: u64,
        bytes: Vec<u8>,
        actor: &Actor,
    ) -> Result<ArriveAnswer, Fault> {
        let at = file as usize;
        let path = self.arriving(id, actor, |arriving| {
            let (Some(sent), Some(written)) = (arriving.parcel.files.get(at), arriving.written.get_mut(at)) else {
                return Err(bad(format!("there is no file {file}")));
            };
            let end = from.saturating_add(bytes.len() as u64);
            if *written != from || end > sent.bytes || bytes.len() as u64 > PIECE_BYTES_MAX {
                return Err(bad(format!("bytes {from} to {end} of {} are not expected", sent.path)));
            }
            *written = end;
            Ok(sent.path.clone())
        })??;
        let path = place(&self.shared.home.state).join(id.to_string()).join(path);
        let kept = off_thread(move || OpenOptions::new().write(true).open(path)?.write_all_at(&bytes, from));
        kept.await.map_err(|error| failed(&error))?;
        Ok(ArriveAnswer::default())
    }

    /// Whether everything is there, and this machine has what it needs.
    pub(super) async fn arrive_whole(&self, id: SessionId, actor: &Actor) -> Result<ArriveAnswer, Fault> {
        let parcel = self.arriving(id, actor, |arriving| Rc::clone(&arriving.parcel))?;
        let whole = Whole { parcel: (*parcel).clone(), by: actor.clone(), at_ms: crate::now_ms() };
        let (home, sums) = (self.shared.home.clone(), self.sums.clone());
        let dir = place(&home.state).join(id.to_string());
        let looked = off_thread(move || {
            must_be_whole(&dir, &whole.parcel)?;
            must_fit(&dir, &whole.parcel)?;
            let refused = needs::changing(&home, &whole.parcel.offer, &sums);
            if refused.is_empty() {
                put_json(&ARRIVAL, &dir, PARCEL, &whole, Survives::PowerCut)?;
                File::open(place(&home.state))?.sync_all()?;
            }
            Ok(refused)
        });
        let refused = looked.await.map_err(|error| failed(&error))?;
        holdfast_pause::task_point("arrive.whole").await;
        Ok(ArriveAnswer { refused, ..ArriveAnswer::default() })
    }

    /// It lives here now. Asked again, whatever is left to do is done.
    pub(super) async fn arrive_finish(&self, id: SessionId, key: &str, actor: &Actor) -> Result<ArriveAnswer, Fault> {
        // Done also where the mover goes away meanwhile.
        let (registry, key, actor) = (self.clone(), key.to_owned(), actor.clone());
        let finished = tokio::task::spawn_local(async move {
            let _one = registry.arrivals.finishing.lock().await;
            let session = match registry.here(id).filter(|session| session.moved().is_none()) {
                Some(session) => session,
                None => registry.settle(id, &key).await?,
            };
            registry.begin_arrived(&session, &actor).await
        });
        finished.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the host failed to finish the move")))
    }

    /// Makes a session of what arrived.
    async fn settle(&self, id: SessionId, key: &str) -> Result<Rc<Session>, Fault> {
        let home = &self.shared.home;
        let from = place(&home.state).join(id.to_string());
        let read = from.clone();
        let whole: Option<Whole> = off_thread(move || Ok(get_json(&ARRIVAL, &read.join(PARCEL)).ok().flatten()))
            .await
            .map_err(|error| failed(&error))?;
        let Some(Whole { parcel, .. }) = whole.filter(|whole| whole.parcel.lock == lock_of(key)) else {
            return Err(Fault::new(Code::NotFound, format!("nothing of {id} that this key opens has arrived here"))
                .hint("holdfast move sends it again"));
        };
        holdfast_pause::task_point("arrive.unlocked").await;
        let name = self.name_for(&parcel.offer.name, id);
        self.shared.names.starts(&name);
        let real =
            |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned();
        let mapped = vec![(parcel.offer.state.clone(), real(&home.state)), (parcel.offer.run.clone(), real(&home.run))];
        let settling = Settling { state: home.state.clone(), from, to: home.session(id), name: name.clone(), mapped };
        let opened = key.to_owned();
        let settled = off_thread(move || settle(&settling, &parcel, &opened)).await;
        self.shared.names.started(&name);
        let spec = settled.map_err(|error| failed(&error))?;
        self.arrivals.all.borrow_mut().remove(&id);
        let session = Session::new(spec, &self.shared, Origin::Found);
        session.record_damage();
        self.take_in(Rc::clone(&session));
        take_up(Rc::clone(&session)).await;
        holdfast_pause::task_point("arrive.settled").await;
        Ok(session)
    }

    /// Its name, or one with a number where somebody has taken it meanwhile: a move that is committed does not fail for that.
    fn name_for(&self, name: &SessionName, id: SessionId) -> SessionName {
        let stem: String = name.as_str().chars().take(56).collect();
        let numbered = (2u32..).filter_map(|number| format!("{stem}-{number}").parse().ok());
        let all = std::iter::once(name.clone()).chain(numbered);
        let free = |name: &SessionName| !self.shared.names.is_taken(name, Some(id));
        all.into_iter().find(free).unwrap_or_else(|| name.clone())
    }

    /// Begins its life here, if it has none.
    async fn begin_arrived(&self, session: &Rc<Session>, actor: &Actor) -> Result<ArriveAnswer, Fault> {
        let mut cut = Vec::new();
        if session.view_life() != Life::Running {
            let params = RestoreParams { session: session.id.to_string(), ..RestoreParams::default() };
            cut = self.restore(&params, actor, None).await?.checkpoint.cut;
        }
        let view = session.view();
        Ok(ArriveAnswer { session: Some(Box::new(view)), cut, ..ArriveAnswer::default() })
    }

    /// Nothing comes of it.
    pub(super) async fn arrive_give_up(&self, id: SessionId, actor: &Actor) -> Result<ArriveAnswer, Fault> {
        self.arriving(id, actor, |_| ())?;
        self.arrivals.all.borrow_mut().remove(&id);
        let dir = place(&self.shared.home.state).join(id.to_string());
        let _ = off_thread(move || fs::remove_dir_all(dir)).await;
        Ok(ArriveAnswer::default())
    }
}
