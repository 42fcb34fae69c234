//! The watching itself: the kernel's process events for all sessions, and snapshots of each from time to time. Everything
//! here may block, and runs off the host's thread.

use super::tracked::Tracked;
use holdfast_observe::Spared;
use holdfast_observe::events::{Ended, Event, Watcher};
use holdfast_observe::graph::{Depth, snapshot};
use holdfast_types::SessionId;
use holdfast_wire::graphs::{GraphNews, HowWatched};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// The first look after something happened: half of what an event may take, so that two looks fit.
const LOOK_MIN: Duration = Duration::from_millis(25);
/// The longest pause between two looks at a session where nothing happens.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Looks in a row that show nothing before the pauses grow: a server takes a second from its start to its port.
const EAGER_LOOKS: u32 = 60;
/// A look costs at most this part of the time: a thousand processes take a tenth of a second.
const COST_PART: u32 = 10;
/// Programs whose words are read at once: a fork bomb's are not.
const WORDS_READ_MAX: usize = 256;
/// Bytes of a program's words in an event.
const WORDS_BYTES_MAX: u64 = 1024;
/// Times the kernel's events are taken in one step.
const DRAINS_MAX: usize = 8;

/// One session's share of it.
#[derive(Debug)]
struct Watched {
    tracked: Tracked,
    keeper: u32,
    next_look: Instant,
    /// Not before then, whatever happens: a look has its price.
    earliest: Instant,
    pause: Duration,
    /// Looks in a row that showed nothing.
    quiet_looks: u32,
    /// Events were lost since the last look.
    is_lost: bool,
}

impl Watched {
    fn stir(&mut self, now: Instant) {
        self.quiet_looks = 0;
        self.pause = LOOK_MIN;
        self.look_at(now + LOOK_MIN);
    }

    fn look_at(&mut self, at: Instant) {
        self.next_look = self.next_look.min(at).max(self.earliest);
    }
}

/// What a step reported of one session.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) happened: Vec<GraphNews>,
    /// Some was missed.
    pub(super) is_lost: bool,
    pub(super) is_ended: bool,
}

/// Everything that is watched.
#[derive(Debug)]
pub(super) struct Tracker {
    watcher: Option<Watcher>,
    sessions: BTreeMap<SessionId, Watched>,
}

impl Tracker {
    /// Subscribes to the kernel's events, where we may.
    pub(super) fn new() -> Tracker {
        Tracker { watcher: Watcher::new().ok(), sessions: BTreeMap::new() }
    }

    /// A descriptor that can be read when the kernel has events.
    pub(super) fn descriptor(&self) -> Option<OwnedFd> {
        self.watcher.as_ref().and_then(|watcher| watcher.as_fd().try_clone_to_owned().ok())
    }

    pub(super) fn how(&self) -> HowWatched {
        if self.watcher.is_some() { HowWatched::Connector } else { HowWatched::Polling }
    }

    /// When the next look is due.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.sessions.values().map(|watched| watched.next_look).min()
    }

    /// Sockets have come or gone somewhere: it may have been here.
    pub(super) fn stir(&mut self) {
        let now = Instant::now();
        self.sessions.values_mut().for_each(|watched| watched.look_at(now));
    }

    /// Takes the kernel's events and does the looks that are due, for these sessions and no other.
    pub(super) fn step(&mut self, wanted: &BTreeMap<SessionId, u32>, spared: &Spared) -> BTreeMap<SessionId, News> {
        let mut news: BTreeMap<SessionId, News> = BTreeMap::new();
        // A keeper that is another one now is watched anew.
        self.sessions.retain(|id, watched| wanted.get(id) == Some(&watched.keeper));
        self.drain(&mut news);
        for (id, keeper) in wanted {
            self.look(*id, *keeper, spared, news.entry(*id).or_default());
        }
        news
    }

    fn drain(&mut self, news: &mut BTreeMap<SessionId, News>) {
        let mut words_left = WORDS_READ_MAX;
        for _ in 0..DRAINS_MAX {
            let Some(drained) = self.watcher.as_mut().map(Watcher::drain) else { return };
            let Ok(drained) = drained else {
                self.watcher = None;
                return;
            };
            if drained.lost {
                for (id, watched) in &mut self.sessions {
                    news.entry(*id).or_default().is_lost = true;
                    watched.is_lost = true;
                    watched.look_at(Instant::now());
                }
            }
            for event in drained.events {
                self.event(event, news, &mut words_left);
            }
            if !drained.more {
                return;
            }
        }
    }

    fn event(&mut self, event: Event, news: &mut BTreeMap<SessionId, News>, words_left: &mut usize) {
        let now = Instant::now();
        for (id, watched) in &mut self.sessions {
            let happened = match event {
                Event::Fork { parent, child, .. } => watched.tracked.fork(parent, child),
                Event::Exec { pid, .. } => watched.tracked.knows(pid).then(|| {
                    let argv = if *words_left > 0 { words(pid) } else { Vec::new() };
                    *words_left = words_left.saturating_sub(1);
                    GraphNews::Exec { pid, argv }
                }),
                Event::Exit { pid, end: Ended::Code(code), .. } => watched.tracked.exit(pid, Some(code), None),
                Event::Exit { pid, end: Ended::Signal(signal), .. } => watched.tracked.exit(pid, None, Some(signal)),
            };
            if let Some(happened) = happened {
                watched.stir(now);
                news.entry(*id).or_default().happened.push(happened);
                return;
            }
        }
    }

    fn look(&mut self, id: SessionId, keeper: u32, spared: &Spared, news: &mut News) {
        let began = Instant::now();
        if self.sessions.get(&id).is_some_and(|watched| watched.next_look > began) {
            return;
        }
        let has_events = self.watcher.is_some();
        let Ok(graph) = snapshot(keeper, Depth::Sockets, None, spared) else {
            news.is_ended = true;
            self.sessions.remove(&id);
            return;
        };
        let now = Instant::now();
        let cost = now - began;
        let Some(watched) = self.sessions.get_mut(&id) else {
            let tracked = Tracked::new(keeper, &graph);
            let earliest = now + cost * COST_PART;
            let next_look = earliest.max(now + LOOK_MIN);
            let watched =
                Watched { tracked, keeper, next_look, earliest, pause: LOOK_MIN, quiet_looks: 0, is_lost: false };
            self.sessions.insert(id, watched);
            return;
        };
        // After a loss, missing processes show the ends that were not reported.
        let is_lost = std::mem::take(&mut watched.is_lost);
        let found = watched.tracked.look(&graph, has_events && !is_lost);
        if found.is_empty() {
            watched.quiet_looks += 1;
        } else {
            watched.quiet_looks = 0;
            watched.pause = LOOK_MIN;
        }
        if watched.quiet_looks > EAGER_LOOKS {
            watched.pause = (watched.pause * 2).min(LOOK_MAX);
        }
        watched.earliest = now + cost * COST_PART;
        watched.next_look = watched.earliest.max(now + watched.pause);
        news.happened.extend(found);
    }
}

