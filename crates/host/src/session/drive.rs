//! The task that serves one keeper: frames in, timers, the screen kept ahead of the ring's overwriting.
//!
//! Awake or asleep: while no attached terminal answers queries, or somebody waits for output, the keeper wakes us at the
//! next byte; otherwise only when a quarter of the ring is unseen. After a large wake we look away for a few milliseconds,
//! so that a flood is taken in large bites.

use super::decide::event;
use super::{Probed, Session, Timers, Typed};
use crate::clients::Client;
use crate::link::{Link, LinkError};
use holdfast_abi::protocol::{FOLLOW_HOLDS, FOLLOW_SCREEN, FRAME_BYTES_MAX, FromKeeper, INPUT_BYTES_MAX, ToKeeper};
use holdfast_abi::ring::RingError;
use holdfast_authority::{Input, OperatorId};
use holdfast_screen::Reply;
use holdfast_types::{Offset, Size, hex_bytes};
use holdfast_wire::params::{AnswerEvent, Life};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// After a large wake, this long until the next: a flood is taken in bites of half a ring.
const FLOOD_PAUSE: Duration = Duration::from_millis(6);
/// What counts as a large wake.
const FLOOD_BYTES: u64 = 8 * 1024;
/// A screen nobody looked at and nothing changed for this long goes to disk.
const REST_AFTER: Duration = Duration::from_millis(150);
/// How long what was typed may wait in the keeper's log, at first.
pub(super) const DRAIN_AFTER: Duration = Duration::from_millis(200);
/// The screen is at most this far behind, however large the ring: a look must not take long.
const BEHIND_BYTES_MAX: u64 = 1024 * 1024;
/// How long a keeper may take from its first breath to its ring, on a machine that is very busy.
const STARTING_MS: u64 = 5_000;
/// How often a keeper that does not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// Slices fed before other sessions get their turn.
const SLICES_AT_ONCE: u32 = 4;
/// Frames handled before other sessions get their turn.
const FRAMES_AT_ONCE: u32 = 64;

thread_local! {
    /// Where slices of output are copied to, for all sessions in turn.
    static SLICE: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

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
                Err(Missed::Gone) => return session.ended(crate::now_ms()),
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
    let (link, welcome) = Link::open(&session.socket, secret).await.map_err(|error| match error {
        LinkError::Gone => Missed::Gone,
        LinkError::Version => Missed::Unknown(error.to_string()),
        LinkError::Io(_) => Missed::Silent,
    })?;
    // The keeper counts by itself, and publishes before it says: its numbers lie between those of two looks at the header.
    let holds = |before: u64, said: u64, now: u64| before <= said && said <= now;
    if !holds(before.0, welcome.head, ring.head()) || !holds(before.1, welcome.log_head, ring.log_head()) {
        return Err(Missed::Damaged(RingError::Damaged.to_string()));
    }
    session.connected(link, welcome, ring);
    Ok(())
}

async fn serve(session: &Rc<Session>, link: &Rc<Link>) -> io::Result<()> {
    session.begin(link)?;
    loop {
        let deadline = session.state.borrow().timers.next();
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
        session.tick(link)?;
        tokio::task::yield_now().await;
    }
}

