//! What a session begins with: nothing, or what an earlier host left of it.

use super::Shared;
use crate::journal::{Journal, Opened};
use crate::questions::Questions;
use crate::store::Spec;
use holdfast_authority::Authority;
use holdfast_session::{Core, Origin, Tracker};
use std::path::Path;

/// Its journal, its core with its runs, and its questions.
pub(super) struct Found {
    pub journal: Journal,
    pub note: Option<String>,
    pub damage: Option<String>,
    pub core: Core,
    pub questions: Questions,
}

impl Found {
    pub fn of(origin: Origin, dir: &Path, spec: &Spec, shared: &Shared) -> Found {
        let policy = shared.policy();
        let (opened, runs, questions) = match origin {
            Origin::New => {
                let (journal, authority) = (Journal::new(dir, spec.id), Authority::new(policy));
                let opened = Opened { journal, authority, note: None, damage: None };
                (opened, Vec::new(), Questions::default())
            }
            Origin::Found => {
                let (runs, questions) = (crate::runs::kept::load(dir), crate::questions::kept::load(dir));
                (Journal::open(dir, spec.id, policy), runs, questions)
            }
        };
        runs.iter().for_each(|run| shared.gate.spans.borrow_mut().ran(spec.id, run));
        let Opened { journal, authority, note, damage } = opened;
        let reply_stream = crate::store::checksum(spec.secret.as_bytes());
        let core = Core::new(spec.id, authority, spec.size, origin, reply_stream, Tracker::resume(runs));
        Found { journal, note, damage, core, questions }
    }
}
