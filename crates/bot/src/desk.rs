//! Where the host is asked for a chat user, as that user's actor: the one place that compares what is asked with the user's envelope.
//!
//! Every question names the session it is about, or none where it lists; what lists is cut to the envelope by who asks it here.

use crate::config::Config;
use crate::envelope::Outside;
use crate::state::User;
use holdfast_authority::Ask;
use holdfast_client::{CallError, Connection, Identity, KeyError, connect_or_start_as};
use holdfast_types::{Home, Proof, Right, SessionId, Terms, TimeMs};
use holdfast_wire::attention::StateView;
use holdfast_wire::gate::{ApprovalListParams, ApprovalView};
use holdfast_wire::operations::op;
use holdfast_wire::params::{ListParams, SessionParams, SessionView};
use holdfast_wire::questions::{QuestionListParams, QuestionView};
use holdfast_wire::turns::ActorParams;
use holdfast_wire::{Code, Fault, Operation};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the host's log calls us.
pub const SAID: &str = concat!("holdfast bot ", env!("CARGO_PKG_VERSION"));
/// Longest wait for an answer: the bot has others to serve.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often a question is asked again where the connection breaks.
const TRIES: u32 = 4;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is not the user's to do.
    #[error("{0}")]
    Outside(#[from] Outside),
    /// The second factor has to be shown first.
    #[error("locked: send /unlock and your {0}")]
    Locked(&'static str),
    /// The host says no.
    #[error("{}", said(.0))]
    Fault(Fault),
    /// The host cannot be reached.
    #[error("the host cannot be reached: {0}")]
    Away(String),
    /// The actor was removed.
    #[error("you were removed")]
    Removed,
    /// What was typed cannot be done.
    #[error("{0}")]
    Said(String),
}

fn said(fault: &Fault) -> String {
    if fault.hint.is_empty() { fault.message.clone() } else { format!("{}\n{}", fault.message, fault.hint) }
}

/// Milliseconds since the epoch.
pub fn now_ms() -> TimeMs {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as TimeMs)
}

/// Connections to the host, one for each user that asked something.
pub struct Desk {
    home: Home,
    program: PathBuf,
    config: Config,
    links: HashMap<String, (Connection, Identity)>,
}

impl Desk {
    /// None yet.
    pub fn new(home: Home, program: PathBuf, config: Config) -> Desk {
        Desk { home, program, config, links: HashMap::new() }
    }

    /// Whether an operation is within a user's envelope, and unlocked where it must be.
    pub fn allows(&self, user: &User, session: Option<SessionId>, terms: &Terms) -> Result<(), Refused> {
        let now = now_ms();
        user.envelope.allows(terms, session, now)?;
        let looks = terms.rights.without(Right::Observe.into()).is_empty();
        match &self.config.factor {
            Some(factor) if !looks && user.unlocked_until_ms <= now => Err(Refused::Locked(factor.word())),
            Some(_) | None => Ok(()),
        }
    }

    /// Asks about a session, or for a list; again where the connection broke. What acts is asked so only if its repeat is the same act.
    pub fn ask<O: Operation>(
        &mut self,
        user: &User,
        session: Option<SessionId>,
        params: &O::Params,
        bytes: &[u8],
    ) -> Result<(O::Answer, Vec<u8>), Refused> {
        self.allows(user, session, &O::ROW.terms)?;
        self.retry(user, |connection, _| connection.call_with_bytes::<O>(params, bytes))
    }

    /// Asks for an act, signed.
    pub fn act<O: Operation>(
        &mut self,
        user: &User,
        session: SessionId,
        ask: &Ask,
        params: impl Fn(Proof) -> O::Params,
    ) -> Result<O::Answer, Refused> {
        self.allows(user, Some(session), &O::ROW.terms)?;
        self.retry(user, |connection, who| connection.call::<O>(&params(who.prove(session, ask))))
    }

