//! Timers: a heap for elapsed time, a heap for the wall clock, and the kernel to wake the engine at the next of each.
//!
//! Elapsed time counts while the machine is suspended, and does not change when somebody sets the clock; a timer of the wall
//! clock follows it. Between two timers nothing runs.

use holdfast_flow::Due;
use holdfast_types::TimeMs;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch.
#[must_use]
pub fn now_ms() -> TimeMs {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as TimeMs)
}

/// Milliseconds since the machine was started, suspended ones included.
fn up_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    (time.tv_sec as u64) * 1_000 + (time.tv_nsec as u64) / 1_000_000
}

/// When a time has elapsed, in milliseconds since the machine was started.
fn elapses(since_ms: TimeMs, ms: u64, now_ms: TimeMs, up_ms: u64) -> u64 {
    // However the wall clock was set meanwhile, never longer than it was asked for.
    let left = since_ms.saturating_add(ms).saturating_sub(now_ms).min(ms);
    // Both clocks were cut to whole milliseconds: one more, so that it does not fire before its time.
    up_ms.saturating_add(left).saturating_add(u64::from(left > 0))
}

/// One heap and the kernel's timer that fires at its first.
#[derive(Debug)]
struct Timers<T> {
    heap: BinaryHeap<Reverse<(u64, T)>>,
    fd: Arc<OwnedFd>,
    armed: Option<u64>,
    flags: TimerfdTimerFlags,
}

impl<T: Ord> Timers<T> {
    fn new(clock: TimerfdClockId, flags: TimerfdTimerFlags) -> io::Result<Timers<T>> {
        let fd = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Timers { heap: BinaryHeap::new(), fd: Arc::new(fd), armed: None, flags })
    }

    fn take(&mut self, now: u64, out: &mut Vec<T>) {
        while self.heap.peek().is_some_and(|Reverse((due, _))| *due <= now) {
            out.extend(self.heap.pop().map(|Reverse((_, what))| what));
        }
    }

    fn arm(&mut self) -> io::Result<()> {
        let next = self.heap.peek().map(|Reverse((due, _))| *due);
        if next == self.armed {
            return Ok(());
        }
        // Zero would disarm it.
        let at = next.map_or(0, |due| due.max(1));
        let at = Timespec { tv_sec: (at / 1_000) as _, tv_nsec: (at % 1_000 * 1_000_000) as _ };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        timerfd_settime(&self.fd, self.flags, &spec)?;
        self.armed = next;
        Ok(())
    }
}

/// All timers.
#[derive(Debug)]
pub struct Clock<T> {
    elapsed: Timers<T>,
    wall: Timers<T>,
}

impl<T: Ord> Clock<T> {
    /// One that calls `wake` from a thread of its own whenever something may be due.
    pub fn new(wake: impl Fn() -> bool + Send + 'static) -> io::Result<Clock<T>> {
        let elapsed = Timers::new(TimerfdClockId::Boottime, TimerfdTimerFlags::ABSTIME)?;
        let both = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let wall = Timers::new(TimerfdClockId::Realtime, both)?;
        let fds = [Arc::clone(&elapsed.fd), Arc::clone(&wall.fd)];
        std::thread::Builder::new().name("clock".into()).spawn(move || {
            loop {
                let mut waits = [PollFd::new(&*fds[0], PollFlags::IN), PollFd::new(&*fds[1], PollFlags::IN)];
                match poll(&mut waits, None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
                for fd in &fds {
                    // That the clock was set is reported as an error: time to look again.
                    let _ = rustix::io::read(&**fd, &mut [0; 8]);
                }
                if !wake() {
                    return;
                }
            }
        })?;
        Ok(Clock { elapsed, wall })
    }

    /// Sets a timer.
    pub fn set(&mut self, due: Due, what: T) {
        match due {
            Due::At(at_ms) => self.wall.heap.push(Reverse((at_ms, what))),
            Due::After { since_ms, ms } => {
                self.elapsed.heap.push(Reverse((elapses(since_ms, ms, now_ms(), up_ms()), what)));
            }
        }
    }

    /// What is due now.
    pub fn due(&mut self) -> Vec<T> {
        let mut out = Vec::new();
        self.elapsed.take(up_ms(), &mut out);
        self.wall.take(now_ms(), &mut out);
        // What fired is armed no more, even if the next one is due at the same moment; and the kernel cancels the timer of the wall
        // clock when somebody sets it.
        (self.elapsed.armed, self.wall.armed) = (None, None);
        out
    }

    /// Has the kernel wake us at the next one.
    pub fn arm(&mut self) -> io::Result<()> {
        self.elapsed.arm()?;
        self.wall.arm()
    }

    /// How many are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elapsed.heap.len() + self.wall.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_time_that_elapses_is_never_too_short_and_at_most_a_millisecond_too_long() {
        // 2 ms from 9 ms on, asked at 10.1 ms by the wall clock and 5.9 ms up: that is 11 ms, when 6.8 ms are up. 6 would be too early.
        assert_eq!(elapses(9, 2, 10, 5), 7);
        assert_eq!(elapses(9, 2, 11, 5), 5, "it is over");
        assert_eq!(elapses(1_000_000, 2, 10, 5), 8, "the clock went back");
    }

    #[test]
    fn both_kinds_of_timers_fire_in_order_and_not_before_their_time() {
        let (woken, wakes) = channel();
        let mut clock = Clock::new(move || woken.send(()).is_ok()).unwrap();
        let now = now_ms();
        clock.set(Due::After { since_ms: now, ms: 40 }, "elapsed");
        clock.set(Due::At(now + 80), "wall");
        clock.set(Due::After { since_ms: now + 3_600_000, ms: 1 }, "the clock went back");
        clock.set(Due::After { since_ms: now, ms: 3_600_000 }, "later");
        let mut seen = Vec::new();
        while seen.len() < 3 {
            clock.arm().unwrap();
            wakes.recv_timeout(Duration::from_secs(20)).expect("a timer fires");
            for what in clock.due() {
                if what == "wall" {
                    assert!(now_ms() >= now + 80);
                }
                seen.push(what);
            }
        }
        assert_eq!(seen, ["the clock went back", "elapsed", "wall"]);
        assert_eq!(clock.len(), 1);
        // One that is due at the moment of one that has fired.
        for round in 0..200 {
            clock.set(Due::After { since_ms: now_ms(), ms: 0 }, "now");
            clock.arm().unwrap();
            while !clock.due().contains(&"now") {
                clock.arm().unwrap();
                wakes.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("round {round} never fires"));
            }
        }
    }
}