impl Session {
    fn begin(&self, link: &Link) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        link.send(ToKeeper::Drained { position: state.authority.state().logged() })?;
        // Its answer comes behind the names of all who are there.
        link.send(ToKeeper::Probe)?;
        link.send(ToKeeper::Follow { position: state.picture.saved(), flags: FOLLOW_HOLDS | FOLLOW_SCREEN })?;
        state.timers.rearm = Some(Instant::now());
        drop(state);
        self.stirred();
        Ok(())
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
                        self.frame(link, frame)?;
                    }
                }
            }
        }
        Ok(true)
    }

    fn frame(&self, link: &Link, frame: FromKeeper<'_>) -> io::Result<()> {
        match frame {
            FromKeeper::Wake { .. } => {
                self.state.borrow_mut().timers.rearm = Some(Instant::now());
                self.changed.notify_waiters();
                self.stirred();
            }
            FromKeeper::Written { stream, seq, head } => self.answer_typed(stream, seq, Typed::Written(head)),
            FromKeeper::Refused { code, stream, seq, .. } => {
                let mut state = self.state.borrow_mut();
                if stream == state.reply_stream {
                    // A program that asks and does not read loses answers; the keeper lets none overtake a refused one,
                    // so later ones go another way.
                    state.reply_stream = crate::random();
                }
                if (stream, seq) == (0, 0) {
                    // A size, perhaps: it is asked for again when somebody writes.
                    state.asked_size = state.size;
                    state.clients.not_sized();
                }
                drop(state);
                self.answer_typed(stream, seq, Typed::Refused(code));
            }
            FromKeeper::Resized { cols, rows, .. } => {
                let mut state = self.state.borrow_mut();
                state.size = Size::clamped(cols, rows);
                // The log alone would remember it; the keyframe must too before the log is overwritten.
                state.timers.rest = Some(Instant::now() + REST_AFTER);
                state.timers.rearm = Some(Instant::now());
                drop(state);
                self.appoint();
                self.changed.notify_waiters();
            }
            FromKeeper::Joined { connection, pid, token, rights } => self.joined(connection, pid, token, rights),
            FromKeeper::Left { connection, acked } => self.left(link, connection, acked)?,
            FromKeeper::Logged { .. } => {
                self.state.borrow_mut().timers.drain.get_or_insert(Instant::now() + DRAIN_AFTER);
                self.stirred();
            }
            // The end follows; the ring's header has it all.
            FromKeeper::Exited { .. } => {}
            // The first one is for us, whoever asked: there are as many as were asked for.
            FromKeeper::Probed { .. } if self.state.borrow().clients.is_unsettled() => {
                let due = self.state.borrow_mut().clients.settled();
                self.type_replies(link, due)?;
                self.state.borrow_mut().timers.rearm = Some(Instant::now());
            }
            FromKeeper::Probed { foreground, iflag, oflag, lflag, unread } => {
                if let Some(waiter) = self.state.borrow_mut().probes.pop_front() {
                    let _ = waiter.send(Probed { foreground, iflag, oflag, lflag, unread });
                }
            }
            FromKeeper::Welcome(_) | FromKeeper::Keys { .. } => {}
        }
        Ok(())
    }

    fn answer_typed(&self, stream: u64, seq: u64, typed: Typed) {
        if let Some(waiter) = self.state.borrow_mut().typed.remove(&(stream, seq)) {
            let _ = waiter.send(typed);
        }
    }

    fn joined(&self, connection: u32, pid: u32, token: [u8; 16], rights: u8) {
        // Whoever outlived the last host may be waiting to be known.
        self.changed.notify_waiters();
        let mut state = self.state.borrow_mut();
        if let Some(client) = state.clients.by_token(&token) {
            client.connection = Some(connection);
            let id = client.id;
            if state.writer() == Some(id) {
                drop(state);
                self.say_writer();
            }
            return;
        }
        // It was there before this host: it will report back.
        let id = state.clients.nameless();
        state.clients.add(Client {
            id,
            actor: None,
            told_writes: None,
            pid,
            tty: String::new(),
            size: None,
            read_only: rights & holdfast_abi::protocol::RIGHT_WRITE == 0,
            remote: false,
            since_ms: crate::now_ms(),
            token,
            connection: Some(connection),
            peer: None,
        });
    }

    fn left(&self, link: &Link, connection: u32, acked: Offset) -> io::Result<()> {
        let known = self.state.borrow_mut().clients.by_connection(connection).map(|c| (c.id, c.size.is_none()));
        let Some((id, doubtful)) = known else { return Ok(()) };
        let answered = doubtful || self.state.borrow().clients.answers(id);
        holdfast_pause::point("client.left");
        // Whoever typed at an offset has seen everything before it, acknowledged or not.
        self.drain_log(Some(link), true)?;
        let typed_at = self.state.borrow().authority.state().wrote_at();
        let acked = if answered { acked.max(typed_at) } else { acked };
        if answered {
            // What it answered must be behind the screen before the host answers again.
            self.look();
        }
        let mut state = self.state.borrow_mut();
        let due = state.clients.remove(id, Some(acked));
        let here = state.authority.state().operators().any(|(operator, o)| operator.0 == id && o.away_since.is_none());
        if answered {
            state.picture.save(false);
        }
        state.timers.rearm = Some(Instant::now());
        drop(state);
        self.type_replies(link, due)?;
        if here {
            // It did not say that it leaves.
            let _ = self.decide(Input::CutOff { operator: OperatorId(id) });
        }
        self.appoint();
        self.changed.notify_waiters();
        Ok(())
    }

    /// Asks the writer's terminal to answer queries where none does.
    pub(crate) fn appoint(&self) {
        let candidate = |session: &Session| {
            let state = session.state.borrow();
            state.clients.candidate(state.size, state.writer()).map(|client| client.id)
        };
        if candidate(self).is_none() {
            return;
        }
        // What was asked so far the host answers, and from there on the terminal does.
        self.look();
        let Some(id) = candidate(self) else { return };
        let mut state = self.state.borrow_mut();
        let from = state.picture.seen();
        state.clients.start_answering(id, from);
        if let Some((_, events)) = state.clients.get(id).and_then(|client| client.peer.as_ref()) {
            let _ = events.send(event(&AnswerEvent { client: id, from }));
        }
    }

    /// Does what is due, and sets when to be back.
    fn tick(&self, link: &Link) -> io::Result<()> {
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let (drain, rearm, rest, rule, track, shell) = {
            let Timers { rearm, drain, rest, rule, track, shell } = self.state.borrow().timers;
            (due(drain), due(rearm), due(rest), due(rule), due(track), due(shell))
        };
        if track {
            self.track(now);
        }
        if drain {
            self.drain_log(Some(link), false)?;
        }
        if drain || shell {
            self.see_shell(now, drain);
        }
        if rule {
            let _ = self.decide(Input::Tick);
        }
        if rearm {
            self.advance(link, now)?;
        }
        if rest && !rearm {
            let mut state = self.state.borrow_mut();
            state.timers.rest = None;
            state.picture.save(true);
            let position = state.picture.saved();
            link.send(ToKeeper::Ack { position })?;
        }
        Ok(())
    }

    /// Feeds the screen where that is due, and arranges for the next wake.
    fn advance(&self, link: &Link, now: Instant) -> io::Result<()> {
        let listens = self.listens();
        let mut state = self.state.borrow_mut();
        let Some(head) = state.ring.as_ref().map(holdfast_abi::ring::Ring::head) else { return Ok(()) };
        let before = state.picture.seen();
        let quarter = (state.spec.ring_bytes / 4).min(BEHIND_BYTES_MAX);
        // A run's end is in the output.
        let answering = !state.clients.someone_answers() || state.runs.is_followed();
        let unseen = head.saturating_sub(before);
        let mut more = false;
        if (answering && unseen > 0) || unseen >= quarter {
            let replies = state.feed(SLICES_AT_ONCE, &mut more);
            let due = state.clients.sort(replies);
            drop(state);
            self.save_runs();
            self.type_replies(link, due)?;
            state = self.state.borrow_mut();
        }
        if state.picture.seen().saturating_sub(state.picture.saved()) >= quarter {
            state.picture.save(false);
            link.send(ToKeeper::Ack { position: state.picture.saved() })?;
        }
        let seen = state.picture.seen();
        if state.picture.is_live() {
            state.timers.rest = Some(now + REST_AFTER);
        }
        if more {
            state.timers.rearm = Some(now);
            return Ok(());
        }
        // Right after a large bite nobody needs the next byte at once: queries come in small output.
        if seen.saturating_sub(before) >= FLOOD_BYTES
            && state.timers.rearm.is_some_and(|at| now < at + FLOOD_PAUSE)
            && answering
        {
            state.timers.rearm = Some(now + FLOOD_PAUSE);
            return Ok(());
        }
        state.timers.rearm = None;
        let eager = answering || self.watchers.get() > 0 || listens;
        if self.watchers.get() > 0 {
            // What came between a reader's look and ours: the keeper wakes us for what is behind it only.
            self.changed.notify_waiters();
        }
        let wake_at = if eager { head.max(seen) + 1 } else { seen.max(state.picture.saved()) + quarter };
        link.send(ToKeeper::Sleep { position: state.picture.saved(), wake_at })
    }

    /// Types the answers to the session's queries on behalf of an absent terminal.
    pub(crate) fn type_replies(&self, link: &Link, replies: Vec<Reply>) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if state.life != Life::Running {
            return Ok(());
        }
        if state.authority.state().frozen().is_some() {
            // The terminal of a frozen session is left alone: it would echo, and queue.
            state.late_replies.extend(replies);
            return Ok(());
        }
        let fence = state.authority.state().fence().0;
        for reply in replies {
            for bytes in reply.bytes.chunks(INPUT_BYTES_MAX) {
                // Numbered by its place in the output: after a crash the next host meets the same queries, and the keeper
                // knows which ones were answered.
                state.reply_seq = (state.reply_seq + 1).max(reply.at << 8);
                let (stream, seq) = (state.reply_stream, state.reply_seq);
                link.send(ToKeeper::Input { fence, stream, seq, bytes })?;
            }
        }
        Ok(())
    }
}

impl super::State {
    /// Feeds up to `slices` slices; says whether there is more.
    pub(crate) fn feed(&mut self, slices: u32, more: &mut bool) -> Vec<Reply> {
        let (mut replies, mut marks) = (Vec::new(), Vec::new());
        let Some(ring) = &self.ring else { return replies };
        *more = true;
        SLICE.with_borrow_mut(|slice| {
            for _ in 0..slices {
                let step = self.picture.step(ring, slice);
                replies.extend(step.replies);
                marks.extend(step.marks);
                if !step.more {
                    *more = false;
                    break;
                }
            }
        });
        self.runs_told(&marks);
        replies
    }
}
