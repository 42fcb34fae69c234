//! Places in tables that everybody fills: so many in all, so many for one actor, and some that only humans get.
//!
//! One table without them is enough to lock people out: whoever is first takes all of it. Pure: who is there now is the
//! caller's to say.

use std::collections::VecDeque;

/// How many places a table has, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// In all.
    pub all: usize,
    /// Those of them that others than humans may have together.
    pub not_human: usize,
    /// Those of them that one actor may have that is no human.
    pub of_one: usize,
    /// Those of them that one human may have.
    pub of_human: usize,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The actor has all that one may have: so many.
    OfOne(usize),
    /// Those that others than humans may have are taken: so many.
    NotHuman(usize),
    /// All are taken: so many.
    All(usize),
}

impl Full {
    /// What there are too many of, for a message.
    #[must_use]
    pub fn of(self, what: &str) -> String {
        match self {
            Full::OfOne(_) => format!("{what} of one actor"),
            Full::NotHuman(_) => format!("{what} of agents, services and devices"),
            Full::All(_) => what.to_owned(),
        }
    }

    /// The bound that was met.
    #[must_use]
    pub fn max(self) -> usize {
        let (Full::OfOne(max) | Full::NotHuman(max) | Full::All(max)) = self;
        max
    }
}

impl Places {
    /// Whether there is a place for one more of this actor's; `taken` is whose the others are, and whether that is a human.
    pub fn admit<K: PartialEq>(
        &self,
        who: &K,
        is_human: bool,
        taken: impl IntoIterator<Item = (K, bool)>,
    ) -> Result<(), Full> {
        let (mut all, mut not_human, mut own) = (0, 0, 0);
        for (whose, is_humans) in taken {
            all += 1;
            not_human += usize::from(!is_humans);
            own += usize::from(whose == *who);
        }
        let of_one = if is_human { self.of_human } else { self.of_one };
        if own >= of_one {
            Err(Full::OfOne(of_one))
        } else if all >= self.all {
            Err(Full::All(self.all))
        } else if !is_human && not_human >= self.not_human {
            Err(Full::NotHuman(self.not_human))
        } else {
            Ok(())
        }
    }
}

/// Those who came and have not said who they are, by where they come from: an address, a process.
///
/// Nobody is turned away: where there are too many the oldest goes, of the same source where that has too many, else of the
/// source that has the most. Who says who it is does so at once, and is not the oldest; who only takes up room is.
#[derive(Debug)]
pub struct Newcomers<S> {
    all_max: usize,
    of_one_max: usize,
    /// Numbers and sources, the oldest first.
    list: VecDeque<(u64, S)>,
}

impl<S: PartialEq> Newcomers<S> {
    /// None yet, and room for so many.
    #[must_use]
    pub fn new(all_max: usize, of_one_max: usize) -> Newcomers<S> {
        Newcomers { all_max, of_one_max, list: VecDeque::new() }
    }

    /// One more; who has to go for it.
    pub fn come(&mut self, number: u64, source: S) -> Option<u64> {
        let of = |list: &VecDeque<(u64, S)>, source: &S| list.iter().filter(|(_, other)| other == source).count();
        let place = if of(&self.list, &source) >= self.of_one_max {
            self.list.iter().position(|(_, other)| *other == source)
        } else if self.list.len() >= self.all_max {
            let counted = self.list.iter().enumerate().map(|(at, (_, other))| (of(&self.list, other), at));
            // Of those with the most the first, which is the oldest.
            counted.max_by_key(|(count, at)| (*count, usize::MAX - at)).map(|(_, at)| at)
        } else {
            None
        };
        let gone = place.and_then(|at| self.list.remove(at)).map(|(number, _)| number);
        self.list.push_back((number, source));
        gone
    }

    /// Whether it is one of them still.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        self.list.iter().any(|(known, _)| *known == number)
    }

    /// It said who it is, or left.
    pub fn leave(&mut self, number: u64) {
        self.list.retain(|(known, _)| *known != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places { all: 10, not_human: 7, of_one: 3, of_human: 5 };

    /// Fills a table with names, humans in capitals, and says who got how many.
    fn filled(wishes: &[(char, usize)]) -> Vec<(char, usize, Option<Full>)> {
        let mut taken: Vec<char> = Vec::new();
        let mut told = Vec::new();
        for (who, wanted) in wishes {
            let (mut got, mut refused) = (0, None);
            for _ in 0..*wanted {
                let others = taken.iter().map(|one| (*one, one.is_uppercase())).collect::<Vec<_>>();
                match PLACES.admit(who, who.is_uppercase(), others) {
                    Ok(()) => {
                        taken.push(*who);
                        got += 1;
                    }
                    Err(full) => refused = Some(full),
                }
            }
            told.push((*who, got, refused));
        }
        told
    }

    #[test]
    fn one_actor_takes_its_share_and_no_crowd_takes_the_humans() {
        assert_eq!(
            filled(&[('a', 99), ('b', 99), ('c', 99), ('d', 99), ('A', 2), ('B', 99)]),
            [
                ('a', 3, Some(Full::OfOne(3))),
                ('b', 3, Some(Full::OfOne(3))),
                ('c', 1, Some(Full::NotHuman(7))),
                ('d', 0, Some(Full::NotHuman(7))),
                ('A', 2, None),
                ('B', 1, Some(Full::All(10))),
            ]
        );
        assert_eq!(
            filled(&[('A', 99), ('B', 99), ('a', 1)])[..2],
            [('A', 5, Some(Full::OfOne(5))), ('B', 5, Some(Full::OfOne(5)))]
        );
        assert_eq!(Full::NotHuman(7).max(), 7);
    }

    #[test]
    fn who_takes_up_room_goes_first_and_a_newcomer_is_never_turned_away() {
        let mut newcomers = Newcomers::new(6, 4);
        assert_eq!((0..4).filter_map(|n| newcomers.come(n, "flood")).count(), 0);
        assert_eq!(newcomers.come(4, "flood"), Some(0), "its own oldest");
        assert_eq!(newcomers.come(5, "ann"), None);
        assert_eq!(newcomers.come(6, "bob"), None);
        assert_eq!(newcomers.come(7, "eve"), Some(1), "the oldest of who has the most");
        assert!(newcomers.has(5) && newcomers.has(6) && !newcomers.has(1));
        newcomers.leave(5);
        assert!(!newcomers.has(5));
        assert_eq!(newcomers.come(8, "eve"), None);
    }
}
