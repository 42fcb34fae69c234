//! Events of sessions' processes, for watchers: one lookout for the whole host.
//!
//! The kernel's process events are subscribed to when the first one asks, and closed when the last one has not asked again
//! for a while. In between every watched session is also looked at from time to time, because the kernel tells of no
//! sockets: at once when its counts of them move, and otherwise with pauses that grow while nothing happens. While nobody
//! watches there is no socket, no task and no memory. [`ports`] is the part of it for those who watch the whole host.

mod feed;
pub(crate) mod ports;
mod tracked;
mod tracker;

use crate::own::Own;
use crate::session::Session;
use feed::Feed;
use holdfast_observe::network::Network;
use holdfast_types::SessionId;
use holdfast_wire::Fault;
use holdfast_wire::graphs::{WatchGraphAnswer, WatchGraphParams};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracker::Tracker;

/// Between two questions of one watcher nothing is closed: it reads the answer, draws, and asks again.
const LINGER: Duration = Duration::from_secs(3);
/// Longest wait of one question: a watcher that is gone without a word is watched for this long at most.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// A first look takes milliseconds; on a machine where it takes longer, callers do not wait forever.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(10);
/// Pause between two takings of the kernel's events: a build elsewhere on the machine must not keep us busy.
const DRAIN_PAUSE: Duration = Duration::from_millis(5);
/// Between two readings of how many sockets there are: half of what an event may take.
const COUNT_PAUSE: Duration = Duration::from_millis(20);

/// A session that is watched.
#[derive(Debug)]
struct Seat {
    feed: Feed,
    keeper: u32,
    /// Questions that wait now.
    waiting: u32,
    /// When the last one was answered.
    left: Instant,
}

impl Seat {
    fn is_wanted(&self, now: Instant) -> bool {
        self.waiting > 0 || now < self.left + LINGER
    }
}

/// Watches for those who ask.
#[derive(Debug)]
pub struct Lookout {
    own: Arc<Own>,
    seats: RefCell<BTreeMap<SessionId, Seat>>,
    is_running: Cell<bool>,
    /// Something happened in a session that is watched.
    news: Notify,
    /// A session is to be watched that was not.
    wanted: Notify,
}

/// A question that waits, until it is dropped.
struct Waiting<'a> {
    lookout: &'a Lookout,
    id: SessionId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.lookout.seats.borrow_mut().get_mut(&self.id) {
            seat.waiting = seat.waiting.saturating_sub(1);
            seat.left = Instant::now();
        }
    }
}

impl Lookout {
    /// Watches nothing yet.
    pub(crate) fn new(own: Arc<Own>) -> Lookout {
        Lookout {
            own,
            seats: RefCell::default(),
            is_running: Cell::new(false),
            news: Notify::new(),
            wanted: Notify::new(),
        }
    }

