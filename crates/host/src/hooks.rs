//! `on_exit`: when a run is over, the address its starter named is told, at least once.
//!
//! `<state>/hooks/<run>.json`, for the user alone, is on disk before the run starts, and goes when the receiver has taken it or
//! the time is up. Whatever happens to the host in between, the next one finds the file, and the run by its own records. The
//! run's id is the delivery's: a receiver that was told twice can know. Addresses and secrets are in no log and no view.

use crate::notify::{Posted, post_signed};
use crate::registry::Registry;
use crate::runs::gone_view;
use crate::runs::index::{self, Whose};
use crate::serve::Server;
use holdfast_session::Run;
use holdfast_store::{HOOK, Survives, Unreadable, get_json, make_dir, put_json, sweep};
use holdfast_types::{SessionId, TimeMs};
use holdfast_wire::params::Life;
use holdfast_wire::runs::{OnExit, RunId};
use holdfast_wire::{Code, Fault};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// Runs whose end somebody is to be told: more than any machine has on at once.
const PENDING_MAX: usize = 1024;
/// Longest address: what browsers and servers take.
const URL_BYTES_MAX: usize = 2048;
/// Longest secret: more than any hash takes in.
const SECRET_BYTES_MAX: usize = 256;
/// A receiver that is away longer than this after the run's end is not told: a night's outage is bridged.
const TRY_MS: u64 = 24 * 60 * 60 * 1000;
/// Pauses before the next attempts; the last one holds for all further ones.
const PAUSES_MS: [u64; 5] = [1_000, 5_000, 25_000, 2 * 60_000, 10 * 60_000];
/// Posted at once: one receiver that does not answer does not hold up the others.
const AT_ONCE: usize = 8;
/// An ended run's directory comes with the next prompt, unless hooks of the user's are slow.
const SETTLE_MS: u64 = 300;

/// Who is to be told of a run's end.
#[derive(Clone, Serialize, Deserialize)]
pub struct Hook {
    session: SessionId,
    /// As it began.
    run: Run,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// What is told: the same each time it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
}

/// What is told of a run that is over.
#[derive(Clone, Serialize, Deserialize)]
struct Told {
    body: String,
    at_ms: TimeMs,
}

impl Hook {
    /// For a run that is about to start.
    pub fn of(on_exit: &OnExit, session: SessionId, run: &Run) -> Hook {
        // What its end is known by is nobody's here.
        let run = Run { token: String::new(), ..run.clone() };
        Hook { session, run, url: on_exit.url.clone(), secret: on_exit.secret.clone(), told: None }
    }
}

/// Whether an address can be told anything.
pub fn check(on_exit: &OnExit) -> Result<(), Fault> {
    let bad = |why: String| Err(Fault::new(Code::BadRequest, format!("on_exit: {why}")));
    let OnExit { url, secret } = on_exit;
    let rest = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':'])) else {
        return bad("expected an address that starts with http:// or https://".into());
    };
    if url.len() > URL_BYTES_MAX || rest.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return bad(format!("an address may have at most {URL_BYTES_MAX} bytes and no spaces"));
    }
    match secret {
        Some(secret) if secret.is_empty() || secret.len() > SECRET_BYTES_MAX => {
            bad(format!("a secret must have 1 to {SECRET_BYTES_MAX} bytes"))
        }
        Some(_) | None => Ok(()),
    }
}

struct Pending {
    hook: Hook,
    /// What is told is on disk too.
    kept: bool,
    tries: usize,
    next_ms: TimeMs,
    posting: bool,
}

impl Pending {
    fn new(hook: Hook) -> Pending {
        Pending { kept: hook.told.is_some(), hook, tries: 0, next_ms: 0, posting: false }
    }
}

/// All hooks whose receiver has not been told.
pub struct Hooks {
    dir: PathBuf,
    pending: RefCell<BTreeMap<RunId, Pending>>,
    /// A run is over, or an attempt was made.
    pub stirred: Notify,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooks({})", self.pending.borrow().len())
    }
}