/// A program's words as they are now.
fn words(pid: u32) -> Vec<String> {
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/cmdline")) else { return Vec::new() };
    let mut bytes = Vec::new();
    // What was read before it went is something.
    let _ = file.take(WORDS_BYTES_MAX).read_to_end(&mut bytes);
    holdfast_observe::graph::words(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Steps until something is told; a look is due within a second.
    fn until(tracker: &mut Tracker, wanted: &BTreeMap<SessionId, u32>, told: impl Fn(&News) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !tracker.step(wanted, &Spared::default()).values().any(&told) {
            assert!(Instant::now() < deadline, "waited in vain");
            let due = tracker.next_look().unwrap_or(deadline);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    #[test]
    fn where_the_kernel_tells_nothing_it_is_looked_at_from_time_to_time() {
        let id = SessionId::from_random_bits(7);
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "while read line; do $line & done; wait"]).stdin(Stdio::piped());
        let mut keeper = keeper.spawn().unwrap();
        let wanted = BTreeMap::from([(id, keeper.id())]);
        let mut tracker = Tracker { watcher: None, sessions: BTreeMap::new() };
        assert_eq!(tracker.how(), HowWatched::Polling);
        assert!(tracker.step(&wanted, &Spared::default())[&id].happened.is_empty(), "the first look tells nothing");
        keeper.stdin.as_mut().unwrap().write_all(b"sleep 0.3\n").unwrap();
        until(&mut tracker, &wanted, |news| matches!(news.happened[..], [GraphNews::Fork { .. }, ..]));
        until(&mut tracker, &wanted, |news| news.happened.iter().any(|what| matches!(what, GraphNews::Exit { .. })));
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
        until(&mut tracker, &wanted, |news| news.is_ended);
        assert!(tracker.step(&BTreeMap::new(), &Spared::default()).is_empty() && tracker.next_look().is_none());
    }

    #[test]
    fn looks_become_rare_while_nothing_happens() {
        let id = SessionId::from_random_bits(7);
        let mut keeper = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let wanted = BTreeMap::from([(id, keeper.id())]);
        let mut tracker = Tracker { watcher: None, sessions: BTreeMap::new() };
        tracker.step(&wanted, &Spared::default());
        for _ in 0..EAGER_LOOKS + 10 {
            tracker.sessions.values_mut().for_each(|watched| watched.next_look = Instant::now());
            assert!(tracker.step(&wanted, &Spared::default())[&id].happened.is_empty());
        }
        assert_eq!(tracker.sessions[&id].pause, LOOK_MAX);
        // A socket somewhere, and it is looked at as soon as the last look's price allows.
        let never = Instant::now() + Duration::from_secs(3600);
        tracker.sessions.values_mut().for_each(|watched| watched.next_look = never);
        tracker.stir();
        assert!(tracker.next_look().unwrap() <= tracker.sessions[&id].earliest.max(Instant::now()));
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
    }
}
