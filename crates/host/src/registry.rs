//! All sessions of a home: finding them at the start, starting new ones, resolving names, clearing old ones.

use crate::HostConfig;
use crate::actors::Actors;
use crate::ahead::Ahead;
use crate::attention::Attention;
use crate::birth::Birth;
use crate::gate::{Act, Gate};
use crate::lives::kept::KeptBirth;
use crate::lives::{Began, tell};
use crate::metrics::Metrics;
use crate::moving::{Arrivals, Sums};
use crate::names::{Names, Sessions, must_not_mislead};
use crate::orders::{integrate, orders};
use crate::prepared::Prepared;
use crate::proofs::Proofs;
use crate::runs::OwnRun;
use crate::session::{self, Missed, Origin, Session, Shared};
use crate::spawn;
use crate::store::{Spec, make_dir};
use holdfast_authority::{Input, Refusal, Rule};
use holdfast_session::Run;
use holdfast_store::sweep;
use holdfast_types::terms_of;
use holdfast_types::{Actor, Home, RING_BYTES_MAX, RING_BYTES_MIN, Right, Rights, SessionId, SessionName, TimeMs};
use holdfast_wire::attention::What;
use holdfast_wire::gate::ApprovalId;
use holdfast_wire::lives::{RecoverAnswer, RecoverParams};
use holdfast_wire::params::{Life, NewParams, SessionView};
use holdfast_wire::{Code, Fault};
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Shortest beginning of an id, without `ses_`, that is taken for one.
const ID_PREFIX_MIN: usize = 4;

/// How long a lost session can be recovered, at the least.
const LOST_KEEP_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// The sessions of one home. A copy is the same one.
#[derive(Debug, Clone)]
pub struct Registry {
    /// What all sessions have in common.
    pub shared: Rc<Shared>,
    sessions: Rc<Sessions>,
    /// Shells that wait to become sessions.
    pub(crate) ahead: Rc<Ahead>,
    /// Sessions that are being moved here.
    pub(crate) arrivals: Rc<Arrivals>,
    /// Checksums of files that sessions have open.
    pub(crate) sums: Sums,
    /// What the next sessions need.
    prepared: Rc<Prepared>,
}

/// The size of a ring for which so many bytes were asked.
fn ring_size(asked: u64) -> Result<u64, Fault> {
    if asked > RING_BYTES_MAX {
        let message = format!("the ring is too large: {asked} bytes, at most {RING_BYTES_MAX}");
        return Err(Fault::new(Code::BadRequest, message));
    }
    Ok(asked.max(RING_BYTES_MIN).next_power_of_two())
}

impl Registry {
    /// Makes the directories and puts the keeper program in its place.
    pub fn open(home: &Home, config: &HostConfig) -> io::Result<Registry> {
        make_dir(&home.sessions())?;
        spawn::install(&home.state, spawn::KEEPER)?;
        let sessions = Rc::new(Sessions::default());
        let own = Arc::default();
        Ok(Registry {
            shared: Rc::new(Shared {
                names: Names::of(&sessions),
                home: home.clone(),
                config: config.clone(),
                actors: RefCell::new(Actors::load(home)),
                metrics: Arc::new(Metrics::new()),
                own: Arc::clone(&own),
                proofs: Rc::new(RefCell::new(Proofs::new(crate::now()))),
                syncs: Rc::default(),
                looks: Rc::new(Semaphore::new(1)),
                hooks: Rc::new(crate::hooks::Hooks::load(&home.state)),
                gate: Rc::new(Gate::new(config.policy, home)),
                lives: Rc::default(),
                leases: config.lease.as_ref().map(|lease| crate::leases::Leases::new(lease, home)).transpose()?,
                reaper: Rc::new(crate::reap::Reaper::new(config.reap.clone())),
                alarm: Rc::default(),
                attention: Rc::new(Attention::new(crate::now_ms(), config.notify.clone())),
            }),
            prepared: Rc::new(Prepared::new(home, &own)),
            sessions,
            ahead: Rc::default(),
            arrivals: Rc::default(),
            sums: Sums::default(),
        })
    }

