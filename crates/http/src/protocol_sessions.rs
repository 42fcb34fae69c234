//! Sessions of the Model Context Protocol over HTTP: whose each is, how many an actor has, and when one is over.
//!
//! Each costs tens of KiB and nobody is made to end it. So it is over when it was not used for long, and when its actor opens
//! another and has too many: the one not used for longest goes.

use holdfast_types::{ActorId, Full, Places};
use holdfast_wire::{Code, Fault};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// At once: 60 KiB each, 30 MiB in all. Most of who comes here are agents.
const SESSIONS: Places = Places { all: 512, not_human: 448, of_one: 64, of_human: 64 };
/// Not used for so long it is over: a client that comes back opens another.
pub(crate) const IDLE: Duration = Duration::from_secs(15 * 60);

/// Who has a session: its token, its actor, and whether that is a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whose {
    pub token: String,
    pub actor: ActorId,
    pub is_human: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: HashMap<Name, (Whose, Instant)>,
    last: u64,
}

/// What a session is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    /// It is being opened: it has its place already, so that many at once get no more than one after the other.
    Opening(u64),
    /// Its id.
    Id(String),
}

impl Sessions {
    /// Somebody opens one, which has its place from now on; and those that have to be closed for it, or were over anyway.
    pub fn open(&mut self, whose: &Whose, now: Instant) -> Result<(u64, Vec<String>), Fault> {
        let is_over = |used: &Instant| now.duration_since(*used) >= IDLE;
        let mut over: Vec<Name> = self.all.extract_if(|_, (_, used)| is_over(used)).map(|(name, _)| name).collect();
        let taken = self.all.values().map(|(other, _)| (other.actor, other.is_human));
        match SESSIONS.admit(&whose.actor, whose.is_human, taken) {
            Ok(()) => {}
            Err(Full::OfOne(_)) => {
                let own = self.all.iter().filter(|(_, (other, _))| other.actor == whose.actor);
                let oldest = own.min_by_key(|(_, (_, used))| *used).map(|(name, _)| name.clone());
                over.extend(oldest.inspect(|name| drop(self.all.remove(name))));
            }
            Err(full) => {
                let what = full.of("protocol sessions");
                return Err(Fault::new(Code::TooMany, format!("too many {what}: {}", full.max()))
                    .hint("end those that are not used (DELETE /mcp), or try again later"));
            }
        }
        self.last += 1;
        self.all.insert(Name::Opening(self.last), (whose.clone(), now));
        let ids = over.into_iter().filter_map(|name| match name {
            Name::Opening(_) => None,
            Name::Id(id) => Some(id),
        });
        Ok((self.last, ids.collect()))
    }

    /// What was being opened has this id; or was not opened. False: its place went to another of its actor's meanwhile.
    pub fn opened(&mut self, opening: u64, id: Option<&str>, now: Instant) -> bool {
        let Some((whose, _)) = self.all.remove(&Name::Opening(opening)) else { return false };
        if let Some(id) = id {
            self.all.insert(Name::Id(id.to_owned()), (whose, now));
        }
        true
    }

    /// Whether it is there and this token's; it is used.
    pub fn uses(&mut self, id: &str, token: &str, now: Instant) -> bool {
        let found = self.all.get_mut(&Name::Id(id.to_owned()));
        match found.filter(|(whose, used)| whose.token == token && now.duration_since(*used) < IDLE) {
            Some((_, used)) => {
                *used = now;
                true
            }
            None => false,
        }
    }

    /// It was ended.
    pub fn ended(&mut self, id: &str) {
        self.all.remove(&Name::Id(id.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(key: u8, is_human: bool) -> Whose {
        Whose { token: format!("tok{key}"), actor: ActorId([key; 32]), is_human }
    }

    /// Opens one, and says what was closed for it.
    fn open(sessions: &mut Sessions, id: &str, whose: &Whose, now: Instant) -> Result<Vec<String>, Fault> {
        let (opening, over) = sessions.open(whose, now)?;
        assert!(sessions.opened(opening, Some(id), now));
        Ok(over)
    }

    #[test]
    fn an_actors_own_oldest_makes_room_and_the_humans_places_stay_free() {
        let start = Instant::now();
        let at = |ms: usize| start + Duration::from_millis(ms as u64);
        let mut sessions = Sessions::default();
        for n in 0..SESSIONS.of_one {
            assert_eq!(open(&mut sessions, &format!("a{n}"), &whose(1, false), at(n)), Ok(vec![]));
        }
        assert!(sessions.uses("a0", "tok1", at(1000)), "it is the newest now");
        assert!(!sessions.uses("a0", "tok2", at(1000)), "another's");
        assert_eq!(open(&mut sessions, "more", &whose(1, false), at(1001)), Ok(vec!["a1".to_owned()]));
        for key in 2..=7 {
            for n in 0..SESSIONS.of_one {
                assert_eq!(open(&mut sessions, &format!("{key}-{n}"), &whose(key, false), at(2000)), Ok(vec![]));
            }
        }
        let full = open(&mut sessions, "x", &whose(9, false), at(2000)).unwrap_err();
        assert_eq!((full.code, full.hint.is_empty()), (Code::TooMany, false));
        assert_eq!(open(&mut sessions, "ann", &whose(10, true), at(2000)), Ok(vec![]));
        let later = at(2000) + IDLE;
        assert!(!sessions.uses("more", "tok1", later));
        let over = open(&mut sessions, "x", &whose(9, false), later).unwrap();
        assert_eq!(over.len(), SESSIONS.not_human + 1, "all that were not used");
        sessions.ended("x");
        assert!(!sessions.uses("x", "tok9", later));
    }

    #[test]
    fn many_that_are_opened_at_once_have_no_more_places_than_one_after_the_other() {
        let now = Instant::now();
        let mut sessions = Sessions::default();
        let opening: Vec<u64> =
            (0..3 * SESSIONS.of_one).map(|_| sessions.open(&whose(1, false), now).unwrap().0).collect();
        let opened = opening.iter().filter(|one| sessions.opened(**one, Some(&one.to_string()), now)).count();
        assert_eq!((opened, sessions.all.len()), (SESSIONS.of_one, SESSIONS.of_one));
        let (refused, _) = sessions.open(&whose(2, false), now).unwrap();
        assert!(sessions.opened(refused, None, now), "one that was not opened gives its place back");
        assert_eq!(sessions.all.len(), SESSIONS.of_one);
    }
}
