//! What happens in sessions, as one user's actor hears it: a connection to the host that waits for events.
//!
//! It starts no host. Its events are of all sessions that the actor may observe; the engine passes on what the user's envelope covers.

use crate::desk::SAID;
use crate::engine::Input;
use holdfast_client::{Identity, KeyError, connect_as};
use holdfast_types::{Handle, Home};
use holdfast_wire::attention::{WatchParams, What};
use holdfast_wire::operations::op;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How long one question for events waits at the host. The actor's key is looked for between two, and a watcher that is not wanted any more ends
/// there.
const WAIT_MS: u64 = 10_000;
/// Between two looks for a host.
const AGAIN: Duration = Duration::from_secs(2);
/// And the first.
const SOON: Duration = Duration::from_millis(200);

/// A user's watcher; it ends when this is dropped, at the latest after its current question.
pub struct Watcher {
    over: Arc<AtomicBool>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Watcher {
    /// Starts it on a thread of its own.
    pub fn start(home: Home, handle: Handle, user: String, tell: Sender<Input>) -> io::Result<Watcher> {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let body = move || watch(&home, &handle, &user, &tell, &ends);
        std::thread::Builder::new().name("watch".into()).stack_size(256 * 1024).spawn(body)?;
        Ok(Watcher { over })
    }
}

fn watch(home: &Home, handle: &Handle, user: &str, tell: &Sender<Input>, over: &AtomicBool) {
    let mut pause = SOON;
    while !over.load(Ordering::Relaxed) {
        let who = match Identity::load(home, handle) {
            Ok(who) => who,
            Err(KeyError::Missing(_)) => {
                let _ = tell.send(Input::Removed(user.to_owned()));
                return;
            }
            Err(_) => {
                std::thread::sleep(AGAIN);
                continue;
            }
        };
        if let Ok(mut link) = connect_as(home, &who, SAID) {
            pause = SOON;
            let mut after = None;
            loop {
                let params = WatchParams { session: None, after, wait_ms: if after.is_none() { 0 } else { WAIT_MS } };
                let Ok(answer) = link.call::<op::Watch>(&params) else { break };
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // The host tells a removed actor nothing, and does not say why.
                if Identity::load(home, handle).is_err() {
                    break;
                }
                // What was asked before there were events to hear of is looked for now.
                if (after.is_none() || answer.lost > 0) && tell.send(Input::Connected(user.to_owned())).is_err() {
                    return;
                }
                after = Some(answer.to);
                let matters = |what: &What| {
                    matches!(
                        what,
                        What::State { .. }
                            | What::Exit { .. }
                            | What::Asked { .. }
                            | What::Answered { .. }
                            | What::QuestionClosed { .. }
                            | What::Held { .. }
                            | What::HeldClosed { .. }
                    )
                };
                for event in answer.events.into_iter().filter(|event| matters(&event.what)) {
                    if tell.send(Input::Event(user.to_owned(), Box::new(event))).is_err() {
                        return;
                    }
                }
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(AGAIN);
    }
}
