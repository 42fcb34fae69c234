//! Following what a session is doing, for whoever watches.
//!
//! Looked at once its output has been quiet for a moment after output or input, then a few times more with growing pauses,
//! because a program may begin to wait without a word. After that only the next output or input counts, unless somebody
//! works: that can end in silence. A session nobody watches is not looked at, and its keeper not asked to wake us for it.

use super::Session;
use super::decide::event;
use super::doing::Seen;
use crate::attention::LEASE;
use holdfast_authority::Change;
use holdfast_types::Handle;
use holdfast_wire::attention::{Now, RingEvent, What};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Output that paused for this long is taken as quiet: programs print a prompt at once.
const QUIET: Duration = Duration::from_millis(30);
/// Output that does not pause is looked at all the same after this long: it runs, and whoever watches shall know.
const NOISE_MAX: Duration = Duration::from_millis(500);
/// Pauses until the next look, if nothing happens.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// How often a session that works in silence is looked at from then on: 50 µs in 10 s.
const SLOW: Duration = Duration::from_secs(10);
/// And while somebody waits for it.
const WAITED: Duration = Duration::from_secs(1);

/// What is known of what a session does, and when to look again.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// What was seen last.
    pub seen: RefCell<Option<Seen>>,
    /// What was told last.
    told: RefCell<Option<Now>>,
    /// Its ports, as told.
    pub ports: super::ports::Ports,
    /// Looks so far.
    pub looks: Cell<u64>,
    /// Its terminal: the device's numbers.
    pub device: Cell<Option<(u32, u32)>>,
    /// Somebody watches it until then.
    watched_until: Cell<Option<Instant>>,
    /// Who waits for a state.
    pub waiters: Cell<u32>,
    /// The next of [`PAUSES`].
    step: Cell<usize>,
    /// Where the output stood when it was last looked at, and since when it moves.
    head: Cell<u64>,
    noisy_since: Cell<Option<Instant>>,
    /// It is quiet: the keeper shall wake us at the next byte.
    listens: Cell<bool>,
    looking: Cell<bool>,
    /// Who has the turn, and who is attached, as told.
    holder: RefCell<Option<Handle>>,
    here: RefCell<BTreeMap<u32, Handle>>,
}

impl Session {
    /// Whether somebody wants to know what it does.
    fn is_tracked(&self) -> bool {
        self.track.waiters.get() > 0
            || self.is_watched_alone()
            || self.attention.wants(self.id, &self.state.borrow().spec.name)
    }

    fn is_watched_alone(&self) -> bool {
        self.track.watched_until.get().is_some_and(|until| Instant::now() < until)
    }

    /// Whether somebody waits for its output, or for what it does next. Whoever watches events waits for none in particular.
    pub(crate) fn is_awaited(&self) -> bool {
        self.track.waiters.get() > 0 || self.watchers.get() > 0
    }