    /// Finds every session on disk and takes up the keepers that live. Whatever is wrong with one is that one's alone.
    pub async fn recover(&self) -> io::Result<()> {
        let mut takings_up = Vec::new();
        self.sweep();
        crate::moving::arrive::sweep(&self.shared.home.state);
        for entry in std::fs::read_dir(self.shared.home.sessions())? {
            let dir = entry?.path();
            let Some(id) = session::id_of(&dir) else { continue };
            sweep(&dir, &[]);
            sweep(&dir.join("shell"), &[]);
            match Spec::load(&dir) {
                Ok(spec) if spec.id == id && spec.ahead => self.end_left(spec),
                Ok(spec) if spec.id == id => {
                    let session = Session::new(spec, &self.shared, Origin::Found);
                    session.record_damage();
                    self.sessions.borrow_mut().insert(id, Rc::clone(&session));
                    takings_up.push((Rc::clone(&session), tokio::task::spawn_local(take_up(session))));
                }
                // Made by a host that died before the spec was written: nothing ever ran.
                Err(_) if never_began(&dir) => {
                    let _ = std::fs::remove_dir_all(&dir);
                }
                Ok(_) => self.shelve(id, "its spec file belongs to another session".into()),
                Err(error) => self.shelve(id, format!("cannot read its spec file: {error}")),
            }
        }
        // All at once: one keeper that does not answer must not keep the others waiting.
        for (session, taking_up) in takings_up {
            // A fault of our own with one of them must not keep the host from all the others.
            if let Err(fault) = taking_up.await {
                session.set_aside(Life::Damaged, format!("the host failed to load it: {fault}"));
            }
        }
        Ok(())
    }

    /// Clears away what a host or a command that died left beside the home's files.
    fn sweep(&self) {
        let home = &self.shared.home;
        // There may be files of others here.
        sweep(&home.state, &["tokens.json", "browsers.key", "http.json"]);
        crate::runs::index::sweep(&home.state);
        sweep(&home.actors(), &[]);
    }

    /// A session of which nothing but its directory is known: shown, and left alone.
    fn shelve(&self, id: SessionId, note: String) {
        let text = id.to_string();
        let spec = Spec {
            id,
            name: format!("damaged-{}", &text[text.len() - 6..]).parse().expect("letters and digits"),
            command: Vec::new(),
            cwd: String::new(),
            size: Default::default(),
            ring_bytes: 0,
            secret: String::new(),
            created_ms: 0,
            shell: None,
            user: None,
            wall: None,
            gate: None,
            portable: None,
            lease: None,
            passing: false,
            ahead: false,
            begun_ms: None,
            stand_in: None,
            recover: None,
            restart_on_failure: None,
            reap_after: None,
            kept: None,
            reaped: None,
            tries: Vec::new(),
            end_asked: false,
            lost: None,
            exit: None,
            ended_ms: None,
        };
        let session = Session::new(spec, &self.shared, Origin::Found);
        let hint = format!("{note}; its directory is {}", session.dir.display());
        session.set_aside(Life::Damaged, hint);
        self.sessions.borrow_mut().insert(id, session);
    }

    /// Whether an actor may start sessions.
    pub fn may_start(&self, actor: &Actor) -> Result<(), Fault> {
        self.must_hold(actor, Right::Start, "start sessions")
    }

    /// An actor's class holds a right on this host. A grant in some session gives nothing outside of it.
    pub fn must_hold(&self, actor: &Actor, right: Right, deed: &str) -> Result<(), Fault> {
        if self.shared.policy().default_of(actor).has(right) {
            return Ok(());
        }
        let denied = session::fault(&Refusal::Denied { right, rule: Rule::Envelope });
        Err(Fault { message: format!("{actor} may not {deed}"), ..denied })
    }

    /// Starts a session.
    pub async fn start(&self, params: NewParams, actor: &Actor) -> Result<SessionView, Fault> {
        self.may_start(actor)?;
        let id = new_id();
        let birth = Birth::of(params.clone(), None, &self.shared.config)?;
        if birth.on_resume.is_some() && !self.shared.policy_is_human(actor) {
            // No policy has judged that command by the time it is run.
            return Err(Fault::new(Code::Denied, "only a human says what is run when a session is restored")
                .hint("leave out `on_resume`"));
        }
        self.judge_start(actor, &birth, Act::Start(id, Box::new(params)), None, None).await?;
        match self.start_given(&birth, actor) {
            Some(view) => Ok(view),
            None => self.start_as(id, None, birth, actor).await,
        }
    }

