//! The actors that this host knows, as clients ask about them.

use crate::serve::Server;
use crate::session::Session;
use holdfast_types::{Actor, ActorId, Right};
use holdfast_wire::turns::{ActorParams, ActorView};
use holdfast_wire::{Code, Fault};
use std::collections::HashMap;
use std::rc::Rc;

impl Server {
    /// Who is known, and what of their doings the asker may know.
    pub(crate) fn actors(&self, asks: &Actor) -> Vec<ActorView> {
        let shared = &self.registry.shared;
        if shared.actors.borrow_mut().refresh() {
            self.registry.actors_changed();
        }
        // Each session is looked at once, however many actors there are; one that the asker may not observe is not named.
        let mut attached: HashMap<ActorId, Vec<String>> = HashMap::new();
        let may_look = |s: &Rc<Session>| s.is_live() && s.rights(asks).has(Right::Observe);
        for session in self.registry.all().into_iter().filter(may_look) {
            for actor in session.attached() {
                attached.entry(actor).or_default().push(session.name());
            }
        }
        let mut doing = self.doing(asks);
        let all = shared.actors.borrow().all();
        let view = |actor: Actor| ActorView {
            sessions: attached.remove(&actor.id).unwrap_or_default(),
            doing: doing.remove(&actor.id).unwrap_or_default(),
            connected: self.presence.connected(&actor),
            actor,
        };
        all.into_iter().map(view).collect()
    }

    /// Forgets an actor. A human forgets anybody, everybody else only themselves.
    pub(crate) fn remove_actor(&self, params: &ActorParams, by: &Actor) -> Result<(), Fault> {
        if params.handle != by.handle && !self.registry.shared.policy().is_human(by) {
            return Err(Fault::new(Code::Denied, "only a human may remove another actor"));
        }
        let known = self.registry.shared.actors.borrow().by_handle(&params.handle);
        let removed = self.registry.shared.actors.borrow_mut().remove(&params.handle);
        match removed {
            Ok(true) => {
                self.registry.actors_changed();
                for session in self.registry.all().into_iter().filter(|session| session.is_live()) {
                    known.iter().for_each(|actor| session.forget(actor.id));
                }
                self.fewer_tokens();
                Ok(())
            }
            Ok(false) => Err(Fault::new(Code::NoSuchActor, format!("this host does not know {}", params.handle))
                .hint("see `holdfast actor ls`")),
            Err(error) => Err(Fault::new(Code::Internal, format!("cannot remove the key: {error}"))),
        }
    }
}
