//! Who acts: an Ed25519 key with a handle and a class.

use crate::hex::ActorId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The host's own services: identity and name. No key has such an identity, and no other actor gets such a name.
const REAPER: (ActorId, &str) = (ActorId(*b"holdfast service:reaper, no key."), "reaper");
const CHECKPOINTS: (ActorId, &str) = (ActorId(*b"holdfast service:checkpoints-no "), "checkpoints");
const HOSTS_OWN: [(ActorId, &str); 2] = [REAPER, CHECKPOINTS];

/// Longest name in a handle: fits a status line beside everything else.
const HANDLE_NAME_BYTES_MAX: usize = 32;

/// What kind of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorClass {
    /// A person.
    Human,
    /// A program that decides by itself.
    Agent,
    /// A program without judgement: a deployment, a webhook.
    Service,
    /// A machine on somebody's behalf: a phone.
    Device,
}

impl ActorClass {
    /// The word in handles.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ActorClass::Human => "human",
            ActorClass::Agent => "agent",
            ActorClass::Service => "service",
            ActorClass::Device => "device",
        }
    }
}

/// A class and a name: `human:ann`, `agent:claude`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(extend("pattern" = "^(human|agent|service|device):[a-z0-9._-]{1,32}$"))]
pub struct Handle {
    class: ActorClass,
    name: String,
}

/// Why a text is not a handle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// No known class and colon in front.
    #[error("expected CLASS:NAME, with the class human, agent, service or device")]
    Class,
    /// The name is empty, too long, or has another character.
    #[error("invalid name in the handle; expected 1 to {HANDLE_NAME_BYTES_MAX} of a-z 0-9 . _ -")]
    Name,
}

fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')
}

impl Handle {
    /// The handle of a class with the nearest valid name: for login names and marker values that were not chosen for this.
    #[must_use]
    pub fn near(class: ActorClass, name: &str) -> Handle {
        let mut near: String = name
            .chars()
            .map(|c| c.to_ascii_lowercase())
            .map(|c| if c.is_ascii() && is_name_byte(c as u8) { c } else { '-' })
            .take(HANDLE_NAME_BYTES_MAX)
            .collect();
        if near.is_empty() {
            near.push_str("unnamed");
        }
        Handle { class, name: near }
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> ActorClass {
        self.class
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it names an actor that is the host itself: nobody speaks under it, and no key is made for it.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.class == ActorClass::Service && HOSTS_OWN.iter().any(|(_, name)| *name == self.name)
    }
}

impl FromStr for Handle {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Handle, HandleError> {
        let (class, name) = text.split_once(':').ok_or(HandleError::Class)?;
        let classes = [ActorClass::Human, ActorClass::Agent, ActorClass::Service, ActorClass::Device];
        let class = classes.into_iter().find(|c| c.word() == class).ok_or(HandleError::Class)?;
        let is_name = (1..=HANDLE_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_name_byte);
        if is_name { Ok(Handle { class, name: name.to_owned() }) } else { Err(HandleError::Name) }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.class.word(), self.name))
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Handle> for String {
    fn from(handle: Handle) -> String {
        handle.to_string()
    }
}

impl TryFrom<String> for Handle {
    type Error = HandleError;

    fn try_from(text: String) -> Result<Handle, HandleError> {
        text.parse()
    }
}

/// Who acts. The key is the identity; the handle is what people read, and what the actor says of itself: whether it may be
/// believed is the host's to say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    /// Its public key.
    pub id: ActorId,
    /// Its handle.
    pub handle: Handle,
}

impl Actor {
    /// The host itself, where it ends sessions that nobody uses.
    #[must_use]
    pub fn reaper() -> Actor {
        Actor::hosts_own(REAPER)
    }

    /// The host itself, where it makes checkpoints that are due.
    #[must_use]
    pub fn checkpoints() -> Actor {
        Actor::hosts_own(CHECKPOINTS)
    }

    fn hosts_own((id, name): (ActorId, &str)) -> Actor {
        Actor { id, handle: Handle { class: ActorClass::Service, name: name.to_owned() } }
    }

    /// Whether it is one of the host's own services, by handle and identity.
    #[must_use]
    pub fn is_hosts_own(&self) -> bool {
        HOSTS_OWN.iter().any(|one| *self == Actor::hosts_own(*one))
    }

    /// Whether it is the host itself, or says so: by its handle or by its identity.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.handle.is_reserved() || HOSTS_OWN.iter().any(|(id, _)| self.id == *id)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.handle, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_class_and_a_name() {
        let handle: Handle = "agent:claude-2".parse().unwrap();
        assert_eq!((handle.class(), handle.name()), (ActorClass::Agent, "claude-2"));
        assert_eq!(handle.to_string(), "agent:claude-2");
        for bad in
            ["ann", "robot:x", "human:", "human:Ann", "human:a b", "human:a:b", &format!("human:{}", "a".repeat(33))]
        {
            assert!(bad.parse::<Handle>().is_err(), "{bad}");
        }
    }

    #[test]
    fn handles_and_identities_of_the_hosts_own_services_are_reserved_each_by_itself() {
        for (own, shown) in [(Actor::reaper(), "service:reaper"), (Actor::checkpoints(), "service:checkpoints")] {
            assert_eq!(own.to_string(), shown);
            let other: Handle = format!("{shown}-2").parse().unwrap();
            assert!(own.is_reserved() && own.is_hosts_own() && !other.is_reserved());
            for half in [Actor { id: ActorId([1; 32]), handle: own.handle }, Actor { id: own.id, handle: other }] {
                assert!(half.is_reserved() && !half.is_hosts_own());
            }
        }
    }

    #[test]
    fn every_login_has_a_near_handle_that_parses() {
        for (login, near) in [("Ann.Lee", "human:ann.lee"), ("DOM\\ann", "human:dom-ann"), ("", "human:unnamed")] {
            let handle = Handle::near(ActorClass::Human, login);
            assert_eq!(handle.to_string(), near);
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
    }
}