    /// The same, and never twice: a broken connection is an error.
    pub fn act_once<O: Operation>(
        &mut self,
        user: &User,
        session: SessionId,
        ask: &Ask,
        params: impl Fn(Proof) -> O::Params,
    ) -> Result<O::Answer, Refused> {
        self.allows(user, Some(session), &O::ROW.terms)?;
        let (connection, who) = self.link(user)?;
        match connection.call::<O>(&params(who.prove(session, ask))) {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(user, error)),
        }
    }

    fn retry<T>(
        &mut self,
        user: &User,
        call: impl Fn(&mut Connection, &Identity) -> Result<T, CallError>,
    ) -> Result<T, Refused> {
        let mut tries = 0;
        loop {
            let (connection, who) = self.link(user)?;
            match call(connection, who) {
                Err(CallError::Broken(_)) if tries < TRIES => {
                    self.links.remove(user.handle.name());
                    std::thread::sleep(Duration::from_millis(20 << tries));
                    tries += 1;
                }
                Err(error) => return Err(self.failed(user, error)),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    fn failed(&mut self, user: &User, error: CallError) -> Refused {
        self.links.remove(user.handle.name());
        match error {
            CallError::Fault(fault) if fault.code == Code::Unidentified => Refused::Removed,
            CallError::Fault(fault) => Refused::Fault(fault),
            other => Refused::Away(other.to_string()),
        }
    }

    /// The user's connection. Its key is looked for each time: a removed actor is nobody, also on a connection that is open.
    fn link(&mut self, user: &User) -> Result<&mut (Connection, Identity), Refused> {
        let name = user.handle.name();
        let who = match Identity::load(&self.home, &user.handle) {
            Ok(who) => who,
            Err(KeyError::Missing(_)) => {
                self.links.remove(name);
                return Err(Refused::Removed);
            }
            Err(error) => return Err(Refused::Away(error.to_string())),
        };
        if self.links.get(name).is_none_or(|(_, before)| before.actor() != who.actor()) {
            let connection = connect_or_start_as(&self.home, &self.program, &who, SAID);
            let connection = connection.map_err(|error| Refused::Away(error.to_string()))?;
            connection.set_patience(Some(PATIENCE)).map_err(|error| Refused::Away(error.to_string()))?;
            self.links.insert(name.to_owned(), (connection, who));
        }
        self.links.get_mut(name).ok_or(Refused::Removed)
    }

    /// Removes the user's own actor: whatever its envelope, since it only takes away.
    pub fn leave(&mut self, user: &User) -> Result<(), Refused> {
        let params = ActorParams { handle: user.handle.clone() };
        self.retry(user, |connection, _| connection.call::<op::ActorRemove>(&params)).map(|_| ())
    }

    /// The sessions of a user's envelope.
    pub fn sessions(&mut self, user: &User) -> Result<Vec<SessionView>, Refused> {
        let (mut all, _) = self.ask::<op::List>(user, None, &ListParams { all: false }, &[])?;
        all.retain(|one| user.envelope.covers(Some(one.id)));
        Ok(all)
    }

    /// The session that a name or an id means to a user; none: the current one, or the only one.
    pub fn session(&mut self, user: &User, named: Option<&str>) -> Result<SessionView, Refused> {
        let mut all = self.sessions(user)?;
        let wanted = match named {
            Some(name) => all.iter().position(|one| one.name.as_str() == name || one.id.to_string() == name),
            None if all.len() == 1 => Some(0),
            None => user.current.and_then(|id| all.iter().position(|one| one.id == id)),
        };
        match wanted {
            Some(at) => Ok(all.swap_remove(at)),
            None if all.is_empty() => Err(Refused::Said("no session is running".into())),
            None if named.is_none() => Err(Refused::Said("which session? choose one: /use NAME".into())),
            None => Err(Outside::Elsewhere.into()),
        }
    }

    /// What a session is doing.
    pub fn state(&mut self, user: &User, session: SessionId) -> Result<StateView, Refused> {
        let params = SessionParams { session: session.to_string() };
        Ok(self.ask::<op::State>(user, Some(session), &params, &[])?.0)
    }

    /// Open questions of a user's envelope.
    pub fn questions(&mut self, user: &User) -> Result<Vec<QuestionView>, Refused> {
        let params = QuestionListParams { session: None, all: false };
        let (mut all, _) = self.ask::<op::QuestionList>(user, None, &params, &[])?;
        all.retain(|one| user.envelope.covers(Some(one.session)));
        Ok(all)
    }

    /// Acts of a user's envelope that wait for a human.
    pub fn approvals(&mut self, user: &User) -> Result<Vec<ApprovalView>, Refused> {
        let params = ApprovalListParams { session: None, all: false };
        let (mut all, _) = self.ask::<op::ApprovalList>(user, None, &params, &[])?;
        all.retain(|one| user.envelope.covers(one.session));
        Ok(all)
    }
}
