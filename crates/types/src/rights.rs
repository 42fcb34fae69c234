//! What an actor may do in a session: rights, until when, and what each class holds from the start.

use crate::TimeMs;
use crate::actor::ActorClass;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// No end: later than any time.
pub const FOREVER: TimeMs = TimeMs::MAX;

macro_rules! rights {
    ($( #[doc = $doc:literal] $variant:ident = $word:literal; )*) => {
        /// One thing an actor may do in a session.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Right { $( #[doc = $doc] #[serde(rename = $word)] $variant, )* }

        impl Right {
            /// All, in the glossary's order.
            pub const EACH: &[Right] = &[ $( Right::$variant, )* ];

            /// The glossary's word.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $( Right::$variant => $word, )* }
            }
        }
    };
}

rights! {
    #[doc = "See the screen, the output, the journal."] Observe = "observe";
    #[doc = "Write bytes into the terminal."] Type = "type";
    #[doc = "Run commands."] Run = "run";
    #[doc = "Start sessions. It is of the host, not of a session: an actor has it by its class, and no grant gives it."] Start = "start";
    #[doc = "Send signals."] Signal = "signal";
    #[doc = "Take the turn at once, freeze and thaw."] Seize = "seize";
    #[doc = "Grant rights that the actor has."] Grant = "grant";
    #[doc = "Decide on acts that wait for approval."] Approve = "approve";
    #[doc = "Keep a copy of the live tree."] Checkpoint = "checkpoint";
    #[doc = "Start another session from a copy."] Fork = "fork";
    #[doc = "End the session."] End = "end";
    #[doc = "Rename, detach others, change settings."] Configure = "configure";
    #[doc = "List and read files of the session's working tree."] FilesRead = "files:read";
    #[doc = "Write files of the session's working tree."] FilesWrite = "files:write";
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A set of rights; its text form is `observe,run`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(extend("pattern" = "^(((observe|type|run|start|signal|seize|grant|approve|checkpoint|fork|end|configure|files:read|files:write)(,(observe|type|run|start|signal|seize|grant|approve|checkpoint|fork|end|configure|files:read|files:write))*)|)$"))]
pub struct Rights(u16);

/// A word that is no right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown right {0:?}; expected observe, type, run, start, signal, seize, grant, approve, checkpoint, fork, end, configure, files:read or files:write"
)]
pub struct RightsError(pub String);

impl Rights {
    /// Nothing.
    pub const NONE: Rights = Rights(0);
    /// Everything.
    pub const ALL: Rights = Rights((1 << Right::EACH.len()) - 1);

    /// These.
    #[must_use]
    pub const fn of(rights: &[Right]) -> Rights {
        let mut bits = 0;
        let mut i = 0;
        while i < rights.len() {
            bits |= 1 << rights[i] as u16;
            i += 1;
        }
        Rights(bits)
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn has(self, right: Right) -> bool {
        self.0 & 1 << right as u16 != 0
    }

    /// Whether all of those are among them.
    #[must_use]
    pub fn covers(self, others: Rights) -> bool {
        others.0 & !self.0 == 0
    }

    /// Whether any of those is among them.
    #[must_use]
    pub fn meets(self, others: Rights) -> bool {
        others.0 & self.0 != 0
    }

    /// Both together.
    #[must_use]
    pub fn and(self, others: Rights) -> Rights {
        Rights(self.0 | others.0)
    }

    /// These without those.
    #[must_use]
    pub fn without(self, others: Rights) -> Rights {
        Rights(self.0 & !others.0)
    }

    /// None at all.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::EACH.iter().copied().filter(move |right| self.has(*right))
    }
}

/// Whoever holds one of these has a use for the turn; who holds none must not keep it from others.
pub const WRITING: Rights = Rights::of(&[Right::Type, Right::Run, Right::Seize]);

