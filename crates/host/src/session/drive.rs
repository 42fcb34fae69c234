//! The task that serves one keeper: its frames and the deadlines go to the core, until the keeper is gone.

use super::Session;
use crate::link::{Link, LinkError};
use holdfast_abi::protocol::{FRAME_BYTES_MAX, FromKeeper};
use holdfast_abi::ring::RingError;
use holdfast_types::hex_bytes;
use holdfast_wire::params::Life;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// How long a keeper may take from its first breath to its ring, on a machine that is very busy.
const STARTING_MS: u64 = 5_000;
/// How often a keeper that does not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// Frames handled before other sessions get their turn.
const FRAMES_AT_ONCE: u32 = 64;

/// Serves a session until it has ended. Should a fault of our own stop that, it is begun anew: one session's odd state must
/// not leave it unserved until somebody restarts the host.
pub async fn drive(session: Rc<Session>) {
    let span = tracing::error_span!("session", session = %session.id);
    while tokio::task::spawn_local(hold(Rc::clone(&session)).instrument(span.clone())).await.is_err() {
        tracing::error!(parent: &span, "taken up anew after a fault of the host's own");
        session.unlinked();
        tokio::time::sleep(RETRY).await;
    }
}

/// Serves a keeper until it is gone, then records the end. A connection that broke while the keeper lives is taken up again.
async fn hold(session: Rc<Session>) {
    loop {
        if let Some(link) = session.link()
            && let Err(error) = serve(&session, &link).await
        {
            tracing::warn!("keeper connection: {error}");
            // A keeper that went while we spoke may have said something first: that it wrote what somebody typed.
            let _ = session.receive_all(&link);
        }
        session.unlinked();
        loop {
            match connect(&session).await {
                Ok(()) => break,
                Err(Missed::Gone) => {
                    session.await_keeper().await;
                    return session.ended(crate::now_ms());
                }
                Err(Missed::Unknown(note)) => return session.set_aside(Life::Unknown, note),
                Err(Missed::Damaged(note)) => return session.set_aside(Life::Damaged, note),
                // There but silent: stopped, or crowded.
                Err(Missed::Silent) => tokio::time::sleep(RETRY).await,
            }
        }
    }
}

/// Why a keeper could not be taken up.
#[derive(Debug)]
pub enum Missed {
    /// Nobody listens.
    Gone,
    /// It, or the ring, is of a version this build does not know.
    Unknown(String),
    /// Its ring cannot be used; it is left alone.
    Damaged(String),
    /// It does not answer.
    Silent,
}

/// Connects to a session's keeper.
pub async fn connect(session: &Session) -> Result<(), Missed> {
    // Without room for clients nobody could be told what is wrong: tried again until sessions have ended.
    crate::room::must_be(crate::room::LINK_ROOM).map_err(|_| Missed::Silent)?;
    let secret = hex_bytes(&session.state.borrow().spec.secret).and_then(|bytes| bytes.try_into().ok());
    let secret = secret.ok_or_else(|| Missed::Unknown("its spec has no secret".into()))?;
    let ring = match session.open_ring() {
        Ok(ring) => ring,
        Err(error @ RingError::Unknown) => return Err(Missed::Unknown(error.to_string())),
        Err(error) if session.socket.exists() => return Err(Missed::Damaged(error.to_string())),
        // Its host died while it was being started: the keeper may still be on its way.
        Err(_) if session.age_ms() < STARTING_MS => return Err(Missed::Silent),
        Err(_) => return Err(Missed::Gone),
    };
    let before = (ring.head(), ring.log_head());
    let keeps = |pid| session.own.keeps(session.id, pid);
    let (link, welcome) = Link::open(&session.socket, secret, keeps).await.map_err(|error| match error {
        // It lives, and cannot be reached: its socket was removed, or is not there yet.
        LinkError::Gone if crate::lives::is_locked(&session.dir.join("ring")) => {
            let note = format!("its keeper runs, but its socket {} is gone", session.socket.display());
            session.state.borrow_mut().notes.add(crate::notes::About::Life, note);
            Missed::Silent
        }
        LinkError::Gone => Missed::Gone,
        LinkError::Version => Missed::Unknown(error.to_string()),
        LinkError::Io(_) => Missed::Silent,
    })?;
    // The keeper counts by itself, and publishes before it says: its numbers lie between those of two looks at the header.
    let holds = |before: u64, said: u64, now: u64| before <= said && said <= now;
    if !holds(before.0, welcome.head, ring.head()) || !holds(before.1, welcome.log_head, ring.log_head()) {
        return Err(Missed::Damaged(RingError::Damaged.to_string()));
    }
    let mut welcome = welcome;
    // Of a portable session the keeper knows only the process that waits for it.
    let waits = welcome.child_pid;
    if session.portable().is_some() {
        welcome.child_pid = portable_command(waits).await;
    }
    session.connected(link, welcome, waits, ring);
    Ok(())
}