    /// What happened to a session's processes; waits for it if asked to.
    pub async fn watch(
        self: &Rc<Self>,
        session: &Session,
        params: &WatchGraphParams,
    ) -> Result<WatchGraphAnswer, Fault> {
        session.running().await?;
        let deadline = Instant::now() + Duration::from_millis(params.wait_ms).min(WAIT_MAX);
        let _waiting = self.sit(session);
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // Registered before the look, so that what comes between the two is not missed.
            news.as_mut().enable();
            let is_begun = {
                let seats = self.seats.borrow();
                let Some(seat) = seats.get(&session.id) else { break };
                if let Some(answer) = seat.feed.read(params.after) {
                    return Ok(answer);
                }
                seat.feed.how.is_some()
            };
            // The first look is waited for: what it finds is where the events begin.
            let until = if is_begun { deadline } else { deadline.max(Instant::now() + FIRST_LOOK_MAX) };
            if tokio::time::timeout_at(until, news).await.is_err() {
                break;
            }
        }
        let seats = self.seats.borrow();
        let nothing = seats.get(&session.id).map(|seat| seat.feed.nothing(params.after));
        Ok(nothing.unwrap_or_else(|| Feed::new(crate::now_ms()).nothing(params.after)))
    }

    /// Takes a seat: the session is watched from now on.
    fn sit(self: &Rc<Self>, session: &Session) -> Waiting<'_> {
        let keeper = session.keeper_pid();
        let mut seats = self.seats.borrow_mut();
        let now = Instant::now();
        let seat = seats.entry(session.id).or_insert_with(|| Seat {
            feed: Feed::new(crate::now_ms()),
            keeper,
            waiting: 0,
            left: now,
        });
        seat.waiting += 1;
        drop(seats);
        self.wanted.notify_one();
        if !self.is_running.replace(true) {
            tokio::task::spawn_local(Rc::clone(self).run());
        }
        Waiting { lookout: self, id: session.id }
    }

    /// Watches until there is no watcher.
    async fn run(self: Rc<Self>) {
        let stopped = Stopped(&self);
        let Ok(mut tracker) = tokio::task::spawn_blocking(Tracker::new).await else { return };
        // SAFETY: an owned descriptor is open and the same for as long as the registration has it.
        let mut events = tracker.descriptor().and_then(|fd| unsafe { AsyncFd::register(fd) }.ok());
        let mut counts = Counts { network: Network::new(true).ok(), next: Instant::now() };
        loop {
            let wanted = self.wanted_now();
            if wanted.is_empty() {
                break;
            }
            let spared = self.own.spared();
            let stepped = tokio::task::spawn_blocking(move || {
                let news = tracker.step(&wanted, &spared);
                (tracker, news)
            });
            let Ok((back, news)) = stepped.await else { return };
            tracker = back;
            self.tell(&tracker, news);
            if tracker.descriptor().is_none() {
                events = None;
            }
            let pause = Instant::now() + DRAIN_PAUSE;
            let due = tracker.next_look().map_or(pause + LINGER, Instant::from_std).min(Instant::now() + LINGER);
            tokio::select! {
                () = self.wanted.notified() => {}
                () = tokio::time::sleep_until(due) => {}
                () = readable(events.as_ref()) => tokio::time::sleep_until(pause).await,
                () = counts.moved() => tracker.stir(),
            }
        }
        // The kernel's socket is closed where blocking does not matter.
        let _ = tokio::task::spawn_blocking(move || drop(tracker)).await;
        drop(stopped);
        if !self.seats.borrow().is_empty() && !self.is_running.replace(true) {
            // Somebody came while we were closing.
            tokio::task::spawn_local(Rc::clone(&self).run());
        }
    }

    /// Who is watched, with its keeper; the others are forgotten.
    fn wanted_now(&self) -> BTreeMap<SessionId, u32> {
        let now = Instant::now();
        let mut seats = self.seats.borrow_mut();
        seats.retain(|_, seat| seat.is_wanted(now));
        seats.iter().filter(|(_, seat)| !seat.feed.is_ended).map(|(id, seat)| (*id, seat.keeper)).collect()
    }

    fn tell(&self, tracker: &Tracker, news: BTreeMap<SessionId, tracker::News>) {
        let at_ms = crate::now_ms();
        let mut seats = self.seats.borrow_mut();
        for (id, news) in news {
            let Some(seat) = seats.get_mut(&id) else { continue };
            seat.feed.how = Some(tracker.how());
            if news.is_lost {
                seat.feed.lose();
            }
            news.happened.into_iter().for_each(|what| seat.feed.push(at_ms, what));
            seat.feed.is_ended |= news.is_ended;
        }
        drop(seats);
        self.news.notify_waiters();
    }
}

/// However the watching stops, the next one who asks starts it again.
struct Stopped<'a>(&'a Lookout);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.is_running.set(false);
    }
}

/// How many sockets there are, looked at from time to time.
struct Counts {
    network: Option<Network>,
    next: Instant,
}

impl Counts {
    /// Waits until they move; for ever where the kernel counts none. May be dropped and asked again.
    async fn moved(&mut self) {
        let Some(network) = &mut self.network else { return std::future::pending().await };
        loop {
            tokio::time::sleep_until(self.next).await;
            self.next = Instant::now() + COUNT_PAUSE;
            if network.moved() {
                return;
            }
        }
    }
}

/// Waits until the kernel has events; for ever where it tells none.
async fn readable(events: Option<&AsyncFd<std::os::fd::OwnedFd>>) {
    match events {
        Some(events) => match events.readable().await {
            Ok(mut guard) => guard.clear_ready(),
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