impl Hooks {
    /// Those an earlier host left.
    pub fn load(state: &Path) -> Hooks {
        let dir = state.join("hooks");
        let mut pending = BTreeMap::new();
        sweep(&dir, &[]);
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match get_json::<Hook>(&HOOK, &path) {
                Ok(Some(hook)) if path == file_of(&dir, hook.run.id) => {
                    pending.insert(hook.run.id, Pending::new(hook));
                }
                Ok(_) => {}
                Err(why @ (Unreadable::Newer { .. } | Unreadable::Io { .. })) => {
                    tracing::warn!("{}: {why}; its on_exit is dropped", path.display());
                }
                Err(why @ Unreadable::Damaged { .. }) => {
                    tracing::warn!("{}: {why}; its on_exit is dropped, and the file removed", path.display());
                    let _ = std::fs::remove_file(&path);
                }
            }
        }
        Hooks { dir, pending: RefCell::new(pending), stirred: Notify::new() }
    }

    /// Puts it on disk, for good: the run may start then. Nobody is told before it is [armed](Hooks::arm).
    pub async fn record(&self, hook: &Hook) -> Result<(), Fault> {
        if self.pending.borrow().len() >= PENDING_MAX {
            return Err(Fault::new(Code::TooMany, format!("too many pending on_exit posts: {PENDING_MAX} runs"))
                .hint("start the run without on_exit, or wait until others have ended"));
        }
        let (dir, hook) = (self.dir.clone(), hook.clone());
        crate::disk::at_disk(move || keep(&dir, &hook)).await.map_err(|e| crate::session::unkept(&e))
    }

    /// Its run is on record: its end will be told.
    pub fn arm(&self, hook: Hook) {
        self.pending.borrow_mut().insert(hook.run.id, Pending::new(hook));
        // It may be over already.
        self.stirred.notify_one();
    }

    /// Its run did not start, or its receiver was told.
    pub fn forget(&self, run: RunId) {
        self.pending.borrow_mut().remove(&run);
        let _ = std::fs::remove_file(file_of(&self.dir, run));
    }

    /// Whether somebody is still to be told of this run's end.
    pub fn names(&self, run: RunId) -> bool {
        self.pending.borrow().contains_key(&run)
    }

    /// Whether only this session knows what is to be told of one of its runs.
    pub fn needs(&self, session: SessionId) -> bool {
        self.pending.borrow().values().any(|one| one.hook.session == session && !one.kept)
    }

    /// Looks which runs are over, and settles what is told of them. Gives when to look again.
    fn look(&self, registry: &Registry, now: TimeMs) -> Option<TimeMs> {
        let open: Vec<(RunId, SessionId)> = {
            let pending = self.pending.borrow();
            let open = pending.values().filter(|one| one.hook.told.is_none());
            open.map(|one| (one.hook.run.id, one.hook.session)).collect()
        };
        let mut again = None::<TimeMs>;
        for (id, session) in open {
            let Ok(session) = registry.find(&session.to_string()) else {
                self.gone(registry, id, now);
                continue;
            };
            match session.run(id) {
                Some(run) if run.state.is_over() => {
                    let sure_ms = run.ended_ms.unwrap_or(now).saturating_add(SETTLE_MS);
                    if session.is_settled(id) || sure_ms <= now || sure_ms > now + SETTLE_MS {
                        self.over(id, serde_json::json!(session.run_view(&run)), now);
                    } else {
                        again = Some(again.map_or(sure_ms, |other| other.min(sure_ms)));
                    }
                }
                Some(_) => {}
                // A host went away before it was on record, which comes before its first key.
                None if matches!(session.view_life(), Life::Running | Life::Ended | Life::Lost) => self.forget(id),
                None => {}
            }
        }
        again
    }

    /// The run's session is gone: what its key knows, or nothing.
    fn gone(&self, registry: &Registry, id: RunId, now: TimeMs) {
        let known = self.pending.borrow().get(&id).map(|one| (one.hook.session, one.hook.run.clone()));
        let Some((session, run)) = known else { return };
        let state_dir = &registry.shared.home.state;
        let whose = Whose::of(&run.actor, run.shared);
        // One that cannot be read may be.
        let is_its =
            |key: &String| index::find(state_dir, whose, key).map_or(true, |found| found.is_some_and(|f| f.run == id));
        if run.key.as_ref().is_none_or(is_its) {
            self.over(id, serde_json::json!(gone_view(state_dir, session, &run)), now);
        } else {
            // A host went away before the key was its own: nothing was started.
            self.forget(id);
        }
    }

    fn over(&self, id: RunId, view: serde_json::Value, now: TimeMs) {
        let body = serde_json::json!({ "on": "run", "delivery": id, "at_ms": now, "run": view }).to_string();
        if let Some(one) = self.pending.borrow_mut().get_mut(&id) {
            one.hook.told = Some(Told { body, at_ms: now });
        }
    }

    /// Puts what is told on disk, so that the next host tells the same, and the session can be cleared.
    async fn keep_told(&self, hook: &Hook) {
        let id = hook.run.id;
        if self.pending.borrow().get(&id).is_none_or(|one| one.kept) {
            return;
        }
        let (dir, hook) = (self.dir.clone(), hook.clone());
        match crate::disk::at_disk(move || keep(&dir, &hook)).await {
            Ok(()) => {
                self.pending.borrow_mut().get_mut(&id).into_iter().for_each(|one| one.kept = true);
            }
            // The run's own record says it as long as its session is there.
            Err(error) => tracing::warn!(run = %id, "cannot keep its on_exit: {error}"),
        }
    }

    /// What is to be posted now, and when the next one is due.
    fn due(&self, now: TimeMs) -> (Vec<Hook>, Option<TimeMs>) {
        let mut due = Vec::new();
        let mut next = None::<TimeMs>;
        for one in self.pending.borrow_mut().values_mut().filter(|one| one.hook.told.is_some() && !one.posting) {
            // A clock that was set back makes nobody wait for longer.
            let longest_ms = PAUSES_MS[PAUSES_MS.len() - 1];
            if one.next_ms <= now || one.next_ms > now.saturating_add(longest_ms) {
                one.posting = true;
                due.push(one.hook.clone());
            } else {
                next = Some(next.map_or(one.next_ms, |other| other.min(one.next_ms)));
            }
        }
        (due, next)
    }

    /// An attempt was made.
    fn posted(&self, id: RunId, posted: Posted, now: TimeMs) {
        let failed = match posted {
            Posted::Done => None,
            Posted::Later(why) | Posted::Refused(why) => Some((why, false)),
            Posted::Never(why) => Some((why, true)),
        };
        let Some((why, for_good)) = failed else { return self.forget(id) };
        let is_over = {
            let mut pending = self.pending.borrow_mut();
            let Some(one) = pending.get_mut(&id) else { return };
            let pause_ms = PAUSES_MS[one.tries.min(PAUSES_MS.len() - 1)];
            one.tries += 1;
            one.posting = false;
            one.next_ms = now.saturating_add(pause_ms);
            for_good || one.hook.told.as_ref().is_some_and(|told| told.at_ms.saturating_add(TRY_MS) < one.next_ms)
        };
        if is_over {
            tracing::warn!(run = %id, "could not post its end: {why}");
            self.forget(id);
        }
    }
}