/// How long a portable session's command may take to be there.
const PORTABLE_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// How often it is looked for.
const PORTABLE_LOOK: std::time::Duration = std::time::Duration::from_millis(2);

/// The command of a portable session, once it is there; what waits for it otherwise.
async fn portable_command(waits: u32) -> u32 {
    let deadline = tokio::time::Instant::now() + PORTABLE_WAIT;
    while tokio::time::Instant::now() < deadline && holdfast_observe::process_id(waits).is_some() {
        if let Some(tree) = holdfast_observe::portable::tree(waits) {
            return tree.command;
        }
        tokio::time::sleep(PORTABLE_LOOK).await;
    }
    waits
}

async fn serve(session: &Rc<Session>, link: &Rc<Link>) -> io::Result<()> {
    session.with_core(|core, held, now| core.begin(held, now));
    session.stirred();
    loop {
        let deadline = session.deadline();
        let timer = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ready = link.readable() => {
                ready?;
                if !session.receive_all(link)? {
                    return Ok(());
                }
            }
            flushed = link.flush(), if link.has_queued() => flushed?,
            () = timer => {}
            () = session.nudge.notified() => {}
        }
        session.tick()?;
        tokio::task::yield_now().await;
    }
}

impl Session {
    /// When something is due, by the core's deadlines or the host's own.
    fn deadline(&self) -> Option<Instant> {
        let state = self.state.borrow();
        let core = state.core.timers.next().map(|ms| crate::started() + Duration::from_millis(ms));
        [core, state.timers.track, state.timers.shell].into_iter().flatten().min()
    }

    /// Handles what the keeper sent; false once it has gone.
    fn receive_all(&self, link: &Link) -> io::Result<bool> {
        let mut buffer = [0; FRAME_BYTES_MAX];
        for _ in 0..FRAMES_AT_ONCE {
            match link.receive(&mut buffer)? {
                None => return Ok(true),
                Some(0) => return Ok(false),
                // A keeper of a later version may say things we do not know; they are not for us.
                Some(count) => {
                    if let Ok(frame) = FromKeeper::decode(&buffer[..count]) {
                        self.frame(frame);
                    }
                }
            }
        }
        Ok(true)
    }

    fn frame(&self, frame: FromKeeper<'_>) {
        if matches!(frame, FromKeeper::Wake { .. } | FromKeeper::Logged { .. }) {
            self.look_soon();
        }
        if let FromKeeper::Left { .. } = frame {
            holdfast_pause::point("client.left");
        }
        self.with_core(|core, held, now| core.frame(held, now, frame));
        match frame {
            FromKeeper::Fenced { .. } => self.heard_lease(frame),
            FromKeeper::Wake { .. } => {
                self.changed.notify_waiters();
                self.stirred();
            }
            FromKeeper::Logged { .. } => self.stirred(),
            // Clients that outlived the last host may be waiting to be known, and others for a size.
            FromKeeper::Joined { .. } | FromKeeper::Left { .. } | FromKeeper::Resized { .. } => {
                self.changed.notify_waiters();
            }
            FromKeeper::Written { .. }
            | FromKeeper::Refused { .. }
            | FromKeeper::Probed { .. }
            | FromKeeper::Exited { .. }
            | FromKeeper::Welcome(_)
            | FromKeeper::Keys { .. } => {}
        }
    }

    /// Does what is due.
    fn tick(&self) -> io::Result<()> {
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let (track, shell, drain) = {
            let state = self.state.borrow();
            let clock_ms = crate::now().clock_ms;
            let drain = state.core.timers.drain.is_some_and(|at| at <= clock_ms);
            (due(state.timers.track), due(state.timers.shell), drain)
        };
        if track {
            self.track(now);
        }
        let listens = self.listens();
        self.with_core(|core, held, now| {
            held.listens = listens;
            core.tick(held, now);
        });
        if self.watchers.get() > 0 {
            // What came between a reader's look and ours: the keeper wakes us for what is behind it only.
            self.changed.notify_waiters();
        }
        if drain || shell {
            self.see_shell(now, drain);
        }
        match self.state.borrow_mut().link_error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
