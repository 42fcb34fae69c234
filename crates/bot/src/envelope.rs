//! What a chat user may do: rights, in which sessions, until when.

use holdfast_types::{Right, Rights, SessionId, Terms, TimeMs};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The three widths of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Can {
    /// See sessions, screens and logs, and be told of what happens.
    Read,
    /// Also run commands, type, press keys and answer questions.
    Run,
    /// Also seize, freeze, thaw and approve.
    Full,
}

impl Can {
    /// Its rights. None of them is `start`, `grant`, `end` or `configure`: no command of the bot needs those.
    #[must_use]
    pub fn rights(self) -> Rights {
        match self {
            Can::Read => Rights::of(&[Right::Observe]),
            Can::Run => Rights::of(&[Right::Observe, Right::Type, Right::Run]),
            Can::Full => Rights::of(&[Right::Observe, Right::Type, Right::Run, Right::Seize, Right::Approve]),
        }
    }

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Can::Read => "read",
            Can::Run => "run",
            Can::Full => "full",
        }
    }
}

impl fmt::Display for Can {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Can {
    type Err = String;

    fn from_str(text: &str) -> Result<Can, String> {
        let found = [Can::Read, Can::Run, Can::Full].into_iter().find(|can| can.word() == text);
        found.ok_or_else(|| format!("unknown envelope {text:?}; expected read, run or full"))
    }
}

/// What a chat user may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// How much.
    pub can: Can,
    /// In these sessions; empty: in all that the humans of this machine may observe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionId>,
    /// Until then; none: until it is taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimeMs>,
}

/// Why an envelope does not cover something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Outside {
    /// Its time is over.
    #[error("your access has ended; ask for a new code")]
    Over,
    /// It is about another session.
    #[error("there is no such session for you; /ls lists yours")]
    Elsewhere,
    /// It needs more.
    #[error("you may only {0} here")]
    Narrow(Can),
}

impl Envelope {
    /// Whether a session is within it.
    #[must_use]
    pub fn covers(&self, session: Option<SessionId>) -> bool {
        self.sessions.is_empty() || session.is_some_and(|session| self.sessions.contains(&session))
    }

    /// Whether an operation in a session, or one that names none, is within it.
    pub fn allows(&self, terms: &Terms, session: Option<SessionId>, now: TimeMs) -> Result<(), Outside> {
        if self.until_ms.is_some_and(|until| until <= now) {
            return Err(Outside::Over);
        }
        if session.is_some() && !self.covers(session) {
            return Err(Outside::Elsewhere);
        }
        // An operation needs one of its rights; one that needs none is not a chat user's.
        if Right::EACH.iter().any(|right| terms.rights.has(*right) && self.can.rights().has(*right)) {
            Ok(())
        } else {
            Err(Outside::Narrow(self.can))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{TERMS, terms_of};

    fn envelope(can: Can, sessions: &[u128]) -> Envelope {
        let sessions = sessions.iter().map(|bits| SessionId::from_random_bits(*bits)).collect();
        Envelope { can, sessions, until_ms: Some(100) }
    }

    #[test]
    fn an_envelope_allows_what_its_width_says_and_nothing_that_needs_no_right() {
        let allowed = |can| {
            let names = TERMS.iter().filter(|terms| envelope(can, &[]).allows(terms, None, 0).is_ok());
            names.map(|terms| terms.name).collect::<Vec<_>>()
        };
        let (read, run, full) = (allowed(Can::Read), allowed(Can::Run), allowed(Can::Full));
        assert!(read.iter().all(|name| run.contains(name)) && run.iter().all(|name| full.contains(name)));
        for name in ["run.start", "session.send", "question.answer", "run.cancel"] {
            assert!(!read.contains(&name) && run.contains(&name), "{name}");
        }
        for name in ["turn.seize", "turn.thaw", "approval.answer"] {
            assert!(!run.contains(&name) && full.contains(&name), "{name}");
        }
        for name in ["session.new", "session.end", "grant.add", "token.new", "actor.remove", "host.stop", "login.new"] {
            assert!(!full.contains(&name), "{name}");
        }
    }

    #[test]
    fn an_envelope_ends_and_is_of_its_sessions() {
        let look = terms_of("session.screen");
        let one = envelope(Can::Full, &[1]);
        assert_eq!(one.allows(look, Some(SessionId::from_random_bits(1)), 99), Ok(()));
        assert_eq!(one.allows(look, Some(SessionId::from_random_bits(2)), 99), Err(Outside::Elsewhere));
        assert_eq!(one.allows(look, Some(SessionId::from_random_bits(1)), 100), Err(Outside::Over));
        assert!(!one.covers(None), "what is of no session is not of one of them");
    }
}