    /// The session that was started ahead for this, as a session like any other.
    fn start_given(&self, birth: &Birth, actor: &Actor) -> Option<SessionView> {
        let name = birth.name.as_ref().filter(|name| !self.is_taken(name))?;
        Some(self.show(self.given(name, birth, actor)?, actor))
    }

    /// Starts a session with this id; its command may be a run.
    pub(crate) async fn start_as(
        &self,
        id: SessionId,
        run: Option<OwnRun>,
        birth: Birth,
        actor: &Actor,
    ) -> Result<SessionView, Fault> {
        crate::room::must_be(crate::room::START_ROOM).map_err(|error| {
            Fault::new(Code::CannotStart, format!("the host has no room for another session: {error}"))
                .hint("end sessions, or raise the limit of open files (ulimit -n) and run `holdfast host restart`; sessions keep running")
        })?;
        crate::seam::with_its_seam(&birth)?;
        let mut birth = self.behind_its_wall(birth).await?;
        if birth.is_portable {
            birth.portable = Some(crate::portable::checked(&self.shared.home, &birth)?);
        }
        let name = self.reserve(birth.name.clone(), &birth.command)?;
        let begun = self.begin((id, name.clone()), run, &birth, actor, false).await;
        let shown = begun.map(|session| self.show(session, actor));
        self.shared.names.started(&name);
        shown
    }

    /// A session that was moved here, in place of what it left here before.
    pub(crate) fn take_in(&self, session: Rc<Session>) {
        self.sessions.borrow_mut().insert(session.id, session);
    }

    /// A session of this host from now on, for all to see.
    pub(crate) fn show(&self, session: Rc<Session>, actor: &Actor) -> SessionView {
        self.sessions.borrow_mut().insert(session.id, Rc::clone(&session));
        session.tell_watchers(What::Started { by: actor.handle.clone() });
        if let Some(run) = session.run_on() {
            session.tell_watchers(session::run_started(&run));
        }
        session.view()
    }

    /// Starts a session that nobody is shown yet.
    pub(crate) async fn begin(
        &self,
        (id, name): (SessionId, SessionName),
        run: Option<OwnRun>,
        birth: &Birth,
        actor: &Actor,
        ahead: bool,
    ) -> Result<Rc<Session>, Fault> {
        let ring_bytes = ring_size(birth.ring_bytes.unwrap_or(self.shared.config.ring_bytes))?;
        let secret = crate::random_token();
        let passing = ahead || run.as_ref().is_some_and(|own| !own.keep);
        let mut spec = Spec { passing, ahead, ..Spec::of(id, name, birth, ring_bytes, &secret) };
        let session = Session::new(spec.clone(), &self.shared, Origin::New);
        // Nothing of it begins before it is known that it lives nowhere else.
        let claim = session.claim(self.shared.leases.as_deref(), spec.lease.as_ref(), 1).await?;
        let lease = session.start_lease(&mut spec.lease, claim);
        let mut start = orders(&session, &spec, birth, secret)?;
        start.lease = lease;
        let shell = integrate(&self.shared, &session, &mut start, birth);
        spec.shell = shell.as_ref().map(|shell| shell.kind);
        crate::wall::put_up(&session, &spec, &mut start)?;
        if run.as_ref().is_some_and(|own| own.separate_stderr) {
            session.separate_stderr(&mut start)?;
        }
        crate::seam::put_up(&self.shared, &session, &spec, &mut start).await?;
        crate::portable::dress(&self.shared.home, &session, &spec, &mut start)?;
        {
            let mut state = session.state.borrow_mut();
            (state.spec.shell, state.base) = (spec.shell, birth.base.output);
            state.spec.lease = spec.lease.clone();
        }
        let cannot = |error: io::Error| {
            Fault::new(Code::CannotStart, format!("cannot create the session's files: {error}"))
                .hint("is the disk full? check with: holdfast doctor")
        };
        let begun = async {
            self.prepared.directory(&session.dir).and_then(|()| spec.save(&session.dir)).map_err(cannot)?;
            KeptBirth::of(birth).save(&session.dir).map_err(cannot)?;
            if let Some(shell) = &shell {
                shell.prepare(&session.shell_dir()).map_err(cannot)?;
            }
            let decided = session.decide(Input::Started { by: actor.clone() })?;
            tell(&session, &spec, Began::Started).map_err(cannot)?;
            if let Some(own) = run {
                if let Some(trace) = own.trace {
                    session.contracts.follow(trace.run);
                    session.contracts.keep(trace).map_err(cannot)?;
                }
                session.record_run(Run { act: decided.act, ..own.run }).map_err(cannot)?;
            }
            // Looked for each time: a tidy person may have emptied the directory.
            let keeper = spawn::install(&self.shared.home.state, spawn::KEEPER).map_err(cannot)?;
            let apart = crate::portable::apart(&self.shared.home, &spec).map_err(cannot)?;
            let ready = if apart.is_none() { self.prepared.keeper(&keeper) } else { None };
            spawn::start(&keeper, apart.as_deref(), ready, &id.to_string(), &start).await
        };
        let begun = begun.await;
        self.prepared.again();
        match begun {
            Ok((child, started)) => session.started(child, started),
            Err(fault) => {
                let _ = std::fs::remove_dir_all(&session.dir);
                let _ = std::fs::remove_file(&session.socket);
                let _ = std::fs::remove_file(&session.agent_link);
                session.leave_seam();
                session.release_lease();
                return Err(fault);
            }
        }
        crate::log::of_session(id);
        // Whoever asked need not wait until we are connected; whoever asks more will.
        let begun = Rc::clone(&session);
        tokio::task::spawn_local(async {
            tokio::task::yield_now().await;
            session::drive(begun).await;
        });
        Ok(session)
    }

