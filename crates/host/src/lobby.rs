//! Connections at the host's socket that have not said who they are: so many, of one process fewer, and not for long.
//!
//! Where there are too many the oldest goes, so that nobody who comes and says who it is is kept out by others that do not.

use holdfast_types::Newcomers;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

/// At once: programs that begin together say who they are within milliseconds.
const NEWCOMERS_MAX: usize = 256;
/// Of one process.
const OF_PROCESS_MAX: usize = 64;
/// How long a connection may keep to itself who it is: a client says it at once, also on a machine that swaps.
const WORDLESS: Duration = Duration::from_secs(30);

/// Those who are there.
#[derive(Debug)]
pub struct Lobby(RefCell<Inside>);

#[derive(Debug)]
struct Inside {
    newcomers: Newcomers<i32>,
    ends: HashMap<u64, Rc<End>>,
}

/// How a connection is told to go.
#[derive(Debug, Default)]
struct End {
    told: Notify,
    /// It need not hurry.
    has_time: Cell<bool>,
}

impl Default for Lobby {
    fn default() -> Lobby {
        let newcomers = Newcomers::new(NEWCOMERS_MAX, OF_PROCESS_MAX);
        Lobby(RefCell::new(Inside { newcomers, ends: HashMap::new() }))
    }
}

impl Lobby {
    /// A connection of a process came. What is returned is over when it has to go; never, once it has said who it is.
    pub fn come(&self, connection: u64, pid: i32) -> impl Future<Output = ()> {
        let end = Rc::<End>::default();
        let mut inside = self.0.borrow_mut();
        inside.ends.insert(connection, Rc::clone(&end));
        if let Some(gone) = inside.newcomers.come(connection, pid)
            && let Some(end) = inside.ends.remove(&gone)
        {
            end.told.notify_one();
        }
        drop(inside);
        async move {
            let is_late = tokio::time::timeout(WORDLESS, end.told.notified()).await.is_err();
            if is_late && end.has_time.get() {
                end.told.notified().await;
            }
        }
    }

    /// It has proven a key, and a person has to confirm it: it may take its time, as long as there is room.
    pub fn proven(&self, connection: u64) {
        self.0.borrow().ends.get(&connection).iter().for_each(|end| end.has_time.set(true));
    }

    /// It has said who it is, or is gone.
    pub fn leave(&self, connection: u64) {
        let mut inside = self.0.borrow_mut();
        inside.newcomers.leave(connection);
        inside.ends.remove(&connection).iter().for_each(|end| end.has_time.set(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_goes_in_time_or_for_another_and_who_said_something_stays() {
        let lobby = Lobby::default();
        let silent = lobby.come(1, 7);
        let known = lobby.come(2, 7);
        lobby.leave(2);
        let asked = lobby.come(3, 7);
        lobby.proven(3);
        silent.await;
        assert!(tokio::time::timeout(2 * WORDLESS, known).await.is_err(), "it stays");
        assert!(tokio::time::timeout(2 * WORDLESS, asked).await.is_err(), "and who is being confirmed");
        let lobby = Lobby::default();
        let first = lobby.come(0, 7);
        let others: Vec<_> = (1..=OF_PROCESS_MAX as u64).map(|n| lobby.come(n, 7)).collect();
        let begun = tokio::time::Instant::now();
        first.await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "at once: another of its process came");
        assert_eq!(others.len(), OF_PROCESS_MAX);
    }
}