fn name_of(run: RunId) -> String {
    format!("{run}.json")
}

fn file_of(dir: &Path, run: RunId) -> PathBuf {
    dir.join(name_of(run))
}

/// Writes a hook whole, so that it survives even the machine's end.
fn keep(dir: &Path, hook: &Hook) -> io::Result<()> {
    make_dir(dir)?;
    put_json(&HOOK, dir, &name_of(hook.run.id), hook, Survives::PowerCut)
}

/// Tells receivers for as long as the host runs.
pub async fn follow(server: Rc<Server>) {
    let hooks = Rc::clone(&server.registry.shared.hooks);
    let slots = Rc::new(Semaphore::new(AT_ONCE));
    loop {
        let now = crate::now_ms();
        let again = hooks.look(&server.registry, now);
        let (due, next) = hooks.due(now);
        for hook in due {
            let (hooks, slots) = (Rc::clone(&hooks), Rc::clone(&slots));
            tokio::task::spawn_local(async move {
                hooks.keep_told(&hook).await;
                let slot = slots.acquire().await;
                let Hook { url, secret, told, run, .. } = hook;
                let body = told.map(|told| told.body).unwrap_or_default();
                let posted = post_signed(url, secret, body, Some(run.id.to_string())).await;
                drop(slot);
                hooks.posted(run.id, posted, crate::now_ms());
                hooks.stirred.notify_one();
            });
        }
        let wake = [again, next].into_iter().flatten().min();
        match wake.map(|at| Duration::from_millis(at.saturating_sub(crate::now_ms()))) {
            Some(pause) => {
                let _ = tokio::time::timeout(pause, hooks.stirred.notified()).await;
            }
            None => hooks.stirred.notified().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home with what the version before left in `hooks`.
    fn old() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let name = "hooks/run_6eedn95hn7r21qx0cp7rqrnj00.json";
        make_dir(&dir.path().join("hooks")).unwrap();
        let path = dir.path().join(name);
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/v1").join(name), &path).unwrap();
        (dir, path)
    }

    #[test]
    fn a_hook_of_the_version_before_is_told_and_kept_in_todays_form() {
        let (dir, path) = old();
        let (due, _) = Hooks::load(dir.path()).due(0);
        assert_eq!((due.len(), due[0].url.as_str()), (1, "http://127.0.0.1:9/x"));
        keep(&dir.path().join("hooks"), &due[0]).unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(b"holdfast hook 2 "));
        let (again, _) = Hooks::load(dir.path()).due(0);
        assert_eq!(again[0].told.as_ref().map(|told| &told.body), due[0].told.as_ref().map(|told| &told.body));
    }

    #[test]
    fn a_damaged_hook_goes_and_a_later_versions_stays() {
        let (dir, path) = old();
        let newer = holdfast_store::Format { version: 3, ..HOOK }.seal(b"{}");
        std::fs::write(&path, &newer).unwrap();
        std::fs::write(dir.path().join("hooks/half.new"), b"{").unwrap();
        assert!(Hooks::load(dir.path()).due(0).0.is_empty());
        assert_eq!(std::fs::read(&path).unwrap(), newer);
        assert!(!dir.path().join("hooks/half.new").exists(), "what a crash left is swept away");
        std::fs::write(&path, &newer[..newer.len() - 1]).unwrap();
        assert!(Hooks::load(dir.path()).due(0).0.is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn only_addresses_of_the_web_are_told() {
        let said = |url: &str, secret: Option<&str>| {
            check(&OnExit { url: url.into(), secret: secret.map(str::to_owned) }).is_ok()
        };
        for url in ["http://127.0.0.1:8080/x", "https://example.org", "https://u@example.org/?a=b"] {
            assert!(said(url, Some("key")), "{url}");
        }
        for url in ["", "ftp://x", "file:///etc/passwd", "http://", "http:///x", "https://a b", "https://a\nb", "x"] {
            assert!(!said(url, None), "{url}");
        }
        assert!(!said(&format!("https://{}", "a".repeat(URL_BYTES_MAX)), None));
        assert!(!said("https://example.org", Some("")) && !said("https://example.org", Some(&"k".repeat(300))));
    }
}
