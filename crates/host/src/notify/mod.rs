//! Telling people what their sessions want: a command is run, a webhook posted to, the attached terminals rung.
//!
//! One task follows the host's events. [`hold`] decides what is sent when, and knows neither clock nor sockets; how it
//! gets there is [`deliver`]'s. Everything is bounded: what waits, what is under way, how often it is tried.

mod deliver;
mod hold;
mod text;

pub(crate) use deliver::{Posted, post_signed};

use crate::registry::Registry;
use crate::serve::Server;
use hold::{Due, Hold};
use holdfast_types::SessionId;
use holdfast_wire::attention::Event;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Commands and webhooks under way at once; the next ones wait.
const AT_ONCE: usize = 4;
/// Those that wait: beyond it a notification is dropped, and the log says so.
const WAITING_MAX: usize = 256;

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// A program waits for input.
    Waiting,
    /// A session's command has ended.
    Exit,
    /// An act waits for approval.
    Approval,
    /// An actor requests the turn.
    TurnRequested,
    /// An actor asks the humans a question.
    Question,
    /// A run is over.
    RunEnded,
    /// A session is about to be reaped, or was.
    Reap,
}

impl On {
    /// As it is written in the configuration and in messages.
    pub fn word(self) -> &'static str {
        match self {
            On::Waiting => "waiting",
            On::Exit => "exit",
            On::Approval => "approval",
            On::TurnRequested => "turn_requested",
            On::Question => "question",
            On::RunEnded => "run_ended",
            On::Reap => "reap",
        }
    }
}

/// How a message is delivered.
#[derive(Clone, PartialEq, Eq)]
pub enum Deliver {
    /// A program is run, with the event on its standard input.
    Command(Vec<String>),
    /// The event is posted.
    Webhook {
        /// Where to.
        url: String,
        /// What it is signed with.
        secret: Option<String>,
    },
    /// The terminals that are attached ring.
    Ring,
}

impl fmt::Debug for Deliver {
    /// Without the secret, and without what an address may carry of one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deliver::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Deliver::Webhook { .. } => f.write_str("Webhook"),
            Deliver::Ring => f.write_str("Ring"),
        }
    }
}

/// Which events are reported, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Of what.
    pub on: Vec<On>,
    /// In which sessions: a name with `*` and `?`, or an id; none: all.
    pub session: Option<String>,
    /// How.
    pub by: Deliver,
}

impl Rule {
    /// Whether it is about this session.
    fn covers(&self, id: SessionId, name: &str) -> bool {
        self.session.as_deref().is_none_or(|wanted| fits(wanted, name) || wanted == id.to_string())
    }

    /// Whether it wants to know what this session is doing.
    pub(crate) fn wants_states(&self, id: SessionId, name: &str) -> bool {
        self.on.contains(&On::Waiting) && self.covers(id, name)
    }
}

/// Whether a name fits a pattern of `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where the last star stands, and how much of the name it has taken.
    let mut star = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[from] => {
                at += 1;
                from += 1;
            }
            Some(_) | None => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                at = place + 1;
                from = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Follows the events for as long as the host runs.
pub(crate) async fn follow(server: Rc<Server>) {
    let attention = Rc::clone(&server.registry.shared.attention);
    let slots = Rc::new(Semaphore::new(AT_ONCE));
    let waiting = Arc::new(Semaphore::new(WAITING_MAX));
    let began = Instant::now();
    let mut hold = Hold::default();
    let mut after = attention.newest();
    loop {
        let grown = attention.grown.notified();
        tokio::pin!(grown);
        grown.as_mut().enable();
        let news = attention.behind(after, |_| true);
        after = news.to;
        let now_ms = began.elapsed().as_millis() as u64;
        news.events.iter().for_each(|event| hold.happened(event, now_ms));
        for due in hold.due(now_ms) {
            tell(&server.registry, &due, &slots, &waiting);
        }
        match hold.next_ms() {
            Some(at_ms) => {
                let _ = tokio::time::timeout_at(began + Duration::from_millis(at_ms), grown).await;
            }
            None => grown.await,
        }
    }
}

fn tell(registry: &Registry, due: &Due, slots: &Rc<Semaphore>, waiting: &Arc<Semaphore>) {
    let Event { session, name, .. } = &due.event;
    let message = Rc::new(text::Message::of(due));
    for rule in registry.shared.attention.rules() {
        if !rule.on.contains(&due.on) || !rule.covers(*session, name.as_str()) {
            continue;
        }
        if rule.by == Deliver::Ring {
            if let Some(session) = registry.all().into_iter().find(|one| one.id == *session) {
                session.ring_terminals(&message.text);
            }
            continue;
        }
        let Ok(place) = Arc::clone(waiting).try_acquire_owned() else {
            tracing::warn!("too many notifications wait, one of {name} is dropped");
            continue;
        };
        let (rule, message, slots) = (rule.clone(), Rc::clone(&message), Rc::clone(slots));
        tokio::task::spawn_local(async move {
            let slot = slots.acquire().await;
            deliver::deliver(&rule.by, &message).await;
            drop((slot, place));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, expected) in [
            ("work", "work", true),
            ("work", "work2", false),
            ("*", "", true),
            ("w*k", "work", true),
            ("w*k", "wok-rk", true),
            ("w*k", "works", false),
            ("?ork*", "work-1", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
