//! Which names live sessions have, and those that are being started: no two have the same.

use crate::session::Session;
use holdfast_types::{SessionId, SessionName};
use holdfast_wire::{Code, Fault};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// All sessions of a home, by their ids.
pub(crate) type Sessions = RefCell<BTreeMap<SessionId, Rc<Session>>>;

/// Words of `holdfast run` in the place of a session: `run wait` would be about another thing.
const WORDS: [&str; 5] = ["ls", "status", "wait", "output", "cancel"];

/// Refuses a name that somewhere means something else. Sessions that have one keep it.
pub(crate) fn must_not_mislead(name: &SessionName) -> Result<(), Fault> {
    let why = match name.as_str() {
        "." | ".." => "it is a directory in paths and addresses",
        name if WORDS.contains(&name) => "`holdfast run` takes it for a command of its own",
        _ => return Ok(()),
    };
    Err(Fault::new(Code::BadRequest, format!("a session cannot be named {name}: {why}")).hint("choose another name"))
}

impl Session {
    /// Whether this is its name. All sessions are asked this, many times: nothing is copied for it.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.state.borrow().spec.name.as_str() == name
    }
}

/// The names of a home. Sessions have it too: one that takes up a rename of before must know whether the name is still free.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    sessions: Weak<Sessions>,
    starting: Rc<RefCell<Vec<SessionName>>>,
}

impl Names {
    /// Of these sessions.
    pub fn of(sessions: &Rc<Sessions>) -> Names {
        Names { sessions: Rc::downgrade(sessions), starting: Rc::default() }
    }

    /// A session is being started under this name.
    pub fn starts(&self, name: &SessionName) {
        self.starting.borrow_mut().push(name.clone());
    }

    /// It was, or it could not be.
    pub fn started(&self, name: &SessionName) {
        self.starting.borrow_mut().retain(|other| other != name);
    }

    /// Whether a live session has this name, or one that is being started; `besides`: another one than this.
    pub fn is_taken(&self, name: &SessionName, besides: Option<SessionId>) -> bool {
        let sessions = self.sessions.upgrade();
        let has = |session: &Rc<Session>| session.holds_its_name() && session.is_named(name.as_str());
        self.starting.borrow().contains(name)
            || sessions.is_some_and(|all| all.borrow().values().filter(|s| Some(s.id) != besides).any(has))
    }
}