impl From<Right> for Rights {
    fn from(right: Right) -> Rights {
        Rights::of(&[right])
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.iter().map(Right::word).collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromStr for Rights {
    type Err = RightsError;

    fn from_str(text: &str) -> Result<Rights, RightsError> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let right = |word: &str| Right::EACH.iter().find(|right| right.word() == word);
        words
            .map(|word| right(word).copied().ok_or_else(|| RightsError(word.chars().take(32).collect())))
            .try_fold(Rights::NONE, |all, right| Ok(all.and(right?.into())))
    }
}

impl From<Rights> for String {
    fn from(rights: Rights) -> String {
        rights.to_string()
    }
}

impl TryFrom<String> for Rights {
    type Error = RightsError;

    fn try_from(text: String) -> Result<Rights, RightsError> {
        text.parse()
    }
}

/// What an actor may do at a moment, and each right until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    until: [TimeMs; Right::EACH.len()],
}

impl Envelope {
    /// Nothing.
    pub const NONE: Envelope = Envelope { until: [0; Right::EACH.len()] };

    /// Adds rights that last until then; a right held twice lasts as long as the longer.
    pub fn add(&mut self, rights: Rights, until: TimeMs) {
        for right in rights.iter() {
            let held = &mut self.until[right as usize];
            *held = (*held).max(until);
        }
    }

    /// What is held at a moment.
    #[must_use]
    pub fn rights(&self, now: TimeMs) -> Rights {
        Right::EACH
            .iter()
            .filter(|right| self.until[**right as usize] > now)
            .fold(Rights::NONE, |all, r| all.and((*r).into()))
    }

    /// How long all of these last together; 0 where one is not held at all.
    #[must_use]
    pub fn until(&self, rights: Rights) -> TimeMs {
        rights.iter().map(|right| self.until[right as usize]).min().unwrap_or(FOREVER)
    }
}

/// What actors hold in a session before anything is granted or revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// The first grant, to the actor that starts a session.
    pub spawner: Rights,
    /// Humans the host vouches for.
    pub human: Rights,
    /// Agents.
    pub agent: Rights,
    /// Services.
    pub service: Rights,
    /// Devices.
    pub device: Rights,
    /// Actors that the host does not know, whatever their handle.
    pub unknown: Rights,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults {
            spawner: Rights::ALL,
            human: Rights::ALL,
            // Whoever may run commands can do with files what commands can; the gate judges both.
            agent: Rights::of(&[
                Right::Observe,
                Right::Run,
                Right::Type,
                Right::Start,
                Right::FilesRead,
                Right::FilesWrite,
            ]),
            service: Rights::NONE,
            device: Rights::NONE,
            unknown: Rights::NONE,
        }
    }
}

impl Defaults {
    /// A class's rights.
    #[must_use]
    pub fn of(&self, class: ActorClass) -> Rights {
        match class {
            ActorClass::Human => self.human,
            ActorClass::Agent => self.agent,
            ActorClass::Service => self.service,
            ActorClass::Device => self.device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_print_in_the_glossarys_order_and_read_back() {
        let rights: Rights = "run, observe".parse().unwrap();
        assert_eq!(rights.to_string(), "observe,run");
        assert_eq!(Rights::ALL.to_string().parse(), Ok(Rights::ALL));
        assert_eq!("".parse(), Ok(Rights::NONE));
        assert_eq!("observe,fly".parse::<Rights>(), Err(RightsError("fly".into())));
    }

    #[test]
    fn an_envelope_holds_each_right_as_long_as_its_longest_source() {
        let mut envelope = Envelope::NONE;
        envelope.add("observe,run".parse().unwrap(), 10);
        envelope.add("observe".parse().unwrap(), 20);
        assert_eq!(envelope.rights(9).to_string(), "observe,run");
        assert_eq!(envelope.rights(10).to_string(), "observe", "the end itself is no longer in it");
        assert_eq!(envelope.until("observe,run".parse().unwrap()), 10);
        assert_eq!(envelope.until(Right::End.into()), 0);
    }
}
