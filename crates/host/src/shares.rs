//! How much of the host one actor can have at once.
//!
//! Looking can be made expensive: a graph of ten thousand processes, a history of ten thousand lines, a list of a thousand
//! sessions. What takes long is done on other threads, [`aside`]: so many at once for the whole host and fewer for one actor,
//! with places that only humans get. What takes milliseconds and needs the host's own state is done on its thread, [`here`], one
//! after the other, and between two of them everything else gets its turn: a seizure waits for one of them at most, however
//! many are asked for.
//!
//! What takes something away (a freeze, an end) and what syncs passes none of this: see [`crate::off_thread`].

use crate::connection::must_say_other;
use holdfast_types::{Actor, ActorId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Looks on other threads at once: a machine has two processors at least, and the host needs a part of one.
const ASIDE_AT_ONCE: usize = 4;
/// Those of them that others than humans may have.
const ASIDE_NOT_HUMAN: usize = 2;
/// Those of them that one actor may have.
const ASIDE_OF_ONE: usize = 2;

/// What one actor has of the host now; forgotten with its last look.
#[derive(Debug)]
struct Share {
    aside: Arc<Semaphore>,
    here: Mutex<()>,
}

#[derive(Debug)]
struct Shares {
    aside: Arc<Semaphore>,
    not_human: Arc<Semaphore>,
    here: Arc<Mutex<()>>,
    actors: RefCell<HashMap<ActorId, Weak<Share>>>,
}

thread_local! {
    static SHARES: Shares = Shares {
        aside: Arc::new(Semaphore::new(ASIDE_AT_ONCE)),
        not_human: Arc::new(Semaphore::new(ASIDE_NOT_HUMAN)),
        here: Arc::default(),
        actors: RefCell::default(),
    };
}

/// For whom something is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct By {
    pub actor: ActorId,
    /// Known to the host as a human.
    pub is_human: bool,
}

tokio::task_local! {
    /// For whom this task looks; nobody: the host itself.
    static BY: By;
}

/// Looks in an actor's name.
pub(crate) async fn by<T>(actor: &Actor, is_human: bool, look: impl Future<Output = T>) -> T {
    BY.scope(By { actor: actor.id, is_human }, look).await
}

impl Shares {
    fn of(&self, actor: ActorId) -> Arc<Share> {
        let mut actors = self.actors.borrow_mut();
        if let Some(share) = actors.get(&actor).and_then(Weak::upgrade) {
            return share;
        }
        actors.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Share { aside: Arc::new(Semaphore::new(ASIDE_OF_ONE)), here: Mutex::default() });
        actors.insert(actor, Arc::downgrade(&share));
        share
    }
}

/// A place on another thread; given back when all of it is dropped.
type Place = (Arc<Share>, Vec<OwnedSemaphorePermit>);

async fn place() -> Option<Place> {
    let by = BY.try_with(|by| *by).ok()?;
    let (share, all, not_human) =
        SHARES.with(|shares| (shares.of(by.actor), Arc::clone(&shares.aside), Arc::clone(&shares.not_human)));
    // In this order everywhere, so that nobody waits for one who waits for it. None of them is ever closed.
    let mut permits = Vec::with_capacity(3);
    permits.extend(Arc::clone(&share.aside).acquire_owned().await);
    if !by.is_human {
        permits.extend(not_human.acquire_owned().await);
    }
    permits.extend(all.acquire_owned().await);
    Some((share, permits))
}

/// Looks at something on another thread, once there is a place for it. An operation in which this is done says so in its terms.
pub(crate) async fn aside<T: Send + 'static>(look: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    must_say_other();
    let place = place().await;
    let looking = move || {
        holdfast_pause::point("aside");
        let seen = look();
        // The place is taken for as long as the thread is, whoever still waits for it.
        drop(place);
        seen
    };
    tokio::task::spawn_blocking(looking).await.map_err(io::Error::other).flatten()
}

/// Looks at something on this thread. One at a time, and before the next one everything else that is to be done is done.
pub(crate) async fn here<T>(look: impl FnOnce() -> T) -> T {
    let (own, all) = SHARES.with(|shares| {
        let own = BY.try_with(|by| shares.of(by.actor)).ok();
        (own, Arc::clone(&shares.here))
    });
    // Of one actor one waits in line, so that who asks for much does not delay the others more than who asks for little.
    let _own = match &own {
        Some(own) => Some(own.here.lock().await),
        None => None,
    };
    let _all = all.lock().await;
    let seen = look();
    // The runtime looks for what came from outside before it goes on with this.
    tokio::task::yield_now().await;
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use std::sync::mpsc;

    fn run<T>(what: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, what)
    }

    fn by_number(number: u8, is_human: bool) -> By {
        By { actor: ActorId([number; 32]), is_human }
    }

    #[test]
    fn one_actor_has_two_places_and_others_than_humans_two_together() {
        run(async {
            let (begun, begins) = mpsc::channel();
            let looks = |by: By, number: u8| {
                let begun = begun.clone();
                let (go, goes) = mpsc::channel::<()>();
                let task = tokio::task::spawn_local(BY.scope(by, async move {
                    aside(move || {
                        begun.send(number).unwrap();
                        let _ = goes.recv();
                        Ok(())
                    })
                    .await
                }));
                (go, task)
            };
            let agents = [looks(by_number(1, false), 1), looks(by_number(1, false), 2), looks(by_number(2, false), 3)];
            let human = looks(by_number(3, true), 4);
            let mut told = Vec::new();
            while told.len() < 3 {
                tokio::task::yield_now().await;
                told.extend(begins.try_iter());
            }
            told.sort_unstable();
            assert_eq!(told, [1, 2, 4], "the third of them waits, the human does not");
            let [(first, one), (second, two), (third, three)] = agents;
            drop((first, human.0));
            one.await.unwrap().unwrap();
            assert_eq!(begins.recv().unwrap(), 3);
            drop((second, third));
            two.await.unwrap().unwrap();
            three.await.unwrap().unwrap();
            human.1.await.unwrap().unwrap();
        });
    }

    #[test]
    fn between_two_looks_on_this_thread_everything_else_has_its_turn() {
        run(async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let mut tasks = Vec::new();
            for number in 0..4 {
                let order = Rc::clone(&order);
                let by = by_number(number, false);
                tasks.push(tokio::task::spawn_local(BY.scope(by, async move {
                    here(|| order.borrow_mut().push("look")).await;
                })));
            }
            let other = Rc::clone(&order);
            let act = tokio::task::spawn_local(async move { other.borrow_mut().push("act") });
            for task in tasks {
                task.await.unwrap();
            }
            act.await.unwrap();
            assert_eq!(order.borrow()[..2], ["look", "act"], "{order:?}");
        });
    }

    #[test]
    fn an_actor_that_asks_for_much_waits_behind_itself_alone() {
        run(async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let looks = |number: u8| {
                let order = Rc::clone(&order);
                tokio::task::spawn_local(BY.scope(by_number(number, false), async move {
                    here(|| order.borrow_mut().push(number)).await;
                }))
            };
            let mut tasks: Vec<_> = (0..5).map(|_| looks(1)).collect();
            tasks.push(looks(2));
            for task in tasks {
                task.await.unwrap();
            }
            let at = order.borrow().iter().position(|number| *number == 2).unwrap();
            assert!(at <= 1, "{order:?}");
        });
    }
}
