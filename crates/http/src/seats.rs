//! Who has a connection: those who have shown no token yet, by address, and those who have, by actor.
//!
//! A connection without a token is let go in time, and at once where its address has too many of them or there are too many in
//! all: the oldest first, so that who comes and shows a token always gets in. One with a token takes one of its actor's places.

use axum::http::Extensions;
use holdfast_door::Speaker;
use holdfast_types::{ActorClass, ActorId, Newcomers, Places};
use holdfast_wire::{Code, Fault};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Connections without a token at once: a page asks for its parts by six, and says who it is right after.
const NEWCOMERS_MAX: usize = 512;
/// Of one address: behind one may be a proxy, or all of this machine.
const OF_ADDRESS_MAX: usize = 256;
/// How long a connection may go without a token: the page's files over a slow line.
const TOKENLESS: Duration = Duration::from_secs(30);
/// Connections with a token at once: a thousand observers and their programs' requests, and descriptors left for sessions.
const KNOWN: Places = Places { all: 4096, not_human: 3072, of_one: 1536, of_human: 2048 };

/// All connections of a port.
#[derive(Debug)]
pub(crate) struct Seats(Mutex<Inside>);

#[derive(Debug)]
struct Inside {
    last: u64,
    newcomers: Newcomers<IpAddr>,
    ends: HashMap<u64, Arc<Notify>>,
    known: HashMap<u64, (ActorId, bool)>,
}

/// A connection's place, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    end: Arc<Notify>,
}

impl Default for Seats {
    fn default() -> Seats {
        let newcomers = Newcomers::new(NEWCOMERS_MAX, OF_ADDRESS_MAX);
        Seats(Mutex::new(Inside { last: 0, newcomers, ends: HashMap::new(), known: HashMap::new() }))
    }
}

impl Seats {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody connected.
    pub fn come(self: &Arc<Self>, address: IpAddr) -> Arc<Seat> {
        let end = Arc::new(Notify::new());
        let mut inside = self.inside();
        inside.last += 1;
        let number = inside.last;
        inside.ends.insert(number, Arc::clone(&end));
        // One address in both of its forms.
        if let Some(gone) = inside.newcomers.come(number, address.to_canonical())
            && let Some(end) = inside.ends.remove(&gone)
        {
            end.notify_one();
        }
        Arc::new(Seat { seats: Arc::clone(self), number, end })
    }
}

impl Seat {
    /// Waits until the connection has to go: for ever, once a token was shown.
    pub async fn over(&self) {
        if tokio::time::timeout(TOKENLESS, self.end.notified()).await.is_ok() {
            return;
        }
        if self.seats.inside().known.contains_key(&self.number) {
            std::future::pending::<()>().await;
        }
    }

    /// A token was shown on it: takes one of its actor's places, the first time.
    pub fn known(&self, speaker: &Speaker) -> Result<(), Fault> {
        let mut inside = self.seats.inside();
        if inside.known.contains_key(&self.number) {
            return Ok(());
        }
        if !inside.newcomers.has(self.number) {
            return Err(Fault::new(Code::TooMany, "too many connections without a token").hint("connect again"));
        }
        // Who has a token is what its handle says: the host has checked it.
        let who = (speaker.actor.id, speaker.actor.handle.class() == ActorClass::Human);
        KNOWN.admit(&who.0, who.1, inside.known.values().copied()).map_err(|full| {
            Fault::new(Code::TooMany, format!("too many {}: {}", full.of("connections"), full.max()))
                .hint("close some of them, or send requests over one connection (keep-alive)")
        })?;
        inside.newcomers.leave(self.number);
        inside.ends.remove(&self.number);
        inside.known.insert(self.number, who);
        Ok(())
    }

    /// The place of the connection that a request came by.
    pub fn of(extensions: &Extensions) -> Option<&Arc<Seat>> {
        extensions.get()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inside = self.seats.inside();
        inside.newcomers.leave(self.number);
        inside.ends.remove(&self.number);
        inside.known.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_door::{Cap, Path};
    use holdfast_types::{Actor, Rights};

    fn speaker(handle: &str, key: u8) -> Speaker {
        let cap = Cap { token: "tok".into(), can: Rights::ALL, until_ms: u64::MAX };
        Speaker { actor: Actor { id: ActorId([key; 32]), handle: handle.parse().unwrap() }, path: Path::Http(cap) }
    }

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn a_flood_without_tokens_goes_itself_and_who_shows_one_stays() {
        let seats = Arc::new(Seats::default());
        let ann = seats.come(HERE);
        ann.known(&speaker("human:ann", 1)).unwrap();
        let flood: Vec<_> = (0..2 * OF_ADDRESS_MAX).map(|_| seats.come(HERE)).collect();
        let begun = tokio::time::Instant::now();
        for gone in &flood[..OF_ADDRESS_MAX] {
            gone.over().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "the oldest go for the newest");
        let refused = flood[0].known(&speaker("human:ann", 1)).unwrap_err();
        assert_eq!(refused.code, Code::TooMany, "one that was told to go");
        let bob = seats.come(HERE);
        bob.known(&speaker("human:bob", 2)).unwrap();
        flood[2 * OF_ADDRESS_MAX - 1].over().await;
        assert!(begun.elapsed() >= TOKENLESS, "the others in time");
        for stays in [&ann, &bob] {
            assert!(tokio::time::timeout(2 * TOKENLESS, stays.over()).await.is_err());
        }
    }

    #[test]
    fn one_actors_connections_are_bounded_and_a_human_always_gets_one() {
        let seats = Arc::new(Seats::default());
        let mut held = Vec::new();
        for key in 1..=3 {
            for _ in 0..KNOWN.of_one + 1 {
                let seat = seats.come(HERE);
                let _ = seat.known(&speaker("agent:bot", key));
                held.push(seat);
            }
        }
        assert_eq!(seats.inside().known.len(), KNOWN.not_human);
        seats.come(HERE).known(&speaker("human:ann", 9)).unwrap();
        drop(held);
        assert!(seats.inside().known.is_empty() && seats.inside().ends.is_empty());
    }
}
