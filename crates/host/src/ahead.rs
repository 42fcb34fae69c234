//! Shells that are started ahead of need: an agent's first command does not wait until its shell has read its own files.
//!
//! One that waits is outside of the registry: no list, name, watcher or count knows it. Whoever then asks for a session with the same
//! name and all the same gets it, and from then on it is a session like any other. One that nobody asks for ends with the connection
//! that it was started for, after a while, and with the host; the next host ends what a killed one left.

use crate::birth::Birth;
use crate::registry::{Registry, new_id};
use crate::serve::Server;
use crate::session::{Origin, Session};
use crate::store::Spec;
use holdfast_types::{Actor, ActorId, SessionName};
use holdfast_wire::params::{NewParams, SessionView};
use holdfast_wire::{Code, Fault};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Shells that wait, in all and of one actor: each is a keeper and a shell, some megabytes. More programs than this do not begin at
/// once, but for a test.
const WAITING_MAX: usize = 8;
const WAITING_OF_ONE_MAX: usize = 4;
/// How long one waits: a model that is asked something runs its first command within minutes.
const WAIT: Duration = Duration::from_secs(600);
/// How long a host that stops waits for them to end. Those that take longer are ended by the next host.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// What was started ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    waiting: RefCell<Vec<Waiting>>,
    /// Being started.
    begun: RefCell<Vec<(ActorId, SessionName)>>,
}

#[derive(Debug)]
struct Waiting {
    session: Rc<Session>,
    birth: Birth,
    by: Actor,
    /// The connection that it ends with.
    connection: u64,
}

/// A place among those that are being started, until it is dropped.
struct Begun<'a> {
    ahead: &'a Ahead,
    whose: (ActorId, SessionName),
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut begun = self.ahead.begun.borrow_mut();
        if let Some(at) = begun.iter().position(|other| *other == self.whose) {
            begun.swap_remove(at);
        }
    }
}

impl Ahead {
    /// A place for one more, unless there are enough or one of this name.
    fn place(&self, actor: &Actor, name: &SessionName) -> Result<Begun<'_>, Fault> {
        let waiting = self.waiting.borrow();
        let there = waiting.iter().map(|one| (one.by.id, one.session.state.borrow().spec.name.clone()));
        let all: Vec<(ActorId, SessionName)> = there.chain(self.begun.borrow().iter().cloned()).collect();
        if all.iter().any(|(_, other)| other == name) {
            return Err(Fault::new(Code::NameTaken, format!("a session named {name} is started ahead already")));
        }
        let of_one = all.iter().filter(|(by, _)| *by == actor.id).count();
        if all.len() >= WAITING_MAX || of_one >= WAITING_OF_ONE_MAX {
            return Err(Fault::new(Code::TooMany, "enough shells are started ahead"));
        }
        let whose = (actor.id, name.clone());
        self.begun.borrow_mut().push(whose.clone());
        Ok(Begun { ahead: self, whose })
    }

    /// Takes out those that fit.
    fn take(&self, fits: impl Fn(&Waiting) -> bool) -> Vec<Rc<Session>> {
        let mut waiting = self.waiting.borrow_mut();
        let (taken, left) = std::mem::take(&mut *waiting).into_iter().partition(fits);
        *waiting = left;
        let taken: Vec<Waiting> = taken;
        taken.into_iter().map(|one| one.session).collect()
    }

    /// A connection is gone.
    pub fn left(&self, connection: u64) {
        for session in self.take(|one| one.connection == connection) {
            tokio::task::spawn_local(end(session));
        }
    }

    /// The host stops.
    pub async fn end_all(&self) {
        let ends: Vec<_> = self.take(|_| true).into_iter().map(|one| tokio::task::spawn_local(end(one))).collect();
        let all = async {
            for one in ends {
                let _ = one.await;
            }
        };
        let _ = tokio::time::timeout(STOP_WAIT, all).await;
    }
}