    /// Reserves the name asked for, or one made from the command.
    pub(crate) fn reserve(&self, name: Option<SessionName>, command: &[String]) -> Result<SessionName, Fault> {
        name.as_ref().map_or(Ok(()), must_not_mislead)?;
        let name = match name {
            Some(name) if self.is_lost(&name) => {
                return Err(Fault::new(Code::NameTaken, format!("a lost session has the name {name}")).hint(format!(
                    "to give it another life: holdfast recover {name}; to let go of it: holdfast end {name}"
                )));
            }
            Some(name) if self.is_taken(&name) => {
                return Err(Fault::new(Code::NameTaken, format!("a session named {name} is already running"))
                    .hint(format!("attach to it: holdfast attach {name}; or choose another name")));
            }
            Some(name) => name,
            None => self.free_name(command),
        };
        self.shared.names.starts(&name);
        Ok(name)
    }

    /// Whether a lost session has this name.
    fn is_lost(&self, name: &SessionName) -> bool {
        self.sessions.borrow().values().any(|s| s.view_life() == Life::Lost && s.name() == name.as_str())
    }

    /// Whether a live session, or one being started, has this name.
    pub fn is_taken(&self, name: &SessionName) -> bool {
        self.shared.names.is_taken(name, None)
    }

    fn free_name(&self, command: &[String]) -> SessionName {
        let program = command.first().map_or("", |c| c.rsplit('/').next().unwrap_or(c));
        let plain: String =
            program.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(40).collect();
        let base =
            Some(plain.trim_start_matches('-')).filter(|b| b.parse::<SessionName>().is_ok()).unwrap_or("session");
        let numbered = (2u32..).map(|n| format!("{base}-{n}"));
        std::iter::once(base.to_owned())
            .chain(numbered)
            .filter_map(|text| text.parse().ok())
            .find(|name| !self.is_taken(name))
            .expect("there are more numbers than sessions")
    }

    /// All sessions, oldest first.
    pub fn all(&self) -> Vec<Rc<Session>> {
        let mut all: Vec<_> = self.sessions.borrow().values().cloned().collect();
        all.sort_by_key(|s| s.state.borrow().spec.created_ms);
        all
    }