    /// Whether somebody follows what happens in it.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched_alone() || self.attention.is_watched()
    }

    /// Whether the keeper shall wake us at the next byte, for whoever wants to know. Not in the middle of noise: that is
    /// looked at from time to time.
    pub(super) fn listens(&self) -> bool {
        self.track.listens.get() && self.is_tracked()
    }

    /// Somebody watches: from the beginning if it is new to it.
    pub fn watch(&self, anew: bool) {
        // Nobody looked until now: what happened meanwhile, perhaps under another host, is still to be told.
        let begins = !self.is_tracked();
        self.track.watched_until.set(Some(Instant::now() + LEASE));
        if anew {
            *self.track.told.borrow_mut() = None;
            self.track.ports.forget();
        }
        if anew || begins {
            self.stirred();
        }
        self.attention.watched.notify_one();
    }

    /// Something happened after which it may do something else.
    pub(crate) fn stirred(&self) {
        let track = &self.track;
        track.step.set(0);
        if !self.is_tracked() {
            return;
        }
        track.listens.set(false);
        self.state.borrow_mut().timers.track = Some(Instant::now() + QUIET);
        self.nudge.notify_one();
    }

    /// The time has come to look, if it is quiet.
    pub(super) fn track(&self, now: Instant) {
        let track = &self.track;
        let next = |at: Option<Instant>| self.state.borrow_mut().timers.track = at;
        if !self.is_tracked() || self.link().is_none() {
            track.listens.set(false);
            return next(None);
        }
        let (head, _) = self.heads();
        if track.head.replace(head) != head {
            let since = track.noisy_since.get().unwrap_or(now);
            track.noisy_since.set(Some(since));
            if now - since < NOISE_MAX {
                return next(Some(now + QUIET));
            }
        }
        track.noisy_since.set(None);
        next(None);
        if track.looking.replace(true) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        tokio::task::spawn_local(async move {
            let seen = this.see().await;
            this.track.looking.set(false);
            this.looked(&seen);
        });
    }

    /// Tells what is new, and sets when to look again.
    fn looked(&self, seen: &Seen) {
        self.news_of_state(seen);
        let track = &self.track;
        track.looks.set(track.looks.get() + 1);
        self.changed.notify_waiters();
        let step = track.step.get();
        track.step.set(step + 1);
        let goes_on = matches!(seen.now, Now::Running | Now::BlockedElsewhere | Now::Unknown { .. });
        let pause = match PAUSES.get(step) {
            Some(pause) if track.waiters.get() > 0 => Some(WAITED.min(*pause)),
            Some(pause) => Some(*pause),
            None if track.waiters.get() > 0 => Some(WAITED),
            None if goes_on => Some(SLOW),
            None => None,
        };
        let quiet = self.heads().0 == track.head.get();
        let mut state = self.state.borrow_mut();
        let at = pause.map(|pause| Instant::now() + if quiet { pause } else { QUIET });
        // Unless something has happened meanwhile.
        state.timers.track = state.timers.track.or(at);
        if quiet && !track.listens.replace(true) {
            state.core.timers.rearm = Some(crate::now().clock_ms);
        }
        drop(state);
        self.nudge.notify_one();
    }

    /// Tells watchers, if it is another state than the one they know.
    pub(super) fn news_of_state(&self, seen: &Seen) {
        // The end is told as what it is.
        if !self.is_tracked() || matches!(seen.now, Now::Ended { .. }) {
            return;
        }
        if self.track.told.borrow().as_ref() == Some(&seen.now) {
            return;
        }
        *self.track.told.borrow_mut() = Some(seen.now.clone());
        self.tell_watchers(What::State { now: seen.now.clone(), pid: seen.pid, since_ms: seen.since_ms });
    }

    /// Tells whoever watches.
    pub(crate) fn tell_watchers(&self, what: What) {
        let (name, is_ahead) = {
            let spec = &self.state.borrow().spec;
            (spec.name.clone(), spec.ahead)
        };
        if is_ahead {
            return;
        }
        self.attention.tell(self.id, name, what);
    }

    /// Tells watchers what was decided.
    pub(super) fn news_of_change(&self, change: &Change) {
        match change {
            Change::Turn(turn) => {
                let holder = turn.hold().map(|hold| hold.by.handle.clone());
                if *self.track.holder.borrow() != holder {
                    *self.track.holder.borrow_mut() = holder.clone();
                    if let Some((by, operator)) = turn.hold().and_then(|hold| Some((hold.by.clone(), hold.operator?))) {
                        self.tell_handover(by, operator);
                    }
                    self.tell_watchers(What::Turn { holder });
                }
            }
            Change::Waits(waiting) => self.tell_watchers(What::TurnRequested { by: waiting.by.handle.clone() }),
            Change::Here(operator, actor) => {
                self.noted_attached();
                let by = actor.handle.clone();
                self.track.here.borrow_mut().insert(operator.0, by.clone());
                self.tell_watchers(What::Attached { by, client: operator.0 });
            }
            Change::Away(operator) | Change::Gone(operator) => {
                // Who was cut off is gone for who watches, and is no more when its grace is over.
                let by = self.track.here.borrow_mut().remove(&operator.0);
                if by.is_some() {
                    self.noted_attached();
                    self.tell_watchers(What::Detached { by, client: operator.0 });
                }
            }
            Change::Freeze(_) => self.stirred(),
            Change::WaitsNoMore(_) | Change::Granted(_) | Change::Dropped(_) | Change::Barred(_) => {}
            Change::HumansOnly => {}
            Change::Incarnation(_)
            | Change::Link(_)
            | Change::Joined(..)
            | Change::Logged(_)
            | Change::Forwarded(_) => {}
            Change::Opened(_) | Change::Closed(_) => {}
        }
    }

    /// Catches the attention of those whose terminals are attached.
    pub(crate) fn ring_terminals(&self, text: &str) {
        let state = self.state.borrow();
        for client in state.core.clients.iter() {
            if let Some(events) = client.peer.and_then(|peer| state.peers.get(&peer)) {
                let ring = RingEvent { client: client.id, text: text.to_owned() };
                let _ = events.send(event(&ring));
            }
        }
    }

    /// Whom an earlier host left here is known without news.
    pub(super) fn remember_who_is_here(&self) {
        let state = self.state.borrow();
        let authority = state.core.authority().state();
        *self.track.holder.borrow_mut() = authority.turn().hold().map(|hold| hold.by.handle.clone());
        let here = authority.operators().filter(|(_, operator)| operator.away_since.is_none());
        *self.track.here.borrow_mut() = here.map(|(id, operator)| (id.0, operator.actor.handle.clone())).collect();
    }
}