impl Registry {
    /// The session that was started ahead for exactly this, if there is one and it lives. It is shown from now on.
    pub(crate) fn given(&self, name: &SessionName, birth: &Birth, actor: &Actor) -> Option<Rc<Session>> {
        let fits = |one: &Waiting| {
            one.by == *actor && one.session.is_live() && one.session.name() == name.as_str() && one.birth == *birth
        };
        let mut waiting = self.ahead.waiting.borrow_mut();
        let at = waiting.iter().position(fits)?;
        let Waiting { session, .. } = waiting.remove(at);
        drop(waiting);
        let spec = Spec { ahead: false, passing: false, ..session.state.borrow().spec.clone() };
        if spec.save(&session.dir).is_err() {
            // The next host would end it.
            tokio::task::spawn_local(end(session));
            return None;
        }
        session.state.borrow_mut().spec = spec;
        // Whom the host knows may have changed while it waited.
        session.policy_changed(self.shared.policy());
        tracing::info!(session = %session.id, "was started ahead, and is wanted now");
        Some(session)
    }

    /// What an earlier host left waiting.
    pub(crate) fn end_left(&self, spec: Spec) {
        if spec.portable.is_some() {
            let shared = Rc::clone(&self.shared);
            tokio::task::spawn_local(async move { crate::portable::fork::remove_left(&shared, spec.id).await });
            return;
        }
        let session = Session::new(spec, &self.shared, Origin::Found);
        tokio::task::spawn_local(async move {
            crate::registry::take_up(Rc::clone(&session)).await;
            end(session).await;
        });
    }

    async fn begin_ahead(&self, params: NewParams, actor: &Actor) -> Result<Waiting, Fault> {
        self.may_start(actor)?;
        let bad = |message: &str| Fault::new(Code::BadRequest, message);
        let name = params.name.clone().ok_or_else(|| bad("what is started ahead needs a name"))?;
        crate::names::must_not_mislead(&name)?;
        let birth = Birth::of(params, None, &self.shared.config)?;
        // What has to be watched from its first program on is not started out of sight.
        let is_free = birth.other.is_none() && birth.wall.is_none() && birth.gate.is_none();
        let is_plain = is_free && !birth.is_portable && birth.restart_on_failure.is_none();
        if !is_plain || birth.integrate == Some(false) || !crate::gate::is_bare_shell(&birth.command) {
            return Err(bad("only a plain shell is started ahead"));
        }
        if self.is_taken(&name) {
            return Err(Fault::new(Code::NameTaken, format!("a session named {name} is already running")));
        }
        let _place = self.ahead.place(actor, &name)?;
        if !self.may_start_unasked(actor, &birth).await {
            return Err(Fault::new(Code::Denied, "the policy wants to be asked before this session starts"));
        }
        crate::room::must_be(crate::room::START_ROOM)
            .map_err(|error| Fault::new(Code::CannotStart, format!("the host has no room: {error}")))?;
        let session = self.begin((new_id(), name), None, &birth, actor, true).await?;
        tracing::info!(session = %session.id, actor = %actor.handle, "started ahead");
        Ok(Waiting { session, birth, by: actor.clone(), connection: 0 })
    }
}

impl Server {
    /// Starts a session, or one ahead of need.
    pub(crate) async fn start(&self, params: NewParams, actor: &Actor, connection: u64) -> Result<SessionView, Fault> {
        if !params.ahead {
            return self.registry.start(params, actor).await;
        }
        if !self.presence.is_here(connection) {
            return Err(Fault::new(Code::BadRequest, "what is started ahead ends with its connection: use a socket"));
        }
        let waiting = self.registry.begin_ahead(params, actor).await?;
        let session = Rc::clone(&waiting.session);
        let ahead = Rc::clone(&self.registry.ahead);
        ahead.waiting.borrow_mut().push(Waiting { connection, ..waiting });
        if !self.presence.is_here(connection) {
            ahead.left(connection);
        }
        let id = session.id;
        tokio::task::spawn_local(async move {
            tokio::time::sleep(WAIT).await;
            for session in ahead.take(|one| one.session.id == id) {
                end(session).await;
            }
        });
        Ok(session.view())
    }
}

/// Ends one that nobody wanted, and forgets it.
async fn end(session: Rc<Session>) {
    tracing::info!(session = %session.id, "was started ahead, and nobody wanted it");
    session.end_unwanted().await;
    let _ = std::fs::remove_dir_all(&session.dir);
    let _ = std::fs::remove_file(&session.socket);
    let _ = std::fs::remove_file(&session.agent_link);
}