    /// The session a person means: a live one's name, an ended one's, or the beginning of an id.
    pub fn find(&self, wanted: &str) -> Result<Rc<Session>, Fault> {
        // The newest of that name, a live one before those that ended. Neither copied nor sorted: this is asked for every act.
        let sessions = self.sessions.borrow();
        let named = sessions.values().filter(|s| s.is_named(wanted) && !s.has_passed());
        if let Some(session) = named.max_by_key(|s| (s.holds_its_name(), s.state.borrow().spec.created_ms, s.id)) {
            return Ok(Rc::clone(session));
        }
        drop(sessions);
        let all = self.all();
        let digits = wanted.strip_prefix("ses_").unwrap_or(wanted);
        let fits: Vec<_> = if digits.len() < ID_PREFIX_MIN {
            Vec::new()
        } else {
            all.iter().filter(|s| s.id.to_string()["ses_".len()..].starts_with(digits)).collect()
        };
        match fits.as_slice() {
            [one] => Ok(Rc::clone(one)),
            [] => Err(Fault::new(Code::NotFound, format!("no session {wanted:?}"))
                .hint("list sessions: holdfast ls --all; or start one: holdfast new")),
            several => Err(Fault::new(Code::Ambiguous, format!("{wanted:?} matches {} sessions", several.len()))
                .hint("use a longer prefix, or the name")),
        }
    }

    /// The session a person means, if this actor holds one of the rights there.
    pub fn find_for(&self, wanted: &str, actor: &Actor, rights: impl Into<Rights>) -> Result<Rc<Session>, Fault> {
        let session = self.find(wanted)?;
        self.may(&session, wanted, actor, rights.into())?;
        crate::log::of_session(session.id);
        Ok(session)
    }

    /// Looks, for as long as it takes. Who has lost the right meanwhile is not told what came since.
    pub async fn look<T>(
        &self,
        wanted: &str,
        actor: &Actor,
        look: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let session = self.find_for(wanted, actor, Right::Observe)?;
        session.watch.looked_ms.set(Some(crate::now_ms()));
        let seen = look(&session).await?;
        self.may(&session, wanted, actor, Right::Observe.into())?;
        Ok(seen)
    }

    pub(crate) fn may(&self, session: &Session, wanted: &str, actor: &Actor, rights: Rights) -> Result<(), Fault> {
        let missing = rights.iter().next().filter(|_| !session.rights(actor).meets(rights));
        let Some(right) = missing else { return Ok(()) };
        self.may_know(session, wanted, actor)?;
        self.shared.metrics.refused("denied");
        Err(session::fault(&Refusal::Denied { right, rule: Rule::Envelope }))
    }

    /// The session a person means, for an act: what this actor may do there the session's authority decides, and records.
    pub fn find_acting(&self, wanted: &str, actor: &Actor) -> Result<Rc<Session>, Fault> {
        let session = self.find_moving(wanted, actor)?;
        session.must_not_be_moving()?;
        Ok(session)
    }

    /// The same, also while it is being moved.
    pub(crate) fn find_moving(&self, wanted: &str, actor: &Actor) -> Result<Rc<Session>, Fault> {
        let session = self.find(wanted)?;
        self.may_know(&session, wanted, actor)?;
        crate::log::of_session(session.id);
        Ok(session)
    }

    /// Who holds nothing and is not known here does not learn what is here.
    fn may_know(&self, session: &Session, wanted: &str, actor: &Actor) -> Result<(), Fault> {
        if session.rights(actor).is_empty() && !self.shared.actors.borrow().vouched().contains_key(&actor.id) {
            return Err(Fault::new(Code::NotFound, format!("no session {wanted:?} for {actor}")));
        }
        Ok(())
    }

    /// Whom the host knows has changed: every session is told.
    pub fn actors_changed(&self) {
        for session in self.all() {
            session.policy_changed(self.shared.policy());
        }
    }

    /// Gives a lost session another life; one that runs already is answered as it is.
    pub(crate) async fn recover_one(
        &self,
        params: &RecoverParams,
        actor: &Actor,
        released: Option<ApprovalId>,
    ) -> Result<RecoverAnswer, Fault> {
        let session = self.find_acting(&params.session, actor)?;
        // Whoever comes second finds it running.
        let _one = session.reviving.lock().await;
        match session.view_life() {
            Life::Lost => {}
            Life::Running => {
                self.may(&session, &params.session, actor, const { terms_of("session.recover") }.rights)?;
                return Ok(RecoverAnswer { session: session.view(), began: false });
            }
            Life::Ended | Life::Unknown | Life::Damaged => {
                self.may(&session, &params.session, actor, const { terms_of("session.recover") }.rights)?;
                return Err(session.running().await.err().unwrap_or_else(|| {
                    Fault::new(Code::Busy, format!("session {} has just changed", session.name())).hint("try again")
                }));
            }
        }
        session.recover(Rc::clone(&self.shared), params, actor, released).await?;
        Ok(RecoverAnswer { session: session.view(), began: true })
    }

    /// Clears sessions that ended longer ago than configured.
    pub fn clear_old(&self, now_ms: TimeMs) {
        let crate::HostConfig { ended_keep_ms, runs_keep_ms, .. } = self.shared.config;
        let is_old = |session: &Rc<Session>| {
            // What a key stands for, and its output, are there as long as the key.
            let own_key = session.keyed_runs().iter().any(|run| run.own);
            let keep_ms = if own_key { ended_keep_ms.max(runs_keep_ms) } else { ended_keep_ms };
            // What was lost may be wanted again: a holiday is bridged.
            let keep_ms = if session.view_life() == Life::Lost { keep_ms.max(LOST_KEEP_MS) } else { keep_ms };
            // And what is told of its runs' ends is kept elsewhere.
            session.ended_ms().is_some_and(|at| at.saturating_add(keep_ms) <= now_ms)
                && !self.shared.hooks.needs(session.id)
        };
        for session in self.all().into_iter().filter(is_old) {
            for run in session.keyed_runs() {
                // The key outlives the session: it still says how its run ended.
                if let Err(error) = crate::runs::index::conclude(&self.shared.home.state, &run) {
                    tracing::warn!(run = %run.id, "cannot be noted at its key: {error}");
                }
            }
            if let Err(error) = std::fs::remove_dir_all(&session.dir) {
                tracing::warn!(session = %session.id, "cannot be cleared: {error}");
            }
            self.sessions.borrow_mut().remove(&session.id);
        }
        let is_named = |entry: &crate::runs::index::Entry| {
            let session = self.sessions.borrow().get(&entry.session).cloned();
            session.is_some_and(|session| session.may_have(entry.run)) || self.shared.hooks.names(entry.run)
        };
        crate::runs::index::clear_old(&self.shared.home.state, runs_keep_ms, now_ms, is_named);
    }

    /// Writes every screen that is only in memory.
    pub fn save_all(&self) {
        for session in self.all() {
            let mut state = session.state.borrow_mut();
            state.picture.save(true);
        }
    }
}

/// Whether a session's directory was made and no more: there is no spec, or whatever was made ahead is still empty.
fn never_began(dir: &Path) -> bool {
    let is_empty = |name: &&str| std::fs::symlink_metadata(dir.join(name)).is_ok_and(|file| file.len() == 0);
    let is_untouched = || crate::prepared::FILES.iter().all(is_empty);
    !dir.join("ring").exists() && (!dir.join("spec").exists() || is_untouched())
}

/// An identity nobody had.
pub fn new_id() -> SessionId {
    SessionId::from_random_bits(u128::from_le_bytes(crate::random_token()))
}

/// Takes up a session from its files: connects to its keeper, or records that it is gone.
pub(crate) async fn take_up(session: Rc<Session>) {
    if !session.is_live() {
        session.found_over();
        if session.view_life() == Life::Ended {
            session.release_lease();
        }
        session.end_runs();
        session.take_up_contracts();
        session.shrink_ring();
        return;
    }
    match session::connect(&session).await {
        Ok(()) | Err(Missed::Silent) => {
            tokio::task::spawn_local(session::drive(session));
        }
        Err(Missed::Gone) => session.ended(crate::now_ms()),
        Err(Missed::Unknown(note)) => session.set_aside(Life::Unknown, note),
        Err(Missed::Damaged(note)) => session.set_aside(Life::Damaged, note),
    }
}
